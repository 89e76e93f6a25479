// SPDX-License-Identifier: ISC
/* Greedy generation of the golden models, sampling, endings. */
#include "golden_model.h"

static const mhf_generate_options greedy = {
    .max_tokens = 16, .temperature = 0, .top_p = 1, .ignore_eos = true, .counted = VOCABULARY};

static void golden_generation(void)
{
    static const int lengths[3] = {1, 7, 13};
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        if (!golden_open(golden_models[m], &g))
            continue;
        for (int p = 0; p < 3; p++) {
            mhf_token prompt[13], expected[16], ids[16];
            char name[32];
            int64_t n_ids;
            mhf_buf text = {0};
            mhf_stop stop;
            snprintf(name, sizeof name, "gen/prompt%d", p);
            golden_read(&g, name, H5T_NATIVE_INT32, lengths[p], prompt);
            snprintf(name, sizeof name, "gen/out%d", p);
            golden_read(&g, name, H5T_NATIVE_INT32, 16, expected);
            mhf_generate_request request = {
                .prompt = prompt, .n = lengths[p], .key = "1", .max_tokens = 16};
            CHECK_OK(mhf_generate_one(g.model, g.tokenizer, &request, &greedy, ids, &n_ids, &text,
                                      &stop));
            CU_ASSERT_EQUAL_FATAL(n_ids, 16);
            CU_ASSERT_EQUAL(stop, MHF_STOP_LENGTH);
            CU_ASSERT_EQUAL(memcmp(ids, expected, sizeof expected), 0);
            mhf_buf_free(&text);
        }
        golden_close(&g);
    }
}

/* One generation; text is to be freed. */
static mhf_stop run(const golden_model *g, const char *prompt, const char *key,
                    const mhf_generate_options *options, const mhf_text_piece *until,
                    int32_t n_until, mhf_token *ids, int64_t *n_ids, mhf_buf *text)
{
    mhf_generate_request request = {
        .key = key, .until = until, .n_until = n_until, .max_tokens = options->max_tokens};
    mhf_token *prompt_ids;
    mhf_stop stop = MHF_STOP_LENGTH;
    CHECK_OK(
        mhf_prompt_encode(g->model, g->tokenizer, prompt, strlen(prompt), &prompt_ids, &request.n));
    request.prompt = prompt_ids;
    CHECK_OK(mhf_generate_one(g->model, g->tokenizer, &request, options, ids, n_ids, text, &stop));
    free(prompt_ids);
    return stop;
}

static void prompts(void)
{
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_token *ids;
    int64_t n;
    CHECK_OK(mhf_prompt_encode(g.model, g.tokenizer, "And God", 7, &ids, &n));
    mhf_encoding plain = {0};
    CHECK_OK(mhf_tokenizer_encode(g.tokenizer, "And God", 7, MHF_ENCODE_PLAIN, &plain));
    CU_ASSERT_EQUAL_FATAL(n, plain.n + 1);
    CU_ASSERT_EQUAL(ids[0], 1);
    CU_ASSERT_EQUAL(memcmp(ids + 1, plain.ids, (size_t)plain.n * sizeof *ids), 0);
    mhf_encoding_free(&plain);
    plain = (mhf_encoding){0};
    free(ids);
    CHECK_OK(mhf_prompt_encode(g.model, g.tokenizer, "", 0, &ids, &n));
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT_EQUAL(ids[0], 1);
    free(ids);
    /* A template that ends texts with EOS does not end a prompt. */
    const char *ending = golden("bpe_train/expanded-bytelevel");
    mhf_tokenizer *tokenizer;
    if (ending) {
        CHECK_OK(mhf_tokenizer_load(ending, NULL, &tokenizer));
        CHECK_OK(mhf_tokenizer_encode(tokenizer, "And God", 7, MHF_ENCODE_PLAIN, &plain));
        CHECK_OK(mhf_prompt_encode(g.model, tokenizer, "And God", 7, &ids, &n));
        CU_ASSERT_EQUAL(n, plain.n);
        free(ids);
        mhf_encoding_free(&plain);
        mhf_tokenizer_free(tokenizer);
    }
    golden_close(&g);
}

static void sampling(void)
{
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_generate_options options = {.max_tokens = 12,
                                    .temperature = 3,
                                    .top_p = 1,
                                    .seed = 5,
                                    .ignore_eos = true,
                                    .counted = REAL};
    mhf_token a[12], b[12];
    int64_t n, m;
    mhf_buf text = {0};
    run(&g, "And God", "\"x\"", &options, NULL, 0, a, &n, &text);
    run(&g, "And God", "\"x\"", &options, NULL, 0, b, &m, &text);
    CU_ASSERT_EQUAL(n, 12);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
    for (int i = 0; i < 12; i++)
        CU_ASSERT(a[i] >= 0 && a[i] < REAL);
    run(&g, "And God", "\"y\"", &options, NULL, 0, b, &m, &text);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    options.seed = 6;
    run(&g, "And God", "\"x\"", &options, NULL, 0, b, &m, &text);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    /* One candidate left is the arg-max. */
    mhf_generate_options best = options, one = options, least = options;
    best.temperature = 0;
    one.top_k = 1;
    least.top_p = 1e-9;
    run(&g, "And God", "\"x\"", &best, NULL, 0, a, &n, &text);
    run(&g, "And God", "\"x\"", &one, NULL, 0, b, &m, &text);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
    run(&g, "And God", "\"x\"", &least, NULL, 0, b, &m, &text);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
    mhf_buf_free(&text);
    golden_close(&g);
}

/* How often a token is drawn is its probability. */
static void frequencies(void)
{
    golden_model g;
    if (!golden_open("std", &g))
        return;
    enum { TRIES = 3000 };
    static float logp[VOCABULARY];
    static int seen[VOCABULARY];
    const double temperature = 8;
    mhf_token prompt = 1, id;
    int64_t n;
    float hidden[64];
    mhf_buf text = {0};
    mhf_stop stop;
    mhf_generate_options options = {
        .temperature = temperature, .top_p = 1, .ignore_eos = true, .counted = REAL};
    for (int i = 0; i < TRIES; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        mhf_generate_request request = {.prompt = &prompt, .n = 1, .key = key, .max_tokens = 1};
        CHECK_OK(mhf_generate_one(g.model, g.tokenizer, &request, &options, &id, &n, &text, &stop));
        seen[id]++;
    }
    CHECK_OK(mhf_model_forward(g.model, &prompt, 1, NULL, NULL, hidden));
    CHECK_OK(mhf_model_log_probabilities(g.model, hidden, 1, REAL, temperature, logp));
    /* Parts of the vocabulary: each count within five standard deviations. */
    for (int part = 0; part < 10; part++) {
        double p = 0, count = 0;
        for (int v = part * 100; v < part * 100 + 100; v++) {
            p += exp((double)logp[v]);
            count += seen[v];
        }
        CU_ASSERT(fabs(count - TRIES * p) < 5 * sqrt(TRIES * p * (1 - p)) + 1);
    }
    mhf_buf_free(&text);
    golden_close(&g);
}

static void endings(void)
{
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_generate_options options = greedy;
    mhf_token ids[16];
    int64_t n, whole;
    mhf_buf text = {0}, cut = {0};
    run(&g, "In the beginning", "1", &options, NULL, 0, ids, &whole, &text);
    CU_ASSERT_FATAL(text.n > 8);
    /* A text from the middle ends the answer before its first place. */
    char *from = strdup(text.data + 4);
    from[3] = 0;
    size_t place = (size_t)(strstr(text.data, from) - text.data);
    mhf_text_piece until[2] = {{"never \x01", 7}, {from, 3}};
    CU_ASSERT_EQUAL(run(&g, "In the beginning", "1", &options, until, 2, ids, &n, &cut),
                    MHF_STOP_UNTIL);
    CU_ASSERT_EQUAL(cut.n, place);
    CU_ASSERT_EQUAL(memcmp(cut.data, text.data, place), 0);
    CU_ASSERT(n < whole);
    free(from);
    options.max_tokens = 0;
    CU_ASSERT_EQUAL(run(&g, "In", "1", &options, NULL, 0, ids, &n, &cut), MHF_STOP_LENGTH);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(cut.n, 0);
    mhf_buf_free(&text);
    mhf_buf_free(&cut);
    golden_close(&g);
}

/* EOS ends an answer unless it is ignored: every token is made EOS by a tiny vocabulary of one. */
static void end_of_sequence(void)
{
    golden_model g;
    if (!golden_open("std", &g))
        return;
    mhf_generate_options options = greedy;
    mhf_token ids[16];
    int64_t n;
    mhf_buf text = {0};
    options.ignore_eos = false;
    options.temperature = 1e4; /* near uniform over ids 0, 1, 2: EOS (2) comes soon */
    options.counted = 3;
    mhf_stop stop = MHF_STOP_LENGTH;
    for (int i = 0; i < 10 && stop != MHF_STOP_EOS; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        stop = run(&g, "In", key, &options, NULL, 0, ids, &n, &text);
    }
    CU_ASSERT_EQUAL(stop, MHF_STOP_EOS);
    for (int64_t i = 0; i < n; i++)
        CU_ASSERT_NOT_EQUAL(ids[i], 2);
    mhf_buf_free(&text);
    golden_close(&g);
}

static void positions(void)
{
    golden_model g;
    if (!golden_open("mhf-h1", &g))
        return;
    int32_t most = g.model->config.max_position_embeddings;
    mhf_token *prompt, ids[16];
    int64_t n;
    mhf_buf text = {0};
    mhf_stop stop;
    CHECK_OK(mhf_new(&prompt, most + 1, sizeof *prompt, "a prompt"));
    for (int i = 0; i <= most; i++)
        prompt[i] = 300 + i % 50;
    mhf_generate_request request = {.prompt = prompt, .n = most - 3, .key = "1", .max_tokens = 16};
    CHECK_OK(mhf_generate_one(g.model, g.tokenizer, &request, &greedy, ids, &n, &text, &stop));
    CU_ASSERT_EQUAL(n, 3);
    CU_ASSERT_EQUAL(stop, MHF_STOP_LENGTH);
    request.n = most;
    CHECK_OK(mhf_generate_one(g.model, g.tokenizer, &request, &greedy, ids, &n, &text, &stop));
    CU_ASSERT_EQUAL(n, 0);
    request.n = most + 1;
    CU_ASSERT_EQUAL(
        mhf_generate_one(g.model, g.tokenizer, &request, &greedy, ids, &n, &text, &stop),
        MHF_E_DATA);
    request.n = 0;
    CU_ASSERT_EQUAL(
        mhf_generate_one(g.model, g.tokenizer, &request, &greedy, ids, &n, &text, &stop),
        MHF_E_DATA);
    free(prompt);
    mhf_buf_free(&text);
    golden_close(&g);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"golden greedy generation", golden_generation},
        {"prompts", prompts},
        {"sampling is keyed", sampling},
        {"frequencies are probabilities", frequencies},
        {"ending texts", endings},
        {"end of sequence", end_of_sequence},
        {"positions run out", positions},
    };
    return run_infer_tests(argc, argv, "generate", cases, sizeof cases / sizeof *cases);
}
