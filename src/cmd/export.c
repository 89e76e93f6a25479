/* SPDX-License-Identifier: ISC */
/* mhf export: a model to a Hugging Face directory. Rank 0 works, tensor by tensor. */
#include "cmd.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"
#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    mhf_export_options options;
    const char *model, *folder;
} arguments;

enum { KEY_DTYPE = 0x2000, KEY_SHARD };

static const struct argp_option options[] = {
    {"output", 'o', "HF_DIR", 0, "The directory to write (required)", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "f32 (default: nothing is lost) or bf16", 0},
    {"max-shard-bytes", KEY_SHARD, "N", 0,
     "Bytes of tensors in a file before another is begun (default 5000000000)", 0},
    {0}};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case 'o':
        a->folder = value;
        return 0;
    case KEY_DTYPE:
        if (strcmp(value, "f32") != 0 && strcmp(value, "bf16") != 0)
            argp_error(state, "--dtype is '%s', expected f32 or bf16", value);
        a->options.type = strcmp(value, "bf16") == 0 ? MHF_BF16 : MHF_F32;
        return 0;
    case KEY_SHARD:
        a->options.max_shard_bytes =
            mhf_option_int("--max-shard-bytes", value, 1, INT64_MAX, state);
        return 0;
    case ARGP_KEY_ARG:
        if (a->model)
            argp_error(state, "more than one MODEL: '%s'", value);
        a->model = value;
        return 0;
    case ARGP_KEY_END:
        if (!a->model)
            argp_error(state, "MODEL is missing");
        if (!a->folder)
            argp_error(state, "-o HF_DIR is missing");
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
    "Write a checkpoint, a run's newest or a Hugging Face directory as a Hugging Face directory: "
    "config.json with the released code's keys, safetensors, the tokenizer's files and those that "
    "came with an imported model.",
    children,
    NULL,
    NULL};

mhf_status mhf_cmd_export(int argc, char **argv)
{
    arguments a = {.options = {.type = MHF_F32, .max_shard_bytes = 5000000000}};
    int rank;
    MHF_TRY(mhf_command_parse(&argp, "mhf export", argc, argv, &a, &a.common));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
        return MHF_OK;
    double start = mhf_seconds();
    mhf_source *source;
    MHF_TRY(mhf_source_open(a.model, &source));
    mhf_status status = mhf_export(source, a.folder, &a.options);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "wrote %s from %s in %.1f s", a.folder,
                mhf_source_info_of(source)->path, mhf_seconds() - start);
    mhf_source_close(source);
    return status;
}
