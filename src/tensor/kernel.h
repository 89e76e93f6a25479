/* SPDX-License-Identifier: ISC */
/* What the kernels of this room share: run-time dispatch to the CPU's vector width, sums in a fixed
 * order, exp, and how many threads a piece of work deserves.
 *
 * A kernel is a plain function over rows, marked MHF_KERNEL; the OpenMP loop around it stands in a
 * function of its own, because the body of a parallel region is not compiled for each CPU. */
#ifndef MHF_TENSOR_KERNEL_H
#define MHF_TENSOR_KERNEL_H

#include <math.h>
#include <string.h>

#include "mhf/tensor.h"

/* Binaries move between machines, so the width is chosen when the program starts. Sanitizers do not
 * support the resolvers; Clang 14 does not know these names. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MHF_SANITIZE)
#define MHF_KERNEL                                                                                 \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#else
#define MHF_KERNEL
#endif
#define MHF_INLINE static inline __attribute__((always_inline))

/* Sums run in this many lanes, which are then added in a fixed order: the same on every CPU. */
enum { MHF_LANES = 16, MHF_MAX_LANES = 32 };

/** Threads for `work` element operations: 1 when it is small or inside a parallel region. */
int mhf_kernel_threads(int64_t work);

/** Where part i of n begins when `total` is cut into n nearly equal parts. */
MHF_INLINE int64_t mhf_part(int64_t total, int64_t i, int64_t n)
{
    return total / n * i + (total % n < i ? total % n : i);
}

/** e^x within 2 ulp on [-87.3, 88.3], 0 below, infinity above, NaN for NaN. */
MHF_INLINE float mhf_expf(float x)
{
    /* x = n ln 2 + r, |r| <= ln 2 / 2; adding 1.5·2^23 rounds to an integer that stands in the low
     * mantissa bits. ln 2 is cut in two so that n·high is exact. */
    const float magic = 12582912.0f;
    float shifted = x * 1.44269504f + magic;
    float n = shifted - magic;
    float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    /* (e^r - 1 - r) / r²; least maximum error for e^r: 3e-9. */
    float q = 1.381453936e-3f;
    q = q * r + 8.368745184e-3f;
    q = q * r + 4.166839080e-2f;
    q = q * r + 1.666652040e-1f;
    q = q * r + 4.999999343e-1f;
    float p = q * (r * r) + r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    float y = p * scale;
    y = x < -87.33f ? 0.0f : y;
    return x > 88.37f ? INFINITY : y;
}

/** 1 / (1 + e^-x). */
MHF_INLINE float mhf_sigmoid(float x)
{
    return 1.0f / (1.0f + mhf_expf(-x));
}

/* Halves are added to each other until one lane is left. */
MHF_INLINE float mhf_add_lanes(const float lane[MHF_LANES])
{
    float eight[8], four[4];
    for (int l = 0; l < 8; l++)
        eight[l] = lane[l] + lane[l + 8];
    for (int l = 0; l < 4; l++)
        four[l] = eight[l] + eight[l + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/** Σ x_i y_i. */
MHF_INLINE float mhf_dot(const float *x, const float *y, int64_t n)
{
    float lane[MHF_LANES] = {0};
    float rest = 0.0f;
    int64_t i = 0;
    for (; i + MHF_LANES <= n; i += MHF_LANES)
        for (int l = 0; l < MHF_LANES; l++)
            lane[l] += x[i + l] * y[i + l];
    for (; i < n; i++)
        rest += x[i] * y[i];
    return mhf_add_lanes(lane) + rest;
}

/** Σ x_i. */
MHF_INLINE float mhf_sum(const float *x, int64_t n)
{
    float lane[MHF_LANES] = {0};
    float rest = 0.0f;
    int64_t i = 0;
    for (; i + MHF_LANES <= n; i += MHF_LANES)
        for (int l = 0; l < MHF_LANES; l++)
            lane[l] += x[i + l];
    for (; i < n; i++)
        rest += x[i];
    return mhf_add_lanes(lane) + rest;
}

/** Maximum of x; -infinity for n = 0; NaN is passed over. */
MHF_INLINE float mhf_max(const float *x, int64_t n)
{
    float lane[MHF_MAX_LANES];
    float best = -INFINITY;
    for (int l = 0; l < MHF_MAX_LANES; l++)
        lane[l] = -INFINITY;
    int64_t i = 0;
    for (; i + MHF_MAX_LANES <= n; i += MHF_MAX_LANES)
        for (int l = 0; l < MHF_MAX_LANES; l++)
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    for (int l = 0; l < MHF_MAX_LANES; l++)
        best = lane[l] > best ? lane[l] : best;
    return best;
}

/** z = softmax(scale·z) over n elements; returns log Σ exp(scale·z). All of -infinity gives zeros.
 */
MHF_INLINE float mhf_softmax_row(float *z, int64_t n, float scale)
{
    float top = mhf_max(z, n) * scale;
    float shift = top == -INFINITY ? 0.0f : top;
    float sum = 0.0f;
    for (int64_t first = 0; first < n; first += 1024) {
        int64_t count = n - first < 1024 ? n - first : 1024;
        float *part = z + first;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            part[i] = mhf_expf(part[i] * scale - shift);
        sum += mhf_sum(part, count);
    }
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        z[i] *= inverse;
    return shift + logf(sum);
}

#endif
