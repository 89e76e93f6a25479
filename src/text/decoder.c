/* SPDX-License-Identifier: ISC */
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "passage.h"
#include "unicode.h"

static mhf_decoder *last(mhf_decoders *out)
{
    return &out->list[out->n - 1];
}

static mhf_status parse_replace(const json_t *json, const char *name, mhf_decoder *out)
{
    const char *content;
    MHF_TRY(mhf_pattern_parse(json, name, &out->pattern));
    if (!out->pattern.code && out->pattern.n == 0)
        return mhf_fail(MHF_E_DATA, "%s: decoder Replace with an empty pattern", name);
    MHF_TRY(mhf_json_string(json, "content", name, &content, &out->n_content));
    MHF_TRY(mhf_new(&out->content, (int64_t)out->n_content + 1, 1, "a decoder"));
    memcpy(out->content, content, out->n_content);
    return MHF_OK;
}

static mhf_status parse_strip(const json_t *json, const char *name, mhf_decoder *out)
{
    const char *content;
    size_t n;
    MHF_TRY(mhf_json_string(json, "content", name, &content, &n));
    if (n == 0 || mhf_utf8_decode(content, n, &out->character) != (int)n)
        return mhf_fail(MHF_E_DATA, "%s: decoder Strip of '%s', expected one character", name,
                        content);
    MHF_TRY(mhf_json_int(json, "start", name, 0, INT32_MAX, &out->start));
    return mhf_json_int(json, "stop", name, 0, INT32_MAX, &out->stop);
}

static mhf_status parse_sequence(const json_t *json, const char *name, mhf_decoders *out)
{
    const json_t *list = json_object_get(json, "decoders");
    if (!json_is_array(list))
        return mhf_fail(MHF_E_DATA, "%s: decoder Sequence without a list 'decoders'", name);
    for (size_t i = 0; i < json_array_size(list); i++)
        MHF_TRY(mhf_decoders_parse(json_array_get(list, i), name, out));
    return MHF_OK;
}

mhf_status mhf_decoders_parse(const json_t *json, const char *name, mhf_decoders *out)
{
    static const char *const names[] = {"ByteLevel",    "Metaspace", "Replace",
                                        "ByteFallback", "Fuse",      "Strip"};
    const char *type;
    bool split;
    if (!json || json_is_null(json))
        return MHF_OK;
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: a decoder that is not an object", name);
    MHF_TRY(mhf_json_string(json, "type", name, &type, NULL));
    if (strcmp(type, "Sequence") == 0)
        return parse_sequence(json, name, out);
    size_t i = 0;
    while (i < sizeof names / sizeof names[0] && strcmp(names[i], type) != 0)
        i++;
    if (i == sizeof names / sizeof names[0])
        return mhf_fail(MHF_E_DATA, "%s: decoder '%s' is not built", name, type);
    MHF_TRY(mhf_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list, "decoders"));
    out->list[out->n++] = (mhf_decoder){.kind = (mhf_decoder_kind)i};
    switch (last(out)->kind) {
    case MHF_DECODE_REPLACE:
        return parse_replace(json, name, last(out));
    case MHF_DECODE_STRIP:
        return parse_strip(json, name, last(out));
    case MHF_DECODE_METASPACE:
        return mhf_metaspace_parse(json, name, &last(out)->character, &last(out)->scheme, &split);
    default:
        return MHF_OK;
    }
}

void mhf_decoders_free(mhf_decoders *decoders)
{
    for (int64_t i = 0; i < decoders->n; i++) {
        mhf_pattern_free(&decoders->list[i].pattern);
        free(decoders->list[i].content);
    }
    free(decoders->list);
    *decoders = (mhf_decoders){0};
}

static mhf_status join(const mhf_strings *tokens, const char *between, mhf_buf *out)
{
    for (int64_t i = 0; i < tokens->n; i++) {
        size_t n;
        const char *text = mhf_strings_get(tokens, i, &n);
        if (i > 0)
            MHF_TRY(mhf_buf_add_text(out, between));
        MHF_TRY(mhf_buf_add(out, text, n));
    }
    return MHF_OK;
}

mhf_status mhf_decoders_apply(const mhf_decoders *decoders, mhf_strings *tokens, mhf_buf *out)
{
    mhf_matcher matcher = {0};
    mhf_strings next = {0};
    mhf_status status = MHF_OK;
    next.most = tokens->most = mhf_text_limit(tokens->bytes.n);
    for (int64_t i = 0; i < decoders->n && status == MHF_OK; i++) {
        mhf_strings_clear(&next);
        status = mhf_decoder_step(&decoders->list[i], &matcher, tokens, &next);
        mhf_strings swap = *tokens;
        *tokens = next;
        next = swap;
    }
    if (status == MHF_OK)
        status = join(tokens, decoders->n ? "" : " ", out);
    mhf_strings_free(&next);
    mhf_matcher_free(&matcher);
    return status;
}

/* Bytes of a piece in the byte-level alphabet, or -1 when it isn't all of it. */
static int64_t byte_level_count(const char *text, size_t n)
{
    int64_t count = 0;
    for (size_t at = 0; at < n; count++) {
        uint32_t c;
        at += (size_t)mhf_utf8_next(text + at, &c);
        if (mhf_char_byte(c) < 0)
            return -1;
    }
    return count;
}

static mhf_status count_steps(const mhf_decoders *decoders, mhf_matcher *matcher,
                              mhf_strings tokens[2], int64_t *count)
{
    int now = 0;
    bool fused = false;
    *count = -1;
    for (int64_t i = 0; i < decoders->n && *count < 0; i++) {
        const mhf_decoder *step = &decoders->list[i];
        size_t n;
        const char *text = mhf_strings_get(&tokens[now], tokens[now].n - 1, &n);
        if (step->kind == MHF_DECODE_BYTE_FALLBACK && mhf_byte_token(text, n) >= 0)
            *count = 1;
        else if (step->kind == MHF_DECODE_BYTE_LEVEL)
            *count = byte_level_count(text, n);
        fused = fused || step->kind == MHF_DECODE_FUSE;
        if (step->kind == MHF_DECODE_BYTE_LEVEL || step->kind == MHF_DECODE_BYTE_FALLBACK ||
            step->kind == MHF_DECODE_FUSE || (fused && step->kind == MHF_DECODE_STRIP))
            continue; /* a token alone passes through, or what it loses depends on its place */
        mhf_strings_clear(&tokens[!now]);
        MHF_TRY(mhf_decoder_step(step, matcher, &tokens[now], &tokens[!now]));
        now = !now;
    }
    if (*count < 0) {
        size_t n;
        mhf_strings_get(&tokens[now], tokens[now].n - 1, &n);
        *count = (int64_t)n;
    }
    return MHF_OK;
}

mhf_status mhf_decoders_count(const mhf_decoders *decoders, mhf_matcher *matcher, const char *token,
                              size_t n, int32_t *bytes)
{
    mhf_strings tokens[2] = {{.most = mhf_text_limit(n)}, {.most = mhf_text_limit(n)}};
    int64_t count = 0;
    /* an empty token in front: this one is then not the text's first */
    mhf_status status = mhf_strings_add(&tokens[0], "", 0);
    if (status == MHF_OK)
        status = mhf_strings_add(&tokens[0], token, n);
    if (status == MHF_OK)
        status = count_steps(decoders, matcher, tokens, &count);
    if (status == MHF_OK)
        status = mhf_narrow(count, "the bytes of a token", bytes);
    mhf_strings_free(&tokens[0]);
    mhf_strings_free(&tokens[1]);
    return status;
}
