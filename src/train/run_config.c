/* SPDX-License-Identifier: ISC */
/* Settings to typed configuration. */
#include <stdlib.h>
#include <string.h>

#include "settings.h"

/* The settings were checked when they were put, so these don't fail. */
static int64_t as_int(const mhf_settings *s, const char *name)
{
    return (int64_t)strtod(settings_text(s, name), NULL);
}

static double as_real(const mhf_settings *s, const char *name)
{
    return strtod(settings_text(s, name), NULL);
}

static bool is(const mhf_settings *s, const char *name, const char *text)
{
    return strcmp(settings_text(s, name), text) == 0;
}

/* NULL for "" and "none". */
static const char *as_path(const mhf_settings *s, const char *name)
{
    const char *text = settings_text(s, name);
    return *text == 0 || strcmp(text, "none") == 0 ? NULL : text;
}

const size_key run_config_sizes[] = {
    {"model.hidden_size", offsetof(mhf_config, hidden_size), false, true},
    {"model.num_hidden_layers", offsetof(mhf_config, num_hidden_layers), false, true},
    {"model.num_attention_heads", offsetof(mhf_config, num_attention_heads), false, true},
    {"model.num_key_value_heads", offsetof(mhf_config, num_key_value_heads), false, true},
    {"model.head_dim", offsetof(mhf_config, head_dim), false, true},
    {"model.intermediate_size", offsetof(mhf_config, intermediate_size), false, true},
    {"model.max_position_embeddings", offsetof(mhf_config, max_position_embeddings), false, false},
    {"model.vocab_size", offsetof(mhf_config, vocab_size), false, false},
    {"model.bottle_neck_dim", offsetof(mhf_config, bottle_neck_dim), false, false},
    {"model.num_hashes", offsetof(mhf_config, num_hashes), true, false},
    {"model.num_buckets", offsetof(mhf_config, num_buckets), true, false},
    {"model.num_lsh", offsetof(mhf_config, num_lsh), true, false},
};
const int run_config_n_sizes = sizeof run_config_sizes / sizeof *run_config_sizes;

static void set_sizes(const mhf_settings *s, mhf_config *c)
{
    for (int i = 0; i < run_config_n_sizes; i++) {
        const size_key *size = &run_config_sizes[i];
        if (!*settings_text(s, size->name) || (size->hashed && c->head == MHF_HEAD_STANDARD))
            continue;
        int32_t value = (int32_t)as_int(s, size->name);
        memcpy((char *)c + size->offset, &value, sizeof value);
    }
}

static mhf_status fill_model(const mhf_settings *s, mhf_config *c)
{
    *c = (mhf_config){.head = is(s, "model.head", "mhf") ? MHF_HEAD_MHF : MHF_HEAD_STANDARD,
                      .max_position_embeddings = 32768,
                      .bos_token_id = -1,
                      .eos_token_id = -1,
                      .pad_token_id = -1};
    if (!is(s, "model.preset", "none"))
        MHF_TRY(mhf_config_preset(settings_text(s, "model.preset"), c));
    set_sizes(s, c);
    c->num_hidden_layers += c->num_hidden_layers > 0 ? (int32_t)as_int(s, "model.add_layers") : 0;
    c->rms_norm_eps = as_real(s, "model.rms_norm_eps");
    c->rope_theta = as_real(s, "model.rope_theta");
    c->tie_word_embeddings = is(s, "model.tie_word_embeddings", "true");
    c->mask_documents = is(s, "model.mask_documents", "true");
    if (c->head == MHF_HEAD_STANDARD)
        return MHF_OK;
    c->lsh_only_embed = is(s, "model.lsh_only_embed", "true");
    return MHF_OK;
}

static mhf_status fail_list(const mhf_settings *s, const char *name, const char *expected)
{
    mhf_buf where = {0};
    mhf_status status =
        mhf_fail(MHF_E_CONFIG, "%s: expected %s", settings_where(s, name, &where), expected);
    mhf_buf_free(&where);
    return status;
}

/* A text of one character or more. */
static bool is_word(const json_t *value)
{
    return json_is_string(value) && *json_string_value(value);
}

static mhf_status fill_data_files(const mhf_settings *s, mhf_run_config *c)
{
    const char *expected = "a file, or a list of {file:, weight:} with weights above 0";
    const json_t *value = s->values[settings_find("data.train")].value;
    size_t n = json_is_array(value) ? json_array_size(value) : *settings_text(s, "data.train") != 0;
    MHF_TRY(mhf_new(&c->train_files, (int64_t)n, sizeof *c->train_files, "data files"));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        const json_t *file = json_is_object(item) ? json_object_get(item, "file") : item;
        const json_t *weight = json_object_get(item, "weight");
        if (!is_word(file) || (weight && !json_is_string(weight)) ||
            (json_is_object(item) && json_object_size(item) != 1 + (weight != NULL)))
            return fail_list(s, "data.train", expected);
        char *end = "";
        double w = weight ? strtod(json_string_value(weight), &end) : 1.0;
        if (*end != 0 || !(w > 0 && w < 1e9))
            return fail_list(s, "data.train", expected);
        c->train_files[c->n_train_files++] = (mhf_data_file){json_string_value(file), w};
    }
    return MHF_OK;
}

static mhf_status fill_trainable(const mhf_settings *s, mhf_run_config *c)
{
    const json_t *value = s->values[settings_find("train.trainable")].value;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    MHF_TRY(mhf_new(&c->trainable, (int64_t)n, sizeof *c->trainable, "patterns"));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        if (!is_word(item))
            return fail_list(s, "train.trainable", "all, expansion, or a list of patterns");
        c->trainable[c->n_trainable++] = json_string_value(item);
    }
    return n > 0 ? MHF_OK
                 : fail_list(s, "train.trainable", "all, expansion, or a list of patterns");
}

static mhf_status fill_layers(const mhf_settings *s, mhf_run_config *c)
{
    const char *expected = "auto, or a list of a number of layers for each stage";
    const json_t *value = s->values[settings_find("parallel.layers")].value;
    if (!json_is_array(value))
        return is(s, "parallel.layers", "auto") ? MHF_OK
                                                : fail_list(s, "parallel.layers", expected);
    if (json_array_size(value) != (size_t)c->stages)
        return fail_list(s, "parallel.layers", expected);
    MHF_TRY(mhf_new(&c->layers, c->stages, sizeof *c->layers, "layers"));
    for (int i = 0; i < c->stages; i++) {
        const json_t *item = json_array_get(value, (size_t)i);
        char *end = "x";
        long layers = is_word(item) ? strtol(json_string_value(item), &end, 10) : 0;
        if (*end != 0 || layers < 0 || layers > 4096)
            return fail_list(s, "parallel.layers", expected);
        c->layers[c->n_layers++] = (int32_t)layers;
    }
    return MHF_OK;
}

/* Values that are known, but not built. */
static mhf_status check_built(const mhf_settings *s)
{
    static const char *const absent[][3] = {{"train.precision", "bfloat16", "auto or float32"},
                                            {"parallel.schedule", "zb-h1", "1f1b"},
                                            {"parallel.head", "tokens", "last"}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (is(s, absent[i][0], absent[i][1]))
            return mhf_fail(MHF_E_CONFIG, "%s is %s, which this build does not have: expected %s",
                            absent[i][0], absent[i][1], absent[i][2]);
    if (!is(s, "parallel.head_shards", "auto"))
        return mhf_fail(MHF_E_CONFIG,
                        "parallel.head_shards is %s, expected auto: it goes with "
                        "head: tokens, which this build does not have",
                        settings_text(s, "parallel.head_shards"));
    return MHF_OK;
}

static mhf_status check_together(const mhf_run_config *c)
{
    if (c->warmup > c->steps)
        return mhf_fail(MHF_E_CONFIG, "train.warmup is %lld, expected at most train.steps %lld",
                        (long long)c->warmup, (long long)c->steps);
    if (c->block > c->model.max_position_embeddings)
        return mhf_fail(MHF_E_CONFIG,
                        "data.block is %lld, expected at most model.max_position_embeddings %d",
                        (long long)c->block, c->model.max_position_embeddings);
    return check_built(c->settings);
}

static mhf_status fill(mhf_run_config *c)
{
    const mhf_settings *s = c->settings;
    MHF_TRY(fill_model(s, &c->model));
    MHF_TRY(mhf_signature_rule_parse(settings_text(s, "signatures.rule"), &c->rule));
    c->hash_seed = (uint32_t)as_int(s, "signatures.hash_seed");
    c->signatures_file = as_path(s, "signatures.file");
    c->tokenizer = as_path(s, "tokenizer");
    c->init = as_path(s, "init");
    c->run = as_path(s, "run");
    c->holdout = as_path(s, "data.holdout");
    c->evaluate_every = as_int(s, "data.evaluate_every");
    c->block = as_int(s, "data.block");
    c->steps = as_int(s, "train.steps");
    c->batch = as_int(s, "train.batch");
    c->micro_batch = as_int(s, "train.micro_batch");
    c->warmup = as_int(s, "train.warmup");
    c->lr = as_real(s, "train.lr");
    c->weight_decay = as_real(s, "train.weight_decay");
    c->clip = as_real(s, "train.clip");
    c->seed = (uint64_t)as_int(s, "train.seed");
    c->objective = is(s, "train.objective", "vocabulary") ? MHF_VOCABULARY : MHF_PRODUCT;
    c->reference_denominator = is(s, "train.loss_denominator", "reference");
    c->recompute = is(s, "train.recompute", "layer");
    c->skip_nonfinite = is(s, "train.on_nonfinite", "skip");
    c->stages = (int)as_int(s, "parallel.stages");
    c->reduction_shards = is(s, "parallel.reduction_shards", "auto")
                              ? 0
                              : (int32_t)as_int(s, "parallel.reduction_shards");
    c->checkpoint_every = as_int(s, "checkpoint.every");
    c->checkpoint_keep = as_int(s, "checkpoint.keep");
    c->checkpoint_minutes = as_real(s, "checkpoint.minutes");
    if (c->micro_batch > c->batch)
        c->micro_batch = c->batch;
    MHF_TRY(fill_data_files(s, c));
    MHF_TRY(fill_trainable(s, c));
    MHF_TRY(fill_layers(s, c));
    return check_together(c);
}

mhf_status mhf_run_config_check_model(const mhf_run_config *config)
{
    const mhf_settings *s = config->settings;
    const bool brought = !is(s, "model.preset", "none") || config->init;
    for (int i = 0; i < run_config_n_sizes && !brought; i++)
        if (run_config_sizes[i].required && !*settings_text(s, run_config_sizes[i].name))
            return mhf_fail(MHF_E_CONFIG,
                            "%s is not given, nor a model.preset or an init that brings it",
                            run_config_sizes[i].name);
    return mhf_config_check(&config->model);
}

mhf_status mhf_run_config_parse(const char *yaml, size_t n, const char *name, mhf_run_config *out)
{
    *out = (mhf_run_config){0};
    MHF_TRY(settings_new(&out->settings));
    mhf_status status = settings_parse_yaml(out->settings, yaml, n, name);
    if (status == MHF_OK)
        status = fill(out);
    if (status != MHF_OK)
        mhf_run_config_free(out);
    return status;
}

mhf_status mhf_run_config_load(const char *path, const char *const *set, int32_t n_set,
                               mhf_run_config *out)
{
    mhf_buf text = {0};
    *out = (mhf_run_config){0};
    mhf_status status = settings_new(&out->settings);
    if (status == MHF_OK && path)
        status = mhf_file_read(path, 1 << 20, &text);
    if (status == MHF_OK && path)
        status = settings_parse_yaml(out->settings, text.data, text.n, path);
    for (int32_t i = 0; status == MHF_OK && i < n_set; i++)
        status = settings_parse_set(out->settings, set[i]);
    if (status == MHF_OK)
        status = fill(out);
    mhf_buf_free(&text);
    if (status != MHF_OK)
        mhf_run_config_free(out);
    return status;
}

void mhf_run_config_free(mhf_run_config *config)
{
    settings_free(config->settings);
    free(config->train_files);
    free(config->trainable);
    free(config->layers);
    *config = (mhf_run_config){0};
}
