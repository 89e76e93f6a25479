/* SPDX-License-Identifier: ISC */
/* From text to tokens and back: added tokens are cut out, the rest is normalized, cut into words
 * and given to the model; the template goes around. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "tokenizer.h"
#include "words.h"

/* What encoding needs beside the tokenizer, kept from call to call. */
struct mhf_encoder {
    const mhf_tokenizer *tokenizer; /* whose words the cache holds */
    char sha256[65];                /* and its file's: an address may come again */
    mhf_passage passage;
    mhf_matcher matcher;
    mhf_bpe_scratch scratch;
};

static void free_encoder(struct mhf_encoder *encoder)
{
    if (!encoder)
        return;
    mhf_passage_free(&encoder->passage);
    mhf_matcher_free(&encoder->matcher);
    mhf_bpe_scratch_free(&encoder->scratch);
    free(encoder);
}

void mhf_encoding_free(mhf_encoding *encoding)
{
    free(encoding->ids);
    free(encoding->begin);
    free(encoding->end);
    free_encoder(encoding->encoder);
    *encoding = (mhf_encoding){0};
}

static mhf_status open_encoder(const mhf_tokenizer *tokenizer, mhf_encoding *encoding)
{
    struct mhf_encoder *encoder = encoding->encoder;
    if (encoder && encoder->tokenizer == tokenizer &&
        strcmp(encoder->sha256, tokenizer->sha256) == 0)
        return MHF_OK;
    free_encoder(encoder);
    encoding->encoder = NULL;
    MHF_TRY(mhf_new(&encoder, 1, sizeof *encoder, "an encoder"));
    encoder->tokenizer = tokenizer;
    memcpy(encoder->sha256, tokenizer->sha256, sizeof encoder->sha256);
    encoding->encoder = encoder;
    return MHF_OK;
}

/* Make room for n more tokens. */
static mhf_status reserve(mhf_encoding *out, int64_t n, bool ranges)
{
    int64_t need = out->n + n;
    MHF_TRY(mhf_grow(&out->ids, &out->capacity, need, sizeof *out->ids, "tokens"));
    if (!ranges)
        return MHF_OK;
    MHF_TRY(mhf_grow(&out->begin, &out->begin_capacity, need, sizeof *out->begin, "tokens"));
    return mhf_grow(&out->end, &out->end_capacity, need, sizeof *out->end, "tokens");
}

static mhf_status add(mhf_encoding *out, mhf_token id, int64_t begin, int64_t end, bool ranges)
{
    MHF_TRY(reserve(out, 1, ranges));
    if (ranges) {
        out->begin[out->n] = begin;
        out->end[out->n] = end;
    }
    out->ids[out->n++] = id;
    return MHF_OK;
}

static mhf_status add_word(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const mhf_passage *passage,
                           const mhf_part *part, mhf_encoding *out)
{
    scratch->n = 0;
    MHF_TRY(mhf_bpe_encode(bpe, scratch, passage->text + part->begin, part->end - part->begin));
    MHF_TRY(reserve(out, scratch->n, passage->aligned));
    for (int64_t i = 0; i < scratch->n; i++) {
        const mhf_symbol *symbol = &scratch->symbols[i];
        if (passage->aligned)
            mhf_passage_origin(passage, part->begin + symbol->begin, symbol->n, &out->begin[out->n],
                               &out->end[out->n]);
        out->ids[out->n++] = symbol->id;
    }
    return MHF_OK;
}

static mhf_status encode(const mhf_tokenizer *t, struct mhf_encoder *encoder, const char *text,
                         size_t n, bool ranges, mhf_encoding *out)
{
    mhf_passage *passage = &encoder->passage;
    MHF_TRY(mhf_passage_start(passage, text, n, ranges));
    MHF_TRY(mhf_added_cut(&t->added, &t->added.plain, passage));
    MHF_TRY(mhf_normalizers_apply(&t->normalizers, &encoder->matcher, passage));
    MHF_TRY(mhf_added_cut(&t->added, &t->added.normalized, passage));
    MHF_TRY(mhf_pretokenizers_apply(&t->pretokenizers, &encoder->matcher, passage));
    for (int64_t i = 0; i < passage->n_parts; i++) {
        const mhf_part *part = &passage->parts[i];
        if (part->id >= 0)
            MHF_TRY(add(out, part->id, part->begin, part->end, ranges));
        else
            MHF_TRY(add_word(&t->bpe, &encoder->scratch, passage, part, out));
    }
    return MHF_OK;
}

mhf_status mhf_tokenizer_encode(const mhf_tokenizer *t, const char *text, size_t n, int flags,
                                mhf_encoding *out)
{
    bool ranges = flags & MHF_ENCODE_RANGES, around = flags & MHF_ENCODE_TEMPLATE;
    out->n = 0;
    MHF_TRY(open_encoder(t, out));
    for (int64_t i = 0; around && i < t->around.n_before; i++)
        MHF_TRY(add(out, t->around.before[i], -1, -1, ranges));
    MHF_TRY(encode(t, out->encoder, text, n, ranges, out));
    for (int64_t i = 0; around && i < t->around.n_after; i++)
        MHF_TRY(add(out, t->around.after[i], -1, -1, ranges));
    return MHF_OK;
}

mhf_status mhf_tokenizer_decode(const mhf_tokenizer *t, const mhf_token *ids, int64_t n,
                                bool skip_special, mhf_buf *out)
{
    mhf_strings tokens = {0};
    mhf_status status = MHF_OK;
    for (int64_t i = 0; i < n && status == MHF_OK; i++) {
        size_t length;
        if (ids[i] < 0 || ids[i] >= t->pieces.n) {
            status = mhf_fail(MHF_E_DATA, "token id %d at place %lld is not one of 0 to %d", ids[i],
                              (long long)i, t->pieces.n - 1);
            break;
        }
        const char *piece = mhf_pieces_get(&t->pieces, ids[i], &length);
        if (!skip_special || !t->special[ids[i]])
            status = mhf_strings_add(&tokens, piece, length);
    }
    if (status == MHF_OK)
        status = mhf_decoders_apply(&t->decoders, &tokens, out);
    mhf_strings_free(&tokens);
    return status;
}

/* Raw bytes as the characters that stand for them. */
static mhf_status spell_bytes(const char *word, int64_t n, mhf_buf *out)
{
    mhf_buf_clear(out);
    for (int64_t i = 0; i < n; i++) {
        char c[4];
        int length = mhf_utf8_encode(mhf_byte_char((unsigned char)word[i]), c);
        MHF_TRY(mhf_buf_add(out, c, (size_t)length));
    }
    return MHF_OK;
}

static mhf_status visit_words(const mhf_tokenizer *t, mhf_passage *passage, mhf_buf *spelled,
                              mhf_word_fn word, void *context)
{
    for (int64_t i = 0; i < passage->n_parts; i++) {
        const mhf_part *part = &passage->parts[i];
        const char *bytes = passage->text + part->begin;
        int64_t n = part->end - part->begin;
        if (n > 0 && t->pretokenizers.bytes_last) {
            MHF_TRY(spell_bytes(bytes, n, spelled));
            bytes = spelled->data;
            n = (int64_t)spelled->n;
        }
        if (n > 0)
            MHF_TRY(word(context, bytes, (size_t)n));
    }
    return MHF_OK;
}

mhf_status mhf_tokenizer_words(const mhf_tokenizer *t, const char *text, size_t n, mhf_word_fn word,
                               void *context)
{
    mhf_passage passage = {0};
    mhf_matcher matcher = {0};
    mhf_buf spelled = {0};
    mhf_status status = mhf_passage_start(&passage, text, n, false);
    if (status == MHF_OK)
        status = mhf_normalizers_apply(&t->normalizers, &matcher, &passage);
    if (status == MHF_OK)
        status = mhf_pretokenizers_apply(&t->pretokenizers, &matcher, &passage);
    if (status == MHF_OK)
        status = visit_words(t, &passage, &spelled, word, context);
    mhf_passage_free(&passage);
    mhf_matcher_free(&matcher);
    mhf_buf_free(&spelled);
    return status;
}
