/* SPDX-License-Identifier: ISC */
/* mhf evaluate: likelihood and accuracy on a token store. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"
#include "mhf/train.h"

typedef struct arguments {
    mhf_common common;
    const char *input;
    mhf_normalize normalize;
    bool json;
    mhf_evaluate_options options;
} arguments;

enum { KEY_NORMALIZE = 0x100, KEY_CALIBRATE, KEY_JSON, KEY_BLOCK, DEFAULT_BLOCK = 512 };

static const struct argp_option options[] = {
    {"input", 'i', "TOKENS.h5", 0, "The token store (required)", 0},
    {"normalize", KEY_NORMALIZE, "RULE", 0,
     "Probabilities are over the tokenizer's tokens (actual, default) or all rows (reference)", 0},
    {"calibrate", KEY_CALIBRATE, NULL, 0, "Find the temperature with the lowest nats a token", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {"block", KEY_BLOCK, "N", 0, "Tokens of a block (default: the training's, else 512)", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case 'i':
        a->input = option->value;
        break;
    case KEY_NORMALIZE:
        option->status = mhf_normalize_parse(option->value, &a->normalize);
        break;
    case KEY_CALIBRATE:
        a->options.calibrate = true;
        break;
    case KEY_JSON:
        a->json = true;
        break;
    case KEY_BLOCK:
        a->options.block = mhf_option_int(option, 2, INT32_MAX);
        break;
    }
}

static const mhf_command command = {.name = "mhf evaluate",
                                    .operands = "MODEL",
                                    .about = "Likelihood and accuracy on a token store.",
                                    .options = options,
                                    .required = (const int[]){'i', 0},
                                    .precision = true,
                                    .take = take};

/* The block length of the training; of a model that tells of none, a usual one. */
static int64_t trained_block(const char *run)
{
    mhf_run_config config;
    if (!run || !*run ||
        mhf_run_config_parse(run, strlen(run), "the run's configuration", &config) != MHF_OK)
        return DEFAULT_BLOCK;
    int64_t block = config.block;
    mhf_run_config_free(&config);
    return block;
}

static mhf_status evaluate(arguments *a, const mhf_loaded *loaded, mhf_evaluation *result)
{
    int32_t positions = loaded->model->config.max_position_embeddings;
    mhf_tokens *tokens = NULL;
    if (a->options.block == 0) {
        a->options.block = trained_block(loaded->info->run);
        if (a->options.block > positions)
            a->options.block = positions;
    }
    a->options.counted = mhf_counted_rows(loaded->model, loaded->tokenizer, a->normalize);
    mhf_status status = mhf_agree(mhf_tokens_open(a->input, &tokens));
    if (status == MHF_OK)
        status = mhf_evaluate(loaded->model, loaded->tokenizer, tokens, &a->options, result);
    if (status == MHF_E_NONFINITE)
        (void)mhf_fail_within(status, "%s", a->input);
    mhf_tokens_close(tokens);
    return status;
}

/* A number, or null: JSON has no NaN (a store without any byte of text). */
static mhf_status add_real(mhf_buf *out, const char *before, double value)
{
    MHF_TRY(mhf_buf_add_text(out, before));
    return isfinite(value) ? mhf_buf_printf(out, "%.17g", value) : mhf_buf_add_text(out, "null");
}

static mhf_status print_json(const mhf_evaluation *e, mhf_buf *out)
{
    MHF_TRY(mhf_buf_printf(out, "{\"tokens\":%" PRId64 ",\"bytes\":%" PRId64, e->tokens, e->bytes));
    MHF_TRY(add_real(out, ",\"nats_per_token\":", e->nats_per_token));
    MHF_TRY(add_real(out, ",\"bits_per_byte\":", e->bits_per_byte));
    MHF_TRY(add_real(out, ",\"accuracy\":", e->accuracy));
    for (int32_t k = 0; k < e->n_losses; k++)
        MHF_TRY(add_real(out, k == 0 ? ",\"losses\":[" : ",", e->losses[k]));
    MHF_TRY(mhf_buf_add_text(out, "]"));
    if (e->calibrated) {
        MHF_TRY(add_real(out, ",\"temperature\":", e->temperature));
        MHF_TRY(
            add_real(out, ",\"calibrated\":{\"nats_per_token\":", e->calibrated_nats_per_token));
        MHF_TRY(add_real(out, ",\"bits_per_byte\":", e->calibrated_bits_per_byte));
        MHF_TRY(mhf_buf_add_text(out, "}"));
    }
    return mhf_buf_add_text(out, "}\n");
}

static mhf_status print_words(const mhf_evaluation *e, mhf_buf *out)
{
    MHF_TRY(mhf_buf_printf(out, "%" PRId64 " tokens, %" PRId64 " bytes\n", e->tokens, e->bytes));
    MHF_TRY(mhf_buf_printf(out, "%-12s %10s %10s\n", "", "nats/token", "bits/byte"));
    MHF_TRY(
        mhf_buf_printf(out, "%-12s %10.4f %10.4f\n", "raw", e->nats_per_token, e->bits_per_byte));
    if (e->calibrated)
        MHF_TRY(mhf_buf_printf(out, "%-12s %10.4f %10.4f   at temperature %.4f\n", "calibrated",
                               e->calibrated_nats_per_token, e->calibrated_bits_per_byte,
                               e->temperature));
    MHF_TRY(mhf_buf_printf(out, "accuracy %.4f\nlosses", e->accuracy));
    for (int32_t k = 0; k < e->n_losses; k++)
        MHF_TRY(mhf_buf_printf(out, " %.4f", e->losses[k]));
    return mhf_buf_add_text(out, "\n");
}

mhf_status mhf_cmd_evaluate(int argc, char **argv)
{
    arguments a = {0};
    mhf_loaded loaded = {0};
    mhf_evaluation result;
    mhf_buf out = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    mhf_status status = mhf_loaded_open(a.common.operands[0], &a.common, &loaded);
    if (status == MHF_OK)
        status = evaluate(&a, &loaded, &result);
    if (status == MHF_OK) {
        status = a.json ? print_json(&result, &out) : print_words(&result, &out);
        if (status == MHF_OK)
            status = mhf_command_print(&out);
        status = mhf_agree(status);
    }
    mhf_buf_free(&out);
    mhf_loaded_free(&loaded);
    return status;
}
