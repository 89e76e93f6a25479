/* SPDX-License-Identifier: ISC */
#include "tables.h"

/* ---- goldens -----------------------------------------------------------------------------------
 */

static void test_small(void)
{
    CU_ASSERT_EQUAL(each_table_row("spm", false, check_table_row), 3);
    CU_ASSERT_EQUAL(each_table_row("bytelevel", false, check_table_row), 2);
}

static void test_mistral(void)
{
    CU_ASSERT_EQUAL(each_table_row("mistral", false, check_table_row), 6);
}

static void test_small_lsh(void)
{
    CU_ASSERT_EQUAL(each_table_row("spm", true, check_table_row), 2);
}

static void check_expansion(const char *table, const char *tokenizer, int32_t pad, int32_t H,
                            int32_t num_lsh)
{
    pieces p;
    const char *path = golden(table);
    if (!path || !pieces_read(golden(tokenizer), pad, &p))
        return;
    npy ids;
    CU_ASSERT_FATAL(npy_read(path, &ids));
    mhf_signature_options options = {
        .num_hashes = H, .num_buckets = 61, .num_lsh = num_lsh, .rule = MHF_RULE_REFERENCE};
    mhf_signatures built = {0};
    const near_ties none = {0};
    CHECK_OK(mhf_signatures_build(&p.vocabulary, &options, &built));
    check_table(table, &built, &ids, built.rows, &none);
    mhf_signatures_free(&built);
    npy_free(&ids);
    pieces_free(&p);
}

/* Before and after a vocabulary's expansion. */
static void test_expansion(void)
{
    static const struct {
        const char *name, *source, *expanded;
        int32_t pad;
    } of[] = {
        {"spm", "tokenizers/spm/tokenizer.json", "bpe_train/expanded-spm/tokenizer.json", 2},
        {"bytelevel", "tokenizers/bytelevel/tokenizer.json",
         "bpe_train/expanded-bytelevel/tokenizer.json", 2045},
    };
    for (int i = 0; i < 2; i++) {
        for (int lsh = 0; lsh <= 2; lsh += 2) {
            char name[128];
            int32_t H = lsh ? 4 : 3;
            snprintf(name, sizeof name, "ve/signatures-%s-H%dB61L%d.source.npy", of[i].name, H,
                     lsh);
            check_expansion(name, of[i].source, of[i].pad, H, lsh);
            snprintf(name, sizeof name, "ve/signatures-%s-H%dB61L%d.expanded.npy", of[i].name, H,
                     lsh);
            check_expansion(name, of[i].expanded, of[i].pad, H, lsh);
        }
    }
}

/* ---- made vocabularies --------------------------------------------------------------------------
 */

enum { MOST = 4096 };

/* Tokens "t0", "t1", …; token 0 is the pad. */
static mhf_vocabulary made(int32_t size)
{
    static char text[MOST][8];
    static const char *list[MOST];
    static size_t lengths[MOST];
    for (int32_t i = 0; i < size; i++) {
        lengths[i] = (size_t)snprintf(text[i], sizeof text[i], "t%d", i);
        list[i] = text[i];
    }
    return (mhf_vocabulary){
        .pieces = list, .lengths = lengths, .size = size, .base_size = size, .pad = 0};
}

static mhf_signature_options sized(int32_t H, int32_t B, mhf_signature_rule rule)
{
    return (mhf_signature_options){.num_hashes = H, .num_buckets = B, .rule = rule};
}

/* `unique` is one-to-one up to a full table and keeps bucket 0 for the pad. */
static void test_unique_full(void)
{
    mhf_vocabulary v = made(1001);
    mhf_signature_options o = sized(1, 1001, MHF_RULE_UNIQUE);
    mhf_signatures table = {0};
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    CU_ASSERT_EQUAL(table.duplicates, 0);
    CU_ASSERT_EQUAL(table.rows, 1024);
    CU_ASSERT_EQUAL(table.ids[0], 0);
    for (int32_t t = 1; t < table.size; t++)
        CU_ASSERT(table.ids[t] >= 1 && table.ids[t] <= 1000);
    for (int32_t t = table.size; t < table.rows; t++)
        CU_ASSERT_EQUAL(table.ids[t], 0);
    mhf_signatures_free(&table);
}

static void check_refused(const mhf_vocabulary *v, mhf_signature_options o, mhf_status status,
                          const char *said)
{
    mhf_signatures table = {0};
    CU_ASSERT_EQUAL(mhf_signatures_build(v, &o, &table), status);
    CU_ASSERT_PTR_NULL(table.ids);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), said));
    if (!strstr(mhf_error(), said))
        fprintf(stderr, "\n    said: %s\n", mhf_error());
}

static void test_exhausted(void)
{
    mhf_vocabulary v = made(1001);
    check_refused(&v, sized(1, 1000, MHF_RULE_UNIQUE), MHF_E_EXHAUSTED, "--rule reference");
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_EXHAUSTED), 2);

    mhf_signature_options lsh = sized(2, 100, MHF_RULE_UNIQUE);
    lsh.num_lsh = 2;
    check_refused(&v, lsh, MHF_E_EXHAUSTED, "--rule reference");

    /* Some prefix of 2 hash functions with 11 buckets is full long before 1000 tokens. */
    check_refused(&v, sized(2, 11, MHF_RULE_UNIQUE), MHF_E_EXHAUSTED, "10 of 10 are taken");
    check_refused(&v, sized(2, 11, MHF_RULE_UNIQUE), MHF_E_EXHAUSTED, "'t");
    /* With one id to give even the latest token alone fills a prefix: the search ends. */
    check_refused(&v, sized(3, 2, MHF_RULE_REFERENCE), MHF_E_EXHAUSTED, "token 2 't2'");
}

static void test_reference_is_many_to_one(void)
{
    mhf_vocabulary v = made(1001);
    mhf_signature_options o = sized(1, 1000, MHF_RULE_REFERENCE);
    mhf_signatures table = {0};
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    CU_ASSERT(table.duplicates > 0);
    /* The latest token's id is never given to the next. */
    for (int32_t t = 2; t < table.size; t++)
        CU_ASSERT_NOT_EQUAL(table.ids[t], table.ids[t - 1]);
    mhf_signatures_free(&table);
}

/* Added tokens past the base: all zero under `reference`, their own under `unique`. */
static void test_added_tokens(void)
{
    mhf_vocabulary v = made(300);
    v.base_size = 290;
    v.pad = 295;
    mhf_signatures table = {0};
    mhf_signature_options o = sized(2, 64, MHF_RULE_REFERENCE);
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    for (int32_t t = 290; t < 300; t++)
        CU_ASSERT(table.ids[2 * t] == 0 && table.ids[2 * t + 1] == 0);
    mhf_signatures_free(&table);
    o.rule = MHF_RULE_UNIQUE;
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    for (int32_t t = 290; t < 300; t++)
        CU_ASSERT_EQUAL(table.ids[2 * t] == 0, t == v.pad);
    CU_ASSERT_EQUAL(table.duplicates, 0);
    mhf_signatures_free(&table);
}

/* A hash seed of 1 shifts coordinate j to what coordinate j + 1 had. */
static void test_hash_seed(void)
{
    mhf_vocabulary v = made(500);
    mhf_signatures plain = {0}, shifted = {0};
    mhf_signature_options o = sized(4, 4096, MHF_RULE_UNIQUE);
    CHECK_OK(mhf_signatures_build(&v, &o, &plain));
    o.hash_seed = 1;
    CHECK_OK(mhf_signatures_build(&v, &o, &shifted));
    for (int32_t t = 0; t < v.size; t++)
        for (int32_t j = 0; j < 3; j++)
            CU_ASSERT_EQUAL(shifted.ids[4 * t + j], plain.ids[4 * t + j + 1]);
    mhf_signatures_free(&plain);
    mhf_signatures_free(&shifted);

    o = sized(2, 31, MHF_RULE_REFERENCE);
    o.num_lsh = 2;
    CHECK_OK(mhf_signatures_build(&v, &o, &plain));
    o.hash_seed = 1;
    CHECK_OK(mhf_signatures_build(&v, &o, &shifted));
    CU_ASSERT(memcmp(plain.ids, shifted.ids, (size_t)v.size * 2 * sizeof *plain.ids) != 0);
    mhf_signatures_free(&plain);
    mhf_signatures_free(&shifted);
}

static void test_bad_input(void)
{
    mhf_vocabulary v = made(100);
    check_refused(&v, sized(0, 61, MHF_RULE_UNIQUE), MHF_E_CONFIG, "0 hash functions");
    check_refused(&v, sized(2000000000, 61, MHF_RULE_UNIQUE), MHF_E_CONFIG, "hash functions");
    check_refused(&v, sized(3, 1, MHF_RULE_UNIQUE), MHF_E_CONFIG, "1 buckets");
    check_refused(&v, sized(3, -5, MHF_RULE_UNIQUE), MHF_E_CONFIG, "-5 buckets");
    check_refused(&v, sized(3, 61, MHF_RULE_IMPORTED), MHF_E_CONFIG, "imported");
    mhf_signature_options o = sized(3, 61, MHF_RULE_UNIQUE);
    o.num_lsh = 4;
    check_refused(&v, o, MHF_E_CONFIG, "4 LSH coordinates");
    v.pad = 100;
    check_refused(&v, sized(3, 61, MHF_RULE_UNIQUE), MHF_E_DATA, "pad token 100");
    v.pad = -1;
    check_refused(&v, sized(3, 61, MHF_RULE_UNIQUE), MHF_E_DATA, "pad token -1");

    const char *gap[3] = {"a", NULL, "c"};
    const size_t lengths[3] = {1, 0, 1};
    mhf_vocabulary with_gap = {
        .pieces = gap, .lengths = lengths, .size = 3, .base_size = 3, .pad = 0};
    check_refused(&with_gap, sized(3, 61, MHF_RULE_UNIQUE), MHF_E_DATA, "id 1");

    const char *torn[2] = {"pad", "a\xe2\x96"};
    const size_t torn_lengths[2] = {3, 3};
    mhf_vocabulary not_utf8 = {
        .pieces = torn, .lengths = torn_lengths, .size = 2, .base_size = 2, .pad = 0};
    o = sized(3, 61, MHF_RULE_UNIQUE);
    o.num_lsh = 1;
    check_refused(&not_utf8, o, MHF_E_DATA, "token 1");
}

/* Pieces may hold NUL bytes, be empty, and be shorter than a trigram. */
static void test_odd_pieces(void)
{
    const char *odd[5] = {"pad", "", "a\0b", "a\0c", "\xe2\x96\x81"};
    const size_t lengths[5] = {3, 0, 3, 3, 3};
    mhf_vocabulary v = {.pieces = odd, .lengths = lengths, .size = 5, .base_size = 5, .pad = 0};
    mhf_signature_options o = sized(3, 100003, MHF_RULE_UNIQUE);
    mhf_signatures table = {0};
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    CU_ASSERT_NOT_EQUAL(table.ids[3 * 2], table.ids[3 * 3]);
    mhf_signatures_free(&table);
    o = sized(3, 61, MHF_RULE_UNIQUE);
    o.num_lsh = 2;
    CHECK_OK(mhf_signatures_build(&v, &o, &table));
    mhf_signatures_free(&table);
}

static void test_adopt(void)
{
    static const mhf_bucket ids[4][2] = {{0, 0}, {3, 2}, {3, 2}, {0, 0}};
    mhf_signature_options o = sized(2, 4, MHF_RULE_IMPORTED);
    mhf_signatures table = {0};
    CHECK_OK(mhf_signatures_adopt(&ids[0][0], 4, 3, 0, &o, &table));
    CU_ASSERT_EQUAL(table.duplicates, 1);
    CU_ASSERT_EQUAL(table.rows, 4);
    CU_ASSERT_EQUAL(table.size, 3);
    CU_ASSERT_EQUAL(memcmp(table.ids, ids, sizeof ids), 0);
    mhf_signatures_free(&table);

    o.num_buckets = 3;
    CU_ASSERT_EQUAL(mhf_signatures_adopt(&ids[0][0], 4, 3, 0, &o, &table), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "token 1, coordinate 0: bucket 3"));
    o.num_buckets = 4;
    CU_ASSERT_EQUAL(mhf_signatures_adopt(&ids[0][0], 4, 5, 0, &o, &table), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_signatures_adopt(&ids[0][0], 4, 3, 3, &o, &table), MHF_E_DATA);
    o.num_hashes = 0;
    CU_ASSERT_EQUAL(mhf_signatures_adopt(&ids[0][0], 4, 3, 0, &o, &table), MHF_E_CONFIG);
    CU_ASSERT_PTR_NULL(table.ids);
}

static void test_index(void)
{
    mhf_vocabulary v = made(2000);
    for (int rule = 0; rule < 2; rule++) {
        mhf_signature_options o = sized(2, 90, (mhf_signature_rule)rule);
        mhf_signatures table = {0};
        mhf_signature_index *index = NULL;
        CHECK_OK(mhf_signatures_build(&v, &o, &table));
        CHECK_OK(mhf_signature_index_new(&table, &index));
        int32_t lower = 0;
        for (int32_t t = 0; t < v.size; t++) {
            const mhf_bucket *signature = table.ids + 2 * t;
            int32_t found = mhf_signature_index_find(index, signature);
            CU_ASSERT(found >= 0 && found <= t);
            CU_ASSERT_EQUAL(memcmp(table.ids + 2 * found, signature, 2 * sizeof *signature), 0);
            lower += found < t;
        }
        CU_ASSERT_EQUAL(lower, table.duplicates);
        CU_ASSERT_EQUAL(lower > 0, rule == MHF_RULE_REFERENCE);
        const mhf_bucket nobodys[2] = {0, 1};
        CU_ASSERT_EQUAL(mhf_signature_index_find(index, nobodys), -1);
        mhf_signature_index_free(index);
        mhf_signatures_free(&table);
    }
    mhf_signature_index_free(NULL);
}

static void test_rule_names(void)
{
    mhf_signature_rule rule;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mhf_signature_rule_parse(mhf_signature_rule_name((mhf_signature_rule)i), &rule));
        CU_ASSERT_EQUAL((int)rule, i);
    }
    CU_ASSERT_EQUAL(mhf_signature_rule_parse("uniqu", &rule), MHF_E_USAGE);
}

int main(void)
{
    static const test_case cases[] = {
        {"golden tables, small", test_small},
        {"golden tables, 32,768 tokens", test_mistral},
        {"golden tables, small with LSH", test_small_lsh},
        {"golden tables before and after expansion", test_expansion},
        {"unique up to a full table", test_unique_full},
        {"a table that can't be", test_exhausted},
        {"reference is many-to-one", test_reference_is_many_to_one},
        {"added tokens past the base", test_added_tokens},
        {"hash seed", test_hash_seed},
        {"bad options and vocabularies", test_bad_input},
        {"odd pieces", test_odd_pieces},
        {"adopt", test_adopt},
        {"index", test_index},
        {"names of rules", test_rule_names},
    };
    return run_tests("signatures", cases, sizeof cases / sizeof *cases);
}
