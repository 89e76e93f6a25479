/* SPDX-License-Identifier: ISC */
/* mhf export: a model to a Hugging Face directory. Rank 0 works, tensor by tensor. */
#include "cmd.h"

#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    mhf_export_options options;
    const char *folder;
} arguments;

enum { KEY_DTYPE = 0x100, KEY_SHARD };

static const struct argp_option options[] = {
    {"output", 'o', "HF_DIR", 0, "The directory to write (required)", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "f32 (default: nothing is lost) or bf16", 0},
    {"max-shard-bytes", KEY_SHARD, "N", 0,
     "Bytes of tensors in a file before another is begun (default 5000000000)", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    static const char *const types[] = {"f32", "bf16", NULL};
    arguments *a = into;
    switch (option->key) {
    case 'o':
        a->folder = option->value;
        break;
    case KEY_DTYPE:
        a->options.type = mhf_option_choice(option, types) == 1 ? MHF_BF16 : MHF_F32;
        break;
    case KEY_SHARD:
        a->options.max_shard_bytes = mhf_option_int(option, 1, INT64_MAX);
        break;
    }
}

static const mhf_command command = {
    .name = "mhf export",
    .operands = "MODEL",
    .about = "Write a checkpoint, a run's newest or a Hugging Face directory as a Hugging Face "
             "directory: config.json with the released code's keys, safetensors, the tokenizer's "
             "files and those that came with an imported model.",
    .options = options,
    .required = (const int[]){'o', 0},
    .take = take};

mhf_status mhf_cmd_export(int argc, char **argv)
{
    arguments a = {.options = {.type = MHF_F32, .max_shard_bytes = 5000000000}};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    if (a.common.rank != 0)
        return MHF_OK;
    double start = mhf_seconds();
    mhf_source *source;
    MHF_TRY(mhf_source_open(a.common.operands[0], &source));
    mhf_status status = mhf_export(source, a.folder, &a.options);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "wrote %s from %s in %.1f s", a.folder,
                mhf_source_info_of(source)->path, mhf_seconds() - start);
    mhf_source_close(source);
    return status;
}
