/* SPDX-License-Identifier: ISC */
/* torch.randn on the CPU, float32, bit for bit: MT19937, 24-bit uniforms, Box-Muller in blocks of
 * 16 with Cephes' single-precision log, sine and cosine. Every fused multiply-add is written as
 * fmaf, which rounds once on every machine; nothing else here can be contracted. */
#include "torch_normals.h"

#include <math.h>
#include <string.h>

#include "clones.h"

/* ---- MT19937 -------------------------------------------------------------------------------- */

static void mt_start(mhf_mt19937 *mt, uint32_t seed)
{
    mt->words[0] = seed;
    for (uint32_t i = 1; i < MHF_MT_WORDS; i++) {
        uint32_t before = mt->words[i - 1];
        mt->words[i] = 1812433253u * (before ^ (before >> 30)) + i;
    }
    mt->next = MHF_MT_WORDS;
}

static uint32_t twist(uint32_t word, uint32_t after, uint32_t far)
{
    uint32_t y = (word & 0x80000000u) | (after & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1u) & 0x9908b0dfu);
}

static void mt_renew(mhf_mt19937 *mt)
{
    enum { N = MHF_MT_WORDS, M = 397 };
    uint32_t *w = mt->words;
    for (int i = 0; i < N - M; i++)
        w[i] = twist(w[i], w[i + 1], w[i + M]);
    for (int i = N - M; i < N - 1; i++)
        w[i] = twist(w[i], w[i + 1], w[i + M - N]);
    w[N - 1] = twist(w[N - 1], w[0], w[M - 1]);
    mt->next = 0;
}

/* How many of the n wanted words can be taken at once. */
static int mt_available(mhf_mt19937 *mt, int64_t n)
{
    if (mt->next == MHF_MT_WORDS)
        mt_renew(mt);
    int left = MHF_MT_WORDS - mt->next;
    return n < left ? (int)n : left;
}

static void mt_skip(mhf_mt19937 *mt, int64_t n)
{
    while (n > 0) {
        int some = mt_available(mt, n);
        mt->next += some;
        n -= some;
    }
}

/* out[0..n): uniforms in [0, 1), the low 24 bits of a tempered word each. */
static void mt_uniforms(mhf_mt19937 *mt, int64_t n, float *out)
{
    while (n > 0) {
        int some = mt_available(mt, n);
        const uint32_t *w = mt->words + mt->next;
        for (int i = 0; i < some; i++) {
            uint32_t y = w[i];
            y ^= y >> 11;
            y ^= (y << 7) & 0x9d2c5680u;
            y ^= (y << 15) & 0xefc60000u;
            y ^= y >> 18;
            out[i] = (float)(int32_t)(y & 0xffffffu) * 0x1p-24f;
        }
        mt->next += some;
        out += some;
        n -= some;
    }
}

/* ---- Box-Muller ----------------------------------------------------------------------------- */

/* Natural logarithm of x in (0, 1]. */
static inline float cephes_log(float x)
{
    x = x < 0x1p-126f ? 0x1p-126f : x;
    /* x = m·2^e, m in [0.5, 1) */
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t exponent = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x007fffffu) | 0x3f000000u;
    float m;
    memcpy(&m, &bits, sizeof m);
    bool low = m < 0.707106781186547524f;
    float e = (float)(low ? exponent - 1 : exponent);
    float f = low ? (m - 1.0f) + m : m - 1.0f;

    float z = f * f;
    float y = 7.0376836292e-2f;
    y = fmaf(y, f, -1.1514610310e-1f);
    y = fmaf(y, f, 1.1676998740e-1f);
    y = fmaf(y, f, -1.2420140846e-1f);
    y = fmaf(y, f, 1.4249322787e-1f);
    y = fmaf(y, f, -1.6668057665e-1f);
    y = fmaf(y, f, 2.0000714765e-1f);
    y = fmaf(y, f, -2.4999993993e-1f);
    y = fmaf(y, f, 3.3333331174e-1f);
    y = y * f;
    y = y * z;
    y = fmaf(e, -2.12194440e-4f, y);
    y = fmaf(z, -0.5f, y);
    return fmaf(e, 0.693359375f, f + y);
}

/* Sine and cosine of t ≥ 0. */
static inline void cephes_sincos(float t, float *sine, float *cosine)
{
    int32_t j = (int32_t)(t * 1.27323954473516f);
    j = (j + 1) & ~1;
    float y = (float)j;
    t = fmaf(y, -0.78515625f, t);
    t = fmaf(y, -2.4187564849853515625e-4f, t);
    t = fmaf(y, -3.77489497744594108e-8f, t);
    float z = t * t;

    float c = fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = fmaf(c, z, 4.166664568298827e-2f);
    c = c * z;
    c = c * z;
    c = fmaf(z, -0.5f, c);
    c = c + 1.0f;
    float s = fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
    s = fmaf(s, z, -1.6666654611e-1f);
    s = s * z;
    s = fmaf(s, t, t);

    bool swap = j & 2;
    float sine_size = swap ? c : s, cosine_size = swap ? s : c;
    *sine = j & 4 ? -sine_size : sine_size;
    *cosine = (j - 2) & 4 ? cosine_size : -cosine_size;
}

/* n pairs of uniforms to n pairs of deviates, in place. Cloned because fmaf is one instruction
 * where the CPU has it and a slow function call elsewhere. */
MHF_CLONES
static void transform_pairs(int64_t n, float *restrict first, float *restrict second)
{
    for (int64_t i = 0; i < n; i++) {
        float r = sqrtf(-2.0f * cephes_log(1.0f - first[i])), sine, cosine;
        cephes_sincos(6.2831855f * second[i], &sine, &cosine);
        /* torch adds the mean, 0, which turns -0 into +0. */
        first[i] = r * cosine + 0.0f;
        second[i] = r * sine + 0.0f;
    }
}

/* Whole blocks of 16 uniforms, element j of a block with element j + 8. */
static void transform_blocks(int64_t blocks, float *data)
{
    enum { AT_ONCE = MHF_NORMAL_BATCH / 16 };
    float first[8 * AT_ONCE], second[8 * AT_ONCE];
    while (blocks > 0) {
        int64_t some = blocks < AT_ONCE ? blocks : AT_ONCE;
        for (int64_t b = 0; b < some; b++) {
            memcpy(first + 8 * b, data + 16 * b, 8 * sizeof *data);
            memcpy(second + 8 * b, data + 16 * b + 8, 8 * sizeof *data);
        }
        transform_pairs(8 * some, first, second);
        for (int64_t b = 0; b < some; b++) {
            memcpy(data + 16 * b, first + 8 * b, 8 * sizeof *data);
            memcpy(data + 16 * b + 8, second + 8 * b, 8 * sizeof *data);
        }
        data += 16 * some;
        blocks -= some;
    }
}

mhf_status mhf_torch_normals(uint32_t seed, int64_t n, float *out)
{
    if (n < 16)
        return mhf_fail(MHF_E_INTERNAL, "%lld normal deviates asked for, expected at least 16",
                        (long long)n);
    mhf_mt19937 mt;
    mt_start(&mt, seed);
    mt_uniforms(&mt, n, out);
    transform_blocks(n / 16, out);
    if (n % 16 != 0) {
        float *last = out + n - 16;
        mt_uniforms(&mt, 16, last);
        transform_blocks(1, last);
    }
    return MHF_OK;
}

/* ---- the stream ----------------------------------------------------------------------------- */

void mhf_normal_stream_start(mhf_normal_stream *stream, uint32_t seed)
{
    mt_start(&stream->generator, seed);
    stream->next = MHF_NORMAL_BATCH;
}

static void next_batch(mhf_normal_stream *stream)
{
    mt_uniforms(&stream->generator, MHF_NORMAL_BATCH, stream->batch);
    transform_blocks(MHF_NORMAL_BATCH / 16, stream->batch);
    stream->next = 0;
}

void mhf_normal_stream_read(mhf_normal_stream *stream, int64_t n, float *out)
{
    while (n > 0) {
        if (stream->next == MHF_NORMAL_BATCH)
            next_batch(stream);
        int left = MHF_NORMAL_BATCH - stream->next;
        int some = n < left ? (int)n : left;
        memcpy(out, stream->batch + stream->next, (size_t)some * sizeof *out);
        stream->next += some;
        out += some;
        n -= some;
    }
}

void mhf_normal_stream_skip(mhf_normal_stream *stream, int64_t n)
{
    int64_t left = MHF_NORMAL_BATCH - stream->next;
    int64_t some = n < left ? n : left;
    stream->next += (int)some;
    n -= some;
    mt_skip(&stream->generator, n - n % MHF_NORMAL_BATCH);
    n %= MHF_NORMAL_BATCH;
    if (n > 0) {
        next_batch(stream);
        stream->next = (int)n;
    }
}
