/* SPDX-License-Identifier: ISC */
/* Names, shapes and counts of the published models' parameters, which of them train, and which a
 * stage holds. */
#include "mhf/model.h"
#include "support.h"

/* ---- the published counts -------------------------------------------------------------------- */

enum { MAX_COLUMNS = 32, MAX_ROWS = 256 };

/* A table of texts parted by tabs, with a header; cells point into the text. */
typedef struct table {
    mhf_buf text;
    char *cells[MAX_ROWS][MAX_COLUMNS];
    int rows, columns;
} table;

static bool table_read(const char *name, table *out)
{
    const char *path = golden(name);
    *out = (table){0};
    if (!path)
        return false;
    CHECK_OK(mhf_file_read(path, 1 << 20, &out->text));
    char *line, *rest = out->text.data;
    while ((line = strsep(&rest, "\n")) && *line && out->rows < MAX_ROWS) {
        int c = 0;
        for (char *cell; c < MAX_COLUMNS && (cell = strsep(&line, "\t"));)
            out->cells[out->rows][c++] = cell;
        out->columns = c;
        out->rows++;
    }
    return true;
}

static const char *cell(const table *t, int row, const char *column)
{
    for (int c = 0; c < t->columns; c++)
        if (strcmp(t->cells[0][c], column) == 0)
            return t->cells[row][c];
    CU_FAIL_FATAL("no such column");
    return "";
}

static int64_t number(const table *t, int row, const char *column)
{
    return strtoll(cell(t, row, column), NULL, 10);
}

static mhf_config config_of(const table *t, int row)
{
    mhf_config c = {.max_position_embeddings = 32768, .rms_norm_eps = 1e-6, .rope_theta = 1e6};
    CHECK_OK(mhf_config_preset(cell(t, row, "size"), &c));
    c.num_hidden_layers = (int32_t)number(t, row, "layers"); /* the preset's, or more: +2L, +4L */
    c.num_hashes = (int32_t)number(t, row, "num_hashes");
    c.num_buckets = (int32_t)number(t, row, "num_buckets");
    c.num_lsh = (int32_t)number(t, row, "num_lsh");
    c.vocab_size = (int32_t)number(t, row, "vocab_rows");
    c.tie_word_embeddings = number(t, row, "tied") == 1;
    c.head = c.num_hashes > 0 ? MHF_HEAD_MHF : MHF_HEAD_STANDARD;
    c.bottle_neck_dim = 64;
    CHECK_OK(mhf_config_check(&c));
    return c;
}

/* Elements of the parameters whose names hold a word. */
static int64_t count(const mhf_registry *r, const char *word)
{
    int64_t n = 0;
    for (int32_t i = 0; i < r->n; i++)
        if (strstr(r->params[i].name, word))
            n += r->params[i].count;
    return n;
}

static int64_t count_trainable(const mhf_registry *r)
{
    int64_t n = 0;
    for (int32_t i = 0; i < r->n; i++)
        n += r->params[i].trainable ? r->params[i].count : 0;
    return n;
}

static void check_count(const table *t, int row, const char *column, int64_t found)
{
    if (found != number(t, row, column))
        fprintf(stderr, "\n    %s: %s is %lld, expected %s\n", cell(t, row, "row"), column,
                (long long)found, cell(t, row, column));
    CU_ASSERT_EQUAL(found, number(t, row, column));
}

static void published_counts(void)
{
    table t;
    if (!table_read("configs/param_counts.tsv", &t))
        return;
    CU_ASSERT(t.rows > 30);
    for (int row = 1; row < t.rows; row++) {
        const mhf_config c = config_of(&t, row);
        mhf_registry r;
        CHECK_OK(mhf_registry_new(&c, &r));
        check_count(&t, row, "embed", count(&r, "model.embed_tokens.weight"));
        check_count(&t, row, "head", count(&r, "lm_head.weight"));
        check_count(&t, row, "combiner_scorer", count(&r, "combiner.scorer"));
        check_count(&t, row, "combiner_proj", count(&r, "combiner.output_proj"));
        check_count(&t, row, "cascade", count(&r, "hash_head.cascade_mixer"));
        check_count(&t, row, "attn",
                    count(&r, "q_proj") + count(&r, "k_proj") + count(&r, "v_proj") +
                        count(&r, "o_proj"));
        check_count(&t, row, "qk_norm", count(&r, "q_norm") + count(&r, "k_norm"));
        check_count(&t, row, "mlp", count(&r, ".mlp."));
        check_count(&t, row, "layer_norm", count(&r, "layernorm"));
        check_count(&t, row, "final_norm", count(&r, "model.norm.weight"));
        check_count(&t, row, "total", r.total);
        check_count(&t, row, "embedding", r.embedding);
        check_count(&t, row, "non_embedding", r.total - r.embedding);
        check_count(&t, row, "hash_map_buffer_elements", (int64_t)c.vocab_size * c.num_hashes);
        CU_ASSERT_EQUAL(count_trainable(&r), r.total);
        const char *expansion = "expansion", *all = "all";
        CHECK_OK(mhf_registry_train_only(&r, &c, &expansion, 1));
        check_count(&t, row, "ve_trainable", count_trainable(&r));
        CHECK_OK(mhf_registry_train_only(&r, &c, &all, 1));
        CU_ASSERT_EQUAL(count_trainable(&r), r.total);
        mhf_registry_free(&r);
    }
    mhf_buf_free(&t.text);
}

/* Every key of the released state_dict but the table and a tied head, by name, shape and order. */
static void check_names(const char *name, mhf_config c)
{
    const char *path = golden(name);
    mhf_buf text = {0};
    mhf_registry r;
    if (!path)
        return;
    CHECK_OK(mhf_file_read(path, 1 << 20, &text));
    CHECK_OK(mhf_registry_new(&c, &r));
    int32_t found = 0, last = -1;
    char *rest = strchr(text.data, '\n') + 1;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char key[128], type[8];
        long long rows, cols = 1;
        int stored, n = sscanf(line, "%127s %lldx%lld %7s %d", key, &rows, &cols, type, &stored);
        if (n != 5) {
            cols = 1;
            CU_ASSERT_EQUAL_FATAL(sscanf(line, "%127s %lld %7s %d", key, &rows, type, &stored), 4);
        }
        if (strcmp(type, "F") != 0 || !stored)
            continue;
        int32_t i = mhf_registry_find(&r, key);
        CU_ASSERT_FATAL(i >= 0);
        CU_ASSERT_EQUAL(r.params[i].shape[0], rows);
        CU_ASSERT_EQUAL(r.params[i].shape[1], cols);
        CU_ASSERT_EQUAL(r.params[i].n_dims, n == 5 ? 2 : 1);
        CU_ASSERT(i > last);
        last = i;
        found++;
    }
    CU_ASSERT_EQUAL(found, r.n);
    CU_ASSERT_EQUAL(mhf_registry_find(&r, "model.hash_map"), -1);
    CU_ASSERT_EQUAL(mhf_registry_find(&r, "lm_head.weight"), -1);
    mhf_registry_free(&r);
    mhf_buf_free(&text);
}

static mhf_config preset_100m(mhf_head_kind head)
{
    mhf_config c = {.head = head,
                    .vocab_size = 32768,
                    .tie_word_embeddings = true,
                    .rms_norm_eps = 1e-6,
                    .rope_theta = 1e6};
    CHECK_OK(mhf_config_preset("100m", &c));
    if (head == MHF_HEAD_MHF) {
        c.num_hashes = 4;
        c.num_buckets = 16384;
        c.bottle_neck_dim = 64;
    }
    return c;
}

static void released_names(void)
{
    check_names("configs/state_dict.100m_H4B16384.tsv", preset_100m(MHF_HEAD_MHF));
    check_names("configs/state_dict.100m_standard.tsv", preset_100m(MHF_HEAD_STANDARD));
}

/* ---- which train, decay, and lie where ---------------------------------------------------------
 */

static void patterns(void)
{
    const mhf_config c = preset_100m(MHF_HEAD_MHF);
    mhf_registry r;
    CHECK_OK(mhf_registry_new(&c, &r));
    const char *two[] = {"model.norm.*", "*.mlp.up_proj.weight"};
    CHECK_OK(mhf_registry_train_only(&r, &c, two, 2));
    CU_ASSERT_EQUAL(count_trainable(&r), 768 + 12 * 768 * 2560);
    const char *wrong[] = {"model.norm.*", "nothing.*"};
    CU_ASSERT_EQUAL(mhf_registry_train_only(&r, &c, wrong, 2), MHF_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "nothing.*"));
    mhf_registry_free(&r);
}

/* What the released expansion script trains of its models, of 1,280 rows where their vocabulary
 * counts. */
static void released_expansion(void)
{
    static const char *const names[] = {"std-spm-tied", "std-spm-untied", "mhf-spm"};
    table t;
    if (!table_read("ve/trainable.tsv", &t))
        return;
    for (int k = 0; k < 3; k++) {
        mhf_config c = {.head = k == 2 ? MHF_HEAD_MHF : MHF_HEAD_STANDARD,
                        .vocab_size = 1280,
                        .tie_word_embeddings = k != 1,
                        .hidden_size = 64,
                        .num_hidden_layers = 6,
                        .num_attention_heads = 4,
                        .num_key_value_heads = 2,
                        .head_dim = 16,
                        .intermediate_size = 160,
                        .max_position_embeddings = 256,
                        .rms_norm_eps = 1e-6,
                        .rope_theta = 1e6};
        if (k == 2) {
            c.num_hashes = 3;
            c.num_buckets = 61;
            c.bottle_neck_dim = 16;
        }
        const char *expansion = "expansion";
        mhf_registry r;
        CHECK_OK(mhf_registry_new(&c, &r));
        CHECK_OK(mhf_registry_train_only(&r, &c, &expansion, 1));
        int32_t found = 0;
        for (int row = 1; row < t.rows; row++) {
            const char *name = cell(&t, row, "parameter");
            if (strcmp(cell(&t, row, "model"), names[k]) != 0)
                continue;
            int32_t i = mhf_registry_find(&r, name);
            CU_ASSERT_FATAL(i >= 0);
            CU_ASSERT_EQUAL(r.params[i].trainable, number(&t, row, "trainable") == 1);
            found++;
        }
        CU_ASSERT_EQUAL(found, r.n);
        mhf_registry_free(&r);
    }
    mhf_buf_free(&t.text);
}

static void decay(void)
{
    const mhf_config c = preset_100m(MHF_HEAD_MHF);
    mhf_registry r;
    CHECK_OK(mhf_registry_new(&c, &r));
    for (int32_t i = 0; i < r.n; i++) {
        const char *name = r.params[i].name;
        bool spared = strstr(name, ".bias") || strstr(name, "norm");
        CU_ASSERT_EQUAL(r.params[i].decays, !spared);
    }
    mhf_registry_free(&r);
}

/* Ranks that hold a parameter when the layers are cut in two stages. */
static void check_held(mhf_config c, const char *name, bool in_first, bool in_last)
{
    const mhf_units first = {0, 6}, last = {7, 13};
    mhf_registry r;
    CHECK_OK(mhf_registry_new(&c, &r));
    int32_t i = mhf_registry_find(&r, name);
    CU_ASSERT_FATAL(i >= 0);
    CU_ASSERT_EQUAL(mhf_param_held(&r.params[i], &c, first), in_first);
    CU_ASSERT_EQUAL(mhf_param_held(&r.params[i], &c, last), in_last);
    mhf_registry_free(&r);
}

static void held(void)
{
    const char *E = "model.embed_tokens.weight";
    mhf_config hashed = preset_100m(MHF_HEAD_MHF), standard = preset_100m(MHF_HEAD_STANDARD);
    check_held(hashed, E, true, true);
    check_held(standard, E, true, true);
    hashed.tie_word_embeddings = standard.tie_word_embeddings = false;
    check_held(hashed, E, true, true); /* soft retrieval reads it */
    check_held(hashed, "lm_head.weight", false, true);
    check_held(standard, E, true, false);
    check_held(standard, "lm_head.weight", false, true);
    hashed.num_hashes = 1; /* no retrieval */
    check_held(hashed, E, true, false);
    check_held(hashed, "model.combiner.scorer.0.weight", true, false);
    check_held(hashed, "model.layers.5.mlp.up_proj.weight", true, false);
    check_held(hashed, "model.layers.6.mlp.up_proj.weight", false, true);
}

int main(void)
{
    static const test_case cases[] = {
        {"published counts", published_counts},
        {"released names and shapes", released_names},
        {"patterns of what trains", patterns},
        {"the released expansion", released_expansion},
        {"weight decay", decay},
        {"what a stage holds", held},
    };
    return run_tests("model.registry", cases, sizeof cases / sizeof *cases);
}
