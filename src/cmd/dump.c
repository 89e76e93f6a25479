/* SPDX-License-Identifier: ISC */
/* mhf dump: hidden states of items at chosen layers. */
#include <stdlib.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *input, *output, *layers;
    mhf_dump_options options;
} arguments;

enum { KEY_LAYERS = 0x100, KEY_POOLING, KEY_DTYPE, KEY_NO_SPECIAL };

static const struct argp_option options[] = {
    {"input", 'i', "ITEMS.jsonl", 0, "Items (default -, standard input)", 0},
    {"output", 'o', "STATES.h5", 0, "The file to write (required)", 0},
    {"layers", KEY_LAYERS, "LIST", 0, "all (default), or a list such as 0,2,norm", 0},
    {"pooling", KEY_POOLING, "KIND", 0, "none (default), mean, last or first", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "f32 (default), f16 or bf16", 0},
    {"no-special", KEY_NO_SPECIAL, NULL, 0, "Texts without the template's special tokens", 0},
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
    case KEY_LAYERS:
        a->layers = option->value;
        break;
    case KEY_POOLING:
        option->status = mhf_pooling_parse(option->value, &a->options.pooling);
        break;
    case KEY_DTYPE:
        option->status = mhf_state_type_parse(option->value, &a->options.type);
        break;
    case KEY_NO_SPECIAL:
        a->options.special = false;
        break;
    }
}

static const mhf_command command = {
    .name = "mhf dump",
    .operands = "MODEL",
    .about =
        "Hidden states of every layer.\v"
        "An item is a line {\"text\"} or {\"ids\"}, either with \"span\": [START, END) in code "
        "points. Layer 0 is the encoder's output, norm the last layer's after the final norm.",
    .options = options,
    .required = (const int[]){'o', 0},
    .precision = true,
    .take = take};

mhf_status mhf_cmd_dump(int argc, char **argv)
{
    arguments a = {.input = "-", .layers = "all", .options = {.special = true}};
    mhf_loaded loaded = {0};
    int32_t *layers = NULL;
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    const char *const inputs[] = {a.common.operands[0], a.input};
    MHF_TRY(mhf_command_check_output(&a.common, a.output, false, inputs, 2));
    mhf_status status = mhf_loaded_open(a.common.operands[0], &a.common, &loaded);
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
