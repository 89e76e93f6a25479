/* SPDX-License-Identifier: ISC */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "mhf/tensor.h"
#include "mhf/train.h"
#include "plan_text.h"
#include "set_list.h"

enum {
    KEY_SET = 0x100,
    KEY_RUN,
    KEY_RESUME,
    KEY_STOP_AFTER,
    KEY_MAX_HOURS,
    KEY_STALL,
    KEY_DRY_RUN
};

typedef struct arguments {
    mhf_common common;
    set_list set;
    char *run; /* "run=DIR" of --run */
    mhf_train_options options;
    bool dry_run;
} arguments;

static const struct argp_option options[] = {
    {"set", KEY_SET, "KEY=VALUE", 0, "Set a configuration key over the file; may be repeated", 0},
    {"run", KEY_RUN, "DIR", 0, "Run folder, over the file's key `run`", 0},
    {"resume", KEY_RESUME, "auto|exact|none", 0,
     "Go on from the newest whole checkpoint (default), only in the same set-up, or never", 0},
    {"stop-after", KEY_STOP_AFTER, "K", 0, "Save and stop after step K (exit code 75)", 0},
    {"max-hours", KEY_MAX_HOURS, "X", 0, "Save and stop at the first step past X hours", 0},
    {"stall-seconds", KEY_STALL, "N", 0, "End the job when nothing moves for N seconds", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Print every key with its origin and the plan, and stop", 0},
    {0}};

static double take_positive(mhf_option *option)
{
    double x = mhf_option_real(option);
    if (!(x > 0 && x < 1e15))
        mhf_option_refuse(option, "a number above 0");
    return x;
}

static mhf_status take_run(const char *folder, arguments *a)
{
    free(a->run);
    a->run = NULL;
    return asprintf(&a->run, "run=%s", folder) < 0 ? mhf_fail(MHF_E_NOMEM, "no memory for --run")
                                                   : MHF_OK;
}

static void take(mhf_option *option, void *into)
{
    static const char *const resumes[] = {"auto", "exact", "none", NULL};
    arguments *a = into;
    switch (option->key) {
    case KEY_SET:
        option->status = set_list_add(&a->set, option->value);
        break;
    case KEY_RUN:
        option->status = take_run(option->value, a);
        break;
    case KEY_RESUME:
        a->options.resume = (mhf_resume)mhf_option_choice(option, resumes);
        break;
    case KEY_STOP_AFTER:
        a->options.stop_after = mhf_option_int(option, 1, INT64_MAX);
        break;
    case KEY_MAX_HOURS:
        a->options.max_hours = take_positive(option);
        break;
    case KEY_STALL:
        a->options.stall_seconds = take_positive(option);
        break;
    case KEY_DRY_RUN:
        a->dry_run = true;
        break;
    }
}

static const mhf_command command = {.name = "mhf train",
                                    .operands = "CONFIG.yaml",
                                    .about = "Train a model, or go on with one.",
                                    .options = options,
                                    .take = take};

/* Rank 0 finds and verifies the newest checkpoint; the others open the same. Collective, agreed. */
static mhf_status find_checkpoint(const mhf_run_config *config, mhf_resume resume, mhf_source **out)
{
    char path[4096] = "";
    int rank;
    int32_t refused;
    mhf_status status = MHF_OK;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *out = NULL;
    if (rank == 0 && config->run)
        status = mhf_run_newest(config->run, out, &refused);
    if (status == MHF_OK && rank == 0 && config->run && !*out && refused > 0)
        mhf_log(MHF_LOG_WARN, "%s: none of its %d checkpoints is whole: the run starts anew",
                config->run, refused);
    if (*out && resume == MHF_RESUME_NONE)
        status = mhf_fail(
            MHF_E_MISMATCH,
            "%s: has checkpoints, but --resume none asks for a new start: name another folder",
            config->run);
    if (*out)
        snprintf(path, sizeof path, "%s", mhf_source_info_of(*out)->path);
    MHF_TRY(mhf_agree(status));
    MPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0 && *path)
        status = mhf_source_open(path, out);
    return mhf_agree(status);
}

static mhf_status compare_with_stored(const mhf_run_config *now, const mhf_source *resumed)
{
    const mhf_source_info *info = mhf_source_info_of(resumed);
    mhf_run_config stored;
    if (!info->run || !*info->run)
        return mhf_fail(MHF_E_MISMATCH, "%s: holds no run configuration to go on with", info->path);
    MHF_TRY(mhf_run_config_parse(info->run, strlen(info->run), info->path, &stored));
    mhf_status status = mhf_run_config_same(&stored, now);
    if (status == MHF_OK && now->steps > stored.steps)
        mhf_log(MHF_LOG_INFO,
                "train.steps grows from %lld to %lld: the learning-rate schedule changes",
                (long long)stored.steps, (long long)now->steps);
    mhf_run_config_free(&stored);
    return status;
}

/* --resume exact: nothing that bits depend on may differ. */
static mhf_status require_exact(const mhf_run_config *now, const mhf_source *resumed, int n)
{
    const mhf_source_info *info = mhf_source_info_of(resumed);
    const char *what = NULL;
    if (strcmp(info->program_build, mhf_build()) != 0)
        what = "build";
    else if (strcmp(info->engine, mhf_engine_name()) != 0)
        what = "engine";
    else if (info->threads != mhf_engine_threads())
        what = "number of threads";
    else if (n / now->stages != info->reduction_shards)
        what = "number of replicas";
    if (!what)
        return MHF_OK;
    return mhf_fail(
        MHF_E_MISMATCH,
        "--resume exact: the %s differs from the one of %s (%s; engine %s; %d threads; %d "
        "replicas)",
        what, info->path, info->program_build, info->engine, info->threads, info->reduction_shards);
}

static mhf_status dry_run(mhf_run_config *config, int n)
{
    mhf_buf text = {0};
    mhf_run_inputs inputs;
    MHF_TRY(mhf_run_resolve(config, NULL, &inputs));
    mhf_run_inputs_free(&inputs);
    if (n == 1)
        n = config->stages; /* asked alone what a job would do */
    if (n % config->stages != 0)
        return mhf_fail(MHF_E_GRID,
                        "parallel.stages is %d and there are %d ranks, expected a number of "
                        "stages that divides the ranks",
                        config->stages, n);
    mhf_status status = mhf_run_config_print(config, true, &text);
    mhf_plan plan = {0};
    if (status == MHF_OK)
        status = mhf_plan_new(config, config->stages, n / config->stages, &plan);
    if (status == MHF_OK)
        status = plan_text(config, &plan, "# ", &text);
    if (status == MHF_OK)
        status = mhf_command_print(&text);
    mhf_plan_free(&plan);
    mhf_buf_free(&text);
    return status;
}

static mhf_status train(arguments *a, mhf_run_config *config)
{
    mhf_source *resumed = NULL;
    mhf_run_inputs inputs = {0};
    mhf_status status = find_checkpoint(config, a->options.resume, &resumed);
    if (status == MHF_OK)
        status =
            mhf_command_engine(&a->common, resumed ? mhf_source_info_of(resumed)->engine : NULL);
    if (status == MHF_OK && resumed)
        status = compare_with_stored(config, resumed);
    if (status == MHF_OK && resumed && a->options.resume == MHF_RESUME_EXACT)
        status = require_exact(config, resumed, a->common.n_ranks);
    if (status == MHF_OK)
        status = mhf_run_resolve(config, resumed, &inputs);
    status = mhf_agree(status);
    if (status == MHF_OK && resumed)
        mhf_log(MHF_LOG_INFO, "goes on from %s", mhf_source_info_of(resumed)->path);
    if (status == MHF_OK)
        status = mhf_train(config, &inputs, resumed, &a->options);
    mhf_run_inputs_free(&inputs);
    mhf_source_close(resumed);
    return status;
}

mhf_status mhf_cmd_train(int argc, char **argv)
{
    arguments a = {0};
    mhf_run_config config = {0};
    mhf_status status = mhf_command_parse(&command, argc, argv, &a, &a.common);
    if (status == MHF_OK && a.run)
        status = set_list_add(&a.set, a.run);
    if (status == MHF_OK)
        status = mhf_run_config_load(a.common.operands[0], a.set.items, a.set.n, &config);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = a.dry_run ? mhf_agree(dry_run(&config, a.common.n_ranks)) : train(&a, &config);
    mhf_run_config_free(&config);
    set_list_free(&a.set);
    free(a.run);
    return status;
}
