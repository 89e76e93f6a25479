/* SPDX-License-Identifier: ISC */
/* mhf tokenizer train and extend: texts to a tokenizer.json and a tokenizer_config.json beside. */
#include "tokenizer.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *kind, *like, *output;
    int32_t vocab_size, per_text;
    mhf_extend_rule rule;
    const char **special; /* [n_special] */
    int32_t n_special;
} arguments;

enum { KEY_KIND = 0x100, KEY_LIKE, KEY_VOCAB_SIZE, KEY_SPECIAL, KEY_PER_TEXT, KEY_RULE };

static void take(mhf_option *option, void *into)
{
    static const char *const kinds[] = {"byte-level", "sentencepiece", NULL};
    static const char *const rules[] = {"exact", "reference", NULL};
    arguments *a = into;
    switch (option->key) {
    case 'o':
        a->output = option->value;
        break;
    case KEY_KIND:
        a->kind = kinds[mhf_option_choice(option, kinds)];
        break;
    case KEY_LIKE:
        a->like = option->value;
        break;
    case KEY_VOCAB_SIZE:
        a->vocab_size = (int32_t)mhf_option_int(option, 1, INT32_MAX);
        break;
    case KEY_SPECIAL:
        if (*option->value == 0)
            mhf_option_refuse(option, "a token");
        a->special[a->n_special++] = option->value;
        break;
    case KEY_PER_TEXT:
        a->per_text = (int32_t)mhf_option_int(option, 1, INT32_MAX);
        break;
    case KEY_RULE:
        a->rule = (mhf_extend_rule)mhf_option_choice(option, rules);
        break;
    }
}

static void take_train(mhf_option *option, void *into)
{
    const arguments *a = into;
    take(option, into);
    if (option->key == ARGP_KEY_END && !a->kind == !a->like)
        option->status = mhf_fail(MHF_E_USAGE, "expected either --kind or --like");
}

static const struct argp_option train_options[] = {
    {"kind", KEY_KIND, "KIND", 0, "byte-level or sentencepiece", 0},
    {"like", KEY_LIKE, "TOKENIZER", 0, "Copy the pipeline and specials of this one", 0},
    {"vocab-size", KEY_VOCAB_SIZE, "N", 0, "Tokens in all (required)", 0},
    {"special", KEY_SPECIAL, "TOKEN", 0, "One more special token; may be given several times", 0},
    {"output", 'o', "FILE", 0,
     "The tokenizer.json to write (required); tokenizer_config.json goes beside it", 0},
    {0}};
static const mhf_command train_command = {
    .name = "mhf tokenizer train",
    .operands = "TEXT...",
    .about = "Learn a tokenizer: every line of a .txt, every \"text\" of a .jsonl, .gz and .zst of "
             "both.",
    .options = train_options,
    .special_names = true,
    .required = (const int[]){'o', KEY_VOCAB_SIZE, 0},
    .take = take_train};

static const struct argp_option extend_options[] = {
    {"per-text", KEY_PER_TEXT, "N", 0, "New tokens that each text gives (required)", 0},
    {"rule", KEY_RULE, "RULE", 0,
     "exact (default): just so many; reference: as the published procedure counts", 0},
    {"output", 'o', "FILE", 0,
     "The tokenizer.json to write (required); tokenizer_config.json goes beside it", 0},
    {0}};
static const mhf_command extend_command = {
    .name = "mhf tokenizer extend",
    .operands = "TOKENIZER TEXT...",
    .about = "Add tokens learned from more texts, one text a language; old tokens keep their ids.",
    .options = extend_options,
    .special_names = true,
    .required = (const int[]){'o', KEY_PER_TEXT, 0},
    .take = take};

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
    mhf_status status = mhf_agree(mhf_tokenizer_trainer_new(&options, &trainer));
    if (status == MHF_OK)
        status = mhf_tokenizer_count(trainer, a->common.operands, a->common.n_operands);
    if (status == MHF_OK && a->common.rank == 0)
        status = mhf_tokenizer_trainer_finish(trainer, json, config);
    mhf_tokenizer_trainer_free(trainer);
    return status;
}

/* On every rank: all count, rank 0 learns and writes. */
static mhf_status run_train(const arguments *a)
{
    mhf_tokenizer *like = NULL;
    mhf_buf json = {0}, config = {0};
    double started = mhf_seconds();
    MHF_TRY(mhf_command_check_output(&a->common, a->output, true,
                                     (const char *const *)a->common.operands,
                                     a->common.n_operands));
    mhf_status status = a->common.rank == 0
                            ? mhf_command_check_readable(a->common.operands, a->common.n_operands)
                            : MHF_OK;
    if (status == MHF_OK && a->like)
        status = mhf_command_tokenizer(a->like, &a->common.names, &like);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = train(a, like, &json, &config);
    if (status == MHF_OK && a->common.rank == 0)
        status = publish(a, &json, &config, started);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    mhf_tokenizer_free(like);
    return status;
}

/* On rank 0. */
static mhf_status run_extend(const arguments *a)
{
    const char *const *texts = (const char *const *)a->common.operands + 1;
    const int n_texts = a->common.n_operands - 1;
    MHF_TRY(mhf_command_check_output(&a->common, a->output, true, texts, n_texts));
    if (a->common.rank != 0)
        return MHF_OK;
    mhf_tokenizer *tokenizer = NULL;
    mhf_buf json = {0}, config = {0};
    double started = mhf_seconds();
    MHF_TRY(mhf_command_check_readable(a->common.operands + 1, n_texts));
    MHF_TRY(mhf_command_tokenizer(a->common.operands[0], &a->common.names, &tokenizer));
    mhf_status status =
        mhf_tokenizer_extend(tokenizer, texts, n_texts, a->per_text, a->rule, &json, &config);
    if (status == MHF_OK)
        status = publish(a, &json, &config, started);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    mhf_tokenizer_free(tokenizer);
    return status;
}

static mhf_status run(const mhf_command *command, int argc, char **argv,
                      mhf_status (*work)(const arguments *a))
{
    arguments a = {.rule = MHF_EXTEND_EXACT};
    MHF_TRY(mhf_new(&a.special, argc, sizeof *a.special, "the options"));
    mhf_status status = mhf_command_parse(command, argc, argv, &a, &a.common);
    if (status == MHF_OK) {
        omp_set_num_threads(mhf_command_threads(&a.common));
        status = work(&a);
    }
    free(a.special);
    return status;
}

mhf_status mhf_tokenizer_train_command(int argc, char **argv)
{
    return run(&train_command, argc, argv, run_train);
}

mhf_status mhf_tokenizer_extend_command(int argc, char **argv)
{
    return run(&extend_command, argc, argv, run_extend);
}
