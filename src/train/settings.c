/* SPDX-License-Identifier: ISC */
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY 9007199254740992.0 /* 2^53 */

/* One row a key: name, type, range, choices, default, may it change on resuming, what it is. */
const key settings_keys[] = {
    {"model.preset", KEY_CHOICE, 0, 0, "none|100m|500m|1b|3b", "none", false, "published geometry"},
    {"model.head", KEY_CHOICE, 0, 0, "mhf|standard", "mhf", false,
     "hash decoder, or softmax over V"},
    {"model.num_hashes", KEY_INT, 1, MHF_MAX_HASHES, NULL, "4", false, "H"},
    {"model.num_buckets", KEY_INT, 2, 1 << 24, NULL, "16384", false, "B of each hash"},
    {"model.num_lsh", KEY_INT, 0, MHF_MAX_HASHES, NULL, "0", false, "coordinates that are LSH"},
    {"model.add_layers", KEY_INT, 0, 4096, NULL, "0", false, "layers more than the preset's"},
    {"model.hidden_size", KEY_INT, 1, 1 << 20, NULL, "", false, "d"},
    {"model.num_hidden_layers", KEY_INT, 1, 4096, NULL, "", false, "L"},
    {"model.num_attention_heads", KEY_INT, 1, 4096, NULL, "", false, "query heads"},
    {"model.num_key_value_heads", KEY_INT, 1, 4096, NULL, "", false, "key and value heads"},
    {"model.head_dim", KEY_INT, 2, 4096, NULL, "", false, "width of a head"},
    {"model.intermediate_size", KEY_INT, 1, 1 << 22, NULL, "", false, "width of the MLP"},
    {"model.rms_norm_eps", KEY_REAL, 0, 1, NULL, "1e-6", false, "inside RMSNorm's root"},
    {"model.rope_theta", KEY_REAL, 1, 1e30, NULL, "1e6", false, "base of the rotary angles"},
    {"model.tie_word_embeddings", KEY_BOOL, 0, 0, NULL, "true", false, "head matrix = embedding"},
    {"model.bottle_neck_dim", KEY_INT, 1, 1 << 20, NULL, "64", false, "m of gate and mixers"},
    {"model.lsh_only_embed", KEY_BOOL, 0, 0, NULL, "false", false, "encoder reads LSH only"},
    {"model.max_position_embeddings", KEY_INT, 1, 1 << 24, NULL, "", false, "longest sequence"},
    {"model.vocab_size", KEY_INT, 1, 1 << 30, NULL, "", false, "V; default: the tokenizer's"},
    {"model.mask_documents", KEY_BOOL, 0, 0, NULL, "false", false, "attention stops at documents"},
    {"signatures.rule", KEY_CHOICE, 0, 0, "unique|reference", "unique", false, "of a new table"},
    {"signatures.hash_seed", KEY_INT, 0, 4294967295.0, NULL, "0", false, "added to murmur's seeds"},
    {"signatures.file", KEY_TEXT, 0, 0, NULL, "", false, "a table to take instead"},
    {"tokenizer", KEY_TEXT, 0, 0, NULL, "", false, "tokenizer.json, folder or model"},
    {"data.train", KEY_LIST, 0, 0, NULL, "", false, "token store, or [{file:, weight:}]"},
    {"data.holdout", KEY_TEXT, 0, 0, NULL, "", false, "token store to evaluate on"},
    {"data.evaluate_every", KEY_INT, 0, MANY, NULL, "500", false, "steps; 0: never"},
    {"data.block", KEY_INT, 2, 1 << 24, NULL, "512", false, "tokens of a block"},
    {"train.steps", KEY_INT, 1, MANY, NULL, "20000", true, "updates; may grow on resuming"},
    {"train.batch", KEY_INT, 1, 1 << 24, NULL, "1024", false, "blocks a step, all replicas"},
    {"train.micro_batch", KEY_INT, 1, 1 << 20, NULL, "8", false, "blocks at once"},
    {"train.lr", KEY_REAL, 0, 1e3, NULL, "1e-3", false, "peak learning rate"},
    {"train.warmup", KEY_INT, 0, MANY, NULL, "200", false, "steps of linear warm-up"},
    {"train.weight_decay", KEY_REAL, 0, 1e3, NULL, "0.1", false, "not of biases and norms"},
    {"train.clip", KEY_REAL, 0, 1e30, NULL, "1.0", false, "largest global norm; 0: none"},
    {"train.seed", KEY_INT, 0, MANY, NULL, "42", false, "of weights and data order"},
    {"train.precision", KEY_CHOICE, 0, 0, "auto|float32|bfloat16", "auto", false, "of products"},
    {"train.objective", KEY_CHOICE, 0, 0, "product|vocabulary", "product", false, "the loss"},
    {"train.loss_denominator", KEY_CHOICE, 0, 0, "exact|reference", "exact", false,
     "targets, or labels before the shift"},
    {"train.trainable", KEY_LIST, 0, 0, NULL, "all", false, "all, expansion, or [pattern, …]"},
    {"train.recompute", KEY_CHOICE, 0, 0, "none|layer", "none", false, "spare activations"},
    {"train.on_nonfinite", KEY_CHOICE, 0, 0, "stop|skip", "stop", false, "NaN in a gradient"},
    {"parallel.stages", KEY_INT, 1, 4096, NULL, "1", true, "P; replicas = ranks / P"},
    {"parallel.layers", KEY_LIST, 0, 0, NULL, "auto", true, "auto (by cost), or [5, 7]"},
    {"parallel.schedule", KEY_CHOICE, 0, 0, "1f1b|zb-h1", "1f1b", true, "of micro-batches"},
    {"parallel.head", KEY_CHOICE, 0, 0, "last|tokens", "last", true, "which stages run the head"},
    {"parallel.head_shards", KEY_INT_OR_AUTO, 1, 4096, NULL, "auto", true, "with head: tokens"},
    {"parallel.reduction_shards", KEY_INT_OR_AUTO, 1, 4096, NULL, "auto", true, "R"},
    {"checkpoint.every", KEY_INT, 0, MANY, NULL, "500", true, "steps; 0: at the end alone"},
    {"checkpoint.minutes", KEY_REAL, 0, 1e9, NULL, "0", true, "since the last; 0: don't"},
    {"checkpoint.keep", KEY_INT, 1, 1 << 20, NULL, "2", true, "newest to keep"},
    {"init", KEY_TEXT, 0, 0, NULL, "none", false, "none, or a model to start from"},
    {"run", KEY_TEXT, 0, 0, NULL, "", true, "run folder"},
};
const int settings_n_keys = sizeof settings_keys / sizeof *settings_keys;

int settings_find(const char *name)
{
    for (int i = 0; i < settings_n_keys; i++)
        if (strcmp(settings_keys[i].name, name) == 0)
            return i;
    return -1;
}

const char *settings_text(const mhf_settings *settings, const char *name)
{
    const json_t *value = settings->values[settings_find(name)].value;
    return json_is_string(value) ? json_string_value(value) : "";
}

bool settings_given(const mhf_settings *settings, const char *name)
{
    return strcmp(settings->values[settings_find(name)].origin.data, "default") != 0;
}

const char *settings_where(const mhf_settings *settings, const char *name, mhf_buf *out)
{
    mhf_buf_clear(out);
    if (mhf_buf_printf(out, "%s: key %s", settings->values[settings_find(name)].origin.data,
                       name) != MHF_OK)
        return name;
    return out->data;
}

static bool is_number(const key *k, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    bool whole = k->type == KEY_REAL || value == floor(value);
    return *text && *end == 0 && isfinite(value) && whole && value >= k->low && value <= k->high;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *c = choices; n > 0 && c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (strncmp(c, text, n) == 0 && (c[n] == '|' || c[n] == 0))
            return true;
    return false;
}

static mhf_status check_scalar(const key *k, const char *text, const char *origin)
{
    switch (k->type) {
    case KEY_INT:
    case KEY_REAL:
        if (is_number(k, text))
            return MHF_OK;
        return mhf_fail(MHF_E_CONFIG, "%s: key %s is '%s', expected %s from %.17g to %.17g", origin,
                        k->name, text, k->type == KEY_INT ? "a whole number" : "a number", k->low,
                        k->high);
    case KEY_INT_OR_AUTO:
        if (strcmp(text, "auto") == 0 || is_number(k, text))
            return MHF_OK;
        return mhf_fail(MHF_E_CONFIG,
                        "%s: key %s is '%s', expected auto or a whole number from %g to %g", origin,
                        k->name, text, k->low, k->high);
    case KEY_BOOL:
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
            return MHF_OK;
        return mhf_fail(MHF_E_CONFIG, "%s: key %s is '%s', expected true or false", origin, k->name,
                        text);
    case KEY_CHOICE:
        if (is_choice(k->choices, text))
            return MHF_OK;
        return mhf_fail(MHF_E_CONFIG, "%s: key %s is '%s', expected %s", origin, k->name, text,
                        k->choices);
    case KEY_TEXT:
    case KEY_LIST:
        return MHF_OK;
    }
    return MHF_OK;
}

mhf_status settings_put(mhf_settings *settings, const char *name, json_t *value, const char *origin)
{
    int i = settings_find(name);
    mhf_status status = MHF_OK;
    if (i < 0)
        status = mhf_fail(MHF_E_CONFIG, "%s: there is no key %s", origin, name);
    else if (json_is_string(value))
        status = check_scalar(&settings_keys[i], json_string_value(value), origin);
    else if (settings_keys[i].type != KEY_LIST || !json_is_array(value))
        status = mhf_fail(MHF_E_CONFIG, "%s: key %s is %s, expected one value", origin, name,
                          json_is_array(value) ? "a list" : "a mapping");
    if (status != MHF_OK) {
        json_decref(value);
        return status;
    }
    setting *s = &settings->values[i];
    json_decref(s->value);
    s->value = value;
    mhf_buf_clear(&s->origin);
    return mhf_buf_add_text(&s->origin, origin);
}

mhf_status settings_new(mhf_settings **out)
{
    MHF_TRY(mhf_new(out, 1, sizeof **out, "settings"));
    mhf_status status =
        mhf_new(&(*out)->values, settings_n_keys, sizeof *(*out)->values, "settings");
    for (int i = 0; status == MHF_OK && i < settings_n_keys; i++) {
        setting *s = &(*out)->values[i];
        s->value = json_string(settings_keys[i].start);
        status = mhf_buf_add_text(&s->origin, "default");
    }
    if (status != MHF_OK)
        settings_free(*out);
    return status;
}

void settings_free(mhf_settings *settings)
{
    if (!settings)
        return;
    for (int i = 0; settings->values && i < settings_n_keys; i++) {
        json_decref(settings->values[i].value);
        mhf_buf_free(&settings->values[i].origin);
    }
    free(settings->values);
    free(settings);
}
