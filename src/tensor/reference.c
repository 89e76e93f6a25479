/* SPDX-License-Identifier: ISC */
/* GEMM in plain loops: what the other engines are compared with, and what runs anywhere. */
#include "engine.h"
#include "kernel.h"

enum { BLOCK_K = 256, BLOCK_N = 512 };

/* Rows first..last-1 of C, cut so that a block of B stays in cache when it is stored by rows. */
MHF_KERNEL static void gemm_rows(const mhf_gemm_call *g, int64_t first, int64_t last)
{
    int64_t a_row = g->a_op == MHF_N ? g->lda : 1, a_col = g->a_op == MHF_N ? 1 : g->lda;
    for (int64_t i = first; i < last; i++) {
        float *c = g->c + i * g->ldc;
        for (int64_t j = 0; j < g->n; j++)
            c[j] = g->beta == 0.0f ? 0.0f : g->beta * c[j];
    }
    for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {
        int64_t p1 = g->k - p0 < BLOCK_K ? g->k : p0 + BLOCK_K;
        for (int64_t j0 = 0; j0 < g->n; j0 += BLOCK_N) {
            int64_t j1 = g->n - j0 < BLOCK_N ? g->n : j0 + BLOCK_N;
            for (int64_t i = first; i < last; i++) {
                float *c = g->c + i * g->ldc;
                const float *a = g->a + i * a_row;
                if (g->b_op == MHF_N) {
                    for (int64_t p = p0; p < p1; p++) {
                        const float *b = g->b + p * g->ldb;
                        float x = a[p * a_col];
#pragma omp simd
                        for (int64_t j = j0; j < j1; j++)
                            c[j] += x * b[j];
                    }
                } else if (a_col == 1) {
                    for (int64_t j = j0; j < j1; j++)
                        c[j] += mhf_dot(a + p0, g->b + j * g->ldb + p0, p1 - p0);
                } else {
                    for (int64_t j = j0; j < j1; j++) {
                        float s = 0.0f;
                        for (int64_t p = p0; p < p1; p++)
                            s += a[p * a_col] * g->b[j * g->ldb + p];
                        c[j] += s;
                    }
                }
            }
        }
    }
}

void mhf_gemm_reference(const mhf_gemm_call *call, int threads)
{
    enum { ROWS = 16 };
    int64_t tiles = (call->m + ROWS - 1) / ROWS;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < tiles; i++) {
        int64_t last = (i + 1) * ROWS;
        gemm_rows(call, i * ROWS, last < call->m ? last : call->m);
    }
}
