/* SPDX-License-Identifier: ISC */
/* Floats of 16 bits by hand: HDF5 1.10.8 rounds bfloat16 wrongly after a denormal, and ties away.
 */
#ifndef MHF_STORE_HALVES_H
#define MHF_STORE_HALVES_H

#include "mhf/base.h"

/** To nearest, ties to even; NaN stays NaN; what is too large becomes infinity. */
void mhf_floats_to_bf16(const float *in, int64_t n, uint16_t *out);
void mhf_floats_to_f16(const float *in, int64_t n, uint16_t *out);
void mhf_bf16_to_floats(const uint16_t *in, int64_t n, float *out);
void mhf_f16_to_floats(const uint16_t *in, int64_t n, float *out);

#endif
