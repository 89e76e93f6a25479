/* SPDX-License-Identifier: ISC */
/* RMSNorm, per-head norm with rotary embedding, and their gradients. */
#include "numeric.h"

typedef struct norm_case {
    int64_t T, d;
    double eps;
    double *x, *w, *weight;
} norm_case;

static double norm_loss(const void *context)
{
    const norm_case *c = context;
    double s = 0.0;
    for (int64_t t = 0; t < c->T; t++) {
        double square = 0.0;
        for (int64_t i = 0; i < c->d; i++)
            square += c->x[t * c->d + i] * c->x[t * c->d + i];
        double r = 1.0 / sqrt(square / (double)c->d + c->eps);
        for (int64_t i = 0; i < c->d; i++)
            s += c->x[t * c->d + i] * r * c->w[i] * c->weight[t * c->d + i];
    }
    return s;
}

static void check_rmsnorm(int64_t T, int64_t d, float beta)
{
    float *x = random_floats(1, T * d, 2.0), *w = random_floats(2, d, 1.5);
    float *dy = random_floats(3, T * d, 1.0), *dx = random_floats(4, T * d, 1.0);
    float *dw = random_floats(5, d, 1.0), *y = zero_floats(T * d), *rstd = zero_floats(T);
    norm_case c = {T, d, 1e-6, widened(x, T * d), widened(w, d), widened(dy, T * d)};
    double *want_dx = zero_doubles(T * d), *want_dw = zero_doubles(d);
    numeric_gradient(norm_loss, &c, c.x, T * d, want_dx);
    numeric_gradient(norm_loss, &c, c.w, d, want_dw);
    for (int64_t i = 0; i < T * d; i++)
        want_dx[i] += (double)beta * (double)dx[i];
    for (int64_t i = 0; i < d; i++)
        want_dw[i] += (double)dw[i];
    mhf_rmsnorm(x, w, T, d, 1e-6f, y, rstd);
    double loss = 0.0;
    for (int64_t i = 0; i < T * d; i++)
        loss += (double)y[i] * (double)dy[i];
    CU_ASSERT_DOUBLE_EQUAL(loss, norm_loss(&c), 1e-5 * (double)(T * d));
    mhf_rmsnorm_backward(x, w, rstd, dy, T, d, beta, dx, dw);
    CHECK_CLOSE(dx, want_dx, T * d, 1e-5);
    CHECK_CLOSE(dw, want_dw, d, 1e-5);
    float *all[] = {x, w, dy, dx, dw, y, rstd};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    double *doubles[] = {c.x, c.w, c.weight, want_dx, want_dw};
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++)
        free(doubles[i]);
}

static void rmsnorm(void)
{
    check_rmsnorm(1, 3, 0.0f);
    check_rmsnorm(5, 17, 0.0f);
    check_rmsnorm(3, 61, 1.0f);
    check_rmsnorm(70, 64, 0.0f);
    float x[4] = {0}, w[4] = {1, 1, 1, 1}, y[4], r;
    mhf_rmsnorm(x, w, 1, 4, 1e-6f, y, &r); /* a row of zeros stays one */
    CU_ASSERT_TRUE(y[0] == 0.0f && isfinite(r));
}

typedef struct head_case {
    int64_t T, heads, h;
    const int32_t *position;
    double *in, *w, *weight; /* weight [T, heads·h] of the output */
} head_case;

static double head_loss(const void *context)
{
    const head_case *c = context;
    int64_t half = c->h / 2;
    double s = 0.0;
    for (int64_t t = 0; t < c->T; t++)
        for (int64_t a = 0; a < c->heads; a++) {
            const double *x = c->in + (t * c->heads + a) * c->h;
            const double *g = c->weight + (t * c->heads + a) * c->h;
            double square = 0.0;
            for (int64_t i = 0; i < c->h; i++)
                square += x[i] * x[i];
            double r = 1.0 / sqrt(square / (double)c->h + 1e-6);
            for (int64_t i = 0; i < half; i++) {
                double angle = c->position[t] * pow(1e4, -2.0 * (double)i / (double)c->h);
                double low = x[i] * r * c->w[i], high = x[half + i] * r * c->w[half + i];
                s += g[i] * (low * cos(angle) - high * sin(angle));
                s += g[half + i] * (high * cos(angle) + low * sin(angle));
            }
        }
    return s;
}

/* Copy [T,n] between row strides. */
static void restride(const float *from, int64_t ld_from, int64_t T, int64_t n, float *to,
                     int64_t ld_to)
{
    for (int64_t t = 0; t < T; t++)
        memcpy(to + t * ld_to, from + t * ld_from, (size_t)n * sizeof *to);
}

static void check_head(int64_t T, int64_t heads, int64_t h)
{
    enum { POSITIONS = 9, PAD = 3 };
    int64_t n = heads * h, ld = n + PAD;
    int32_t position[16];
    for (int64_t t = 0; t < T; t++)
        position[t] = (int32_t)((5 * t + 2) % POSITIONS);
    float *x = random_floats(1, T * n, 2.0), *w = random_floats(2, h, 1.5);
    float *g = random_floats(3, T * n, 1.0), *dw = random_floats(4, h, 1.0);
    float *cosines = zero_floats(POSITIONS * h / 2), *sines = zero_floats(POSITIONS * h / 2);
    float *in = zero_floats(T * ld), *out = zero_floats(T * ld), *dout = zero_floats(T * ld);
    float *rstd = zero_floats(T * heads), *packed = zero_floats(T * n);
    head_case c = {T, heads, h, position, widened(x, T * n), widened(w, h), widened(g, T * n)};
    double *want_dx = zero_doubles(T * n), *want_dw = zero_doubles(h);
    numeric_gradient(head_loss, &c, c.in, T * n, want_dx);
    numeric_gradient(head_loss, &c, c.w, h, want_dw);
    for (int64_t i = 0; i < h; i++)
        want_dw[i] += (double)dw[i];
    mhf_rotary_table(0, POSITIONS, h, 1e4, cosines, sines);
    restride(x, n, T, n, in, ld);
    restride(g, n, T, n, dout, ld);
    mhf_head_norm_rotary(in, ld, w, position, cosines, sines, T, heads, h, 1e-6f, out, ld, rstd);
    double loss = 0.0;
    restride(out, ld, T, n, packed, n);
    for (int64_t i = 0; i < T * n; i++)
        loss += (double)packed[i] * (double)g[i];
    CU_ASSERT_DOUBLE_EQUAL(loss, head_loss(&c), 1e-5 * (double)(T * n));
    mhf_head_norm_rotary_backward(in, ld, w, position, cosines, sines, rstd, dout, ld, T, heads, h,
                                  out, ld, dw);
    restride(out, ld, T, n, packed, n);
    CHECK_CLOSE(packed, want_dx, T * n, 1e-5);
    CHECK_CLOSE(dw, want_dw, h, 1e-5);
    for (int64_t t = 0; t < T; t++)
        CU_ASSERT_EQUAL(out[t * ld + n], 0.0f); /* between the rows nothing is written */
    float *all[] = {x, w, g, dw, cosines, sines, in, out, dout, rstd, packed};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    double *doubles[] = {c.in, c.w, c.weight, want_dx, want_dw};
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++)
        free(doubles[i]);
}

static void head_norm_rotary(void)
{
    check_head(5, 2, 16);
    check_head(1, 3, 2);
    check_head(16, 1, 80); /* more columns than one stripe of the weight's gradient */
    check_head(3, 2, 6);
}

static void rotary_table(void)
{
    enum { P = 40, H = 8 };
    float c[P * H / 2], s[P * H / 2];
    mhf_rotary_table(0, P, H, 1e6, c, s);
    for (int p = 0; p < P; p++)
        for (int i = 0; i < H / 2; i++) {
            double angle = p * pow(1e6, -2.0 * i / H);
            CU_ASSERT_DOUBLE_EQUAL((double)c[p * H / 2 + i], cos(angle), 4e-6);
            CU_ASSERT_DOUBLE_EQUAL((double)s[p * H / 2 + i], sin(angle), 4e-6);
        }
    CU_ASSERT_EQUAL(c[0], 1.0f);
    CU_ASSERT_EQUAL(s[0], 0.0f);
}

static void threads(void)
{
    enum { T = 300, D = 256, HEADS = 4, H = 64 };
    float *x = random_floats(1, T * D, 1.0), *w = random_floats(2, D, 1.0);
    float *dy = random_floats(3, T * D, 1.0);
    float *cosines = zero_floats(T * H / 2), *sines = zero_floats(T * H / 2);
    int32_t *position = NULL;
    CHECK_OK(mhf_new(&position, T, sizeof *position, "positions"));
    for (int32_t t = 0; t < T; t++)
        position[t] = t;
    mhf_rotary_table(0, T, H, 1e6, cosines, sines);
    float *y[2][6];
    for (int k = 0; k < 2; k++) {
        CHECK_OK(mhf_engine_start("reference", k + 1));
        for (int i = 0; i < 6; i++)
            y[k][i] = zero_floats(T * D);
        mhf_rmsnorm(x, w, T, D, 1e-6f, y[k][0], y[k][1]);
        mhf_rmsnorm_backward(x, w, y[k][1], dy, T, D, 0.0f, y[k][2], y[k][3]);
        mhf_head_norm_rotary(x, D, w, position, cosines, sines, T, HEADS, H, 1e-6f, y[k][0], D,
                             y[k][1]);
        mhf_head_norm_rotary_backward(x, D, w, position, cosines, sines, y[k][1], dy, D, T, HEADS,
                                      H, y[k][4], D, y[k][5]);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_SAME_BITS(y[0][i], y[1][i], T * D);
        free(y[0][i]);
        free(y[1][i]);
    }
    float *all[] = {x, w, dy, cosines, sines};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(position);
}

int main(void)
{
    static const test_case cases[] = {{"RMSNorm", rmsnorm},
                                      {"rotary table", rotary_table},
                                      {"per-head norm and rotary", head_norm_rotary},
                                      {"threads", threads}};
    return run_tests("tensor.norm", cases, sizeof cases / sizeof cases[0]);
}
