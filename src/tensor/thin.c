/* SPDX-License-Identifier: ISC */
/* Products with a few rows, as in generating token by token: the time is that of reading B once,
 * and engines made for large products do not reach it. */
#include "engine.h"
#include "kernel.h"

enum { WIDEST = 2048, GROUP = 4 };

bool mhf_gemm_is_thin(const mhf_gemm_call *call)
{
    /* Short rows of B (a head of attention) are left to the engine. */
    int64_t row = call->b_op == MHF_T ? call->k : call->n;
    return call->m <= 8 && call->a_op == MHF_N && row >= 256 && call->n >= 8 && call->k >= 8;
}

MHF_INLINE float blend(float product, float beta, float old)
{
    return beta == 0.0f ? product : product + beta * old;
}

/* out [GROUP] = the dot products of GROUP rows of A with one row of B, which is read once. */
MHF_INLINE void dot_group(const float *a, int64_t lda, const float *b, int64_t k, float *out)
{
    float lane0[MHF_LANES] = {0}, lane1[MHF_LANES] = {0};
    float lane2[MHF_LANES] = {0}, lane3[MHF_LANES] = {0};
    const float *a0 = a, *a1 = a + lda, *a2 = a + 2 * lda, *a3 = a + 3 * lda;
    int64_t whole = k / MHF_LANES * MHF_LANES;
    for (int64_t p = 0; p < whole; p += MHF_LANES)
        for (int l = 0; l < MHF_LANES; l++) {
            lane0[l] += a0[p + l] * b[p + l];
            lane1[l] += a1[p + l] * b[p + l];
            lane2[l] += a2[p + l] * b[p + l];
            lane3[l] += a3[p + l] * b[p + l];
        }
    out[0] = mhf_add_lanes(lane0) + mhf_dot(a0 + whole, b + whole, k - whole);
    out[1] = mhf_add_lanes(lane1) + mhf_dot(a1 + whole, b + whole, k - whole);
    out[2] = mhf_add_lanes(lane2) + mhf_dot(a2 + whole, b + whole, k - whole);
    out[3] = mhf_add_lanes(lane3) + mhf_dot(a3 + whole, b + whole, k - whole);
}

/* Columns first..last-1 of C = A Bᵀ + beta·C: dot products with rows of B. */
MHF_KERNEL static void thin_nt(const mhf_gemm_call *g, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j++) {
        const float *b = g->b + j * g->ldb;
        int64_t i = 0;
        for (; i + GROUP <= g->m; i += GROUP) {
            float dots[GROUP];
            dot_group(g->a + i * g->lda, g->lda, b, g->k, dots);
            for (int r = 0; r < GROUP; r++) {
                float *c = g->c + (i + r) * g->ldc + j;
                *c = blend(dots[r], g->beta, *c);
            }
        }
        for (; i < g->m; i++) {
            float *c = g->c + i * g->ldc + j;
            *c = blend(mhf_dot(g->a + i * g->lda, b, g->k), g->beta, *c);
        }
    }
}

/* Columns first..last-1 of C = A B + beta·C: sums of rows of B. */
MHF_KERNEL static void thin_nn(const mhf_gemm_call *g, int64_t first, int64_t last)
{
    int64_t n = last - first;
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->ldc + first;
        for (int64_t j = 0; j < n; j++)
            c[j] = blend(0.0f, g->beta, c[j]);
    }
    int64_t p = 0;
    for (; p + GROUP <= g->k; p += GROUP) {
        const float *b0 = g->b + p * g->ldb + first, *b1 = b0 + g->ldb;
        const float *b2 = b1 + g->ldb, *b3 = b2 + g->ldb;
        for (int64_t i = 0; i < g->m; i++) {
            const float *a = g->a + i * g->lda + p;
            float *c = g->c + i * g->ldc + first;
            float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                c[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
        }
    }
    for (; p < g->k; p++) {
        const float *b = g->b + p * g->ldb + first;
        for (int64_t i = 0; i < g->m; i++) {
            float a = g->a[i * g->lda + p], *c = g->c + i * g->ldc + first;
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                c[j] += a * b[j];
        }
    }
}

/* Threads share out columns, so the bits do not depend on their number. */
void mhf_gemm_thin(const mhf_gemm_call *call, int threads)
{
    int64_t work = call->n * call->k;
    if (work < 1 << 15)
        threads = 1;
    int64_t share = (call->n + threads - 1) / threads; /* long runs of each row are read fastest */
    int64_t width = (share < WIDEST ? share + 15 : WIDEST) / 16 * 16;
    int64_t stripes = (call->n + width - 1) / width;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t s = 0; s < stripes; s++) {
        int64_t first = s * width, last = call->n - first < width ? call->n : first + width;
        if (call->b_op == MHF_T)
            thin_nt(call, first, last);
        else
            thin_nn(call, first, last);
    }
}
