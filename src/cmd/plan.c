/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "cmd.h"
#include "mhf/train.h"
#include "plan_text.h"
#include "set_list.h"

enum { KEY_GRID = 0x100, KEY_RANKS, KEY_RATES, KEY_JSON, KEY_SET };

/* What a machine does, for the forecast of a step's time; from --rates or a guess that is said. */
typedef struct rates {
    double gflops; /* of one rank */
    bool measured;
} rates;

typedef struct arguments {
    mhf_common common;
    const char *rates_file;
    set_list set;
    int stages, replicas, ranks;
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"grid", KEY_GRID, "PxD", 0, "Stages x replicas", 0},
    {"ranks", KEY_RANKS, "N", 0, "Ranks: stages as the configuration says", 0},
    {"rates", KEY_RATES, "FILE", 0,
     "What `mhf bench --json` printed there: adds a forecast of speed", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Set a configuration key over the file; may be repeated", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static void take_grid(mhf_option *option, arguments *a)
{
    char stages[8], replicas[8], rest;
    if (sscanf(option->value, "%6[0-9]x%6[0-9]%c", stages, replicas, &rest) == 2) {
        a->stages = atoi(stages);
        a->replicas = atoi(replicas);
    }
    if (a->stages < 1 || a->replicas < 1)
        mhf_option_refuse(option, "PxD, as 2x4");
}

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case KEY_GRID:
        take_grid(option, a);
        break;
    case KEY_RANKS:
        a->ranks = (int)mhf_option_int(option, 1, 10000000);
        break;
    case KEY_RATES:
        a->rates_file = option->value;
        break;
    case KEY_SET:
        option->status = set_list_add(&a->set, option->value);
        break;
    case KEY_JSON:
        a->json = true;
        break;
    case ARGP_KEY_END:
        if ((a->stages > 0) == (a->ranks > 0))
            option->status = mhf_fail(MHF_E_USAGE, "expected either --grid PxD or --ranks N");
        break;
    }
}

static const mhf_command command = {
    .name = "mhf plan",
    .operands = "CONFIG.yaml",
    .about = "Parameters, stages and memory of a configuration on a grid; allocates nothing of the "
             "model.",
    .options = options,
    .take = take};

static mhf_status read_rates(const char *path, rates *out)
{
    json_t *o = NULL;
    MHF_TRY(mhf_json_read(path, &o));
    mhf_status status =
        mhf_json_real_or(json_object_get(o, "gemm_peak_gflops"), "float32", path, &out->gflops);
    double fraction = 0;
    if (status == MHF_OK)
        status = mhf_json_real_or(json_object_get(o, "step"), "fraction_of_gemm", path, &fraction);
    json_decref(o);
    if (status == MHF_OK && !(out->gflops > 0 && fraction > 0))
        return mhf_fail(MHF_E_DATA, "%s: expected what 'mhf bench --json' prints", path);
    out->gflops *= fraction;
    out->measured = true;
    return status;
}

/* Tokens a second: the slowest stage sets the pace, the bubble takes its share. */
static double forecast(const mhf_plan *plan, const rates *r)
{
    double slowest = 0;
    for (int s = 0; s < plan->stages; s++)
        slowest = plan->ranks[s].flops_share > slowest ? plan->ranks[s].flops_share : slowest;
    return plan->replicas * r->gflops * 1e9 * (1 - plan->bubble) /
           (slowest * plan->flops_per_token);
}

static mhf_status plan_json(const mhf_plan *plan, const rates *r, mhf_buf *out)
{
    json_t *memory = json_array(), *stages = json_array();
    for (int rank = 0; rank < plan->stages * plan->replicas; rank++)
        json_array_append_new(memory, json_integer(plan->ranks[rank % plan->stages].memory_bytes));
    for (int s = 0; s < plan->stages; s++) {
        const mhf_rank_plan *p = &plan->ranks[s];
        json_array_append_new(
            stages, json_pack("{s:i,s:i,s:f,s:I,s:I,s:I,s:I,s:I}", "first_unit", p->units.first,
                              "last_unit", p->units.last, "flops_share", p->flops_share, "weights",
                              p->weights, "gradients", p->gradients, "moments", p->moments,
                              "activations", p->activations, "messages", p->messages));
    }
    json_t *o = json_pack("{s:{s:I,s:I,s:I},s:o,s:{s:i,s:i},s:o,s:f,s:f,s:i}", "parameters",
                          "total", plan->total, "embedding", plan->embedding, "non_embedding",
                          plan->total - plan->embedding, "memory_bytes", memory, "grid", "stages",
                          plan->stages, "replicas", plan->replicas, "stages", stages,
                          "gflops_per_token", plan->flops_per_token * 1e-9, "bubble", plan->bubble,
                          "micro_batches", plan->micro_batches);
    if (!o)
        return mhf_fail(MHF_E_NOMEM, "no memory for the plan");
    if (r->measured)
        json_object_set_new(o, "tokens_per_s", json_real(forecast(plan, r)));
    mhf_status status = mhf_json_print(o, out);
    json_decref(o);
    return status == MHF_OK ? mhf_buf_add_text(out, "\n") : status;
}

/* The geometry of the model to start from, where there is one. */
static mhf_status take_init(mhf_run_config *config)
{
    mhf_source *source;
    if (!config->init)
        return MHF_OK;
    MHF_TRY(mhf_source_open(config->init, &source));
    mhf_status status = mhf_run_config_take(config, source);
    mhf_source_close(source);
    return status;
}

/* V without opening more than a tokenizer: the key, the tokenizer, or the presets' 32,768. */
static mhf_status complete_vocabulary(mhf_run_config *config)
{
    mhf_config *m = &config->model;
    if (m->vocab_size == 0 && config->tokenizer &&
        (mhf_file_exists(config->tokenizer) || mhf_dir_exists(config->tokenizer))) {
        mhf_tokenizer *tokenizer;
        MHF_TRY(mhf_tokenizer_load(config->tokenizer, NULL, &tokenizer));
        m->vocab_size = (mhf_tokenizer_size(tokenizer) + 127) / 128 * 128;
        mhf_tokenizer_free(tokenizer);
    } else if (m->vocab_size == 0) {
        m->vocab_size = 32768;
        mhf_log(MHF_LOG_WARN, "there is no tokenizer to count: the plan takes 32768 rows");
    }
    return MHF_OK;
}

static mhf_status print_plan(const arguments *a, mhf_run_config *config)
{
    mhf_plan plan = {0};
    mhf_buf text = {0};
    rates r = {0};
    const int stages = a->stages > 0 ? a->stages : config->stages;
    const int replicas = a->stages > 0 ? a->replicas : a->ranks / stages;
    if (a->ranks > 0 && a->ranks % stages != 0)
        return mhf_fail(MHF_E_GRID, "parallel.stages is %d, which does not divide %d ranks", stages,
                        a->ranks);
    MHF_TRY(take_init(config));
    MHF_TRY(complete_vocabulary(config));
    MHF_TRY(mhf_run_config_check_model(config));
    if (a->rates_file)
        MHF_TRY(read_rates(a->rates_file, &r));
    mhf_status status = mhf_plan_new(config, stages, replicas, &plan);
    if (status == MHF_OK)
        status = a->json ? plan_json(&plan, &r, &text) : plan_text(config, &plan, "", &text);
    if (status == MHF_OK && !a->json && r.measured)
        status = mhf_buf_printf(
            &text, "about %.0f tokens/s: %.1f hours for %lld steps\n", forecast(&plan, &r),
            (double)(config->steps * config->batch * config->block) / forecast(&plan, &r) / 3600,
            (long long)config->steps);
    if (status == MHF_OK)
        status = mhf_command_print(&text);
    mhf_plan_free(&plan);
    mhf_buf_free(&text);
    return status;
}

mhf_status mhf_cmd_plan(int argc, char **argv)
{
    arguments a = {0};
    mhf_run_config config = {0};
    mhf_status status = mhf_command_parse(&command, argc, argv, &a, &a.common);
    if (status == MHF_OK)
        status = mhf_run_config_load(a.common.operands[0], a.set.items, a.set.n, &config);
    if (status == MHF_OK)
        status = print_plan(&a, &config);
    mhf_run_config_free(&config);
    set_list_free(&a.set);
    return status;
}
