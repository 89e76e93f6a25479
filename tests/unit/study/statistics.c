// SPDX-License-Identifier: ISC
/* Correlations against values computed by hand or by their definition, and the bootstrap against a
 * plain one that sorts every resample. */
#include <math.h>

#include "mhf/study.h"
#include "support.h"

static void cosines(void)
{
    const float a[] = {1, 2, 2}, b[] = {2, 1, 2}, zero[] = {0, 0, 0}, opposite[] = {-2, -4, -4};
    CU_ASSERT_DOUBLE_EQUAL(mhf_cosine(a, b, 3), 8.0 / 9.0, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(mhf_cosine(a, opposite, 3), -1, 1e-15);
    CU_ASSERT_EQUAL(mhf_cosine(a, zero, 3), 0);
    CU_ASSERT_EQUAL(mhf_cosine(zero, zero, 3), 0);
    const float tiny[] = {1e-30f, 2e-30f, 2e-30f};
    CU_ASSERT_DOUBLE_EQUAL(mhf_cosine(a, tiny, 3), 1, 1e-6);
}

static void correlations(void)
{
    const double x[] = {1, 2, 3, 4, 5}, y[] = {2, 1, 4, 3, 5};
    CU_ASSERT_DOUBLE_EQUAL(mhf_pearson(x, y, 5), 0.8, 1e-14);
    double rho;
    CHECK_OK(mhf_spearman(x, y, 5, &rho));
    CU_ASSERT_DOUBLE_EQUAL(rho, 0.8, 1e-14);
    /* Ties get the average of their ranks: 1.5 1.5 3 4 against 1 2 3 4. */
    const double tied[] = {7, 7, 8, 100}, straight[] = {1, 2, 3, 4};
    CHECK_OK(mhf_spearman(tied, straight, 4, &rho));
    CU_ASSERT_DOUBLE_EQUAL(rho, 4.5 / sqrt(4.5 * 5), 1e-14);
    const double down[] = {5, 3, 2, 0.5};
    CHECK_OK(mhf_spearman(tied, down, 4, &rho));
    CU_ASSERT_DOUBLE_EQUAL(rho, -4.5 / sqrt(4.5 * 5), 1e-14);
}

static void without_correlation(void)
{
    const double x[] = {0.1, 0.1, 0.1}, y[] = {1, 2, 3};
    double rho, interval[4];
    CU_ASSERT(isnan(mhf_pearson(x, y, 3)));
    CU_ASSERT(isnan(mhf_pearson(y, y, 1)));
    CU_ASSERT(isnan(mhf_pearson(y, y, 0)));
    CHECK_OK(mhf_spearman(x, y, 3, &rho));
    CU_ASSERT(isnan(rho));
    CHECK_OK(mhf_bootstrap(x, y, 1, 3, 100, 1, interval));
    for (int i = 0; i < 4; i++)
        CU_ASSERT(isnan(interval[i]));
    CHECK_OK(mhf_bootstrap(x, y, 1, 0, 100, 1, interval));
    CU_ASSERT(isnan(interval[0]));
}

enum { N = 40, DRAWS = 300, LAYERS = 2 };

/* Pairs with many ties on both sides. */
static void make_pairs(double *x, double *y)
{
    mhf_rng rng = mhf_rng_named(7, "pairs");
    for (int i = 0; i < N; i++) {
        y[i] = floor(5 * mhf_rng_uniform(rng, (uint64_t)i));
        x[i] = y[i] + floor(6 * mhf_rng_uniform(rng, (uint64_t)(N + i)));
        x[N + i] = mhf_rng_uniform(rng, (uint64_t)(2 * N + i));
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double f)
{
    double place = f * (n - 1);
    int i = (int)place;
    return i + 1 < n ? sorted[i] + (place - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static void plain_bootstrap(const double *x, const double *y, uint64_t seed, double interval[4])
{
    static double r[2][DRAWS];
    double rx[N], ry[N];
    mhf_rng rng = mhf_rng_named(seed, "bootstrap");
    for (int draw = 0; draw < DRAWS; draw++) {
        for (int i = 0; i < N; i++) {
            int place = (int)(mhf_rng_uniform(rng, (uint64_t)(draw * N + i)) * N);
            rx[i] = x[place];
            ry[i] = y[place];
        }
        r[0][draw] = mhf_pearson(rx, ry, N);
        CHECK_OK(mhf_spearman(rx, ry, N, &r[1][draw]));
    }
    for (int c = 0; c < 2; c++) {
        qsort(r[c], DRAWS, sizeof(double), ascending);
        interval[2 * c] = quantile(r[c], DRAWS, 0.025);
        interval[2 * c + 1] = quantile(r[c], DRAWS, 0.975);
    }
}

static void bootstrap_equals_a_plain_one(void)
{
    double x[LAYERS * N], y[N], interval[4 * LAYERS], expected[4];
    make_pairs(x, y);
    CHECK_OK(mhf_bootstrap(x, y, LAYERS, N, DRAWS, 11, interval));
    for (int l = 0; l < LAYERS; l++) {
        plain_bootstrap(x + l * N, y, 11, expected);
        for (int i = 0; i < 4; i++)
            CU_ASSERT_DOUBLE_EQUAL(interval[4 * l + i], expected[i], 1e-12);
    }
    double other[4 * LAYERS];
    CHECK_OK(mhf_bootstrap(x, y, LAYERS, N, DRAWS, 12, other));
    CU_ASSERT_NOT_EQUAL(other[0], interval[0]);
}

static void interval_covers(void)
{
    double x[LAYERS * N], y[N], interval[4 * LAYERS], rho;
    make_pairs(x, y);
    CHECK_OK(mhf_bootstrap(x, y, LAYERS, N, 2000, 1, interval));
    for (int l = 0; l < LAYERS; l++) {
        double r = mhf_pearson(x + l * N, y, N);
        CU_ASSERT(interval[4 * l] < r && r < interval[4 * l + 1]);
        CHECK_OK(mhf_spearman(x + l * N, y, N, &rho));
        CU_ASSERT(interval[4 * l + 2] < rho && rho < interval[4 * l + 3]);
    }
}

int main(void)
{
    static const test_case cases[] = {
        {"cosines", cosines},
        {"correlations by definition", correlations},
        {"no correlation is NaN", without_correlation},
        {"the bootstrap equals a plain one", bootstrap_equals_a_plain_one},
        {"intervals hold the estimate", interval_covers},
    };
    return run_tests("study statistics", cases, sizeof cases / sizeof *cases);
}
