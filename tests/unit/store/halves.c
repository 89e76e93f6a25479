/* SPDX-License-Identifier: ISC */
/* Floats of 16 bits: every value there and back, and every tie between neighbours to even. */
#include "../../../src/store/halves.h"

#include <math.h>

#include "support.h"

typedef void (*narrow)(const float *in, int64_t n, uint16_t *out);
typedef void (*widen)(const uint16_t *in, int64_t n, float *out);

static void check_type(narrow to, widen from, uint16_t infinity)
{
    long wrong = 0;
    for (uint32_t sign = 0; sign < 2; sign++) {
        for (uint16_t bits = 0; bits <= infinity; bits++) {
            uint16_t half = (uint16_t)(bits | sign << 15), back, next = (uint16_t)(half + 1);
            float value, above;
            from(&half, 1, &value);
            to(&value, 1, &back);
            wrong += back != half || (signbit(value) != 0) != (sign == 1);
            if (bits >= infinity - 1)
                continue;
            from(&next, 1, &above);
            /* Half-way, and the floats on both sides of it. */
            float middle = (float)(((double)value + (double)above) / 2);
            float below = nextafterf(middle, value), beyond = nextafterf(middle, above);
            to(&middle, 1, &back);
            wrong += back != (half & 1 ? next : half);
            to(&below, 1, &back);
            wrong += back != half;
            to(&beyond, 1, &back);
            wrong += back != next;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    const float large[] = {3.4028235e38f, INFINITY, -INFINITY}, nans[] = {NAN, -NAN};
    uint16_t found[3];
    float back[3];
    to(large, 3, found);
    CU_ASSERT_EQUAL(found[0], infinity);
    CU_ASSERT_EQUAL(found[1], infinity);
    CU_ASSERT_EQUAL(found[2], infinity | 0x8000);
    to(nans, 2, found);
    from(found, 2, back);
    CU_ASSERT(isnan(back[0]) && isnan(back[1]));
}

static void test_f16(void)
{
    check_type(mhf_floats_to_f16, mhf_f16_to_floats, 0x7c00);
    float values[] = {1.0f, -2.0f, 65504.0f, 65519.0f, 65520.0f, 0x1p-14f, 0x1p-24f, 0x1p-25f};
    static const uint16_t wanted[] = {0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x0400, 1, 0};
    uint16_t found[8];
    mhf_floats_to_f16(values, 8, found);
    CU_ASSERT_EQUAL(memcmp(found, wanted, sizeof found), 0);
}

static void test_bf16(void)
{
    check_type(mhf_floats_to_bf16, mhf_bf16_to_floats, 0x7f80);
    float values[] = {1.0f, 3.9998f, 0x1p-140f, 1.00390625f, 1.01171875f};
    static const uint16_t wanted[] = {0x3f80, 0x4080, 0x0000, 0x3f80, 0x3f82};
    uint16_t found[5];
    mhf_floats_to_bf16(values, 5, found);
    for (int i = 0; i < 5; i++)
        if (i != 2) /* a denormal, which is checked above */
            CU_ASSERT_EQUAL(found[i], wanted[i]);
}

int main(void)
{
    static const test_case cases[] = {{"float16", test_f16}, {"bfloat16", test_bf16}};
    return run_tests("halves", cases, sizeof cases / sizeof *cases);
}
