/* SPDX-License-Identifier: ISC */
/* Shared by the tests of the tensor room: numbers, comparison, gradients by central differences. */
#ifndef MHF_TEST_NUMERIC_H
#define MHF_TEST_NUMERIC_H

#include <math.h>

#include "mhf/tensor.h"
#include "support.h"

/* n float32 values in (-spread, spread), another set for each seed; free() them. */
static inline float *random_floats(uint64_t seed, int64_t n, double spread)
{
    float *x = NULL;
    CHECK_OK(mhf_new(&x, n, sizeof *x, "test data"));
    mhf_rng rng = mhf_rng_named(seed, "test");
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(spread * (2.0 * mhf_rng_uniform(rng, (uint64_t)i) - 1.0));
    return x;
}

static inline float *zero_floats(int64_t n)
{
    float *x = NULL;
    CHECK_OK(mhf_new(&x, n, sizeof *x, "test data"));
    return x;
}

static inline double *zero_doubles(int64_t n)
{
    double *x = NULL;
    CHECK_OK(mhf_new(&x, n, sizeof *x, "test data"));
    return x;
}

/* The same values in double. */
static inline double *widened(const float *x, int64_t n)
{
    double *y = zero_doubles(n);
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

/* Largest difference over the largest wanted magnitude; infinity when something is not finite. */
static inline double distance(const float *got, const double *want, int64_t n)
{
    double worst = 0.0, size = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        double gap = fabs((double)got[i] - want[i]);
        if (!isfinite(gap))
            return INFINITY;
        worst = gap > worst ? gap : worst;
        size = fabs(want[i]) > size ? fabs(want[i]) : size;
    }
    return worst / size;
}

#define CHECK_CLOSE(got, want, n, tolerance)                                                       \
    do {                                                                                           \
        double check_distance_ = distance(got, want, n);                                           \
        if (!(check_distance_ <= (tolerance)))                                                     \
            fprintf(stderr, "\n    %s:%d: %s is %.3g from %s\n", __FILE__, __LINE__, #got,         \
                    check_distance_, #want);                                                       \
        CU_ASSERT_TRUE(check_distance_ <= (tolerance));                                            \
    } while (0)

#define CHECK_SAME_BITS(a, b, n) CU_ASSERT_EQUAL(memcmp(a, b, (size_t)(n) * sizeof *(a)), 0)

/* grad [n] of loss(context) by x [n], which loss reads through its context. */
static inline void numeric_gradient(double (*loss)(const void *), const void *context, double *x,
                                    int64_t n, double *grad)
{
    const double step = 1e-5;
    for (int64_t i = 0; i < n; i++) {
        double kept = x[i];
        x[i] = kept + step;
        double above = loss(context);
        x[i] = kept - step;
        double below = loss(context);
        x[i] = kept;
        grad[i] = (above - below) / (2.0 * step);
    }
}

/* Σ y_i weight_i: turns an output into a loss whose gradient by the output is `weight`. */
static inline double weighted(const double *y, const double *weight, int64_t n)
{
    double s = 0.0;
    for (int64_t i = 0; i < n; i++)
        s += y[i] * weight[i];
    return s;
}

#endif
