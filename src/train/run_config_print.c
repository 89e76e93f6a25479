/* SPDX-License-Identifier: ISC */
/* The resolved configuration as YAML, and what may not differ when a run goes on. */
#include <stdlib.h>
#include <string.h>

#include "settings.h"

/* Control characters, what YAML takes for a line's end, and what it forbids. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

/* Plain where YAML can't take it for anything else, else in double quotes. */
static mhf_status print_scalar(const char *text, mhf_buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    if (*text && *text != '-' && strspn(text, plain) == strlen(text))
        return mhf_buf_add_text(out, text);
    MHF_TRY(mhf_buf_add_text(out, "\""));
    const size_t end = strlen(text);
    for (size_t i = 0; i < end;) {
        uint32_t c = 0;
        int n = mhf_utf8_decode(text + i, end - i, &c);
        n = n > 0 ? n : 1;
        if (c == '"' || c == '\\')
            MHF_TRY(mhf_buf_printf(out, "\\%c", (int)c));
        else if (needs_escape(c))
            MHF_TRY(mhf_buf_printf(out, "\\u%04x", c));
        else
            MHF_TRY(mhf_buf_add(out, text + i, (size_t)n));
        i += (size_t)n;
    }
    return mhf_buf_add_text(out, "\"");
}

static mhf_status print_value(const json_t *value, mhf_buf *out)
{
    if (json_is_string(value))
        return print_scalar(json_string_value(value), out);
    bool list = json_is_array(value);
    MHF_TRY(mhf_buf_add_text(out, list ? "[" : "{"));
    if (list) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            MHF_TRY(mhf_buf_add_text(out, i > 0 ? ", " : ""));
            MHF_TRY(print_value(json_array_get(value, i), out));
        }
    } else {
        const char *name, *separator = "";
        json_t *member;
        json_object_foreach((json_t *)value, name, member)
        {
            MHF_TRY(mhf_buf_printf(out, "%s%s: ", separator, name));
            MHF_TRY(print_value(member, out));
            separator = ", ";
        }
    }
    return mhf_buf_add_text(out, list ? "]" : "}");
}

/* A key without a value: geometry left to a preset, files not given. */
static bool is_empty(const json_t *value)
{
    return json_is_string(value) && *json_string_value(value) == 0;
}

static mhf_status print_key(const setting *s, const key *k, bool origins, const char *section,
                            mhf_buf *out)
{
    const size_t start = out->n;
    MHF_TRY(mhf_buf_printf(out, "%s%s: ", *section ? "  " : "",
                           k->name + (*section ? strlen(section) + 1 : 0)));
    MHF_TRY(print_value(s->value, out));
    if (origins) {
        int pad = 44 - (int)(out->n - start);
        MHF_TRY(
            mhf_buf_printf(out, "%*s # %s (%s)", pad > 0 ? pad : 0, "", s->origin.data, k->text));
    }
    return mhf_buf_add_text(out, "\n");
}

static const int32_t *size_of(const mhf_run_config *config, const char *name)
{
    for (int i = 0; i < run_config_n_sizes; i++)
        if (strcmp(run_config_sizes[i].name, name) == 0)
            return (const int32_t *)((const char *)&config->model + run_config_sizes[i].offset);
    return NULL;
}

/* Whether the model that `init` names tells it. */
static bool is_brought(const mhf_run_config *config, const char *name)
{
    const bool geometry = strncmp(name, "model.", 6) == 0 && strcmp(name, "model.preset") != 0 &&
                          strcmp(name, "model.add_layers") != 0;
    return config->init && !settings_given(config->settings, name) &&
           (geometry || strncmp(name, "signatures.", 11) == 0 || strcmp(name, "tokenizer") == 0 ||
            strcmp(name, "train.objective") == 0);
}

static const char *word(bool yes)
{
    return yes ? "true" : "false";
}

/* What a key comes to that is not given. */
static mhf_status print_resolved(const mhf_run_config *config, const char *name, mhf_buf *out)
{
    const mhf_config *m = &config->model;
    const int32_t *size = size_of(config, name);
    if (size)
        return mhf_buf_printf(out, "%d", *size);
    if (strcmp(name, "model.head") == 0)
        return mhf_buf_add_text(out, m->head == MHF_HEAD_MHF ? "mhf" : "standard");
    if (strcmp(name, "model.rms_norm_eps") == 0)
        return mhf_buf_printf(out, "%.15g", m->rms_norm_eps);
    if (strcmp(name, "model.rope_theta") == 0)
        return mhf_buf_printf(out, "%.15g", m->rope_theta);
    if (strcmp(name, "model.tie_word_embeddings") == 0)
        return mhf_buf_add_text(out, word(m->tie_word_embeddings));
    if (strcmp(name, "model.lsh_only_embed") == 0)
        return mhf_buf_add_text(out, word(m->lsh_only_embed));
    if (strcmp(name, "model.mask_documents") == 0)
        return mhf_buf_add_text(out, word(m->mask_documents));
    if (strcmp(name, "signatures.rule") == 0)
        return mhf_buf_add_text(out, mhf_signature_rule_name(config->rule));
    if (strcmp(name, "signatures.hash_seed") == 0)
        return mhf_buf_printf(out, "%u", config->hash_seed);
    if (strcmp(name, "train.objective") == 0)
        return mhf_buf_add_text(out,
                                config->objective == MHF_VOCABULARY ? "vocabulary" : "product");
    return mhf_buf_add_text(out, is_brought(config, name) ? "its own" : "none");
}

/* As a comment, since giving it would be another configuration. */
static mhf_status print_left_key(const mhf_run_config *config, const key *k, const char *section,
                                 mhf_buf *out)
{
    const size_t start = out->n;
    MHF_TRY(mhf_buf_printf(out, "%s# %s: ", *section ? "  " : "",
                           k->name + (*section ? strlen(section) + 1 : 0)));
    MHF_TRY(print_resolved(config, k->name, out));
    const int pad = 44 - (int)(out->n - start);
    MHF_TRY(mhf_buf_printf(out, "%*s # ", pad > 0 ? pad : 0, ""));
    if (is_brought(config, k->name)) {
        MHF_TRY(mhf_buf_add_text(out, "the model in "));
        MHF_TRY(print_scalar(config->init, out));
    } else {
        MHF_TRY(
            mhf_buf_add_text(out, size_of(config, k->name) ? "preset or tokenizer" : "default"));
    }
    return mhf_buf_printf(out, " (%s)\n", k->text);
}

mhf_status mhf_run_config_print(const mhf_run_config *config, bool origins, mhf_buf *out)
{
    char section[64] = "";
    for (int i = 0; i < settings_n_keys; i++) {
        const setting *s = &config->settings->values[i];
        const char *dot = strchr(settings_keys[i].name, '.');
        const bool left = is_empty(s->value) || is_brought(config, settings_keys[i].name);
        if (left && !origins)
            continue;
        size_t n = dot ? (size_t)(dot - settings_keys[i].name) : 0;
        if (strlen(section) != n || strncmp(section, settings_keys[i].name, n) != 0) {
            snprintf(section, sizeof section, "%.*s", (int)n, settings_keys[i].name);
            if (n > 0)
                MHF_TRY(mhf_buf_printf(out, "%s:\n", section));
        }
        MHF_TRY(left ? print_left_key(config, &settings_keys[i], section, out)
                     : print_key(s, &settings_keys[i], origins, section, out));
    }
    return MHF_OK;
}

/* Numbers are compared as numbers: 1e-3 is 0.001. */
static bool is_equal(const key *k, const json_t *a, const json_t *b)
{
    bool number = k->type == KEY_INT || k->type == KEY_REAL;
    if (number && !is_empty(a) && !is_empty(b))
        return strtod(json_string_value(a), NULL) == strtod(json_string_value(b), NULL);
    return json_equal(a, b);
}

mhf_status mhf_run_config_same(const mhf_run_config *stored, const mhf_run_config *now)
{
    for (int i = 0; i < settings_n_keys; i++) {
        const json_t *before = stored->settings->values[i].value;
        const json_t *after = now->settings->values[i].value;
        if (settings_keys[i].may_change || is_equal(&settings_keys[i], before, after))
            continue;
        /* Sizes given beside a checkpoint are compared with the model's own, whoever told them. */
        if (size_of(now, settings_keys[i].name) && (is_empty(before) || is_empty(after)))
            continue;
        mhf_buf was = {0}, is = {0};
        mhf_status status = print_value(before, &was);
        if (status == MHF_OK)
            status = print_value(after, &is);
        if (status == MHF_OK)
            status =
                mhf_fail(MHF_E_MISMATCH,
                         "the run was started with %s: %s and is now asked for %s: a run goes on "
                         "as it began (--resume none with another run folder starts anew)",
                         settings_keys[i].name, was.data, is.data);
        mhf_buf_free(&was);
        mhf_buf_free(&is);
        return status;
    }
    if (now->steps < stored->steps)
        return mhf_fail(
            MHF_E_MISMATCH,
            "the run was started with train.steps: %lld and is now asked for %lld: steps may "
            "only grow",
            (long long)stored->steps, (long long)now->steps);
    return MHF_OK;
}
