/* SPDX-License-Identifier: ISC */
/* Causal grouped-query attention against plain sums, its gradients against central differences. */
#include "numeric.h"

typedef struct attention_case {
    int64_t blocks, T, n_q, n_kv, h;
    const int32_t *first;
    double *q, *k, *v, *weight; /* [blocks·T, heads·h] without padding; weight as q */
} attention_case;

/* Loss, and o [blocks·T, n_q·h] when not NULL. */
static double plain_attention(const attention_case *c, double *o)
{
    double loss = 0.0, *p = zero_doubles(c->T);
    int64_t group = c->n_q / c->n_kv;
    for (int64_t row = 0; row < c->blocks * c->T; row++)
        for (int64_t a = 0; a < c->n_q; a++) {
            int64_t t = row % c->T, base = row - t, u0 = c->first ? c->first[row] : 0;
            const double *q = c->q + (row * c->n_q + a) * c->h;
            double top = -INFINITY, sum = 0.0;
            for (int64_t u = u0; u <= t; u++) {
                const double *k = c->k + ((base + u) * c->n_kv + a / group) * c->h;
                p[u] = weighted(q, k, c->h) / sqrt((double)c->h);
                top = p[u] > top ? p[u] : top;
            }
            for (int64_t u = u0; u <= t; u++)
                sum += p[u] = exp(p[u] - top);
            for (int64_t i = 0; i < c->h; i++) {
                double y = 0.0;
                for (int64_t u = u0; u <= t; u++)
                    y += p[u] / sum * c->v[((base + u) * c->n_kv + a / group) * c->h + i];
                if (o)
                    o[(row * c->n_q + a) * c->h + i] = y;
                loss += y * c->weight[(row * c->n_q + a) * c->h + i];
            }
        }
    free(p);
    return loss;
}

static double attention_loss(const void *context)
{
    return plain_attention(context, NULL);
}

static float *with_stride(const float *x, int64_t rows, int64_t n, int64_t ld)
{
    float *y = zero_floats(rows * ld);
    for (int64_t t = 0; t < rows; t++)
        memcpy(y + t * ld, x + t * n, (size_t)n * sizeof *y);
    return y;
}

/* Differences are taken only when the sequence is short; the long ones check the forward. */
static void check_attention(int64_t blocks, int64_t T, int64_t n_q, int64_t n_kv, int64_t h,
                            const int32_t *first, double spread, bool gradients)
{
    int64_t rows = blocks * T, nq = n_q * h, nk = n_kv * h;
    mhf_attention_shape s = {blocks, T, n_q, n_kv, h, nq + 1, nk + 2, nk + 3, nq + 4, first};
    float *in[4] = {random_floats(1, rows * nq, spread), random_floats(2, rows * nk, spread),
                    random_floats(3, rows * nk, 1.0), random_floats(4, rows * nq, 1.0)};
    const int64_t width[4] = {nq, nk, nk, nq}, ld[4] = {s.ld_q, s.ld_k, s.ld_v, s.ld_o};
    attention_case c = {blocks, T, n_q, n_kv, h, first, NULL, NULL, NULL, NULL};
    double **wide[4] = {&c.q, &c.k, &c.v, &c.weight};
    float *x[4], *o = zero_floats(rows * s.ld_o), *lse = zero_floats(rows * n_q);
    for (int i = 0; i < 4; i++) {
        x[i] = with_stride(in[i], rows, width[i], ld[i]);
        *wide[i] = widened(in[i], rows * width[i]);
    }
    double *want_o = zero_doubles(rows * nq);
    plain_attention(&c, want_o);
    CHECK_OK(mhf_attention(&s, x[0], x[1], x[2], o, lse));
    float *packed = zero_floats(rows * nq);
    for (int64_t t = 0; t < rows; t++)
        memcpy(packed + t * nq, o + t * s.ld_o, (size_t)nq * sizeof *o);
    CHECK_CLOSE(packed, want_o, rows * nq, 1e-5);
    float *dx[3];
    for (int i = 0; i < 3; i++)
        dx[i] = random_floats(9, rows * ld[i], 1.0);
    if (gradients) {
        CHECK_OK(mhf_attention_backward(&s, x[0], x[1], x[2], o, lse, x[3], dx[0], dx[1], dx[2]));
        for (int i = 0; i < 3; i++) {
            float *got = zero_floats(rows * width[i]);
            double *want = zero_doubles(rows * width[i]);
            numeric_gradient(attention_loss, &c, *wide[i], rows * width[i], want);
            for (int64_t t = 0; t < rows; t++)
                memcpy(got + t * width[i], dx[i] + t * ld[i], (size_t)width[i] * sizeof *got);
            CHECK_CLOSE(got, want, rows * width[i], 2e-5);
            free(got);
            free(want);
        }
    }
    for (int i = 0; i < 4; i++) {
        free(in[i]);
        free(x[i]);
        free(*wide[i]);
        if (i < 3)
            free(dx[i]);
    }
    free(o);
    free(lse);
    free(want_o);
    free(packed);
}

static void forward_and_gradients(void)
{
    static const int32_t documents[] = {0, 0, 2, 2, 2, 0, 1, 1, 1, 4};
    static const int32_t padded[] = {3, 3, 3, 3, 3}; /* rows 0..2 see nothing */
    check_attention(1, 1, 1, 1, 2, NULL, 1.0, true);
    check_attention(2, 5, 4, 2, 6, NULL, 2.0, true);
    check_attention(1, 7, 3, 1, 5, NULL, 2.0, true);
    check_attention(2, 5, 2, 2, 4, documents, 2.0, true);
    check_attention(1, 5, 2, 1, 4, padded, 2.0, true);
    check_attention(2, 5, 2, 1, 4, NULL, 30.0, false);   /* scores of some hundreds */
    check_attention(1, 150, 2, 1, 16, NULL, 2.0, false); /* several tiles */
    check_attention(0, 5, 2, 1, 4, NULL, 1.0, true);
}

/* Several tiles: gradients of a few chosen elements would not show a wrong tile, so compare with
 * the same sequence cut by `first` into parts that fit one tile. */
static void tiles_agree(void)
{
    enum { T = 150, NQ = 2, H = 16, N = T * NQ * H };
    int32_t first[T];
    for (int t = 0; t < T; t++)
        first[t] = t / 50 * 50;
    mhf_attention_shape whole = {1, T, NQ, NQ, H, NQ * H, NQ * H, NQ * H, NQ * H, first};
    mhf_attention_shape parts = {3, 50, NQ, NQ, H, NQ * H, NQ * H, NQ * H, NQ * H, NULL};
    const mhf_attention_shape *shapes[2] = {&whole, &parts};
    float *q = random_floats(1, N, 2.0), *k = random_floats(2, N, 2.0);
    float *v = random_floats(3, N, 1.0), *d_o = random_floats(4, N, 1.0);
    float *out[2][5];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 5; j++)
            out[i][j] = zero_floats(N);
        CHECK_OK(mhf_attention(shapes[i], q, k, v, out[i][0], out[i][1]));
        CHECK_OK(mhf_attention_backward(shapes[i], q, k, v, out[i][0], out[i][1], d_o, out[i][2],
                                        out[i][3], out[i][4]));
    }
    for (int j = 0; j < 5; j++) {
        double *want = widened(out[1][j], N);
        CHECK_CLOSE(out[0][j], want, N, 2e-6);
        free(want);
    }
    for (int j = 0; j < 5; j++) {
        free(out[0][j]);
        free(out[1][j]);
    }
    free(q);
    free(k);
    free(v);
    free(d_o);
}

static void cached(void)
{
    enum { T = 90, NQ = 6, NKV = 2, H = 8 };
    int64_t nq = NQ * H, nk = NKV * H;
    mhf_attention_shape s = {1, T, NQ, NKV, H, nq, nk, nk, nq, NULL};
    float *q = random_floats(1, T * nq, 2.0), *k = random_floats(2, T * nk, 2.0);
    float *v = random_floats(3, T * nk, 1.0), *o = zero_floats(T * nq);
    float *lse = zero_floats(T * NQ), *got = zero_floats(T * nq);
    CHECK_OK(mhf_attention(&s, q, k, v, o, lse));
    double *want = widened(o, T * nq);
    static const int64_t steps[] = {0, 70, 71, 72, 90}; /* a prompt, single tokens, a few */
    for (int i = 0; i < 4; i++)
        CHECK_OK(mhf_attention_cached(steps[i + 1] - steps[i], steps[i], NQ, NKV, H,
                                      q + steps[i] * nq, k, v, got + steps[i] * nq));
    CHECK_CLOSE(got, want, T * nq, 2e-6);
    float *all[] = {q, k, v, o, lse, got};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    free(want);
}

static void threads(void)
{
    enum { BLOCKS = 2, T = 100, NQ = 4, NKV = 2, H = 16 };
    int64_t nq = NQ * H, nk = NKV * H, rows = BLOCKS * T;
    mhf_attention_shape s = {BLOCKS, T, NQ, NKV, H, nq, nk, nk, nq, NULL};
    float *q = random_floats(1, rows * nq, 2.0), *k = random_floats(2, rows * nk, 2.0);
    float *v = random_floats(3, rows * nk, 1.0), *d_o = random_floats(4, rows * nq, 1.0);
    float *out[2][5];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mhf_engine_start("reference", i + 1));
        for (int j = 0; j < 5; j++)
            out[i][j] = zero_floats(rows * nq);
        CHECK_OK(mhf_attention(&s, q, k, v, out[i][0], out[i][1]));
        CHECK_OK(mhf_attention_backward(&s, q, k, v, out[i][0], out[i][1], d_o, out[i][2],
                                        out[i][3], out[i][4]));
    }
    for (int j = 0; j < 5; j++) {
        CHECK_SAME_BITS(out[0][j], out[1][j], rows * nq);
        free(out[0][j]);
        free(out[1][j]);
    }
    free(q);
    free(k);
    free(v);
    free(d_o);
}

int main(void)
{
    static const test_case cases[] = {{"forward and gradients", forward_and_gradients},
                                      {"tiles agree", tiles_agree},
                                      {"keys from a cache", cached},
                                      {"threads", threads}};
    return run_tests("tensor.attention", cases, sizeof cases / sizeof cases[0]);
}
