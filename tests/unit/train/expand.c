/* SPDX-License-Identifier: ISC */
/* Vocabulary expansion: golden signatures and mean rows, parameters that stay as they are, and the
 * tokenizers and rules that are refused. */
#include <hdf5.h>
#include <math.h>

#include "../hash/npy.h"
#include "../store/store_support.h"
#include "mhf/train.h"

static const mhf_signature_rule unique = MHF_RULE_UNIQUE, reference = MHF_RULE_REFERENCE;

static mhf_tokenizer *load(const char *name)
{
    const char *path = golden(name);
    mhf_tokenizer *tokenizer = NULL;
    if (path)
        CHECK_OK(mhf_tokenizer_load(path, NULL, &tokenizer));
    return tokenizer;
}

/* ---- hashed models made here ---------------------------------------------------------------- */

/* Some finite value of its own for each element. */
static float element(const mhf_param *param, int64_t i)
{
    return (float)((i * 2654435761 + param->count + (int64_t)strlen(param->name)) % 2000003) /
           1000.0f;
}

static mhf_status read_element(void *context, const mhf_param *param, int64_t first, int64_t count,
                               float *out)
{
    (void)context;
    for (int64_t i = 0; i < count; i++)
        out[i] = element(param, first + i);
    return MHF_OK;
}

static mhf_config tiny(const mhf_signatures *table)
{
    return (mhf_config){.head = MHF_HEAD_MHF,
                        .vocab_size = table->rows,
                        .hidden_size = 4,
                        .num_hidden_layers = 1,
                        .num_attention_heads = 2,
                        .num_key_value_heads = 1,
                        .head_dim = 2,
                        .intermediate_size = 3,
                        .max_position_embeddings = 16,
                        .num_hashes = table->options.num_hashes,
                        .num_buckets = table->options.num_buckets,
                        .num_lsh = table->options.num_lsh,
                        .bottle_neck_dim = 2,
                        .tie_word_embeddings = true,
                        .rms_norm_eps = 1e-6,
                        .rope_theta = 1e6,
                        .bos_token_id = 1,
                        .eos_token_id = 2,
                        .pad_token_id = 2};
}

static void write_model(const mhf_tokenizer *tokenizer, const mhf_signatures *table)
{
    const mhf_config config = tiny(table);
    const mhf_checkpoint_meta meta = {.tokenizer = tokenizer, .table = table};
    CHECK_OK(mhf_checkpoint_compose(in_folder("model.h5"), &config, read_element, NULL, &meta));
}

/* A table of ours, as `mhf signatures` makes it. */
static void write_built(const mhf_tokenizer *tokenizer, int32_t H, int32_t B,
                        mhf_signature_rule rule)
{
    const mhf_signature_options options = {.num_hashes = H, .num_buckets = B, .rule = rule};
    mhf_vocabulary vocabulary;
    mhf_signatures table = {0};
    CHECK_OK(mhf_vocabulary_of(tokenizer, &vocabulary));
    CHECK_OK(mhf_signatures_build(&vocabulary, &options, &table));
    write_model(tokenizer, &table);
    mhf_signatures_free(&table);
    mhf_vocabulary_free(&vocabulary);
}

static mhf_status expand(const char *model, const mhf_tokenizer *to, const mhf_signature_rule *rule)
{
    mhf_source *source;
    mhf_expansion e = {0};
    CHECK_OK(mhf_source_open(model, &source));
    mhf_status status = mhf_expansion_new(source, to, rule, &e);
    if (status == MHF_OK)
        status = mhf_expand(source, &e, in_folder("grown.h5"));
    mhf_expansion_free(&e);
    mhf_source_close(source);
    return status;
}

/* Every parameter of the expanded model is, bit for bit, what it was. */
static void check_parameters(mhf_source *source)
{
    mhf_registry registry;
    CHECK_OK(mhf_registry_new(mhf_source_config(source), &registry));
    for (int32_t p = 0; p < registry.n; p++) {
        const mhf_param *param = &registry.params[p];
        float *found = malloc((size_t)param->count * sizeof *found);
        bool same = true;
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, found));
        for (int64_t i = 0; i < param->count; i++)
            same = same && found[i] == element(param, i);
        CU_ASSERT(same);
        free(found);
    }
    mhf_registry_free(&registry);
}

/* ---- golden signatures ---------------------------------------------------------------------- */

typedef struct table_case {
    const char *tokenizer, *shape;
    int32_t H, lsh;
} table_case;

static const table_case tables[] = {{"spm", "H3B61L0", 3, 0},
                                    {"spm", "H4B61L2", 4, 2},
                                    {"bytelevel", "H3B61L0", 3, 0},
                                    {"bytelevel", "H4B61L2", 4, 2}};

static bool golden_table(const table_case *c, const char *when, npy *out)
{
    char name[128];
    snprintf(name, sizeof name, "ve/signatures-%s-%s.%s.npy", c->tokenizer, c->shape, when);
    const char *path = golden(name);
    if (!path)
        return false;
    CU_ASSERT_FATAL(npy_read(path, out));
    return true;
}

static mhf_tokenizer *load_of(const table_case *c, const char *format)
{
    char name[128];
    snprintf(name, sizeof name, format, c->tokenizer);
    return load(name);
}

/* The golden table before, as one that was imported. */
static void write_imported(const table_case *c, const npy *array, const mhf_tokenizer *tokenizer)
{
    const mhf_signature_options options = {
        .num_hashes = c->H, .num_buckets = 61, .num_lsh = c->lsh, .rule = MHF_RULE_IMPORTED};
    mhf_bucket *ids = calloc((size_t)array->n, sizeof *ids);
    mhf_signatures table = {0};
    for (int64_t i = 0; i < array->n; i++)
        ids[i] = (mhf_bucket)npy_int_at(array, i / c->H, i % c->H);
    int32_t pad = mhf_tokenizer_pad(tokenizer);
    CHECK_OK(mhf_signatures_adopt(ids, (int32_t)array->shape[0], mhf_tokenizer_size(tokenizer),
                                  pad >= 0 ? pad : mhf_tokenizer_eos(tokenizer), &options, &table));
    write_model(tokenizer, &table);
    mhf_signatures_free(&table);
    free(ids);
}

static void check_same_table(const mhf_signatures *table, const npy *wanted)
{
    CU_ASSERT_EQUAL_FATAL(wanted->shape[0], table->rows);
    CU_ASSERT_EQUAL_FATAL(wanted->shape[1], table->options.num_hashes);
    int64_t H = table->options.num_hashes, different = 0;
    for (int64_t i = 0; i < wanted->n; i++)
        different += (int32_t)table->ids[i] != npy_int_at(wanted, i / H, i % H);
    CU_ASSERT_EQUAL(different, 0);
}

/* Old rows as they were, new ones unlike any. */
static void check_kept_table(const mhf_signatures *table, const npy *before, int32_t old_size)
{
    const int64_t H = table->options.num_hashes;
    const size_t bytes = (size_t)H * sizeof *table->ids;
    mhf_map *seen;
    CHECK_OK(mhf_map_new(table->size, &seen));
    bool kept = true, fresh = true;
    for (int64_t t = 0; t < table->size; t++) {
        const mhf_bucket *row = table->ids + t * H;
        for (int64_t j = 0; t < old_size && j < H; j++)
            kept = kept && (int32_t)row[j] == npy_int_at(before, t, j);
        fresh = fresh && (t < old_size || mhf_map_get(seen, row, bytes, -1) < 0);
        CHECK_OK(mhf_map_put(seen, row, bytes, t));
    }
    CU_ASSERT(kept);
    CU_ASSERT(fresh);
    mhf_map_free(seen);
}

static void check_grown(const npy *wanted, const npy *before, const mhf_tokenizer *from,
                        const mhf_tokenizer *to)
{
    mhf_source *source;
    mhf_signatures table;
    mhf_tokenizer *tokenizer;
    CHECK_OK(mhf_source_open(in_folder("grown.h5"), &source));
    CU_ASSERT(!mhf_source_info_of(source)->has_optimizer);
    CHECK_OK(mhf_source_signatures(source, &table));
    CHECK_OK(mhf_source_tokenizer(source, &tokenizer));
    CU_ASSERT_EQUAL(table.size, mhf_tokenizer_size(to));
    CU_ASSERT_STRING_EQUAL(mhf_tokenizer_sha256(tokenizer), mhf_tokenizer_sha256(to));
    CU_ASSERT_STRING_EQUAL(table.tokenizer_sha256, mhf_tokenizer_sha256(to));
    CU_ASSERT_EQUAL(mhf_source_config(source)->vocab_size,
                    (mhf_tokenizer_size(to) + 127) / 128 * 128);
    CU_ASSERT_EQUAL(mhf_source_config(source)->bos_token_id, 1);
    if (wanted)
        check_same_table(&table, wanted);
    check_kept_table(&table, before, mhf_tokenizer_size(from));
    check_parameters(source);
    mhf_tokenizer_free(tokenizer);
    mhf_signatures_free(&table);
    mhf_source_close(source);
}

static void test_golden_signatures(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const table_case *c = &tables[i];
        npy before, after;
        mhf_tokenizer *from = load_of(c, "tokenizers/%s");
        mhf_tokenizer *to = load_of(c, "bpe_train/expanded-%s");
        if (!from || !to || !golden_table(c, "source", &before) ||
            !golden_table(c, "expanded", &after))
            continue;
        write_imported(c, &before, from);
        /* Without a rule an imported table keeps its rows, whatever made them. */
        CHECK_OK(expand(in_folder("model.h5"), to, NULL));
        check_grown(NULL, &before, from, to);
        CHECK_OK(expand(in_folder("model.h5"), to, &unique));
        check_grown(NULL, &before, from, to);
        mhf_status status = expand(in_folder("model.h5"), to, &reference);
        if (strcmp(c->tokenizer, "spm") == 0) {
            CHECK_OK(status);
            check_grown(&after, &before, from, to);
        } else { /* added tokens that come into the base vocabulary */
            CU_ASSERT_EQUAL(status, MHF_E_MISMATCH);
            CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), " 2 old tokens"));
            CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "2046 '"));
            CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "2047 '"));
            CU_ASSERT_PTR_NULL(strstr(mhf_error(), "2045"));
        }
        npy_free(&before);
        npy_free(&after);
        mhf_tokenizer_free(from);
        mhf_tokenizer_free(to);
    }
}

/* Tables of ours: the rule stays by itself. */
static void test_own_rules(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i += 2) {
        mhf_tokenizer *from = load_of(&tables[i], "tokenizers/%s");
        mhf_tokenizer *to = load_of(&tables[i], "bpe_train/expanded-%s");
        if (!from || !to)
            continue;
        mhf_source *source;
        mhf_signatures table;
        write_built(from, 3, 61, MHF_RULE_UNIQUE);
        CHECK_OK(expand(in_folder("model.h5"), to, NULL));
        CHECK_OK(mhf_source_open(in_folder("grown.h5"), &source));
        CHECK_OK(mhf_source_signatures(source, &table));
        CU_ASSERT_EQUAL(table.options.rule, MHF_RULE_UNIQUE);
        CU_ASSERT_EQUAL(table.duplicates, 0);
        check_parameters(source);
        mhf_signatures_free(&table);
        mhf_source_close(source);
        write_built(from, 3, 61, MHF_RULE_REFERENCE);
        mhf_status status = expand(in_folder("model.h5"), to, NULL);
        CU_ASSERT_EQUAL(status, i == 0 ? MHF_OK : MHF_E_MISMATCH);
        CHECK_OK(expand(in_folder("model.h5"), to, &unique));
        mhf_tokenizer_free(from);
        mhf_tokenizer_free(to);
    }
}

/* One hash function of 61 buckets can't tell a thousand tokens apart. */
static void test_no_room(void)
{
    mhf_tokenizer *from = load("tokenizers/spm"), *to = load("bpe_train/expanded-spm");
    if (!from || !to)
        return;
    write_built(from, 1, 61, MHF_RULE_REFERENCE);
    CU_ASSERT_EQUAL(expand(in_folder("model.h5"), to, &unique), MHF_E_EXHAUSTED);
    CHECK_OK(expand(in_folder("model.h5"), to, NULL));
    mhf_tokenizer_free(from);
    mhf_tokenizer_free(to);
}

/* ---- golden mean rows ----------------------------------------------------------------------- */

static void copy_to_folder(const char *from, const char *name)
{
    mhf_buf bytes = {0};
    char path[64];
    const char *found = golden(from);
    if (!found)
        return;
    snprintf(path, sizeof path, "hf/%s", name);
    CHECK_OK(mhf_file_read(found, 1 << 28, &bytes));
    write_file(in_folder(path), bytes.data, bytes.n);
    mhf_buf_free(&bytes);
}

static void make_folder(const char *model, const char *tokenizer)
{
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json"};
    CHECK_OK(mhf_dir_make(in_folder("hf")));
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s/%s", i < 2 ? "ve/" : "tokenizers/",
                 i < 2 ? model : tokenizer, names[i]);
        copy_to_folder(path, names[i]);
    }
}

static int64_t *read_integers(hid_t file, const char *name, int64_t *n)
{
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    CU_ASSERT_FATAL(data >= 0);
    hid_t space = H5Dget_space(data);
    *n = H5Sget_simple_extent_npoints(space);
    int64_t *values = malloc((size_t)*n * sizeof *values);
    H5Dread(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Sclose(space);
    H5Dclose(data);
    return values;
}

static void check_pieces(const mhf_expansion *e, hid_t file)
{
    int64_t n, m, first_n;
    int64_t *offsets = read_integers(file, "piece_offsets", &n);
    int64_t *pieces = read_integers(file, "piece_ids", &m);
    int64_t *first = read_integers(file, "new_token_first_id", &first_n);
    CU_ASSERT_EQUAL(first[0], e->from_size);
    CU_ASSERT_EQUAL_FATAL(n, e->to_size - e->from_size + 1);
    CU_ASSERT_EQUAL_FATAL(m, e->piece_offsets[n - 1]);
    bool same = true;
    for (int64_t i = 0; i < n; i++)
        same = same && offsets[i] == e->piece_offsets[i];
    for (int64_t i = 0; i < m; i++)
        same = same && pieces[i] == e->pieces[i];
    CU_ASSERT(same);
    free(offsets);
    free(pieces);
    free(first);
}

/* A grown matrix: the golden one to 1e-6, its old rows to the bit, its last rows zero. */
static void check_matrix(const mhf_expansion *e, const mhf_param *param, const float *old,
                         const float *found, hid_t file, const char *name)
{
    float *wanted = malloc((size_t)param->count * sizeof *wanted);
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    CU_ASSERT_FATAL(data >= 0);
    hid_t space = H5Dget_space(data);
    CU_ASSERT_EQUAL_FATAL(H5Sget_simple_extent_npoints(space), param->count);
    H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted);
    H5Sclose(space);
    H5Dclose(data);
    const int64_t d = param->shape[1];
    float largest = 0;
    bool kept = true, zero = true;
    for (int64_t i = 0; i < param->count; i++) {
        largest = fmaxf(largest, fabsf(found[i] - wanted[i]));
        kept = kept && (i >= e->from_size * d || found[i] == old[i]);
        zero = zero && (i < e->to_size * d || found[i] == 0);
    }
    CU_ASSERT(largest <= 1e-6f);
    CU_ASSERT(kept);
    CU_ASSERT(zero);
    free(wanted);
}

static void check_standard(mhf_source *before, const mhf_expansion *e, hid_t file)
{
    mhf_registry registry, old_registry;
    mhf_source *source;
    CHECK_OK(mhf_source_open(in_folder("grown.h5"), &source));
    CHECK_OK(mhf_registry_new(mhf_source_config(source), &registry));
    CHECK_OK(mhf_registry_new(mhf_source_config(before), &old_registry));
    for (int32_t p = 0; p < registry.n; p++) {
        const mhf_param *param = &registry.params[p], *was = &old_registry.params[p];
        float *found = malloc((size_t)param->count * sizeof *found);
        float *old = malloc((size_t)was->count * sizeof *old);
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, found));
        CHECK_OK(mhf_source_read(before, MHF_PARAMETER, was, 0, was->count, old));
        if (strcmp(param->name, "model.embed_tokens.weight") == 0)
            check_matrix(e, param, old, found, file, "embed");
        else if (strcmp(param->name, "lm_head.weight") == 0)
            check_matrix(e, param, old, found, file, "head");
        else
            CU_ASSERT_EQUAL(memcmp(found, old, (size_t)param->count * sizeof *found), 0);
        free(found);
        free(old);
    }
    mhf_registry_free(&registry);
    mhf_registry_free(&old_registry);
    mhf_source_close(source);
}

static void test_golden_means(void)
{
    static const char *const models[][2] = {
        {"std-spm-tied", "spm"}, {"std-spm-untied", "spm"}, {"std-bytelevel-tied", "bytelevel"}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char name[128];
        snprintf(name, sizeof name, "ve/%s/expect.h5", models[i][0]);
        const char *expect = golden(name);
        snprintf(name, sizeof name, "bpe_train/expanded-%s", models[i][1]);
        mhf_tokenizer *to = load(name);
        if (!expect || !to)
            continue;
        mhf_source *source;
        mhf_expansion e;
        make_folder(models[i][0], models[i][1]);
        hid_t file = H5Fopen(expect, H5F_ACC_RDONLY, H5P_DEFAULT);
        CHECK_OK(mhf_source_open(in_folder("hf"), &source));
        CHECK_OK(mhf_expansion_new(source, to, NULL, &e));
        check_pieces(&e, file);
        CHECK_OK(mhf_expand(source, &e, in_folder("grown.h5")));
        check_standard(source, &e, file);
        H5Fclose(file);
        mhf_expansion_free(&e);
        mhf_source_close(source);
        mhf_tokenizer_free(to);
    }
}

/* ---- tokenizers that do not go on from the model's ------------------------------------------ */

static void test_refused(void)
{
    mhf_tokenizer *from = load("tokenizers/spm"), *to = load("bpe_train/expanded-spm");
    mhf_tokenizer *other = load("bpe_train/expanded-bytelevel"), *renamed = NULL;
    if (!from || !to || !other)
        return;
    write_built(from, 3, 61, MHF_RULE_UNIQUE);
    const char *model = in_folder("model.h5");
    CHECK_OK(expand(model, from, NULL)); /* nothing new: a copy */
    CHECK_REFUSED(expand(model, other, NULL), MHF_E_MISMATCH, "token 0");
    const mhf_special_names eos = {.eos = "<0x0A>"}, pad = {.pad = "<unk>"};
    size_t n, m;
    const char *json = mhf_tokenizer_json(to, &n), *config = mhf_tokenizer_config_json(to, &m);
    CHECK_OK(mhf_tokenizer_parse(json, n, config, m, "renamed", &eos, &renamed));
    CHECK_REFUSED(expand(model, renamed, NULL), MHF_E_MISMATCH, "EOS token");
    mhf_tokenizer_free(renamed);
    CHECK_OK(mhf_tokenizer_parse(json, n, config, m, "renamed", &pad, &renamed));
    CHECK_REFUSED(expand(model, renamed, NULL), MHF_E_MISMATCH, "pad token");
    write_built(to, 3, 61, MHF_RULE_UNIQUE);
    CHECK_REFUSED(expand(model, from, NULL), MHF_E_MISMATCH, "1000 tokens");
    mhf_tokenizer_free(renamed);
    mhf_tokenizer_free(from);
    mhf_tokenizer_free(to);
    mhf_tokenizer_free(other);
}

int main(void)
{
    static const test_case cases[] = {
        {"golden signatures", test_golden_signatures}, {"tables of ours", test_own_rules},
        {"no room for new tokens", test_no_room},      {"golden mean rows", test_golden_means},
        {"tokenizers that don't fit", test_refused},
    };
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    folder_make();
    int failed = run_tests("expand", cases, sizeof cases / sizeof *cases);
    folder_remove();
    return failed;
}
