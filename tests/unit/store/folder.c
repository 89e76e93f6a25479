/* SPDX-License-Identifier: ISC */
/* Hugging Face folders: the golden models' tensors, every weight type, shards, tied heads, and what
 * must be refused. */
#include <hdf5.h>
#include <math.h>

#include "mhf/store.h"
#include "store_support.h"

/* ---- the golden models ---------------------------------------------------------------------- */

static const char *const models[] = {"mhf-h3", "mhf-h4", "mhf-h4-lsh2", "mhf-lsh-only-embed",
                                     "std",    "mhf-h1"};

static const char *golden_in(const char *model, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "models/%s%s%s", model, *name ? "/" : "", name);
    return golden(path);
}

/* The first of the golden folders whose expect.h5 of a model holds training steps; the copy in this
 * tree may leave them out. */
static const char *golden_steps(const char *model)
{
    static char path[1024];
    const char *folders = getenv("MHF_GOLDEN");
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/models/%s/expect.h5", (int)n, folders, model);
        hid_t file = mhf_file_exists(path) ? H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT) : -1;
        bool found = file >= 0 && H5Lexists(file, "train", H5P_DEFAULT) > 0 &&
                     H5Lexists(file, "train/step1", H5P_DEFAULT) > 0;
        if (file >= 0)
            H5Fclose(file);
        if (found)
            return path;
        folders += n + (folders[n] == ':');
    }
    printf("\n    skipped: no golden training steps of %s", model);
    return NULL;
}

/* After its first step (of rate 0) the golden training still has the weights as they were. */
static void check_weights(mhf_source *source, const char *expect)
{
    mhf_registry registry;
    CHECK_OK(mhf_registry_new(mhf_source_config(source), &registry));
    hid_t file = H5Fopen(expect, H5F_ACC_RDONLY, H5P_DEFAULT);
    CU_ASSERT_FATAL(file >= 0);
    for (int32_t i = 0; i < registry.n; i++) {
        const mhf_param *param = &registry.params[i];
        char path[160];
        snprintf(path, sizeof path, "train/step1/%s", param->name);
        size_t bytes = (size_t)param->count * sizeof(float);
        float *wanted = malloc(bytes), *found = malloc(bytes);
        hid_t data = H5Dopen2(file, path, H5P_DEFAULT);
        CU_ASSERT_FATAL(data >= 0);
        H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted);
        H5Dclose(data);
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, found));
        CU_ASSERT_EQUAL(memcmp(found, wanted, bytes), 0);
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, param, param->count / 2, 1, found));
        CU_ASSERT_EQUAL(found[0], wanted[param->count / 2]);
        free(wanted);
        free(found);
    }
    H5Fclose(file);
    mhf_registry_free(&registry);
}

static void check_table(mhf_source *source, const char *expect)
{
    mhf_signatures table;
    if (mhf_source_config(source)->head == MHF_HEAD_STANDARD) {
        CU_ASSERT_EQUAL(mhf_source_signatures(source, &table), MHF_E_DATA);
        return;
    }
    CHECK_OK(mhf_source_signatures(source, &table));
    int32_t *wanted = calloc((size_t)table.rows * (size_t)table.options.num_hashes, sizeof *wanted);
    hid_t file = H5Fopen(expect, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t data = H5Dopen2(file, "signatures", H5P_DEFAULT);
    H5Dread(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted);
    H5Dclose(data);
    H5Fclose(file);
    bool same = table.rows == 1024 && table.size == 1000;
    for (int32_t i = 0; same && i < table.rows * table.options.num_hashes; i++)
        same = (int32_t)table.ids[i] == wanted[i];
    CU_ASSERT(same);
    CU_ASSERT_EQUAL(table.options.rule, MHF_RULE_IMPORTED);
    free(wanted);
    mhf_signatures_free(&table);
}

static void test_golden(void)
{
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const char *path = golden_in(models[m], ""), *expect = golden_steps(models[m]);
        const char *copy = in_folder("copy.h5");
        if (!path || !expect)
            continue;
        mhf_source *source;
        mhf_tokenizer *tokenizer;
        mhf_signatures table = {0};
        CHECK_OK(mhf_source_open(path, &source));
        check_weights(source, expect);
        check_table(source, expect);
        CHECK_OK(mhf_source_tokenizer(source, &tokenizer));
        CU_ASSERT_EQUAL(mhf_tokenizer_size(tokenizer), 1000);
        bool hashed = mhf_source_config(source)->head == MHF_HEAD_MHF;
        if (hashed)
            CHECK_OK(mhf_source_signatures(source, &table));
        mhf_checkpoint_meta meta = {.tokenizer = tokenizer, .table = hashed ? &table : NULL};
        CHECK_OK(mhf_checkpoint_import(source, copy, &meta));
        mhf_source_close(source);
        mhf_tokenizer_free(tokenizer);
        mhf_signatures_free(&table);
        /* The same from the checkpoint. */
        mhf_model *model;
        CHECK_OK(mhf_source_open(copy, &source));
        check_weights(source, expect);
        check_table(source, expect);
        CHECK_OK(mhf_model_load(source, &model, &tokenizer));
        CU_ASSERT_EQUAL(mhf_tokenizer_eos(tokenizer), 2);
        CU_ASSERT_EQUAL(model->table.size, hashed ? 1000 : 0);
        mhf_model_free(model);
        mhf_tokenizer_free(tokenizer);
        mhf_source_close(source);
    }
}

/* ---- folders made here ---------------------------------------------------------------------- */

static const mhf_config small = {.head = MHF_HEAD_STANDARD,
                                 .vocab_size = 8,
                                 .hidden_size = 4,
                                 .num_hidden_layers = 1,
                                 .num_attention_heads = 2,
                                 .num_key_value_heads = 1,
                                 .head_dim = 2,
                                 .intermediate_size = 3,
                                 .max_position_embeddings = 16,
                                 .tie_word_embeddings = true,
                                 .rms_norm_eps = 1e-6,
                                 .rope_theta = 1e6,
                                 .bos_token_id = -1,
                                 .eos_token_id = -1,
                                 .pad_token_id = -1};

typedef struct tensors {
    mhf_buf header, data;
} tensors;

/* Element i of a tensor: exact in every type. */
static float element(int64_t i)
{
    return (float)(i % 64) * 0.25f - 7.0f;
}

static void add_tensor(tensors *t, const char *name, const char *type, const char *shape,
                       int64_t count)
{
    size_t begin = t->data.n;
    for (int64_t i = 0; i < count; i++) {
        float value = element(i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16);
        if (strcmp(type, "F32") == 0)
            CHECK_OK(mhf_buf_add(&t->data, &value, sizeof value));
        else {
            /* Powers of two and few bits: float16 by arithmetic on the exponent. */
            if (strcmp(type, "F16") == 0)
                half = value == 0 ? 0
                                  : (uint16_t)((bits >> 16 & 0x8000u) |
                                               ((bits >> 13 & 0x3fc00u) - (112u << 10)) |
                                               (bits >> 13 & 0x3ffu));
            CHECK_OK(mhf_buf_add(&t->data, &half, sizeof half));
        }
    }
    CHECK_OK(mhf_buf_printf(&t->header,
                            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                            t->header.n ? "," : "{", name, type, shape, begin, t->data.n));
}

static void add_param(tensors *t, const mhf_param *param, const char *type)
{
    char shape[64];
    snprintf(shape, sizeof shape, param->n_dims == 1 ? "[%lld]" : "[%lld,%lld]",
             (long long)param->shape[0], (long long)param->shape[1]);
    add_tensor(t, param->name, type, shape, param->count);
}

static void write_tensors(tensors *t, const char *path)
{
    mhf_buf file = {0};
    CHECK_OK(mhf_buf_add_text(&t->header, "}"));
    uint64_t n = t->header.n;
    CHECK_OK(mhf_buf_add(&file, &n, sizeof n));
    CHECK_OK(mhf_buf_add(&file, t->header.data, t->header.n));
    CHECK_OK(mhf_buf_add(&file, t->data.data, t->data.n));
    write_file(path, file.data, file.n);
    mhf_buf_free(&file);
    mhf_buf_free(&t->header);
    mhf_buf_free(&t->data);
}

static void start_folder(const mhf_config *config)
{
    mhf_buf json = {0};
    CHECK_OK(mhf_dir_make(in_folder("hf")));
    CHECK_OK(mhf_config_to_json(config, &json));
    write_file(in_folder("hf/config.json"), json.data, json.n);
    mhf_buf_free(&json);
    unlink(in_folder("hf/model.safetensors"));
    unlink(in_folder("hf/model.safetensors.index.json"));
}

static void check_small(void)
{
    mhf_source *source;
    mhf_registry registry;
    float found[64];
    CHECK_OK(mhf_source_open(in_folder("hf"), &source));
    CHECK_OK(mhf_registry_new(&small, &registry));
    for (int32_t p = 0; p < registry.n; p++) {
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, &registry.params[p], 0,
                                 registry.params[p].count, found));
        for (int64_t i = 0; i < registry.params[p].count; i++)
            CU_ASSERT_EQUAL(found[i], element(i));
    }
    mhf_registry_free(&registry);
    mhf_source_close(source);
}

static void test_types(void)
{
    static const char *const types[] = {"F32", "BF16", "F16"};
    mhf_registry registry;
    CHECK_OK(mhf_registry_new(&small, &registry));
    for (int k = 0; k < 3; k++) {
        tensors t = {0};
        start_folder(&small);
        for (int32_t p = 0; p < registry.n; p++)
            add_param(&t, &registry.params[p], types[k]);
        write_tensors(&t, in_folder("hf/model.safetensors"));
        check_small();
    }
    mhf_registry_free(&registry);
}

static void write_shards(const mhf_registry *registry)
{
    tensors a = {0}, b = {0};
    for (int32_t p = 0; p < registry->n; p++)
        add_param(p % 2 ? &a : &b, &registry->params[p], "BF16");
    write_tensors(&a, in_folder("hf/a.safetensors"));
    write_tensors(&b, in_folder("hf/b.safetensors"));
}

static void write_index(const mhf_registry *registry, const char *extra)
{
    mhf_buf index = {0};
    CHECK_OK(mhf_buf_add_text(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{"));
    for (int32_t p = 0; p < registry->n; p++)
        CHECK_OK(mhf_buf_printf(&index, "%s\"%s\":\"%s.safetensors\"", p ? "," : "",
                                registry->params[p].name, p % 2 ? "a" : "b"));
    CHECK_OK(mhf_buf_printf(&index, "%s}}", extra));
    write_file(in_folder("hf/model.safetensors.index.json"), index.data, index.n);
    mhf_buf_free(&index);
}

static void test_shards(void)
{
    mhf_registry registry;
    mhf_source *source;
    CHECK_OK(mhf_registry_new(&small, &registry));
    start_folder(&small);
    write_shards(&registry);
    write_index(&registry, "");
    check_small();
    static const struct {
        const char *extra;
        mhf_status status;
    } bad[] = {{",\"x\":\"../b.safetensors\"", MHF_E_DATA},
               {",\"x\":\"/etc/passwd\"", MHF_E_DATA},
               {",\"x\":7", MHF_E_DATA},
               {",\"x\":\"\"", MHF_E_DATA},
               {",\"x\":\"a.safetensors\"", MHF_E_DATA},
               {",\"x\":\"c.safetensors\"", MHF_E_IO},
               {",\"model.norm.weight\":\"a.safetensors\"", MHF_E_DATA}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_index(&registry, bad[i].extra);
        CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), bad[i].status, in_folder("hf"));
    }
    /* A tensor in two shards. */
    tensors c = {0};
    add_param(&c, &registry.params[0], "F32");
    write_tensors(&c, in_folder("hf/c.safetensors"));
    write_index(&registry, ",\"x\":\"c.safetensors\"");
    CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_DATA, in_folder("hf"));
    write_file(in_folder("hf/model.safetensors.index.json"), "{\"weight_map\":{}}", 17);
    CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_DATA, in_folder("hf"));
    mhf_registry_free(&registry);
}

/* A tied model with its head stored as well; tensors that are not the model's. */
static void test_extra_tensors(void)
{
    static const struct {
        const char *name, *shape;
        int64_t count;
        mhf_status status;
    } extras[] = {{"lm_head.weight", "[8,4]", 32, MHF_OK},
                  {"model.rotary_emb.inv_freq", "[1]", 1, MHF_OK},
                  {"lm_head.weight", "[8,3]", 24, MHF_E_DATA},
                  {"model.layers.0.self_attn.q_proj.bias", "[4]", 4, MHF_E_DATA},
                  {"model.hash_map", "[4]", 4, MHF_E_DATA}};
    mhf_registry registry;
    mhf_source *source;
    CHECK_OK(mhf_registry_new(&small, &registry));
    for (size_t e = 0; e < sizeof extras / sizeof *extras; e++) {
        tensors t = {0};
        start_folder(&small);
        for (int32_t p = 0; p < registry.n; p++)
            add_param(&t, &registry.params[p], "F32");
        add_tensor(&t, extras[e].name, "F32", extras[e].shape, extras[e].count);
        write_tensors(&t, in_folder("hf/model.safetensors"));
        if (extras[e].status == MHF_OK)
            check_small();
        else
            CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), extras[e].status,
                          extras[e].name);
    }
    mhf_registry_free(&registry);
}

static void test_wrong_tensors(void)
{
    mhf_registry registry;
    mhf_source *source;
    CHECK_OK(mhf_registry_new(&small, &registry));
    for (int kind = 0; kind < 4; kind++) {
        tensors t = {0};
        const mhf_param *norm = &registry.params[registry.n - 1];
        float found[8];
        start_folder(&small);
        for (int32_t p = 0; p < registry.n - 1; p++)
            add_param(&t, &registry.params[p], "F32");
        if (kind == 1)
            add_tensor(&t, norm->name, "F32", "[2,2]", 4);
        else if (kind == 2)
            add_tensor(&t, norm->name, "I16", "[4]", 4);
        else if (kind == 3)
            add_param(&t, norm, "F32");
        if (kind == 3) {
            float nan = NAN;
            memcpy(t.data.data + t.data.n - 8, &nan, sizeof nan);
        }
        write_tensors(&t, in_folder("hf/model.safetensors"));
        if (kind < 3) { /* absent, of another shape, of a type that no weight has */
            CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_DATA, norm->name);
            continue;
        }
        CHECK_OK(mhf_source_open(in_folder("hf"), &source));
        CHECK_REFUSED(mhf_source_read(source, MHF_PARAMETER, norm, 0, 4, found), MHF_E_DATA,
                      norm->name);
        mhf_source_close(source);
    }
    mhf_registry_free(&registry);
}

/* ---- headers that lie ----------------------------------------------------------------------- */

static void write_hostile(uint64_t length, const char *header, size_t data)
{
    mhf_buf file = {0};
    char zeros[64] = {0};
    CHECK_OK(mhf_buf_add(&file, &length, sizeof length));
    CHECK_OK(mhf_buf_add_text(&file, header));
    CHECK_OK(mhf_buf_add(&file, zeros, data));
    write_file(in_folder("hf/model.safetensors"), file.data, file.n);
    mhf_buf_free(&file);
}

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_hostile_headers(void)
{
    static const char *const headers[] = {
        "",
        "null",
        "[]",
        "{",
        "{}trailing",
        "{\"a\":7}",
        "{\"a\":{}}",
        "{\"a\":" ENTRY("F32", "[4]", "[]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,16,16]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,0]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[16,0]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,17]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[4,20]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[-16,0]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,9223372036854775807]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,18446744073709551616]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,16.0]") "}",
        "{\"a\":" ENTRY("F32", "[3]", "[0,16]") "}",
        "{\"a\":" ENTRY("F16", "[4]", "[0,16]") "}",
        "{\"a\":" ENTRY("Q4", "[4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "4", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[-4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[4294967296,4294967296,4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[9223372036854775807]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", /* rest */
        "{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"b\":" ENTRY("F32", "[2]",
                                                               "[8,16]") "}", /* hole */
        "{\"a\":" ENTRY("F32", "[3]", "[0,12]") ",\"b\":" ENTRY("F32", "[2]", "[8,16]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,16]") ",\"a\":" ENTRY("F32", "[4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,16]") ",\"b\":" ENTRY("F32", "[4]", "[0,16]") "}",
        "{\"a\":{\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,16]}}",
        "{\"\xff\":" ENTRY("F32", "[4]", "[0,16]") "}",
        "{\"a\":" ENTRY("F32", "[4]", "[0,16]") "}", /* right, but not the model's */
    };
    mhf_source *source;
    const char *path = in_folder("hf");
    start_folder(&small);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_hostile(strlen(headers[i]), headers[i], 16);
        mhf_status status = mhf_source_open(path, &source);
        if (status != MHF_E_DATA)
            fprintf(stderr, "\n    header %s: %d %s\n", headers[i], (int)status, mhf_error());
        CU_ASSERT_EQUAL(status, MHF_E_DATA);
        CU_ASSERT(names_file(path));
    }
    static const uint64_t lengths[] = {
        UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 8, 1ULL << 63, INT64_MAX, 1ULL << 40, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_hostile(lengths[i], "{\"a\":" ENTRY("F32", "[4]", "[0,16]") "}", 16);
        CHECK_REFUSED(mhf_source_open(path, &source), MHF_E_DATA, path);
    }
    for (size_t n = 0; n < 8; n++) {
        write_file(in_folder("hf/model.safetensors"), "\0\0\0\0\0\0\0\0", n);
        CHECK_REFUSED(mhf_source_open(path, &source), MHF_E_DATA, path);
    }
}

static void test_deep_nesting(void)
{
    enum { DEPTH = 100000 };
    mhf_source *source;
    char *header = malloc(2 * DEPTH + 16);
    for (int kind = 0; kind < 2; kind++) {
        size_t n = (size_t)sprintf(header, "{\"a\":");
        memset(header + n, kind ? '{' : '[', DEPTH);
        memset(header + n + DEPTH, kind ? '}' : ']', DEPTH);
        strcpy(header + n + 2 * DEPTH, "}");
        start_folder(&small);
        write_hostile(strlen(header), header, 16);
        CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_DATA, in_folder("hf"));
    }
    free(header);
}

static void test_absent(void)
{
    mhf_source *source;
    start_folder(&small);
    CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_IO, in_folder("hf"));
    unlink(in_folder("hf/config.json"));
    CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_IO, in_folder("hf"));
    CHECK_REFUSED(mhf_source_open(in_folder("nowhere"), &source), MHF_E_IO, in_folder("nowhere"));
    /* Far more layers than there are tensors. */
    mhf_config many = small;
    many.num_hidden_layers = 4000;
    start_folder(&many);
    write_hostile(2, "{}", 0);
    CHECK_REFUSED(mhf_source_open(in_folder("hf"), &source), MHF_E_DATA, in_folder("hf"));
}

int main(void)
{
    static const test_case cases[] = {{"golden", test_golden},
                                      {"types", test_types},
                                      {"shards", test_shards},
                                      {"extra tensors", test_extra_tensors},
                                      {"wrong tensors", test_wrong_tensors},
                                      {"hostile headers", test_hostile_headers},
                                      {"deep nesting", test_deep_nesting},
                                      {"absent", test_absent}};
    H5dont_atexit();
    folder_make();
    int failed = run_tests("folder", cases, sizeof cases / sizeof *cases);
    folder_remove();
    return failed;
}
