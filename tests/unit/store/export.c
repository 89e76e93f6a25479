/* SPDX-License-Identifier: ISC */
/* Exported Hugging Face folders: the golden ones come back byte for byte; rounding to bfloat16,
 * shards, config.json of an imported model, kept files, and what must be refused. */
#include <hdf5.h>
#include <math.h>

#include "mhf/store.h"
#include "store/export.h"
#include "store_support.h"

enum { WHOLE = 1 << 30 };

static const mhf_export_options full = {.type = MHF_F32, .max_shard_bytes = 1 << 30};
static const mhf_export_options half = {.type = MHF_BF16, .max_shard_bytes = 1 << 30};

static bool same_files(const char *a, const char *b)
{
    mhf_buf x = {0}, y = {0};
    bool same = mhf_file_read(a, WHOLE, &x) == MHF_OK && mhf_file_read(b, WHOLE, &y) == MHF_OK &&
                x.n == y.n && memcmp(x.data, y.data, x.n) == 0;
    if (!same)
        fprintf(stderr, "\n    %s is not %s\n", a, b);
    mhf_buf_free(&x);
    mhf_buf_free(&y);
    return same;
}

/* Import as the command does. */
static void import(const char *from, const char *to)
{
    mhf_source *source;
    mhf_tokenizer *tokenizer = NULL;
    mhf_signatures table = {0};
    mhf_carried carried;
    CHECK_OK(mhf_source_open(from, &source));
    if (mhf_source_tokenizer(source, &tokenizer) != MHF_OK)
        tokenizer = NULL;
    if (mhf_source_config(source)->head == MHF_HEAD_MHF)
        CHECK_OK(mhf_source_signatures(source, &table));
    CHECK_OK(mhf_source_carried(source, &carried));
    const mhf_checkpoint_meta meta = {
        .tokenizer = tokenizer, .table = table.ids ? &table : NULL, .carried = &carried};
    CHECK_OK(mhf_checkpoint_import(source, to, &meta));
    mhf_source_close(source);
    mhf_tokenizer_free(tokenizer);
    mhf_signatures_free(&table);
    mhf_carried_free(&carried);
}

static mhf_status export_to(const char *from, const char *to, const mhf_export_options *options)
{
    mhf_source *source;
    CHECK_OK(mhf_source_open(from, &source));
    mhf_status status = mhf_export(source, to, options);
    mhf_source_close(source);
    return status;
}

/* ---- golden folders ------------------------------------------------------------------------- */

static void test_golden(void)
{
    static const char *const models[] = {"mhf-h3", "mhf-h4", "mhf-h4-lsh2", "mhf-lsh-only-embed",
                                         "std",    "mhf-h1"};
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char name[128];
        snprintf(name, sizeof name, "models/%s", models[m]);
        const char *path = golden(name);
        if (!path)
            continue;
        import(path, in_folder("copy.h5"));
        CHECK_OK(export_to(in_folder("copy.h5"), in_folder("out"), &full));
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
            snprintf(name, sizeof name, "models/%s/%s", models[m], files[f]);
            const char *wanted = golden(name);
            snprintf(name, sizeof name, "out/%s", files[f]);
            if (wanted)
                CU_ASSERT(same_files(in_folder(name), wanted));
        }
        /* Nor is anything lost on the way from folder to folder, or onto itself. */
        CHECK_OK(export_to(in_folder("out"), in_folder("again"), &half));
        CHECK_OK(export_to(in_folder("again"), in_folder("again"), &full));
        CHECK_OK(export_to(in_folder("again"), in_folder("once more"), &half));
        CHECK_OK(export_to(in_folder("again"), in_folder("again"), &half));
        CU_ASSERT(same_files(in_folder("again/model.safetensors"),
                             in_folder("once more/model.safetensors")));
    }
}

/* ---- small models made here ----------------------------------------------------------------- */

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
                                 .eos_token_id = 3,
                                 .pad_token_id = -1};

/* Values of the embedding; other tensors count up. */
static mhf_status read_values(void *context, const mhf_param *param, int64_t first, int64_t count,
                              float *out)
{
    const float *embedding = context;
    for (int64_t i = 0; i < count; i++)
        out[i] = strstr(param->name, "embed") ? embedding[first + i] : (float)(first + i);
    return MHF_OK;
}

static void write_small(const float *embedding, const mhf_carried *carried)
{
    const mhf_checkpoint_meta meta = {.carried = carried};
    float values[32];
    memcpy(values, embedding, sizeof values);
    CHECK_OK(mhf_checkpoint_compose(in_folder("small.h5"), &small, read_values, values, &meta));
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What stands in the file for the embedding, after re-reading. */
static void read_embedding(const char *path, float *out)
{
    mhf_source *source;
    mhf_registry registry;
    CHECK_OK(mhf_source_open(path, &source));
    CHECK_OK(mhf_registry_new(mhf_source_config(source), &registry));
    int32_t i = mhf_registry_find(&registry, "model.embed_tokens.weight");
    CHECK_OK(mhf_source_read(source, MHF_PARAMETER, &registry.params[i], 0, 32, out));
    mhf_registry_free(&registry);
    mhf_source_close(source);
}

static void test_rounding(void)
{
    static const struct {
        uint32_t in;
        uint32_t out; /* the float32 that the bfloat16 is */
    } cases[] = {{0x3f800000, 0x3f800000}, {0x3f807fff, 0x3f800000},
                 {0x3f808000, 0x3f800000}, /* tie: even */
                 {0x3f808001, 0x3f810000}, {0x3f818000, 0x3f820000},
                 {0xbf818000, 0xbf820000}, /* tie: up */
                 {0x80000000, 0x80000000}, {0x00000001, 0x00000000},
                 {0x00008000, 0x00000000}, {0x00018000, 0x00020000},
                 {0x007fffff, 0x00800000}, /* the largest denormal carries */
                 {0x3fffffff, 0x40000000}, {0x7f7f7fff, 0x7f7f0000},
                 {0xff7f7fff, 0xff7f0000}};
    float values[32] = {0}, found[32];
    size_t n = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n; i++)
        values[i] = float_of(cases[i].in);
    write_small(values, NULL);
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("half"), &half));
    read_embedding(in_folder("half"), found);
    for (size_t i = 0; i < n; i++) {
        float wanted = float_of(cases[i].out);
        CU_ASSERT_EQUAL(memcmp(&found[i], &wanted, sizeof wanted), 0);
    }
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("full"), &full));
    read_embedding(in_folder("full"), found);
    CU_ASSERT_EQUAL(memcmp(found, values, sizeof found), 0);
    /* bfloat16 has no number so large: not one bit of the old export is touched. */
    values[5] = float_of(0x7f7fffff);
    write_small(values, NULL);
    CHECK_REFUSED(export_to(in_folder("small.h5"), in_folder("half"), &half), MHF_E_NONFINITE,
                  "element 5");
    read_embedding(in_folder("half"), found);
    CU_ASSERT_EQUAL(found[5], float_of(0xbf820000));
    CU_ASSERT(!mhf_file_exists(in_folder("half/model.safetensors.tmp")));
}

/* ---- shards --------------------------------------------------------------------------------- */

static int64_t count_files(const json_t *map)
{
    mhf_map *seen;
    const char *key;
    json_t *value;
    CHECK_OK(mhf_map_new(4, &seen));
    json_object_foreach((json_t *)map, key, value)
        CHECK_OK(mhf_map_put(seen, json_string_value(value), json_string_length(value), 1));
    int64_t n = mhf_map_count(seen);
    mhf_map_free(seen);
    return n;
}

static void check_index(int64_t files, int64_t bytes)
{
    json_t *index;
    CHECK_OK(mhf_json_read(in_folder("out/model.safetensors.index.json"), &index));
    const json_t *metadata = json_object_get(index, "metadata");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(metadata, "total_size")), bytes);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(metadata, "total_parameters")), bytes / 4);
    CU_ASSERT_EQUAL(count_files(json_object_get(index, "weight_map")), files);
    json_decref(index);
}

static void test_shards(void)
{
    float values[32], found[32];
    mhf_registry registry;
    CHECK_OK(mhf_registry_new(&small, &registry));
    const int64_t bytes = 4 * registry.total;
    for (int i = 0; i < 32; i++)
        values[i] = (float)i / 3.0f;
    write_small(values, NULL);
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("out"), &full));
    write_file(in_folder("out/other.safetensors"), "mine", 4);
    write_file(in_folder("out/model-1-of-2.safetensors"), "mine", 4);
    /* A tensor a file; as many as fit; the embedding's 128 bytes do not fit into 100. */
    const int64_t limits[] = {1, bytes - 1, 100};
    const int64_t files[] = {registry.n, 2, 6};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const mhf_export_options cut = {.type = MHF_F32, .max_shard_bytes = limits[i]};
        CHECK_OK(export_to(in_folder("small.h5"), in_folder("out"), &cut));
        CU_ASSERT(!mhf_file_exists(in_folder("out/model.safetensors")));
        check_index(files[i], bytes);
        read_embedding(in_folder("out"), found);
        CU_ASSERT_EQUAL(memcmp(found, values, sizeof found), 0);
    }
    CU_ASSERT(mhf_file_exists(in_folder("out/model-00006-of-00006.safetensors")));
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("out"), &full));
    CU_ASSERT(!mhf_file_exists(in_folder("out/model.safetensors.index.json")));
    CU_ASSERT(!mhf_file_exists(in_folder("out/model-00006-of-00006.safetensors")));
    CU_ASSERT(mhf_file_exists(in_folder("out/other.safetensors")));
    CU_ASSERT(mhf_file_exists(in_folder("out/model-1-of-2.safetensors")));
    mhf_registry_free(&registry);
}

/* ---- config.json and kept files ------------------------------------------------------------- */

static void check_config(const char *kept, const char *dtype, const char *key, const char *wanted)
{
    mhf_buf in = {0}, out = {0}, text = {0};
    json_t *o;
    CHECK_OK(mhf_buf_add_text(&in, kept));
    CHECK_OK(mhf_export_config(&small, dtype, &in, "kept", &out));
    CHECK_OK(mhf_json_parse(out.data, out.n, "made", &o));
    const json_t *value = json_object_get(o, key);
    if (value)
        CHECK_OK(mhf_json_print(value, &text));
    const char *found = value ? text.data : "absent";
    if (strcmp(found, wanted) != 0)
        fprintf(stderr, "\n    %s: %s is %s, expected %s\n", kept, key, found, wanted);
    CU_ASSERT_STRING_EQUAL(found, wanted);
    json_decref(o);
    mhf_buf_free(&in);
    mhf_buf_free(&out);
    mhf_buf_free(&text);
}

static void test_config(void)
{
    static const char rope[] = "{\"rope_parameters\":{\"rope_theta\":7.0,\"rope_type\":\"default\","
                               "\"mine\":1}}";
    check_config("{}", "bfloat16", "dtype", "\"bfloat16\"");
    check_config("{}", "float32", "torch_dtype", "absent");
    check_config("{\"torch_dtype\":\"float16\"}", "bfloat16", "torch_dtype", "\"bfloat16\"");
    check_config("{\"dtype\":\"float16\"}", "float32", "dtype", "\"float32\"");
    check_config("{\"transformers_version\":\"5.3.0\"}", "float32", "transformers_version",
                 "\"5.3.0\"");
    check_config("{\"fused_decoding\":true}", "float32", "fused_decoding", "true");
    check_config("{\"mine\":{\"ü\":[1,null]}}", "float32", "mine", "{\"ü\":[1,null]}");
    check_config("{\"vocab_size\":4}", "float32", "vocab_size", "8");
    check_config("{\"layer_types\":[]}", "float32", "layer_types", "[\"full_attention\"]");
    check_config("{\"rope_theta\":7}", "float32", "rope_theta", "1000000.0");
    check_config("{\"rope_scaling\":null}", "float32", "rope_scaling", "null");
    check_config(rope, "float32", "rope_parameters",
                 "{\"mine\":1,\"rope_theta\":1000000.0,\"rope_type\":\"default\"}");
    check_config("{\"eos_token_id\":[3,5]}", "float32", "eos_token_id", "[3,5]");
    check_config("{\"eos_token_id\":[5,3]}", "float32", "eos_token_id", "3");
    check_config("{\"eos_token_id\":5}", "float32", "eos_token_id", "3");
    mhf_buf in = {0}, out = {0};
    CHECK_OK(mhf_buf_add_text(&in, "[7]"));
    CHECK_REFUSED(mhf_export_config(&small, "float32", &in, "kept", &out), MHF_E_DATA, "kept");
    mhf_buf_free(&in);
    mhf_buf_free(&out);
}

static void test_kept_files(void)
{
    static const char *const names[] = {"generation_config.json", "special_tokens_map.json"};
    static const char generation[] = "{ \"temperature\":0.6,\r\n\"a\": 1e300 }";
    static const char special[] = " {}";
    float values[32] = {0};
    write_small(values, NULL);
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("kept"), &full));
    write_file(in_folder("kept/generation_config.json"), generation, sizeof generation - 1);
    write_file(in_folder("kept/special_tokens_map.json"), special, sizeof special - 1);
    import(in_folder("kept"), in_folder("kept.h5"));
    CHECK_OK(export_to(in_folder("kept.h5"), in_folder("out"), &full));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "kept/%s", names[i]);
        snprintf(to, sizeof to, "out/%s", names[i]);
        CU_ASSERT(same_files(in_folder(from), in_folder(to)));
    }
}

/* A tokenizer whose file names no class gets one; all else of the file, and a file that was
 * imported, stays as it is. */
static void test_tokenizer_class(void)
{
    static const char json[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}";
    static const char added[] = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"";
    static const struct {
        const char *in, *out; /* out NULL: as it was */
    } cases[] = {
        {"{}", "\n}"},
        {" { \"mine\": 1e30, \"eos_token\": \"a\"}", ", \"mine\": 1e30, \"eos_token\": \"a\"}"},
        {"{\"tokenizer_class\": \"Mine\"}", NULL}};
    const float embedding[32] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mhf_tokenizer *tokenizer;
        mhf_buf found = {0};
        char wanted[256];
        float values[32];
        memcpy(values, embedding, sizeof values);
        CHECK_OK(mhf_tokenizer_parse(json, strlen(json), cases[i].in, strlen(cases[i].in), "t",
                                     NULL, &tokenizer));
        const mhf_checkpoint_meta meta = {.tokenizer = tokenizer};
        CHECK_OK(mhf_checkpoint_compose(in_folder("t.h5"), &small, read_values, values, &meta));
        mhf_tokenizer_free(tokenizer);
        CHECK_OK(export_to(in_folder("t.h5"), in_folder("t"), &full));
        CHECK_OK(mhf_file_read(in_folder("t/tokenizer_config.json"), WHOLE, &found));
        CHECK_OK(mhf_buf_add(&found, "", 1));
        if (cases[i].out)
            snprintf(wanted, sizeof wanted, "%s%s%s", *cases[i].in == ' ' ? " " : "", added,
                     cases[i].out);
        else
            snprintf(wanted, sizeof wanted, "%s", cases[i].in);
        CU_ASSERT_STRING_EQUAL(found.data, wanted);
        mhf_buf_free(&found);
        /* imported, nothing is added */
        write_file(in_folder("t/tokenizer_config.json"), cases[i].in, strlen(cases[i].in));
        import(in_folder("t"), in_folder("i.h5"));
        CHECK_OK(export_to(in_folder("i.h5"), in_folder("i"), &full));
        CU_ASSERT(
            same_files(in_folder("t/tokenizer_config.json"), in_folder("i/tokenizer_config.json")));
    }
}

/* ---- bad input ------------------------------------------------------------------------------ */

static void test_hostile_names(void)
{
    static char bad[][24] = {"..x", ".bashrc", "model.safetensors", "a\\b"};
    mhf_buf text = {0};
    float values[32] = {0};
    CHECK_OK(mhf_buf_add_text(&text, "{}"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *name = bad[i];
        mhf_carried carried = {.names = &name, .texts = &text, .n = 1};
        write_small(values, &carried);
        CHECK_REFUSED(export_to(in_folder("small.h5"), in_folder("named"), &full), MHF_E_DATA,
                      name);
    }
    mhf_buf_free(&text);
}

static void test_refused(void)
{
    const mhf_export_options f16 = {.type = MHF_F16, .max_shard_bytes = 1 << 30};
    const mhf_export_options none = {.type = MHF_F32, .max_shard_bytes = 0};
    float values[32] = {0}, nan = NAN;
    write_small(values, NULL);
    CU_ASSERT_EQUAL(export_to(in_folder("small.h5"), in_folder("x"), &f16), MHF_E_USAGE);
    CU_ASSERT_EQUAL(export_to(in_folder("small.h5"), in_folder("x"), &none), MHF_E_USAGE);
    write_file(in_folder("file"), "", 0);
    CHECK_REFUSED(export_to(in_folder("small.h5"), in_folder("file"), &full), MHF_E_IO,
                  in_folder("file"));
    CHECK_REFUSED(export_to(in_folder("small.h5"), in_folder("file/x"), &full), MHF_E_IO,
                  in_folder("file"));
    /* NaN in a folder's last tensor: told, and the folder written to keeps what it had. */
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("nan"), &full));
    CHECK_OK(export_to(in_folder("small.h5"), in_folder("old"), &half));
    mhf_buf file = {0};
    CHECK_OK(mhf_file_read(in_folder("nan/model.safetensors"), WHOLE, &file));
    memcpy(file.data + file.n - sizeof nan, &nan, sizeof nan);
    write_file(in_folder("nan/model.safetensors"), file.data, file.n);
    CHECK_REFUSED(export_to(in_folder("nan"), in_folder("old"), &full), MHF_E_DATA,
                  "model.norm.weight");
    CU_ASSERT(!mhf_file_exists(in_folder("old/model.safetensors.tmp")));
    CHECK_OK(export_to(in_folder("old"), in_folder("old"), &full));
    mhf_buf_free(&file);
}

int main(void)
{
    static const test_case cases[] = {
        {"golden folders come back byte for byte", test_golden},
        {"rounding to bfloat16", test_rounding},
        {"shards and their index", test_shards},
        {"config.json of an imported model", test_config},
        {"kept files", test_kept_files},
        {"the tokenizer's class", test_tokenizer_class},
        {"kept files of wrong names", test_hostile_names},
        {"what can't be exported", test_refused},
    };
    H5dont_atexit();
    folder_make();
    int failed = run_tests("export", cases, sizeof cases / sizeof *cases);
    folder_remove();
    return failed;
}
