/* SPDX-License-Identifier: ISC */
/* The `vocabulary` objective: softmax over whole tokens, whose logits are sums of H gathered ones.
 *
 * TOKENS positions are done together and stored last: a gather then moves a full cache line, and
 * the lanes of a vector are positions. One thread does a tile alone, so the bits are fixed. */
#include <omp.h>
#include <stdlib.h>

#include "kernel.h"
#include "transpose.h"

enum { TOKENS = MHF_TOKENS, ROWS = 256 };

typedef struct vocabulary_call {
    const float *const *z;
    const uint32_t *sig;
    const int32_t *target;
    int64_t T, H, B, V;
    float scale;
    float *const *dz;
    double *nats;     /* [T] */
    uint8_t *correct; /* [T] */
} vocabulary_call;

/* The lanes of a cell as two vectors: the gathers wait for memory, and few instructions a cell let
 * the CPU look further ahead. */
enum { HALF = TOKENS / 2 };
typedef float lanes __attribute__((vector_size(HALF * sizeof(float)), may_alias));
typedef int32_t lane_ids __attribute__((vector_size(HALF * sizeof(int32_t)), may_alias));

/* logits [V,TOKENS] = Σ_k cells_k[sig_k(v)]; top [TOKENS] and the first row that has it. */
MHF_KERNEL static void gather_logits(const float *cells, const uint32_t *sig, int64_t H, int64_t B,
                                     int64_t V, float *logits, float *top, int32_t *arg)
{
    lanes top0 = (lanes){0} - INFINITY, top1 = top0;
    lane_ids arg0 = {0}, arg1 = {0};
    for (int64_t v = 0; v < V; v++) {
        const uint32_t *ids = sig + v * H;
        lanes sum0 = {0}, sum1 = {0};
        for (int64_t k = 0; k < H; k++) {
            const lanes *cell = (const lanes *)(cells + (k * B + ids[k]) * TOKENS);
            sum0 += cell[0];
            sum1 += cell[1];
        }
        lanes *row = (lanes *)(logits + v * TOKENS);
        row[0] = sum0;
        row[1] = sum1;
        lane_ids above0 = sum0 > top0, above1 = sum1 > top1, here = (lane_ids){0} + (int32_t)v;
        arg0 = (above0 & here) | (~above0 & arg0);
        arg1 = (above1 & here) | (~above1 & arg1);
        top0 = (lanes)(((lane_ids)sum0 & above0) | ((lane_ids)top0 & ~above0));
        top1 = (lanes)(((lane_ids)sum1 & above1) | ((lane_ids)top1 & ~above1));
    }
    memcpy(top, &top0, sizeof top0);
    memcpy(top + HALF, &top1, sizeof top1);
    memcpy(arg, &arg0, sizeof arg0);
    memcpy(arg + HALF, &arg1, sizeof arg1);
}

/* logits become exp(logits - top); total [TOKENS] their sums, added in groups of ROWS. */
MHF_KERNEL static void exponentials(float *logits, int64_t V, const float *top, float *total)
{
    for (int l = 0; l < TOKENS; l++)
        total[l] = 0.0f;
    for (int64_t v0 = 0; v0 < V; v0 += ROWS) {
        int64_t v1 = V - v0 < ROWS ? V : v0 + ROWS;
        float sum[TOKENS] = {0};
        for (int64_t v = v0; v < v1; v++)
            for (int l = 0; l < TOKENS; l++)
                logits[v * TOKENS + l] -= top[l];
#pragma omp simd
        for (int64_t i = v0 * TOKENS; i < v1 * TOKENS; i++)
            logits[i] = mhf_expf(logits[i]);
        for (int64_t v = v0; v < v1; v++)
            for (int l = 0; l < TOKENS; l++)
                sum[l] += logits[v * TOKENS + l];
        for (int l = 0; l < TOKENS; l++)
            total[l] += sum[l];
    }
}

/* cells_k[sig_k(v)] += weight·p[v], rows v in order. */
MHF_KERNEL static void scatter(const float *p, const float *weight, const uint32_t *sig, int64_t H,
                               int64_t B, int64_t V, float *cells)
{
    lanes weight0, weight1;
    memcpy(&weight0, weight, sizeof weight0);
    memcpy(&weight1, weight + HALF, sizeof weight1);
    for (int64_t v = 0; v < V; v++) {
        const uint32_t *ids = sig + v * H;
        const lanes *row = (const lanes *)(p + v * TOKENS);
        lanes add0 = row[0] * weight0, add1 = row[1] * weight1;
        for (int64_t k = 0; k < H; k++) {
            lanes *cell = (lanes *)(cells + (k * B + ids[k]) * TOKENS);
            cell[0] += add0;
            cell[1] += add1;
        }
    }
}

/* Gradient of the tile's cells in place of the cells, then out to dz. */
static void tile_backward(const vocabulary_call *g, int64_t t0, int64_t n, const float *total,
                          const float *p, float *cells)
{
    float weight[TOKENS] = {0};
    for (int64_t i = 0; i < n; i++)
        weight[i] = g->target[t0 + i] >= 0 ? g->scale / total[i] : 0.0f;
    memset(cells, 0, (size_t)(g->H * g->B * TOKENS) * sizeof *cells);
    scatter(p, weight, g->sig, g->H, g->B, g->V, cells);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < g->H && g->target[t0 + i] >= 0; k++) {
            int64_t bucket = g->sig[g->target[t0 + i] * g->H + k];
            cells[(k * g->B + bucket) * TOKENS + i] -= g->scale;
        }
    for (int64_t k = 0; k < g->H; k++)
        mhf_from_lanes(cells + k * g->B * TOKENS, n, g->B, g->dz[k] + t0 * g->B);
}

static void tile_without_targets(const vocabulary_call *g, int64_t t0, int64_t n)
{
    for (int64_t k = 0; k < g->H && g->dz; k++)
        memset(g->dz[k] + t0 * g->B, 0, (size_t)(n * g->B) * sizeof(float));
}

/* Positions t0..t0+n-1; scratch holds H·B + V rows of TOKENS. */
static void run_tile(const vocabulary_call *g, int64_t t0, int64_t n, float *scratch)
{
    float *cells = scratch, *logits = scratch + g->H * g->B * TOKENS;
    float top[TOKENS], total[TOKENS], at_target[TOKENS] = {0};
    int32_t arg[TOKENS];
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        any = any || g->target[t0 + i] >= 0;
    if (!any) {
        tile_without_targets(g, t0, n);
        return;
    }
    for (int64_t k = 0; k < g->H; k++)
        mhf_to_lanes(g->z[k] + t0 * g->B, n, g->B, cells + k * g->B * TOKENS);
    gather_logits(cells, g->sig, g->H, g->B, g->V, logits, top, arg);
    for (int64_t i = 0; i < n; i++)
        if (g->target[t0 + i] >= 0)
            at_target[i] = logits[g->target[t0 + i] * TOKENS + i];
    exponentials(logits, g->V, top, total);
    for (int64_t i = 0; i < n; i++) {
        int32_t w = g->target[t0 + i];
        if (w < 0)
            continue;
        g->nats[t0 + i] = (double)top[i] + log((double)total[i]) - (double)at_target[i];
        g->correct[t0 + i] = arg[i] == w;
    }
    if (g->dz)
        tile_backward(g, t0, n, total, logits, cells);
}

mhf_status mhf_vocabulary_loss(const float *const *z, const uint32_t *sig, const int32_t *target,
                               int64_t T, int64_t H, int64_t B, int64_t V, float scale,
                               float *const *dz, double *nats, int64_t *correct)
{
    vocabulary_call g = {z, sig, target, T, H, B, V, scale, dz, NULL, NULL};
    int64_t tiles = (T + TOKENS - 1) / TOKENS, size = (H * B + V) * TOKENS;
    int threads = mhf_kernel_threads(T * V);
    float *scratch = NULL;
    mhf_status status = MHF_OK;
    *nats = 0.0;
    *correct = 0;
    if ((status = mhf_new(&g.nats, T, sizeof *g.nats, "losses of tokens")) ||
        (status = mhf_new(&g.correct, T, sizeof *g.correct, "hits of tokens")) ||
        (status = mhf_new(&scratch, threads * size, sizeof *scratch, "vocabulary logits")))
        goto out;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < tiles; i++) {
        int64_t t0 = i * TOKENS;
        run_tile(&g, t0, T - t0 < TOKENS ? T - t0 : TOKENS, scratch + omp_get_thread_num() * size);
    }
    for (int64_t t = 0; t < T; t++) {
        *nats += g.nats[t];
        *correct += g.correct[t];
    }
out:
    free(g.nats);
    free(g.correct);
    free(scratch);
    return status;
}

/* logits[v] = factor Σ_k z_k[t,sig_k(v)] for v in first..last-1. */
MHF_KERNEL static void logits_of(const float *const *z, int64_t t, const uint32_t *sig, int64_t H,
                                 int64_t B, int64_t first, int64_t last, float factor,
                                 float *logits)
{
    for (int64_t v = first; v < last; v++)
        logits[v] = z[0][t * B + sig[v * H]];
    for (int64_t k = 1; k < H; k++) {
        const float *row = z[k] + t * B;
        for (int64_t v = first; v < last; v++)
            logits[v] += row[sig[v * H + k]];
    }
    for (int64_t v = first; v < last; v++)
        logits[v] *= factor;
}

void mhf_vocabulary_logits(const float *const *z, const uint32_t *sig, int64_t T, int64_t H,
                           int64_t B, int64_t V, float inverse_temperature, float *logits)
{
    enum { CHUNK = 2048 };
    int64_t chunks = (V + CHUNK - 1) / CHUNK;
#pragma omp parallel for num_threads(mhf_kernel_threads(T *V *H)) schedule(static)
    for (int64_t task = 0; task < T * chunks; task++) {
        int64_t t = task / chunks, first = task % chunks * CHUNK;
        logits_of(z, t, sig, H, B, first, V - first < CHUNK ? V : first + CHUNK,
                  inverse_temperature, logits + t * V);
    }
}
