/* SPDX-License-Identifier: ISC */
#include "transpose.h"

#include "kernel.h"

typedef float four __attribute__((vector_size(16)));

MHF_INLINE four load(const float *x)
{
    four y;
    memcpy(&y, x, sizeof y);
    return y;
}

MHF_INLINE void store(float *y, four x)
{
    memcpy(y, &x, sizeof x);
}

/* to[j·ld_to + i] = from[i·ld_from + j] for i, j < 4. */
MHF_INLINE void transpose4(const float *from, int64_t ld_from, float *to, int64_t ld_to)
{
    four a = load(from), b = load(from + ld_from);
    four c = load(from + 2 * ld_from), d = load(from + 3 * ld_from);
    four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    store(to + ld_to, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
    store(to + 2 * ld_to, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    store(to + 3 * ld_to, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

/* Rows are often a large power of two apart, where they all fall on the same few cache sets: so
 * four rows at a time, a whole line of each. */
enum { STEP = 16 };

MHF_KERNEL void mhf_transpose(const float *from, int64_t ld_from, int64_t rows, int64_t cols,
                              float *to, int64_t ld_to)
{
    int64_t whole_rows = rows / 4 * 4, whole_cols = cols / STEP * STEP;
    for (int64_t j0 = 0; j0 < whole_cols; j0 += STEP)
        for (int64_t i = 0; i < whole_rows; i += 4)
            for (int64_t j = j0; j < j0 + STEP; j += 4)
                transpose4(from + i * ld_from + j, ld_from, to + j * ld_to + i, ld_to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_cols : 0; j < cols; j++)
            to[j * ld_to + i] = from[i * ld_from + j];
}

MHF_KERNEL void mhf_to_lanes(const float *rows, int64_t n, int64_t B, float *cells)
{
    int64_t whole = n == MHF_TOKENS ? B / STEP * STEP : 0;
    for (int64_t b = 0; b < whole; b += STEP)
        for (int64_t i = 0; i < MHF_TOKENS; i += 4)
            for (int64_t j = b; j < b + STEP; j += 4)
                transpose4(rows + i * B + j, B, cells + j * MHF_TOKENS + i, MHF_TOKENS);
    for (int64_t b = whole; b < B; b++)
        for (int64_t i = 0; i < MHF_TOKENS; i++)
            cells[b * MHF_TOKENS + i] = i < n ? rows[i * B + b] : 0.0f;
}

MHF_KERNEL void mhf_from_lanes(const float *cells, int64_t n, int64_t B, float *rows)
{
    int64_t whole = n == MHF_TOKENS ? B / STEP * STEP : 0;
    for (int64_t b = 0; b < whole; b += STEP)
        for (int64_t i = 0; i < MHF_TOKENS; i += 4)
            for (int64_t j = b; j < b + STEP; j += 4)
                transpose4(cells + j * MHF_TOKENS + i, MHF_TOKENS, rows + i * B + j, B);
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = whole; b < B; b++)
            rows[i * B + b] = cells[b * MHF_TOKENS + i];
}
