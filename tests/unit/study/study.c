// SPDX-License-Identifier: ISC
/* A study of states made by hand: similarities, coverage, zero vectors, several inputs, tables. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <unistd.h>

#include "mhf/study.h"
#include "support.h"

enum { WORDS = 5, D = 2, UNKNOWN = 9 };
static char path[64], pairs_path[64];

/* Words a, b, c, d, e: e has no token, d an unknown one, c is a zero vector at layer 00. */
static const float layer0[WORDS][D] = {{1, 0}, {1, 1}, {0, 0}, {0, 1}, {0, 0}};
static const float layer1[WORDS][D] = {{3, 0}, {0, 2}, {-1, 0}, {0, 1}, {0, 0}};
static const char *const texts[WORDS] = {"a", "b", "c", "d", "e"};

static void write_states(const char *pooling, mhf_token unknown, const char *last_text)
{
    static const int32_t layers[] = {0, 2};
    static const uint64_t offsets[] = {0, 2, 4, 7, 9, 10},
                          pooled[] = {1, 2, 1, 2, 1, 3, 1, 2, 0, 0};
    static const mhf_token ids[] = {1, 5, 1, 6, 1, 5, 7, 1, UNKNOWN, 1};
    const char *items[WORDS];
    size_t lengths[WORDS];
    for (int i = 0; i < WORDS; i++) {
        items[i] = i + 1 < WORDS ? texts[i] : last_text;
        lengths[i] = strlen(items[i]);
    }
    mhf_states_meta meta = {.layers = layers,
                            .n_layers = 2,
                            .num_hidden_layers = 1,
                            .rows = WORDS,
                            .d = D,
                            .type = MHF_F32,
                            .pooling = pooling,
                            .items = WORDS,
                            .texts = items,
                            .text_lengths = lengths,
                            .token_offsets = offsets,
                            .token_ids = ids,
                            .checkpoint = "model.h5",
                            .tokenizer_sha256 = "",
                            .pooled = pooled,
                            .unknown_id = unknown};
    mhf_states_writer *writer;
    CHECK_OK(mhf_states_writer_new(path, &meta, &writer));
    CHECK_OK(mhf_states_writer_put(writer, 0, 0, WORDS, &layer0[0][0]));
    CHECK_OK(mhf_states_writer_put(writer, 1, 0, WORDS, &layer1[0][0]));
    CHECK_OK(mhf_states_writer_finish(writer, MHF_OK));
}

static void read_pairs(mhf_pairs *pairs, mhf_prompts *prompts)
{
    static const char text[] = "a\tb\t3\nb\tc\t1\na\tc\t2\na\td\t9\na\te\t9\n";
    CHECK_OK(mhf_file_write(pairs_path, text, sizeof text - 1));
    CHECK_OK(mhf_pairs_read(pairs_path, pairs));
    CHECK_OK(mhf_prompts_fill(pairs, "{}", prompts));
}

static const mhf_study_options options = {
    .pooling = "mean", .template_text = "{}", .seed = 1, .draws = 50};

static void similarities(void)
{
    mhf_pairs pairs = {0};
    mhf_prompts prompts = {0};
    mhf_study_result r;
    read_pairs(&pairs, &prompts);
    write_states("mean", UNKNOWN, "e");
    mhf_study_input input = {.path = path, .label = "one"};
    CHECK_OK(mhf_states_open(path, &input.states));
    CHECK_OK(mhf_study_check(&input, &prompts, &options));
    static const int64_t counts[] = {0, 100, 0, 0, 0, 30, 20, 4, 0, 0};
    CHECK_OK(mhf_study_run(&input, 1, &pairs, &options, counts, 10, &r));
    CU_ASSERT_EQUAL_FATAL(r.layers, 2);
    CU_ASSERT_STRING_EQUAL(r.layer_names[0], "00");
    CU_ASSERT_STRING_EQUAL(r.layer_names[1], "norm");
    static const uint8_t covered[] = {1, 1, 1, 0, 0};
    CU_ASSERT_EQUAL(memcmp(r.covered, covered, sizeof covered), 0);
    const double first[] = {sqrt(0.5), 0, 0}, second[] = {0, 0, -1}, human[] = {3, 1, 2};
    for (int p = 0; p < 3; p++) {
        CU_ASSERT_DOUBLE_EQUAL(r.similarity[p], first[p], 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(r.similarity[5 + p], second[p], 1e-12);
    }
    CU_ASSERT(isnan(r.similarity[3]) && isnan(r.similarity[9]));
    double rho;
    CU_ASSERT_DOUBLE_EQUAL(r.pearson[0], mhf_pearson(first, human, 3), 1e-12);
    CHECK_OK(mhf_spearman(second, human, 3, &rho));
    CU_ASSERT_DOUBLE_EQUAL(r.spearman[1], rho, 1e-12);
    CU_ASSERT_EQUAL(r.pieces2[1], 2);
    CU_ASSERT_EQUAL(r.rarest2[1], 4);
    CU_ASSERT_EQUAL(r.rarest1[0], 30);
    CU_ASSERT_EQUAL(r.rarest2[4], -1);

    mhf_buf table = {0};
    CHECK_OK(mhf_study_table(&r, &table));
    CU_ASSERT_PTR_NOT_NULL(strstr(table.data, "3 of 5 pairs covered"));
    mhf_buf_clear(&table);
    CHECK_OK(mhf_study_similarities_tsv(&r, &table));
    CU_ASSERT_PTR_NOT_NULL(strstr(table.data, "a\td\t9\t0\t0\t1\t1\t30\t0\tnan\tnan\n"));
    mhf_buf_clear(&table);
    CHECK_OK(mhf_study_tsv(&r, &table));
    CU_ASSERT_PTR_NOT_NULL(strstr(table.data, "\t3\t5\n"));
    mhf_buf_free(&table);
    mhf_study_free(&r);
    mhf_states_close(input.states);
    mhf_prompts_free(&prompts);
    mhf_pairs_free(&pairs);
}

/* With a second input that knows every token the first one's gaps still count. */
static void several_inputs(void)
{
    mhf_pairs pairs = {0};
    mhf_prompts prompts = {0};
    mhf_study_result r;
    read_pairs(&pairs, &prompts);
    mhf_study_input inputs[2] = {{.path = path, .label = "one"}, {.path = path, .label = "two"}};
    write_states("mean", UNKNOWN, "e");
    CHECK_OK(mhf_states_open(path, &inputs[0].states));
    write_states("mean", -1, "e");
    CHECK_OK(mhf_states_open(path, &inputs[1].states));
    CHECK_OK(mhf_study_run(inputs, 2, &pairs, &options, NULL, 0, &r));
    CU_ASSERT_EQUAL_FATAL(r.layers, 4);
    CU_ASSERT_STRING_EQUAL(r.layer_names[3], "two/norm");
    CU_ASSERT_EQUAL(r.covered[3], 0);
    CU_ASSERT_PTR_NULL(r.rarest1);
    CU_ASSERT_DOUBLE_EQUAL(r.similarity[10], sqrt(0.5), 1e-12);
    mhf_study_free(&r);
    CHECK_OK(mhf_study_run(inputs + 1, 1, &pairs, &options, NULL, 0, &r));
    CU_ASSERT_EQUAL(r.covered[3], 1);
    CU_ASSERT_EQUAL(r.covered[4], 0);
    mhf_study_free(&r);
    mhf_states_close(inputs[0].states);
    mhf_states_close(inputs[1].states);
    mhf_prompts_free(&prompts);
    mhf_pairs_free(&pairs);
}

static void other_states(void)
{
    mhf_pairs pairs = {0};
    mhf_prompts prompts = {0};
    read_pairs(&pairs, &prompts);
    static const struct {
        const char *pooling, *text, *says;
    } cases[] = {{"last", "e", "pooled by 'last', expected 'mean'"},
                 {"mean", "f", "item 4 is 'f', expected 'e'"},
                 {"mean", "", "item 4 is '', expected 'e'"}};
    for (int i = 0; i < 3; i++) {
        mhf_study_input input = {.path = path, .label = "one"};
        write_states(cases[i].pooling, -1, cases[i].text);
        CHECK_OK(mhf_states_open(path, &input.states));
        CU_ASSERT_EQUAL(mhf_study_check(&input, &prompts, &options), MHF_E_DATA);
        CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), cases[i].says));
        mhf_states_close(input.states);
    }
    prompts.n--;
    mhf_study_input input = {.path = path, .label = "one"};
    CHECK_OK(mhf_states_open(path, &input.states));
    CU_ASSERT_EQUAL(mhf_study_check(&input, &prompts, &options), MHF_E_DATA);
    mhf_states_close(input.states);
    prompts.n++;
    mhf_prompts_free(&prompts);
    mhf_pairs_free(&pairs);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"similarities and coverage", similarities},
        {"several inputs", several_inputs},
        {"states of something else", other_states},
    };
    int provided;
    H5dont_atexit();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    snprintf(path, sizeof path, "/tmp/mhf-study-%d.h5", (int)getpid());
    snprintf(pairs_path, sizeof pairs_path, "/tmp/mhf-study-%d.tsv", (int)getpid());
    int code = run_tests("study", cases, sizeof cases / sizeof *cases);
    unlink(path);
    unlink(pairs_path);
    MPI_Finalize();
    return code;
}
