/* SPDX-License-Identifier: ISC */
// ranks: 1 2 3 4
/* Five AdamW steps of the golden models on every grid of this number of ranks, against the released
 * trainer. */

#include "golden_model.h"
#include "mhf/parallel.h"
#include "mhf/tensor.h"

enum { STEPS = 5, BLOCKS = 2, T = 24, N = BLOCKS * T };

typedef struct training {
    mhf_params params;
    mhf_optimizer optimizer;
    mhf_stage *stage;
    mhf_grid grid;
} training;

static int n_ranks, rank;

static void start(golden_model *g, int stages, training *t)
{
    mhf_units units[8];
    memset(t, 0, sizeof *t);
    CHECK_OK(mhf_grid_new(stages, &t->grid));
    CHECK_OK(mhf_stages_balance(&g->config, T, stages, NULL, units));
    CHECK_OK(mhf_params_new(&g->registry, &g->config, units[t->grid.stage], true, &t->params));
    golden_model_fill(g, &t->params);
    CHECK_OK(mhf_optimizer_new(&t->grid, &t->params, &t->optimizer));
    mhf_stage_options options = {.max_tokens = T, .max_length = T, .slots = stages};
    CHECK_OK(
        mhf_stage_new(&g->config, &t->params, g->hashed ? &g->table : NULL, &options, &t->stage));
}

static void finish(training *t)
{
    mhf_stage_free(t->stage);
    mhf_optimizer_free(&t->optimizer);
    mhf_params_free(&t->params);
    mhf_grid_free(&t->grid);
}

/* One step over two micro-batches of a block; returns the summed loss over num_items. */
static double run_step(golden_model *g, training *t, const mhf_token *ids, const mhf_token *labels,
                       double items, double lr, double *norm)
{
    mhf_batch batches[BLOCKS];
    mhf_losses losses[BLOCKS] = {0}, total;
    mhf_phase_seconds seconds = {0};
    int32_t n = 0, first = -1;
    for (int m = 0; m < BLOCKS; m++) {
        if (m * t->grid.replicas / BLOCKS != t->grid.replica)
            continue;
        first = first < 0 ? m : first;
        batches[n++] = (mhf_batch){.blocks = 1,
                                   .T = T,
                                   .tokens = ids + m * T,
                                   .labels = labels + m * T,
                                   .scale = 1.0 / items};
    }
    mhf_params_zero_gradients(&t->params);
    mhf_pipeline_run(&t->grid, t->stage, &g->config, batches, n, losses, &seconds);
    mhf_losses_join(&t->grid, losses, first < 0 ? 0 : first, n, BLOCKS, &total);
    mhf_update update = {
        .lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1, .clip = 1.0};
    CHECK_OK(mhf_optimizer_step(&t->grid, &t->params, &t->optimizer, &update, norm, &seconds));
    double loss = 0;
    for (int k = 0; k < MHF_MAX_HASHES; k++)
        loss += total.nats[k] / items;
    return loss;
}

static void check_parameters(golden_model *g, const char *model, const training *t, int step)
{
    for (int32_t i = 0; i < g->registry.n; i++) {
        const mhf_param *p = &g->registry.params[i];
        /* AdamW turns the rounding noise of a vanishing gradient into steps of the learning rate's
         * size. */
        bool vanishing = strcmp(p->name, "model.combiner.scorer.2.bias") == 0 ||
                         (mhf_config_encoder_hashes(&g->config) == 1 && strstr(p->name, "scorer"));
        if (!t->params.value[i] || vanishing)
            continue;
        char name[160];
        snprintf(name, sizeof name, "train/step%d/%s", step, p->name);
        golden_close(g, model, name, t->params.value[i], p->count, 1e-5);
    }
}

static void train(golden_model *g, const char *model, training *t)
{
    int64_t n = 0;
    mhf_token *ids = golden_tokens(g, "train/input_ids", &n);
    mhf_token *labels = golden_tokens(g, "train/labels", &n);
    double *lr = golden_dataset(g, "train/lr", &n),
           *norms = golden_dataset(g, "train/grad_norm", &n);
    double *losses = golden_dataset(g, "train/loss", &n);
    double *items = golden_dataset(g, "train/num_items", &n);
    for (int step = 0; step < STEPS; step++) {
        double norm,
            loss = run_step(g, t, ids + step * N, labels + step * N, items[step], lr[step], &norm);
        CU_ASSERT_DOUBLE_EQUAL(loss, losses[step], 1e-5 * losses[step]);
        CU_ASSERT_DOUBLE_EQUAL(norm, norms[step], 1e-4 * norms[step]);
        if (step == 0 || step == 1 || step == 4)
            check_parameters(g, model, t, step + 1);
    }
    free(ids);
    free(labels);
    free(lr);
    free(norms);
    free(losses);
    free(items);
}

static void released_steps(void)
{
    for (int stages = 1; stages <= n_ranks; stages++) {
        if (n_ranks % stages != 0)
            continue;
        for (int i = 0; i < N_GOLDEN_MODELS; i++) {
            golden_model g;
            training t;
            if (!golden_model_open(golden_model_names[i], &g))
                continue;
            start(&g, stages, &t);
            train(&g, golden_model_names[i], &t);
            finish(&t);
            golden_model_close(&g);
        }
    }
}

/* What the embedding's two copies hold, on the first and on the last stage, is the same to the bit.
 */
static void check_copies(const golden_model *g, const training *t)
{
    int32_t E = mhf_registry_find(&g->registry, "model.embed_tokens.weight");
    uint64_t mine = 0, both[2] = {0};
    if (t->params.value[E])
        mine = mhf_hash64(t->params.value[E], (size_t)g->registry.params[E].count * sizeof(float));
    if (t->grid.stage == 0)
        both[0] = mine;
    if (t->grid.stage == t->grid.stages - 1)
        both[1] = mine;
    MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_UINT64_T, MPI_SUM, t->grid.pipeline);
    if (g->registry.params[E].also_head)
        CU_ASSERT_EQUAL(both[0], both[1]);
}

static void equal_copies(void)
{
    for (int i = 0; i < N_GOLDEN_MODELS; i++) {
        golden_model g;
        training t;
        if (!golden_model_open(golden_model_names[i], &g))
            continue;
        start(&g, n_ranks, &t);
        train(&g, golden_model_names[i], &t);
        check_copies(&g, &t);
        finish(&t);
        golden_model_close(&g);
    }
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"five steps as released", released_steps},
        {"copies of the embedding stay equal", equal_copies},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int failed = mhf_engine_start("reference", 1) != MHF_OK ||
                 run_tests("parallel.golden_training", cases, sizeof cases / sizeof *cases);
    MPI_Finalize();
    return failed;
}
