/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "bench.h"
#include "mhf/tensor.h"

static mhf_status random_table(const mhf_config *c, mhf_signatures *out)
{
    mhf_bucket *ids;
    const int64_t cells = (int64_t)c->vocab_size * c->num_hashes;
    const mhf_rng rng = mhf_rng_named(1, "table");
    const mhf_signature_options options = {.num_hashes = c->num_hashes,
                                           .num_buckets = c->num_buckets,
                                           .num_lsh = c->num_lsh,
                                           .rule = MHF_RULE_IMPORTED};
    MHF_TRY(mhf_new(&ids, cells, sizeof *ids, "a table"));
    for (int64_t i = 0; i < cells; i++)
        ids[i] = (mhf_bucket)(mhf_rng_bits(rng, (uint64_t)i) % (uint64_t)c->num_buckets);
    mhf_status status = mhf_signatures_adopt(ids, c->vocab_size, c->vocab_size, 0, &options, out);
    free(ids);
    return status;
}

typedef struct run {
    mhf_registry registry;
    mhf_params params;
    mhf_optimizer optimizer;
    mhf_stage *stage;
    mhf_signatures table;
    mhf_grid grid;
    mhf_token *tokens;
    mhf_batch *batches;
    mhf_losses *losses;
    int32_t n;
} run;

static mhf_status set_up(const mhf_run_config *config, int64_t N, run *r)
{
    const mhf_config *c = &config->model;
    const int64_t T = config->block, blocks = N / T, micro = config->micro_batch;
    const mhf_units all = {0, c->num_hidden_layers + 1};
    if (c->head == MHF_HEAD_MHF)
        MHF_TRY(random_table(c, &r->table));
    MHF_TRY(mhf_registry_new(c, &r->registry));
    MHF_TRY(mhf_registry_train_only(&r->registry, c, config->trainable, config->n_trainable));
    MHF_TRY(mhf_params_new(&r->registry, c, all, true, &r->params));
    mhf_params_initialise(&r->params, c, config->seed);
    MHF_TRY(mhf_optimizer_new(&r->grid, &r->params, &r->optimizer));
    const mhf_stage_options options = {.objective = config->objective,
                                       .max_tokens = micro * T,
                                       .max_length = T,
                                       .slots = 1,
                                       .recompute = config->recompute};
    MHF_TRY(mhf_stage_new(c, &r->params, &r->table, &options, &r->stage));
    r->n = (int32_t)((blocks + micro - 1) / micro);
    MHF_TRY(mhf_new(&r->tokens, N, sizeof *r->tokens, "tokens"));
    MHF_TRY(mhf_new(&r->batches, r->n, sizeof *r->batches, "micro-batches"));
    MHF_TRY(mhf_new(&r->losses, r->n, sizeof *r->losses, "losses"));
    const mhf_rng rng = mhf_rng_named(1, "tokens");
    for (int64_t i = 0; i < N; i++)
        r->tokens[i] = (mhf_token)(mhf_rng_bits(rng, (uint64_t)i) % (uint64_t)c->vocab_size);
    for (int32_t m = 0; m < r->n; m++) {
        int64_t begin = m * micro, left = blocks - begin;
        r->batches[m] = (mhf_batch){.blocks = left < micro ? left : micro,
                                    .T = T,
                                    .tokens = r->tokens + begin * T,
                                    .scale = 1.0 / (double)(blocks * (T - 1))};
    }
    return MHF_OK;
}

static mhf_status one_step(const mhf_run_config *config, run *r)
{
    mhf_phase_seconds seconds = {0};
    double norm;
    const mhf_update update = {.lr = config->lr,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = config->weight_decay,
                               .clip = config->clip};
    mhf_params_zero_gradients(&r->params);
    mhf_pipeline_run(&r->grid, r->stage, &config->model, r->batches, r->n, r->losses, &seconds);
    return mhf_optimizer_step(&r->grid, &r->params, &r->optimizer, &update, &norm, &seconds);
}

static void tear_down(run *r)
{
    mhf_stage_free(r->stage);
    mhf_optimizer_free(&r->optimizer);
    mhf_params_free(&r->params);
    mhf_registry_free(&r->registry);
    mhf_signatures_free(&r->table);
    free(r->tokens);
    free(r->batches);
    free(r->losses);
}

mhf_status bench_step_measure(const mhf_run_config *config, int64_t N, const bench_machine *machine,
                              bench_step *out)
{
    run r = {0};
    mhf_plan plan;
    *out = (bench_step){.tokens = N, .seconds = 1e300};
    MHF_TRY(mhf_plan_new(config, 1, 1, &plan));
    out->planned_memory = plan.ranks[0].memory_bytes;
    out->flops_per_token = plan.flops_per_token;
    mhf_plan_free(&plan);
    MHF_TRY(mhf_grid_new(1, &r.grid));
    mhf_status status = set_up(config, N, &r);
    for (int step = 0; status == MHF_OK && step < 4; step++) {
        double start = mhf_seconds();
        status = one_step(config, &r);
        double took = mhf_seconds() - start;
        if (step > 0 && took < out->seconds)
            out->seconds = took;
    }
    tear_down(&r);
    mhf_grid_free(&r.grid);
    out->tokens_per_s = (double)N / out->seconds;
    out->fraction_of_gemm = out->tokens_per_s * out->flops_per_token / machine->gemm_peak;
    out->peak_memory = mhf_peak_memory();
    return status;
}
