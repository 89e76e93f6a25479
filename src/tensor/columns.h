/* SPDX-License-Identifier: ISC */
/* Sums down the columns of a matrix, in an order that does not depend on the threads. */
#ifndef MHF_TENSOR_COLUMNS_H
#define MHF_TENSOR_COLUMNS_H

#include <stdint.h>

/** sum [d] += Σ_t a[t,i]·b[t,i]·s[t], a and b [T,d]; without b and s: Σ_t a[t,i]. */
void mhf_add_columns(const float *a, const float *b, const float *s, int64_t T, int64_t d,
                     float *sum);

#endif
