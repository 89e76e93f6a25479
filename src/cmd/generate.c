/* SPDX-License-Identifier: ISC */
/* mhf generate: continue prompts. */
#include <stdlib.h>
#include <string.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *prompt, *input;
    mhf_normalize normalize;
    mhf_generate_options options;
} arguments;

enum {
    KEY_PROMPT = 0x100,
    KEY_MAX_TOKENS,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_SEED,
    KEY_IGNORE_EOS,
    KEY_NORMALIZE,
    KEY_TOKEN_IDS
};

static const struct argp_option options[] = {
    {"prompt", KEY_PROMPT, "TEXT", 0, "One prompt; the answer is printed as text", 0},
    {"input", 'i', "PROMPTS.jsonl", 0, "Prompts (-: standard input); answers are JSON lines", 0},
    {"max-tokens", KEY_MAX_TOKENS, "N", 0, "Tokens to generate at most (default 128)", 0},
    {"temperature", KEY_TEMPERATURE, "T", 0, "Default 1; 0 takes the likeliest token", 0},
    {"top-k", KEY_TOP_K, "K", 0, "Draw among the K likeliest tokens", 0},
    {"top-p", KEY_TOP_P, "P", 0, "Draw among the fewest tokens whose probability reaches P", 0},
    {"seed", KEY_SEED, "S", 0, "Seed of the draws (default 42)", 0},
    {"ignore-eos", KEY_IGNORE_EOS, NULL, 0, "Go on after an end-of-sequence token", 0},
    {"normalize", KEY_NORMALIZE, "RULE", 0,
     "Tokens are drawn from the tokenizer's (actual, default) or all rows (reference)", 0},
    {"token-ids", KEY_TOKEN_IDS, NULL, 0, "Add token_ids to JSON answers", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    mhf_generate_options *o = &a->options;
    switch (option->key) {
    case KEY_PROMPT:
        a->prompt = option->value;
        break;
    case 'i':
        a->input = option->value;
        break;
    case KEY_MAX_TOKENS:
        o->max_tokens = mhf_option_int(option, 0, INT32_MAX);
        break;
    case KEY_TEMPERATURE:
        o->temperature = mhf_option_real(option);
        if (!(o->temperature >= 0))
            mhf_option_refuse(option, "0 or more");
        break;
    case KEY_TOP_K:
        o->top_k = (int32_t)mhf_option_int(option, 0, INT32_MAX);
        break;
    case KEY_TOP_P:
        o->top_p = mhf_option_real(option);
        if (!(o->top_p > 0 && o->top_p <= 1))
            mhf_option_refuse(option, "above 0 and at most 1");
        break;
    case KEY_SEED:
        o->seed = (uint64_t)mhf_option_int(option, 0, INT64_MAX);
        break;
    case KEY_IGNORE_EOS:
        o->ignore_eos = true;
        break;
    case KEY_NORMALIZE:
        option->status = mhf_normalize_parse(option->value, &a->normalize);
        break;
    case KEY_TOKEN_IDS:
        o->token_ids = true;
        break;
    case ARGP_KEY_END:
        if (a->prompt && a->input)
            option->status = mhf_fail(MHF_E_USAGE, "--prompt and -i exclude each other");
        break;
    }
}

static const mhf_command command = {
    .name = "mhf generate",
    .operands = "MODEL",
    .about = "Continue prompts.\v"
             "A prompt is a line {\"id\", \"prompt\", \"until\": [TEXT...], \"max_tokens\"}; its "
             "answer {\"id\", \"text\", \"tokens\", \"stop\": \"eos|until|length\"}.",
    .options = options,
    .precision = true,
    .take = take};

/* One prompt from the command line: rank 0 answers, its text is the result. */
static mhf_status answer_prompt(const arguments *a, const mhf_loaded *loaded, mhf_buf *out)
{
    mhf_token *prompt = NULL, *ids = NULL;
    int64_t n_ids, most = a->options.max_tokens;
    mhf_stop stop;
    mhf_generate_request request = {.key = "1", .max_tokens = most};
    mhf_status status = mhf_prompt_encode(loaded->model, loaded->tokenizer, a->prompt,
                                          strlen(a->prompt), &prompt, &request.n);
    request.prompt = prompt;
    if (most > loaded->model->config.max_position_embeddings)
        most = loaded->model->config.max_position_embeddings;
    if (status == MHF_OK)
        status = mhf_new(&ids, most, sizeof *ids, "token ids");
    if (status == MHF_OK)
        status = mhf_generate_one(loaded->model, loaded->tokenizer, &request, &a->options, ids,
                                  &n_ids, out, &stop);
    if (status == MHF_OK)
        status = mhf_buf_add_text(out, "\n");
    free(prompt);
    free(ids);
    return status;
}

mhf_status mhf_cmd_generate(int argc, char **argv)
{
    arguments a = {.options = {.max_tokens = 128, .temperature = 1, .top_p = 1, .seed = 42}};
    mhf_loaded loaded = {0};
    mhf_buf out = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    if (!a.prompt)
        a.prompt = "";
    if (mhf_utf8_valid(a.prompt, strlen(a.prompt)) != strlen(a.prompt))
        return mhf_fail(MHF_E_USAGE, "--prompt is not UTF-8 text");
    mhf_status status = mhf_loaded_open(a.common.operands[0], &a.common, &loaded);
    if (status == MHF_OK) {
        a.options.counted = mhf_counted_rows(loaded.model, loaded.tokenizer, a.normalize);
        if (a.input)
            status = mhf_generate_file(loaded.model, loaded.tokenizer, a.input, &a.options, &out);
        else
            status = mhf_agree(a.common.rank == 0 ? answer_prompt(&a, &loaded, &out) : MHF_OK);
    }
    if (status == MHF_OK)
        status = mhf_agree(mhf_command_print(&out));
    mhf_buf_free(&out);
    mhf_loaded_free(&loaded);
    return status;
}
