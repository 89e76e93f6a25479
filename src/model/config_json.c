/* SPDX-License-Identifier: ISC */
/* config.json in Hugging Face's keys: read, with a refusal of what is not built, and written. */
#include <string.h>

#include "mhf/model.h"

static mhf_status refuse(const char *name, const char *key, const json_t *value,
                         const char *expected)
{
    mhf_buf text = {0};
    mhf_status status = mhf_json_print(value, &text);
    if (status == MHF_OK)
        status = mhf_fail(MHF_E_DATA, "%s: key '%s' is %.100s, which is not built; expected %s",
                          name, key, text.data, expected);
    mhf_buf_free(&text);
    return status;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static mhf_status expect_text(const json_t *o, const char *name, const char *key, const char *text)
{
    const json_t *value = json_object_get(o, key);
    return absent(value) || is_text(value, text) ? MHF_OK : refuse(name, key, value, text);
}

static mhf_status expect_false(const json_t *o, const char *name, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return absent(value) || json_is_false(value) ? MHF_OK : refuse(name, key, value, "false");
}

/* Either none are named, or the one that is built is among them. */
static mhf_status check_architectures(const json_t *o, const char *name)
{
    const json_t *list = json_object_get(o, "architectures");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_text(json_array_get(list, i), "Qwen3ForCausalLM"))
            return MHF_OK;
    return absent(list) || (json_is_array(list) && json_array_size(list) == 0)
               ? MHF_OK
               : refuse(name, "architectures", list, "Qwen3ForCausalLM");
}

static mhf_status check_built(const json_t *o, const char *name)
{
    MHF_TRY(expect_text(o, name, "model_type", "qwen3"));
    MHF_TRY(check_architectures(o, name));
    MHF_TRY(expect_text(o, name, "hidden_act", "silu"));
    MHF_TRY(expect_false(o, name, "attention_bias"));
    MHF_TRY(expect_false(o, name, "use_sliding_window"));
    const json_t *dropout = json_object_get(o, "attention_dropout");
    if (!absent(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return refuse(name, "attention_dropout", dropout, "0");
    const json_t *quantized = json_object_get(o, "quantization_config");
    if (!absent(quantized))
        return refuse(name, "quantization_config", quantized, "null");
    const json_t *layers = json_object_get(o, "layer_types");
    if (!absent(layers) && !json_is_array(layers))
        return refuse(name, "layer_types", layers, "a list");
    for (size_t i = 0; i < json_array_size(layers); i++)
        if (!is_text(json_array_get(layers, i), "full_attention"))
            return refuse(name, "layer_types", json_array_get(layers, i), "full_attention");
    const json_t *scaling = json_object_get(o, "rope_scaling");
    const json_t *type = json_object_get(scaling, "rope_type");
    if (!absent(scaling) && !is_text(type, "default"))
        return refuse(name, "rope_scaling", scaling, "null");
    return MHF_OK;
}

static mhf_status read_rope(const json_t *o, const char *name, mhf_config *config)
{
    MHF_TRY(mhf_json_real_or(o, "rope_theta", name, &config->rope_theta));
    const json_t *rope = json_object_get(o, "rope_parameters");
    if (absent(rope))
        return MHF_OK;
    if (!json_is_object(rope))
        return refuse(name, "rope_parameters", rope, "an object");
    MHF_TRY(expect_text(rope, name, "rope_type", "default"));
    MHF_TRY(expect_text(rope, name, "type", "default"));
    const json_t *partial = json_object_get(rope, "partial_rotary_factor");
    if (!absent(partial) && !(json_is_number(partial) && json_number_value(partial) == 1))
        return refuse(name, "partial_rotary_factor", partial, "1");
    /* Angles by kind of layer would be nested here. */
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)rope, key, value)
    {
        if (json_is_object(value) || json_is_array(value))
            return refuse(name, key, value, "a single set of rope_parameters");
    }
    return mhf_json_real_or(rope, "rope_theta", name, &config->rope_theta);
}

static mhf_status read_size(const json_t *o, const char *name, const char *key, int64_t low,
                            int32_t *out)
{
    int64_t value;
    MHF_TRY(mhf_json_int(o, key, name, low, INT32_MAX, &value));
    *out = (int32_t)value;
    return MHF_OK;
}

static mhf_status read_size_or(const json_t *o, const char *name, const char *key, int64_t low,
                               int32_t *out)
{
    int64_t value = *out;
    MHF_TRY(mhf_json_int_or(o, key, name, low, INT32_MAX, &value));
    *out = (int32_t)value;
    return MHF_OK;
}

static mhf_status check_layer_types(const json_t *o, const char *name, int32_t layers)
{
    const json_t *list = json_object_get(o, "layer_types");
    if (absent(list) || json_array_size(list) == (size_t)layers)
        return MHF_OK;
    return mhf_fail(MHF_E_DATA, "%s: key 'layer_types' has %zu entries, expected %d, one a layer",
                    name, json_array_size(list), layers);
}

/* A token id below `size`, a list of them (the first counts), or null. */
static mhf_status read_token(const json_t *o, const char *name, const char *key, int32_t size,
                             int32_t *out)
{
    const json_t *value = json_object_get(o, key);
    *out = -1;
    if (json_is_array(value))
        value = json_array_get(value, 0);
    if (absent(value))
        return MHF_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >= size)
        return mhf_fail(MHF_E_DATA, "%s: key '%s' is not a token id, expected 0 to %d or null",
                        name, key, size - 1);
    *out = (int32_t)json_integer_value(value);
    return MHF_OK;
}

/* Where a key is absent, the released configuration class has a value for it. */
static mhf_status read_hash_keys(const json_t *o, const char *name, mhf_config *c)
{
    c->head = MHF_HEAD_MHF;
    c->num_lsh = 3;
    MHF_TRY(read_size(o, name, "num_hashes", 1, &c->num_hashes));
    MHF_TRY(read_size(o, name, "num_buckets", 2, &c->num_buckets));
    MHF_TRY(read_size_or(o, name, "num_lsh", 0, &c->num_lsh));
    MHF_TRY(read_size_or(o, name, "bottle_neck_dim", 1, &c->bottle_neck_dim));
    MHF_TRY(mhf_json_bool_or(o, "lsh_only_embed", name, &c->lsh_only_embed));
    MHF_TRY(mhf_json_bool_or(o, "use_conditional_prob", name, &c->use_conditional_prob));
    c->normalize_padding_rows = c->use_conditional_prob;
    return mhf_json_bool_or(o, "normalize_padding_rows", name, &c->normalize_padding_rows);
}

/* Absent keys are what transformers takes them for; a null is told by the other sizes. */
static mhf_status read_heads(const json_t *o, const char *name, mhf_config *c)
{
    MHF_TRY(read_size(o, name, "num_attention_heads", 1, &c->num_attention_heads));
    const bool heads_null = json_is_null(json_object_get(o, "num_key_value_heads"));
    const bool width_null = json_is_null(json_object_get(o, "head_dim"));
    c->num_key_value_heads = heads_null ? c->num_attention_heads : 32;
    c->head_dim = width_null ? c->hidden_size / c->num_attention_heads : 128;
    MHF_TRY(read_size_or(o, name, "num_key_value_heads", 1, &c->num_key_value_heads));
    return read_size_or(o, name, "head_dim", 1, &c->head_dim);
}

static mhf_status read_config(const json_t *o, const char *name, mhf_config *c)
{
    if (!json_is_object(o))
        return mhf_fail(MHF_E_DATA, "%s: not a JSON object", name);
    *c = (mhf_config){.head = MHF_HEAD_STANDARD,
                      .bottle_neck_dim = 64,
                      .max_position_embeddings = 32768,
                      .rms_norm_eps = 1e-6,
                      .rope_theta = 1e4};
    MHF_TRY(check_built(o, name));
    MHF_TRY(read_rope(o, name, c));
    MHF_TRY(read_size(o, name, "vocab_size", 1, &c->vocab_size));
    MHF_TRY(read_size(o, name, "hidden_size", 1, &c->hidden_size));
    MHF_TRY(read_size(o, name, "num_hidden_layers", 1, &c->num_hidden_layers));
    MHF_TRY(check_layer_types(o, name, c->num_hidden_layers));
    MHF_TRY(read_heads(o, name, c));
    MHF_TRY(read_size(o, name, "intermediate_size", 1, &c->intermediate_size));
    MHF_TRY(read_size_or(o, name, "max_position_embeddings", 1, &c->max_position_embeddings));
    MHF_TRY(mhf_json_real_or(o, "rms_norm_eps", name, &c->rms_norm_eps));
    MHF_TRY(mhf_json_bool_or(o, "tie_word_embeddings", name, &c->tie_word_embeddings));
    MHF_TRY(mhf_json_bool_or(o, "mask_documents", name, &c->mask_documents));
    MHF_TRY(read_token(o, name, "bos_token_id", c->vocab_size, &c->bos_token_id));
    MHF_TRY(read_token(o, name, "eos_token_id", c->vocab_size, &c->eos_token_id));
    MHF_TRY(read_token(o, name, "pad_token_id", c->vocab_size, &c->pad_token_id));
    if (!absent(json_object_get(o, "num_hashes")))
        MHF_TRY(read_hash_keys(o, name, c));
    if (mhf_config_check(c) != MHF_OK)
        return mhf_fail(MHF_E_DATA, "%s: %s", name, mhf_error());
    return MHF_OK;
}

mhf_status mhf_config_from_json(const char *json, size_t n, const char *name, mhf_config *config)
{
    json_t *o = NULL;
    MHF_TRY(mhf_json_parse(json, n, name, &o));
    mhf_status status = read_config(o, name, config);
    json_decref(o);
    return status;
}

static json_t *token_or_null(int32_t id)
{
    return id < 0 ? json_null() : json_integer(id);
}

static json_t *layer_types(int32_t layers)
{
    json_t *list = json_array();
    for (int32_t l = 0; list && l < layers; l++)
        json_array_append_new(list, json_string("full_attention"));
    return list;
}

/* The released code's keys, in its (alphabetic) order. */
static json_t *config_object(const mhf_config *c)
{
    json_t *o = json_object();
    if (!o)
        return NULL;
    bool hashed = c->head == MHF_HEAD_MHF;
    json_object_set_new(o, "architectures", json_pack("[s]", "Qwen3ForCausalLM"));
    json_object_set_new(o, "attention_bias", json_false());
    json_object_set_new(o, "attention_dropout", json_real(0.0));
    json_object_set_new(o, "bos_token_id", token_or_null(c->bos_token_id));
    if (hashed)
        json_object_set_new(o, "bottle_neck_dim", json_integer(c->bottle_neck_dim));
    json_object_set_new(o, "dtype", json_string("float32"));
    json_object_set_new(o, "eos_token_id", token_or_null(c->eos_token_id));
    if (hashed)
        json_object_set_new(o, "fused_decoding", json_false());
    json_object_set_new(o, "head_dim", json_integer(c->head_dim));
    json_object_set_new(o, "hidden_act", json_string("silu"));
    json_object_set_new(o, "hidden_size", json_integer(c->hidden_size));
    json_object_set_new(o, "initializer_range", json_real(0.02));
    json_object_set_new(o, "intermediate_size", json_integer(c->intermediate_size));
    json_object_set_new(o, "layer_types", layer_types(c->num_hidden_layers));
    if (hashed)
        json_object_set_new(o, "lsh_only_embed", json_boolean(c->lsh_only_embed));
    if (c->mask_documents)
        json_object_set_new(o, "mask_documents", json_true());
    json_object_set_new(o, "max_position_embeddings", json_integer(c->max_position_embeddings));
    json_object_set_new(o, "max_window_layers", json_integer(c->num_hidden_layers));
    json_object_set_new(o, "model_type", json_string("qwen3"));
    if (hashed && c->normalize_padding_rows != c->use_conditional_prob)
        json_object_set_new(o, "normalize_padding_rows", json_boolean(c->normalize_padding_rows));
    json_object_set_new(o, "num_attention_heads", json_integer(c->num_attention_heads));
    if (hashed) {
        json_object_set_new(o, "num_buckets", json_integer(c->num_buckets));
        json_object_set_new(o, "num_hashes", json_integer(c->num_hashes));
    }
    json_object_set_new(o, "num_hidden_layers", json_integer(c->num_hidden_layers));
    json_object_set_new(o, "num_key_value_heads", json_integer(c->num_key_value_heads));
    if (hashed)
        json_object_set_new(o, "num_lsh", json_integer(c->num_lsh));
    json_object_set_new(o, "pad_token_id", token_or_null(c->pad_token_id));
    json_object_set_new(o, "rms_norm_eps", json_real(c->rms_norm_eps));
    json_object_set_new(
        o, "rope_parameters",
        json_pack("{s:f,s:s}", "rope_theta", c->rope_theta, "rope_type", "default"));
    json_object_set_new(o, "sliding_window", json_null());
    json_object_set_new(o, "tie_word_embeddings", json_boolean(c->tie_word_embeddings));
    json_object_set_new(o, "use_cache", json_true());
    if (hashed)
        json_object_set_new(o, "use_conditional_prob", json_boolean(c->use_conditional_prob));
    json_object_set_new(o, "use_sliding_window", json_false());
    json_object_set_new(o, "vocab_size", json_integer(c->vocab_size));
    return o;
}

mhf_status mhf_config_to_json(const mhf_config *config, mhf_buf *out)
{
    json_t *o = config_object(config);
    mhf_status status =
        o ? mhf_json_text(o, out) : mhf_fail(MHF_E_NOMEM, "no memory for a configuration text");
    json_decref(o);
    return status;
}
