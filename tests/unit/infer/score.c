// SPDX-License-Identifier: ISC
/* Log-probabilities of the golden models, both ways of normalising; windows, truncation, contexts
 * in memory. */
#include "golden_model.h"

static mhf_token ids[ROWS * COLUMNS];
static float expected[ROWS * (COLUMNS - 1)];

/* Tokens 1.. of each row after token 0. */
static double largest_difference(const golden_model *g, const char *dataset, int32_t counted)
{
    double worst = 0;
    mhf_score_options options = {.counted = counted,
                                 .temperature = 1,
                                 .max_length = g->model->config.max_position_embeddings};
    golden_read(g, dataset, H5T_NATIVE_FLOAT, ROWS * (COLUMNS - 1), expected);
    for (int r = 0; r < ROWS; r++) {
        const mhf_token *row = ids + r * COLUMNS;
        mhf_score_request request = {row, row + 1, 1, COLUMNS - 1};
        double logprob, each[COLUMNS - 1], sum = 0;
        bool greedy;
        CHECK_OK(mhf_score_one(g->model, &request, &options, NULL, &logprob, &greedy, each));
        CU_ASSERT_FALSE(greedy);
        for (int t = 0; t < COLUMNS - 1; t++) {
            worst = fmax(worst, fabs(each[t] - (double)expected[r * (COLUMNS - 1) + t]));
            sum += each[t];
        }
        CU_ASSERT_DOUBLE_EQUAL(logprob, sum, 1e-12);
    }
    return worst;
}

static void golden_scores(void)
{
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        if (!golden_open(golden_models[m], &g))
            continue;
        golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
        double rows = largest_difference(&g, "score/target_logprob_rows", VOCABULARY);
        double vocab = largest_difference(&g, "score/target_logprob_vocab", REAL);
        printf("\n    %-20s rows %.1e, vocabulary %.1e", golden_models[m], rows, vocab);
        CU_ASSERT(rows < 2e-4);
        CU_ASSERT(vocab < 2e-4);
        golden_close(&g);
    }
}

/* Every row of the table: log P = what the golden has before and after its normaliser. */
static void golden_distributions(void)
{
    static float conditional[ROWS * COLUMNS * VOCABULARY], normaliser[ROWS * COLUMNS];
    static float logp[COLUMNS * VOCABULARY];
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        if (!golden_open(golden_models[m], &g))
            continue;
        float *hidden;
        golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
        if (!golden_has(&g, "score/cond_logits")) {
            golden_close(&g);
            continue;
        }
        golden_read(&g, "score/cond_logits", H5T_NATIVE_FLOAT, ROWS * COLUMNS * VOCABULARY,
                    conditional);
        CHECK_OK(mhf_new(&hidden, COLUMNS * g.model->config.hidden_size, sizeof *hidden, "states"));
        double worst = 0;
        for (int way = 0; way < 2; way++) {
            int32_t counted = way ? VOCABULARY : REAL;
            golden_read(&g, way ? "score/logsumexp_rows" : "score/logsumexp_vocab",
                        H5T_NATIVE_FLOAT, ROWS * COLUMNS, normaliser);
            for (int r = 0; r < ROWS; r++) {
                CHECK_OK(
                    mhf_model_forward(g.model, ids + r * COLUMNS, COLUMNS, NULL, NULL, hidden));
                CHECK_OK(mhf_model_log_probabilities(g.model, hidden, COLUMNS, counted, 1, logp));
                for (int t = 0; t < COLUMNS; t++)
                    for (int v = 0; v < counted; v++) {
                        int at = r * COLUMNS + t;
                        double want =
                            (double)conditional[at * VOCABULARY + v] - (double)normaliser[at];
                        worst = fmax(worst, fabs((double)logp[t * VOCABULARY + v] - want));
                    }
            }
        }
        printf("\n    %-20s %.1e", golden_models[m], worst);
        CU_ASSERT(worst < 3e-4);
        free(hidden);
        golden_close(&g);
    }
}

static mhf_score_options length_options(int64_t max_length)
{
    return (mhf_score_options){.counted = REAL, .temperature = 1, .max_length = max_length};
}

/* A long request equals the request of its last max_length + 1 tokens. */
static void truncation(void)
{
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
    mhf_score_options options = length_options(10);
    mhf_score_request whole = {ids, ids + 18, 18, 6}, cut = {ids + 13, ids + 18, 5, 6};
    double a, b;
    bool greedy;
    CHECK_OK(mhf_score_one(g.model, &whole, &options, NULL, &a, &greedy, NULL));
    CHECK_OK(mhf_score_one(g.model, &cut, &options, NULL, &b, &greedy, NULL));
    CU_ASSERT_EQUAL(a, b);
    mhf_score_options longer = length_options(23);
    CHECK_OK(mhf_score_one(g.model, &whole, &longer, NULL, &b, &greedy, NULL));
    CU_ASSERT_NOT_EQUAL(a, b);
    mhf_score_request full = {ids, ids + 1, 1, 10}, too_long = {ids, ids + 1, 1, 11};
    CHECK_OK(mhf_score_one(g.model, &full, &options, NULL, &a, &greedy, NULL));
    CU_ASSERT_EQUAL(mhf_score_one(g.model, &too_long, &options, NULL, &a, &greedy, NULL),
                    MHF_E_DATA);
    mhf_score_request nothing = {ids, ids + 1, 1, 0}, no_context = {ids, ids, 0, 3};
    CU_ASSERT_EQUAL(mhf_score_one(g.model, &nothing, &options, NULL, &a, &greedy, NULL),
                    MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_score_one(g.model, &no_context, &options, NULL, &a, &greedy, NULL),
                    MHF_E_DATA);
    golden_close(&g);
}

/* Windows of 10 over 24 tokens: 10 after the prefix; 10 after one token; 4 after the 7 before them.
 */
static void rolling(void)
{
    golden_model g;
    if (!golden_open("mhf-h4", &g))
        return;
    golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
    mhf_score_options options = length_options(10);
    double whole, each[COLUMNS], part[3];
    bool greedy;
    CHECK_OK(mhf_score_rolling(g.model, 1, ids, COLUMNS, &options, &whole, &greedy, each));
    const mhf_token prefix = 1;
    mhf_score_request windows[3] = {
        {&prefix, ids, 1, 10}, {ids + 9, ids + 10, 1, 10}, {ids + 13, ids + 20, 7, 4}};
    for (int w = 0; w < 3; w++)
        CHECK_OK(mhf_score_one(g.model, &windows[w], &options, NULL, &part[w], &greedy, NULL));
    CU_ASSERT_DOUBLE_EQUAL(whole, part[0] + part[1] + part[2], 1e-3);
    double sum = 0;
    for (int t = 0; t < COLUMNS; t++)
        sum += each[t];
    CU_ASSERT_DOUBLE_EQUAL(whole, sum, 1e-9);
    CHECK_OK(mhf_score_rolling(g.model, 1, ids, 10, &options, &whole, &greedy, NULL));
    CU_ASSERT_DOUBLE_EQUAL(whole, part[0], 1e-3);
    CHECK_OK(mhf_score_rolling(g.model, 1, ids, 0, &options, &whole, &greedy, NULL));
    CU_ASSERT_EQUAL(whole, 0);
    CU_ASSERT_TRUE(greedy);
    golden_close(&g);
}

/* The bits are the same whatever contexts were run before. */
static void memory(void)
{
    golden_model g;
    if (!golden_open("mhf-h4", &g))
        return;
    golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
    mhf_score_options options = length_options(30);
    mhf_score_memory kept = {0};
    static const int splits[][3] = {{0, 8, 3}, {0, 8, 9}, {1, 8, 9},
                                    {0, 5, 3}, {0, 8, 3}, {0, 8, 1}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        const mhf_token *row = ids + splits[i][0] * COLUMNS;
        mhf_score_request request = {row, row + splits[i][1], splits[i][1], splits[i][2]};
        double with, without;
        bool greedy;
        CHECK_OK(mhf_score_one(g.model, &request, &options, &kept, &with, &greedy, NULL));
        CHECK_OK(mhf_score_one(g.model, &request, &options, NULL, &without, &greedy, NULL));
        CU_ASSERT_EQUAL(with, without);
    }
    mhf_score_memory_free(&kept);
    golden_close(&g);
}

/* The arg-max continuation is greedy, another is not. */
static void greedy_flag(void)
{
    golden_model g;
    if (!golden_open("std", &g))
        return;
    mhf_token prompt[7], out[16];
    golden_read(&g, "gen/prompt1", H5T_NATIVE_INT32, 7, prompt);
    golden_read(&g, "gen/out1", H5T_NATIVE_INT32, 16, out);
    mhf_score_options options = length_options(100);
    options.counted = VOCABULARY;
    mhf_score_request request = {prompt, out, 7, 16};
    double logprob;
    bool greedy;
    CHECK_OK(mhf_score_one(g.model, &request, &options, NULL, &logprob, &greedy, NULL));
    CU_ASSERT_TRUE(greedy);
    out[9] = out[9] == 5 ? 6 : 5;
    CHECK_OK(mhf_score_one(g.model, &request, &options, NULL, &logprob, &greedy, NULL));
    CU_ASSERT_FALSE(greedy);
    golden_close(&g);
}

static void check_split(const mhf_tokenizer *tokenizer, const char *context,
                        const char *continuation, const char *stripped, int64_t bytes)
{
    mhf_score_tokens got = {0};
    mhf_encoding before = {0}, whole = {0};
    char text[256];
    CHECK_OK(mhf_score_split(tokenizer, 1, context, strlen(context), continuation,
                             strlen(continuation), &got));
    snprintf(text, sizeof text, "%s%s", context, continuation);
    CHECK_OK(mhf_tokenizer_encode(tokenizer, text, strlen(text), MHF_ENCODE_PLAIN, &whole));
    CHECK_OK(
        mhf_tokenizer_encode(tokenizer, stripped, strlen(stripped), MHF_ENCODE_PLAIN, &before));
    CU_ASSERT_EQUAL(got.bytes, bytes);
    if (*stripped == 0) {
        CU_ASSERT_EQUAL_FATAL(got.n_context, 1);
        CU_ASSERT_EQUAL(got.ids[0], 1);
        CU_ASSERT_EQUAL_FATAL(got.n_continuation, whole.n);
    } else {
        CU_ASSERT_EQUAL_FATAL(got.n_context, before.n);
        CU_ASSERT_EQUAL_FATAL(got.n_continuation, whole.n > before.n ? whole.n - before.n : 0);
        CU_ASSERT_EQUAL(memcmp(got.ids, before.ids, (size_t)before.n * sizeof *before.ids), 0);
    }
    for (int64_t t = 0; t < got.n_continuation; t++)
        CU_ASSERT_EQUAL(got.ids[got.n_context + t], whole.ids[whole.n - got.n_continuation + t]);
    free(got.ids);
    mhf_encoding_free(&before);
    mhf_encoding_free(&whole);
}

static void splitting(void)
{
    const char *folder = golden("tokenizers/spm");
    if (!folder)
        return;
    mhf_tokenizer *tokenizer;
    CHECK_OK(mhf_tokenizer_load(folder, NULL, &tokenizer));
    check_split(tokenizer, "In the beginning", " God created", "In the beginning", 12);
    check_split(tokenizer, "In the beginning  ", "God created", "In the beginning", 13);
    check_split(tokenizer, "In the beginning \n\xE3\x80\x80", "God", "In the beginning", 8);
    check_split(tokenizer, "", " God created", "", 12);
    check_split(tokenizer, " \t ", "God created", "", 14);
    check_split(tokenizer, "In the beginn", "ing", "In the beginn", 3);
    check_split(tokenizer, "In the beginning", "", "In the beginning", 0);
    mhf_score_tokens none = {0};
    CU_ASSERT_EQUAL(mhf_score_split(tokenizer, -1, " ", 1, "God", 3, &none), MHF_E_DATA);
    free(none.ids);
    mhf_tokenizer_free(tokenizer);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"golden log-probabilities", golden_scores},
        {"golden distributions", golden_distributions},
        {"long requests lose their left", truncation},
        {"rolling windows", rolling},
        {"a context in memory changes no bit", memory},
        {"greedy", greedy_flag},
        {"splitting texts", splitting},
    };
    return run_infer_tests(argc, argv, "score", cases, sizeof cases / sizeof *cases);
}
