/* SPDX-License-Identifier: ISC */
/* The LSH coordinates of the ablation's tables on a sixteenth of the tokens; lsh_large.c has all.
 */
#include "../../../src/hash/lsh.h"
#include "tables.h"

#ifdef MHF_SANITIZE
enum { STEP = 256, MOST_LSH = 1 }; /* the matrices alone take a minute there */
#else
enum { STEP = 16, MOST_LSH = 4 };
#endif

static void check_sample(const table_row *row)
{
    if (row->num_lsh > MOST_LSH)
        return;
    char name[256];
    pieces p;
    npy ids;
    near_ties ties = {0};
    snprintf(name, sizeof name, "signatures/%s.official.npy", row->name);
    const char *path = golden(name);
    snprintf(name, sizeof name, "tokenizers/%s/tokenizer.json", row->tokenizer);
    if (!path || !pieces_read(golden(name), row->pad, &p))
        return;
    CU_ASSERT_FATAL(npy_read(path, &ids));
    snprintf(name, sizeof name, "signatures/%s.proj.npz", row->name);
    near_ties_read(golden(name), &ties);

    /* The sample starts elsewhere in each table, so that they cover different tokens. */
    int32_t H = row->num_hashes, *tokens, count = 0;
    mhf_bucket *table;
    CHECK_OK(mhf_new(&tokens, row->tokens, sizeof *tokens, "tokens"));
    CHECK_OK(mhf_new(&table, (int64_t)row->tokens * H, sizeof *table, "table"));
    for (int32_t t = row->num_lsh + 2; t < row->tokens; t += STEP)
        tokens[count++] = t;
    mhf_signature_options options = {
        .num_hashes = H, .num_buckets = row->num_buckets, .num_lsh = row->num_lsh};
    CHECK_OK(mhf_lsh_fill(&p.vocabulary, &options, tokens, count, table));
    int differences = 0;
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < row->num_lsh; j++) {
            int64_t at = (int64_t)tokens[i] * H + j;
            int32_t id = (int32_t)table[at];
            differences +=
                id != npy_int(&ids, at) && !near_ties_allow(&ties, tokens[i], j, false, id);
        }
    }
    CU_ASSERT_EQUAL(differences, 0);
    free(tokens);
    free(table);
    npy_free(&ids);
    near_ties_free(&ties);
    pieces_free(&p);
}

static void test_sample(void)
{
    CU_ASSERT_EQUAL(each_table_row("mistral", true, check_sample), 4);
}

int main(void)
{
    static const test_case cases[] = {{"golden LSH coordinates", test_sample}};
    return run_tests("lsh_sample", cases, sizeof cases / sizeof *cases);
}
