/* SPDX-License-Identifier: ISC */
/* Words met before and their tokens: most of a text is words that came already. One thread's. */
#ifndef MHF_TEXT_WORD_CACHE_H
#define MHF_TEXT_WORD_CACHE_H

#include "mhf/text.h"

/* A token, or what may become one, of a word. */
typedef struct mhf_symbol {
    mhf_token id;
    int32_t begin, n; /* bytes of the word */
} mhf_symbol;

typedef struct mhf_cached_word {
    uint64_t hash; /* 0: free */
    int64_t key;   /* in keys */
    int64_t first; /* in symbols */
    int32_t n_key, n_symbols;
} mhf_cached_word;

/* Zero-initialise; free with mhf_word_cache_free. */
typedef struct mhf_word_cache {
    mhf_cached_word *slots; /* [n_slots], a power of two */
    int64_t n_slots, n_words;
    mhf_buf keys;
    mhf_symbol *symbols;
    int64_t n_symbols, capacity;
} mhf_word_cache;

/** Tokens of a word met before, or NULL. Borrowed until the next addition. */
const mhf_symbol *mhf_word_cache_get(const mhf_word_cache *cache, const char *word, int64_t n,
                                     uint64_t hash, int32_t *n_symbols);
/** Remember a word that is not there; when the cache is full all is forgotten first. */
mhf_status mhf_word_cache_add(mhf_word_cache *cache, const char *word, int64_t n, uint64_t hash,
                              const mhf_symbol *symbols, int64_t n_symbols);
void mhf_word_cache_free(mhf_word_cache *cache);

/** Hash of a word, never 0. */
static inline uint64_t mhf_word_hash(const char *word, int64_t n)
{
    return mhf_hash64(word, (size_t)n) | 1;
}

#endif
