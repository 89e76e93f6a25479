/* SPDX-License-Identifier: ISC */
/* From a context and a continuation in texts to tokens, as lm-evaluation-harness 0.4.8 does it. */
#include <string.h>

#include "mhf/infer.h"

/* What Python's str.rstrip() takes away. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Bytes of text without its trailing white space. */
static size_t strip_end(const char *text, size_t n)
{
    while (n > 0) {
        size_t begin = n - 1;
        while (begin > 0 && ((unsigned char)text[begin] & 0xC0) == 0x80)
            begin--;
        uint32_t c;
        if (mhf_utf8_decode(text + begin, n - begin, &c) == 0 || !is_space(c))
            break;
        n = begin;
    }
    return n;
}

static mhf_status join(const mhf_encoding *context, mhf_token prefix, const mhf_encoding *whole,
                       mhf_score_tokens *out)
{
    int64_t cut = context->n < whole->n ? context->n : whole->n;
    out->n_context = context->n > 0 ? context->n : 1;
    out->n_continuation = whole->n - cut;
    MHF_TRY(mhf_new(&out->ids, out->n_context + out->n_continuation, sizeof *out->ids,
                    "the tokens of a request"));
    out->ids[0] = prefix;
    if (context->n > 0)
        memcpy(out->ids, context->ids, (size_t)context->n * sizeof *out->ids);
    if (out->n_continuation > 0)
        memcpy(out->ids + out->n_context, whole->ids + cut,
               (size_t)out->n_continuation * sizeof *out->ids);
    return MHF_OK;
}

mhf_status mhf_score_split(const mhf_tokenizer *tokenizer, mhf_token prefix, const char *context,
                           size_t n_context, const char *continuation, size_t n_continuation,
                           mhf_score_tokens *out)
{
    size_t kept = strip_end(context, n_context);
    mhf_buf text = {0};
    mhf_encoding before = {0}, whole = {0};
    mhf_status status = mhf_buf_add(&text, context, n_context);
    if (status == MHF_OK)
        status = mhf_buf_add(&text, continuation, n_continuation);
    if (status == MHF_OK)
        status = mhf_tokenizer_encode(tokenizer, text.data, text.n, MHF_ENCODE_PLAIN, &whole);
    if (status == MHF_OK && kept > 0)
        status = mhf_tokenizer_encode(tokenizer, context, kept, MHF_ENCODE_PLAIN, &before);
    if (status == MHF_OK && before.n == 0 && prefix < 0)
        status =
            mhf_fail(MHF_E_DATA, "the context is empty and the tokenizer has neither BOS nor EOS");
    out->bytes = (int64_t)(text.n - kept);
    if (status == MHF_OK)
        status = join(&before, prefix, &whole, out);
    mhf_buf_free(&text);
    mhf_encoding_free(&before);
    mhf_encoding_free(&whole);
    return status;
}
