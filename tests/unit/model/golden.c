/* SPDX-License-Identifier: ISC */
/* The six golden models: every hidden state, logit, loss and gradient against the released code's.
 */
#include "golden_model.h"
#include "mhf/tensor.h"
#include "model/encoder.h"
#include "model/head.h"

enum { ROWS = 2, T = 24, N = ROWS * T };

/* One micro-batch through a stage of all units. */
typedef struct whole {
    mhf_params params;
    mhf_stage *stage;
    mhf_losses losses;
} whole;

static void whole_run(golden_model *g, const mhf_token *ids, const mhf_token *labels, double scale,
                      bool recompute, whole *out)
{
    mhf_units all = {0, g->config.num_hidden_layers + 1};
    CHECK_OK(mhf_params_new(&g->registry, &g->config, all, true, &out->params));
    golden_model_fill(g, &out->params);
    mhf_stage_options options = {
        .max_tokens = N, .max_length = T, .slots = 1, .recompute = recompute};
    CHECK_OK(mhf_stage_new(&g->config, &out->params, g->hashed ? &g->table : NULL, &options,
                           &out->stage));
    mhf_batch batch = {.blocks = ROWS, .T = T, .tokens = ids, .labels = labels, .scale = scale};
    CHECK_OK(mhf_stage_forward(out->stage, 0, &batch, NULL, NULL, &out->losses));
    CHECK_OK(mhf_stage_backward(out->stage, 0, &batch, NULL, NULL));
}

static void whole_free(whole *w)
{
    mhf_stage_free(w->stage);
    mhf_params_free(&w->params);
}

static int64_t targets_of(const mhf_token *labels)
{
    int64_t targets = 0;
    for (int i = 0; i < N; i++)
        targets += i % T != 0 && labels[i] != -100;
    return targets;
}

/* Largest magnitude of a golden gradient. */
static double magnitude(const golden_model *g, const char *name)
{
    int64_t n = 0;
    double *values = golden_dataset(g, name, &n), largest = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(values[i]));
    free(values);
    return largest;
}

static void check_losses(const golden_model *g, const char *model, const whole *w, int64_t targets)
{
    const int H = g->hashed ? g->config.num_hashes : 1;
    double loss = 0;
    int64_t n = 0;
    double *expected = golden_dataset(g, "loss_per_coordinate", &n);
    CU_ASSERT_EQUAL(w->losses.targets, targets);
    for (int k = 0; k < H; k++) {
        double mean = w->losses.nats[k] / (double)targets;
        loss += mean;
        if (expected)
            CU_ASSERT_DOUBLE_EQUAL(mean, expected[k], 3e-6 * fabs(expected[k]));
    }
    free(expected);
    double golden_loss = golden_scalar(g, "loss");
    if (!(fabs(loss - golden_loss) <= 3e-6 * golden_loss))
        fprintf(stderr, "\n    %s: loss %.9g, expected %.9g\n", model, loss, golden_loss);
    CU_ASSERT_DOUBLE_EQUAL(loss, golden_loss, 3e-6 * golden_loss);
}

static void check_gradients(const golden_model *g, const char *model, whole *w)
{
    double squares = 0;
    for (int32_t i = 0; i < g->registry.n; i++) {
        const mhf_param *p = &g->registry.params[i];
        float *gradient = w->params.gradient[i];
        if (p->also_head) /* both sides of the embedding */
            mhf_add(w->params.head_gradient, p->count, gradient);
        squares += mhf_sum_of_squares(gradient, p->count);
        char name[160];
        snprintf(name, sizeof name, "grad/%s", p->name);
        double scale = magnitude(g, name);
        /* The scorer's last bias shifts all scores alike, and with one coordinate the whole scorer
         * does: its true gradient is zero and what is left is rounding. */
        if (strcmp(p->name, "model.combiner.scorer.2.bias") == 0 ||
            (mhf_config_encoder_hashes(&g->config) == 1 && strstr(p->name, "scorer")))
            scale = fmax(scale, 1.0);
        golden_close(g, model, name, gradient, p->count, 2e-5 * scale);
    }
    double norm = golden_scalar(g, "grad_norm");
    CU_ASSERT_DOUBLE_EQUAL(sqrt(squares), norm, 1e-5 * norm);
}

static void check_backward(const char *model, bool recompute)
{
    golden_model g;
    if (!golden_model_open(model, &g))
        return;
    int64_t n = 0;
    mhf_token *ids = golden_tokens(&g, "input_ids", &n), *labels = golden_tokens(&g, "labels", &n);
    int64_t targets = targets_of(labels);
    whole w = {0};
    whole_run(&g, ids, labels, 1.0 / (double)targets, recompute, &w);
    check_losses(&g, model, &w, targets);
    check_gradients(&g, model, &w);
    whole_free(&w);
    free(ids);
    free(labels);
    golden_model_close(&g);
}

static void losses_and_gradients(void)
{
    for (int i = 0; i < N_GOLDEN_MODELS; i++)
        check_backward(golden_model_names[i], false);
}

static void recomputed_gradients(void)
{
    check_backward("mhf-h4", true);
    check_backward("std", true);
}

static mhf_model *load(golden_model *g)
{
    mhf_units all = {0, g->config.num_hidden_layers + 1};
    mhf_params params;
    mhf_model *model;
    CHECK_OK(mhf_params_new(&g->registry, &g->config, all, false, &params));
    golden_model_fill(g, &params);
    CHECK_OK(mhf_model_new(&g->config, &g->registry, &params, &g->table, &model));
    return model;
}

static void check_states(const char *name)
{
    golden_model g;
    if (!golden_model_open(name, &g))
        return;
    int64_t n = 0;
    mhf_token *ids = golden_tokens(&g, "input_ids", &n);
    mhf_model *model = load(&g);
    const int64_t d = g.config.hidden_size, L = g.config.num_hidden_layers;
    const int64_t H = g.hashed ? g.config.num_hashes : 1;
    const int64_t B = g.hashed ? g.config.num_buckets : g.config.vocab_size;
    float *states = calloc((size_t)((L + 2) * N * d), sizeof *states);
    float *z = calloc((size_t)(H * N * B), sizeof *z),
          *logits = calloc((size_t)(N * H * B), sizeof *z);
    for (int row = 0; row < ROWS; row++) {
        float *layers[16];
        for (int64_t l = 0; l < L + 2; l++)
            layers[l] = states + (l * N + row * T) * d;
        CHECK_OK(mhf_model_forward(model, ids + row * T, T, NULL, layers, NULL));
    }
    golden_close(&g, name, "embeddings", states, N * d, 1e-5);
    golden_close(&g, name, "layer_outputs", states + N * d, L * N * d, 1e-4);
    golden_close(&g, name, "final_norm", states + (L + 1) * N * d, N * d, 5e-5);
    float *parts[MHF_MAX_HASHES];
    for (int64_t k = 0; k < H; k++)
        parts[k] = z + k * N * B;
    CHECK_OK(mhf_model_head(model, states + (L + 1) * N * d, N, parts));
    for (int64_t t = 0; t < N; t++) /* [H][N,B] to the golden's [N,H,B] */
        for (int64_t k = 0; k < H; k++)
            memcpy(logits + (t * H + k) * B, parts[k] + t * B, (size_t)B * sizeof *z);
    golden_close(&g, name, "logits", logits, N * H * B, 2e-4);
    free(states);
    free(z);
    free(logits);
    free(ids);
    mhf_model_free(model);
    golden_model_close(&g);
}

static void states_and_logits(void)
{
    for (int i = 0; i < N_GOLDEN_MODELS; i++)
        check_states(golden_model_names[i]);
}

/* What happens inside: the encoder's gate, and h_1 … h_H of the cascade. */
static void check_inside(const char *name)
{
    golden_model g;
    if (!golden_model_open(name, &g))
        return;
    int64_t n = 0;
    mhf_token *ids = golden_tokens(&g, "input_ids", &n);
    mhf_model *model = load(&g);
    const mhf_config *c = &model->config;
    const int64_t d = c->hidden_size, H = c->num_hashes, S = mhf_config_encoder_hashes(c);
    encoder_tensors encoder;
    encoder_state state = {0};
    encoder_scratch work = {0};
    float *x = calloc((size_t)(N * d), sizeof *x), *gate = calloc((size_t)(N * S), sizeof *gate);
    encoder_tensors_find(&model->registry, c, model->params.value, &encoder);
    CHECK_OK(encoder_state_new(c, N, &state));
    CHECK_OK(encoder_scratch_new(c, N, &work));
    CHECK_OK(encoder_forward(c, &encoder, &model->table, ids, N, &state, &work, x));
    for (int64_t t = 0; t < N; t++)
        memcpy(gate + t * S, state.gate + state.index[t] * S, (size_t)S * sizeof *gate);
    golden_close(&g, name, "combiner_weights", gate, N * S, 2e-6);

    head_tensors w = {0};
    head_scratch scratch = {0};
    float *hidden = calloc((size_t)(N * d), sizeof *hidden);
    float *states = calloc((size_t)(H * N * d), sizeof *states);
    float *block = calloc((size_t)(H * N * c->num_buckets), sizeof *block), *z[MHF_MAX_HASHES];
    for (int64_t k = 0; k < H; k++)
        z[k] = block + k * N * c->num_buckets;
    for (int row = 0; row < ROWS; row++)
        CHECK_OK(mhf_model_forward(model, ids + row * T, T, NULL, NULL, hidden + row * T * d));
    CHECK_OK(head_tensors_find(&model->params, c, &w));
    CHECK_OK(head_scratch_new(c, MHF_PRODUCT, N, &scratch));
    head_logits(c, &w, hidden, N, &scratch, z);
    for (int64_t k = 0; k < H; k++) /* pairs of G_k and h_k */
        memcpy(states + k * N * d, scratch.gh + (2 * k + 1) * N * d,
               (size_t)(N * d) * sizeof *states);
    golden_close(&g, name, "cascade_states", states, H * N * d, 1e-4);
    head_scratch_free(&scratch);
    encoder_scratch_free(&work);
    encoder_state_free(&state);
    free(w.mixers);
    free(x);
    free(gate);
    free(hidden);
    free(states);
    free(block);
    free(ids);
    mhf_model_free(model);
    golden_model_close(&g);
}

static void gates_and_cascade(void)
{
    for (int i = 0; i < N_GOLDEN_MODELS; i++)
        if (strcmp(golden_model_names[i], "std") != 0)
            check_inside(golden_model_names[i]);
}

/* The same states one token at a time through the cache. */
static void cached_states(void)
{
    golden_model g;
    if (!golden_model_open("mhf-h3", &g))
        return;
    int64_t n = 0;
    mhf_token *ids = golden_tokens(&g, "input_ids", &n);
    mhf_model *model = load(&g);
    const int64_t d = g.config.hidden_size;
    float *whole_states = calloc(T * (size_t)d, sizeof(float)),
          *single = calloc(T * (size_t)d, sizeof(float));
    CHECK_OK(mhf_model_forward(model, ids, T, NULL, NULL, whole_states));
    mhf_cache cache = {0};
    for (int t = 0; t < T; t++)
        CHECK_OK(mhf_model_forward(model, ids + t, 1, &cache, NULL, single + t * d));
    for (int64_t i = 0; i < T * d; i++)
        CU_ASSERT_DOUBLE_EQUAL(single[i], whole_states[i], 5e-5);
    mhf_cache_free(&cache);
    free(whole_states);
    free(single);
    free(ids);
    mhf_model_free(model);
    golden_model_close(&g);
}

static void probabilities(void)
{
    for (int i = 0; i < N_GOLDEN_MODELS; i++) {
        golden_model g;
        if (!golden_model_open(golden_model_names[i], &g))
            continue;
        int64_t n = 0;
        mhf_token *ids = golden_tokens(&g, "input_ids", &n);
        mhf_model *model = load(&g);
        const int64_t d = g.config.hidden_size, V = g.config.vocab_size;
        float *hidden = calloc(N * (size_t)d, sizeof(float));
        float *logp = calloc(N * (size_t)V, sizeof(float));
        for (int row = 0; row < ROWS; row++)
            CHECK_OK(mhf_model_forward(model, ids + row * T, T, NULL, NULL, hidden + row * T * d));
        static const char *const expected[] = {"score/target_logprob_vocab",
                                               "score/target_logprob_rows"};
        for (int way = 0; way < 2; way++) {
            float targets[ROWS * (T - 1)];
            CHECK_OK(mhf_model_log_probabilities(model, hidden, N, way == 0 ? 1000 : (int32_t)V,
                                                 1.0, logp));
            for (int row = 0; row < ROWS; row++)
                for (int t = 0; t < T - 1; t++)
                    targets[row * (T - 1) + t] = logp[(row * T + t) * V + ids[row * T + t + 1]];
            golden_close(&g, golden_model_names[i], expected[way], targets, ROWS * (T - 1), 2e-4);
        }
        free(hidden);
        free(logp);
        free(ids);
        mhf_model_free(model);
        golden_model_close(&g);
    }
}

int main(void)
{
    static const test_case cases[] = {
        {"losses and every gradient", losses_and_gradients},
        {"gradients with recomputed layers", recomputed_gradients},
        {"hidden states and logits", states_and_logits},
        {"gates and cascade states", gates_and_cascade},
        {"token by token through the cache", cached_states},
        {"log-probabilities of both normalisations", probabilities},
    };
    if (mhf_engine_start("reference", 1) != MHF_OK)
        return 1;
    return run_tests("model.golden", cases, sizeof cases / sizeof *cases);
}
