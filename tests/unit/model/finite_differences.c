/* SPDX-License-Identifier: ISC */
/* Gradients of whole tiny models against differences of their loss along directions; ignored
 * labels; recomputed layers. */
#include <math.h>

#include "mhf/model.h"
#include "mhf/tensor.h"
#include "support.h"

enum { BLOCKS = 2, T = 12, N = BLOCKS * T, ROWS = 128, TOKENS = 100, PAD = 2 };

typedef struct tiny {
    mhf_config config;
    mhf_objective objective;
    mhf_registry registry;
    mhf_signatures table;
    mhf_params params;
    mhf_stage *stage;
    mhf_token tokens[N], labels[N];
    int32_t first[N];
    mhf_batch batch;
    char what[96];
} tiny;

static mhf_config config_of(int32_t H, bool tied)
{
    return (mhf_config){.head = H > 0 ? MHF_HEAD_MHF : MHF_HEAD_STANDARD,
                        .vocab_size = ROWS,
                        .hidden_size = 32,
                        .num_hidden_layers = 2,
                        .num_attention_heads = 4,
                        .num_key_value_heads = 2,
                        .head_dim = 10,
                        .intermediate_size = 48,
                        .max_position_embeddings = T,
                        .num_hashes = H,
                        .num_buckets = H > 0 ? 17 : 0,
                        .bottle_neck_dim = 8,
                        .tie_word_embeddings = tied,
                        .rms_norm_eps = 1e-6,
                        .rope_theta = 1e4,
                        .bos_token_id = -1,
                        .eos_token_id = -1,
                        .pad_token_id = PAD};
}

/* Weights larger than a start's, so that every path bends the loss: biases and norms too. */
static void liven(tiny *m)
{
    mhf_params_initialise(&m->params, &m->config, 5);
    mhf_rng rng = mhf_rng_named(7, "lively");
    uint64_t drawn = 0;
    for (int32_t i = 0; i < m->registry.n; i++) {
        const mhf_param *p = &m->registry.params[i];
        float *x = m->params.value[i];
        for (int64_t e = 0; e < p->count; e++) {
            float u = (float)mhf_rng_uniform(rng, drawn++) - 0.5f;
            if (p->n_dims == 2)
                x[e] *= strstr(p->name, "embed_tokens") ? 20.0f : 7.0f;
            else
                x[e] += 0.6f * u;
        }
    }
}

static void fill_table(tiny *m)
{
    mhf_bucket ids[ROWS * MHF_MAX_HASHES] = {0};
    const int32_t H = m->config.num_hashes;
    const mhf_signature_options options = {.num_hashes = H,
                                           .num_buckets = m->config.num_buckets,
                                           .num_lsh = m->config.num_lsh,
                                           .rule = MHF_RULE_IMPORTED};
    mhf_rng rng = mhf_rng_named(11, "signatures");
    for (int32_t i = 0; i < TOKENS * H; i++)
        if (i / H != PAD)
            ids[i] = (mhf_bucket)(1 + mhf_rng_bits(rng, (uint64_t)i) % 16);
    CHECK_OK(mhf_signatures_adopt(ids, ROWS, TOKENS, PAD, &options, &m->table));
}

static void open_stage(tiny *m, bool recompute)
{
    const mhf_stage_options options = {.objective = m->objective,
                                       .max_tokens = N,
                                       .max_length = T,
                                       .slots = 1,
                                       .recompute = recompute};
    CHECK_OK(mhf_stage_new(&m->config, &m->params, m->table.ids ? &m->table : NULL, &options,
                           &m->stage));
}

static void make(tiny *m, mhf_config config, mhf_objective objective, const char *what)
{
    *m = (tiny){.config = config, .objective = objective};
    const mhf_units all = {0, config.num_hidden_layers + 1};
    snprintf(m->what, sizeof m->what, "%s, H %d, %s", what, config.num_hashes,
             config.tie_word_embeddings ? "tied" : "untied");
    CHECK_OK(mhf_config_check(&config));
    CHECK_OK(mhf_registry_new(&m->config, &m->registry));
    if (config.head == MHF_HEAD_MHF)
        fill_table(m);
    CHECK_OK(mhf_params_new(&m->registry, &m->config, all, true, &m->params));
    liven(m);
    open_stage(m, false);
    mhf_rng rng = mhf_rng_named(13, "tokens");
    for (int i = 0; i < N; i++) {
        m->tokens[i] = (mhf_token)(3 + mhf_rng_bits(rng, (uint64_t)i) % 20); /* with repeats */
        m->labels[i] = m->tokens[i];
        m->first[i] = i % T < 5 ? 0 : i % T < 9 ? 5 : 9;
    }
    m->batch = (mhf_batch){
        .blocks = BLOCKS, .T = T, .tokens = m->tokens, .labels = m->labels, .scale = 1.0 / 22};
}

static void drop(tiny *m)
{
    mhf_stage_free(m->stage);
    mhf_params_free(&m->params);
    mhf_registry_free(&m->registry);
    mhf_signatures_free(&m->table);
}

static mhf_losses forward(tiny *m)
{
    mhf_losses losses;
    CHECK_OK(mhf_stage_forward(m->stage, 0, &m->batch, NULL, NULL, &losses));
    return losses;
}

static double nats(const mhf_losses *losses)
{
    double sum = 0;
    for (int k = 0; k < MHF_MAX_HASHES; k++)
        sum += losses->nats[k];
    return sum;
}

/* Forward and backward; the embedding's two gradients are joined. */
static mhf_losses differentiate(tiny *m)
{
    mhf_params_zero_gradients(&m->params);
    mhf_losses losses = forward(m);
    CHECK_OK(mhf_stage_backward(m->stage, 0, &m->batch, NULL, NULL));
    for (int32_t i = 0; m->params.head_gradient && i < m->registry.n; i++)
        if (m->registry.params[i].also_head)
            mhf_add(m->params.head_gradient, m->registry.params[i].count, m->params.gradient[i]);
    return losses;
}

/* ---- differences along a direction
 * --------------------------------------------------------------- */

/* value += a · direction, in the tensors [from, to). */
static void step(tiny *m, const float *kept, const float *direction, double a)
{
    for (int64_t e = 0; e < m->params.held; e++)
        m->params.value_block[e] = (float)((double)kept[e] + a * (double)direction[e]);
}

static double loss_at(tiny *m, const float *kept, const float *direction, double a)
{
    step(m, kept, direction, a);
    mhf_losses losses = forward(m);
    return nats(&losses) * m->batch.scale;
}

/* A rule of fourth order: what is left is rounding. `slope` is what the gradient says, `size` what
 * the slope along such a direction is like: steps change the loss by about a hundredth. */
static void check_direction(tiny *m, const float *kept, const float *direction, double slope,
                            double size, const char *name)
{
    const double h = 0.01 / size, limit = 1e-3 * size;
    double near = loss_at(m, kept, direction, h) - loss_at(m, kept, direction, -h);
    double far = loss_at(m, kept, direction, 2 * h) - loss_at(m, kept, direction, -2 * h);
    double found = (8 * near - far) / (12 * h);
    if (!(fabs(found - slope) <= limit))
        fprintf(stderr, "\n    %s: %s: slope %.9g, differences give %.9g, at most %.3g apart\n",
                m->what, name, slope, found, limit);
    CU_ASSERT(fabs(found - slope) <= limit);
    memcpy(m->params.value_block, kept, (size_t)m->params.held * sizeof *kept);
}

static void check_model(tiny *m)
{
    const int64_t n = m->params.held;
    float *kept = malloc((size_t)n * sizeof *kept), *direction = calloc((size_t)n, sizeof *kept),
          *gradient = calloc((size_t)n, sizeof *kept);
    differentiate(m);
    memcpy(kept, m->params.value_block, (size_t)n * sizeof *kept);
    double norm = 0;
    for (int32_t i = 0; i < m->registry.n; i++) {
        const int64_t count = m->registry.params[i].count;
        memcpy(gradient + (m->params.value[i] - m->params.value_block), m->params.gradient[i],
               (size_t)count * sizeof *gradient);
        norm += mhf_sum_of_squares(m->params.gradient[i], count);
    }
    norm = sqrt(norm);
    CU_ASSERT(norm > 0.01);
    /* Every tensor along its own gradient: a wrong length or a stray component shows. */
    for (int32_t i = 0; i < m->registry.n; i++) {
        const mhf_param *p = &m->registry.params[i];
        const int64_t at = m->params.value[i] - m->params.value_block;
        double square = mhf_sum_of_squares(gradient + at, p->count);
        if (sqrt(square) < 1e-2 * norm) /* below the rounding of the loss */
            continue;
        memset(direction, 0, (size_t)n * sizeof *direction);
        memcpy(direction + at, gradient + at, (size_t)p->count * sizeof *direction);
        check_direction(m, kept, direction, square, square, p->name);
    }
    /* The whole model along directions that know nothing of the gradient. */
    for (int seed = 0; seed < 4; seed++) {
        mhf_rng_normals(mhf_rng_named((uint64_t)seed, "direction"), 0, n, direction);
        double slope = 0;
        for (int64_t e = 0; e < n; e++)
            slope += (double)direction[e] * (double)gradient[e];
        check_direction(m, kept, direction, slope, norm, "a direction");
    }
    free(kept);
    free(direction);
    free(gradient);
}

static void check(mhf_config config, mhf_objective objective, const char *what)
{
    tiny m;
    make(&m, config, objective, what);
    check_model(&m);
    drop(&m);
}

static void product(void)
{
    for (int32_t H = 1; H <= 4; H++)
        for (int tied = 0; tied < 2; tied++)
            check(config_of(H, tied), MHF_PRODUCT, "product");
}

static void vocabulary(void)
{
    for (int32_t H = 1; H <= 4; H++)
        for (int tied = 0; tied < 2; tied++)
            check(config_of(H, tied), MHF_VOCABULARY, "vocabulary");
    mhf_config rows = config_of(3, true);
    rows.normalize_padding_rows = true; /* the normaliser counts padding rows */
    check(rows, MHF_VOCABULARY, "vocabulary over all rows");
}

static void lsh_only(void)
{
    mhf_config config = config_of(4, true);
    config.num_lsh = 2;
    config.lsh_only_embed = true;
    check(config, MHF_PRODUCT, "lsh_only_embed");
    check(config, MHF_VOCABULARY, "lsh_only_embed, vocabulary");
    config.num_lsh = 1; /* the gate has one score: no gradient */
    config.tie_word_embeddings = false;
    check(config, MHF_PRODUCT, "lsh_only_embed of one");
}

static void standard(void)
{
    check(config_of(0, true), MHF_PRODUCT, "standard");
    check(config_of(0, false), MHF_PRODUCT, "standard");
}

/* Attention that stops at documents, targets that are ignored. */
static void documents_and_labels(void)
{
    static const int32_t hashes[] = {0, 3};
    for (int i = 0; i < 2; i++) {
        tiny m;
        mhf_config config = config_of(hashes[i], true);
        config.mask_documents = true;
        make(&m, config, MHF_PRODUCT, "documents");
        m.batch.first = m.first;
        m.labels[3] = m.labels[4] = m.labels[T + 1] = m.labels[N - 1] = -100;
        check_model(&m);
        drop(&m);
    }
}

/* What stands in another document changes nothing. */
static void documents_are_apart(void)
{
    tiny m;
    mhf_config config = config_of(3, true);
    config.mask_documents = true;
    make(&m, config, MHF_PRODUCT, "documents");
    for (int i = 0; i < N; i++)
        if (i % T < 9)
            m.labels[i] = -100;
    m.batch.first = m.first;
    m.labels[9] = m.labels[T + 9] = -100; /* its place is of the document before */
    mhf_losses before = forward(&m);
    for (int i = 0; i < N; i++)
        if (i % T < 9)
            m.tokens[i] = (mhf_token)(30 + i);
    mhf_losses after = forward(&m);
    CU_ASSERT(memcmp(&before, &after, sizeof before) == 0);
    m.batch.first = NULL;
    after = forward(&m);
    CU_ASSERT_NOT_EQUAL(nats(&before), nats(&after));
    drop(&m);
}

/* ---- ignored labels
 * -------------------------------------------------------------------------------- */

static int keep_labels(tiny *m, int n)
{
    int kept = 0;
    for (int i = 0; i < N; i++) {
        m->labels[i] = m->tokens[i];
        if (i % T != 0 && kept < n && (i * 7) % 3 != 1)
            kept++;
        else
            m->labels[i] = -100;
    }
    return kept;
}

/* The loss of some targets is the sum of each alone, and so is the gradient. */
static void check_sum(mhf_config config, mhf_objective objective, int n)
{
    tiny m;
    make(&m, config, objective, "labels");
    m.batch.scale = 1;
    CU_ASSERT_EQUAL(keep_labels(&m, n), n);
    mhf_losses together = differentiate(&m);
    CU_ASSERT_EQUAL(together.targets, n);
    const int64_t held = m.params.held;
    double *sum = calloc((size_t)held, sizeof *sum), total = 0, largest = 0;
    float *joint = malloc((size_t)held * sizeof *joint);
    memcpy(joint, m.params.gradient_block, (size_t)held * sizeof *joint);
    mhf_token all[N];
    memcpy(all, m.labels, sizeof all);
    for (int i = 0; i < N; i++) {
        if (all[i] < 0)
            continue;
        for (int j = 0; j < N; j++)
            m.labels[j] = j == i ? all[j] : -100;
        mhf_losses one = differentiate(&m);
        CU_ASSERT_EQUAL(one.targets, 1);
        total += nats(&one);
        for (int64_t e = 0; e < held; e++)
            sum[e] += (double)m.params.gradient_block[e];
    }
    for (int64_t e = 0; e < held; e++)
        largest = fmax(largest, fabs(sum[e]));
    for (int64_t e = 0; e < held; e++)
        CU_ASSERT_DOUBLE_EQUAL(joint[e], sum[e], 1e-5 * largest);
    CU_ASSERT_DOUBLE_EQUAL(nats(&together), total, 1e-6 * total);
    free(sum);
    free(joint);
    drop(&m);
}

static void some_labels(void)
{
    static const int counts[] = {1, 7, 13};
    for (int i = 0; i < 3; i++) {
        check_sum(config_of(3, true), MHF_PRODUCT, counts[i]);
        check_sum(config_of(2, true), MHF_VOCABULARY, counts[i]);
        check_sum(config_of(0, true), MHF_PRODUCT, counts[i]);
    }
}

static void no_labels(void)
{
    static const int32_t hashes[] = {3, 3, 0};
    for (int i = 0; i < 3; i++) {
        tiny m;
        make(&m, config_of(hashes[i], true), i == 1 ? MHF_VOCABULARY : MHF_PRODUCT, "no labels");
        keep_labels(&m, 0);
        mhf_losses losses = differentiate(&m);
        CU_ASSERT_EQUAL(losses.targets, 0);
        CU_ASSERT_EQUAL(nats(&losses), 0);
        int64_t other = 0;
        for (int64_t e = 0; e < m.params.held; e++)
            other += m.params.gradient_block[e] != 0; /* NaN is not 0 either */
        CU_ASSERT_EQUAL(other, 0);
        drop(&m);
    }
}

static void outside_the_vocabulary(void)
{
    static const mhf_token bad[] = {ROWS, -1, -99, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 5; i++) {
        tiny m;
        mhf_losses losses;
        make(&m, config_of(i % 2 ? 3 : 0, true), MHF_PRODUCT, "bad ids");
        m.labels[5] = bad[i];
        CU_ASSERT_EQUAL(mhf_stage_forward(m.stage, 0, &m.batch, NULL, NULL, &losses), MHF_E_DATA);
        m.labels[5] = 5;
        m.tokens[7] = bad[i];
        CU_ASSERT_EQUAL(mhf_stage_forward(m.stage, 0, &m.batch, NULL, NULL, &losses), MHF_E_DATA);
        drop(&m);
    }
}

/* As released, the pad's row of a standard embedding learns nothing from where it is read. */
static void pad_row(void)
{
    tiny m;
    make(&m, config_of(0, false), MHF_PRODUCT, "pad");
    m.tokens[4] = m.tokens[T + 2] = PAD;
    differentiate(&m);
    const int32_t E = mhf_registry_find(&m.registry, "model.embed_tokens.weight");
    const float *row = m.params.gradient[E] + PAD * m.config.hidden_size;
    CU_ASSERT_EQUAL(mhf_sum_of_squares(row, m.config.hidden_size), 0);
    CU_ASSERT(mhf_sum_of_squares(m.params.gradient[E] + m.tokens[1] * m.config.hidden_size,
                                 m.config.hidden_size) > 0);
    drop(&m);
}

static void recomputed(void)
{
    static const int32_t hashes[] = {0, 1, 4};
    for (int i = 0; i < 3; i++) {
        tiny m;
        mhf_config config = config_of(hashes[i], i != 1);
        config.mask_documents = true;
        make(&m, config, i == 2 ? MHF_VOCABULARY : MHF_PRODUCT, "recompute");
        m.batch.first = m.first;
        mhf_losses kept = differentiate(&m);
        float *gradient = malloc((size_t)m.params.held * sizeof *gradient);
        memcpy(gradient, m.params.gradient_block, (size_t)m.params.held * sizeof *gradient);
        mhf_stage_free(m.stage);
        open_stage(&m, true);
        mhf_losses again = differentiate(&m);
        CU_ASSERT(memcmp(&kept, &again, sizeof kept) == 0);
        CU_ASSERT(memcmp(gradient, m.params.gradient_block,
                         (size_t)m.params.held * sizeof *gradient) == 0);
        free(gradient);
        drop(&m);
    }
}

int main(void)
{
    static const test_case cases[] = {
        {"product", product},
        {"vocabulary", vocabulary},
        {"an encoder of LSH coordinates alone", lsh_only},
        {"standard", standard},
        {"documents and ignored labels", documents_and_labels},
        {"documents don't see each other", documents_are_apart},
        {"1, 7 and 13 targets", some_labels},
        {"no target", no_labels},
        {"ids outside the vocabulary", outside_the_vocabulary},
        {"the pad's row", pad_row},
        {"recomputed layers", recomputed},
    };
    if (mhf_engine_start("reference", 1) != MHF_OK)
        return 1;
    return run_tests("model.finite_differences", cases, sizeof cases / sizeof *cases);
}
