/* SPDX-License-Identifier: ISC */
#include "tables.h"

enum { MOST = 6000 };

/* Tokens "word0", "word1", …; token 0 is the pad. */
static mhf_vocabulary made(int32_t size)
{
    static char text[MOST][16];
    static const char *list[MOST];
    static size_t lengths[MOST];
    for (int32_t i = 0; i < size; i++) {
        lengths[i] = (size_t)snprintf(text[i], sizeof text[i], "word%d", i);
        list[i] = text[i];
    }
    return (mhf_vocabulary){
        .pieces = list, .lengths = lengths, .size = size, .base_size = size, .pad = 0};
}

static void report(int32_t size, mhf_signature_options options, mhf_buf *out)
{
    mhf_vocabulary v = made(size);
    mhf_signatures table = {0};
    mhf_buf_clear(out);
    CHECK_OK(mhf_signatures_build(&v, &options, &table));
    CHECK_OK(mhf_signatures_report(&table, out));
    mhf_signatures_free(&table);
}

static void check_says(const mhf_buf *text, const char *words, bool expected)
{
    bool said = strstr(text->data, words) != NULL;
    CU_ASSERT_EQUAL(said, expected);
    if (said != expected)
        fprintf(stderr, "\n    '%s' %s in:\n%s", words, said ? "stands" : "is missing", text->data);
}

/* The factor 131 makes two coordinates agree on a fifth of the tokens; 127 is coprime. */
static void test_correlated(void)
{
    mhf_buf text = {0};
    report(MOST, (mhf_signature_options){.num_hashes = 3, .num_buckets = 132}, &text);
    check_says(&text, "warning:", true);
    check_says(&text, "B-1 = 131 shares the factor 131 with 2^65+1", true);
    check_says(&text, ", above\n", true);
    report(MOST, (mhf_signature_options){.num_hashes = 3, .num_buckets = 128}, &text);
    check_says(&text, "warning:", false);
    check_says(&text, "2^65+1", false);
    check_says(&text, "one-to-one", true);
    check_says(&text, "capacity (B-1)^H = 2.048e+06 for 5999 signatures", true);
    report(MOST, (mhf_signature_options){.num_hashes = 2, .num_buckets = 16384}, &text);
    check_says(&text, "shares the factor 3 with", true);
    mhf_buf_free(&text);
}

static void test_many_to_one(void)
{
    mhf_buf text = {0};
    report(1000,
           (mhf_signature_options){.num_hashes = 1, .num_buckets = 100, .rule = MHF_RULE_REFERENCE},
           &text);
    check_says(&text, "many-to-one:", true);
    check_says(&text, "coincide", false);
    report(1000,
           (mhf_signature_options){
               .num_hashes = 2, .num_buckets = 11, .num_lsh = 2, .rule = MHF_RULE_REFERENCE},
           &text);
    check_says(&text, "many-to-one:", true);
    check_says(&text, "LSH", true);
    mhf_buf_free(&text);
}

/* A table small enough to count by hand. */
static void test_counts(void)
{
    static const mhf_bucket ids[6][2] = {{0, 0}, {1, 1}, {1, 2}, {3, 3}, {1, 3}, {0, 0}};
    mhf_signature_options o = {.num_hashes = 2, .num_buckets = 5, .rule = MHF_RULE_IMPORTED};
    mhf_signatures table = {0};
    mhf_buf text = {0};
    CHECK_OK(mhf_signatures_adopt(&ids[0][0], 6, 5, 0, &o, &table));
    CHECK_OK(mhf_signatures_report(&table, &text));
    check_says(&text, "5 tokens (pad 0), 6 rows; H = 2, B = 5, 0 LSH, rule imported\n", true);
    check_says(&text, "tokens a bucket, mean 1.00:", true);
    check_says(&text, "  0 murmur         0        3         2\n", true);
    check_says(&text, "  1 murmur         0        2         1\n", true);
    /* Mean 1: P(X ≤ 0) = 0.37, P(X ≤ 2) = 0.92, P(X ≤ 3) = 0.98. */
    check_says(&text, "    0     1         2        1.00        0..3", true);
    mhf_signatures_free(&table);

    o.num_lsh = 2; /* chance then follows the loads: (3·1 + 1·2)/4 */
    mhf_buf_clear(&text);
    CHECK_OK(mhf_signatures_adopt(&ids[0][0], 6, 5, 0, &o, &table));
    CHECK_OK(mhf_signatures_report(&table, &text));
    check_says(&text, "    0     1         2        1.25        0..4", true);
    mhf_signatures_free(&table);

    /* Nothing but pads. */
    mhf_buf_clear(&text);
    CHECK_OK(mhf_signatures_adopt(&ids[5][0], 1, 1, 0, &o, &table));
    CHECK_OK(mhf_signatures_report(&table, &text));
    check_says(&text, "1 tokens", true);
    mhf_signatures_free(&table);
    mhf_buf_free(&text);
}

int main(void)
{
    static const test_case cases[] = {
        {"correlated coordinates", test_correlated},
        {"many-to-one tables", test_many_to_one},
        {"a table counted by hand", test_counts},
    };
    return run_tests("signature_report", cases, sizeof cases / sizeof *cases);
}
