/* SPDX-License-Identifier: ISC */
// label: full
/* The LSH ablation's tables over 32,768 tokens: the largest products of the hash room. */
#include "tables.h"

static void check_timed(const table_row *row)
{
    double start = mhf_seconds();
    check_table_rule(row, MHF_RULE_REFERENCE);
    /* The rules share the LSH coordinates; the smallest table and the refusal are enough. */
    if (row->num_lsh == 1 || row->num_lsh == row->num_hashes)
        check_table_rule(row, MHF_RULE_UNIQUE);
    printf("\n    %s: %.1f s\n", row->name, mhf_seconds() - start);
}

static void test_tables(void)
{
    CU_ASSERT_EQUAL(each_table_row("mistral", true, check_timed), 4);
}

int main(void)
{
    static const test_case cases[] = {{"golden tables of the LSH ablation", test_tables}};
    return run_tests("lsh_large", cases, sizeof cases / sizeof *cases);
}
