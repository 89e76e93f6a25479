/* SPDX-License-Identifier: ISC */
#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* Larger files than any tokenizer's are refused before they are read. */
static const size_t file_limit = (size_t)1 << 30;

/* Both fit what a text becomes to a length; here texts are encoded whole. */
static mhf_status read_limits(mhf_tokenizer *t, const json_t *json, const char *name)
{
    static const char *const keys[] = {"truncation", "padding"};
    bool *const present[] = {&t->truncates, &t->pads};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(json, keys[i]);
        if (value && !json_is_null(value) && !json_is_object(value))
            return mhf_fail(MHF_E_DATA, "%s: key '%s' is neither an object nor null", name,
                            keys[i]);
        *present[i] = json_is_object(value);
    }
    return MHF_OK;
}

static void tell_limits(const mhf_tokenizer *t, const char *name)
{
    if (t->truncates || t->pads)
        mhf_log(MHF_LOG_INFO, "%s: %s not applied: texts are encoded whole", name,
                !t->pads        ? "'truncation' is"
                : !t->truncates ? "'padding' is"
                                : "'truncation' and 'padding' are");
}

static mhf_status check_version(const json_t *json, const char *name)
{
    const char *version = "1.0";
    MHF_TRY(mhf_json_string_or(json, "version", name, &version, NULL));
    if (strcmp(version, "1.0") != 0)
        return mhf_fail(MHF_E_DATA, "%s: version '%s' is not built, expected '1.0'", name, version);
    return MHF_OK;
}

/* Facts of each token, once all are known. */
static mhf_status fill_tables(mhf_tokenizer *t)
{
    mhf_matcher matcher = {0};
    mhf_status status = MHF_OK;
    MHF_TRY(mhf_new(&t->special, t->pieces.n, sizeof *t->special, "a vocabulary"));
    MHF_TRY(mhf_new(&t->bytes, t->pieces.n, sizeof *t->bytes, "a vocabulary"));
    for (int64_t i = 0; i < t->added.n; i++)
        t->special[t->added.list[i].id] = t->added.list[i].special;
    for (mhf_token id = 0; id < t->pieces.n && status == MHF_OK; id++) {
        size_t n;
        const char *piece = mhf_pieces_get(&t->pieces, id, &n);
        if (!t->special[id])
            status = mhf_decoders_count(&t->decoders, &matcher, piece, n, &t->bytes[id]);
    }
    mhf_matcher_free(&matcher);
    return status;
}

static mhf_status parse_pipeline(mhf_tokenizer *t, const json_t *json, const char *name)
{
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: not a JSON object", name);
    MHF_TRY(check_version(json, name));
    MHF_TRY(read_limits(t, json, name));
    MHF_TRY(mhf_normalizers_parse(json_object_get(json, "normalizer"), name, &t->normalizers));
    MHF_TRY(
        mhf_pretokenizers_parse(json_object_get(json, "pre_tokenizer"), name, &t->pretokenizers));
    MHF_TRY(mhf_bpe_parse(json_object_get(json, "model"), name, t->pretokenizers.bytes_last,
                          &t->pieces, &t->bpe));
    MHF_TRY(mhf_added_parse(json_object_get(json, "added_tokens"), name, &t->normalizers,
                            &t->pieces, &t->added));
    MHF_TRY(
        mhf_template_parse(json_object_get(json, "post_processor"), name, t->pieces.n, &t->around));
    MHF_TRY(mhf_decoders_parse(json_object_get(json, "decoder"), name, &t->decoders));
    return fill_tables(t);
}

/* A special token of tokenizer_config.json: a string, or an object with "content". */
static mhf_status config_token(const mhf_tokenizer *t, const json_t *config, const char *key,
                               const char *name, mhf_token *out)
{
    const json_t *value = json_object_get(config, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (!value || json_is_null(value))
        return MHF_OK;
    if (!json_is_string(value))
        return mhf_fail(MHF_E_DATA, "%s: key '%s' is not a string or an object with 'content'",
                        name, key);
    *out = mhf_pieces_find(&t->pieces, json_string_value(value), json_string_length(value));
    if (*out < 0)
        return mhf_fail(MHF_E_DATA, "%s: %s '%s' is not a token of tokenizer.json", name, key,
                        json_string_value(value));
    return MHF_OK;
}

static mhf_status read_config(mhf_tokenizer *t, const char *name)
{
    json_error_t error;
    /* model_max_length is often 1e30 written out, too large for an integer: only the names of
     * tokens are read here, and the bytes are carried on as they are */
    json_t *config =
        json_loadb(t->config.data, t->config.n,
                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    mhf_buf label = {0};
    mhf_status status = mhf_buf_printf(&label, "%s: tokenizer_config.json", name);
    if (status == MHF_OK && !json_is_object(config))
        status = mhf_fail(MHF_E_DATA, "%s: not a valid JSON object: %s at line %d", label.data,
                          config ? "another value" : error.text, config ? 1 : error.line);
    if (status == MHF_OK)
        status = config_token(t, config, "bos_token", label.data, &t->bos);
    if (status == MHF_OK)
        status = config_token(t, config, "eos_token", label.data, &t->eos);
    if (status == MHF_OK)
        status = config_token(t, config, "pad_token", label.data, &t->pad);
    if (status == MHF_OK)
        status = config_token(t, config, "unk_token", label.data, &t->unk);
    mhf_buf_free(&label);
    json_decref(config);
    return status;
}

static mhf_status named_token(const mhf_tokenizer *t, const char *role, const char *given,
                              const char *name, mhf_token *out)
{
    if (!given)
        return MHF_OK;
    *out = mhf_pieces_find(&t->pieces, given, strlen(given));
    if (*out < 0)
        return mhf_fail(MHF_E_USAGE, "%s: the %s token given, '%s', is not in the vocabulary", name,
                        role, given);
    return MHF_OK;
}

static mhf_status parse(mhf_tokenizer *t, const char *name, const mhf_special_names *names)
{
    json_t *json = NULL;
    mhf_status status = mhf_json_parse(t->json.data, t->json.n, name, &json);
    if (status == MHF_OK)
        status = parse_pipeline(t, json, name);
    if (status == MHF_OK)
        status = mhf_tokenizer_identify(t, json);
    json_decref(json);
    MHF_TRY(status);
    t->bos = t->eos = t->pad = t->unk = -1;
    if (t->has_config)
        MHF_TRY(read_config(t, name));
    if (t->unk < 0 && t->bpe.unk >= 0)
        t->unk = t->bpe.unk;
    if (!names)
        return MHF_OK;
    MHF_TRY(named_token(t, "BOS", names->bos, name, &t->bos));
    MHF_TRY(named_token(t, "EOS", names->eos, name, &t->eos));
    return named_token(t, "pad", names->pad, name, &t->pad);
}

mhf_status mhf_tokenizer_parse(const char *json, size_t n, const char *config, size_t n_config,
                               const char *name, const mhf_special_names *names,
                               mhf_tokenizer **out)
{
    mhf_tokenizer *t;
    *out = NULL;
    MHF_TRY(mhf_new(&t, 1, sizeof *t, "a tokenizer"));
    mhf_status status = mhf_buf_add(&t->json, json, n);
    t->has_config = config != NULL;
    if (status == MHF_OK && config)
        status = mhf_buf_add(&t->config, config, n_config);
    if (status == MHF_OK)
        status = parse(t, name, names);
    if (status != MHF_OK)
        mhf_tokenizer_free(t);
    else
        *out = t;
    return status;
}

/* json = the path of the file, config = that of tokenizer_config.json beside it. */
static mhf_status find_files(const char *path, mhf_buf *json, mhf_buf *config)
{
    if (mhf_dir_exists(path)) {
        MHF_TRY(mhf_path_join(path, "tokenizer.json", json));
        return mhf_path_join(path, "tokenizer_config.json", config);
    }
    const char *slash = strrchr(path, '/');
    MHF_TRY(mhf_buf_add_text(json, path));
    MHF_TRY(mhf_buf_add(config, path, slash ? (size_t)(slash + 1 - path) : 0));
    return mhf_buf_add_text(config, "tokenizer_config.json");
}

mhf_status mhf_tokenizer_load(const char *path, const mhf_special_names *names, mhf_tokenizer **out)
{
    mhf_buf json_path = {0}, config_path = {0}, json = {0}, config = {0};
    *out = NULL;
    mhf_status status = find_files(path, &json_path, &config_path);
    if (status == MHF_OK)
        status = mhf_file_read(json_path.data, file_limit, &json);
    bool has_config = status == MHF_OK && mhf_file_exists(config_path.data);
    if (has_config)
        status = mhf_file_read(config_path.data, file_limit, &config);
    if (status == MHF_OK)
        status = mhf_tokenizer_parse(json.data ? json.data : "", json.n,
                                     !has_config   ? NULL
                                     : config.data ? config.data
                                                   : "",
                                     config.n, json_path.data, names, out);
    if (status == MHF_OK)
        tell_limits(*out, json_path.data);
    mhf_buf_free(&json_path);
    mhf_buf_free(&config_path);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    return status;
}

void mhf_tokenizer_free(mhf_tokenizer *t)
{
    if (!t)
        return;
    mhf_normalizers_free(&t->normalizers);
    mhf_pretokenizers_free(&t->pretokenizers);
    mhf_bpe_free(&t->bpe);
    mhf_added_free(&t->added);
    mhf_template_free(&t->around);
    mhf_decoders_free(&t->decoders);
    mhf_pieces_free(&t->pieces);
    free(t->special);
    free(t->bytes);
    mhf_buf_free(&t->json);
    mhf_buf_free(&t->config);
    free(t);
}

int32_t mhf_tokenizer_size(const mhf_tokenizer *t)
{
    return t->pieces.n;
}

int32_t mhf_tokenizer_base_size(const mhf_tokenizer *t)
{
    return t->bpe.n;
}

const char *mhf_tokenizer_piece(const mhf_tokenizer *t, mhf_token id, size_t *n)
{
    if (id < 0 || id >= t->pieces.n)
        return NULL;
    return mhf_pieces_get(&t->pieces, id, n);
}

mhf_token mhf_tokenizer_id(const mhf_tokenizer *t, const char *piece, size_t n)
{
    return mhf_pieces_find(&t->pieces, piece, n);
}

bool mhf_tokenizer_is_special(const mhf_tokenizer *t, mhf_token id)
{
    return id >= 0 && id < t->pieces.n && t->special[id];
}

int32_t mhf_tokenizer_bytes(const mhf_tokenizer *t, mhf_token id)
{
    return id >= 0 && id < t->pieces.n ? t->bytes[id] : 0;
}

mhf_token mhf_tokenizer_bos(const mhf_tokenizer *t)
{
    return t->bos;
}

mhf_token mhf_tokenizer_eos(const mhf_tokenizer *t)
{
    return t->eos;
}

mhf_token mhf_tokenizer_pad(const mhf_tokenizer *t)
{
    return t->pad;
}

mhf_token mhf_tokenizer_unk(const mhf_tokenizer *t)
{
    return t->unk;
}

const char *mhf_tokenizer_json(const mhf_tokenizer *t, size_t *n)
{
    *n = t->json.n;
    return t->json.data;
}

const char *mhf_tokenizer_config_json(const mhf_tokenizer *t, size_t *n)
{
    *n = t->config.n;
    return t->has_config ? t->config.data : NULL;
}
