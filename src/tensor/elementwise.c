/* SPDX-License-Identifier: ISC */
/* Kernels over flat arrays. */
#include "kernel.h"

/* Flat arrays are cut into pieces of this many elements, whatever the number of threads. */
enum { PIECE = 1 << 14 };

static int64_t pieces(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

static int64_t piece_length(int64_t n, int64_t i)
{
    return n - i * PIECE < PIECE ? n - i * PIECE : PIECE;
}

MHF_KERNEL static void add_piece(const float *x, int64_t n, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

void mhf_add(const float *x, int64_t n, float *y)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(n)) schedule(static)
    for (int64_t i = 0; i < pieces(n); i++)
        add_piece(x + i * PIECE, piece_length(n, i), y + i * PIECE);
}

MHF_KERNEL static void scale_piece(float a, int64_t n, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= a;
}

void mhf_scale(float a, int64_t n, float *y)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(n)) schedule(static)
    for (int64_t i = 0; i < pieces(n); i++)
        scale_piece(a, piece_length(n, i), y + i * PIECE);
}

/* Squares of float32 are exact in double, so a fused multiply-add changes no bit. */
MHF_KERNEL double mhf_sum_of_squares(const float *x, int64_t n)
{
    double lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i] * (double)x[i];
    double sum = 0.0;
    for (int l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

/* Does a piece hold an exponent of all ones? */
MHF_KERNEL static uint32_t piece_is_nonfinite(const float *x, int64_t n)
{
    const uint32_t exponent = 0x7f800000u;
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found;
}

int64_t mhf_find_nonfinite(const float *x, int64_t n)
{
    enum { STEP = 4096 };
    for (int64_t first = 0; first < n; first += STEP) {
        int64_t count = n - first < STEP ? n - first : STEP;
        if (!piece_is_nonfinite(x + first, count))
            continue;
        for (int64_t i = first; i < first + count; i++)
            if (!isfinite(x[i]))
                return i;
    }
    return -1;
}

MHF_KERNEL static void silu_piece(const float *x, int64_t n, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * mhf_sigmoid(x[i]);
}

void mhf_silu(const float *x, int64_t n, float *y)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(n)) schedule(static)
    for (int64_t i = 0; i < pieces(n); i++)
        silu_piece(x + i * PIECE, piece_length(n, i), y + i * PIECE);
}

MHF_KERNEL static void silu_backward_piece(const float *x, const float *dy, int64_t n, float *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float s = mhf_sigmoid(x[i]);
        dx[i] = dy[i] * s * (1.0f + x[i] * (1.0f - s));
    }
}

void mhf_silu_backward(const float *x, const float *dy, int64_t n, float *dx)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(n)) schedule(static)
    for (int64_t i = 0; i < pieces(n); i++)
        silu_backward_piece(x + i * PIECE, dy + i * PIECE, piece_length(n, i), dx + i * PIECE);
}
