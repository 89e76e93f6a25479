/* SPDX-License-Identifier: ISC */
/* Pairs of tokens: a map from pairs to numbers, and the queue from which the next merge is taken.
 */
#ifndef MHF_TEXT_TRAINER_PAIRS_H
#define MHF_TEXT_TRAINER_PAIRS_H

#include "mhf/text.h"

/* (left, right) in one number whose order is that of the two ids. */
typedef uint64_t mhf_pair;

static inline mhf_pair mhf_pair_of(mhf_token left, mhf_token right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static inline mhf_token mhf_pair_left(mhf_pair pair)
{
    return (mhf_token)(pair >> 32);
}

static inline mhf_token mhf_pair_right(mhf_pair pair)
{
    return (mhf_token)(pair & UINT32_MAX);
}

/* Zero-initialise; free with mhf_pair_map_free. */
typedef struct mhf_pair_map {
    struct mhf_pair_slot {
        uint64_t key; /* pair + 1, 0 free */
        int64_t value;
    } * slots;
    int64_t n, n_slots;
} mhf_pair_map;

/** *value = place of the pair's value, 0 when the pair is new; valid until the next call. */
mhf_status mhf_pair_map_at(mhf_pair_map *map, mhf_pair pair, int64_t **value);
/** Value of the pair, 0 when there is none. */
int64_t mhf_pair_map_get(const mhf_pair_map *map, mhf_pair pair);
/** Forget all pairs. */
void mhf_pair_map_clear(mhf_pair_map *map);
void mhf_pair_map_free(mhf_pair_map *map);

/* A pair, how often it occurred when it was queued, and the words where. */
typedef struct mhf_candidate {
    int64_t count;
    mhf_pair pair;
    int64_t made;   /* merges learned before it came up */
    int32_t *words; /* [n_words] ascending; owned */
    int64_t n_words, capacity;
} mhf_candidate;

/* Largest count first, ties by the smaller pair. A pair may be queued more than once, for different
 * words: the earlier one is first, so that the order is total and does not depend on that of the
 * words. Zero-initialise; free with mhf_queue_free. */
typedef struct mhf_queue {
    mhf_candidate *items; /* [n] binary heap */
    int64_t n, capacity;
} mhf_queue;

/** Takes over the candidate's words on success. */
mhf_status mhf_queue_push(mhf_queue *queue, const mhf_candidate *candidate);
/** Remove and return the first; the queue must not be empty. */
mhf_candidate mhf_queue_pop(mhf_queue *queue);
void mhf_queue_free(mhf_queue *queue);

#endif
