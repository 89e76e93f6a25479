// SPDX-License-Identifier: ISC
// ranks: 1 2 3
/* Dumped states against the golden ones; pooling over spans; bad items. */
#include <unistd.h>

#include "golden_model.h"

static char path[96], items_path[96];
static int rank;

static mhf_dump_options options_for(mhf_pooling pooling, const int32_t *layers, int32_t n_layers)
{
    return (mhf_dump_options){.layers = layers,
                              .n_layers = n_layers,
                              .pooling = pooling,
                              .type = MHF_F32,
                              .special = true};
}

static mhf_status dump(const golden_model *g, const mhf_dump_item *items, int64_t n,
                       const mhf_dump_options *options)
{
    mhf_status status =
        mhf_dump_items(g->model, g->tokenizer, items, n, "items", options, "model", 7, path);
    MPI_Barrier(MPI_COMM_WORLD);
    return status;
}

static mhf_status dump_text(const golden_model *g, const char *jsonl,
                            const mhf_dump_options *options)
{
    if (rank == 0)
        CHECK_OK(mhf_file_write(items_path, jsonl, strlen(jsonl)));
    MPI_Barrier(MPI_COMM_WORLD);
    mhf_status status =
        mhf_dump_file(g->model, g->tokenizer, items_path, options, "model", 7, path);
    MPI_Barrier(MPI_COMM_WORLD);
    return status;
}

/* rows [n, d] of the i-th layer in the file. */
static void read_rows(int32_t i, int64_t rows, int64_t d, float *out)
{
    mhf_states *states;
    CHECK_OK(mhf_states_open(path, &states));
    CU_ASSERT_EQUAL_FATAL(mhf_states_rows(states), rows);
    CU_ASSERT_EQUAL_FATAL(mhf_states_width(states), d);
    CHECK_OK(mhf_states_read(states, i, 0, rows, out));
    mhf_states_close(states);
    MPI_Barrier(MPI_COMM_WORLD);
}

enum { L = 4, D = 64, STATES = ROWS * COLUMNS * D };

static double difference(const float *a, const float *b, int n)
{
    double worst = 0;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

static void golden_states(void)
{
    static float layers[L * STATES], got[STATES], expected[STATES];
    static const int32_t all[] = {0, 1, 2, 3, 4, 5};
    for (int m = 0; m < N_GOLDEN_MODELS; m++) {
        golden_model g;
        mhf_token ids[ROWS * COLUMNS];
        if (!golden_open(golden_models[m], &g))
            continue;
        golden_read(&g, "input_ids", H5T_NATIVE_INT32, ROWS * COLUMNS, ids);
        mhf_dump_item items[ROWS];
        for (int r = 0; r < ROWS; r++)
            items[r] = (mhf_dump_item){.ids = ids + r * COLUMNS,
                                       .n_ids = COLUMNS,
                                       .span_begin = -1,
                                       .span_end = -1,
                                       .line = r + 1};
        mhf_dump_options options = options_for(MHF_POOL_NONE, all, 6);
        CHECK_OK(dump(&g, items, ROWS, &options));
        double worst = 0;
        read_rows(0, ROWS * COLUMNS, D, got);
        golden_read(&g, "embeddings", H5T_NATIVE_FLOAT, STATES, expected);
        worst = fmax(worst, difference(got, expected, STATES));
        if (golden_has(&g, "layer_outputs")) {
            golden_read(&g, "layer_outputs", H5T_NATIVE_FLOAT, L * STATES, layers);
            for (int l = 0; l < L; l++) {
                read_rows(l + 1, ROWS * COLUMNS, D, got);
                worst = fmax(worst, difference(got, layers + l * STATES, STATES));
            }
        }
        read_rows(5, ROWS * COLUMNS, D, got);
        golden_read(&g, "final_norm", H5T_NATIVE_FLOAT, STATES, expected);
        worst = fmax(worst, difference(got, expected, STATES));
        if (rank == 0)
            printf("\n    %-20s %.1e", golden_models[m], worst);
        CU_ASSERT(worst < 1e-4);
        golden_close(&g);
    }
}

/* Pooling of "text" is that of the rows which the same text has without pooling, from the first to
 * past the last token, which the test knows. */
static void check_pooling(const golden_model *g, const char *item, const float *rows, int begin,
                          int end)
{
    static const int32_t layer[] = {3};
    float got[D], mean[D] = {0};
    for (int c = 0; c < D; c++) {
        double sum = 0;
        for (int t = begin; t < end; t++)
            sum += (double)rows[t * D + c];
        mean[c] = (float)(sum / (end - begin));
    }
    const float *expected[] = {NULL, mean, rows + (end - 1) * D, rows + begin * D};
    for (int pooling = MHF_POOL_MEAN; pooling <= MHF_POOL_FIRST; pooling++) {
        mhf_dump_options options = options_for((mhf_pooling)pooling, layer, 1);
        CHECK_OK(dump_text(g, item, &options));
        read_rows(0, 1, D, got);
        CU_ASSERT_EQUAL(memcmp(got, expected[pooling], sizeof got), 0);
    }
}

static void pooling(void)
{
    static const int32_t layer[] = {3};
    static const char text[] = "void \xC3\xA9 God created";
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    mhf_encoding e = {0};
    CHECK_OK(mhf_tokenizer_encode(g.tokenizer, text, sizeof text - 1,
                                  MHF_ENCODE_TEMPLATE | MHF_ENCODE_RANGES, &e));
    int n = (int)e.n;
    float *rows;
    CHECK_OK(mhf_new(&rows, n * D, sizeof *rows, "rows"));
    mhf_dump_options options = options_for(MHF_POOL_NONE, layer, 1);
    CHECK_OK(dump_text(&g, "{\"text\":\"void \xC3\xA9 God created\"}\n", &options));
    read_rows(0, n, D, rows);
    /* All but BOS. */
    check_pooling(&g, "{\"text\":\"void \xC3\xA9 God created\"}\n", rows, 1, n);
    /* Code points [5, 6) are the bytes [5, 7); [7, 10) is "God", bytes [8, 11). */
    static const int spans[][4] = {{5, 6, 5, 7}, {7, 10, 8, 11}, {0, 1, 0, 1}, {17, 18, 18, 19}};
    for (size_t s = 0; s < sizeof spans / sizeof *spans; s++) {
        int first = n, last = 0;
        char item[96];
        for (int t = 0; t < n; t++) {
            if (e.begin[t] < 0 || e.begin[t] >= spans[s][3] || e.end[t] <= spans[s][2])
                continue;
            first = t < first ? t : first;
            last = t + 1;
        }
        CU_ASSERT_FATAL(first < last);
        snprintf(item, sizeof item, "{\"text\":\"void \xC3\xA9 God created\",\"span\":[%d,%d]}\n",
                 spans[s][0], spans[s][1]);
        check_pooling(&g, item, rows, first, last);
    }
    /* The same tokens as ids: spans are those of the decoded text. */
    mhf_buf item = {0};
    CHECK_OK(mhf_buf_add_text(&item, "{\"span\":[5,6],\"ids\":["));
    int first = n, last = 0;
    for (int t = 0; t < n; t++) {
        CHECK_OK(mhf_buf_printf(&item, "%s%d", t ? "," : "", e.ids[t]));
        if (e.begin[t] >= 0 && e.begin[t] < 7 && e.end[t] > 5) {
            first = t < first ? t : first;
            last = t + 1;
        }
    }
    CHECK_OK(mhf_buf_add_text(&item, "]}\n"));
    check_pooling(&g, item.data, rows, first, last);
    mhf_buf_free(&item);
    mhf_encoding_free(&e);
    free(rows);
    golden_close(&g);
}

/* An item without tokens is a row of zeros where that is asked for; what was pooled is told. */
static void empty_items(void)
{
    static const int32_t layer[] = {0, 5};
    golden_model g;
    if (!golden_open("std", &g))
        return;
    mhf_dump_item items[2] = {
        {.text = "God", .n_text = 3, .span_begin = 0, .span_end = 3, .line = 1},
        {.text = "", .span_begin = 0, .span_end = 0, .line = 2}};
    mhf_dump_options options = options_for(MHF_POOL_MEAN, layer, 2);
    options.allow_empty = true;
    CHECK_OK(dump(&g, items, 2, &options));
    float rows[2 * D];
    read_rows(1, 2, D, rows);
    for (int c = 0; c < D; c++)
        CU_ASSERT_EQUAL(rows[D + c], 0);
    mhf_states *states;
    int64_t n;
    CHECK_OK(mhf_states_open(path, &states));
    CU_ASSERT_EQUAL(mhf_states_layers(states), 2);
    CU_ASSERT_STRING_EQUAL(mhf_states_layer_name(states, 1), "norm");
    mhf_states_pooled(states, 0, &n);
    CU_ASSERT(n > 0);
    mhf_states_pooled(states, 1, &n);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(mhf_states_unknown_id(states), 0);
    mhf_states_close(states);
    MPI_Barrier(MPI_COMM_WORLD);
    golden_close(&g);
}

static void bad_items(void)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"{\"text\":\"\"}", "line 2: an empty item"},
        {"{\"ids\":[]}", "line 2: an empty item"},
        {"{\"ids\":[1,1000]}", "line 2: key 'ids' holds token 1000"},
        {"{\"ids\":[-1]}", "line 2: key 'ids' holds token -1"},
        {"{\"ids\":[1.5]}", "line 2: key 'ids'"},
        {"{\"ids\":7}", "line 2: key 'ids' is not a list"},
        {"{\"ids\":[1]}", "line 2: no token to pool"},
        {"{\"text\":\"a\",\"ids\":[5]}", "line 2: both"},
        {"{\"txt\":\"a\"}", "line 2: key 'text' is missing"},
        {"{\"text\":\"abc\",\"span\":[1,4]}", "line 2: span [1, 4)"},
        {"{\"text\":\"abc\",\"span\":[2,1]}", "line 2: key 'span'"},
        {"{\"text\":\"abc\",\"span\":[1]}", "line 2: key 'span'"},
        {"{\"text\":\"abc\",\"span\":[1,1]}", "line 2: no token to pool"},
        {"{\"text\":\"abc\",\"span\":[0,1e1]}", "line 2: key 'span'"},
        {"{\"text\":\"abc\"", "line 2: not valid JSON"},
        {"[1]", "line 2: expected a JSON object"},
        {"{\"text\":\"\xFF\"}", "line 2: not valid JSON"},
    };
    static const int32_t layer[] = {0};
    golden_model g;
    if (!golden_open("mhf-h3", &g))
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char jsonl[256];
        mhf_dump_options options = options_for(MHF_POOL_MEAN, layer, 1);
        snprintf(jsonl, sizeof jsonl, "{\"text\":\"God\"}\n%s\n", cases[i].line);
        CU_ASSERT_EQUAL(dump_text(&g, jsonl, &options), MHF_E_DATA);
        if (!strstr(mhf_error(), cases[i].says))
            printf("\n    %s: %s\n", cases[i].line, mhf_error());
        CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), cases[i].says));
    }
    mhf_token *ids;
    CHECK_OK(mhf_new(&ids, 257, sizeof *ids, "ids"));
    mhf_dump_item item = {.ids = ids, .n_ids = 257, .span_begin = -1, .span_end = -1, .line = 5};
    mhf_dump_options options = options_for(MHF_POOL_NONE, layer, 1);
    CU_ASSERT_EQUAL(dump(&g, &item, 1, &options), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "items line 5: 257 tokens, expected at most 256"));
    CU_ASSERT_EQUAL(dump(&g, &item, 0, &options), MHF_E_DATA);
    int32_t norm = mhf_registry_find(&g.model->registry, "model.layers.0.input_layernorm.weight");
    g.model->params.value[norm][0] = INFINITY;
    item.n_ids = 3;
    static const int32_t later[] = {2};
    options.layers = later;
    CU_ASSERT_EQUAL(dump(&g, &item, 1, &options), MHF_E_NONFINITE);
    free(ids);
    golden_close(&g);
}

static void names(void)
{
    const mhf_config config = {.num_hidden_layers = 4};
    int32_t *layers = NULL, n;
    CHECK_OK(mhf_layers_parse("all", &config, &layers, &n));
    CU_ASSERT_EQUAL(n, 6);
    CU_ASSERT_EQUAL(layers[5], 5);
    free(layers);
    CHECK_OK(mhf_layers_parse("norm,2,0,2", &config, &layers, &n));
    CU_ASSERT_EQUAL_FATAL(n, 3);
    CU_ASSERT(layers[0] == 0 && layers[1] == 2 && layers[2] == 5);
    free(layers);
    static const char *const bad[] = {
        "", "5", "-1", "0,,1", "0,", "x", "1x", " 1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        layers = NULL;
        CU_ASSERT_EQUAL(mhf_layers_parse(bad[i], &config, &layers, &n), MHF_E_USAGE);
        free(layers);
    }
    mhf_pooling p;
    mhf_state_type type;
    CHECK_OK(mhf_pooling_parse("last", &p));
    CU_ASSERT_EQUAL(p, MHF_POOL_LAST);
    CU_ASSERT_EQUAL(mhf_pooling_parse("max", &p), MHF_E_USAGE);
    CHECK_OK(mhf_state_type_parse("bf16", &type));
    CU_ASSERT_EQUAL(mhf_state_type_parse("f64", &type), MHF_E_USAGE);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"golden states", golden_states}, {"pooling", pooling}, {"empty items", empty_items},
        {"bad items", bad_items},         {"names", names},
    };
    int provided, parent = (int)getppid();
    H5dont_atexit();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&parent, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "/tmp/mhf-dump-%d.h5", parent);
    snprintf(items_path, sizeof items_path, "/tmp/mhf-dump-%d.jsonl", parent);
    mhf_log_start(MHF_LOG_WARN, rank, 1);
    int code = 1;
    if (mhf_engine_start("blis:default", 1) == MHF_OK)
        code = run_tests("dump", cases, sizeof cases / sizeof *cases);
    if (rank == 0) {
        unlink(path);
        unlink(items_path);
    }
    MPI_Finalize();
    return code;
}
