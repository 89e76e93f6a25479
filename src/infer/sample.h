/* SPDX-License-Identifier: ISC */
/* Choosing the next token from log-probabilities. */
#ifndef MHF_INFER_SAMPLE_H
#define MHF_INFER_SAMPLE_H

#include "mhf/infer.h"

/* Scratch of one request. */
typedef struct mhf_sampler {
    int32_t *order; /* [counted] */
    double *weight; /* [counted] */
} mhf_sampler;

mhf_status mhf_sampler_new(int32_t counted, mhf_sampler *out);
void mhf_sampler_free(mhf_sampler *sampler);
/** The arg-max at temperature 0, else drawn with u in [0,1) from P ∝ exp(logp / temperature) among
 * the top_k likeliest (ties: lower id first), of these the fewest whose probability reaches top_p.
 */
mhf_token mhf_sample(const mhf_sampler *sampler, const float *logp,
                     const mhf_generate_options *options, double u);

#endif
