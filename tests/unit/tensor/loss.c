/* SPDX-License-Identifier: ISC */
/* Softmax, cross-entropy, and the merged gradient of loss and soft retrieval. */
#include "numeric.h"

enum { T = 5, N = 67, D = 6 };

static void softmax(void)
{
    enum { LD = N + 3 };
    float *z = random_floats(1, T * LD, 80.0), lse[T], *kept;
    for (int i = 0; i < N; i++)
        z[LD + i] = 80.0f;     /* all equal */
    z[2 * LD + 5] = -INFINITY; /* masked */
    for (int i = 1; i < N; i++)
        z[3 * LD + i] = -INFINITY; /* one left */
    for (int i = 0; i < N; i++)
        z[4 * LD + i] = -80.0f + (float)(i == 7) * 160.0f;
    double *wide = widened(z, T * LD), *want = widened(z, T * LD);
    for (int t = 0; t < T; t++) {
        double sum = 0.0;
        for (int i = 0; i < N; i++)
            sum += exp(wide[t * LD + i] - 80.0);
        for (int i = 0; i < N; i++)
            want[t * LD + i] = exp(wide[t * LD + i] - 80.0) / sum;
        wide[t] = log(sum) + 80.0;
    }
    kept = random_floats(1, T * LD, 80.0);
    mhf_softmax(z, T, N, LD, lse);
    for (int t = 0; t < T; t++) {
        CHECK_CLOSE(z + t * LD, want + t * LD, N, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL((double)lse[t], wide[t], 1e-5);
        CHECK_SAME_BITS(z + t * LD + N, kept + t * LD + N, 3);
    }
    CU_ASSERT_EQUAL(z[2 * LD + 5], 0.0f);
    CU_ASSERT_EQUAL(z[3 * LD], 1.0f);
    mhf_softmax(z, 0, N, LD, NULL);
    for (int i = 0; i < N; i++)
        z[i] = -INFINITY;
    z[LD] = NAN;
    mhf_softmax(z, 2, N, LD, NULL);
    CU_ASSERT_EQUAL(z[0], 0.0f);
    CU_ASSERT_TRUE(isnan(z[LD + 3])); /* a NaN is not hidden */
    free(z);
    free(kept);
    free(wide);
    free(want);
}

/* Scores of T rows over N keys whose softmax p gives scale·cross-entropy(p, target) and a retrieval
 * s = p E with a loss Σ s·weight of its own. */
typedef struct retrieval_case {
    double *z, *E, *weight, scale;
    const int32_t *target;
} retrieval_case;

static double retrieval_loss(const void *context)
{
    const retrieval_case *c = context;
    double loss = 0.0;
    for (int t = 0; t < T; t++) {
        double sum = 0.0;
        for (int i = 0; i < N; i++)
            sum += exp(c->z[t * N + i]);
        if (c->target[t] >= 0)
            loss += c->scale * (log(sum) - c->z[t * N + c->target[t]]);
        for (int i = 0; i < N && c->weight; i++)
            loss += exp(c->z[t * N + i]) / sum * weighted(c->E + i * D, c->weight + t * D, D);
    }
    return loss;
}

static const int32_t target[T] = {3, -1, 0, 66, -1};

static void gradients(void)
{
    float *z = random_floats(1, T * N, 4.0), *E = random_floats(2, N * D, 1.0);
    float *G = random_floats(3, T * D, 1.0), *r = zero_floats(T * N), *g = zero_floats(T * N);
    float lse[T], z_target[T] = {0};
    const float scale = 0.25f;
    retrieval_case c = {widened(z, T * N), widened(E, N * D), NULL, (double)scale, target};
    double *weight = widened(G, T * D), *want = zero_doubles(T * N), *own = zero_doubles(T * N);
    numeric_gradient(retrieval_loss, &c, c.z, T * N, own);
    double want_nats = retrieval_loss(&c) / (double)scale;
    c.weight = weight;
    numeric_gradient(retrieval_loss, &c, c.z, T * N, want);
    for (int t = 0; t < T; t++)
        if (target[t] >= 0)
            z_target[t] = z[t * N + target[t]];
    mhf_softmax(z, T, N, N, lse);
    CU_ASSERT_DOUBLE_EQUAL(mhf_cross_entropy(z_target, lse, target, T), want_nats, 1e-5);
    CU_ASSERT_EQUAL(mhf_cross_entropy(z_target, lse, target, 0), 0.0);
    mhf_cross_entropy_backward(z, target, scale, T, N, g);
    CHECK_CLOSE(g, own, T * N, 1e-5);
    for (int i = 0; i < N; i++)
        CU_ASSERT_EQUAL(g[N + i], 0.0f); /* no target: exactly nothing */

    mhf_gemm(MHF_N, MHF_T, T, N, D, G, D, E, D, 0.0f, r, N);
    mhf_retrieval_backward(z, NULL, target, scale, T, N, r);
    CHECK_CLOSE(r, want, T * N, 1e-5);
    mhf_gemm(MHF_N, MHF_T, T, N, D, G, D, E, D, 0.0f, r, N);
    mhf_retrieval_backward(z, g, target, 1e9f, T, N, r); /* base replaces target and scale */
    CHECK_CLOSE(r, want, T * N, 1e-5);
    mhf_retrieval_backward(z, NULL, target, scale, 0, N, r);
    mhf_cross_entropy_backward(z, target, scale, T, N, z); /* in place */
    CHECK_SAME_BITS(z, g, T * N);
    float *all[] = {z, E, G, r, g};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    double *doubles[] = {c.z, c.E, weight, want, own};
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++)
        free(doubles[i]);
}

static void threads(void)
{
    enum { ROWS = 64, WIDTH = 1500 };
    int32_t aim[ROWS];
    for (int32_t t = 0; t < ROWS; t++)
        aim[t] = t % 3 == 0 ? -1 : 20 * t;
    float *p[2], *r[2];
    for (int k = 0; k < 2; k++) {
        CHECK_OK(mhf_engine_start("reference", k + 1));
        p[k] = random_floats(1, ROWS * WIDTH, 9.0);
        r[k] = random_floats(2, ROWS * WIDTH, 1.0);
        mhf_softmax(p[k], ROWS, WIDTH, WIDTH, NULL);
        mhf_retrieval_backward(p[k], NULL, aim, 0.1f, ROWS, WIDTH, r[k]);
    }
    CHECK_SAME_BITS(p[0], p[1], ROWS * WIDTH);
    CHECK_SAME_BITS(r[0], r[1], ROWS * WIDTH);
    for (int k = 0; k < 2; k++) {
        free(p[k]);
        free(r[k]);
    }
}

int main(void)
{
    static const test_case cases[] = {{"softmax of extreme rows", softmax},
                                      {"gradients of loss and retrieval", gradients},
                                      {"threads", threads}};
    return run_tests("tensor.loss", cases, sizeof cases / sizeof cases[0]);
}
