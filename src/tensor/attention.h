/* SPDX-License-Identifier: ISC */
/* A tile of attention: some query rows against a range of keys of one head. */
#ifndef MHF_TENSOR_ATTENTION_H
#define MHF_TENSOR_ATTENTION_H

#include "mhf/tensor.h"

/* Queries of one tile; more share each key's load, fewer compute fewer masked scores. */
enum { MHF_QUERY_TILE = 64 };

typedef struct mhf_attention_tile {
    int64_t rows, keys, h;
    const float *q, *k, *v; /* q [rows,h], k and v [keys,h], with strides */
    int64_t ld_q, ld_k, ld_v;
    const int32_t *first; /* [rows] first visible key, counted from key_base; NULL: 0 */
    int64_t key_base;     /* number of the tile's first key */
    int64_t last;         /* number of the last key that row 0 sees */
    int64_t step;         /* keys that each further row sees more: 1, or 0 when all see the same */
} mhf_attention_tile;

/** Keys begin..end-1 of the tile that a row sees. */
void mhf_attention_visible(const mhf_attention_tile *tile, int64_t row, int64_t *begin,
                           int64_t *end);
/** o [rows,h] with stride; lse (may be NULL) with stride; z: scratch [rows,keys]. */
void mhf_attention_tile_forward(const mhf_attention_tile *tile, float *z, float *o, int64_t ld_o,
                                float *lse, int64_t ld_lse);
/** The tile of query rows t0..t1-1 of block b, query head a; keys that no row sees are left out. */
mhf_attention_tile mhf_attention_tile_of(const mhf_attention_shape *s, int64_t b, int64_t a,
                                         int64_t t0, int64_t t1, const float *q, const float *k,
                                         const float *v);

#endif
