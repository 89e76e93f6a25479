/* SPDX-License-Identifier: ISC */
/* mhf signatures: build the signature table of a tokenizer, report it, keep it in a file. Rank 0
 * works; a table is small. */
#include "cmd.h"

#include <omp.h>
#include <string.h>

#include "mhf/hash.h"
#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    mhf_signature_options options;
    const char *output;
} arguments;

/* ---- options -------------------------------------------------------------------------------- */

enum { KEY_HASHES = 0x100, KEY_BUCKETS, KEY_LSH, KEY_RULE, KEY_SEED };

static const struct argp_option options[] = {
    {"output", 'o', "SIGNATURES.h5", 0, "The table to write (required)", 0},
    {"hashes", KEY_HASHES, "H", 0, "Hash functions: ids of a token (required)", 0},
    {"buckets", KEY_BUCKETS, "B", 0, "Buckets of each, one of them the pad's (required)", 0},
    {"lsh", KEY_LSH, "L", 0, "The first L coordinates are locality-sensitive (default 0)", 0},
    {"rule", KEY_RULE, "RULE", 0,
     "unique (default): no two tokens share a signature; reference: as the released code, which "
     "remembers only the latest token of a prefix",
     0},
    {"hash-seed", KEY_SEED, "S", 0, "Added to every hash function's seed (default 0)", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    static const char *const rules[] = {"unique", "reference", NULL};
    arguments *a = into;
    switch (option->key) {
    case 'o':
        a->output = option->value;
        break;
    case KEY_HASHES:
        a->options.num_hashes = (int32_t)mhf_option_int(option, 1, INT32_MAX);
        break;
    case KEY_BUCKETS:
        a->options.num_buckets = (int32_t)mhf_option_int(option, 2, INT32_MAX);
        break;
    case KEY_LSH:
        a->options.num_lsh = (int32_t)mhf_option_int(option, 0, INT32_MAX);
        break;
    case KEY_RULE:
        a->options.rule = (mhf_signature_rule)mhf_option_choice(option, rules);
        break;
    case KEY_SEED:
        a->options.hash_seed = (uint32_t)mhf_option_int(option, 0, UINT32_MAX);
        break;
    }
}

static const mhf_command command = {
    .name = "mhf signatures",
    .operands = "TOKENIZER",
    .about =
        "Build the table that gives every token of TOKENIZER (a tokenizer.json, a Hugging Face "
        "directory or a model) its H bucket ids; report duplicates, bucket loads and "
        "coincidences of coordinates.",
    .options = options,
    .required = (const int[]){'o', KEY_HASHES, KEY_BUCKETS, 0},
    .special_names = true,
    .take = take};

/* ---- work on rank 0 ------------------------------------------------------------------------- */

static mhf_status build(const mhf_tokenizer *tokenizer, const mhf_signature_options *wanted,
                        mhf_signatures *table)
{
    mhf_vocabulary vocabulary = {0};
    mhf_status status = mhf_vocabulary_of(tokenizer, &vocabulary);
    if (status == MHF_OK)
        status = mhf_signatures_build(&vocabulary, wanted, table);
    if (status == MHF_OK)
        memcpy(table->tokenizer_sha256, mhf_tokenizer_sha256(tokenizer),
               sizeof table->tokenizer_sha256);
    mhf_vocabulary_free(&vocabulary);
    return status;
}

static mhf_status run(const arguments *a)
{
    const char *path = a->common.operands[0];
    mhf_tokenizer *tokenizer = NULL;
    mhf_signatures table = {0};
    mhf_buf report = {0};
    double start = mhf_seconds();
    mhf_status status = mhf_command_tokenizer(path, &a->common.names, &tokenizer);
    if (status != MHF_OK)
        goto out;
    status = build(tokenizer, &a->options, &table);
    if (status != MHF_OK) {
        mhf_fail_within(status, "%s", path);
        goto out;
    }
    if ((status = mhf_signatures_report(&table, &report)) ||
        (status = mhf_signatures_write(a->output, &table, tokenizer)) ||
        (status = mhf_command_print(&report)))
        goto out;
    mhf_log(MHF_LOG_INFO, "wrote %s in %.1f s", a->output, mhf_seconds() - start);
out:
    mhf_buf_free(&report);
    mhf_signatures_free(&table);
    mhf_tokenizer_free(tokenizer);
    return status;
}

mhf_status mhf_cmd_signatures(int argc, char **argv)
{
    arguments a = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    const char *const inputs[] = {a.common.operands[0]};
    MHF_TRY(mhf_command_check_output(&a.common, a.output, false, inputs, 1));
    int threads = mhf_command_threads(&a.common);
    if (a.common.rank != 0)
        return MHF_OK;
    omp_set_num_threads(threads);
    return run(&a);
}
