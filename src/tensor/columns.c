/* SPDX-License-Identifier: ISC */
#include "columns.h"

#include "kernel.h"

enum { STRIPE = 64, ROWS = 64 };

/* Columns first..first+n-1, n <= STRIPE: rows are summed in groups of ROWS, the groups in order;
 * short sums first also lose fewer bits. */
MHF_KERNEL static void add_stripe(const float *a, const float *b, const float *s, int64_t T,
                                  int64_t d, int64_t first, int64_t n, float *sum)
{
    for (int64_t t0 = 0; t0 < T; t0 += ROWS) {
        int64_t t1 = T - t0 < ROWS ? T : t0 + ROWS;
        float part[STRIPE] = {0};
        for (int64_t t = t0; t < t1; t++) {
            const float *at = a + t * d + first;
            if (b) {
                const float *bt = b + t * d + first;
                float st = s[t];
#pragma omp simd
                for (int64_t i = 0; i < n; i++)
                    part[i] += at[i] * bt[i] * st;
            } else {
#pragma omp simd
                for (int64_t i = 0; i < n; i++)
                    part[i] += at[i];
            }
        }
        for (int64_t i = 0; i < n; i++)
            sum[first + i] += part[i];
    }
}

void mhf_add_columns(const float *a, const float *b, const float *s, int64_t T, int64_t d,
                     float *sum)
{
    int64_t stripes = (d + STRIPE - 1) / STRIPE;
#pragma omp parallel for num_threads(mhf_kernel_threads(T *d)) schedule(static)
    for (int64_t i = 0; i < stripes; i++) {
        int64_t first = i * STRIPE;
        add_stripe(a, b, s, T, d, first, d - first < STRIPE ? d - first : STRIPE, sum);
    }
}
