/* SPDX-License-Identifier: ISC */
/* mhf expand: a model for a tokenizer that has grown. Rank 0 works, tensor by tensor. */
#include "cmd.h"

#include <inttypes.h>
#include <omp.h>

#include "mhf/store.h"
#include "mhf/train.h"

typedef struct arguments {
    mhf_common common;
    const char *tokenizer, *output;
    mhf_signature_rule rule;
    bool has_rule;
} arguments;

enum { KEY_TOKENIZER = 0x100, KEY_RULE };

static const struct argp_option options[] = {
    {"output", 'o', "MODEL.h5", 0, "The checkpoint to write, of weights alone (required)", 0},
    {"tokenizer", KEY_TOKENIZER, "NEW", 0,
     "The tokenizer that has grown: old tokens keep their ids (required)", 0},
    {"rule", KEY_RULE, "RULE", 0,
     "Signatures of new tokens: unique (no token has them yet) or reference (the table as the "
     "released code builds it). Default: the table's own rule; unique where it was imported",
     0},
    {0}};

static void take(mhf_option *option, void *into)
{
    static const char *const rules[] = {"unique", "reference", NULL};
    arguments *a = into;
    switch (option->key) {
    case 'o':
        a->output = option->value;
        break;
    case KEY_TOKENIZER:
        a->tokenizer = option->value;
        break;
    case KEY_RULE:
        a->rule = (mhf_signature_rule)mhf_option_choice(option, rules);
        a->has_rule = true;
        break;
    }
}

static const mhf_command command = {
    .name = "mhf expand",
    .operands = "MODEL",
    .about =
        "Make a model ready for a tokenizer that has grown. MHF: new tokens get signatures, old "
        "ones keep theirs, no parameter is added. Standard: rows of new tokens are the mean of "
        "the rows of their pieces.",
    .options = options,
    .special_names = true,
    .required = (const int[]){KEY_TOKENIZER, 'o', 0},
    .take = take};

/* ---- work on rank 0 ------------------------------------------------------------------------- */

static mhf_status count_parameters(const mhf_config *config, int64_t *out)
{
    mhf_registry registry;
    MHF_TRY(mhf_registry_new(config, &registry));
    *out = registry.total;
    mhf_registry_free(&registry);
    return MHF_OK;
}

static mhf_status report(const mhf_config *before, const mhf_expansion *e, mhf_buf *out)
{
    int64_t n, m;
    MHF_TRY(count_parameters(before, &n));
    MHF_TRY(count_parameters(&e->config, &m));
    MHF_TRY(mhf_buf_printf(out, "tokens: %d, before %d; rows: %d, before %d\n", e->to_size,
                           e->from_size, e->config.vocab_size, before->vocab_size));
    MHF_TRY(mhf_buf_printf(out, "parameters: %" PRId64 ", before %" PRId64 " (%+" PRId64 ")\n", m,
                           n, m - n));
    if (e->config.head == MHF_HEAD_STANDARD)
        return mhf_buf_printf(out, "new rows: means of %" PRId64 " pieces\n",
                              e->piece_offsets[e->to_size - e->from_size]);
    return mhf_buf_printf(
        out, "signature table: rule %s, duplicates %d; all %d old tokens keep their signatures\n",
        mhf_signature_rule_name(e->table.options.rule), e->table.duplicates, e->from_size);
}

static mhf_status expand(const arguments *a, mhf_source *source, const mhf_tokenizer *tokenizer)
{
    mhf_expansion e = {0};
    mhf_buf text = {0};
    mhf_status status = mhf_expansion_new(source, tokenizer, a->has_rule ? &a->rule : NULL, &e);
    if (status == MHF_E_MISMATCH || status == MHF_E_EXHAUSTED)
        status = mhf_fail_within(status, "%s", a->tokenizer);
    if (status == MHF_OK && e.to_size == e.from_size)
        mhf_log(MHF_LOG_WARN, "%s has no new tokens: there is nothing to expand", a->tokenizer);
    if (status == MHF_OK)
        status = mhf_expand(source, &e, a->output);
    if (status == MHF_OK)
        status = report(mhf_source_config(source), &e, &text);
    if (status == MHF_OK)
        status = mhf_command_print(&text);
    mhf_buf_free(&text);
    mhf_expansion_free(&e);
    return status;
}

mhf_status mhf_cmd_expand(int argc, char **argv)
{
    arguments a = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    MHF_TRY(mhf_command_check_output(&a.common, a.output, false, &a.tokenizer, 1));
    int threads = mhf_command_threads(&a.common);
    if (a.common.rank != 0)
        return MHF_OK;
    omp_set_num_threads(threads);
    double start = mhf_seconds();
    mhf_source *source;
    mhf_tokenizer *tokenizer = NULL;
    MHF_TRY(mhf_source_open(a.common.operands[0], &source));
    mhf_status status = mhf_command_tokenizer(a.tokenizer, &a.common.names, &tokenizer);
    if (status == MHF_OK)
        status = expand(&a, source, tokenizer);
    mhf_tokenizer_free(tokenizer);
    mhf_source_close(source);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "wrote %s in %.1f s", a.output, mhf_seconds() - start);
    return status;
}
