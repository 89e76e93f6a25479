/* SPDX-License-Identifier: ISC */
/* Gradients of attention: a tile's probabilities are computed again from the logsumexp. */
#include <omp.h>
#include <stdlib.h>

#include "attention.h"
#include "kernel.h"

/* p = exp(scale·p - lse) and dp = p (dp - delta) scale over the visible keys, 0 elsewhere. */
MHF_KERNEL static void score_gradient(float *p, float *dp, int64_t begin, int64_t end, int64_t keys,
                                      float scale, float lse, float delta)
{
    for (int64_t u = 0; u < begin; u++)
        p[u] = dp[u] = 0.0f;
#pragma omp simd
    for (int64_t u = begin; u < end; u++) {
        float x = mhf_expf(p[u] * scale - lse);
        p[u] = x;
        dp[u] = x * (dp[u] - delta) * scale;
    }
    for (int64_t u = end; u < keys; u++)
        p[u] = dp[u] = 0.0f;
}

MHF_KERNEL static float row_dot(const float *x, const float *y, int64_t n)
{
    return mhf_dot(x, y, n);
}

typedef struct backward_call {
    const mhf_attention_shape *s;
    const float *q, *k, *v, *o, *lse, *d_o;
    float *dq, *dk, *dv;
} backward_call;

static void tile_backward(const backward_call *g, int64_t b, int64_t a, int64_t t0, int64_t t1,
                          float *p, float *dp)
{
    const mhf_attention_shape *s = g->s;
    mhf_attention_tile tile = mhf_attention_tile_of(s, b, a, t0, t1, g->q, g->k, g->v);
    int64_t rows = tile.rows, keys = tile.keys, h = s->h, row = b * s->T + t0;
    int64_t kv = a / (s->n_q / s->n_kv), key = b * s->T + tile.key_base;
    const float *o = g->o + row * s->ld_o + a * h, *d_o = g->d_o + row * s->ld_o + a * h;
    float *dk = g->dk + key * s->ld_k + kv * h, *dv = g->dv + key * s->ld_v + kv * h;
    float scale = 1.0f / sqrtf((float)h);

    mhf_gemm_serial(MHF_N, MHF_T, rows, keys, h, tile.q, tile.ld_q, tile.k, tile.ld_k, 0.0f, p,
                    keys);
    mhf_gemm_serial(MHF_N, MHF_T, rows, keys, h, d_o, s->ld_o, tile.v, tile.ld_v, 0.0f, dp, keys);
    for (int64_t i = 0; i < rows; i++) {
        int64_t begin, end;
        mhf_attention_visible(&tile, i, &begin, &end);
        score_gradient(p + i * keys, dp + i * keys, begin, end, keys, scale,
                       g->lse[(row + i) * s->n_q + a],
                       row_dot(o + i * s->ld_o, d_o + i * s->ld_o, h));
    }
    mhf_gemm_serial(MHF_N, MHF_N, rows, h, keys, dp, keys, tile.k, tile.ld_k, 0.0f,
                    g->dq + row * s->ld_q + a * h, s->ld_q);
    mhf_gemm_serial(MHF_T, MHF_N, keys, h, rows, dp, keys, tile.q, tile.ld_q, 1.0f, dk, s->ld_k);
    mhf_gemm_serial(MHF_T, MHF_N, keys, h, rows, p, keys, d_o, s->ld_o, 1.0f, dv, s->ld_v);
}

/* One thread adds up dk and dv of a key head over its query heads and tiles, in that order. */
static void head_backward(const backward_call *g, int64_t b, int64_t kv, float *p, float *dp)
{
    const mhf_attention_shape *s = g->s;
    size_t width = (size_t)s->h * sizeof(float);
    for (int64_t row = b * s->T; row < (b + 1) * s->T; row++) {
        memset(g->dk + row * s->ld_k + kv * s->h, 0, width);
        memset(g->dv + row * s->ld_v + kv * s->h, 0, width);
    }
    int64_t group = s->n_q / s->n_kv;
    for (int64_t a = kv * group; a < (kv + 1) * group; a++)
        for (int64_t t0 = 0; t0 < s->T; t0 += MHF_QUERY_TILE)
            tile_backward(g, b, a, t0, s->T - t0 < MHF_QUERY_TILE ? s->T : t0 + MHF_QUERY_TILE, p,
                          dp);
}

mhf_status mhf_attention_backward(const mhf_attention_shape *shape, const float *q, const float *k,
                                  const float *v, const float *o, const float *lse,
                                  const float *d_o, float *dq, float *dk, float *dv)
{
    const mhf_attention_shape *s = shape;
    backward_call g = {s, q, k, v, o, lse, d_o, dq, dk, dv};
    int64_t scratch = (s->T < MHF_QUERY_TILE ? s->T : MHF_QUERY_TILE) * s->T;
    int threads = mhf_kernel_threads(s->blocks * s->n_q * s->T * s->T);
    float *z = NULL;
    MHF_TRY(mhf_new(&z, 2 * threads * scratch, sizeof *z, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t task = 0; task < s->blocks * s->n_kv; task++) {
        float *p = z + 2 * omp_get_thread_num() * scratch;
        head_backward(&g, task / s->n_kv, task % s->n_kv, p, p + scratch);
    }
    free(z);
    return MHF_OK;
}
