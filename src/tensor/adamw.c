/* SPDX-License-Identifier: ISC */
/* AdamW with decoupled decay. */
#include "kernel.h"

typedef struct constants {
    float keep, beta1, gain1, beta2, gain2, rate, inverse_root, eps, scale;
} constants;

MHF_KERNEL static void update(const constants *k, const float *g, int64_t n, float *p, float *m,
                              float *v)
{
    constants c = *k;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float x = c.scale * g[i];
        float mean = c.beta1 * m[i] + c.gain1 * x;
        float square = c.beta2 * v[i] + c.gain2 * x * x;
        m[i] = mean;
        v[i] = square;
        p[i] = c.keep * p[i] - c.rate * mean / (sqrtf(square) * c.inverse_root + c.eps);
    }
}

void mhf_adamw_update(const mhf_adamw *adamw, float scale, const float *g, int64_t n, float *p,
                      float *m, float *v)
{
    enum { PIECE = 1 << 13 };
    double correction1 = 1.0 - pow(adamw->beta1, (double)adamw->step);
    double correction2 = 1.0 - pow(adamw->beta2, (double)adamw->step);
    constants c = {.keep = (float)(1.0 - adamw->lr * adamw->weight_decay),
                   .beta1 = (float)adamw->beta1,
                   .gain1 = (float)(1.0 - adamw->beta1),
                   .beta2 = (float)adamw->beta2,
                   .gain2 = (float)(1.0 - adamw->beta2),
                   .rate = (float)(adamw->lr / correction1),
                   .inverse_root = (float)(1.0 / sqrt(correction2)),
                   .eps = (float)adamw->eps,
                   .scale = scale};
#pragma omp parallel for num_threads(mhf_kernel_threads(n)) schedule(static)
    for (int64_t i = 0; i < (n + PIECE - 1) / PIECE; i++) {
        int64_t first = i * PIECE;
        update(&c, g + first, n - first < PIECE ? n - first : PIECE, p + first, m + first,
               v + first);
    }
}
