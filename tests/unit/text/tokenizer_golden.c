/* SPDX-License-Identifier: ISC */
/* Every vector of the golden tokenizers: ids, spellings, template, text again. */
#include "support.h"

#include "mhf/text.h"

static const char *const folders[] = {
    "tokenizers/bytelevel",         "tokenizers/spm",
    "tokenizers/spm-always",        "tokenizers/mistral-v3",
    "tokenizers/mistral-v3-legacy", "bpe_train/expanded-bytelevel",
    "bpe_train/expanded-spm",
};

static bool ids_equal(const mhf_encoding *encoding, const json_t *expected)
{
    if ((size_t)encoding->n != json_array_size(expected))
        return false;
    for (size_t i = 0; i < json_array_size(expected); i++)
        if (json_integer_value(json_array_get(expected, i)) != encoding->ids[i])
            return false;
    return true;
}

static bool pieces_equal(const mhf_tokenizer *tokenizer, const mhf_encoding *encoding,
                         const json_t *expected)
{
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const json_t *piece = json_array_get(expected, i);
        size_t n;
        const char *ours = mhf_tokenizer_piece(tokenizer, encoding->ids[i], &n);
        if (!ours || n != json_string_length(piece) || memcmp(ours, json_string_value(piece), n))
            return false;
    }
    return true;
}

static bool decodes_to(const mhf_tokenizer *tokenizer, const mhf_encoding *encoding, bool skip,
                       const json_t *expected)
{
    mhf_buf text = {0};
    CHECK_OK(mhf_tokenizer_decode(tokenizer, encoding->ids, encoding->n, skip, &text));
    bool same = text.n == json_string_length(expected) &&
                (text.n == 0 || memcmp(text.data, json_string_value(expected), text.n) == 0);
    mhf_buf_free(&text);
    return same;
}

/* Ranges are in the text, in order and without overlap but where a character has several tokens. */
static bool ranges_in_order(const mhf_encoding *encoding, size_t n)
{
    int64_t last = 0;
    for (int64_t i = 0; i < encoding->n; i++) {
        if (encoding->begin[i] > encoding->end[i] || encoding->end[i] > (int64_t)n ||
            encoding->begin[i] < 0 || encoding->end[i] < last)
            return false;
        last = encoding->end[i];
    }
    return true;
}

static bool vector_passes(const mhf_tokenizer *tokenizer, const json_t *vector,
                          mhf_encoding *encoding)
{
    const json_t *text = json_object_get(vector, "text");
    const char *bytes = json_string_value(text);
    size_t n = json_string_length(text);
    CHECK_OK(mhf_tokenizer_encode(tokenizer, bytes, n, MHF_ENCODE_RANGES, encoding));
    bool pass = ids_equal(encoding, json_object_get(vector, "ids")) &&
                pieces_equal(tokenizer, encoding, json_object_get(vector, "tokens")) &&
                decodes_to(tokenizer, encoding, false, json_object_get(vector, "decoded")) &&
                ranges_in_order(encoding, n);
    CHECK_OK(mhf_tokenizer_encode(tokenizer, bytes, n, MHF_ENCODE_TEMPLATE, encoding));
    return pass && ids_equal(encoding, json_object_get(vector, "ids_special")) &&
           decodes_to(tokenizer, encoding, true, json_object_get(vector, "decoded_skip"));
}

static void check_folder(const char *folder)
{
    char name[256];
    snprintf(name, sizeof name, "%s/encode.jsonl", folder);
    const char *vectors = golden(name);
    snprintf(name, sizeof name, "%s/tokenizer.json", folder);
    const char *path = golden(name);
    if (!vectors || !path)
        return;
    mhf_tokenizer *tokenizer;
    mhf_buf lines = {0};
    mhf_encoding encoding = {0};
    CHECK_OK(mhf_tokenizer_load(path, NULL, &tokenizer));
    CHECK_OK(mhf_file_read(vectors, (size_t)1 << 30, &lines));
    int n = 0, wrong = 0;
    for (char *line = lines.data; *line; n++) {
        char *end = strchr(line, '\n');
        json_t *vector;
        CHECK_OK(mhf_json_parse(line, (size_t)(end - line), vectors, &vector));
        if (!vector_passes(tokenizer, vector, &encoding)) {
            if (wrong++ < 3)
                printf("\n    %s line %d differs\n", vectors, n + 1);
        }
        json_decref(vector);
        line = end + 1;
    }
    CU_ASSERT_TRUE(n >= 184);
    CU_ASSERT_EQUAL(wrong, 0);
    mhf_encoding_free(&encoding);
    mhf_buf_free(&lines);
    mhf_tokenizer_free(tokenizer);
}

static void test_vectors(void)
{
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        check_folder(folders[i]);
}

int main(void)
{
    const test_case cases[] = {{"all golden vectors", test_vectors}};
    return run_tests("text.tokenizer_golden", cases, sizeof cases / sizeof cases[0]);
}
