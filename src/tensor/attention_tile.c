/* SPDX-License-Identifier: ISC */
#include "attention.h"

#include <string.h>

int64_t mhf_attention_tile_rows(const mhf_attention_call *call)
{
    /* More rows fill the engine's kernels; fewer waste less above the diagonal. */
    int64_t rows = 192 / (call->n_q / call->n_kv) / 8 * 8;
    return rows < 16 ? 16 : rows > 64 ? 64 : rows;
}

int64_t mhf_attention_stride(int64_t keys)
{
    return (keys + 15) / 16 * 16 + 16;
}

mhf_attention_tile mhf_attention_tile_at(const mhf_attention_call *call, int64_t b, int64_t kv,
                                         int64_t t0)
{
    int64_t rows = mhf_attention_tile_rows(call);
    int64_t t1 = call->n - t0 < rows ? call->n : t0 + rows;
    int64_t end = call->past + t1, base = 0;
    if (call->first) {
        base = end;
        for (int64_t t = t0; t < t1; t++) {
            int64_t first = call->first[b * call->n + t];
            base = first < base ? first : base;
        }
        base = base < 0 ? 0 : base;
    }
    mhf_attention_tile tile = {b, kv, t0, t1, base, end - base};
    return tile;
}

void mhf_attention_visible(const mhf_attention_call *call, const mhf_attention_tile *tile,
                           int64_t t, int64_t *begin, int64_t *end)
{
    int64_t first = call->first ? call->first[tile->b * call->n + t] - tile->base : 0;
    *end = call->past + t + 1 - tile->base;
    *end = *end < 0 ? 0 : *end;
    *begin = first < 0 ? 0 : first > *end ? *end : first;
}

void mhf_attention_pack(const mhf_attention_call *call, const mhf_attention_tile *tile,
                        const float *x, int64_t ld, float *dense)
{
    int64_t group = call->n_q / call->n_kv, h = call->h;
    for (int64_t g = 0; g < group; g++)
        for (int64_t t = tile->t0; t < tile->t1; t++, dense += h)
            memcpy(dense, x + (tile->b * call->n + t) * ld + (tile->kv * group + g) * h,
                   (size_t)h * sizeof *dense);
}

void mhf_attention_unpack(const mhf_attention_call *call, const mhf_attention_tile *tile,
                          const float *dense, float *x, int64_t ld)
{
    int64_t group = call->n_q / call->n_kv, h = call->h;
    for (int64_t g = 0; g < group; g++)
        for (int64_t t = tile->t0; t < tile->t1; t++, dense += h)
            memcpy(x + (tile->b * call->n + t) * ld + (tile->kv * group + g) * h, dense,
                   (size_t)h * sizeof *dense);
}
