/* SPDX-License-Identifier: ISC */
#include "bench.h"

#include "cmd.h"
#include "mhf/tensor.h"
#include "set_list.h"

enum { KEY_SET = 0x100, KEY_TOKENS, KEY_JSON };

typedef struct arguments {
    mhf_common common;
    set_list set;
    int64_t tokens;
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"set", KEY_SET, "KEY=VALUE", 0, "Set a configuration key over the file; may be repeated", 0},
    {"tokens", KEY_TOKENS, "N", 0, "Tokens of the step (default 2048)", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case KEY_SET:
        option->status = set_list_add(&a->set, option->value);
        break;
    case KEY_TOKENS:
        a->tokens = mhf_option_int(option, 2, 1 << 24);
        break;
    case KEY_JSON:
        a->json = true;
        break;
    }
}

static const mhf_command command = {
    .name = "mhf bench",
    .operands = "[CONFIG.yaml]",
    .about = "Rates of this machine's products and of a training step on one rank, with random "
             "tokens and weights.",
    .options = options,
    .take = take};

/* Without a file: the published 100M row with H 4, B 16384. */
static mhf_status load_config(const arguments *a, mhf_run_config *config)
{
    const char *file = a->common.n_operands > 0 ? a->common.operands[0] : NULL;
    set_list set = {0};
    mhf_status status = file ? MHF_OK : set_list_add(&set, "model.preset=100m");
    if (status == MHF_OK && !file)
        status = set_list_add(&set, "data.block=512");
    for (int32_t i = 0; status == MHF_OK && i < a->set.n; i++)
        status = set_list_add(&set, a->set.items[i]);
    if (status == MHF_OK)
        status = mhf_run_config_load(file, set.items, set.n, config);
    set_list_free(&set);
    if (status == MHF_OK && config->model.vocab_size == 0)
        config->model.vocab_size = 32768;
    if (status == MHF_OK)
        status = mhf_run_config_check_model(config);
    return status;
}

static mhf_status print_text(const bench_machine *machine, const bench_kernel *kernels, int n,
                             const bench_step *step, mhf_buf *out)
{
    MHF_TRY(mhf_buf_printf(
        out,
        "engine %s, threads %d: float32 products %.1f GFLOP/s at best, memory %.1f "
        "GB/s\n\n%-24s %10s %9s %9s %9s %8s\n",
        mhf_engine_name(), mhf_engine_threads(), machine->gemm_peak * 1e-9,
        machine->bandwidth * 1e-9, "kernel", "ms", "GFLOP", "GFLOP/s", "GB/s", "of limit"));
    for (int i = 0; i < n; i++) {
        const bench_kernel *k = &kernels[i];
        MHF_TRY(mhf_buf_printf(out, "%-24s %10.3f %9.3f %9.1f %9.1f %7.0f%%\n", k->name,
                               k->seconds * 1e3, k->flop * 1e-9, k->flop / k->seconds * 1e-9,
                               k->bytes / k->seconds * 1e-9, 100 * k->fraction_of_limit));
    }
    return mhf_buf_printf(out,
                          "\na training step of %lld tokens, float32: %.0f tokens/s, %.3f GFLOP a "
                          "token, %.1f %% of the "
                          "best product rate\npeak memory %.0f MiB; the plan said %.0f MiB\n",
                          (long long)step->tokens, step->tokens_per_s, step->flops_per_token * 1e-9,
                          100 * step->fraction_of_gemm, (double)step->peak_memory / 1048576,
                          (double)step->planned_memory / 1048576);
}

static mhf_status print_json(const bench_machine *machine, const bench_kernel *kernels, int n,
                             const bench_step *step, mhf_buf *out)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list,
                              json_pack("{s:s,s:f,s:f,s:f,s:f}", "name", kernels[i].name, "seconds",
                                        kernels[i].seconds, "gflop", kernels[i].flop * 1e-9,
                                        "gbyte", kernels[i].bytes * 1e-9, "fraction_of_limit",
                                        kernels[i].fraction_of_limit));
    /* This build has no bfloat16 product: its rate is null. */
    json_t *o =
        json_pack("{s:s,s:i,s:{s:f,s:n},s:f,s:{s:s,s:I,s:f,s:f,s:f,s:I,s:I},s:o}", "engine",
                  mhf_engine_name(), "threads", mhf_engine_threads(), "gemm_peak_gflops", "float32",
                  machine->gemm_peak * 1e-9, "bfloat16", "bandwidth_gbs", machine->bandwidth * 1e-9,
                  "step", "precision", "float32", "tokens", step->tokens, "tokens_per_s",
                  step->tokens_per_s, "gflops_per_token", step->flops_per_token * 1e-9,
                  "fraction_of_gemm", step->fraction_of_gemm, "peak_memory_bytes",
                  step->peak_memory, "planned_memory_bytes", step->planned_memory, "kernels", list);
    if (!o)
        return mhf_fail(MHF_E_NOMEM, "no memory for the results");
    mhf_status status = mhf_json_print(o, out);
    json_decref(o);
    return status == MHF_OK ? mhf_buf_add_text(out, "\n") : status;
}

static mhf_status measure(arguments *a, mhf_run_config *config)
{
    bench_machine machine;
    bench_kernel kernels[BENCH_MAX_KERNELS];
    bench_step step;
    mhf_buf text = {0};
    int n = 0;
    const int64_t T = config->block < a->tokens ? config->block : a->tokens;
    const int64_t N = a->tokens / T * T;
    config->block = T;
    config->batch = N / T;
    if (config->micro_batch > config->batch)
        config->micro_batch = config->batch;
    mhf_log(MHF_LOG_INFO, "bench: the machine's products and memory");
    MHF_TRY(bench_machine_measure(&machine));
    mhf_log(MHF_LOG_INFO, "bench: a training step of %lld tokens, several times", (long long)N);
    /* The step first: its peak of memory is the process's. */
    MHF_TRY(bench_step_measure(config, N, &machine, &step));
    mhf_log(MHF_LOG_INFO, "bench: each kernel");
    MHF_TRY(
        bench_kernels_measure(&config->model, config->micro_batch * T, T, &machine, kernels, &n));
    mhf_status status = a->json ? print_json(&machine, kernels, n, &step, &text)
                                : print_text(&machine, kernels, n, &step, &text);
    if (status == MHF_OK)
        status = mhf_command_print(&text);
    mhf_buf_free(&text);
    return status;
}

mhf_status mhf_cmd_bench(int argc, char **argv)
{
    arguments a = {.tokens = 2048};
    mhf_run_config config = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    /* On several ranks all measure at once, as they would run, and rank 0 tells of itself. */
    mhf_status status = mhf_command_engine(&a.common, NULL);
    if (status == MHF_OK)
        status = load_config(&a, &config);
    if (status == MHF_OK)
        status = measure(&a, &config);
    mhf_run_config_free(&config);
    set_list_free(&a.set);
    return status;
}
