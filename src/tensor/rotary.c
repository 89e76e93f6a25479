/* SPDX-License-Identifier: ISC */
/* RMSNorm of each head followed by the rotary embedding, half-split form: element i of a head turns
 * with element i + h/2. */
#include "kernel.h"

void mhf_rotary_table(int64_t first, int64_t positions, int64_t h, double theta, float *cos_table,
                      float *sin_table)
{
    int64_t half = h / 2;
    for (int64_t i = 0; i < half; i++) {
        /* Rounded to float32 at the places where the released code rounds. */
        float power = (float)pow(theta, (double)((float)(2 * i) / (float)h));
        float frequency = 1.0f / power;
        for (int64_t p = 0; p < positions; p++) {
            float angle = (float)(first + p) * frequency;
            cos_table[p * half + i] = (float)cos((double)angle);
            sin_table[p * half + i] = (float)sin((double)angle);
        }
    }
}

MHF_KERNEL static float head_forward(const float *in, const float *w, const float *c,
                                     const float *s, int64_t h, float eps, float *out)
{
    int64_t half = h / 2;
    float r = 1.0f / sqrtf(mhf_dot(in, in, h) / (float)h + eps);
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        float low = in[i] * r * w[i], high = in[half + i] * r * w[half + i];
        out[i] = low * c[i] - high * s[i];
        out[half + i] = high * c[i] + low * s[i];
    }
    return r;
}

void mhf_head_norm_rotary(const float *in, int64_t ld_in, const float *w, const int32_t *position,
                          const float *cos_table, const float *sin_table, int64_t T, int64_t heads,
                          int64_t h, float eps, float *out, int64_t ld_out, float *rstd)
{
#pragma omp parallel for num_threads(mhf_kernel_threads(T *heads *h)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        const float *c = cos_table + position[t] * (h / 2);
        const float *s = sin_table + position[t] * (h / 2);
        for (int64_t a = 0; a < heads; a++)
            rstd[t * heads + a] =
                head_forward(in + t * ld_in + a * h, w, c, s, h, eps, out + t * ld_out + a * h);
    }
}

/* din of one head: the rotation turned back, then the norm's gradient. */
MHF_KERNEL static void head_backward(const float *in, const float *w, const float *c,
                                     const float *s, float r, const float *dout, int64_t h,
                                     float *din)
{
    int64_t half = h / 2;
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        float low = dout[i] * c[i] + dout[half + i] * s[i];
        float high = dout[half + i] * c[i] - dout[i] * s[i];
        din[i] = low * w[i];
        din[half + i] = high * w[half + i];
    }
    float pull = r * r * r * mhf_dot(in, din, h) / (float)h;
#pragma omp simd
    for (int64_t i = 0; i < h; i++)
        din[i] = r * din[i] - pull * in[i];
}

typedef struct norm_rotary {
    const float *in;
    int64_t ld_in;
    const int32_t *position;
    const float *cos_table, *sin_table, *rstd, *dout;
    int64_t ld_dout, T, heads, h;
} norm_rotary;

enum { STRIPE = 32, CHUNKS = 16 };

/* low[i] and high[i] += dw of elements first + i and h/2 + first + i, over rows t0..t1-1. */
MHF_KERNEL static void add_weight_rows(const norm_rotary *g, int64_t t0, int64_t t1, int64_t first,
                                       int64_t n, float *low, float *high)
{
    int64_t half = g->h / 2;
    for (int64_t t = t0; t < t1; t++) {
        const float *c = g->cos_table + g->position[t] * half + first;
        const float *s = g->sin_table + g->position[t] * half + first;
        for (int64_t a = 0; a < g->heads; a++) {
            const float *x = g->in + t * g->ld_in + a * g->h + first;
            const float *d = g->dout + t * g->ld_dout + a * g->h + first;
            float r = g->rstd[t * g->heads + a];
#pragma omp simd
            for (int64_t i = 0; i < n; i++) {
                low[i] += (d[i] * c[i] + d[half + i] * s[i]) * x[i] * r;
                high[i] += (d[half + i] * c[i] - d[i] * s[i]) * x[half + i] * r;
            }
        }
    }
}

/* The rows are cut into CHUNKS parts however many threads there are: fixed bits. */
static void add_weight_gradient(const norm_rotary *g, float *dw)
{
    int64_t half = g->h / 2;
    int threads = mhf_kernel_threads(g->T * g->heads * g->h);
    for (int64_t first = 0; first < half; first += STRIPE) {
        float part[CHUNKS][2][STRIPE] = {{{0}}};
        int64_t n = half - first < STRIPE ? half - first : STRIPE;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t k = 0; k < CHUNKS; k++)
            add_weight_rows(g, mhf_part(g->T, k, CHUNKS), mhf_part(g->T, k + 1, CHUNKS), first, n,
                            part[k][0], part[k][1]);
        for (int64_t k = 0; k < CHUNKS; k++)
            for (int64_t i = 0; i < n; i++) {
                dw[first + i] += part[k][0][i];
                dw[half + first + i] += part[k][1][i];
            }
    }
}

void mhf_head_norm_rotary_backward(const float *in, int64_t ld_in, const float *w,
                                   const int32_t *position, const float *cos_table,
                                   const float *sin_table, const float *rstd, const float *dout,
                                   int64_t ld_dout, int64_t T, int64_t heads, int64_t h, float *din,
                                   int64_t ld_din, float *dw)
{
    norm_rotary g = {in, ld_in, position, cos_table, sin_table, rstd, dout, ld_dout, T, heads, h};
    if (dw)
        add_weight_gradient(&g, dw); /* first: din may be dout */
#pragma omp parallel for num_threads(mhf_kernel_threads(T *heads *h)) schedule(static)
    for (int64_t t = 0; t < T; t++) {
        const float *c = cos_table + position[t] * (h / 2);
        const float *s = sin_table + position[t] * (h / 2);
        for (int64_t a = 0; a < heads; a++)
            head_backward(in + t * ld_in + a * h, w, c, s, rstd[t * heads + a],
                          dout + t * ld_dout + a * h, h, din + t * ld_din + a * h);
    }
}
