/* SPDX-License-Identifier: ISC */
/* Products of sign vectors with a matrix, by table look-up. */
#ifndef MHF_HASH_SIGN_PRODUCT_H
#define MHF_HASH_SIGN_PRODUCT_H

#include "mhf/base.h"

enum {
    MHF_SIGN_BITS = 4,                   /* signs in one code */
    MHF_SIGN_TABLE = 1 << MHF_SIGN_BITS, /* combinations of them */
    MHF_SIGN_COLUMNS = 32, /* columns worked on at once: strides are multiples of it */
    MHF_SIGN_GROUPS = 16,  /* codes worked on at once: counts are multiples of it */
};

/** best[t] = the first column c < n where Σ_i s(t,i)·matrix[i,c] is largest, for t < T.
 *
 * Four signs have 16 combinations: the 16 sums of four rows are made once and every token adds the
 * one that its code names, a quarter of a matrix product's work. Sums are float32 in a fixed order.
 *
 * codes   [T, groups]; bit b of codes[t,g] set means s(t, 4g+b) = +1, clear -1.
 * matrix  [4·groups, stride]; columns n..stride-1 are read but never chosen.
 * Errors  MHF_E_NOMEM. Runs over the OpenMP threads; the result does not depend on them. */
mhf_status mhf_sign_product_argmax(const uint8_t *codes, int64_t T, int64_t groups,
                                   const float *matrix, int64_t stride, int64_t n, int32_t *best);

#endif
