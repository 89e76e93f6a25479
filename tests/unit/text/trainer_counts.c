/* SPDX-License-Identifier: ISC */
/* Words counted in several trainers, or in another order, give the same tokenizer to the byte. */
#include "mhf/text.h"
#include "support.h"

enum { N_TEXTS = 400, VOCAB_SIZE = 2000, LONGEST = 60 };

/* Long words of two letters: the same spelling arises in many ways, and counts are often equal. */
static void make_texts(uint64_t seed, char texts[N_TEXTS][LONGEST + 1])
{
    mhf_rng rng = mhf_rng_named(seed, "texts");
    for (uint64_t i = 0; i < N_TEXTS; i++) {
        uint64_t n = 1 + mhf_rng_bits(rng, i * 128) % LONGEST;
        for (uint64_t k = 0; k < n; k++)
            texts[i][k] = "aaab"[mhf_rng_bits(rng, i * 128 + 1 + k) % 4];
        texts[i][n] = 0;
    }
}

static mhf_tokenizer_trainer *new_trainer(void)
{
    mhf_tokenizer_training options = {.kind = MHF_SENTENCEPIECE, .vocab_size = VOCAB_SIZE};
    mhf_tokenizer_trainer *trainer = NULL;
    CHECK_OK(mhf_tokenizer_trainer_new(&options, &trainer));
    return trainer;
}

static void finish(mhf_tokenizer_trainer *trainer, mhf_buf *json)
{
    mhf_buf config = {0};
    CHECK_OK(mhf_tokenizer_trainer_finish(trainer, json, &config));
    mhf_tokenizer_trainer_free(trainer);
    mhf_buf_free(&config);
}

static void add(mhf_tokenizer_trainer *trainer, const char *text)
{
    CHECK_OK(mhf_tokenizer_trainer_add(trainer, text, strlen(text)));
}

static bool equal(const mhf_buf *a, const mhf_buf *b)
{
    return a->n == b->n && memcmp(a->data, b->data, a->n) == 0;
}

/* Take all that `from` counted into `to`. */
static void move_counts(mhf_tokenizer_trainer *from, mhf_tokenizer_trainer *to)
{
    mhf_buf counts = {0};
    int64_t next = 0;
    do {
        mhf_buf_clear(&counts);
        CHECK_OK(mhf_tokenizer_trainer_counts(from, &next, &counts));
        CHECK_OK(mhf_tokenizer_trainer_add_counts(to, counts.data, counts.n));
    } while (counts.n > 0);
    CU_ASSERT_TRUE(next > 0);
    mhf_tokenizer_trainer_free(from);
    mhf_buf_free(&counts);
}

static void check_seed(uint64_t seed)
{
    static char texts[N_TEXTS][LONGEST + 1];
    mhf_buf one = {0}, other = {0};
    make_texts(seed, texts);
    mhf_tokenizer_trainer *trainer = new_trainer();
    for (int i = 0; i < N_TEXTS; i++)
        add(trainer, texts[i]);
    finish(trainer, &one);
    trainer = new_trainer();
    for (int i = N_TEXTS - 1; i >= 0; i--)
        add(trainer, texts[i]);
    finish(trainer, &other);
    CU_ASSERT_TRUE(equal(&one, &other));
    for (int n = 2; n <= 4; n++) {
        mhf_tokenizer_trainer *parts[4];
        for (int k = 0; k < n; k++)
            parts[k] = new_trainer();
        for (int i = 0; i < N_TEXTS; i++)
            add(parts[i % n], texts[i]);
        for (int k = 1; k < n; k++)
            move_counts(parts[k], parts[0]);
        finish(parts[0], &other);
        CU_ASSERT_TRUE(equal(&one, &other));
    }
    mhf_buf_free(&one);
    mhf_buf_free(&other);
}

static void test_same(void)
{
    for (uint64_t seed = 0; seed < 10; seed++)
        check_seed(seed);
}

/* Counts larger than one message: all words come over, none twice. */
static void test_many_words(void)
{
    enum { N = 30000, LENGTH = 600 };
    mhf_tokenizer_trainer *from = new_trainer(), *to = new_trainer();
    mhf_buf counts = {0}, counted = {0};
    char text[LENGTH + 1];
    memset(text, 'x', LENGTH);
    text[LENGTH] = 0;
    for (int i = 0; i < N; i++) {
        int n = snprintf(text, sizeof text, "%05d", i);
        text[n] = 'x';
        add(from, text);
    }
    int64_t next = 0, rounds = 0;
    for (bool more = true; more; rounds += more) {
        mhf_buf_clear(&counts);
        CHECK_OK(mhf_tokenizer_trainer_counts(from, &next, &counts));
        CHECK_OK(mhf_tokenizer_trainer_add_counts(to, counts.data, counts.n));
        more = counts.n > 0;
    }
    CU_ASSERT_EQUAL(next, N);
    CU_ASSERT_TRUE(rounds > 1);
    next = 0;
    for (bool more = true; more;) {
        size_t before = counted.n;
        mhf_buf_clear(&counts);
        CHECK_OK(mhf_tokenizer_trainer_counts(to, &next, &counts));
        CHECK_OK(mhf_buf_add(&counted, counts.data, counts.n));
        more = counted.n > before;
    }
    CU_ASSERT_EQUAL(next, N);
    CU_ASSERT_EQUAL(counted.n, (size_t)N * (16 + 3 + LENGTH)); /* 3: the "▁" in front */
    mhf_tokenizer_trainer_free(from);
    mhf_tokenizer_trainer_free(to);
    mhf_buf_free(&counts);
    mhf_buf_free(&counted);
}

static void test_no_counts(void)
{
    mhf_tokenizer_trainer *trainer = new_trainer();
    mhf_buf counts = {0};
    int64_t next = 0;
    CHECK_OK(mhf_tokenizer_trainer_counts(trainer, &next, &counts));
    CU_ASSERT_TRUE(counts.n == 0 && next == 0);
    CHECK_OK(mhf_tokenizer_trainer_add_counts(trainer, NULL, 0));
    add(trainer, "some words");
    CHECK_OK(mhf_tokenizer_trainer_counts(trainer, &next, &counts));
    CU_ASSERT_TRUE(counts.n > 16 && next == 2);
    for (size_t n = 1; n < 16; n++)
        CU_ASSERT_EQUAL(mhf_tokenizer_trainer_add_counts(trainer, counts.data, n), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_tokenizer_trainer_add_counts(trainer, counts.data, counts.n - 1),
                    MHF_E_DATA);
    counts.data[0] = 0; /* a count of nothing */
    CU_ASSERT_EQUAL(mhf_tokenizer_trainer_add_counts(trainer, counts.data, counts.n), MHF_E_DATA);
    counts.data[0] = 1;
    memset(counts.data + 8, 0xFF, 8); /* a word longer than memory */
    CU_ASSERT_EQUAL(mhf_tokenizer_trainer_add_counts(trainer, counts.data, counts.n), MHF_E_DATA);
    mhf_tokenizer_trainer_free(trainer);
    mhf_buf_free(&counts);
}

int main(void)
{
    mhf_log_start(MHF_LOG_ERROR, 0, 1);
    static const test_case cases[] = {
        {"the order and the place of counting don't matter", test_same},
        {"more words than a message holds", test_many_words},
        {"nothing counted, and bytes that are no counts", test_no_counts},
    };
    return run_tests("text.trainer_counts", cases, sizeof cases / sizeof *cases);
}
