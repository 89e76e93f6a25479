/* SPDX-License-Identifier: ISC */
/* config.json of an exported model. What our configuration has no field for, the config.json that
 * was imported still tells: transformers_version, fused_decoding, keys of somebody's own. */
#include <string.h>

#include "export.h"

/* Keys that our configuration holds; all others are taken from the imported text. */
static bool held(const char *key)
{
    static const char *const keys[] = {"bos_token_id",
                                       "bottle_neck_dim",
                                       "dtype",
                                       "eos_token_id",
                                       "head_dim",
                                       "hidden_size",
                                       "intermediate_size",
                                       "layer_types",
                                       "lsh_only_embed",
                                       "mask_documents",
                                       "max_position_embeddings",
                                       "normalize_padding_rows",
                                       "num_attention_heads",
                                       "num_buckets",
                                       "num_hashes",
                                       "num_hidden_layers",
                                       "num_key_value_heads",
                                       "num_lsh",
                                       "pad_token_id",
                                       "rms_norm_eps",
                                       "rope_parameters",
                                       "tie_word_embeddings",
                                       "use_conditional_prob",
                                       "vocab_size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* A list of end tokens, of which we use the first, stays a list. */
static bool same_token(const json_t *kept, const json_t *ours)
{
    return json_is_array(kept) && json_equal(json_array_get(kept, 0), ours);
}

static int merge(json_t *ours, const json_t *kept)
{
    const char *key;
    json_t *value, *rope = json_object_get(ours, "rope_parameters");
    int failed = 0;
    json_object_foreach((json_t *)kept, key, value)
    {
        if (strcmp(key, "rope_theta") == 0) /* the older place of the same number */
            failed |= json_object_set(ours, key, json_object_get(rope, key));
        else if (strcmp(key, "torch_dtype") == 0) /* the older name */
            failed |= json_object_set(ours, key, json_object_get(ours, "dtype"));
        else if (strcmp(key, "rope_parameters") == 0 && json_is_object(value))
            failed |= json_object_update_missing(rope, value);
        else if (!held(key) || same_token(value, json_object_get(ours, key)))
            failed |= json_object_set(ours, key, value);
    }
    return failed;
}

mhf_status mhf_export_config(const mhf_config *config, const char *dtype, const mhf_buf *kept,
                             const char *name, mhf_buf *out)
{
    mhf_buf text = {0};
    json_t *ours = NULL, *other = NULL;
    mhf_status status = mhf_config_to_json(config, &text);
    if (status == MHF_OK)
        status = mhf_json_parse(text.data, text.n, "config.json", &ours);
    if (status == MHF_OK && kept)
        status = mhf_json_parse(kept->data, kept->n, name, &other);
    if (status == MHF_OK && other && !json_is_object(other))
        status = mhf_fail(MHF_E_DATA, "%s: not a JSON object", name);
    if (status == MHF_OK &&
        (json_object_set_new(ours, "dtype", json_string(dtype)) || (other && merge(ours, other))))
        status = mhf_fail(MHF_E_NOMEM, "no memory for config.json");
    if (status == MHF_OK)
        status = mhf_json_text(ours, out);
    json_decref(other);
    json_decref(ours);
    mhf_buf_free(&text);
    return status;
}
