/* SPDX-License-Identifier: ISC */
#include "sign_product.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

enum {
    C = MHF_SIGN_COLUMNS,
    LANES = 8,
    VECTORS = C / LANES, /* of a row of scores */
    TOKENS = 512,        /* a tile's scores stay in the second-level cache */
};

/* Eight columns in one register, where it is that wide. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), may_alias));

/* A chunk's table: 32 KiB, the first-level cache. */
typedef lanes sign_table[MHF_SIGN_GROUPS * MHF_SIGN_TABLE * VECTORS];

/* The sums of four rows under every combination of signs, for columns at `rows`. Only additions and
 * changes of sign stand in the cloned functions, so no width of vectors changes a bit. */
MHF_CLONES
static void fill_table(const float *rows, int64_t stride, lanes *table)
{
    for (int g = 0; g < MHF_SIGN_GROUPS; g++) {
        const float *row = rows + (int64_t)g * MHF_SIGN_BITS * stride;
        for (int v = 0; v < VECTORS; v++) {
            lanes r[MHF_SIGN_BITS];
            for (int i = 0; i < MHF_SIGN_BITS; i++)
                memcpy(&r[i], row + i * stride + v * LANES, sizeof r[i]);
            const lanes low[4] = {-r[0] - r[1], r[0] - r[1], r[1] - r[0], r[0] + r[1]};
            const lanes high[4] = {-r[2] - r[3], r[2] - r[3], r[3] - r[2], r[2] + r[3]};
            lanes *entry = table + (int64_t)g * MHF_SIGN_TABLE * VECTORS + v;
            for (int code = 0; code < MHF_SIGN_TABLE; code++)
                entry[code * VECTORS] = low[code & 3] + high[code >> 2];
        }
    }
}

/* scores [T, C] += the entries that the codes name; codes at the chunk's first group. Two tokens at
 * a time, as additions wait for each other within one; an odd last one goes with itself. Vectors
 * are spelled out, since a compiler left alone keeps these sums in memory. */
MHF_CLONES
static void add_entries(const uint8_t *codes, int64_t T, int64_t groups, const lanes *table,
                        lanes *scores)
{
    for (int64_t t = 0; t < T; t += 2) {
        const uint8_t *code = codes + t * groups, *other = t + 1 < T ? code + groups : code;
        lanes *a = scores + t * VECTORS, *b = a + VECTORS;
        lanes a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        lanes b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
        for (int g = 0; g < MHF_SIGN_GROUPS; g++) {
            const lanes *group = table + (int64_t)g * MHF_SIGN_TABLE * VECTORS;
            const lanes *for_a = group + code[g] * VECTORS;
            const lanes *for_b = group + other[g] * VECTORS;
            a0 += for_a[0];
            a1 += for_a[1];
            a2 += for_a[2];
            a3 += for_a[3];
            b0 += for_b[0];
            b1 += for_b[1];
            b2 += for_b[2];
            b3 += for_b[3];
        }
        a[0] = a0, a[1] = a1, a[2] = a2, a[3] = a3;
        b[0] = b0, b[1] = b1, b[2] = b2, b[3] = b3;
    }
}

static float largest(const float *row)
{
    float half[C / 2];
    for (int c = 0; c < C / 2; c++)
        half[c] = row[c] > row[c + C / 2] ? row[c] : row[c + C / 2];
    for (int c = 0; c < C / 4; c++)
        half[c] = half[c] > half[c + C / 4] ? half[c] : half[c + C / 4];
    float high = half[0];
    for (int c = 1; c < C / 4; c++)
        high = half[c] > high ? half[c] : high;
    return high;
}

/* Only a strictly larger score wins: the first column keeps a tie. Columns first .. first+n-1. */
static void keep_best(const float *scores, int64_t T, int64_t first, int64_t n, float *highest,
                      int32_t *best)
{
    for (int64_t t = 0; t < T; t++) {
        const float *row = scores + t * C;
        if (n == C && !(largest(row) > highest[t]))
            continue;
        for (int64_t c = 0; c < n; c++) {
            if (row[c] > highest[t]) {
                highest[t] = row[c];
                best[t] = (int32_t)(first + c);
            }
        }
    }
}

_Static_assert(VECTORS == 4, "add_entries names four vectors of sums");
_Static_assert(TOKENS % 2 == 0, "add_entries may write scores of one token more");

/* What one thread works in. */
typedef struct workspace {
    sign_table table;
    float scores[TOKENS * C];
    float highest[TOKENS];
} workspace;

static void tile_argmax(const uint8_t *codes, int64_t T, int64_t groups, const float *matrix,
                        int64_t stride, int64_t n, workspace *w, int32_t *best)
{
    for (int64_t t = 0; t < T; t++) {
        w->highest[t] = -INFINITY;
        best[t] = 0;
    }
    for (int64_t first = 0; first < n; first += C) {
        memset(w->scores, 0, (size_t)(T * C) * sizeof *w->scores);
        for (int64_t g = 0; g < groups; g += MHF_SIGN_GROUPS) {
            fill_table(matrix + g * MHF_SIGN_BITS * stride + first, stride, w->table);
            add_entries(codes + g, T, groups, w->table, (lanes *)w->scores);
        }
        keep_best(w->scores, T, first, n - first < C ? n - first : C, w->highest, best);
    }
}

mhf_status mhf_sign_product_argmax(const uint8_t *codes, int64_t T, int64_t groups,
                                   const float *matrix, int64_t stride, int64_t n, int32_t *best)
{
    assert(groups % MHF_SIGN_GROUPS == 0 && stride % C == 0 && n <= stride);
    bool short_of_memory = false;
#pragma omp parallel
    {
        workspace *w;
        mhf_status status = mhf_new(&w, 1, sizeof *w, "the product of sign vectors");
        if (status != MHF_OK) {
#pragma omp atomic write
            short_of_memory = true;
        }
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < T; t += TOKENS)
            if (status == MHF_OK)
                tile_argmax(codes + t * groups, T - t < TOKENS ? T - t : TOKENS, groups, matrix,
                            stride, n, w, best + t);
        free(status == MHF_OK ? w : NULL);
    }
    /* The error text belongs to the thread that failed: say it again here. */
    if (short_of_memory)
        return mhf_fail(MHF_E_NOMEM, "no memory for the product of sign vectors");
    return MHF_OK;
}
