/* SPDX-License-Identifier: ISC */
/* Transposed copies. */
#ifndef MHF_TENSOR_TRANSPOSE_H
#define MHF_TENSOR_TRANSPOSE_H

#include <stdint.h>

/** to [cols,rows] = from [rows,cols] transposed. */
void mhf_transpose(const float *from, int64_t ld_from, int64_t rows, int64_t cols, float *to,
                   int64_t ld_to);

/* Token positions side by side: cell b holds element b of each. One cache line. */
enum { MHF_TOKENS = 16 };

/** cells [B,MHF_TOKENS] = rows [n,B] transposed; the lanes past n become 0. */
void mhf_to_lanes(const float *rows, int64_t n, int64_t B, float *cells);
/** rows [n,B] = the first n lanes of cells. */
void mhf_from_lanes(const float *cells, int64_t n, int64_t B, float *rows);

#endif
