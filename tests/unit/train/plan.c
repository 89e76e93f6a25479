/* SPDX-License-Identifier: ISC */
/* The plan of a grid against what a run allocates: parameters, stages, moments, activations. */
#include <math.h>

#include "mhf/train.h"
#include "support.h"

static void load(const char *yaml, mhf_run_config *out)
{
    CHECK_OK(mhf_run_config_parse(yaml, strlen(yaml), "t.yaml", out));
}

static void presets(void)
{
    mhf_run_config c;
    mhf_plan plan;
    load("model: {preset: 100m, vocab_size: 32768}\ntrain: {batch: 64, micro_batch: 4}\n", &c);
    CHECK_OK(mhf_plan_new(&c, 1, 1, &plan));
    CU_ASSERT_EQUAL(plan.total, 138731073);
    CU_ASSERT_EQUAL(plan.embedding, 50331648);
    CU_ASSERT_EQUAL(plan.ranks[0].parameters, plan.total);
    CU_ASSERT_EQUAL(plan.ranks[0].weights, 4 * plan.total);
    CU_ASSERT_EQUAL(plan.ranks[0].moments, 8 * plan.total);
    /* The embedding's gradient has a side of its own in the head. */
    CU_ASSERT_EQUAL(plan.ranks[0].gradients, 4 * (plan.total + plan.embedding));
    CU_ASSERT_EQUAL(plan.micro_batches, 16);
    CU_ASSERT_EQUAL(plan.bubble, 0);
    CU_ASSERT_DOUBLE_EQUAL(plan.ranks[0].flops_share, 1, 1e-12);
    mhf_plan_free(&plan);
    mhf_run_config_free(&c);
    load("model: {preset: 1b, head: standard, add_layers: 2, vocab_size: 48128}\n", &c);
    CHECK_OK(mhf_plan_new(&c, 1, 1, &plan));
    CU_ASSERT_EQUAL(plan.total, 1205960192);
    CU_ASSERT_EQUAL(plan.embedding, 98566144);
    mhf_plan_free(&plan);
    mhf_run_config_free(&c);
}

/* All units once, in order; shares of the work add up; what all ranks own of moments is 2 ·
 * trainable. */
static void check_grid(const char *yaml, int stages, int replicas)
{
    mhf_run_config c;
    mhf_plan plan;
    mhf_registry registry;
    load(yaml, &c);
    CHECK_OK(mhf_plan_new(&c, stages, replicas, &plan));
    CHECK_OK(mhf_registry_new(&c.model, &registry));
    CHECK_OK(mhf_registry_train_only(&registry, &c.model, c.trainable, c.n_trainable));
    CU_ASSERT_EQUAL(plan.stages, stages);
    CU_ASSERT_EQUAL(plan.replicas, replicas);
    int32_t next = 0;
    double share = 0;
    for (int s = 0; s < stages; s++) {
        const mhf_rank_plan *r = &plan.ranks[s];
        CU_ASSERT_EQUAL(r->units.first, next);
        CU_ASSERT(r->units.last >= r->units.first);
        next = r->units.last + 1;
        share += r->flops_share;
        /* What the run allocates for this stage. */
        mhf_params params;
        CHECK_OK(mhf_params_new(&registry, &c.model, r->units, true, &params));
        CU_ASSERT_EQUAL(r->parameters, params.held);
        CU_ASSERT_EQUAL(r->weights, params.held * 4);
        int64_t gradients = 0, largest = 0;
        for (int32_t i = 0; i < registry.n; i++) {
            gradients += params.gradient[i] ? registry.params[i].count : 0;
            gradients +=
                params.head_gradient && registry.params[i].also_head ? registry.params[i].count : 0;
        }
        CU_ASSERT_EQUAL(r->gradients, gradients * 4);
        for (int replica = 0; replica < replicas; replica++) {
            const mhf_grid grid = {
                .stages = stages, .replicas = replicas, .stage = s, .replica = replica};
            mhf_optimizer optimizer;
            CHECK_OK(mhf_optimizer_new(&grid, &params, &optimizer));
            largest = optimizer.elements > largest ? optimizer.elements : largest;
            CU_ASSERT_EQUAL(
                optimizer.elements,
                mhf_optimizer_elements(&registry, &c.model, r->units, replicas, replica));
            mhf_optimizer_free(&optimizer);
        }
        CU_ASSERT_EQUAL(r->moments, 8 * largest);
        CU_ASSERT(r->memory_bytes > r->weights + r->gradients + r->moments + r->activations);
        mhf_params_free(&params);
    }
    CU_ASSERT_EQUAL(next, c.model.num_hidden_layers + 2);
    CU_ASSERT_DOUBLE_EQUAL(share, 1, 1e-12);
    CU_ASSERT(plan.micro_batches * replicas * c.micro_batch >= c.batch);
    CU_ASSERT_DOUBLE_EQUAL(plan.bubble, (stages - 1.0) / (plan.micro_batches + stages - 1), 1e-12);
    mhf_registry_free(&registry);
    mhf_plan_free(&plan);
    mhf_run_config_free(&c);
}

#define TINY                                                                                       \
    "hidden_size: 64, num_hidden_layers: 6, num_attention_heads: 4, num_key_value_heads: 2, "      \
    "head_dim: 16, intermediate_size: 96, vocab_size: 8192"
static const char hashed[] = "model: {num_hashes: 3, num_buckets: 4096, " TINY "}\n"
                             "data: {block: 32}\ntrain: {batch: 10, micro_batch: 3}\n";

static void grids(void)
{
    static const char *const yamls[] = {
        hashed,
        "model: {head: standard, tie_word_embeddings: false, " TINY "}\n"
        "data: {block: 32}\ntrain: {batch: 10, micro_batch: 3}\n",
        "model: {num_hashes: 3, num_buckets: 4096, tie_word_embeddings: false, " TINY "}\n"
        "data: {block: 32}\ntrain: {batch: 7, micro_batch: 2, trainable: expansion}\n"};
    for (size_t i = 0; i < sizeof yamls / sizeof *yamls; i++)
        for (int stages = 1; stages <= 4; stages++)
            for (int replicas = 1; replicas <= 4; replicas++)
                check_grid(yamls[i], stages, replicas);
    check_grid(yamls[0], 8, 1); /* a stage for each unit */
}

/* The cut is the best there is: no other has a smaller largest share. */
static void balance(void)
{
    mhf_run_config c;
    load(hashed, &c);
    const int32_t n = c.model.num_hidden_layers + 2;
    double cost[16], best = 1e300, largest = 0;
    for (int32_t u = 0; u < n; u++)
        cost[u] = mhf_unit_flops(&c.model, u, c.block);
    for (int32_t a = 1; a < n - 1; a++)
        for (int32_t b = a + 1; b < n; b++) {
            double sums[3] = {0};
            for (int32_t u = 0; u < n; u++)
                sums[(u >= a) + (u >= b)] += cost[u];
            best = fmin(best, fmax(sums[0], fmax(sums[1], sums[2])));
        }
    mhf_units units[3];
    CHECK_OK(mhf_stages_balance(&c.model, c.block, 3, NULL, units));
    for (int s = 0; s < 3; s++) {
        double sum = 0;
        for (int32_t u = units[s].first; u <= units[s].last; u++)
            sum += cost[u];
        largest = fmax(largest, sum);
    }
    CU_ASSERT_DOUBLE_EQUAL(largest, best, 1e-9 * best);
    mhf_run_config_free(&c);
}

static void by_hand(void)
{
    mhf_run_config c;
    mhf_units units[3];
    load(hashed, &c);
    const int32_t layers[] = {4, 2, 0}, more[] = {4, 2, 1}, below[] = {-1, 6, 1},
                  empty[] = {3, 0, 3}, huge[] = {INT32_MAX, 1, 1};
    CHECK_OK(mhf_stages_balance(&c.model, c.block, 3, layers, units));
    CU_ASSERT(units[0].first == 0 && units[0].last == 4);
    CU_ASSERT(units[1].first == 5 && units[1].last == 6);
    CU_ASSERT(units[2].first == 7 && units[2].last == 7); /* the head alone */
    CU_ASSERT_EQUAL(mhf_stages_balance(&c.model, c.block, 3, more, units), MHF_E_GRID);
    CU_ASSERT_EQUAL(mhf_stages_balance(&c.model, c.block, 3, below, units), MHF_E_GRID);
    CU_ASSERT_EQUAL(mhf_stages_balance(&c.model, c.block, 3, empty, units), MHF_E_GRID);
    CU_ASSERT_EQUAL(mhf_stages_balance(&c.model, c.block, 3, huge, units), MHF_E_GRID);
    CU_ASSERT_EQUAL(mhf_stages_balance(&c.model, c.block, 9, NULL, units), MHF_E_GRID);
    mhf_run_config_free(&c);
}

static void refused(void)
{
    mhf_run_config c;
    mhf_plan plan;
    load("model: {preset: 100m, vocab_size: 32768}\ntrain: {trainable: [no.such]}\n", &c);
    CU_ASSERT_EQUAL(mhf_plan_new(&c, 1, 1, &plan), MHF_E_CONFIG);
    CU_ASSERT_EQUAL(mhf_plan_new(&c, 15, 1, &plan), MHF_E_CONFIG);
    mhf_run_config_free(&c);
    load("model: {preset: 100m, vocab_size: 32768}\n", &c);
    CU_ASSERT_EQUAL(mhf_plan_new(&c, 15, 1, &plan), MHF_E_GRID);
    c.model.vocab_size = 0;
    CU_ASSERT_EQUAL(mhf_plan_new(&c, 1, 1, &plan), MHF_E_CONFIG);
    mhf_run_config_free(&c);
}

int main(void)
{
    static const test_case cases[] = {
        {"presets", presets},         {"grids as a run allocates them", grids},
        {"the best cut", balance},    {"cuts by hand", by_hand},
        {"what is refused", refused},
    };
    return run_tests("train.plan", cases, sizeof cases / sizeof *cases);
}
