/* SPDX-License-Identifier: ISC */
/* Log-probabilities of given tokens after given hidden states. */
#ifndef MHF_INFER_TARGETS_H
#define MHF_INFER_TARGETS_H

#include "mhf/model.h"

/** logp [n] of target [n] after hidden [n,d]; *greedy becomes false when one is not the arg-max
 * (lowest id on ties) of the rows that count. Runs in chunks whose size depends on V alone. Errors:
 * MHF_E_NONFINITE. */
mhf_status mhf_target_log_probabilities(const mhf_model *model, const float *hidden,
                                        const mhf_token *target, int64_t n, int32_t counted,
                                        double temperature, double *logp, bool *greedy);
/** Index of the largest of n values, the lowest on ties. */
int32_t mhf_arg_max(const float *values, int32_t n);

#endif
