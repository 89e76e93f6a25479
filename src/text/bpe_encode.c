/* SPDX-License-Identifier: ISC */
/* From a word to the symbols that merging starts with. Long words are first cut where no merge can
 * reach across, which changes no token and lets the cache serve the stretches between. */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "unicode.h"

enum {
    WHOLE = 40,  /* bytes up to which a word is not looked at for cuts */
    CACHED = 256 /* bytes up to which a stretch is kept in the cache */
};

static mhf_status start(mhf_bpe_scratch *scratch, mhf_token id, int64_t begin, int64_t n)
{
    MHF_TRY(mhf_grow(&scratch->work, &scratch->work_capacity, scratch->n_work + 1,
                     sizeof *scratch->work, "a word"));
    scratch->work[scratch->n_work++] =
        (mhf_symbol){.id = id, .begin = (int32_t)begin, .n = (int32_t)n};
    return MHF_OK;
}

/* The byte tokens of a character that the vocabulary lacks; *done is false when one is missing. */
static mhf_status fall_back(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *c, int n_c,
                            int64_t begin, bool *done)
{
    *done = bpe->byte_fallback;
    for (int i = 0; i < n_c && *done; i++)
        *done = bpe->fallback[(unsigned char)c[i]] >= 0;
    for (int i = 0; i < n_c && *done; i++)
        MHF_TRY(start(scratch, bpe->fallback[(unsigned char)c[i]],
                      bpe->takes_bytes ? begin : begin + i, 1));
    return MHF_OK;
}

/* Symbols of word[0..n). Unknown characters wait in `unk`: they may be fused, and bytes that fall
 * back meanwhile go before them, as in the tokenizers library. */
static mhf_status start_symbols(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *word,
                                int64_t n)
{
    mhf_symbol unk = {.id = -1};
    scratch->n_work = 0;
    for (int64_t at = 0; at < n;) {
        uint32_t c;
        char spelled[4];
        const char *bytes = word + at;
        int length = 1, n_bytes;
        if (bpe->takes_bytes)
            c = mhf_byte_char((unsigned char)word[at]);
        else
            length = mhf_utf8_next(word + at, &c);
        mhf_token id = mhf_bpe_char(bpe, c);
        bool done = id >= 0;
        if (done) {
            if (unk.id >= 0)
                MHF_TRY(start(scratch, unk.id, unk.begin, unk.n));
            unk.id = -1;
            MHF_TRY(start(scratch, id, at, length));
        } else {
            n_bytes = length;
            if (bpe->takes_bytes) {
                n_bytes = mhf_utf8_encode(c, spelled);
                bytes = spelled;
            }
            MHF_TRY(fall_back(bpe, scratch, bytes, n_bytes, at, &done));
        }
        if (!done && bpe->unk == -2)
            return mhf_fail(MHF_E_DATA, "the tokenizer's unk_token is not in its vocabulary, and "
                                        "the text has a character that needs it");
        if (!done && bpe->unk >= 0) {
            bool fuse = unk.id >= 0 && bpe->fuse_unk;
            if (unk.id >= 0 && !fuse)
                MHF_TRY(start(scratch, unk.id, unk.begin, unk.n));
            if (!fuse)
                unk = (mhf_symbol){.id = bpe->unk, .begin = (int32_t)at};
            unk.n = (int32_t)(at + length - unk.begin);
        }
        at += length;
    }
    return unk.id >= 0 ? start(scratch, unk.id, unk.begin, unk.n) : MHF_OK;
}

static mhf_status append(mhf_bpe_scratch *scratch, const mhf_symbol *symbols, int64_t n,
                         int64_t offset)
{
    MHF_TRY(
        mhf_grow(&scratch->symbols, &scratch->capacity, scratch->n + n, sizeof *symbols, "a word"));
    for (int64_t i = 0; i < n; i++) {
        scratch->symbols[scratch->n + i] = symbols[i];
        scratch->symbols[scratch->n + i].begin += (int32_t)offset;
    }
    scratch->n += n;
    return MHF_OK;
}

static mhf_status encode_stretch(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *word,
                                 int64_t begin, int64_t end)
{
    const char *stretch = word + begin;
    int64_t n = end - begin;
    uint64_t hash = 0;
    if (n <= CACHED) {
        int32_t n_symbols;
        hash = mhf_word_hash(stretch, n);
        const mhf_symbol *symbols =
            mhf_word_cache_get(&scratch->cache, stretch, n, hash, &n_symbols);
        if (symbols)
            return append(scratch, symbols, n_symbols, begin);
    }
    MHF_TRY(start_symbols(bpe, scratch, stretch, n));
    MHF_TRY(mhf_bpe_merge(bpe, scratch));
    if (n <= CACHED)
        MHF_TRY(
            mhf_word_cache_add(&scratch->cache, stretch, n, hash, scratch->work, scratch->n_work));
    return append(scratch, scratch->work, scratch->n_work, begin);
}

/* May the word be cut between two characters, given their ids (-1: not in the vocabulary)? Unknown
 * ones may be fused, so they are cut apart only where all become byte tokens, which never merge. */
static bool is_cut(const mhf_bpe *bpe, mhf_token before, mhf_token behind)
{
    if (before < 0 || behind < 0)
        return bpe->all_fallback;
    uint32_t bit = mhf_bpe_join_bit(before, behind);
    return !(bpe->joins[bit / 64] >> bit % 64 & 1);
}

static mhf_status encode_cut(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *word,
                             int64_t n)
{
    int64_t begin = 0;
    mhf_token before = -1;
    for (int64_t at = 0; at < n;) {
        uint32_t c;
        int length = 1;
        if (!bpe->takes_bytes)
            length = mhf_utf8_next(word + at, &c);
        mhf_token id =
            bpe->takes_bytes ? bpe->bytes[(unsigned char)word[at]] : mhf_bpe_char(bpe, c);
        if (at > 0 && is_cut(bpe, before, id)) {
            MHF_TRY(encode_stretch(bpe, scratch, word, begin, at));
            begin = at;
        }
        before = id;
        at += length;
    }
    return encode_stretch(bpe, scratch, word, begin, n);
}

static mhf_token find_whole(const mhf_bpe *bpe, const char *word, int64_t n)
{
    if (bpe->raw)
        return (mhf_token)mhf_map_get(bpe->raw, word, (size_t)n, -1);
    mhf_token id = mhf_pieces_find(bpe->vocab, word, (size_t)n);
    return id < bpe->n ? id : -1;
}

mhf_status mhf_bpe_encode(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *word, int64_t n)
{
    if (n == 0)
        return MHF_OK;
    if (n > INT32_MAX)
        return mhf_fail(MHF_E_DATA, "a word of %lld bytes is too long", (long long)n);
    if (bpe->ignore_merges) {
        mhf_symbol whole = {.id = find_whole(bpe, word, n), .n = (int32_t)n};
        if (whole.id >= 0)
            return append(scratch, &whole, 1, 0);
    }
    if (n <= WHOLE || !bpe->may_cut)
        return encode_stretch(bpe, scratch, word, 0, n);
    return encode_cut(bpe, scratch, word, n);
}

void mhf_bpe_scratch_free(mhf_bpe_scratch *scratch)
{
    free(scratch->symbols);
    free(scratch->work);
    free(scratch->previous);
    free(scratch->next);
    free(scratch->heap);
    mhf_word_cache_free(&scratch->cache);
    *scratch = (mhf_bpe_scratch){0};
}
