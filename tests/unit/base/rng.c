/* SPDX-License-Identifier: ISC */
/* Random numbers that depend on (seed, name, place) alone. */
#include <math.h>

#include "support.h"

static void test_streams(void)
{
    mhf_rng a = mhf_rng_named(1, "x"), again = mhf_rng_named(1, "x");
    mhf_rng other = mhf_rng_named(1, "y"), seed = mhf_rng_named(2, "x");
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        CU_ASSERT_EQUAL(mhf_rng_bits(a, i), mhf_rng_bits(again, i));
        same += mhf_rng_bits(a, i) == mhf_rng_bits(other, i);
        same += mhf_rng_bits(a, i) == mhf_rng_bits(seed, i);
        same += mhf_rng_bits(a, i) == mhf_rng_bits(a, i + 1);
    }
    CU_ASSERT_EQUAL(same, 0);
}

/* Moments within five standard errors. */
static void test_uniform(void)
{
    enum { N = 200000 };
    mhf_rng rng = mhf_rng_named(42, "uniform");
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = mhf_rng_uniform(rng, i);
        CU_ASSERT_TRUE(x >= 0 && x < 1);
        sum += x;
        squares += x * x;
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / N, 0.5, 5 * sqrt(1.0 / 12 / N));
    CU_ASSERT_DOUBLE_EQUAL(squares / N, 1.0 / 3, 5 * sqrt(4.0 / 45 / N));
}

/* A piece has the values that the whole has there: what lets each rank draw its own shard. */
static void test_normals(void)
{
    enum { N = 100001 };
    static float whole[N], piece[N];
    mhf_rng rng = mhf_rng_named(42, "normals");
    mhf_rng_normals(rng, 0, N, whole);
    for (uint64_t first = 0, n = 1; first < N; first += n, n = n * 3 + 1) {
        int64_t length = first + n <= N ? (int64_t)n : (int64_t)(N - first);
        mhf_rng_normals(rng, first, length, piece);
        CU_ASSERT_EQUAL(memcmp(piece, whole + first, (size_t)length * sizeof *piece), 0);
    }
    double sum = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double x = whole[i];
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / N, 0, 5 * sqrt(1.0 / N));
    CU_ASSERT_DOUBLE_EQUAL(squares / N, 1, 5 * sqrt(2.0 / N));
    CU_ASSERT_DOUBLE_EQUAL(fourth / N, 3, 5 * sqrt(96.0 / N));
}

static void test_permutation(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 7, 64, 1000, 4097};
    static bool seen[4097];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        mhf_rng rng = mhf_rng_named(k, "order");
        uint64_t n = sizes[k], fixed = 0;
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t place = mhf_rng_permute(rng, i, n);
            CU_ASSERT_FATAL(place < n);
            CU_ASSERT_FALSE(seen[place]);
            seen[place] = true;
            fixed += place == i;
        }
        CU_ASSERT_TRUE(n < 64 || fixed < 12); /* about one of a random permutation */
    }
    mhf_rng rng = mhf_rng_named(3, "order"), other = mhf_rng_named(4, "order");
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += mhf_rng_permute(rng, i, 1000) == mhf_rng_permute(other, i, 1000);
    CU_ASSERT_TRUE(same < 12);
    uint64_t large = (uint64_t)1 << 40;
    CU_ASSERT_TRUE(mhf_rng_permute(rng, large - 1, large) < large);
}

int main(void)
{
    static const test_case cases[] = {
        {"streams", test_streams},
        {"uniform", test_uniform},
        {"normals", test_normals},
        {"permutation", test_permutation},
    };
    return run_tests("base.rng", cases, sizeof cases / sizeof *cases);
}
