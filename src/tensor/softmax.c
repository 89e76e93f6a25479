/* SPDX-License-Identifier: ISC */
/* Row-wise softmax, cross-entropy, and the gradient through the soft retrieval. */
#include "kernel.h"

MHF_KERNEL static float softmax_row(float *z, int64_t n)
{
    return mhf_softmax_row(z, n, 1.0f);
}

void mhf_softmax(float *z, int64_t T, int64_t n, int64_t ld, float *lse)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *n)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        float sum = softmax_row(z + t * ld, n);
        if (lse)
            lse[t] = sum;
    }
}

double mhf_cross_entropy(const float *z_target, const float *lse, const int32_t *target, int64_t T)
{
    double nats = 0.0;
    for (int64_t t = 0; t < T; t++)
        if (target[t] >= 0)
            nats += (double)lse[t] - (double)z_target[t];
    return nats;
}

MHF_KERNEL static void cross_entropy_backward_row(const float *p, float scale, int64_t n,
                                                  float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = scale * p[i];
}

void mhf_cross_entropy_backward(const float *p, const int32_t *target, float scale, int64_t T,
                                int64_t n, float *out)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *n)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        float *row = out + t * n;
        if (target[t] < 0) {
            memset(row, 0, (size_t)n * sizeof *row);
        } else {
            float at_target = scale * (p[t * n + target[t]] - 1.0f);
            cross_entropy_backward_row(p + t * n, scale, n, row);
            row[target[t]] = at_target;
        }
    }
}

/* r = g·p + base + p (r - <p,r>); base may be NULL. */
MHF_KERNEL static void retrieval_row(const float *p, const float *base, float g, int64_t n,
                                     float *r)
{
    float mean = mhf_dot(p, r, n) - g;
    if (base) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = base[i] + p[i] * (r[i] - mean);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = p[i] * (r[i] - mean);
    }
}

void mhf_retrieval_backward(const float *p, const float *base, const int32_t *target, float scale,
                            int64_t T, int64_t n, float *r)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *n)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        bool own = !base && target[t] >= 0;
        retrieval_row(p + t * n, base ? base + t * n : NULL, own ? scale : 0.0f, n, r + t * n);
        if (own)
            r[t * n + target[t]] -= scale;
    }
}
