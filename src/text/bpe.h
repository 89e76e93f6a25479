/* SPDX-License-Identifier: ISC */
/* The model of a tokenizer.json: byte-pair encoding of one word. */
#ifndef MHF_TEXT_BPE_H
#define MHF_TEXT_BPE_H

#include "pieces.h"
#include "word_cache.h"

typedef struct mhf_spelling {
    const char *text; /* [n] borrowed */
    size_t n;
} mhf_spelling;

/** The two parts of a member of "merges", "a b" or ["a", "b"]; false where it is neither. */
bool mhf_merge_split(const json_t *merge, mhf_spelling *left, mhf_spelling *right);

typedef struct mhf_ranked_merge {
    uint64_t pair; /* left << 32 | right; all ones: free */
    int32_t rank;
    mhf_token id;
} mhf_ranked_merge;

typedef struct mhf_bpe {
    const mhf_pieces *vocab; /* the first n are this model's */
    int32_t n;
    mhf_ranked_merge *merges; /* [n_merges] slots, a power of two */
    int64_t n_merges;
    int shift;         /* 64 - log2(n_merges) */
    uint16_t *page_of; /* [0x1100] code point >> 8 -> page; page 0 is empty */
    mhf_token *pages;  /* [n_pages * 256] id of a single character, or -1 */
    int32_t n_pages;
    mhf_token bytes[256];    /* ids of the byte-level characters */
    mhf_token fallback[256]; /* ids of <0x00> … <0xFF> */
    mhf_token unk;           /* -1: none; -2: named, but not in the vocabulary */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool takes_bytes;  /* words are raw bytes, each a byte-level character */
    bool all_fallback; /* byte_fallback, and no byte is missing */
    mhf_map *raw;      /* takes_bytes and ignore_merges: raw bytes of whole pieces -> id */
    bool may_cut;      /* a word may be cut where `joins` says that no merge reaches across */
    uint64_t *joins;   /* bits, hashed by (last symbol before, first symbol behind) */
} mhf_bpe;

/* One thread's room to work. Zero-initialise; free with mhf_bpe_scratch_free. */
typedef struct mhf_heap_entry {
    uint64_t key; /* rank << 32 | position */
    mhf_token id;
} mhf_heap_entry;

typedef struct mhf_bpe_scratch {
    mhf_symbol *symbols; /* [n] result */
    int64_t n, capacity;
    mhf_symbol *work; /* symbols of the stretch being merged */
    int64_t n_work, work_capacity;
    int32_t *previous, *next;
    int64_t previous_capacity, next_capacity;
    mhf_heap_entry *heap;
    int64_t n_heap, heap_capacity;
    mhf_word_cache cache;
} mhf_bpe_scratch;

/** Read the "model"; its vocabulary is added to `vocab`, which must be empty and outlive the model.
 * Errors: MHF_E_DATA, what is wrong or not built is named. */
mhf_status mhf_bpe_parse(const json_t *model, const char *name, bool takes_bytes, mhf_pieces *vocab,
                         mhf_bpe *out);
void mhf_bpe_free(mhf_bpe *bpe);
/** Append the tokens of a word to scratch->symbols; their places are those in the word. */
mhf_status mhf_bpe_encode(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, const char *word,
                          int64_t n);
void mhf_bpe_scratch_free(mhf_bpe_scratch *scratch);

/** Merge scratch->work[0..n_work) as far as it goes: lowest rank first, leftmost of equals. */
mhf_status mhf_bpe_merge(const mhf_bpe *bpe, mhf_bpe_scratch *scratch);

/** Id of a single character, or -1. */
static inline mhf_token mhf_bpe_char(const mhf_bpe *bpe, uint32_t c)
{
    return bpe->pages[(size_t)bpe->page_of[c >> 8] * 256 + (c & 255)];
}

static inline const mhf_ranked_merge *mhf_bpe_find(const mhf_bpe *bpe, mhf_token left,
                                                   mhf_token right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t i = pair * 0x9E3779B97F4A7C15u >> bpe->shift, mask = (uint64_t)bpe->n_merges - 1;
    for (; bpe->merges[i].pair != UINT64_MAX; i = (i + 1) & mask)
        if (bpe->merges[i].pair == pair)
            return &bpe->merges[i];
    return NULL;
}

enum { MHF_BPE_JOIN_BITS = 17 };

static inline uint32_t mhf_bpe_join_bit(mhf_token left, mhf_token right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(pair * 0x9E3779B97F4A7C15u >> (64 - MHF_BPE_JOIN_BITS));
}

#endif
