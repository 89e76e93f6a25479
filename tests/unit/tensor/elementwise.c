/* SPDX-License-Identifier: ISC */
/* exp, flat kernels, the gated unit, AdamW, against double precision. */
#include "../../../src/tensor/kernel.h"
#include "numeric.h"

static void exp_accuracy(void)
{
    double worst = 0.0;
    for (double x = -87.3; x < 88.3; x += 0.00237) {
        float at = (float)x;
        double want = exp((double)at), got = (double)mhf_expf(at);
        double ulp = (double)nextafterf((float)want, INFINITY) - (double)(float)want;
        double gap = fabs(got - want) / ulp;
        worst = gap > worst ? gap : worst;
    }
    CU_ASSERT_TRUE(worst <= 2.0);
    CU_ASSERT_EQUAL(mhf_expf(0.0f), 1.0f);
    CU_ASSERT_EQUAL(mhf_expf(-INFINITY), 0.0f);
    CU_ASSERT_EQUAL(mhf_expf(-1e30f), 0.0f);
    CU_ASSERT_EQUAL(mhf_expf(INFINITY), INFINITY);
    CU_ASSERT_EQUAL(mhf_expf(1e30f), INFINITY);
    CU_ASSERT_TRUE(isnan(mhf_expf(NAN)));
}

static void add_scale(void)
{
    enum { N = 70001 };
    float *x = random_floats(1, N, 1.0), *y = random_floats(2, N, 1.0);
    double *want = widened(y, N);
    for (int i = 0; i < N; i++)
        want[i] = (want[i] + (double)x[i]) * 0.3;
    mhf_add(x, N, y);
    mhf_scale(0.3f, N, y);
    CHECK_CLOSE(y, want, N, 1e-6);
    mhf_add(x, 0, y);
    mhf_scale(0.0f, 0, y);
    CHECK_CLOSE(y, want, N, 1e-6);
    free(x);
    free(y);
    free(want);
}

/* The order of the additions is part of the contract. */
static void sum_of_squares(void)
{
    float *x = random_floats(3, 1003, 1e3);
    for (int64_t n = 0; n < 1003; n += n < 20 ? 1 : 83) {
        double lane[8] = {0}, want = 0.0;
        for (int64_t i = 0; i < n; i++)
            lane[i % 8] += (double)x[i] * (double)x[i];
        for (int l = 0; l < 8; l++)
            want += lane[l];
        CU_ASSERT_EQUAL(mhf_sum_of_squares(x, n), want);
    }
    x[0] = 3e38f; /* overflows float32, not the sum */
    CU_ASSERT_TRUE(isfinite(mhf_sum_of_squares(x, 1003)));
    free(x);
}

static void find_nonfinite(void)
{
    enum { N = 10000 };
    float *x = random_floats(4, N, 3e38);
    CU_ASSERT_EQUAL(mhf_find_nonfinite(x, N), -1);
    CU_ASSERT_EQUAL(mhf_find_nonfinite(x, 0), -1);
    static const int64_t places[] = {N - 1, 4097, 4096, 4095, 17, 0};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        x[places[i]] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        CU_ASSERT_EQUAL(mhf_find_nonfinite(x, N), places[i]);
    }
    free(x);
}

static double silu_of(double x)
{
    return x / (1.0 + exp(-x));
}

static void silu(void)
{
    enum { N = 1003 };
    float *x = random_floats(5, N, 8.0), *dy = random_floats(6, N, 1.0), *y = zero_floats(N);
    double *want = zero_doubles(N), *want_dx = zero_doubles(N);
    x[0] = 0.0f;
    x[1] = 100.0f;
    x[2] = -100.0f;
    x[3] = 88.0f;
    x[4] = -88.0f;
    for (int i = 0; i < N; i++) {
        double at = (double)x[i], h = 1e-5;
        want[i] = silu_of(at);
        want_dx[i] = (double)dy[i] * (silu_of(at + h) - silu_of(at - h)) / (2.0 * h);
    }
    mhf_silu(x, N, y);
    CHECK_CLOSE(y, want, N, 1e-6);
    mhf_silu_backward(x, dy, N, dy); /* in place */
    CHECK_CLOSE(dy, want_dx, N, 1e-6);
    free(x);
    free(dy);
    free(y);
    free(want);
    free(want_dx);
}

enum { T = 3, F = 37 };

static double swiglu_loss(const void *context)
{
    const double *const *p = context; /* gu, weight of y */
    double s = 0.0;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < F; i++)
            s += silu_of(p[0][2 * t * F + i]) * p[0][(2 * t + 1) * F + i] * p[1][t * F + i];
    return s;
}

static void swiglu(void)
{
    float *gu = random_floats(7, 2 * T * F, 4.0), *dy = random_floats(8, T * F, 1.0);
    float *y = zero_floats(T * F), *again = zero_floats(T * F), *dgu = zero_floats(2 * T * F);
    double *p[2] = {widened(gu, 2 * T * F), widened(dy, T * F)};
    double *want = zero_doubles(2 * T * F), *want_y = zero_doubles(T * F);
    numeric_gradient(swiglu_loss, p, p[0], 2 * T * F, want);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < F; i++)
            want_y[t * F + i] = silu_of(p[0][2 * t * F + i]) * p[0][(2 * t + 1) * F + i];
    mhf_swiglu(gu, T, F, y);
    CHECK_CLOSE(y, want_y, T * F, 1e-6);
    mhf_swiglu_backward(gu, dy, T, F, dgu, again);
    CHECK_CLOSE(dgu, want, 2 * T * F, 1e-5);
    CHECK_CLOSE(again, want_y, T * F, 1e-6);
    mhf_swiglu(gu, 0, F, NULL);
    float *all[] = {gu, dy, y, again, dgu};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(p[0]);
    free(p[1]);
    free(want);
    free(want_y);
}

/* Five steps against the textbook in double. */
static void adamw(void)
{
    enum { N = 20011, STEPS = 5 };
    float *p = random_floats(9, N, 1.0), *m = zero_floats(N), *v = zero_floats(N);
    double *wp = widened(p, N), *wm = zero_doubles(N), *wv = zero_doubles(N);
    const double clip = 0.25;
    for (int step = 1; step <= STEPS; step++) {
        mhf_adamw a = {2e-3, 0.9, 0.999, 1e-8, 0.1, step};
        float *g = random_floats(10 + (uint64_t)step, N, 1e-3);
        g[0] = 0.0f; /* no division by zero */
        for (int i = 0; i < N; i++) {
            double x = (double)g[i] * clip;
            wp[i] -= a.lr * a.weight_decay * wp[i];
            wm[i] = a.beta1 * wm[i] + (1.0 - a.beta1) * x;
            wv[i] = a.beta2 * wv[i] + (1.0 - a.beta2) * x * x;
            wp[i] -= a.lr / (1.0 - pow(a.beta1, step)) * wm[i] /
                     (sqrt(wv[i] / (1.0 - pow(a.beta2, step))) + a.eps);
        }
        mhf_adamw_update(&a, (float)clip, g, N, p, m, v);
        free(g);
    }
    CHECK_CLOSE(p, wp, N, 1e-6);
    CHECK_CLOSE(m, wm, N, 1e-6);
    CHECK_CLOSE(v, wv, N, 1e-6);
    float *all[] = {p, m, v};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(wp);
    free(wm);
    free(wv);
}

/* One thread and two give the same bits, piece by piece as well as at once. */
static void threads(void)
{
    enum { N = 100003 };
    float *x = random_floats(20, N, 5.0), *one = zero_floats(N), *two = zero_floats(N);
    CHECK_OK(mhf_engine_start("reference", 1));
    mhf_silu(x, N, one);
    CHECK_OK(mhf_engine_start("reference", 2));
    mhf_silu(x, N, two);
    CHECK_SAME_BITS(one, two, N);
    for (int i = 0; i < 200; i += 7) {
        mhf_silu(x + i, 7, two + i);
    }
    CHECK_SAME_BITS(one, two, N);
    free(x);
    free(one);
    free(two);
}

int main(void)
{
    static const test_case cases[] = {{"exp", exp_accuracy},
                                      {"add and scale", add_scale},
                                      {"sum of squares", sum_of_squares},
                                      {"first value that is not finite", find_nonfinite},
                                      {"silu", silu},
                                      {"gated unit", swiglu},
                                      {"AdamW", adamw},
                                      {"threads", threads}};
    return run_tests("tensor.elementwise", cases, sizeof cases / sizeof cases[0]);
}
