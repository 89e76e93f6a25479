/* SPDX-License-Identifier: ISC */
/* This replica's micro-batches of a step, or of the held-out store. */
#ifndef MHF_TRAIN_FEED_H
#define MHF_TRAIN_FEED_H

#include "mhf/train.h"

/* Micro-batches [first, first+n) of n_global are this replica's. */
typedef struct micro_share {
    int32_t first, n, n_global;
} micro_share;

/* Blocks cut into micro-batches; micro-batch m belongs to replica ⌊mD/M⌋. */
micro_share share_of(int64_t blocks, int64_t micro_batch, int replicas, int replica);

typedef struct batch_feed {
    mhf_batch *batches; /* [capacity] */
    mhf_losses *losses; /* [capacity] */
    mhf_token *tokens;  /* [capacity·micro_batch·block] */
    int32_t *documents; /* the same, or NULL: first visible key of each token */
    int32_t capacity;
    int64_t micro_batch, block;
} batch_feed;

mhf_status feed_new(int32_t capacity, int64_t micro_batch, int64_t block, bool documents,
                    batch_feed *out);
void feed_free(batch_feed *feed);
/* Read global blocks first_block + [0, blocks) as far as they are of `share`. */
mhf_status feed_fill(batch_feed *feed, mhf_cursor *cursor, int64_t first_block, int64_t blocks,
                     micro_share share, double scale);
/* The same from a store in its own order, for evaluation. */
mhf_status feed_fill_store(batch_feed *feed, mhf_tokens *store, int64_t blocks, micro_share share);
/* Σ over targets of what they add to the text, this replica's micro-batches [0, n). */
int64_t feed_bytes(const batch_feed *feed, int32_t n, const int32_t *token_bytes);

#endif
