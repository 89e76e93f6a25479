/* SPDX-License-Identifier: ISC */
/* The gated unit of the MLP: silu(gate) times up. */
#include "kernel.h"

MHF_KERNEL static void swiglu_row(const float *gate, const float *up, int64_t f, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < f; i++)
        y[i] = gate[i] * mhf_sigmoid(gate[i]) * up[i];
}

void mhf_swiglu(const float *gu, int64_t T, int64_t f, float *y)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *f)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        swiglu_row(gu + 2 * t * f, gu + 2 * t * f + f, f, y + t * f);
}

MHF_KERNEL static void swiglu_backward_row(const float *gate, const float *up, const float *dy,
                                           int64_t f, float *dgate, float *dup, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < f; i++) {
        float g = gate[i], u = up[i], d = dy[i];
        float s = mhf_sigmoid(g);
        float silu = g * s;
        dgate[i] = d * u * s * (1.0f + g * (1.0f - s));
        dup[i] = d * silu;
        y[i] = silu * u;
    }
}

void mhf_swiglu_backward(const float *gu, const float *dy, int64_t T, int64_t f, float *dgu,
                         float *y)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *f)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        const float *gate = gu + 2 * t * f;
        float *dgate = dgu + 2 * t * f;
        swiglu_backward_row(gate, gate + f, dy + t * f, f, dgate, dgate + f, y + t * f);
    }
}
