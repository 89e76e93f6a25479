/* SPDX-License-Identifier: ISC */
/* Items in tokens, and which of the tokens pooling covers. */
#ifndef MHF_INFER_POOL_H
#define MHF_INFER_POOL_H

#include "mhf/infer.h"

/* All items, one after another. */
typedef struct mhf_pool {
    int64_t n;         /* items */
    uint64_t *offsets; /* [n+1] first token of each */
    mhf_token *ids;    /* [offsets[n]] */
    bool *covered;     /* [offsets[n]] pooling covers the token */
    uint64_t *pooled;  /* [n,2] tokens of the item from the first covered to past the last */
    int64_t capacity, covered_capacity;
    int64_t longest; /* tokens of the longest item */
} mhf_pool;

/** Encode the items and find what pooling covers. Errors name the item's line: no token, more
 * tokens than positions, an id past the vocabulary, a span past the text. The caller frees in any
 * case. */
mhf_status mhf_pool_new(const mhf_model *model, const mhf_tokenizer *tokenizer,
                        const mhf_dump_item *items, int64_t n, const char *name,
                        const mhf_dump_options *options, mhf_pool *out);
void mhf_pool_free(mhf_pool *pool);
/** row [d] = pooling of states [tokens of item i, d]; zeros when nothing is covered. */
void mhf_pool_row(const mhf_pool *pool, int64_t i, mhf_pooling pooling, const float *states,
                  int64_t d, float *row);

#endif
