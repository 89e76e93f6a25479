/* SPDX-License-Identifier: ISC */
/* Pieces of the hash encoder: gather of bucket rows, and their gated mixture. */
#include "kernel.h"

void mhf_gather(const float *E, const uint32_t *ids, int64_t ld_ids, int64_t T, int64_t N,
                int64_t B, int64_t d, float *e)
{
    size_t row = (size_t)d * sizeof *e;
#pragma omp parallel for num_threads(mhf_kernel_threads(T *N *d)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        for (int64_t j = 0; j < N; j++)
            memcpy(e + (t * N + j) * d, E + (j * B + ids[t * ld_ids + j]) * d, row);
}

MHF_KERNEL static void add_row(const float *x, int64_t n, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* Threads take coordinates and columns, never rows: each sum runs over t in order. */
void mhf_gather_backward(const float *de, const uint32_t *ids, int64_t ld_ids, int64_t T, int64_t N,
                         int64_t B, int64_t d, float *dE)
{
    enum { COLUMNS = 128 };
    int64_t stripes = (d + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for num_threads(mhf_kernel_threads(T *N *d)) schedule(static)
    for (int64_t task = 0; task < N * stripes; task++) {
        int64_t j = task / stripes, first = task % stripes * COLUMNS;
        int64_t n = d - first < COLUMNS ? d - first : COLUMNS;
        for (int64_t t = 0; t < T; t++)
            add_row(de + (t * N + j) * d + first, n,
                    dE + (j * B + ids[t * ld_ids + j]) * d + first);
    }
}

MHF_KERNEL static void gate_mix_row(const float *e, int64_t N, int64_t d, float *a, float *mix)
{
    mhf_softmax_row(a, N, 1.0f);
    for (int64_t i = 0; i < d; i++)
        mix[i] = 0.0f;
    for (int64_t j = 0; j < N; j++) {
        const float *row = e + j * d;
        float weight = a[j];
#pragma omp simd
        for (int64_t i = 0; i < d; i++)
            mix[i] += weight * row[i];
    }
}

void mhf_gate_mix(const float *e, int64_t T, int64_t N, int64_t d, float *a, float *mix)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *N *d)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        gate_mix_row(e + t * N * d, N, d, a + t * N, mix + t * d);
}

MHF_KERNEL static void gate_mix_backward_row(const float *e, const float *a, const float *dmix,
                                             int64_t N, int64_t d, float *de, float *dscore)
{
    float mean = 0.0f;
    for (int64_t j = 0; j < N; j++) {
        dscore[j] = mhf_dot(dmix, e + j * d, d);
        mean += a[j] * dscore[j];
    }
    for (int64_t j = 0; j < N; j++) {
        float weight = a[j];
        float *row = de + j * d;
        dscore[j] = weight * (dscore[j] - mean);
#pragma omp simd
        for (int64_t i = 0; i < d; i++)
            row[i] = weight * dmix[i];
    }
}

void mhf_gate_mix_backward(const float *e, const float *a, const float *dmix, int64_t T, int64_t N,
                           int64_t d, float *de, float *dscore)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *N *d)) schedule(static)
    for (int64_t t = 0; t < T; t++)
        gate_mix_backward_row(e + t * N * d, a + t * N, dmix + t * d, N, d, de + t * N * d,
                              dscore + t * N);
}
