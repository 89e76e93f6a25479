/* SPDX-License-Identifier: ISC */
/* Gather of bucket rows and the gated mixture, with their gradients. */
#include "numeric.h"

static void gather(void)
{
    enum { T = 6, N = 3, B = 5, D = 131, LD = 4, N_E = N * B * D };
    static const uint32_t ids[T * LD] = {0, 4, 2, 99, 1, 4, 3, 99, 0, 0, 2, 99,
                                         4, 4, 2, 99, 0, 1, 2, 99, 3, 4, 0, 99};
    float *E = random_floats(1, N_E, 1.0), *e = zero_floats(T * N * D);
    float *de = random_floats(2, T * N * D, 1.0), *dE = random_floats(3, N_E, 1.0);
    float *want = random_floats(3, N_E, 1.0);
    mhf_gather(E, ids, LD, T, N, B, D, e);
    for (int t = 0; t < T; t++)
        for (int j = 0; j < N; j++) {
            const float *row = E + (j * B + (int)ids[t * LD + j]) * D;
            CHECK_SAME_BITS(e + (t * N + j) * D, row, D);
            for (int i = 0; i < D; i++)
                want[row - E + i] += de[(t * N + j) * D + i];
        }
    mhf_gather_backward(de, ids, LD, T, N, B, D, dE);
    CHECK_SAME_BITS(dE, want, N_E); /* rows in order: the very same sums */
    mhf_gather_backward(de, ids, LD, 0, N, B, D, dE);
    CHECK_SAME_BITS(dE, want, N_E);
    free(E);
    free(e);
    free(de);
    free(dE);
    free(want);
}

enum { T = 3, N = 4, D = 21 };

static double mix_loss(const void *context)
{
    const double *const *p = context; /* e, scores, weight of mix */
    double loss = 0.0;
    for (int t = 0; t < T; t++) {
        double sum = 0.0;
        for (int j = 0; j < N; j++)
            sum += exp(p[1][t * N + j]);
        for (int j = 0; j < N; j++)
            loss += exp(p[1][t * N + j]) / sum * weighted(p[0] + (t * N + j) * D, p[2] + t * D, D);
    }
    return loss;
}

static void gate_mix(void)
{
    float *e = random_floats(1, T * N * D, 1.0), *a = random_floats(2, T * N, 3.0);
    float *dmix = random_floats(3, T * D, 1.0), *mix = zero_floats(T * D);
    float *de = random_floats(4, T * N * D, 1.0), *dscore = random_floats(5, T * N, 1.0);
    double *p[3] = {widened(e, T * N * D), widened(a, T * N), widened(dmix, T * D)};
    double *want_de = zero_doubles(T * N * D), *want_dscore = zero_doubles(T * N);
    numeric_gradient(mix_loss, p, p[0], T * N * D, want_de);
    numeric_gradient(mix_loss, p, p[1], T * N, want_dscore);
    mhf_gate_mix(e, T, N, D, a, mix);
    double loss = 0.0;
    for (int i = 0; i < T * D; i++)
        loss += (double)mix[i] * (double)dmix[i];
    CU_ASSERT_DOUBLE_EQUAL(loss, mix_loss(p), 1e-5);
    for (int t = 0; t < T; t++) {
        float sum = 0.0f;
        for (int j = 0; j < N; j++)
            sum += a[t * N + j];
        CU_ASSERT_DOUBLE_EQUAL((double)sum, 1.0, 1e-6);
    }
    mhf_gate_mix_backward(e, a, dmix, T, N, D, de, dscore);
    CHECK_CLOSE(de, want_de, T * N * D, 1e-5);
    CHECK_CLOSE(dscore, want_dscore, T * N, 1e-5);
    float *all[] = {e, a, dmix, mix, de, dscore};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    for (int i = 0; i < 3; i++)
        free(p[i]);
    free(want_de);
    free(want_dscore);
}

static void threads(void)
{
    enum { ROWS = 200, WIDTH = 300, BUCKETS = 7 };
    uint32_t ids[ROWS * N];
    mhf_rng rng = mhf_rng_named(1, "ids");
    for (uint64_t i = 0; i < ROWS * N; i++)
        ids[i] = (uint32_t)(mhf_rng_bits(rng, i) % BUCKETS);
    float *de = random_floats(1, ROWS * N * WIDTH, 1.0);
    float *dE[2];
    for (int k = 0; k < 2; k++) {
        CHECK_OK(mhf_engine_start("reference", k + 1));
        dE[k] = zero_floats(N * BUCKETS * WIDTH);
        mhf_gather_backward(de, ids, N, ROWS, N, BUCKETS, WIDTH, dE[k]);
    }
    CHECK_SAME_BITS(dE[0], dE[1], N * BUCKETS * WIDTH);
    free(de);
    free(dE[0]);
    free(dE[1]);
}

int main(void)
{
    static const test_case cases[] = {
        {"gather", gather}, {"gate and mix", gate_mix}, {"threads", threads}};
    return run_tests("tensor.encoder", cases, sizeof cases / sizeof cases[0]);
}
