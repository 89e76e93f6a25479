/* SPDX-License-Identifier: ISC */
/* Linear layer y = x Wᵀ + b and its gradients. */
#include "columns.h"
#include "kernel.h"

void mhf_linear(const float *x, const float *w, const float *bias, int64_t T, int64_t in,
                int64_t out, float *y)
{
    if (bias) {
        size_t row = (size_t)out * sizeof *y;
#pragma omp parallel for num_threads(mhf_kernel_threads(T *out)) schedule(static)
        for (int64_t t = 0; t < T; t++)
            memcpy(y + t * out, bias, row);
    }
    mhf_gemm(MHF_N, MHF_T, T, out, in, x, in, w, in, bias ? 1.0f : 0.0f, y, out);
}

void mhf_linear_backward(const float *x, const float *w, const float *dy, int64_t T, int64_t in,
                         int64_t out, float beta_dx, float *dx, float *dw, float *dbias)
{
    if (dx)
        mhf_gemm(MHF_N, MHF_N, T, in, out, dy, out, w, in, beta_dx, dx, in);
    if (dw)
        mhf_gemm(MHF_T, MHF_N, out, in, T, dy, out, x, in, 1.0f, dw, in);
    if (dbias)
        mhf_add_columns(dy, NULL, NULL, T, out, dbias);
}
