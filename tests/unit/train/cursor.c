/* SPDX-License-Identifier: ISC */
/* The order of blocks: every block once an epoch, another order in the next, a function of the seed
 * and the block's number alone; several stores by weight. */
#include <hdf5.h>
#include <math.h>
#include <unistd.h>

#include "mhf/train.h"
#include "support.h"

enum { BLOCK = 8, BLOCKS_A = 37, BLOCKS_B = 11 };

static mhf_tokenizer *tokenizer;
static char path_a[64], path_b[64], path_short[64];

/* Documents of 1 to 13 tokens, `n` tokens in all; token i of store `salt` tells its place. */
static mhf_token token_of(int salt, int64_t i)
{
    return (mhf_token)((i * 31 + salt) % 250);
}

static int64_t document_length(int64_t k)
{
    return 1 + k * 5 % 13;
}

static mhf_status write_store(const char *path, int salt, int64_t n)
{
    mhf_token_writer *writer;
    MHF_TRY(mhf_token_writer_new(path, tokenizer, &writer));
    for (int64_t i = 0, k = 0; i < n; k++) {
        mhf_token ids[16];
        int64_t length = document_length(k) < n - i ? document_length(k) : n - i;
        for (int64_t j = 0; j < length; j++)
            ids[j] = token_of(salt, i + j);
        MHF_TRY(mhf_token_writer_add(writer, ids, length, length));
        i += length;
    }
    return mhf_token_writer_finish(writer);
}

static mhf_cursor *open_one(uint64_t seed)
{
    const mhf_data_file file = {path_a, 1};
    mhf_cursor *cursor;
    CHECK_OK(mhf_cursor_new(&file, 1, BLOCK, seed, &cursor));
    return cursor;
}

static int64_t place(mhf_cursor *cursor, int64_t g)
{
    int32_t store;
    int64_t index;
    CHECK_OK(mhf_cursor_place(cursor, g, &store, &index));
    return store * 1000 + index;
}

static void epochs(void)
{
    mhf_cursor *cursor = open_one(42), *other = open_one(43);
    int64_t first[BLOCKS_A];
    int moved = 0, otherwise = 0, straight = 0;
    for (int epoch = 0; epoch < 3; epoch++) {
        bool seen[BLOCKS_A] = {false};
        for (int64_t g = 0; g < BLOCKS_A; g++) {
            int64_t at = place(cursor, epoch * BLOCKS_A + g);
            CU_ASSERT_FATAL(at >= 0 && at < BLOCKS_A);
            CU_ASSERT_FALSE(seen[at]);
            seen[at] = true;
            if (epoch == 0)
                first[g] = at;
            moved += epoch == 1 && at != first[g];
            straight += epoch == 0 && at == g;
            otherwise += epoch == 0 && place(other, g) != at;
        }
    }
    CU_ASSERT(moved > BLOCKS_A / 2);
    CU_ASSERT(otherwise > BLOCKS_A / 2);
    CU_ASSERT(straight < BLOCKS_A / 2);
    mhf_cursor_free(cursor);
    mhf_cursor_free(other);
}

static void reading(void)
{
    mhf_cursor *cursor = open_one(42);
    for (int64_t g = 0; g < 2 * BLOCKS_A; g++) {
        mhf_token tokens[BLOCK];
        int32_t begin[BLOCK];
        int64_t at = place(cursor, g);
        CHECK_OK(mhf_cursor_read(cursor, g, tokens, begin));
        /* Walk the documents up to the block. */
        int64_t start = 0, k = 0;
        for (int64_t i = 0; i < BLOCK; i++) {
            int64_t absolute = at * BLOCK + i;
            while (start + document_length(k) <= absolute)
                start += document_length(k++);
            int64_t expected = start > at * BLOCK ? start - at * BLOCK : 0;
            CU_ASSERT_EQUAL(tokens[i], token_of(1, absolute));
            CU_ASSERT_EQUAL(begin[i], expected);
        }
        mhf_token plain[BLOCK];
        CHECK_OK(mhf_cursor_read(cursor, g, plain, NULL));
        CU_ASSERT(memcmp(plain, tokens, sizeof plain) == 0);
    }
    mhf_cursor_free(cursor);
}

enum { DRAWS = 4000 };

static void several_stores(void)
{
    const mhf_data_file files[] = {{path_a, 3}, {path_b, 1}};
    const int64_t blocks[] = {BLOCKS_A, BLOCKS_B};
    mhf_cursor *cursor;
    CHECK_OK(mhf_cursor_new(files, 2, BLOCK, 42, &cursor));
    static int64_t at[DRAWS];
    int64_t drawn[2] = {0};
    bool seen[2][BLOCKS_A] = {{false}};
    for (int64_t g = 0; g < DRAWS; g++) {
        at[g] = place(cursor, g);
        int store = at[g] >= 1000;
        if (drawn[store] % blocks[store] == 0)
            memset(seen[store], 0, sizeof seen[store]);
        CU_ASSERT_FATAL(at[g] % 1000 < blocks[store]);
        CU_ASSERT_FALSE(seen[store][at[g] % 1000]);
        seen[store][at[g] % 1000] = true;
        drawn[store]++;
        if (g % 97 == 0) {
            mhf_token tokens[BLOCK];
            CHECK_OK(mhf_cursor_read(cursor, g, tokens, NULL));
            CU_ASSERT_EQUAL(tokens[3], token_of(store + 1, at[g] % 1000 * BLOCK + 3));
        }
    }
    /* Binomial: five standard deviations. */
    CU_ASSERT(fabs((double)drawn[0] - 0.75 * DRAWS) < 5 * sqrt(DRAWS * 0.75 * 0.25));
    /* Any block as the first question of a new cursor, or after going back. */
    for (int64_t g = DRAWS - 1; g >= 0; g -= 331) {
        mhf_cursor *fresh;
        CHECK_OK(mhf_cursor_new(files, 2, BLOCK, 42, &fresh));
        CU_ASSERT_EQUAL(place(fresh, g), at[g]);
        CU_ASSERT_EQUAL(place(cursor, g), at[g]);
        mhf_cursor_free(fresh);
    }
    mhf_cursor_free(cursor);
}

static void fingerprints(void)
{
    const mhf_data_file ab[] = {{path_a, 1}, {path_b, 1}}, ba[] = {{path_b, 1}, {path_a, 1}};
    mhf_cursor *a = open_one(1), *again = open_one(2), *both, *turned;
    CHECK_OK(mhf_cursor_new(ab, 2, BLOCK, 1, &both));
    CHECK_OK(mhf_cursor_new(ba, 2, BLOCK, 1, &turned));
    CU_ASSERT_EQUAL(mhf_cursor_fingerprint(a), mhf_cursor_fingerprint(again));
    CU_ASSERT_NOT_EQUAL(mhf_cursor_fingerprint(a), mhf_cursor_fingerprint(both));
    CU_ASSERT_NOT_EQUAL(mhf_cursor_fingerprint(both), mhf_cursor_fingerprint(turned));
    CU_ASSERT_EQUAL(mhf_cursor_store_info(both, 1)->n, BLOCKS_B * BLOCK);
    CU_ASSERT_PTR_NULL(mhf_cursor_store_info(both, 2));
    mhf_cursor_free(a);
    mhf_cursor_free(again);
    mhf_cursor_free(both);
    mhf_cursor_free(turned);
}

static void refused(void)
{
    const mhf_data_file files[] = {{path_a, 1}, {path_short, 1}, {"absent.h5", 1}};
    mhf_cursor *cursor;
    CU_ASSERT_EQUAL(mhf_cursor_new(files, 0, BLOCK, 1, &cursor), MHF_E_CONFIG);
    CU_ASSERT_EQUAL(mhf_cursor_new(files, 2, BLOCK, 1, &cursor), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), path_short));
    CU_ASSERT_EQUAL(mhf_cursor_new(files + 2, 1, BLOCK, 1, &cursor), MHF_E_IO);
}

/* A byte-level tokenizer of the 256 bytes and a special token or two. */
static mhf_status make_tokenizer(void)
{
    const mhf_tokenizer_training options = {.kind = MHF_BYTE_LEVEL, .vocab_size = 258};
    mhf_tokenizer_trainer *trainer;
    mhf_buf json = {0}, config = {0};
    MHF_TRY(mhf_tokenizer_trainer_new(&options, &trainer));
    mhf_status status = mhf_tokenizer_trainer_add(trainer, "abab", 4);
    if (status == MHF_OK)
        status = mhf_tokenizer_trainer_finish(trainer, &json, &config);
    if (status == MHF_OK)
        status =
            mhf_tokenizer_parse(json.data, json.n, config.data, config.n, "test", NULL, &tokenizer);
    mhf_tokenizer_trainer_free(trainer);
    mhf_buf_free(&json);
    mhf_buf_free(&config);
    return status;
}

int main(void)
{
    static const test_case cases[] = {
        {"every block once an epoch", epochs},
        {"tokens and documents of a block", reading},
        {"several stores by weight, from any block on", several_stores},
        {"fingerprints", fingerprints},
        {"what is refused", refused},
    };
    H5dont_atexit();
    snprintf(path_a, sizeof path_a, "cursor-%d-a.h5", (int)getpid());
    snprintf(path_b, sizeof path_b, "cursor-%d-b.h5", (int)getpid());
    snprintf(path_short, sizeof path_short, "cursor-%d-short.h5", (int)getpid());
    if (make_tokenizer() != MHF_OK || write_store(path_a, 1, BLOCKS_A * BLOCK + 5) != MHF_OK ||
        write_store(path_b, 2, BLOCKS_B * BLOCK) != MHF_OK ||
        write_store(path_short, 3, BLOCK - 1) != MHF_OK) {
        fprintf(stderr, "%s\n", mhf_error());
        return 1;
    }
    int failed = run_tests("train.cursor", cases, sizeof cases / sizeof *cases);
    remove(path_a);
    remove(path_b);
    remove(path_short);
    mhf_tokenizer_free(tokenizer);
    return failed;
}
