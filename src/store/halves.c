/* SPDX-License-Identifier: ISC */
#include "halves.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void mhf_floats_to_bf16(const float *in, int64_t n, uint16_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(in[i]);
        bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        /* Half of the last kept place, less one where that place is even. */
        uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
        out[i] = (uint16_t)(nan ? bits >> 16 | 0x40u : rounded >> 16);
    }
}

void mhf_bf16_to_floats(const uint16_t *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = float_of((uint32_t)in[i] << 16);
}

/* Drop the lowest `shift` bits of `value`, to nearest even. */
static uint32_t round_off(uint32_t value, uint32_t shift)
{
    uint32_t kept = value >> shift, rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint16_t to_f16(uint32_t bits)
{
    enum { SMALLEST_NORMAL = 113, BIAS_STEP = 112 }; /* exponents of float32: 2^-14; 127 - 15 */
    uint32_t sign = bits >> 16 & 0x8000u, exponent = bits >> 23 & 0xffu;
    uint32_t mantissa = bits & 0x7fffffu, magnitude;
    if (exponent == 0xff)
        magnitude = 0x7c00u | (mantissa ? 0x200u | mantissa >> 13 : 0);
    else if (exponent >= SMALLEST_NORMAL)
        magnitude = round_off((exponent - BIAS_STEP) << 23 | mantissa, 13); /* may carry */
    else if (exponent >= SMALLEST_NORMAL - 11)
        magnitude = round_off(mantissa | 0x800000u, 13 + SMALLEST_NORMAL - exponent);
    else
        magnitude = 0;
    if (exponent != 0xff && magnitude > 0x7c00u)
        magnitude = 0x7c00u;
    return (uint16_t)(sign | magnitude);
}

void mhf_floats_to_f16(const float *in, int64_t n, uint16_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = to_f16(bits_of(in[i]));
}

static float from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float value = (float)mantissa * 0x1p-24f;
    return sign ? -value : value;
}

void mhf_f16_to_floats(const uint16_t *in, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = from_f16(in[i]);
}
