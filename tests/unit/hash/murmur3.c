/* SPDX-License-Identifier: ISC */
#include "mhf/hash.h"
#include "support.h"

static int nibble(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    return n;
}

static void test_golden(void)
{
    const char *path = golden("murmur3.tsv");
    if (!path)
        return;
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    static char line[8192], hex[4096];
    static uint8_t bytes[2048];
    int n = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long long seed, high, low, mod_a, mod_b;
        if (sscanf(line, "%4095s %llu %16llx%16llx %llu %llu", hex, &seed, &high, &low, &mod_a,
                   &mod_b) != 6)
            continue; /* the header */
        mhf_hash128 hash = mhf_murmur3(bytes, unhex(hex, bytes), (uint32_t)seed);
        CU_ASSERT_EQUAL(hash.high, high);
        CU_ASSERT_EQUAL(hash.low, low);
        CU_ASSERT_EQUAL(mhf_hash128_mod(hash, 10623), mod_a);
        CU_ASSERT_EQUAL(mhf_hash128_mod(hash, 16383), mod_b);
        n++;
    }
    fclose(file);
    CU_ASSERT_EQUAL(n, 300);
}

/* The same bytes give the same hash at every address. */
static void test_alignment(void)
{
    uint8_t buffer[64 + 16];
    for (size_t n = 0; n <= 64; n++) {
        mhf_hash128 first = {0};
        for (size_t shift = 0; shift < 16; shift++) {
            for (size_t i = 0; i < n; i++)
                buffer[shift + i] = (uint8_t)(i * 37 + n);
            mhf_hash128 hash = mhf_murmur3(buffer + shift, n, 7);
            if (shift == 0)
                first = hash;
            CU_ASSERT_EQUAL(hash.low, first.low);
            CU_ASSERT_EQUAL(hash.high, first.high);
        }
    }
}

static void test_mod(void)
{
    mhf_hash128 largest = {.low = UINT64_MAX, .high = UINT64_MAX};
    CU_ASSERT_EQUAL(mhf_hash128_mod(largest, 1), 0);
    CU_ASSERT_EQUAL(mhf_hash128_mod(largest, 2), 1);
    CU_ASSERT_EQUAL(mhf_hash128_mod(largest, 3), 0); /* 4^64 - 1 */
    CU_ASSERT_EQUAL(mhf_hash128_mod(largest, UINT64_MAX), 0);
    mhf_hash128 power = {.low = 0, .high = 1};
    CU_ASSERT_EQUAL(mhf_hash128_mod(power, 10), 6); /* 18446744073709551616 */
}

int main(void)
{
    static const test_case cases[] = {
        {"golden vectors", test_golden},
        {"any alignment", test_alignment},
        {"remainder of the 128-bit integer", test_mod},
    };
    return run_tests("murmur3", cases, sizeof cases / sizeof *cases);
}
