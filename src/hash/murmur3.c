/* SPDX-License-Identifier: ISC */
/* MurmurHash3_x64_128. Bytes are put together by shifts, so neither alignment nor the machine's
 * byte order can change a hash. */
#include "mhf/hash.h"

#include <assert.h>

static const uint64_t C1 = 0x87c37b91114253d5u, C2 = 0x4cf5ad432745937fu;

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* The n ≤ 8 bytes at `bytes` as a little-endian integer. */
static uint64_t load(const uint8_t *bytes, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)bytes[i] << (8 * i);
    return x;
}

static uint64_t scramble_low(uint64_t k)
{
    return rotate(k * C1, 31) * C2;
}

static uint64_t scramble_high(uint64_t k)
{
    return rotate(k * C2, 33) * C1;
}

static uint64_t avalanche(uint64_t k)
{
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdu;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53u;
    return k ^ (k >> 33);
}

mhf_hash128 mhf_murmur3(const void *bytes, size_t n, uint32_t seed)
{
    const uint8_t *at = bytes;
    uint64_t h1 = seed, h2 = seed;
    size_t left = n;
    for (; left >= 16; left -= 16, at += 16) {
        h1 = (rotate(h1 ^ scramble_low(load(at, 8)), 27) + h2) * 5 + 0x52dce729;
        h2 = (rotate(h2 ^ scramble_high(load(at + 8, 8)), 31) + h1) * 5 + 0x38495ab5;
    }
    /* A missing half is zero and scrambles to zero. */
    if (left > 8)
        h2 ^= scramble_high(load(at + 8, left - 8));
    if (left > 0)
        h1 ^= scramble_low(load(at, left < 8 ? left : 8));

    h1 ^= n;
    h2 ^= n;
    h1 += h2;
    h2 += h1;
    h1 = avalanche(h1);
    h2 = avalanche(h2);
    h1 += h2;
    h2 += h1;
    return (mhf_hash128){.low = h1, .high = h2};
}

uint64_t mhf_hash128_mod(mhf_hash128 hash, uint64_t m)
{
    assert(m > 0);
    unsigned __int128 value = (unsigned __int128)hash.high << 64 | hash.low;
    return (uint64_t)(value % m);
}
