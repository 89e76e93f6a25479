/* SPDX-License-Identifier: ISC */
/* Gradients of attention: a tile's probabilities are computed again from the logsumexp. */
#include <omp.h>
#include <stdlib.h>

#include "attention.h"
#include "kernel.h"
#include "transpose.h"

/* p = exp(scale·p - lse) and dp = p (dp - <d_o,o>) scale over the visible keys, 0 elsewhere. */
MHF_KERNEL static void score_gradient(float *p, float *dp, int64_t begin, int64_t end, int64_t keys,
                                      float scale, float lse, const float *d_o, const float *o,
                                      int64_t h)
{
    float delta = mhf_dot(d_o, o, h);
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

typedef struct backward_call {
    mhf_attention_call in;
    const float *o, *lse, *d_o;
    float *dq, *dk, *dv;
} backward_call;

/* One thread's dense arrays of a head [keys,h] (kt and vt transposed), then a tile's. */
typedef struct backward_scratch {
    float *kt, *vt, *k, *dk, *dv, *q, *o, *d_o, *p, *dp;
} backward_scratch;

static int64_t backward_size(const mhf_attention_call *c)
{
    int64_t rows = c->n_q / c->n_kv * mhf_attention_tile_rows(c);
    return 2 * c->h * mhf_attention_stride(c->n) + 3 * (c->n + rows) * c->h + 2 * rows * c->n;
}

static backward_scratch backward_arrays(const mhf_attention_call *c, float *memory)
{
    int64_t rows = c->n_q / c->n_kv * mhf_attention_tile_rows(c);
    int64_t head = c->n * c->h, turned = c->h * mhf_attention_stride(c->n);
    backward_scratch s = {.kt = memory, .vt = memory + turned, .k = memory + 2 * turned};
    s.dk = s.k + head;
    s.dv = s.dk + head;
    s.q = s.dv + head;
    s.o = s.q + rows * c->h;
    s.d_o = s.o + rows * c->h;
    s.p = s.d_o + rows * c->h;
    s.dp = s.p + rows * c->n;
    return s;
}

static void tile_backward(const backward_call *g, const mhf_attention_tile *tile,
                          const backward_scratch *s)
{
    const mhf_attention_call *c = &g->in;
    int64_t group = c->n_q / c->n_kv, rows = tile->t1 - tile->t0, h = c->h, keys = tile->keys;
    int64_t stride = mhf_attention_stride(c->n), all = group * rows;
    float scale = 1.0f / sqrtf((float)h);
    mhf_attention_pack(c, tile, c->q, c->ld_q, s->q);
    mhf_attention_pack(c, tile, g->o, c->ld_o, s->o);
    mhf_attention_pack(c, tile, g->d_o, c->ld_o, s->d_o);
    mhf_gemm_serial(MHF_N, MHF_N, all, keys, h, s->q, h, s->kt + tile->base, stride, 0.0f, s->p,
                    keys);
    mhf_gemm_serial(MHF_N, MHF_N, all, keys, h, s->d_o, h, s->vt + tile->base, stride, 0.0f, s->dp,
                    keys);
    for (int64_t r = 0; r < rows; r++) {
        int64_t begin, end, row = tile->b * c->n + tile->t0 + r;
        mhf_attention_visible(c, tile, tile->t0 + r, &begin, &end);
        for (int64_t a = 0; a < group; a++) {
            int64_t i = a * rows + r;
            score_gradient(s->p + i * keys, s->dp + i * keys, begin, end, keys, scale,
                           g->lse[row * c->n_q + tile->kv * group + a], s->d_o + i * h,
                           s->o + i * h, h);
        }
    }
    mhf_gemm_serial(MHF_T, MHF_N, keys, h, all, s->dp, keys, s->q, h, 1.0f, s->dk + tile->base * h,
                    h);
    mhf_gemm_serial(MHF_T, MHF_N, keys, h, all, s->p, keys, s->d_o, h, 1.0f, s->dv + tile->base * h,
                    h);
    mhf_gemm_serial(MHF_N, MHF_N, all, h, keys, s->dp, keys, s->k + tile->base * h, h, 0.0f, s->o,
                    h); /* o is used up: it takes dq */
    mhf_attention_unpack(c, tile, s->o, g->dq, c->ld_q);
}

/* One thread adds up dk and dv of a key head over its tiles in order: fixed bits. */
static void head_backward(const backward_call *g, int64_t b, int64_t kv, const backward_scratch *s)
{
    const mhf_attention_call *c = &g->in;
    int64_t h = c->h, stride = mhf_attention_stride(c->n), rows = mhf_attention_tile_rows(c);
    int64_t k_at = b * c->n * c->ld_k + kv * h, v_at = b * c->n * c->ld_v + kv * h;
    size_t width = (size_t)h * sizeof(float);
    mhf_transpose(c->k + k_at, c->ld_k, c->n, h, s->kt, stride);
    mhf_transpose(c->v + v_at, c->ld_v, c->n, h, s->vt, stride);
    for (int64_t u = 0; u < c->n; u++)
        memcpy(s->k + u * h, c->k + k_at + u * c->ld_k, width);
    memset(s->dk, 0, (size_t)c->n * width);
    memset(s->dv, 0, (size_t)c->n * width);
    for (int64_t t0 = 0; t0 < c->n; t0 += rows) {
        mhf_attention_tile tile = mhf_attention_tile_at(c, b, kv, t0);
        tile_backward(g, &tile, s);
    }
    for (int64_t u = 0; u < c->n; u++) {
        memcpy(g->dk + k_at + u * c->ld_k, s->dk + u * h, width);
        memcpy(g->dv + v_at + u * c->ld_v, s->dv + u * h, width);
    }
}

mhf_status mhf_attention_backward(const mhf_attention_shape *shape, const float *q, const float *k,
                                  const float *v, const float *o, const float *lse,
                                  const float *d_o, float *dq, float *dk, float *dv)
{
    const mhf_attention_shape *s = shape;
    mhf_attention_call in = {s->blocks, s->T,    0,       s->n_q,   s->n_kv, s->h, s->ld_q,
                             s->ld_k,   s->ld_v, s->ld_o, s->first, q,       k,    v};
    backward_call g = {in, o, lse, d_o, dq, dk, dv};
    int64_t size = backward_size(&in);
    int threads = mhf_kernel_threads(s->blocks * s->n_q * s->T * s->T * s->h);
    float *memory = NULL;
    MHF_TRY(mhf_new(&memory, threads * size, sizeof *memory, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t task = 0; task < s->blocks * s->n_kv; task++) {
        backward_scratch arrays = backward_arrays(&in, memory + omp_get_thread_num() * size);
        head_backward(&g, task / s->n_kv, task % s->n_kv, &arrays);
    }
    free(memory);
    return MHF_OK;
}
