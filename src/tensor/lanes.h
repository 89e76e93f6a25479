/* SPDX-License-Identifier: ISC */
/* Several token positions side by side: cell b of the transposed array holds element b of each. */
#ifndef MHF_TENSOR_LANES_H
#define MHF_TENSOR_LANES_H

#include <stdint.h>

/* One cache line of positions. */
enum { MHF_TOKENS = 16 };

/** cells [B,MHF_TOKENS] = rows [n,B] transposed; the lanes past n become 0. */
void mhf_to_lanes(const float *rows, int64_t n, int64_t B, float *cells);
/** rows [n,B] = the first n lanes of cells. */
void mhf_from_lanes(const float *cells, int64_t n, int64_t B, float *rows);

#endif
