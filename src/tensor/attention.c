/* SPDX-License-Identifier: ISC */
/* Causal grouped-query attention forward: no T×T matrix outlives its tile of queries. */
#include "attention.h"

#include <omp.h>
#include <stdlib.h>

#include "kernel.h"

void mhf_attention_visible(const mhf_attention_tile *tile, int64_t row, int64_t *begin,
                           int64_t *end)
{
    int64_t lo = tile->first ? tile->first[row] - tile->key_base : 0;
    int64_t hi = tile->last + row * tile->step + 1 - tile->key_base;
    *end = hi < 0 ? 0 : hi > tile->keys ? tile->keys : hi;
    *begin = lo < 0 ? 0 : lo > *end ? *end : lo;
}

MHF_KERNEL static float probabilities(float *z, int64_t begin, int64_t end, int64_t keys,
                                      float scale)
{
    for (int64_t u = 0; u < begin; u++)
        z[u] = 0.0f;
    float lse = mhf_softmax_row(z + begin, end - begin, scale);
    for (int64_t u = end; u < keys; u++)
        z[u] = 0.0f;
    return lse;
}

void mhf_attention_tile_forward(const mhf_attention_tile *tile, float *z, float *o, int64_t ld_o,
                                float *lse, int64_t ld_lse)
{
    int64_t rows = tile->rows, keys = tile->keys, h = tile->h;
    float scale = 1.0f / sqrtf((float)h);
    mhf_gemm_serial(MHF_N, MHF_T, rows, keys, h, tile->q, tile->ld_q, tile->k, tile->ld_k, 0.0f, z,
                    keys);
    for (int64_t i = 0; i < rows; i++) {
        int64_t begin, end;
        mhf_attention_visible(tile, i, &begin, &end);
        float sum = probabilities(z + i * keys, begin, end, keys, scale);
        if (lse)
            lse[i * ld_lse] = sum;
    }
    mhf_gemm_serial(MHF_N, MHF_N, rows, h, keys, z, keys, tile->v, tile->ld_v, 0.0f, o, ld_o);
}

mhf_attention_tile mhf_attention_tile_of(const mhf_attention_shape *s, int64_t b, int64_t a,
                                         int64_t t0, int64_t t1, const float *q, const float *k,
                                         const float *v)
{
    int64_t kv = a / (s->n_q / s->n_kv), row = b * s->T + t0, base = 0;
    if (s->first) {
        base = t1;
        for (int64_t i = 0; i < t1 - t0; i++)
            base = s->first[row + i] < base ? s->first[row + i] : base;
        base = base < 0 ? 0 : base;
    }
    int64_t key = b * s->T + base;
    mhf_attention_tile tile = {.rows = t1 - t0,
                               .keys = t1 - base,
                               .h = s->h,
                               .q = q + row * s->ld_q + a * s->h,
                               .k = k + key * s->ld_k + kv * s->h,
                               .v = v + key * s->ld_v + kv * s->h,
                               .ld_q = s->ld_q,
                               .ld_k = s->ld_k,
                               .ld_v = s->ld_v,
                               .first = s->first ? s->first + row : NULL,
                               .key_base = base,
                               .last = t0,
                               .step = 1};
    return tile;
}

mhf_status mhf_attention(const mhf_attention_shape *shape, const float *q, const float *k,
                         const float *v, float *o, float *lse)
{
    const mhf_attention_shape *s = shape;
    int64_t tiles = (s->T + MHF_QUERY_TILE - 1) / MHF_QUERY_TILE;
    int64_t tasks = s->blocks * s->n_q * tiles;
    int64_t scratch = (s->T < MHF_QUERY_TILE ? s->T : MHF_QUERY_TILE) * s->T;
    int threads = mhf_kernel_threads(s->blocks * s->n_q * s->T * s->T);
    float *z = NULL;
    MHF_TRY(mhf_new(&z, threads * scratch, sizeof *z, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t task = 0; task < tasks; task++) {
        int64_t t0 = task % tiles * MHF_QUERY_TILE;
        int64_t a = task / tiles % s->n_q, b = task / tiles / s->n_q;
        int64_t t1 = s->T - t0 < MHF_QUERY_TILE ? s->T : t0 + MHF_QUERY_TILE;
        int64_t row = b * s->T + t0;
        mhf_attention_tile tile = mhf_attention_tile_of(s, b, a, t0, t1, q, k, v);
        mhf_attention_tile_forward(&tile, z + omp_get_thread_num() * scratch,
                                   o + row * s->ld_o + a * s->h, s->ld_o, lse + row * s->n_q + a,
                                   s->n_q);
    }
    free(z);
    return MHF_OK;
}

mhf_status mhf_attention_cached(int64_t n, int64_t past, int64_t n_q, int64_t n_kv, int64_t h,
                                const float *q, const float *k, const float *v, float *o)
{
    int64_t group = n_q / n_kv, ld_q = n_q * h, ld_k = n_kv * h;
    /* One new token: all query heads of a group see the same keys and stand row by row. */
    bool single = n == 1;
    int64_t tiles = single ? 1 : (n + MHF_QUERY_TILE - 1) / MHF_QUERY_TILE;
    int64_t heads = single ? n_kv : n_q;
    int64_t rows = single ? group : n < MHF_QUERY_TILE ? n : MHF_QUERY_TILE;
    int64_t scratch = rows * (past + n);
    int threads = mhf_kernel_threads(n_q * n * (past + n) * h);
    float *z = NULL;
    MHF_TRY(mhf_new(&z, threads * scratch, sizeof *z, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t task = 0; task < heads * tiles; task++) {
        int64_t a = task / tiles, t0 = task % tiles * MHF_QUERY_TILE;
        int64_t t1 = n - t0 < MHF_QUERY_TILE ? n : t0 + MHF_QUERY_TILE;
        int64_t kv = single ? a : a / group;
        int64_t column = single ? a * group * h : a * h;
        mhf_attention_tile tile = {.rows = single ? group : t1 - t0,
                                   .keys = past + t1,
                                   .h = h,
                                   .q = q + t0 * ld_q + column,
                                   .k = k + kv * h,
                                   .v = v + kv * h,
                                   .ld_q = single ? h : ld_q,
                                   .ld_k = ld_k,
                                   .ld_v = ld_k,
                                   .last = past + t0,
                                   .step = single ? 0 : 1};
        mhf_attention_tile_forward(&tile, z + omp_get_thread_num() * scratch,
                                   o + t0 * ld_q + column, tile.ld_q, NULL, 0);
    }
    free(z);
    return MHF_OK;
}
