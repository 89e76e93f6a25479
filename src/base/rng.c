/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <math.h>
#include <string.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

static const double two_pi = 6.283185307179586476925286766559;

mhf_rng mhf_rng_named(uint64_t seed, const char *name)
{
    uint64_t key = mhf_hash64(name, strlen(name)) ^ (seed * 0x9E3779B97F4A7C15u);
    return (mhf_rng){{(uint32_t)key, (uint32_t)(key >> 32)}};
}

static philox4x32_ctr_t block_of(mhf_rng rng, uint64_t counter)
{
    philox4x32_ctr_t c = {{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}};
    philox4x32_key_t k = {{rng.key[0], rng.key[1]}};
    return philox4x32(c, k);
}

uint64_t mhf_rng_bits(mhf_rng rng, uint64_t i)
{
    philox4x32_ctr_t r = block_of(rng, i / 2);
    int half = (int)(i % 2) * 2;
    return (uint64_t)r.v[half + 1] << 32 | r.v[half];
}

double mhf_rng_uniform(mhf_rng rng, uint64_t i)
{
    return (double)(mhf_rng_bits(rng, i) >> 11) * 0x1p-53;
}

/* Box-Muller: a block of four words gives the four deviates of elements 4c .. 4c+3. */
static void four_normals(mhf_rng rng, uint64_t counter, double out[4])
{
    philox4x32_ctr_t r = block_of(rng, counter);
    for (int pair = 0; pair < 2; pair++) {
        double u1 = ((double)r.v[2 * pair] + 1.0) * 0x1p-32; /* in (0, 1] */
        double u2 = (double)r.v[2 * pair + 1] * 0x1p-32;
        double radius = sqrt(-2.0 * log(u1));
        out[2 * pair] = radius * cos(two_pi * u2);
        out[2 * pair + 1] = radius * sin(two_pi * u2);
    }
}

void mhf_rng_normals(mhf_rng rng, uint64_t first, int64_t n, float *out)
{
    double four[4];
    for (int64_t i = 0; i < n; i++) {
        uint64_t element = first + (uint64_t)i;
        if (i == 0 || element % 4 == 0)
            four_normals(rng, element / 4, four);
        out[i] = (float)four[element % 4];
    }
}

uint64_t mhf_rng_permute(mhf_rng rng, uint64_t i, uint64_t n)
{
    /* A balanced Feistel network over 2·half bits permutes [0, 4^half); walking along the cycle
     * until the value falls below n permutes [0, n). */
    int half = 1;
    while (half < 32 && (uint64_t)1 << (2 * half) < n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint32_t round = 0; round < 6; round++) {
            philox4x32_ctr_t c = {{(uint32_t)right, (uint32_t)(right >> 32), round, 1}};
            philox4x32_key_t k = {{rng.key[0], rng.key[1]}};
            uint64_t next = left ^ (philox4x32(c, k).v[0] & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}
