/* SPDX-License-Identifier: ISC */
#include "support.h"

#include "../../../src/hash/sign_product.h"

/* Every count of tokens and columns, ties included, against sums in the order of the rows. */
static void test_sign_product(void)
{
    enum { GROUPS = 32, ROWS = 4 * GROUPS, STRIDE = 96, T = 1101 };
    static uint8_t codes[T][GROUPS];
    static float matrix[ROWS][STRIDE];
    static int32_t best[T];
    mhf_rng rng = mhf_rng_named(1, "sign_product");
    for (int i = 0; i < T * GROUPS; i++)
        codes[i / GROUPS][i % GROUPS] = (uint8_t)(mhf_rng_bits(rng, (uint64_t)i) & 15);
    /* Small integers: sums are exact and often equal. */
    for (int i = 0; i < ROWS * STRIDE; i++)
        matrix[i / STRIDE][i % STRIDE] = (float)(mhf_rng_bits(rng, (uint64_t)i) >> 60) - 7.0f;
    for (int n = 1; n <= STRIDE; n += 19) {
        int tokens = n % 2 ? T : 514;
        CHECK_OK(
            mhf_sign_product_argmax(&codes[0][0], tokens, GROUPS, &matrix[0][0], STRIDE, n, best));
        for (int t = 0; t < tokens; t++) {
            int expected = 0;
            float highest = 0;
            for (int c = 0; c < n; c++) {
                float sum = 0;
                for (int i = 0; i < ROWS; i++)
                    sum += codes[t][i / 4] >> i % 4 & 1 ? matrix[i][c] : -matrix[i][c];
                if (c == 0 || sum > highest) {
                    highest = sum;
                    expected = c;
                }
            }
            CU_ASSERT_EQUAL(best[t], expected);
        }
    }
}

int main(void)
{
    static const test_case cases[] = {{"first largest column", test_sign_product}};
    return run_tests("sign_product", cases, sizeof cases / sizeof *cases);
}
