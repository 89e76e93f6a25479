/* SPDX-License-Identifier: ISC */
/* A Hugging Face folder as a model to read: config.json, safetensors, tokenizer.json. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "shape.h"
#include "source.h"

enum { TEXT_MAX = 64 << 20, COMPARED = 1 << 18 };
static const char table_name[] = "model.hash_map", head_name[] = "lm_head.weight";
static const char embedding_name[] = "model.embed_tokens.weight";

static mhf_status read_config(mhf_source *source)
{
    mhf_buf path = {0}, json = {0};
    mhf_status status = mhf_path_join(source->path.data, "config.json", &path);
    if (status == MHF_OK)
        status = mhf_file_read(path.data, TEXT_MAX, &json);
    if (status == MHF_OK)
        status = mhf_config_from_json(json.data, json.n, path.data, &source->config);
    mhf_buf_free(&path);
    mhf_buf_free(&json);
    return status;
}

/* ---- are they the model's tensors? ---------------------------------------------------------- */

static mhf_status find(const mhf_source *source, const mhf_param *param, const mhf_tensor **out)
{
    const mhf_tensor *tensor = mhf_safetensors_find(source->tensors, param->name);
    char found[MHF_SHAPE_TEXT], wanted[MHF_SHAPE_TEXT];
    if (!tensor)
        return mhf_fail(MHF_E_DATA, "%s: there is no tensor '%s'", source->path.data, param->name);
    const char *path = mhf_safetensors_path(source->tensors, tensor);
    if (!mhf_shape_is(param, tensor->n_dims, tensor->dims)) {
        mhf_shape_text(tensor->n_dims, tensor->dims, found);
        mhf_shape_text(param->n_dims, param->shape, wanted);
        return mhf_fail(MHF_E_DATA, "%s: tensor '%s' has shape %s, expected %s", path, param->name,
                        found, wanted);
    }
    if (tensor->type != MHF_TENSOR_F32 && tensor->type != MHF_TENSOR_F16 &&
        tensor->type != MHF_TENSOR_BF16)
        return mhf_fail(MHF_E_DATA, "%s: tensor '%s' has dtype %s, expected F32, BF16 or F16", path,
                        param->name, tensor->type_name);
    *out = tensor;
    return MHF_OK;
}

/* Some programs store the tied head too: it must then be the embedding. */
static mhf_status check_tied_head(const mhf_source *source)
{
    const mhf_tensor *head = mhf_safetensors_find(source->tensors, head_name);
    const mhf_tensor *embedding = mhf_safetensors_find(source->tensors, embedding_name);
    if (!head || !embedding)
        return MHF_OK;
    float *a = NULL, *b = NULL;
    mhf_status status = mhf_new(&a, COMPARED, sizeof *a, "a piece");
    if (status == MHF_OK)
        status = mhf_new(&b, COMPARED, sizeof *b, "a piece");
    bool same = head->count == embedding->count;
    for (int64_t i = 0; status == MHF_OK && same && i < head->count; i += COMPARED) {
        int64_t n = head->count - i < COMPARED ? head->count - i : COMPARED;
        status = mhf_safetensors_read(source->tensors, head, i, n, a);
        if (status == MHF_OK)
            status = mhf_safetensors_read(source->tensors, embedding, i, n, b);
        same = memcmp(a, b, (size_t)n * sizeof *a) == 0;
    }
    free(a);
    free(b);
    if (status == MHF_OK && !same)
        status = mhf_fail(MHF_E_DATA, "%s: config.json ties the embeddings, but '%s' is not '%s'",
                          source->path.data, head_name, embedding_name);
    return status;
}

static bool known_extra(const mhf_source *source, const char *name)
{
    static const char buffer[] = ".rotary_emb.inv_freq"; /* computed from rope_theta */
    size_t n = strlen(name);
    return (source->config.head == MHF_HEAD_MHF && strcmp(name, table_name) == 0) ||
           (source->config.tie_word_embeddings && strcmp(name, head_name) == 0) ||
           (n > sizeof buffer && strcmp(name + n - (sizeof buffer - 1), buffer) == 0);
}

static mhf_status check_tensors(mhf_source *source)
{
    const mhf_tensor *tensor = NULL;
    int64_t n = mhf_safetensors_count(source->tensors);
    /* Before a registry is made: a claim of many layers must be backed by tensors. */
    if (n < source->config.num_hidden_layers)
        return mhf_fail(MHF_E_DATA, "%s: %lld tensors, too few for the %d layers of config.json",
                        source->path.data, (long long)n, source->config.num_hidden_layers);
    MHF_TRY(mhf_registry_new(&source->config, &source->registry));
    for (int32_t i = 0; i < source->registry.n; i++)
        MHF_TRY(find(source, &source->registry.params[i], &tensor));
    if (n > source->registry.n + source->config.num_hidden_layers + 3)
        return mhf_fail(MHF_E_DATA, "%s: %lld tensors, but the model of config.json has %d",
                        source->path.data, (long long)n, source->registry.n);
    for (int64_t i = 0; i < n; i++) {
        tensor = mhf_safetensors_at(source->tensors, i);
        if (mhf_registry_find(&source->registry, tensor->name) < 0 &&
            !known_extra(source, tensor->name))
            return mhf_fail(MHF_E_DATA,
                            "%s: tensor '%.200s' is no part of the model that config.json tells",
                            mhf_safetensors_path(source->tensors, tensor), tensor->name);
    }
    return source->config.tie_word_embeddings ? check_tied_head(source) : MHF_OK;
}

mhf_status mhf_folder_open(const char *path, mhf_source *source)
{
    MHF_TRY(mhf_buf_add_text(&source->path, path));
    MHF_TRY(read_config(source));
    MHF_TRY(mhf_safetensors_open(path, &source->tensors));
    return check_tensors(source);
}

mhf_status mhf_folder_read(mhf_source *source, const mhf_param *param, int64_t first, int64_t count,
                           float *out)
{
    const mhf_tensor *tensor = NULL;
    MHF_TRY(find(source, param, &tensor));
    return mhf_safetensors_read(source->tensors, tensor, first, count, out);
}

/* ---- the other files ------------------------------------------------------------------------ */

mhf_status mhf_folder_tokenizer(const mhf_source *source, mhf_tokenizer **out)
{
    return mhf_tokenizer_load(source->path.data, NULL, out);
}

/* A broken file is found when it comes in, not by whoever loads the export. */
static mhf_status check_json(const char *path, const mhf_buf *text)
{
    json_t *json = NULL;
    if (!mhf_path_ends_with(path, ".json"))
        return MHF_OK;
    MHF_TRY(mhf_json_parse(text->data ? text->data : "", text->n, path, &json));
    mhf_status status = json_is_object(json) || json_is_array(json)
                            ? MHF_OK
                            : mhf_fail(MHF_E_DATA, "%s: neither a JSON object nor a list", path);
    json_decref(json);
    return status;
}

static const char *const carried_names[] = {"config.json", "generation_config.json",
                                            "special_tokens_map.json", "chat_template.jinja",
                                            "chat_template.json"};

mhf_status mhf_folder_carried(const mhf_source *source, mhf_carried *out)
{
    mhf_buf path = {0}, text = {0};
    mhf_status status = MHF_OK;
    for (size_t i = 0; status == MHF_OK && i < sizeof carried_names / sizeof *carried_names; i++) {
        status = mhf_path_join(source->path.data, carried_names[i], &path);
        if (status != MHF_OK || !mhf_file_exists(path.data))
            continue;
        status = mhf_file_read(path.data, TEXT_MAX, &text);
        if (status == MHF_OK)
            status = check_json(path.data, &text);
        if (status == MHF_OK)
            status = mhf_carried_add(out, carried_names[i], &text);
    }
    mhf_buf_free(&path);
    mhf_buf_free(&text);
    return status;
}

/* Read as parts of the model, or one of the carried. */
static bool is_taken(const char *name)
{
    for (size_t i = 0; i < sizeof carried_names / sizeof *carried_names; i++)
        if (strcmp(name, carried_names[i]) == 0)
            return true;
    return mhf_path_ends_with(name, ".safetensors") ||
           mhf_path_ends_with(name, ".safetensors.index.json") ||
           strcmp(name, "tokenizer.json") == 0 || strcmp(name, "tokenizer_config.json") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

mhf_status mhf_source_left_behind(const mhf_source *source, mhf_buf *out)
{
    struct dirent **entries = NULL;
    mhf_status status = MHF_OK;
    if (source->info.is_checkpoint)
        return MHF_OK;
    const int n = scandir(source->path.data, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (status == MHF_OK && *name != '.' && !is_taken(name))
            status = mhf_buf_printf(out, "%s%s", out->n > 0 ? ", " : "", name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------ */

static mhf_status read_table(const mhf_source *source, mhf_bucket **out)
{
    const mhf_config *config = &source->config;
    const mhf_tensor *tensor = mhf_safetensors_find(source->tensors, table_name);
    if (!tensor)
        return mhf_fail(MHF_E_DATA, "%s: there is no tensor '%s'", source->path.data, table_name);
    const char *path = mhf_safetensors_path(source->tensors, tensor);
    if (tensor->n_dims != 2 || tensor->dims[0] != config->vocab_size ||
        tensor->dims[1] != config->num_hashes) {
        char found[MHF_SHAPE_TEXT];
        mhf_shape_text(tensor->n_dims, tensor->dims, found);
        return mhf_fail(MHF_E_DATA, "%s: tensor '%s' has shape %s, expected [%d, %d]", path,
                        table_name, found, config->vocab_size, config->num_hashes);
    }
    int64_t *values = NULL;
    mhf_status status = mhf_new(&values, tensor->count, sizeof *values, "the signature table");
    if (status == MHF_OK)
        status = mhf_new(out, tensor->count, sizeof **out, "the signature table");
    if (status == MHF_OK)
        status = mhf_safetensors_read_int(source->tensors, tensor, 0, tensor->count, values);
    for (int64_t i = 0; status == MHF_OK && i < tensor->count; i++) {
        if (values[i] < 0 || values[i] >= config->num_buckets)
            status = mhf_fail(MHF_E_DATA, "%s: '%s' row %lld has bucket %lld, expected 0 to %d",
                              path, table_name, (long long)(i / config->num_hashes),
                              (long long)values[i], config->num_buckets - 1);
        else
            (*out)[i] = (mhf_bucket)values[i];
    }
    free(values);
    return status;
}

static int32_t pad_of(const mhf_config *config, const mhf_tokenizer *tokenizer)
{
    const int32_t candidates[] = {mhf_tokenizer_pad(tokenizer), mhf_tokenizer_eos(tokenizer),
                                  config->pad_token_id, config->eos_token_id};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] >= 0)
            return candidates[i];
    return -1;
}

mhf_status mhf_folder_signatures(const mhf_source *source, mhf_signatures *out)
{
    const mhf_config *config = &source->config;
    mhf_signature_options options = {.num_hashes = config->num_hashes,
                                     .num_buckets = config->num_buckets,
                                     .num_lsh = config->num_lsh,
                                     .rule = MHF_RULE_IMPORTED};
    mhf_tokenizer *tokenizer = NULL;
    mhf_bucket *ids = NULL;
    mhf_status status = read_table(source, &ids);
    if (status == MHF_OK)
        status = mhf_source_tokenizer(source, &tokenizer);
    if (status == MHF_OK) {
        status = mhf_signatures_adopt(ids, config->vocab_size, mhf_tokenizer_size(tokenizer),
                                      pad_of(config, tokenizer), &options, out);
        if (status != MHF_OK)
            status = mhf_fail_within(MHF_E_DATA, "%s: '%s'", source->path.data, table_name);
    }
    if (status == MHF_OK) {
        out->base_size = mhf_tokenizer_base_size(tokenizer);
        snprintf(out->tokenizer_sha256, sizeof out->tokenizer_sha256, "%s",
                 mhf_tokenizer_sha256(tokenizer));
    }
    mhf_tokenizer_free(tokenizer);
    free(ids);
    return status;
}
