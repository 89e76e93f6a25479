/* SPDX-License-Identifier: ISC */
/* RMSNorm over rows. */
#include "columns.h"
#include "kernel.h"

MHF_KERNEL static float rmsnorm_row(const float *x, const float *w, int64_t d, float eps, float *y)
{
    float r = 1.0f / sqrtf(mhf_dot(x, x, d) / (float)d + eps);
#pragma omp simd
    for (int64_t i = 0; i < d; i++)
        y[i] = x[i] * r * w[i];
    return r;
}

void mhf_rmsnorm(const float *x, const float *w, int64_t T, int64_t d, float eps, float *y,
                 float *rstd)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *d)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        rstd[t] = rmsnorm_row(x + t * d, w, d, eps, y + t * d);
}

/* Σ x_i w_i dy_i. */
MHF_INLINE float dot3(const float *x, const float *w, const float *dy, int64_t d)
{
    float lane[MHF_LANES] = {0};
    float rest = 0.0f;
    int64_t i = 0;
    for (; i + MHF_LANES <= d; i += MHF_LANES)
        for (int l = 0; l < MHF_LANES; l++)
            lane[l] += x[i + l] * w[i + l] * dy[i + l];
    for (; i < d; i++)
        rest += x[i] * w[i] * dy[i];
    return mhf_add_lanes(lane) + rest;
}

/* With n = x r: dx = r (w dy - n mean(n w dy)) + beta·dx. */
MHF_KERNEL static void rmsnorm_backward_row(const float *x, const float *w, float r,
                                            const float *dy, int64_t d, float beta, float *dx)
{
    float pull = r * r * r * dot3(x, w, dy, d) / (float)d;
    if (beta == 0.0f) {
#pragma omp simd
        for (int64_t i = 0; i < d; i++)
            dx[i] = r * w[i] * dy[i] - pull * x[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < d; i++)
            dx[i] = r * w[i] * dy[i] - pull * x[i] + beta * dx[i];
    }
}

void mhf_rmsnorm_backward(const float *x, const float *w, const float *rstd, const float *dy,
                          int64_t T, int64_t d, float beta_dx, float *dx, float *dw)
{
    if (dw)
        mhf_add_columns(dy, x, rstd, T, d, dw); /* first: dx may be dy */
#pragma omp parallel for num_threads(mhf_kernel_threads(T *d)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        rmsnorm_backward_row(x + t * d, w, rstd[t], dy + t * d, d, beta_dx, dx + t * d);
}
