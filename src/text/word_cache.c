/* SPDX-License-Identifier: ISC */
#include "word_cache.h"

#include <stdlib.h>
#include <string.h>

/* A few MiB a thread: it holds the words of a language that come again. */
static const int64_t smallest = 1 << 10, largest = 1 << 17;

static mhf_cached_word *find(const mhf_word_cache *cache, const char *word, int64_t n,
                             uint64_t hash)
{
    uint64_t mask = (uint64_t)cache->n_slots - 1, i = (hash >> 8) & mask;
    for (; cache->slots[i].hash; i = (i + 1) & mask) {
        const mhf_cached_word *slot = &cache->slots[i];
        if (slot->hash == hash && slot->n_key == n &&
            memcmp(cache->keys.data + slot->key, word, (size_t)n) == 0)
            break;
    }
    return &cache->slots[i];
}

const mhf_symbol *mhf_word_cache_get(const mhf_word_cache *cache, const char *word, int64_t n,
                                     uint64_t hash, int32_t *n_symbols)
{
    if (!cache->slots)
        return NULL;
    const mhf_cached_word *slot = find(cache, word, n, hash);
    *n_symbols = slot->n_symbols;
    return slot->hash ? cache->symbols + slot->first : NULL;
}

static mhf_status resize(mhf_word_cache *cache, int64_t n_slots)
{
    mhf_cached_word *old = cache->slots, *fresh;
    MHF_TRY(mhf_new(&fresh, n_slots, sizeof *fresh, "a cache of words"));
    uint64_t mask = (uint64_t)n_slots - 1;
    for (int64_t i = 0; old && i < cache->n_slots; i++) {
        uint64_t j = (old[i].hash >> 8) & mask;
        if (!old[i].hash)
            continue;
        while (fresh[j].hash)
            j = (j + 1) & mask;
        fresh[j] = old[i];
    }
    free(old);
    cache->slots = fresh;
    cache->n_slots = n_slots;
    return MHF_OK;
}

static mhf_status make_room(mhf_word_cache *cache)
{
    if (cache->n_words * 2 < cache->n_slots)
        return MHF_OK;
    if (cache->n_slots < largest)
        return resize(cache, cache->n_slots ? cache->n_slots * 4 : smallest);
    memset(cache->slots, 0, (size_t)cache->n_slots * sizeof *cache->slots);
    mhf_buf_clear(&cache->keys);
    cache->n_words = cache->n_symbols = 0;
    return MHF_OK;
}

mhf_status mhf_word_cache_add(mhf_word_cache *cache, const char *word, int64_t n, uint64_t hash,
                              const mhf_symbol *symbols, int64_t n_symbols)
{
    MHF_TRY(make_room(cache));
    /* One more: a word without tokens is found at an address, too. */
    MHF_TRY(mhf_grow(&cache->symbols, &cache->capacity, cache->n_symbols + n_symbols + 1,
                     sizeof *symbols, "a cache of words"));
    mhf_cached_word slot = {.hash = hash,
                            .key = (int64_t)cache->keys.n,
                            .first = cache->n_symbols,
                            .n_key = (int32_t)n,
                            .n_symbols = (int32_t)n_symbols};
    MHF_TRY(mhf_buf_add(&cache->keys, word, (size_t)n));
    if (n_symbols > 0)
        memcpy(cache->symbols + cache->n_symbols, symbols, (size_t)n_symbols * sizeof *symbols);
    cache->n_symbols += n_symbols;
    *find(cache, word, n, hash) = slot;
    cache->n_words++;
    return MHF_OK;
}

void mhf_word_cache_free(mhf_word_cache *cache)
{
    free(cache->slots);
    free(cache->symbols);
    mhf_buf_free(&cache->keys);
    *cache = (mhf_word_cache){0};
}
