/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "decoder.h"
#include "unicode.h"

mhf_status mhf_strings_end(mhf_strings *strings)
{
    MHF_TRY(mhf_grow(&strings->ends, &strings->capacity, strings->n + 1, sizeof *strings->ends,
                     "tokens"));
    strings->ends[strings->n++] = strings->bytes.n;
    return MHF_OK;
}

mhf_status mhf_strings_add(mhf_strings *strings, const char *text, size_t n)
{
    MHF_TRY(mhf_buf_add(&strings->bytes, text, n));
    return mhf_strings_end(strings);
}

const char *mhf_strings_get(const mhf_strings *strings, int64_t i, size_t *n)
{
    size_t begin = i > 0 ? strings->ends[i - 1] : 0;
    *n = strings->ends[i] - begin;
    return strings->bytes.data + begin;
}

void mhf_strings_clear(mhf_strings *strings)
{
    mhf_buf_clear(&strings->bytes);
    strings->n = 0;
}

void mhf_strings_free(mhf_strings *strings)
{
    mhf_buf_free(&strings->bytes);
    free(strings->ends);
    *strings = (mhf_strings){0};
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int mhf_byte_token(const char *token, size_t n)
{
    if (n != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    /* the tokenizers library reads "+A" as a number too */
    int high = token[3] == '+' ? 0 : hex_value(token[3]), low = hex_value(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The raw bytes of a token; one with another character counts as it is spelled. */
static mhf_status add_raw(const char *text, size_t n, mhf_buf *raw)
{
    size_t start = raw->n;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)mhf_utf8_next(text + at, &c);
        int byte = mhf_char_byte(c);
        if (byte < 0) {
            raw->n = start;
            return mhf_buf_add(raw, text, n);
        }
        char as_char = (char)byte;
        MHF_TRY(mhf_buf_add(raw, &as_char, 1));
    }
    return MHF_OK;
}

static mhf_status byte_level(const mhf_strings *tokens, mhf_strings *out)
{
    mhf_buf raw = {0};
    mhf_status status = MHF_OK;
    for (int64_t i = 0; i < tokens->n && status == MHF_OK; i++) {
        size_t n;
        const char *text = mhf_strings_get(tokens, i, &n);
        status = add_raw(text, n, &raw);
    }
    if (status == MHF_OK)
        status = mhf_utf8_mend(raw.data, raw.n, &out->bytes);
    if (status == MHF_OK)
        status = mhf_strings_end(out);
    mhf_buf_free(&raw);
    return status;
}

static mhf_status metaspace(const mhf_decoder *step, const char *text, size_t n, bool is_first,
                            mhf_buf *out)
{
    bool drop = is_first && step->scheme != MHF_PREPEND_NEVER;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        int length = mhf_utf8_next(text + at, &c);
        if (c != step->character)
            MHF_TRY(mhf_buf_add(out, text + at, (size_t)length));
        else if (!drop)
            MHF_TRY(mhf_buf_add(out, " ", 1));
        at += (size_t)length;
    }
    return MHF_OK;
}

static mhf_status replace(const mhf_decoder *step, mhf_matcher *matcher, const char *text, size_t n,
                          size_t most, mhf_buf *out)
{
    int64_t kept = 0, begin, end;
    mhf_matches matches = {
        .pattern = &step->pattern, .matcher = matcher, .text = text, .n = (int64_t)n, .last = -1};
    for (;;) {
        MHF_TRY(mhf_matches_next(&matches, &begin, &end));
        if (begin < 0)
            return mhf_buf_add(out, text + kept, n - (size_t)kept);
        MHF_TRY(mhf_buf_add(out, text + kept, (size_t)(begin - kept)));
        MHF_TRY(mhf_buf_add(out, step->content, step->n_content));
        if (most > 0 && out->n > most)
            return mhf_fail(MHF_E_DATA,
                            "the tokenizer's decoder makes more than %zu bytes of the tokens",
                            most);
        kept = end;
    }
}

static mhf_status strip(const mhf_decoder *step, const char *text, size_t n, mhf_buf *out)
{
    int64_t begin = 0, end = (int64_t)n;
    uint32_t c;
    for (int64_t i = 0; i < step->start && begin < end; i++) {
        int length = mhf_utf8_next(text + begin, &c);
        if (c != step->character)
            break;
        begin += length;
    }
    for (int64_t i = 0; i < step->stop && begin < end; i++) {
        int length = mhf_utf8_previous(text + begin, end - begin, &c);
        if (c != step->character)
            break;
        end -= length;
    }
    return mhf_buf_add(out, text + begin, (size_t)(end - begin));
}

/* Byte tokens in a row become text together, or each U+FFFD when that isn't valid UTF-8. */
static mhf_status flush_bytes(mhf_buf *bytes, mhf_strings *out)
{
    if (bytes->n == 0)
        return MHF_OK;
    if (mhf_utf8_valid(bytes->data, bytes->n) == bytes->n)
        MHF_TRY(mhf_strings_add(out, bytes->data, bytes->n));
    else
        for (size_t i = 0; i < bytes->n; i++)
            MHF_TRY(mhf_strings_add(out, "\xEF\xBF\xBD", 3));
    mhf_buf_clear(bytes);
    return MHF_OK;
}

static mhf_status byte_fallback(const mhf_strings *tokens, mhf_strings *out)
{
    mhf_buf bytes = {0};
    mhf_status status = MHF_OK;
    for (int64_t i = 0; i < tokens->n && status == MHF_OK; i++) {
        size_t n;
        const char *text = mhf_strings_get(tokens, i, &n);
        int byte = mhf_byte_token(text, n);
        char as_char = (char)byte;
        if (byte >= 0) {
            status = mhf_buf_add(&bytes, &as_char, 1);
            continue;
        }
        status = flush_bytes(&bytes, out);
        if (status == MHF_OK)
            status = mhf_strings_add(out, text, n);
    }
    if (status == MHF_OK)
        status = flush_bytes(&bytes, out);
    mhf_buf_free(&bytes);
    return status;
}

static mhf_status one_by_one(const mhf_decoder *step, mhf_matcher *matcher,
                             const mhf_strings *tokens, mhf_strings *out)
{
    for (int64_t i = 0; i < tokens->n; i++) {
        size_t n;
        const char *text = mhf_strings_get(tokens, i, &n);
        if (step->kind == MHF_DECODE_METASPACE)
            MHF_TRY(metaspace(step, text, n, i == 0, &out->bytes));
        else if (step->kind == MHF_DECODE_REPLACE)
            MHF_TRY(replace(step, matcher, text, n, out->most, &out->bytes));
        else
            MHF_TRY(strip(step, text, n, &out->bytes));
        MHF_TRY(mhf_strings_end(out));
    }
    return MHF_OK;
}

mhf_status mhf_decoder_step(const mhf_decoder *step, mhf_matcher *matcher,
                            const mhf_strings *tokens, mhf_strings *out)
{
    switch (step->kind) {
    case MHF_DECODE_BYTE_LEVEL:
        return byte_level(tokens, out);
    case MHF_DECODE_BYTE_FALLBACK:
        return byte_fallback(tokens, out);
    case MHF_DECODE_FUSE:
        return mhf_strings_add(out, tokens->bytes.data, tokens->bytes.n);
    default:
        return one_by_one(step, matcher, tokens, out);
    }
}
