/* SPDX-License-Identifier: ISC */
#include <omp.h>
#include <unistd.h>

#include "mhf/text.h"
#include "support.h"

/* Owner of what a trained or extended tokenizer is. */
typedef struct trained {
    mhf_buf json, config;
} trained;

static void trained_free(trained *t)
{
    mhf_buf_free(&t->json);
    mhf_buf_free(&t->config);
}

static json_t *parse(const mhf_buf *text)
{
    json_t *json = NULL;
    CHECK_OK(mhf_json_parse(text->data, text->n, "the trained tokenizer", &json));
    return json;
}

static json_t *model_member(json_t *json, const char *key)
{
    return json_object_get(json_object_get(json, "model"), key);
}

/* ---- against golden files ------------------------------------------------------------------- */

static void train_like(const mhf_tokenizer *like, const char *corpus, int32_t vocab_size,
                       trained *out)
{
    mhf_tokenizer_training options = {.like = like, .vocab_size = vocab_size};
    mhf_tokenizer_trainer *trainer;
    CHECK_OK(mhf_tokenizer_trainer_new(&options, &trainer));
    CHECK_OK(mhf_tokenizer_trainer_add_file(trainer, corpus));
    CHECK_OK(mhf_tokenizer_trainer_finish(trainer, &out->json, &out->config));
    mhf_tokenizer_trainer_free(trainer);
}

/* The golden tokenizer with Metaspace's "split" set, as some of the golden trainings want it. */
static mhf_tokenizer *load_like(const char *folder, bool split)
{
    json_t *json = NULL;
    mhf_buf path = {0}, text = {0};
    mhf_tokenizer *like = NULL;
    CHECK_OK(mhf_path_join(folder, "tokenizer.json", &path));
    CHECK_OK(mhf_json_read(path.data, &json));
    if (split)
        CU_ASSERT_EQUAL(
            json_object_set_new(json_object_get(json, "pre_tokenizer"), "split", json_true()), 0);
    CHECK_OK(mhf_json_print(json, &text));
    CHECK_OK(mhf_tokenizer_parse(text.data, text.n, NULL, 0, folder, NULL, &like));
    json_decref(json);
    mhf_buf_free(&path);
    mhf_buf_free(&text);
    return like;
}

static void check_scratch(const char *folder, bool split, int32_t vocab_size, const char *expected)
{
    const char *corpus = golden("bpe_train/corpus.txt"), *like_path = golden(folder);
    const char *path = golden(expected);
    if (!corpus || !like_path || !path)
        return;
    trained found = {0};
    mhf_tokenizer *like = load_like(like_path, split);
    train_like(like, corpus, vocab_size, &found);
    json_t *mine = parse(&found.json), *theirs = NULL;
    CHECK_OK(mhf_json_read(path, &theirs));
    static const char *const keys[] = {"vocab", "merges", "unk_token", "byte_fallback"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CU_ASSERT_TRUE(json_equal(model_member(mine, keys[i]), model_member(theirs, keys[i])));
    static const char *const parts[] = {"added_tokens", "normalizer", "pre_tokenizer",
                                        "post_processor", "decoder"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CU_ASSERT_TRUE(
            json_equal(json_object_get(mine, parts[i]), json_object_get(theirs, parts[i])));
    json_decref(mine);
    json_decref(theirs);
    mhf_tokenizer_free(like);
    trained_free(&found);
}

static void test_scratch_byte_level(void)
{
    check_scratch("tokenizers/bytelevel", false, 559,
                  "bpe_train/scratch-bytelevel-559.tokenizer.json");
    check_scratch("tokenizers/bytelevel", false, 959,
                  "bpe_train/scratch-bytelevel-959.tokenizer.json");
}

static void test_scratch_sentencepiece(void)
{
    check_scratch("tokenizers/spm", false, 420, "bpe_train/scratch-spm-420.tokenizer.json");
    check_scratch("tokenizers/spm", false, 700, "bpe_train/scratch-spm-700.tokenizer.json");
    check_scratch("tokenizers/spm", true, 420, "bpe_train/scratch-spm-split-420.tokenizer.json");
    check_scratch("tokenizers/spm", true, 700, "bpe_train/scratch-spm-split-700.tokenizer.json");
}

/* Paths of the three texts; false when one is missing. golden() keeps 8 paths. */
static bool extension_texts(const char *paths[3])
{
    paths[0] = golden("bpe_train/text_cmn_Hani.txt");
    paths[1] = golden("bpe_train/text_arb_Arab.txt");
    paths[2] = golden("bpe_train/text_hin_Deva.txt");
    return paths[0] && paths[1] && paths[2];
}

static void check_extended(const char *folder, int32_t per_text, const char *expected)
{
    const char *paths[3], *source = golden(folder), *path = golden(expected);
    if (!source || !path || !extension_texts(paths))
        return;
    trained found = {0};
    mhf_tokenizer *tokenizer;
    CHECK_OK(mhf_tokenizer_load(source, NULL, &tokenizer));
    CHECK_OK(mhf_tokenizer_extend(tokenizer, paths, 3, per_text, MHF_EXTEND_REFERENCE, &found.json,
                                  &found.config));
    json_t *mine = parse(&found.json), *theirs = NULL;
    CHECK_OK(mhf_json_read(path, &theirs));
    CU_ASSERT_TRUE(json_equal(model_member(mine, "vocab"), model_member(theirs, "vocab")));
    CU_ASSERT_TRUE(json_equal(model_member(mine, "merges"), model_member(theirs, "merges")));
    CU_ASSERT_TRUE(json_equal(mine, theirs)); /* all other keys too */
    json_decref(mine);
    json_decref(theirs);
    mhf_tokenizer_free(tokenizer);
    trained_free(&found);
}

static void test_extend_reference(void)
{
    check_extended("tokenizers/spm", 64, "bpe_train/expanded-spm/tokenizer.json");
    check_extended("tokenizers/bytelevel", 48, "bpe_train/expanded-bytelevel/tokenizer.json");
}

/* Tokens of the lines of a text; each is marked in `seen` unless that is NULL. */
static int64_t count_tokens(const mhf_tokenizer *tokenizer, const char *path, bool *seen)
{
    mhf_corpus *corpus;
    mhf_encoding encoding = {0};
    int64_t total = 0;
    CHECK_OK(mhf_corpus_open(path, &corpus));
    for (bool end = false; !end;) {
        const char *text;
        size_t n;
        CHECK_OK(mhf_corpus_next_line(corpus, &text, &n, &end));
        if (end)
            break;
        CHECK_OK(mhf_tokenizer_encode(tokenizer, text, n, MHF_ENCODE_PLAIN, &encoding));
        total += encoding.n;
        for (int64_t i = 0; i < encoding.n && seen; i++)
            seen[encoding.ids[i]] = true;
    }
    mhf_corpus_close(corpus);
    mhf_encoding_free(&encoding);
    return total;
}

/* Is the token part of a longer one that is new? */
static bool is_inside(const mhf_tokenizer *tokenizer, mhf_token id, mhf_token first_new)
{
    size_t n, n_other;
    const char *piece = mhf_tokenizer_piece(tokenizer, id, &n);
    for (mhf_token other = first_new; other < mhf_tokenizer_size(tokenizer); other++) {
        const char *whole = mhf_tokenizer_piece(tokenizer, other, &n_other);
        if (n_other > n && memmem(whole, n_other, piece, n))
            return true;
    }
    return false;
}

/* What extension is for: its texts become shorter, others don't become longer, and every new token
 * is met in a text but for those that only served to make longer ones. */
static void check_extension_serves(const mhf_tokenizer *old, const mhf_tokenizer *new,
                                   const char *const *paths, int32_t n_paths)
{
    bool *seen = calloc((size_t)mhf_tokenizer_size(new), sizeof *seen);
    for (int32_t k = 0; k < n_paths; k++) {
        int64_t before = count_tokens(old, paths[k], NULL);
        CU_ASSERT_TRUE(count_tokens(new, paths[k], seen) < before);
    }
    for (mhf_token id = mhf_tokenizer_size(old); id < mhf_tokenizer_size(new); id++)
        CU_ASSERT_TRUE(seen[id] || is_inside(new, id, mhf_tokenizer_size(old)));
    const char *other = golden("bpe_train/corpus.txt");
    CU_ASSERT_TRUE(!other || count_tokens(new, other, NULL) <= count_tokens(old, other, NULL));
    free(seen);
}

static void check_extended_exactly(const char *folder, int32_t per_text)
{
    const char *paths[3], *source = golden(folder);
    if (!source || !extension_texts(paths))
        return;
    trained found = {0};
    mhf_tokenizer *old, *new = NULL;
    CHECK_OK(mhf_tokenizer_load(source, NULL, &old));
    for (int32_t n = 1; n <= 3; n += 2) {
        CHECK_OK(mhf_tokenizer_extend(old, paths, n, per_text, MHF_EXTEND_EXACT, &found.json,
                                      &found.config));
        CHECK_OK(mhf_tokenizer_parse(found.json.data, found.json.n, found.config.data,
                                     found.config.n, "extended", NULL, &new));
        CU_ASSERT_EQUAL(mhf_tokenizer_size(new), mhf_tokenizer_size(old) + n * per_text);
        CU_ASSERT_EQUAL(mhf_tokenizer_base_size(new), mhf_tokenizer_size(new));
        CU_ASSERT_EQUAL(mhf_tokenizer_unk(new), mhf_tokenizer_unk(old));
        CU_ASSERT_EQUAL(mhf_tokenizer_eos(new), mhf_tokenizer_eos(old));
        for (mhf_token id = 0; id < mhf_tokenizer_size(old); id++) {
            size_t n_old, n_new;
            const char *a = mhf_tokenizer_piece(old, id, &n_old);
            const char *b = mhf_tokenizer_piece(new, id, &n_new);
            CU_ASSERT_TRUE(n_old == n_new && memcmp(a, b, n_old) == 0);
        }
        check_extension_serves(old, new, paths, n);
        mhf_tokenizer_free(new);
    }
    CU_ASSERT_EQUAL(
        mhf_tokenizer_extend(old, paths, 1, 5000, MHF_EXTEND_EXACT, &found.json, &found.config),
        MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "text_cmn_Hani"));
    CU_ASSERT_EQUAL(
        mhf_tokenizer_extend(old, paths, 1, 0, MHF_EXTEND_EXACT, &found.json, &found.config),
        MHF_E_USAGE);
    mhf_tokenizer_free(old);
    trained_free(&found);
}

static void test_extend_exact(void)
{
    for (int32_t per_text = 1; per_text < 70; per_text += 17)
        check_extended_exactly("tokenizers/spm", per_text);
    check_extended_exactly("tokenizers/bytelevel", 48);
}

/* ---- own kinds ------------------------------------------------------------------------------ */

static const char *const some_texts[] = {
    "the cat sat on the mat, and the hat",
    "that cat, the fat cat; that's the cat",
    "",
    "  two  spaces and\ttabs \n lines",
    "caf\xC3\xA9 na\xC3\xAFve \xE2\x80\x94 12345 \xF0\x9F\x98\x80",
};
enum { N_TEXTS = sizeof some_texts / sizeof *some_texts };

static mhf_status train_kind(mhf_tokenizer_kind kind, int32_t vocab_size, int threads, int repeats,
                             trained *out)
{
    static const char *const special[] = {"<|user|>", "</s>"};
    mhf_tokenizer_training options = {
        .kind = kind, .vocab_size = vocab_size, .special = special, .n_special = 2};
    mhf_tokenizer_trainer *trainer;
    omp_set_num_threads(threads);
    CHECK_OK(mhf_tokenizer_trainer_new(&options, &trainer));
    for (int i = 0; i < repeats * N_TEXTS; i++) {
        const char *text = some_texts[i % N_TEXTS];
        CHECK_OK(mhf_tokenizer_trainer_add(trainer, text, strlen(text)));
    }
    mhf_status status = mhf_tokenizer_trainer_finish(trainer, &out->json, &out->config);
    mhf_tokenizer_trainer_free(trainer);
    return status;
}

static mhf_tokenizer *load(const trained *t)
{
    mhf_tokenizer *tokenizer = NULL;
    CHECK_OK(mhf_tokenizer_parse(t->json.data, t->json.n, t->config.data, t->config.n, "trained",
                                 NULL, &tokenizer));
    return tokenizer;
}

static bool is_piece(const mhf_tokenizer *tokenizer, mhf_token id, const char *expected)
{
    size_t n;
    const char *piece = id < 0 ? NULL : mhf_tokenizer_piece(tokenizer, id, &n);
    return piece && n == strlen(expected) && memcmp(piece, expected, n) == 0;
}

/* Every text comes back from its tokens, known or not. */
static void check_round_trip(const mhf_tokenizer *tokenizer, const char *text)
{
    mhf_encoding encoding = {0};
    mhf_buf decoded = {0};
    CHECK_OK(mhf_tokenizer_encode(tokenizer, text, strlen(text), MHF_ENCODE_PLAIN, &encoding));
    CHECK_OK(mhf_tokenizer_decode(tokenizer, encoding.ids, encoding.n, false, &decoded));
    CU_ASSERT_EQUAL(decoded.n, strlen(text));
    CU_ASSERT_TRUE(decoded.n == 0 || memcmp(decoded.data, text, decoded.n) == 0);
    mhf_encoding_free(&encoding);
    mhf_buf_free(&decoded);
}

static void test_byte_level(void)
{
    trained t = {0};
    CHECK_OK(train_kind(MHF_BYTE_LEVEL, 290, 1, 1, &t));
    mhf_tokenizer *tokenizer = load(&t);
    CU_ASSERT_EQUAL(mhf_tokenizer_size(tokenizer), 290);
    CU_ASSERT_EQUAL(mhf_tokenizer_base_size(tokenizer), 290);
    CU_ASSERT_TRUE(is_piece(tokenizer, 0, "<|endoftext|>"));
    CU_ASSERT_TRUE(is_piece(tokenizer, 1, "<|user|>"));
    CU_ASSERT_TRUE(is_piece(tokenizer, 3, "!"));
    CU_ASSERT_EQUAL(mhf_tokenizer_eos(tokenizer), 0);
    CU_ASSERT_EQUAL(mhf_tokenizer_pad(tokenizer), 0);
    CU_ASSERT_EQUAL(mhf_tokenizer_bos(tokenizer), -1);
    CU_ASSERT_EQUAL(mhf_tokenizer_unk(tokenizer), -1);
    CU_ASSERT_TRUE(mhf_tokenizer_is_special(tokenizer, 1));
    CU_ASSERT_TRUE(mhf_tokenizer_id(tokenizer,
                                    "\xC4\xA0"
                                    "cat",
                                    5) > 258);
    mhf_encoding encoding = {0};
    CHECK_OK(mhf_tokenizer_encode(tokenizer, "the cat", 7, MHF_ENCODE_TEMPLATE, &encoding));
    CU_ASSERT_TRUE(encoding.n >= 2 && encoding.n < 8 && encoding.ids[encoding.n - 1] == 0);
    CU_ASSERT_TRUE(encoding.n > 0 && encoding.ids[0] != 0);
    for (int i = 0; i < N_TEXTS; i++)
        check_round_trip(tokenizer, some_texts[i]);
    check_round_trip(tokenizer, "unseen: \xE4\xBD\xA0\xE5\xA5\xBD");
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
    trained_free(&t);
}

static void test_sentencepiece(void)
{
    trained t = {0};
    CHECK_OK(train_kind(MHF_SENTENCEPIECE, 310, 1, 1, &t));
    mhf_tokenizer *tokenizer = load(&t);
    CU_ASSERT_EQUAL(mhf_tokenizer_size(tokenizer), 310);
    CU_ASSERT_TRUE(is_piece(tokenizer, 0, "<unk>"));
    CU_ASSERT_TRUE(is_piece(tokenizer, 2, "</s>")); /* asked for as special, and one already */
    CU_ASSERT_TRUE(is_piece(tokenizer, 3, "<|user|>"));
    CU_ASSERT_TRUE(is_piece(tokenizer, 4, "<0x00>"));
    CU_ASSERT_TRUE(is_piece(tokenizer, 259, "<0xFF>"));
    CU_ASSERT_EQUAL(mhf_tokenizer_unk(tokenizer), 0);
    CU_ASSERT_EQUAL(mhf_tokenizer_bos(tokenizer), 1);
    CU_ASSERT_EQUAL(mhf_tokenizer_eos(tokenizer), 2);
    CU_ASSERT_EQUAL(mhf_tokenizer_pad(tokenizer), -1);
    CU_ASSERT_TRUE(mhf_tokenizer_id(tokenizer, "\xE2\x96\x81the", 6) > 259);
    mhf_encoding encoding = {0};
    CHECK_OK(mhf_tokenizer_encode(tokenizer, "the cat", 7, MHF_ENCODE_TEMPLATE, &encoding));
    CU_ASSERT_TRUE(encoding.n >= 2 && encoding.ids[0] == 1);
    for (int i = 0; i < N_TEXTS; i++)
        if (some_texts[i][0] != ' ') /* the first space stands for the prepended one, and goes */
            check_round_trip(tokenizer, some_texts[i]);
    check_round_trip(tokenizer, "unseen: \xE4\xBD\xA0\xE5\xA5\xBD");
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
    trained_free(&t);
}

static void test_threads(void)
{
    trained one = {0}, many = {0};
    for (int kind = MHF_BYTE_LEVEL; kind <= MHF_SENTENCEPIECE; kind++) {
        CHECK_OK(train_kind((mhf_tokenizer_kind)kind, 310, 1, 40, &one));
        CHECK_OK(train_kind((mhf_tokenizer_kind)kind, 310, 4, 40, &many));
        CU_ASSERT_TRUE(one.json.n == many.json.n &&
                       memcmp(one.json.data, many.json.data, one.json.n) == 0);
    }
    trained_free(&one);
    trained_free(&many);
}

static void test_sizes(void)
{
    trained t = {0};
    /* More than the texts give: as many as they give. */
    CHECK_OK(train_kind(MHF_BYTE_LEVEL, 5000, 1, 1, &t));
    mhf_tokenizer *tokenizer = load(&t);
    CU_ASSERT_TRUE(mhf_tokenizer_size(tokenizer) > 290 && mhf_tokenizer_size(tokenizer) < 1000);
    mhf_tokenizer_free(tokenizer);
    /* Less than the alphabet. */
    CU_ASSERT_EQUAL(train_kind(MHF_BYTE_LEVEL, 258, 1, 1, &t), MHF_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "258"));
    mhf_tokenizer_training options = {.vocab_size = 0};
    mhf_tokenizer_trainer *trainer;
    CU_ASSERT_EQUAL(mhf_tokenizer_trainer_new(&options, &trainer), MHF_E_USAGE);
    static const char *const bad[] = {"\xFF"};
    options = (mhf_tokenizer_training){.vocab_size = 300, .special = bad, .n_special = 1};
    CU_ASSERT_EQUAL(mhf_tokenizer_trainer_new(&options, &trainer), MHF_E_USAGE);
    trained_free(&t);
}

int main(void)
{
    mhf_log_start(MHF_LOG_ERROR, 0, 1);
    static const test_case cases[] = {
        {"golden byte-level trainings", test_scratch_byte_level},
        {"golden SentencePiece trainings", test_scratch_sentencepiece},
        {"golden extensions", test_extend_reference},
        {"exact extensions", test_extend_exact},
        {"byte-level kind", test_byte_level},
        {"SentencePiece kind", test_sentencepiece},
        {"any number of threads", test_threads},
        {"sizes and bad options", test_sizes},
    };
    return run_tests("trainer", cases, sizeof cases / sizeof *cases);
}
