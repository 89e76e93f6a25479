/* SPDX-License-Identifier: ISC */
/* The token store: what is written is read, in any range; damage is told. */
#include <hdf5.h>

#include "damage.h"
#include "mhf/store.h"

enum { DOCUMENTS = 300 };
static mhf_tokenizer *tokenizer;

/* Document k: 7k tokens. */
static int64_t length_of(int64_t k)
{
    return 7 * k;
}

static mhf_token token_at(int64_t i)
{
    return (mhf_token)((uint64_t)i * 2654435761u % (uint64_t)mhf_tokenizer_size(tokenizer));
}

static int64_t write_store(const char *path, int64_t documents)
{
    mhf_token_writer *writer;
    mhf_token ids[7 * DOCUMENTS];
    int64_t n = 0;
    CHECK_OK(mhf_token_writer_new(path, tokenizer, &writer));
    for (int64_t k = 0; k < documents; k++) {
        for (int64_t i = 0; i < length_of(k); i++)
            ids[i] = token_at(n + i);
        CHECK_OK(mhf_token_writer_add(writer, ids, length_of(k), 2 * length_of(k)));
        n += length_of(k);
    }
    CHECK_OK(mhf_token_writer_finish(writer));
    CU_ASSERT(!mhf_file_exists(in_folder("tokens.h5.tmp")));
    return n;
}

static void test_round_trip(void)
{
    const char *path = in_folder("tokens.h5");
    int64_t n = write_store(path, DOCUMENTS);
    mhf_tokens *tokens;
    mhf_token *found = malloc((size_t)n * sizeof *found);
    CHECK_OK(mhf_tokens_open(path, &tokens));
    const mhf_tokens_info *info = mhf_tokens_info_of(tokens);
    CU_ASSERT_EQUAL(info->n, n);
    CU_ASSERT_EQUAL(info->documents, DOCUMENTS);
    CU_ASSERT_EQUAL(info->bytes, 2 * n);
    CU_ASSERT_EQUAL(info->vocab_size, mhf_tokenizer_size(tokenizer));
    CU_ASSERT_STRING_EQUAL(info->tokenizer_sha256, mhf_tokenizer_sha256(tokenizer));
    const int64_t ranges[][2] = {{n - 1, 1}, {0, n}, {12345, 512}, {n, 0}};
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        CHECK_OK(mhf_tokens_read(tokens, ranges[r][0], ranges[r][1], found));
        bool same = true;
        for (int64_t i = 0; i < ranges[r][1]; i++)
            same = same && found[i] == token_at(ranges[r][0] + i);
        CU_ASSERT(same);
    }
    CHECK_REFUSED(mhf_tokens_read(tokens, n - 1, 2, found), MHF_E_DATA, path);
    const uint64_t *offsets;
    CHECK_OK(mhf_tokens_documents(tokens, &offsets));
    for (int64_t k = 0; k < DOCUMENTS; k++)
        CU_ASSERT_EQUAL(offsets[k + 1] - offsets[k], (uint64_t)length_of(k));
    mhf_tokens_close(tokens);
    char format[32];
    CHECK_OK(mhf_file_format(path, format));
    CU_ASSERT_STRING_EQUAL(format, "mhf-tokens");
    free(found);
}

static void test_empty(void)
{
    const char *path = in_folder("empty.h5");
    mhf_tokens *tokens;
    const uint64_t *offsets;
    write_store(path, 0);
    CHECK_OK(mhf_tokens_open(path, &tokens));
    CU_ASSERT_EQUAL(mhf_tokens_info_of(tokens)->n, 0);
    CHECK_OK(mhf_tokens_documents(tokens, &offsets));
    CU_ASSERT_EQUAL(offsets[0], 0);
    mhf_tokens_close(tokens);
}

static void test_bad_ids(void)
{
    const char *path = in_folder("bad.h5");
    mhf_token_writer *writer;
    CHECK_OK(mhf_token_writer_new(path, tokenizer, &writer));
    CHECK_REFUSED(mhf_token_writer_add(writer, (const mhf_token[]){-1}, 1, 1), MHF_E_DATA, path);
    CHECK_REFUSED(
        mhf_token_writer_add(writer, (const mhf_token[]){mhf_tokenizer_size(tokenizer)}, 1, 1),
        MHF_E_DATA, path);
    mhf_token_writer_abandon(writer);
    CU_ASSERT(!mhf_file_exists(path));
    path = in_folder("no/folder.h5");
    CHECK_REFUSED(mhf_token_writer_new(path, tokenizer, &writer), MHF_E_IO, path);
    /* A store that claims a smaller vocabulary than its tokens need. */
    path = in_folder("small.h5");
    int64_t n = write_store(path, DOCUMENTS), vocabulary = 10;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t attribute = H5Aopen(file, "vocab_size", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT64, &vocabulary);
    H5Aclose(attribute);
    H5Fclose(file);
    mhf_tokens *tokens;
    mhf_token *found = malloc((size_t)n * sizeof *found);
    CHECK_OK(mhf_tokens_open(path, &tokens));
    CHECK_REFUSED(mhf_tokens_read(tokens, 0, n, found), MHF_E_DATA, path);
    mhf_tokens_close(tokens);
    free(found);
}

/* Ids past 16 bits. */
static void test_large_vocabulary(void)
{
    enum { SIZE = 70000 };
    mhf_buf json = {0};
    mhf_tokenizer *small = tokenizer;
    CHECK_OK(mhf_buf_add_text(&json, "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
                                     "\"pre_tokenizer\":null,\"post_processor\":null,"
                                     "\"decoder\":null,\"model\":{\"type\":\"BPE\",\"merges\":[],"
                                     "\"vocab\":{"));
    for (int i = 0; i < SIZE; i++)
        CHECK_OK(mhf_buf_printf(&json, "%s\"w%d\":%d", i ? "," : "", i, i));
    CHECK_OK(mhf_buf_add_text(&json, "}}}"));
    CHECK_OK(mhf_tokenizer_parse(json.data, json.n, NULL, 0, "large", NULL, &tokenizer));
    mhf_buf_free(&json);
    const char *path = in_folder("large.h5");
    int64_t n = write_store(path, DOCUMENTS);
    mhf_tokens *tokens;
    mhf_token *found = malloc((size_t)n * sizeof *found);
    CHECK_OK(mhf_tokens_open(path, &tokens));
    CHECK_OK(mhf_tokens_read(tokens, 0, n, found));
    bool same = true;
    for (int64_t i = 0; i < n; i++)
        same = same && found[i] == token_at(i);
    CU_ASSERT(same);
    mhf_tokens_close(tokens);
    free(found);
    mhf_tokenizer_free(tokenizer);
    tokenizer = small;
}

/* ---- damage ---------------------------------------------------------------------------------- */

enum { FEW = 30 };

static mhf_status read_few(const char *path)
{
    mhf_tokens *tokens;
    mhf_token found[FEW * FEW * 7];
    const uint64_t *offsets;
    int64_t n = 0;
    mhf_status status = mhf_tokens_open(path, &tokens);
    if (status != MHF_OK)
        return status;
    for (int64_t k = 0; k < FEW; k++)
        n += length_of(k);
    if (mhf_tokens_info_of(tokens)->n != n || mhf_tokens_info_of(tokens)->bytes != 2 * n)
        status = MHF_E_INTERNAL;
    if (status == MHF_OK)
        status = mhf_tokens_read(tokens, 0, n, found);
    for (int64_t i = 0; status == MHF_OK && i < n; i++)
        status = found[i] == token_at(i) ? MHF_OK : MHF_E_INTERNAL;
    if (status == MHF_OK)
        status = mhf_tokens_documents(tokens, &offsets);
    for (int64_t k = 0; status == MHF_OK && k < FEW; k++)
        if (offsets[k + 1] - offsets[k] != (uint64_t)length_of(k))
            status = MHF_E_INTERNAL;
    mhf_tokens_close(tokens);
    return status;
}

static void test_damage(void)
{
    damage d;
    write_store(in_folder("whole.h5"), FEW);
    damage_start(in_folder("whole.h5"), in_folder("damaged.h5"), read_few, &d);
    damage_flip(&d, 1, 1);
    damage_truncate(&d, 7);
    damage_end(&d);
}

int main(void)
{
    static const test_case cases[] = {{"round trip", test_round_trip},
                                      {"empty", test_empty},
                                      {"bad ids", test_bad_ids},
                                      {"large vocabulary", test_large_vocabulary},
                                      {"damage", test_damage}};
    const char *path = golden("tokenizers/spm/tokenizer.json");
    if (!path)
        return 77;
    if (mhf_tokenizer_load(path, NULL, &tokenizer) != MHF_OK) {
        fprintf(stderr, "%s\n", mhf_error());
        return 1;
    }
    H5dont_atexit();
    folder_make();
    int failed = run_tests("tokens", cases, sizeof cases / sizeof *cases);
    folder_remove();
    mhf_tokenizer_free(tokenizer);
    return failed;
}
