/* SPDX-License-Identifier: ISC */
/* Causal grouped-query attention forward: no T×T matrix outlives its tile of queries. */
#include "attention.h"

#include <omp.h>
#include <stdlib.h>

#include "kernel.h"
#include "transpose.h"

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

/* One thread's arrays: keys transposed [h,stride], values [keys,h], then a tile's. */
typedef struct forward_scratch {
    float *kt, *v, *q, *o, *z;
} forward_scratch;

static int64_t forward_size(const mhf_attention_call *c)
{
    int64_t keys = c->past + c->n, rows = c->n_q / c->n_kv * mhf_attention_tile_rows(c);
    return c->h * mhf_attention_stride(keys) + (keys + 2 * rows) * c->h + rows * keys;
}

static forward_scratch forward_arrays(const mhf_attention_call *c, float *memory)
{
    int64_t keys = c->past + c->n, rows = c->n_q / c->n_kv * mhf_attention_tile_rows(c);
    forward_scratch s = {.kt = memory};
    s.v = s.kt + c->h * mhf_attention_stride(keys);
    s.q = s.v + keys * c->h;
    s.o = s.q + rows * c->h;
    s.z = s.o + rows * c->h;
    return s;
}

static void tile_forward(const mhf_attention_call *c, const mhf_attention_tile *tile,
                         const forward_scratch *s, float *o, float *lse)
{
    int64_t group = c->n_q / c->n_kv, rows = tile->t1 - tile->t0, h = c->h, keys = tile->keys;
    float scale = 1.0f / sqrtf((float)h);
    mhf_attention_pack(c, tile, c->q, c->ld_q, s->q);
    mhf_gemm_serial(MHF_N, MHF_N, group * rows, keys, h, s->q, h, s->kt + tile->base,
                    mhf_attention_stride(c->past + c->n), 0.0f, s->z, keys);
    for (int64_t r = 0; r < rows; r++) {
        int64_t begin, end, row = tile->b * c->n + tile->t0 + r;
        mhf_attention_visible(c, tile, tile->t0 + r, &begin, &end);
        for (int64_t g = 0; g < group; g++) {
            float sum = probabilities(s->z + (g * rows + r) * keys, begin, end, keys, scale);
            if (lse)
                lse[row * c->n_q + tile->kv * group + g] = sum;
        }
    }
    mhf_gemm_serial(MHF_N, MHF_N, group * rows, h, keys, s->z, keys, s->v + tile->base * h, h, 0.0f,
                    s->o, h);
    mhf_attention_unpack(c, tile, s->o, o, c->ld_o);
}

/* Tiles first..last-1 of a block's queries for one key head. */
static void head_forward(const mhf_attention_call *c, int64_t b, int64_t kv, int64_t first,
                         int64_t last, const forward_scratch *s, float *o, float *lse)
{
    int64_t rows = mhf_attention_tile_rows(c), h = c->h, all = c->past + c->n;
    int64_t end = c->past + (last * rows < c->n ? last * rows : c->n);
    const float *k = c->k + b * all * c->ld_k + kv * h, *v = c->v + b * all * c->ld_v + kv * h;
    mhf_transpose(k, c->ld_k, end, h, s->kt, mhf_attention_stride(all));
    for (int64_t u = 0; u < end; u++)
        memcpy(s->v + u * h, v + u * c->ld_v, (size_t)h * sizeof *v);
    for (int64_t i = first; i < last; i++) {
        mhf_attention_tile tile = mhf_attention_tile_at(c, b, kv, i * rows);
        tile_forward(c, &tile, s, o, lse);
    }
}

static mhf_status forward(const mhf_attention_call *c, float *o, float *lse)
{
    int64_t rows = mhf_attention_tile_rows(c), tiles = (c->n + rows - 1) / rows;
    int64_t heads = c->blocks * c->n_kv, size = forward_size(c);
    int threads = mhf_kernel_threads(heads * c->n * (c->past + c->n) * c->h);
    /* With few heads their tiles are shared out too; a tile's bits do not depend on that. */
    int64_t parts = heads >= 2 * threads ? 1 : 4;
    parts = parts < tiles ? parts : tiles;
    float *memory = NULL;
    MHF_TRY(mhf_new(&memory, threads * size, sizeof *memory, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t task = 0; task < heads * parts; task++) {
        int64_t head = task / parts, part = task % parts;
        forward_scratch s = forward_arrays(c, memory + omp_get_thread_num() * size);
        head_forward(c, head / c->n_kv, head % c->n_kv, mhf_part(tiles, part, parts),
                     mhf_part(tiles, part + 1, parts), &s, o, lse);
    }
    free(memory);
    return MHF_OK;
}

mhf_status mhf_attention(const mhf_attention_shape *shape, const float *q, const float *k,
                         const float *v, float *o, float *lse)
{
    const mhf_attention_shape *s = shape;
    mhf_attention_call call = {s->blocks, s->T,    0,       s->n_q,   s->n_kv, s->h, s->ld_q,
                               s->ld_k,   s->ld_v, s->ld_o, s->first, q,       k,    v};
    return forward(&call, o, lse);
}

/* A single query position: the heads of a group are dense rows already, and the keys are read once,
 * so copying them would only cost. */
static mhf_status single_query(const mhf_attention_call *c, float *o)
{
    int64_t group = c->n_q / c->n_kv, h = c->h, keys = c->past + 1;
    int threads = mhf_kernel_threads(c->n_q * keys * h);
    float scale = 1.0f / sqrtf((float)h);
    float *z = NULL;
    MHF_TRY(mhf_new(&z, c->n_q * keys, sizeof *z, "attention scores"));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t kv = 0; kv < c->n_kv; kv++) {
        float *scores = z + kv * group * keys;
        mhf_gemm_serial(MHF_N, MHF_T, group, keys, h, c->q + kv * group * h, h, c->k + kv * h,
                        c->ld_k, 0.0f, scores, keys);
        for (int64_t g = 0; g < group; g++)
            probabilities(scores + g * keys, 0, keys, keys, scale);
        mhf_gemm_serial(MHF_N, MHF_N, group, h, keys, scores, keys, c->v + kv * h, c->ld_v, 0.0f,
                        o + kv * group * h, h);
    }
    free(z);
    return MHF_OK;
}

mhf_status mhf_attention_cached(int64_t n, int64_t past, int64_t n_q, int64_t n_kv, int64_t h,
                                const float *q, const float *k, const float *v, float *o)
{
    mhf_attention_call call = {1,        n,        past,    n_q,  n_kv, h, n_q * h,
                               n_kv * h, n_kv * h, n_q * h, NULL, q,    k, v};
    return n == 1 ? single_query(&call, o) : forward(&call, o, NULL);
}
