/* SPDX-License-Identifier: ISC */
/* Attention in tiles: a few queries of all heads that share a key head, against the keys they see.
 *
 * Heads are first copied to dense arrays. Rows of the layer's buffers lie some power of two apart,
 * where a product runs at half its speed. */
#ifndef MHF_TENSOR_ATTENTION_H
#define MHF_TENSOR_ATTENTION_H

#include "mhf/tensor.h"

typedef struct mhf_attention_call {
    int64_t blocks, n, past; /* n queries a block, at positions past..past+n-1 */
    int64_t n_q, n_kv, h;
    int64_t ld_q, ld_k, ld_v, ld_o;
    const int32_t *first; /* [blocks·n] or NULL */
    const float *q, *k, *v;
} mhf_attention_call;

/* Some query rows t0..t1-1 of block b, in the dense order [group, t1-t0]. */
typedef struct mhf_attention_tile {
    int64_t b, kv, t0, t1;
    int64_t base, keys; /* keys base..base+keys-1 are seen by some row */
} mhf_attention_tile;

/** Query positions in a tile: about 192 rows together with the heads of a group. */
int64_t mhf_attention_tile_rows(const mhf_attention_call *call);
/** Elements from row to row of a dense transposed copy of `keys` keys. */
int64_t mhf_attention_stride(int64_t keys);

mhf_attention_tile mhf_attention_tile_at(const mhf_attention_call *call, int64_t b, int64_t kv,
                                         int64_t t0);
/** Keys begin..end-1, counted from the tile's base, that query position t sees. */
void mhf_attention_visible(const mhf_attention_call *call, const mhf_attention_tile *tile,
                           int64_t t, int64_t *begin, int64_t *end);
/** dense [group, t1-t0, h] = the tile's rows of x [blocks·n, n_q·h] with stride, and back. */
void mhf_attention_pack(const mhf_attention_call *call, const mhf_attention_tile *tile,
                        const float *x, int64_t ld, float *dense);
void mhf_attention_unpack(const mhf_attention_call *call, const mhf_attention_tile *tile,
                          const float *dense, float *x, int64_t ld);

#endif
