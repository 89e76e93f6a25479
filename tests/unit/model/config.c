/* SPDX-License-Identifier: ISC */
/* config.json: what is read and written, and the refusal of what is not built. */
#include "mhf/model.h"
#include "support.h"

static const char whole[] =
    "{\"model_type\":\"qwen3\",\"vocab_size\":512,\"hidden_size\":64,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":24,\"intermediate_size\":96,"
    "\"max_position_embeddings\":256,\"rms_norm_eps\":1e-5,\"rope_theta\":5.0,"
    "\"rope_parameters\":{\"rope_theta\":20000.0,\"rope_type\":\"default\"},"
    "\"tie_word_embeddings\":true,\"bos_token_id\":1,\"eos_token_id\":[2,7],\"pad_token_id\":null,"
    "\"num_hashes\":3,\"num_buckets\":61,\"num_lsh\":1,\"bottle_neck_dim\":16,"
    "\"lsh_only_embed\":true,\"use_conditional_prob\":true,\"something_new\":{\"a\":1}}";

static mhf_status parse(const char *json, mhf_config *out)
{
    return mhf_config_from_json(json, strlen(json), "config.json", out);
}

/* `whole` with one member set to another value (replaced, or added); NULL: taken out. */
static char *with(const char *key, const char *value)
{
    json_t *o = NULL, *v = NULL;
    CHECK_OK(mhf_json_parse(whole, strlen(whole), "whole", &o));
    if (value) {
        v = json_loads(value, JSON_DECODE_ANY, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        json_object_set_new(o, key, v);
    } else {
        json_object_del(o, key);
    }
    char *text = json_dumps(o, 0);
    json_decref(o);
    return text;
}

static void reads(void)
{
    mhf_config c;
    CHECK_OK(parse(whole, &c));
    CU_ASSERT_EQUAL(c.head, MHF_HEAD_MHF);
    CU_ASSERT_EQUAL(c.vocab_size, 512);
    CU_ASSERT_EQUAL(c.head_dim, 24);
    CU_ASSERT_EQUAL(c.rope_theta, 20000.0); /* the older key beside it is ignored */
    CU_ASSERT_EQUAL(c.rms_norm_eps, 1e-5);
    CU_ASSERT_EQUAL(c.bos_token_id, 1);
    CU_ASSERT_EQUAL(c.eos_token_id, 2);
    CU_ASSERT_EQUAL(c.pad_token_id, -1);
    CU_ASSERT_EQUAL(c.num_lsh, 1);
    CU_ASSERT(c.lsh_only_embed && c.use_conditional_prob && c.tie_word_embeddings);
    CU_ASSERT_EQUAL(mhf_config_encoder_hashes(&c), 1);
    CU_ASSERT_EQUAL(mhf_config_embedding_rows(&c), 3 * 61);
    char *text = with("rope_parameters", NULL);
    CHECK_OK(parse(text, &c));
    CU_ASSERT_EQUAL(c.rope_theta, 5.0);
    free(text);
    text = with("num_hashes", NULL);
    CHECK_OK(parse(text, &c));
    CU_ASSERT_EQUAL(c.head, MHF_HEAD_STANDARD);
    CU_ASSERT_EQUAL(mhf_config_embedding_rows(&c), 512);
    free(text);
    text = with("head_dim", "null");
    CHECK_OK(parse(text, &c));
    CU_ASSERT_EQUAL(c.head_dim, 16);
    free(text);
}

/* transformers' Qwen3Config and the released one have values for keys that are not there. */
static void absent_keys(void)
{
    static const struct {
        const char *json;
        int32_t key_value_heads, head_dim, num_lsh;
        double rope_theta;
    } files[] = {{"", 32, 128, 0, 1e4},
                 {",\"rope_theta\":5e5", 32, 128, 0, 5e5},
                 {",\"rope_parameters\":{\"rope_type\":\"default\"}", 32, 128, 0, 1e4},
                 {",\"rope_parameters\":null,\"rope_scaling\":null,\"num_key_value_heads\":null",
                  64, 128, 0, 1e4},
                 {",\"head_dim\":null,\"num_key_value_heads\":16", 16, 32, 0, 1e4},
                 {",\"num_hashes\":4,\"num_buckets\":61", 32, 128, 3, 1e4},
                 {",\"num_hashes\":4,\"num_buckets\":61,\"num_lsh\":0", 32, 128, 0, 1e4}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char json[512];
        mhf_config c;
        snprintf(json, sizeof json,
                 "{\"vocab_size\":512,\"hidden_size\":2048,\"num_hidden_layers\":2,"
                 "\"num_attention_heads\":64,\"intermediate_size\":96%s}",
                 files[i].json);
        CHECK_OK(parse(json, &c));
        CU_ASSERT_EQUAL(c.num_key_value_heads, files[i].key_value_heads);
        CU_ASSERT_EQUAL(c.head_dim, files[i].head_dim);
        CU_ASSERT_EQUAL(c.num_lsh, files[i].num_lsh);
        CU_ASSERT_EQUAL(c.rope_theta, files[i].rope_theta);
        CU_ASSERT_EQUAL(c.rms_norm_eps, 1e-6);
        CU_ASSERT_EQUAL(c.max_position_embeddings, 32768);
        CU_ASSERT_EQUAL(c.bottle_neck_dim, 64);
        CU_ASSERT_EQUAL(c.bos_token_id, -1);
        CU_ASSERT(!c.tie_word_embeddings && !c.use_conditional_prob && !c.lsh_only_embed);
    }
}

/* The released objective counts padding rows; a model that was not trained so says it. */
static void normalizer_rows(void)
{
    static const struct {
        const char *conditional, *rows;
        bool expected, written;
    } cases[] = {{"true", NULL, true, false},
                 {"true", "true", true, false},
                 {"true", "false", false, true},
                 {"false", NULL, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        mhf_config c;
        mhf_buf text = {0};
        snprintf(json, sizeof json,
                 "{\"vocab_size\":512,\"hidden_size\":64,\"num_hidden_layers\":2,"
                 "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":96,"
                 "\"num_hashes\":4,\"num_buckets\":61,\"use_conditional_prob\":%s%s%s}",
                 cases[i].conditional, cases[i].rows ? ",\"normalize_padding_rows\":" : "",
                 cases[i].rows ? cases[i].rows : "");
        CHECK_OK(parse(json, &c));
        CU_ASSERT_EQUAL(c.normalize_padding_rows, cases[i].expected);
        CHECK_OK(mhf_config_to_json(&c, &text));
        CU_ASSERT_EQUAL(strstr(text.data, "normalize_padding_rows") != NULL, cases[i].written);
        mhf_buf_free(&text);
    }
}

static void writes_what_it_reads(void)
{
    mhf_config first, again;
    mhf_buf text = {0};
    CHECK_OK(parse(whole, &first));
    first.mask_documents = true;
    first.normalize_padding_rows = false;
    CHECK_OK(mhf_config_to_json(&first, &text));
    CHECK_OK(mhf_config_from_json(text.data, text.n, "again", &again));
    CU_ASSERT(memcmp(&first, &again, sizeof first) == 0);
    mhf_buf_free(&text);
}

static void refuses(void)
{
    static const struct {
        const char *key, *value, *word;
    } bad[] = {
        {"model_type", "\"llama\"", "model_type"},
        {"hidden_act", "\"gelu\"", "hidden_act"},
        {"attention_bias", "true", "attention_bias"},
        {"attention_dropout", "0.1", "attention_dropout"},
        {"use_sliding_window", "true", "use_sliding_window"},
        {"layer_types", "[\"full_attention\",\"sliding_attention\"]", "layer_types"},
        {"layer_types", "\"sliding_attention\"", "layer_types"},
        {"layer_types", "[\"full_attention\"]", "1 entries, expected 2"},
        {"architectures", "[\"LlamaForCausalLM\"]", "architectures"},
        {"architectures", "\"Qwen3ForCausalLM\"", "architectures"},
        {"pad_token_id", "512", "expected 0 to 511"},
        {"eos_token_id", "[9999]", "eos_token_id"},
        {"bos_token_id", "-1", "bos_token_id"},
        {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}", "rope_scaling"},
        {"rope_scaling", "{\"type\":\"linear\",\"factor\":4}", "rope_scaling"},
        {"rope_parameters", "{\"rope_type\":\"llama3\",\"rope_theta\":1e6}", "rope_type"},
        {"rope_parameters", "{\"type\":\"dynamic\",\"rope_theta\":1e6}", "type"},
        {"rope_parameters", "{\"full_attention\":{\"rope_theta\":1e6}}", "full_attention"},
        {"rope_parameters", "{\"rope_theta\":1e6,\"partial_rotary_factor\":0.5}", "partial_rotary"},
        {"rope_parameters", "7", "rope_parameters"},
        {"rope_parameters", "{\"rope_theta\":\"big\"}", "rope_theta"},
        {"rope_parameters", "{\"rope_theta\":0}", "rope_theta"},
        {"quantization_config", "{\"bits\":4}", "quantization_config"},
        {"vocab_size", NULL, "vocab_size"},
        {"vocab_size", "0", "vocab_size"},
        {"vocab_size", "\"512\"", "vocab_size"},
        {"vocab_size", "512.5", "vocab_size"},
        {"vocab_size", "99999999999", "vocab_size"},
        {"hidden_size", "-64", "hidden_size"},
        {"hidden_size", "2147483647", "hidden_size"},
        {"num_hidden_layers", "0", "num_hidden_layers"},
        {"num_hidden_layers", "2000000000", "num_hidden_layers"},
        {"num_attention_heads", NULL, "num_attention_heads"},
        {"num_key_value_heads", "3", "num_key_value_heads"},
        {"head_dim", "15", "head_dim"},
        {"intermediate_size", "[96]", "intermediate_size"},
        {"max_position_embeddings", "0", "max_position_embeddings"},
        {"rms_norm_eps", "0", "rms_norm_eps"},
        {"rms_norm_eps", "\"x\"", "rms_norm_eps"},
        {"tie_word_embeddings", "1", "tie_word_embeddings"},
        {"bos_token_id", "-3", "bos_token_id"},
        {"eos_token_id", "[\"x\"]", "eos_token_id"},
        {"num_hashes", "65", "num_hashes"},
        {"num_buckets", NULL, "num_buckets"},
        {"num_buckets", "1", "num_buckets"},
        {"num_lsh", "4", "num_lsh"},
        {"num_lsh", "0", "lsh_only_embed"},
        {"bottle_neck_dim", "0", "bottle_neck_dim"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mhf_config c;
        char *text = with(bad[i].key, bad[i].value);
        mhf_status status = parse(text, &c);
        bool said = strstr(mhf_error(), "config.json") && strstr(mhf_error(), bad[i].word);
        if (status != MHF_E_DATA || !said)
            fprintf(stderr, "\n    %s = %s gives %d: %s\n", bad[i].key, bad[i].value, (int)status,
                    mhf_error());
        CU_ASSERT_EQUAL(status, MHF_E_DATA);
        CU_ASSERT(said);
        free(text);
    }
    mhf_config c;
    static const char *const texts[] = {
        "", "[]", "7", "{", "{\"vocab_size\":1}{}", "{\"vocab_size\":1,\"vocab_size\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CU_ASSERT_EQUAL(parse(texts[i], &c), MHF_E_DATA);
}

static void presets(void)
{
    mhf_config c = {0};
    CU_ASSERT_EQUAL(mhf_config_preset("7b", &c), MHF_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "7b"));
    CHECK_OK(mhf_config_preset("500m", &c));
    CU_ASSERT_EQUAL(c.head_dim * c.num_attention_heads, 2 * c.hidden_size);
    CHECK_OK(mhf_config_preset("3b", &c));
    CU_ASSERT_EQUAL(c.max_position_embeddings, 40960);
}

int main(void)
{
    static const test_case cases[] = {
        {"reads", reads},
        {"absent keys", absent_keys},
        {"rows of the normaliser", normalizer_rows},
        {"writes what it reads", writes_what_it_reads},
        {"refuses what is not built", refuses},
        {"presets", presets},
    };
    return run_tests("model.config", cases, sizeof cases / sizeof *cases);
}
