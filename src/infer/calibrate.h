/* SPDX-License-Identifier: ISC */
/* The temperature tau that gives P ∝ exp(S/tau) the lowest nats, from one pass over the logits S.
 *
 * With beta = 1/tau the nats f(beta) = Σ_t log Σ_v exp(beta S_v) - beta S_target are smooth and
 * convex. The pass sums f and f' at a grid of betas that are multiples of 1/16: exp(S/16) is taken
 * once and multiplied up. Between the grid's points f is a Hermite polynomial through its
 * neighbours' values and slopes.
 */
#ifndef MHF_INFER_CALIBRATE_H
#define MHF_INFER_CALIBRATE_H

#include "mhf/base.h"

enum { MHF_GRID = 23, MHF_GRID_UNIT = 64 };

/* f and f' at each grid point, added over tokens. */
typedef struct mhf_calibration {
    double f[MHF_GRID], slope[MHF_GRID];
} mhf_calibration;

double mhf_calibration_beta(int i);
/** Add one token: s [n] the logits, u [n] exp(s/64) up to a common factor; the logit of the target.
 */
void mhf_calibration_add(const float *s, const float *u, int64_t n, float s_target,
                         mhf_calibration *sums);
/** The lowest point within the grid: its temperature, and f there. */
void mhf_calibration_solve(const mhf_calibration *sums, double *temperature, double *nats);

#endif
