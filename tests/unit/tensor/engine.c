/* SPDX-License-Identifier: ISC */
/* Every GEMM engine against plain double-precision sums, on awkward shapes and strides. */
#include "numeric.h"

typedef struct shape {
    int64_t m, n, k;
} shape;

static const char *const engines[] = {"reference", "onednn", "blis:default"};

static void reference_product(mhf_op a_op, mhf_op b_op, shape s, const float *a, int64_t lda,
                              const float *b, int64_t ldb, double beta, const float *c, int64_t ldc,
                              double *out)
{
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
            double sum = beta == 0.0 ? 0.0 : beta * (double)c[i * ldc + j];
            for (int64_t p = 0; p < s.k; p++)
                sum += (double)a[a_op == MHF_N ? i * lda + p : p * lda + i] *
                       (double)b[b_op == MHF_N ? p * ldb + j : j * ldb + p];
            out[i * ldc + j] = sum;
        }
}

static void check_product(mhf_op a_op, mhf_op b_op, shape s, float beta, int64_t pad)
{
    int64_t lda = (a_op == MHF_N ? s.k : s.m) + pad, ldb = (b_op == MHF_N ? s.n : s.k) + pad;
    int64_t ldc = s.n + pad, n_c = s.m * ldc;
    float *a = random_floats(1, (a_op == MHF_N ? s.m : s.k) * lda, 1.0);
    float *b = random_floats(2, (b_op == MHF_N ? s.k : s.n) * ldb, 1.0);
    float *c = random_floats(3, n_c, 1.0), *serial = random_floats(3, n_c, 1.0);
    double *want = widened(c, n_c); /* what lies between the rows must stay */
    reference_product(a_op, b_op, s, a, lda, b, ldb, (double)beta, c, ldc, want);
    if (beta == 0.0f) /* then C may hold anything */
        for (int64_t i = 0; i < s.m; i++)
            c[i * ldc] = NAN;
    mhf_gemm(a_op, b_op, s.m, s.n, s.k, a, lda, b, ldb, beta, c, ldc);
    mhf_gemm_serial(a_op, b_op, s.m, s.n, s.k, a, lda, b, ldb, beta, serial, ldc);
    CHECK_CLOSE(c, want, n_c, 5e-6);
    CHECK_CLOSE(serial, want, n_c, 5e-6);
    free(a);
    free(b);
    free(c);
    free(serial);
    free(want);
}

static void products(void)
{
    /* The last ones take the way for few rows, whole and with remainders. */
    static const shape shapes[] = {{1, 1, 1},      {1, 61, 17},    {3, 17, 61},   {17, 3, 1},
                                   {61, 1, 3},     {61, 61, 61},   {2, 64, 128},  {61, 17, 1000},
                                   {17, 1000, 61}, {4, 3, 1000},   {1, 1000, 61}, {7, 61, 300},
                                   {8, 300, 61},   {3, 1000, 517}, {5, 2100, 8}};
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        if (mhf_engine_start(engines[e], 2) != MHF_OK) {
            CU_ASSERT_STRING_EQUAL(engines[e], "onednn"); /* the only one that may be left out */
            continue;
        }
        CU_ASSERT_STRING_EQUAL(mhf_engine_name(), engines[e]);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int ops = 0; ops < 4; ops++) {
                mhf_op a_op = ops & 1 ? MHF_T : MHF_N, b_op = ops & 2 ? MHF_T : MHF_N;
                check_product(a_op, b_op, shapes[i], 0.0f, 0);
                check_product(a_op, b_op, shapes[i], 1.0f, 5);
                check_product(a_op, b_op, shapes[i], -0.5f, 0);
            }
    }
}

static void empty_products(void)
{
    float a[4] = {1, 2, 3, 4}, c[4] = {1, 2, NAN, 4};
    mhf_gemm(MHF_N, MHF_N, 0, 2, 2, a, 2, a, 2, 0.0f, c, 2);
    mhf_gemm(MHF_N, MHF_N, 2, 0, 2, a, 2, a, 2, 0.0f, c, 2);
    CU_ASSERT_EQUAL(c[0], 1.0f);
    mhf_gemm(MHF_N, MHF_N, 1, 2, 0, a, 1, a, 2, 2.0f, c, 2);
    CU_ASSERT_TRUE(c[0] == 2.0f && c[1] == 4.0f);
    mhf_gemm(MHF_N, MHF_N, 2, 2, 0, a, 1, a, 2, 0.0f, c, 2);
    CU_ASSERT_TRUE(c[0] == 0.0f && c[2] == 0.0f && c[3] == 0.0f);
}

static void check_bits_again(int64_t m, mhf_op b_op, int threads_again)
{
    enum { N = 1000, K = 517 };
    int64_t ldb = b_op == MHF_N ? N : K;
    float *a = random_floats(1, m * K, 1.0), *b = random_floats(2, N * K, 1.0);
    float *c = zero_floats(m * N), *again = zero_floats(m * N);
    mhf_gemm(MHF_N, b_op, m, N, K, a, K, b, ldb, 0.0f, c, N);
    CHECK_OK(mhf_engine_start(mhf_engine_name(), threads_again));
    mhf_gemm(MHF_N, b_op, m, N, K, a, K, b, ldb, 0.0f, again, N);
    CHECK_SAME_BITS(c, again, m * N);
    free(a);
    free(b);
    free(c);
    free(again);
}

static void same_bits_again(void)
{
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        if (mhf_engine_start(engines[e], 2) != MHF_OK)
            continue;
        check_bits_again(61, MHF_T, 2);
        check_bits_again(7, MHF_T, 1); /* few rows: whatever the number of threads */
        CHECK_OK(mhf_engine_start(engines[e], 2));
        check_bits_again(7, MHF_N, 1);
    }
}

static void serial_inside_parallel(void)
{
    enum { N = 61, ROWS = 40 };
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        if (mhf_engine_start(engines[e], 2) != MHF_OK)
            continue;
        float *a = random_floats(1, ROWS * N * N, 1.0), *b = random_floats(2, N * N, 1.0);
        float *c = zero_floats(ROWS * N * N), *alone = zero_floats(ROWS * N * N);
        for (int64_t i = 0; i < ROWS; i++)
            mhf_gemm_serial(MHF_N, MHF_N, N, N, N, a + i * N * N, N, b, N, 0.0f, alone + i * N * N,
                            N);
#pragma omp parallel for num_threads(2)
        for (int64_t i = 0; i < ROWS; i++)
            mhf_gemm_serial(MHF_N, MHF_N, N, N, N, a + i * N * N, N, b, N, 0.0f, c + i * N * N, N);
        CHECK_SAME_BITS(c, alone, ROWS * N * N);
        free(a);
        free(b);
        free(c);
        free(alone);
    }
}

static void choice(void)
{
    char kept[64];
    CU_ASSERT_EQUAL(mhf_engine_start("fast", 1), MHF_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "fast"));
    CU_ASSERT_EQUAL(mhf_engine_start("", 1), MHF_E_USAGE);
    CU_ASSERT_EQUAL(mhf_engine_start("blis:", 1), MHF_E_USAGE);
    CU_ASSERT_EQUAL(mhf_engine_start("reference", 0), MHF_E_USAGE);
    CU_ASSERT_EQUAL(mhf_engine_start("reference", -3), MHF_E_USAGE);
    CHECK_OK(mhf_engine_start("auto", 2));
    snprintf(kept, sizeof kept, "%s", mhf_engine_name());
    CU_ASSERT_STRING_NOT_EQUAL(kept, "auto");
    CHECK_OK(mhf_engine_start(kept, 1));
    CU_ASSERT_STRING_EQUAL(mhf_engine_name(), kept);
    CU_ASSERT_EQUAL(mhf_engine_threads(), 1);
    CHECK_OK(mhf_engine_start("blis", 2));
    CU_ASSERT_EQUAL(strncmp(mhf_engine_name(), "blis:", 5), 0);
    CU_ASSERT_EQUAL(mhf_engine_threads(), 2);
}

static double linear_loss(const void *context)
{
    enum { T = 5, IN = 7, OUT = 3 };
    const double *const *p = context; /* x, w, bias, weight of the output */
    double s = 0.0;
    for (int t = 0; t < T; t++)
        for (int o = 0; o < OUT; o++) {
            double y = p[2][o];
            for (int i = 0; i < IN; i++)
                y += p[0][t * IN + i] * p[1][o * IN + i];
            s += y * p[3][t * OUT + o];
        }
    return s;
}

static void linear(void)
{
    enum { T = 5, IN = 7, OUT = 3 };
    CHECK_OK(mhf_engine_start("reference", 2));
    float *x = random_floats(1, T * IN, 1.0), *w = random_floats(2, OUT * IN, 1.0);
    float *bias = random_floats(3, OUT, 1.0), *dy = random_floats(4, T * OUT, 1.0);
    float *y = zero_floats(T * OUT), *dx = random_floats(5, T * IN, 1.0);
    float *dw = random_floats(6, OUT * IN, 1.0), *dbias = random_floats(7, OUT, 1.0);
    double *p[4] = {widened(x, T * IN), widened(w, OUT * IN), widened(bias, OUT),
                    widened(dy, T * OUT)};
    const int64_t sizes[3] = {T * IN, OUT * IN, OUT};
    float *const grads[3] = {dx, dw, dbias};
    const float beta_dx = 0.5f;
    double *want[3];
    for (int i = 0; i < 3; i++) {
        want[i] = zero_doubles(sizes[i]);
        numeric_gradient(linear_loss, p, p[i], sizes[i], want[i]);
        for (int64_t j = 0; j < sizes[i]; j++)
            want[i][j] += (i == 0 ? (double)beta_dx : 1.0) * (double)grads[i][j];
    }
    mhf_linear(x, w, bias, T, IN, OUT, y);
    double loss = 0.0;
    for (int i = 0; i < T * OUT; i++)
        loss += (double)y[i] * (double)dy[i];
    CU_ASSERT_DOUBLE_EQUAL(loss, linear_loss(p), 1e-5);
    mhf_linear_backward(x, w, dy, T, IN, OUT, beta_dx, dx, dw, dbias);
    for (int i = 0; i < 3; i++)
        CHECK_CLOSE(grads[i], want[i], sizes[i], 1e-5);
    mhf_linear_backward(x, w, dy, 0, IN, OUT, 0.0f, dx, dw, dbias); /* no rows: nothing is added */
    CHECK_CLOSE(dw, want[1], sizes[1], 1e-5);
    mhf_linear_backward(x, w, dy, T, IN, OUT, 0.0f, NULL, NULL, NULL);
    float *all[] = {x, w, bias, dy, y, dx, dw, dbias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    for (int i = 0; i < 3; i++)
        free(want[i]);
    for (int i = 0; i < 4; i++)
        free(p[i]);
}

int main(void)
{
    static const test_case cases[] = {
        {"choice of the engine", choice},
        {"products of every engine", products},
        {"empty products", empty_products},
        {"the same bits again", same_bits_again},
        {"serial products inside a parallel region", serial_inside_parallel},
        {"linear layer and its gradients", linear}};
    return run_tests("tensor.engine", cases, sizeof cases / sizeof cases[0]);
}
