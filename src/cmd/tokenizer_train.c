/* SPDX-License-Identifier: ISC */
/* mhf tokenizer train and extend: texts to a tokenizer.json and a tokenizer_config.json beside. */
#include "tokenizer.h"

#include <inttypes.h>
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *kind, *like, *output;
    int32_t vocab_size, per_text;
    mhf_extend_rule rule;
    const char **special; /* [n_special] */
    int32_t n_special;
    char **operands;
    int n_operands;
} arguments;

enum { KEY_KIND = 0x2000, KEY_LIKE, KEY_VOCAB_SIZE, KEY_SPECIAL, KEY_PER_TEXT, KEY_RULE };

static error_t parse_names(int key, char *value, struct argp_state *state, arguments *a)
{
    switch (key) {
    case KEY_KIND:
        if (strcmp(value, "byte-level") != 0 && strcmp(value, "sentencepiece") != 0)
            argp_error(state, "--kind is '%s', expected byte-level or sentencepiece", value);
        a->kind = value;
        return 0;
    case KEY_RULE:
        if (strcmp(value, "exact") != 0 && strcmp(value, "reference") != 0)
            argp_error(state, "--rule is '%s', expected exact or reference", value);
        a->rule = strcmp(value, "exact") == 0 ? MHF_EXTEND_EXACT : MHF_EXTEND_REFERENCE;
        return 0;
    case KEY_SPECIAL:
        if (*value == 0)
            argp_error(state, "--special is empty, expected a token");
        a->special[a->n_special++] = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
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
    case KEY_LIKE:
        a->like = value;
        return 0;
    case KEY_VOCAB_SIZE:
        if (!mhf_option_count(value, INT32_MAX, &a->vocab_size))
            argp_error(state, "--vocab-size is '%s', expected 1 or more", value);
        return 0;
    case KEY_PER_TEXT:
        if (!mhf_option_count(value, INT32_MAX, &a->per_text))
            argp_error(state, "--per-text is '%s', expected 1 or more", value);
        return 0;
    case ARGP_KEY_ARGS:
        a->operands = state->argv + state->next;
        a->n_operands = state->argc - state->next;
        return 0;
    default:
        return parse_names(key, value, state, a);
    }
}

static const struct argp_child children[] = {{&mhf_common_argp, 0, "Common options:", -1}, {0}};

static error_t parse_train(int key, char *value, struct argp_state *state)
{
    const arguments *a = state->input;
    if (key != ARGP_KEY_END)
        return parse_option(key, value, state);
    if (!a->output)
        argp_error(state, "-o tokenizer.json is missing");
    if (!a->kind == !a->like)
        argp_error(state, "expected either --kind or --like");
    if (a->vocab_size == 0)
        argp_error(state, "--vocab-size is missing");
    if (a->n_operands < 1)
        argp_error(state, "expected at least one TEXT");
    return 0;
}

static const struct argp_option train_options[] = {
    {"kind", KEY_KIND, "KIND", 0, "byte-level or sentencepiece", 0},
    {"like", KEY_LIKE, "TOKENIZER", 0, "Copy the pipeline and specials of this one", 0},
    {"vocab-size", KEY_VOCAB_SIZE, "N", 0, "Tokens in all (required)", 0},
    {"special", KEY_SPECIAL, "TOKEN", 0, "One more special token; may be given several times", 0},
    {"output", 'o', "FILE", 0,
     "The tokenizer.json to write (required); tokenizer_config.json goes beside it", 0},
    {0}};
static const struct argp train_argp = {
    train_options,
    parse_train,
    "TEXT...",
    "Learn a tokenizer: every line of a .txt, every \"text\" of a .jsonl, .gz and .zst of both.",
    children,
    NULL,
    NULL};

static error_t parse_extend(int key, char *value, struct argp_state *state)
{
    const arguments *a = state->input;
    if (key != ARGP_KEY_END)
        return parse_option(key, value, state);
    if (!a->output)
        argp_error(state, "-o tokenizer.json is missing");
    if (a->per_text == 0)
        argp_error(state, "--per-text is missing");
    if (a->n_operands < 2)
        argp_error(state, "expected TOKENIZER and at least one TEXT");
    return 0;
}

static const struct argp_option extend_options[] = {
    {"per-text", KEY_PER_TEXT, "N", 0, "New tokens that each text gives (required)", 0},
    {"rule", KEY_RULE, "RULE", 0,
     "exact (default): just so many; reference: as the published procedure counts", 0},
    {"output", 'o', "FILE", 0,
     "The tokenizer.json to write (required); tokenizer_config.json goes beside it", 0},
    {0}};
static const struct argp extend_argp = {
    extend_options,
    parse_extend,
    "TOKENIZER TEXT...",
    "Add tokens learned from more texts, one text a language; old tokens keep their ids.",
    children,
    NULL,
    NULL};

static mhf_status check_readable(char *const *paths, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(paths[i], "-") != 0 && access(paths[i], R_OK) != 0)
            return mhf_fail_io(paths[i], "can't open");
    return MHF_OK;
}

static mhf_status write_files(const char *path, const mhf_buf *json, const mhf_buf *config)
{
    mhf_buf beside = {0};
    MHF_TRY(mhf_file_write(path, json->data, json->n));
    if (strcmp(path, "-") == 0 || config->n == 0)
        return MHF_OK;
    const char *slash = strrchr(path, '/');
    mhf_status status = mhf_buf_add(&beside, path, slash ? (size_t)(slash + 1 - path) : 0);
    if (status == MHF_OK)
        status = mhf_buf_add_text(&beside, "tokenizer_config.json");
    if (status == MHF_OK)
        status = mhf_file_write(beside.data, config->data, config->n);
    mhf_buf_free(&beside);
    return status;
}

/* Read back what was made: a tokenizer that can't be loaded is not written. */
static mhf_status publish(const arguments *a, const mhf_buf *json, const mhf_buf *config,
                          double started)
{
    mhf_tokenizer *made;
    MHF_TRY(mhf_tokenizer_parse(json->data, json->n, config->n ? config->data : NULL, config->n,
                                a->output, NULL, &made));
    int32_t size = mhf_tokenizer_size(made);
    mhf_tokenizer_free(made);
    MHF_TRY(write_files(a->output, json, config));
    mhf_log(MHF_LOG_INFO, "%s: %" PRId32 " tokens in %.1f s", a->output, size,
            mhf_seconds() - started);
    return MHF_OK;
}

static mhf_status train(const arguments *a, const mhf_tokenizer *like, mhf_buf *json,
                        mhf_buf *config)
{
    bool bytes = a->kind && strcmp(a->kind, "byte-level") == 0;
    mhf_tokenizer_training options = {.kind = bytes ? MHF_BYTE_LEVEL : MHF_SENTENCEPIECE,
                                      .like = like,
                                      .vocab_size = a->vocab_size,
                                      .special = a->special,
                                      .n_special = a->n_special};
    mhf_tokenizer_trainer *trainer = NULL;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mhf_status status = mhf_agree(mhf_tokenizer_trainer_new(&options, &trainer));
    if (status == MHF_OK)
        status = mhf_tokenizer_count(trainer, a->operands, a->n_operands);
    if (status == MHF_OK && rank == 0)
        status = mhf_tokenizer_trainer_finish(trainer, json, config);
    mhf_tokenizer_trainer_free(trainer);
    return status;
}

/* On every rank: all count, rank 0 learns and writes. */
static mhf_status run_train(const arguments *a, int rank)
{
    mhf_special_names names = {NULL, NULL, NULL};
    mhf_tokenizer *like = NULL;
    mhf_buf json = {0}, config = {0};
    double started = mhf_seconds();
    mhf_status status = rank == 0 ? check_readable(a->operands, a->n_operands) : MHF_OK;
    if (status == MHF_OK && a->like)
        status = mhf_command_tokenizer(a->like, &names, &like);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = train(a, like, &json, &config);
    if (status == MHF_OK && rank == 0)
        status = publish(a, &json, &config, started);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    mhf_tokenizer_free(like);
    return status;
}

/* On rank 0. */
static mhf_status run_extend(const arguments *a, int rank)
{
    if (rank != 0)
        return MHF_OK;
    mhf_special_names names = {NULL, NULL, NULL};
    mhf_tokenizer *tokenizer = NULL;
    mhf_buf json = {0}, config = {0};
    double started = mhf_seconds();
    MHF_TRY(check_readable(a->operands + 1, a->n_operands - 1));
    MHF_TRY(mhf_command_tokenizer(a->operands[0], &names, &tokenizer));
    mhf_status status =
        mhf_tokenizer_extend(tokenizer, (const char *const *)(a->operands + 1), a->n_operands - 1,
                             a->per_text, a->rule, &json, &config);
    if (status == MHF_OK)
        status = publish(a, &json, &config, started);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    mhf_tokenizer_free(tokenizer);
    return status;
}

static mhf_status run(const struct argp *argp, const char *name, int argc, char **argv,
                      mhf_status (*work)(const arguments *a, int rank))
{
    arguments a = {.rule = MHF_EXTEND_EXACT};
    int rank;
    MHF_TRY(mhf_new(&a.special, argc, sizeof *a.special, "the options"));
    mhf_status status = mhf_command_parse(argp, name, argc, argv, &a, &a.common);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (status == MHF_OK) {
        omp_set_num_threads(mhf_command_threads(&a.common));
        status = work(&a, rank);
    }
    free(a.special);
    return status;
}

mhf_status mhf_tokenizer_train_command(int argc, char **argv)
{
    return run(&train_argp, "mhf tokenizer train", argc, argv, run_train);
}

mhf_status mhf_tokenizer_extend_command(int argc, char **argv)
{
    return run(&extend_argp, "mhf tokenizer extend", argc, argv, run_extend);
}
