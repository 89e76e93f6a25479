/* SPDX-License-Identifier: ISC */
/* The objective over whole tokens against plain double precision. */
#include "numeric.h"

typedef struct vocabulary_case {
    int64_t T, H, B, V;
    const uint32_t *sig;
    const int32_t *target;
    double scale, *z; /* z [H,T,B] */
    int64_t correct;
} vocabulary_case;

static double logit(const vocabulary_case *c, int64_t t, int64_t v)
{
    double s = 0.0;
    for (int64_t k = 0; k < c->H; k++)
        s += c->z[(k * c->T + t) * c->B + c->sig[v * c->H + k]];
    return s;
}

static double vocabulary_loss(const void *context)
{
    const vocabulary_case *c = context;
    double loss = 0.0;
    for (int64_t t = 0; t < c->T; t++) {
        if (c->target[t] < 0)
            continue;
        double sum = 0.0;
        for (int64_t v = 0; v < c->V; v++)
            sum += exp(logit(c, t, v) - 200.0);
        loss += log(sum) + 200.0 - logit(c, t, c->target[t]);
    }
    return c->scale * loss;
}

static int64_t correct_of(const vocabulary_case *c)
{
    int64_t correct = 0;
    for (int64_t t = 0; t < c->T; t++) {
        int64_t best = 0;
        for (int64_t v = 1; v < c->V; v++)
            best = logit(c, t, v) > logit(c, t, best) ? v : best;
        correct += c->target[t] == best;
    }
    return correct;
}

static void check_vocabulary(int64_t T, int64_t H, int64_t B, int64_t V, double spread)
{
    uint32_t *sig = NULL;
    int32_t *target = NULL;
    CHECK_OK(mhf_new(&sig, V * H, sizeof *sig, "signatures"));
    CHECK_OK(mhf_new(&target, T, sizeof *target, "targets"));
    mhf_rng rng = mhf_rng_named(1, "signatures");
    for (int64_t i = 0; i < V * H; i++)
        sig[i] = (uint32_t)(mhf_rng_bits(rng, (uint64_t)i) % (uint64_t)B);
    int64_t n = H * T * B;
    float *z = random_floats(1, n, spread), *dz = random_floats(2, n, 1.0);
    vocabulary_case c = {T, H, B, V, sig, target, 0.125, widened(z, n), 0};
    for (int64_t t = 0; t < T; t++) { /* every third is right, every fifth has no target */
        int64_t best = 0;
        for (int64_t v = 1; v < V && t % 3 == 0; v++)
            best = logit(&c, t, v) > logit(&c, t, best) ? v : best;
        target[t] = t % 5 == 4 ? -1 : (int32_t)(t % 3 == 0 ? best : (7 * t) % V);
    }
    double *want = zero_doubles(n), nats = -1.0, again = -1.0;
    int64_t correct = -1;
    const float **rows = NULL;
    float **drows = NULL;
    CHECK_OK(mhf_new(&rows, H, sizeof *rows, "rows"));
    CHECK_OK(mhf_new(&drows, H, sizeof *drows, "rows"));
    for (int64_t k = 0; k < H; k++) {
        rows[k] = z + k * T * B;
        drows[k] = dz + k * T * B;
    }
    numeric_gradient(vocabulary_loss, &c, c.z, n, want);
    CHECK_OK(mhf_vocabulary_loss(rows, sig, target, T, H, B, V, 0.125f, drows, &nats, &correct));
    double want_nats = vocabulary_loss(&c) / c.scale;
    CU_ASSERT_TRUE(fabs(nats - want_nats) <= 1e-5 * (1.0 + want_nats));
    CU_ASSERT_EQUAL(correct, correct_of(&c));
    CHECK_CLOSE(dz, want, n, 2e-5);
    CHECK_OK(mhf_vocabulary_loss(rows, sig, target, T, H, B, V, 0.125f, NULL, &again, &correct));
    CU_ASSERT_EQUAL(again, nats);

    float *logits = zero_floats(T * V);
    double *want_logits = zero_doubles(T * V);
    for (int64_t t = 0; t < T; t++)
        for (int64_t v = 0; v < V; v++)
            want_logits[t * V + v] = logit(&c, t, v) * 0.5;
    mhf_vocabulary_logits(rows, sig, T, H, B, V, 0.5f, logits);
    CHECK_CLOSE(logits, want_logits, T * V, 1e-6);
    void *all[] = {sig, target, z, dz, c.z, want, rows, drows, logits, want_logits};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void loss_and_gradients(void)
{
    check_vocabulary(1, 1, 4, 9, 1.0);
    check_vocabulary(19, 3, 11, 61, 2.0);
    check_vocabulary(16, 4, 7, 300, 2.0);
    check_vocabulary(3, 2, 5, 17, 80.0);
}

static void no_targets(void)
{
    enum { T = 20, B = 4, V = 6 };
    uint32_t sig[V] = {0, 1, 2, 3, 1, 2};
    int32_t target[T];
    for (int t = 0; t < T; t++)
        target[t] = -1;
    float *z = random_floats(1, T * B, 1.0), *dz = random_floats(2, T * B, 1.0);
    const float *rows[1] = {z};
    float *drows[1] = {dz};
    double nats = 1.0;
    int64_t correct = 1;
    CHECK_OK(mhf_vocabulary_loss(rows, sig, target, T, 1, B, V, 1.0f, drows, &nats, &correct));
    CU_ASSERT_TRUE(nats == 0.0 && correct == 0);
    for (int i = 0; i < T * B; i++)
        CU_ASSERT_EQUAL(dz[i], 0.0f);
    CHECK_OK(mhf_vocabulary_loss(rows, sig, target, 0, 1, B, V, 1.0f, drows, &nats, &correct));
    CU_ASSERT_TRUE(nats == 0.0 && correct == 0);
    free(z);
    free(dz);
}

/* Two tokens with one signature: only the first counts as the arg-max. */
static void equal_tokens(void)
{
    static const uint32_t sig[3] = {0, 1, 1};
    static const int32_t target[2] = {1, 2};
    static const float z[4] = {0.0f, 1.0f, 0.0f, 1.0f};
    const float *rows[1] = {z};
    double nats;
    int64_t correct;
    CHECK_OK(mhf_vocabulary_loss(rows, sig, target, 2, 1, 2, 3, 1.0f, NULL, &nats, &correct));
    CU_ASSERT_EQUAL(correct, 1);
}

static void threads(void)
{
    enum { T = 70, H = 3, B = 50, V = 700 };
    uint32_t sig[V * H];
    int32_t target[T];
    mhf_rng rng = mhf_rng_named(1, "signatures");
    for (uint64_t i = 0; i < V * H; i++)
        sig[i] = (uint32_t)(mhf_rng_bits(rng, i) % B);
    for (int32_t t = 0; t < T; t++)
        target[t] = t % 7 == 0 ? -1 : 9 * t;
    float *z = random_floats(1, H * T * B, 3.0), *dz[2];
    double nats[2];
    for (int k = 0; k < 2; k++) {
        CHECK_OK(mhf_engine_start("reference", k + 1));
        int64_t correct;
        dz[k] = zero_floats(H * T * B);
        const float *rows[H] = {z, z + T * B, z + 2 * T * B};
        float *drows[H] = {dz[k], dz[k] + T * B, dz[k] + 2 * T * B};
        CHECK_OK(
            mhf_vocabulary_loss(rows, sig, target, T, H, B, V, 1.0f, drows, nats + k, &correct));
    }
    CU_ASSERT_EQUAL(nats[0], nats[1]);
    CHECK_SAME_BITS(dz[0], dz[1], H * T * B);
    free(z);
    free(dz[0]);
    free(dz[1]);
}

int main(void)
{
    static const test_case cases[] = {{"loss and gradients", loss_and_gradients},
                                      {"no targets", no_targets},
                                      {"equal tokens", equal_tokens},
                                      {"threads", threads}};
    return run_tests("tensor.vocabulary", cases, sizeof cases / sizeof cases[0]);
}
