/* SPDX-License-Identifier: ISC */
#include "../../../src/hash/torch_normals.h"
#include "npy.h"
#include <math.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The first and last 64 values of both matrices of an LSH table, bit for bit. */
static void check_matrices(const char *name, int64_t num_lsh, int64_t columns)
{
    char file[128];
    snprintf(file, sizeof file, "signatures/%s.proj.npz", name);
    const char *path = golden(file);
    if (!path)
        return;
    static const char *const members[] = {"first64_1", "last64_1", "raw64_2"};
    int64_t n_1 = 16000 * num_lsh * 512, n_2 = 512 * num_lsh * num_lsh * columns;
    const int64_t skip[] = {0, n_1 - 64, 0};
    const uint32_t seeds[] = {3407, 3407, 3408};
    for (int m = 0; m < 3; m++) {
        npy expected;
        CU_ASSERT_FATAL(npz_read(path, members[m], &expected));
        mhf_normal_stream stream;
        float values[64];
        mhf_normal_stream_start(&stream, seeds[m]);
        mhf_normal_stream_skip(&stream, skip[m]);
        mhf_normal_stream_read(&stream, 64, values);
        for (int i = 0; i < 64; i++)
            CU_ASSERT_EQUAL(bits_of(values[i]), bits_of(npy_float(&expected, i)));
        npy_free(&expected);
    }

    /* The end of matrix 2 is known after its row's normalisation only. */
    npy expected;
    CU_ASSERT_FATAL(npz_read(path, "norm_last64_2", &expected));
    float *row;
    CHECK_OK(mhf_new(&row, columns, sizeof *row, "a row"));
    mhf_normal_stream stream;
    mhf_normal_stream_start(&stream, 3408);
    mhf_normal_stream_skip(&stream, n_2 - columns);
    mhf_normal_stream_read(&stream, columns, row);
    double squares = 0;
    for (int64_t c = 0; c < columns; c++)
        squares += (double)row[c] * (double)row[c];
    int64_t shown = columns < 64 ? columns : 64;
    for (int64_t i = 0; i < shown; i++) {
        double value = (double)row[columns - shown + i] / sqrt(squares);
        float golden_value = npy_float(&expected, 64 - shown + i);
        /* Its norm was summed in float32. */
        CU_ASSERT(fabs(value - (double)golden_value) <= 2e-6 * fabs(value));
    }
    free(row);
    npy_free(&expected);
}

static void test_golden(void)
{
    check_matrices("spm-H4B61L2", 2, 60);
    check_matrices("spm-H4B61L4", 4, 60);
    check_matrices("mistral-H4B16384L1", 1, 16383);
    check_matrices("mistral-H4B16384L2", 2, 16383);
    check_matrices("mistral-H4B16384L3", 3, 16383);
    check_matrices("mistral-H4B16384L4", 4, 16383);
}

/* Reading and skipping in odd pieces gives what one call gives. */
static void test_stream(void)
{
    enum { N = 16 * 300 };
    static float whole[N], pieces[N];
    CHECK_OK(mhf_torch_normals(42, N, whole));
    mhf_normal_stream stream;
    mhf_normal_stream_start(&stream, 42);
    memset(pieces, 0, sizeof pieces);
    for (int64_t at = 0, i = 0; at < N; i++) {
        int64_t some = (i * i * 7) % 1500;
        some = some < N - at ? some : N - at;
        if (i % 3 == 1) {
            mhf_normal_stream_skip(&stream, some);
            memcpy(pieces + at, whole + at, (size_t)some * sizeof *pieces);
        } else {
            mhf_normal_stream_read(&stream, some, pieces + at);
        }
        at += some;
    }
    CU_ASSERT_EQUAL(memcmp(whole, pieces, sizeof whole), 0);
}

/* A length that is no multiple of 16 draws its last 16 anew and keeps all before them. */
static void test_tail(void)
{
    float even[48], odd[41];
    CHECK_OK(mhf_torch_normals(7, 48, even));
    CHECK_OK(mhf_torch_normals(7, 41, odd));
    CU_ASSERT_EQUAL(memcmp(even, odd, 25 * sizeof *odd), 0);
    CU_ASSERT_NOT_EQUAL(bits_of(even[25]), bits_of(odd[25]));
    float few[15];
    CU_ASSERT_EQUAL(mhf_torch_normals(7, 15, few), MHF_E_INTERNAL);
}

static void test_moments(void)
{
    enum { N = 1 << 20 };
    float *x;
    CHECK_OK(mhf_new(&x, N, sizeof *x, "deviates"));
    CHECK_OK(mhf_torch_normals(1, N, x));
    double sum = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double v = (double)x[i];
        sum += v;
        squares += v * v;
        fourth += v * v * v * v;
    }
    CU_ASSERT(fabs(sum / N) < 5e-3);
    CU_ASSERT(fabs(squares / N - 1) < 7e-3);
    CU_ASSERT(fabs(fourth / N - 3) < 5e-2);
    free(x);
}

int main(void)
{
    static const test_case cases[] = {
        {"golden matrices", test_golden},
        {"a stream in pieces", test_stream},
        {"a tail of less than 16", test_tail},
        {"moments", test_moments},
    };
    return run_tests("torch_normals", cases, sizeof cases / sizeof *cases);
}
