/* SPDX-License-Identifier: ISC */
/* mhf signatures: build the signature table of a tokenizer, report it, keep it in a file. Rank 0
 * works; a table is small. */
#include "cmd.h"

#include <errno.h>
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/hash.h"
#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    mhf_special_names names;
    mhf_signature_options options;
    const char *tokenizer, *output;
} arguments;

/* ---- options -------------------------------------------------------------------------------- */

enum { KEY_HASHES = 0x2000, KEY_BUCKETS, KEY_LSH, KEY_RULE, KEY_SEED, KEY_BOS, KEY_EOS, KEY_PAD };

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
    {"bos", KEY_BOS, "TOKEN", 0, "Token that begins a text", 0},
    {"eos", KEY_EOS, "TOKEN", 0, "Token that ends a text; stands in for a missing pad", 0},
    {"pad", KEY_PAD, "TOKEN", 0, "Token whose signature is all zero", 0},
    {0}};

static int64_t parse_integer(struct argp_state *state, const char *option, const char *value,
                             int64_t low, int64_t high)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (*value == 0 || *end != 0 || errno != 0 || n < low || n > high)
        argp_error(state, "%s is '%s', expected %lld to %lld", option, value, (long long)low,
                   (long long)high);
    return n;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case 'o':
        a->output = value;
        return 0;
    case KEY_HASHES:
        a->options.num_hashes = (int32_t)parse_integer(state, "--hashes", value, 1, INT32_MAX);
        return 0;
    case KEY_BUCKETS:
        a->options.num_buckets = (int32_t)parse_integer(state, "--buckets", value, 2, INT32_MAX);
        return 0;
    case KEY_LSH:
        a->options.num_lsh = (int32_t)parse_integer(state, "--lsh", value, 0, INT32_MAX);
        return 0;
    case KEY_RULE:
        if (mhf_signature_rule_parse(value, &a->options.rule) != MHF_OK ||
            a->options.rule == MHF_RULE_IMPORTED)
            argp_error(state, "--rule is '%s', expected unique or reference", value);
        return 0;
    case KEY_SEED:
        a->options.hash_seed = (uint32_t)parse_integer(state, "--hash-seed", value, 0, UINT32_MAX);
        return 0;
    case KEY_BOS:
        a->names.bos = value;
        return 0;
    case KEY_EOS:
        a->names.eos = value;
        return 0;
    case KEY_PAD:
        a->names.pad = value;
        return 0;
    case ARGP_KEY_ARG:
        if (a->tokenizer)
            argp_error(state, "more than one TOKENIZER: '%s'", value);
        a->tokenizer = value;
        return 0;
    case ARGP_KEY_END:
        if (!a->tokenizer)
            argp_error(state, "TOKENIZER is missing");
        if (!a->output)
            argp_error(state, "-o SIGNATURES.h5 is missing");
        if (a->options.num_hashes == 0 || a->options.num_buckets == 0)
            argp_error(state, "--hashes H and --buckets B are required");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&mhf_common_argp, 0, "Common options:", -1}, {0}};
static const struct argp argp = {
    options,
    parse_option,
    "TOKENIZER",
    "Build the table that gives every token of TOKENIZER (a tokenizer.json, a Hugging Face "
    "directory or a model) its H bucket ids; report duplicates, bucket loads and coincidences of "
    "coordinates.",
    children,
    NULL,
    NULL};

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
    mhf_tokenizer *tokenizer = NULL;
    mhf_signatures table = {0};
    mhf_buf report = {0};
    double start = mhf_seconds();
    mhf_status status = mhf_command_tokenizer(a->tokenizer, &a->names, &tokenizer);
    if (status != MHF_OK)
        goto out;
    status = build(tokenizer, &a->options, &table);
    if (status != MHF_OK) {
        mhf_fail_within(status, "%s", a->tokenizer);
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
    int rank;
    MHF_TRY(mhf_command_parse(&argp, "mhf signatures", argc, argv, &a, &a.common));
    int threads = mhf_command_threads(&a.common);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
        return MHF_OK;
    omp_set_num_threads(threads);
    return run(&a);
}
