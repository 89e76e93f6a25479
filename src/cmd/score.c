/* SPDX-License-Identifier: ISC */
/* mhf score: log-probabilities of continuations and of whole texts. */
#include <inttypes.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *input, *output;
    mhf_normalize normalize;
    mhf_score_options options;
} arguments;

enum { KEY_NORMALIZE = 0x100, KEY_TEMPERATURE, KEY_PER_TOKEN, KEY_MAX_LENGTH, KEY_BATCH };

static const struct argp_option options[] = {
    {"input", 'i', "REQUESTS.jsonl", 0, "Requests (default -, standard input)", 0},
    {"output", 'o', "SCORES.jsonl", 0, "Answers (default -, standard output)", 0},
    {"normalize", KEY_NORMALIZE, "RULE", 0,
     "Probabilities are over the tokenizer's tokens (actual, default) or all rows (reference)", 0},
    {"temperature", KEY_TEMPERATURE, "T", 0, "P is proportional to exp(logit / T); default 1", 0},
    {"per-token", KEY_PER_TOKEN, NULL, 0, "Add token_logprobs and token_ids", 0},
    {"max-length", KEY_MAX_LENGTH, "N", 0,
     "Tokens the model reads at most; longer requests lose tokens on the left", 0},
    {"batch", KEY_BATCH, "N", 0,
     "Requests a rank takes between two exchanges (default 64); changes no answer", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case 'i':
        a->input = option->value;
        break;
    case 'o':
        a->output = option->value;
        break;
    case KEY_NORMALIZE:
        option->status = mhf_normalize_parse(option->value, &a->normalize);
        break;
    case KEY_TEMPERATURE:
        a->options.temperature = mhf_option_real(option);
        if (!(a->options.temperature > 0))
            mhf_option_refuse(option, "a number above 0");
        break;
    case KEY_PER_TOKEN:
        a->options.per_token = true;
        break;
    case KEY_MAX_LENGTH:
        a->options.max_length = mhf_option_int(option, 1, INT32_MAX);
        break;
    case KEY_BATCH:
        a->options.batch = mhf_option_int(option, 1, INT32_MAX);
        break;
    }
}

static const mhf_command command = {
    .name = "mhf score",
    .operands = "MODEL",
    .about = "Log-probabilities of continuations.\v"
             "A request is a line {\"id\", \"context\", \"continuation\"}, {\"id\", "
             "\"context_ids\", \"continuation_ids\"} or {\"id\", \"text\"}; its answer "
             "{\"id\", \"logprob\", \"greedy\", \"tokens\", \"bytes\"}.",
    .options = options,
    .precision = true,
    .take = take};

static mhf_status set_length(arguments *a, const mhf_config *config)
{
    if (a->options.max_length == 0)
        a->options.max_length = config->max_position_embeddings;
    if (a->options.max_length > config->max_position_embeddings)
        return mhf_fail(MHF_E_USAGE, "--max-length is %" PRId64 ", but the model has %d positions",
                        a->options.max_length, config->max_position_embeddings);
    return MHF_OK;
}

mhf_status mhf_cmd_score(int argc, char **argv)
{
    arguments a = {.input = "-", .output = "-", .options = {.temperature = 1, .batch = 64}};
    mhf_loaded loaded = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    const char *const inputs[] = {a.common.operands[0], a.input};
    MHF_TRY(mhf_command_check_output(&a.common, a.output, true, inputs, 2));
    mhf_status status = mhf_loaded_open(a.common.operands[0], &a.common, &loaded);
    if (status == MHF_OK)
        status = mhf_agree(set_length(&a, &loaded.model->config));
    if (status == MHF_OK) {
        a.options.counted = mhf_counted_rows(loaded.model, loaded.tokenizer, a.normalize);
        status = mhf_score_file(loaded.model, loaded.tokenizer, a.input, a.output, &a.options);
    }
    mhf_loaded_free(&loaded);
    return status;
}
