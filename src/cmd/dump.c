/* SPDX-License-Identifier: ISC */
/* mhf dump: hidden states of items at chosen layers. */
#include <stdlib.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *model, *input, *output, *layers;
    mhf_dump_options options;
} arguments;

enum { KEY_LAYERS = 0x2000, KEY_POOLING, KEY_DTYPE, KEY_NO_SPECIAL };

static const struct argp_option options[] = {
    {"input", 'i', "ITEMS.jsonl", 0, "Items (default -, standard input)", 0},
    {"output", 'o', "STATES.h5", 0, "The file to write (required)", 0},
    {"layers", KEY_LAYERS, "LIST", 0, "all (default), or a list such as 0,2,norm", 0},
    {"pooling", KEY_POOLING, "KIND", 0, "none (default), mean, last or first", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "f32 (default), f16 or bf16", 0},
    {"no-special", KEY_NO_SPECIAL, NULL, 0, "Texts without the template's special tokens", 0},
    MHF_PRECISION_OPTION,
    {0}};

static void check(const arguments *a, struct argp_state *state)
{
    if (!a->model)
        argp_error(state, "MODEL is missing");
    if (!a->output)
        argp_error(state, "-o STATES.h5 is missing");
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case 'i':
        a->input = value;
        return 0;
    case 'o':
        a->output = value;
        return 0;
    case KEY_LAYERS:
        a->layers = value;
        return 0;
    case KEY_POOLING:
        if (mhf_pooling_parse(value, &a->options.pooling) != MHF_OK)
            argp_error(state, "%s", mhf_error());
        return 0;
    case KEY_DTYPE:
        if (mhf_state_type_parse(value, &a->options.type) != MHF_OK)
            argp_error(state, "%s", mhf_error());
        return 0;
    case KEY_NO_SPECIAL:
        a->options.special = false;
        return 0;
    case MHF_KEY_PRECISION:
        mhf_option_precision(value, state);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error(state, "one MODEL is expected");
        a->model = value;
        return 0;
    case ARGP_KEY_END:
        check(a, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&mhf_common_argp, 0, "Common options:", -1}, {0}};
static const struct argp argp = {
    options,
    parse_option,
    "MODEL",
    "Hidden states of every layer.\v"
    "An item is a line {\"text\"} or {\"ids\"}, either with \"span\": [START, END) in code points. "
    "Layer 0 "
    "is the encoder's output, norm the last layer's after the final norm.",
    children,
    NULL,
    NULL};

mhf_status mhf_cmd_dump(int argc, char **argv)
{
    arguments a = {.input = "-", .layers = "all", .options = {.special = true}};
    mhf_loaded loaded = {0};
    int32_t *layers = NULL;
    MHF_TRY(mhf_command_parse(&argp, "mhf dump", argc, argv, &a, &a.common));
    mhf_status status = mhf_loaded_open(a.model, &a.common, &loaded);
    if (status == MHF_OK)
        status = mhf_agree(
            mhf_layers_parse(a.layers, &loaded.model->config, &layers, &a.options.n_layers));
    if (status == MHF_OK) {
        a.options.layers = layers;
        status = mhf_dump_file(loaded.model, loaded.tokenizer, a.input, &a.options,
                               loaded.info->path, loaded.info->step, a.output);
    }
    free(layers);
    mhf_loaded_free(&loaded);
    return status;
}
