// SPDX-License-Identifier: ISC
// ranks: 1 2 3
/* Evaluation against the golden log-probabilities, calibration against a plain search, on any
 * number of ranks. */
#include <unistd.h>

#include "golden_model.h"

static char path[96];
static int rank;

/* A store of n tokens, written by rank 0. */
static void write_store(const golden_model *g, const mhf_token *ids, int64_t n)
{
    mhf_token_writer *writer;
    if (rank == 0) {
        CHECK_OK(mhf_token_writer_new(path, g->tokenizer, &writer));
        CHECK_OK(mhf_token_writer_add(writer, ids, n, 7 * n));
        CHECK_OK(mhf_token_writer_finish(writer));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static mhf_status run(const golden_model *g, int64_t block, int32_t counted, bool calibrate,
                      mhf_evaluation *out)
{
    mhf_tokens *tokens;
    mhf_evaluate_options options = {.block = block, .counted = counted, .calibrate = calibrate};
    CHECK_OK(mhf_tokens_open(path, &tokens));
    mhf_status status = mhf_evaluate(g->model, g->tokenizer, tokens, &options, out);
    mhf_tokens_close(tokens);
    MPI_Barrier(MPI_COMM_WORLD);
    return status;
}

static double mean(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)x[i];
    return sum / n;
}

/* Nats of the training's losses, coordinate by coordinate, from the golden logits. */
static void golden_losses(const golden_model *g, const mhf_token *ids, double *losses)
{
    static float logits[ROWS * COLUMNS * VOCABULARY];
    const mhf_config *c = &g->model->config;
    int64_t H = c->head == MHF_HEAD_MHF ? c->num_hashes : 1;
    int64_t B = c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
    golden_read(g, "logits", H5T_NATIVE_FLOAT, ROWS * COLUMNS * H * B, logits);
    for (int64_t k = 0; k < H; k++) {
        losses[k] = 0;
        for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
            if (i % COLUMNS == COLUMNS - 1)
                continue;
            const float *z = logits + (i * H + k) * B;
            double sum = 0;
            for (int64_t b = 0; b < B; b++)
                sum += exp((double)z[b]);
            int64_t label = ids[i + 1];
            if (c->head == MHF_HEAD_MHF)
                label = g->model->table.ids[label * H + k];
            losses[k] += (log(sum) - (double)z[label]) / (ROWS * (COLUMNS - 1));
        }
    }
}

static void golden_values(void)
{
    enum { TARGETS = ROWS * (COLUMNS - 1) };
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        mhf_token ids[ROWS * COLUMNS];
        float logp[TARGETS];
        double losses[8];
        mhf_evaluation actual, reference;
        if (!golden_open(golden_models[m], &g))
            continue;
        golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
        write_store(&g, ids, ROWS * COLUMNS);
        CHECK_OK(run(&g, COLUMNS, REAL, false, &actual));
        CHECK_OK(run(&g, COLUMNS, VOCABULARY, false, &reference));
        CU_ASSERT_EQUAL(actual.tokens, TARGETS);
        golden_read(&g, "score/target_logprob_vocab", H5T_NATIVE_FLOAT, TARGETS, logp);
        CU_ASSERT_DOUBLE_EQUAL(actual.nats_per_token, -mean(logp, TARGETS), 1e-4);
        golden_read(&g, "score/target_logprob_rows", H5T_NATIVE_FLOAT, TARGETS, logp);
        CU_ASSERT_DOUBLE_EQUAL(reference.nats_per_token, -mean(logp, TARGETS), 1e-4);
        int64_t bytes = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++)
            if (i % COLUMNS)
                bytes += mhf_tokenizer_bytes(g.tokenizer, ids[i]);
        CU_ASSERT_EQUAL(actual.bytes, bytes);
        CU_ASSERT_DOUBLE_EQUAL(actual.bits_per_byte,
                               actual.nats_per_token * TARGETS / (double)bytes / log(2), 1e-12);
        golden_losses(&g, ids, losses);
        for (int k = 0; k < actual.n_losses; k++)
            CU_ASSERT_DOUBLE_EQUAL(actual.losses[k], losses[k], 1e-4);
        golden_close(&g);
    }
}

/* A tail block and blocks that fill several rounds: the same as one score a block. */
static void blocks(void)
{
    enum { N = 7 * 40 + 3, BLOCK = 7 };
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_token ids[N];
    double nats = 0;
    int64_t targets = 0, right = 0;
    mhf_rng rng = mhf_rng_named(3, "ids");
    for (int i = 0; i < N; i++)
        ids[i] = (mhf_token)(mhf_rng_uniform(rng, (uint64_t)i) * REAL);
    mhf_score_options options = {.counted = REAL, .temperature = 1, .max_length = 100};
    for (int i = 0; i < N; i += BLOCK) {
        int n = N - i < BLOCK ? N - i : BLOCK;
        double logprob;
        bool greedy;
        mhf_score_request request = {ids + i, ids + i + 1, 1, n - 1};
        CHECK_OK(mhf_score_one(g.model, &request, &options, NULL, &logprob, &greedy, NULL));
        nats -= logprob;
        targets += n - 1;
        for (int t = 1; t < n; t++) {
            mhf_score_request one = {ids + i, ids + i + t, t, 1};
            CHECK_OK(mhf_score_one(g.model, &one, &options, NULL, &logprob, &greedy, NULL));
            right += greedy;
        }
    }
    mhf_evaluation e;
    write_store(&g, ids, N);
    CHECK_OK(run(&g, BLOCK, REAL, false, &e));
    CU_ASSERT_EQUAL(e.tokens, targets);
    CU_ASSERT_DOUBLE_EQUAL(e.nats_per_token, nats / (double)targets, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL(e.accuracy, (double)right / (double)targets, 1e-12);
    golden_close(&g);
}

static double nats_at(const golden_model *g, const mhf_token *ids, double temperature)
{
    mhf_score_options options = {.counted = REAL, .temperature = temperature, .max_length = 100};
    double nats = 0, logprob;
    bool greedy;
    for (int r = 0; r < ROWS; r++) {
        mhf_score_request request = {ids + r * COLUMNS, ids + r * COLUMNS + 1, 1, COLUMNS - 1};
        CHECK_OK(mhf_score_one(g->model, &request, &options, NULL, &logprob, &greedy, NULL));
        nats -= logprob;
    }
    return nats / (ROWS * (COLUMNS - 1));
}

/* On random models the arg-max is made the target now and then, so that the best temperature lies
 * inside. */
static void calibration(void)
{
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        mhf_token ids[ROWS * COLUMNS];
        if (!golden_open(golden_models[m], &g))
            continue;
        golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
        for (int i = 0; i < 12; i++) {
            mhf_generate_options options = {
                .max_tokens = 1, .top_p = 1, .counted = REAL, .ignore_eos = true};
            mhf_generate_request request = {.prompt = ids, .n = i + 1, .key = "1", .max_tokens = 1};
            int64_t n;
            mhf_buf text = {0};
            mhf_stop stop;
            CHECK_OK(mhf_generate_one(g.model, g.tokenizer, &request, &options, &ids[i + 1], &n,
                                      &text, &stop));
            mhf_buf_free(&text);
        }
        mhf_evaluation e;
        write_store(&g, ids, ROWS * COLUMNS);
        CHECK_OK(run(&g, COLUMNS, REAL, true, &e));
        printf("\n    %-20s raw %.4f, %.4f at temperature %.4f", golden_models[m], e.nats_per_token,
               e.calibrated_nats_per_token, e.temperature);
        CU_ASSERT(e.temperature > 0.5 && e.temperature < 64);
        CU_ASSERT(e.calibrated_nats_per_token <= e.nats_per_token + 1e-6);
        double here = nats_at(&g, ids, e.temperature);
        CU_ASSERT_DOUBLE_EQUAL(e.calibrated_nats_per_token, here, 1e-4);
        CU_ASSERT(nats_at(&g, ids, e.temperature * 1.02) > here);
        CU_ASSERT(nats_at(&g, ids, e.temperature / 1.02) > here);
        golden_close(&g);
    }
}

static void bad_input(void)
{
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_token ids[4] = {1, 2, 3, 4};
    mhf_evaluation e;
    write_store(&g, ids, 4);
    CU_ASSERT_EQUAL(run(&g, 1, REAL, false, &e), MHF_E_USAGE);
    CU_ASSERT_EQUAL(run(&g, 257, REAL, false, &e), MHF_E_USAGE);
    write_store(&g, ids, 1);
    CU_ASSERT_EQUAL(run(&g, 4, REAL, false, &e), MHF_E_DATA);
    write_store(&g, ids, 4);
    const char *other = golden("tokenizers/spm-always");
    if (other) {
        mhf_tokenizer *mine = g.tokenizer;
        CHECK_OK(mhf_tokenizer_load(other, NULL, &g.tokenizer));
        CU_ASSERT_EQUAL(run(&g, 4, REAL, false, &e), MHF_E_MISMATCH);
        mhf_tokenizer_free(g.tokenizer);
        g.tokenizer = mine;
    }
    golden_close(&g);
}

/* A weight that is NaN ends the evaluation on every rank. */
static void not_a_number(void)
{
    golden_model g;
    if (!golden_open("std", &g))
        return;
    mhf_token ids[64];
    for (int i = 0; i < 64; i++)
        ids[i] = 300 + i;
    int32_t norm = mhf_registry_find(&g.model->registry, "model.norm.weight");
    g.model->params.value[norm][3] = NAN;
    mhf_evaluation e;
    write_store(&g, ids, 64);
    CU_ASSERT_EQUAL(run(&g, 8, REAL, false, &e), MHF_E_NONFINITE);
    golden_close(&g);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"golden values", golden_values},
        {"blocks and a tail", blocks},
        {"calibration", calibration},
        {"bad input", bad_input},
        {"NaN", not_a_number},
    };
    int provided, parent = (int)getppid();
    H5dont_atexit();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&parent, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mhf-evaluate-%d.h5", parent);
    mhf_log_start(MHF_LOG_WARN, rank, 1);
    int code = 1;
    if (mhf_engine_start("blis:default", 1) == MHF_OK)
        code = run_tests("evaluate", cases, sizeof cases / sizeof *cases);
    if (rank == 0)
        unlink(path);
    MPI_Finalize();
    return code;
}
