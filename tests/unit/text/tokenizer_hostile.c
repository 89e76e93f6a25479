/* SPDX-License-Identifier: ISC */
/* Files that lie, are cut short, or ask for what is not built: each gives one sentence that names
 * the place, none a crash. */
#include "support.h"

#include "mhf/text.h"

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}"
#define SPLIT(regex)                                                                               \
    "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                       \
    "\"},\"behavior\":\"Isolated\"}," MODEL "}"

static const struct {
    const char *json, *said; /* part of the sentence */
} refused[] = {
    {"", "not valid JSON"},
    {"[]", "not a JSON object"},
    {"{}", "'model' is not an object"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0", "not valid JSON"},
    {"{\"version\":\"2.0\"," MODEL "}", "version '2.0'"},
    {"{\"truncation\":512," MODEL "}", "key 'truncation' is neither an object nor null"},
    {"{\"padding\":[]," MODEL "}", "key 'padding' is neither an object nor null"},
    /* models */
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "model 'Unigram' is not built"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "model 'WordPiece' is not built"},
    {"{\"model\":{\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}", "dropout"},
    {"{\"model\":{\"continuing_subword_prefix\":\"##\",\"vocab\":{},\"merges\":[]}}", "'##'"},
    {"{\"model\":{\"end_of_word_suffix\":\"</w>\",\"vocab\":{},\"merges\":[]}}", "'</w>'"},
    {"{\"model\":{\"vocab\":[],\"merges\":[]}}", "vocab is not an object"},
    {"{\"model\":{\"vocab\":{\"a\":0}}}", "merges is not a list"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"fuse_unk\":3}}", "'fuse_unk'"},
    /* ids */
    {"{\"model\":{\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]}}", "the id of 'b'"},
    {"{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "both have id 0"},
    {"{\"model\":{\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}}", "duplicate object key"},
    {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "the id of 'a'"},
    {"{\"model\":{\"vocab\":{\"a\":\"0\"},\"merges\":[]}}", "the id of 'a'"},
    {"{\"model\":{\"vocab\":{\"a\":0.5},\"merges\":[]}}", "the id of 'a'"},
    {"{\"model\":{\"vocab\":{\"a\":9223372036854775807},\"merges\":[]}}", "the id of 'a'"},
    {"{\"model\":{\"vocab\":{\"a\":9223372036854775808},\"merges\":[]}}", "too big integer"},
    /* merges */
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a z\"]}}", "merges[0]: part 'z'"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\"]]}}", "merges[0]: result 'aa'"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}}", "merges[0] is not a pair"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[7]}}", "merges[0] is not a pair"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merges[0] is not a pair"},
    /* added tokens */
    {"{\"added_tokens\":7," MODEL "}", "added_tokens is not a list"},
    {"{\"added_tokens\":[7]," MODEL "}", "added_tokens[0] is not an object"},
    {"{\"added_tokens\":[{\"id\":5,\"content\":\"c\"}]," MODEL "}", "has id 5, expected 2"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"a\"}]," MODEL "}", "has id 1, expected 0"},
    {"{\"added_tokens\":[{\"id\":4294967298,\"content\":\"c\"}]," MODEL "}", "'id'"},
    {"{\"normalizer\":{\"type\":\"Strip\"},\"added_tokens\":[{\"id\":2,\"content\":\" \"}]," MODEL
     "}",
     "0 bytes once normalized"},
    /* steps */
    {"{\"normalizer\":{\"type\":\"Nmt\"}," MODEL "}", "normalizer 'Nmt' is not built"},
    {"{\"normalizer\":{\"type\":\"Precompiled\"}," MODEL "}", "'Precompiled' is not built"},
    {"{\"normalizer\":{\"type\":\"Sequence\"}," MODEL "}", "'normalizers'"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}," MODEL
     "}",
     "empty pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," MODEL "}", "'BertPreTokenizer'"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}," MODEL "}", "one char"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"a\",\"prepend_scheme\":\"x\"}"
     "," MODEL "}",
     "prepend_scheme 'x'"},
    {"{\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"x\"}," MODEL "}",
     "behavior 'x' is not built"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":7}," MODEL "}", "'pattern'"},
    {"{\"decoder\":{\"type\":\"CTC\"}," MODEL "}", "decoder 'CTC' is not built"},
    {"{\"decoder\":{\"type\":\"Strip\",\"content\":\"a\",\"start\":-1,\"stop\":0}," MODEL "}",
     "'start'"},
    {"{\"post_processor\":{\"type\":\"x\"}," MODEL "}", "post-processor 'x' is not built"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," MODEL "}",
     "0 times sequence A"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
     "\"x\"}}],\"special_tokens\":{\"x\":{\"ids\":[2]}}}," MODEL "}",
     "not one of 0 to 1"},
    {"{\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{"
     "\"type\":"
     "\"RobertaProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]},{\"type\":\"BertProcessing\"}]}"
     "," MODEL "}",
     "a second post-processor"},
    /* expressions */
    {SPLIT("("), "regular expression '('"},
    {SPLIT("[a"), "an open"},
    {SPLIT("\\\\bx"), "'\\b' is not built"},
    {SPLIT("[a&&b]"), "'&&'"},
    {SPLIT("[a[b]]"), "'[b'"},
    {SPLIT("a{2}+"), "'{2}+'"},
    {SPLIT("(?x)a"), "'(?x)'"},
    {SPLIT("(?i:a\xC3\x9F)"), "case-insensitive matching of several letters with 'ß' is not built"},
    {SPLIT("(?i)\\\\x{df}"), "with 'ß' is not built"},
    {SPLIT("(?i)x|s(?:s)"), "with 'ß' is not built"},
    {SPLIT("(?i:(\\\\u0073S))"), "with 'ß' is not built"},
    {SPLIT("(?i:s{1}t)"), "with 'ﬅ' is not built"},
    {SPLIT("(?i:office)"), "with 'ﬀ' is not built"},
    {SPLIT("(?i:[a-zà-ž])"), "with 'İ' is not built"},
    {SPLIT("(?i:[\\\\w]x)"), "with 'ß' is not built"},
    {SPLIT("(?i)[^\\\\p{Lu}]"), "within case-insensitive brackets '\\p{Lu}' is not built"},
    {SPLIT("(*UTF)a"), "'(*'"},
    {SPLIT("\\\\p{Klingon}"), "unknown property"},
    {SPLIT("(?:a{60000}){60000}"), "too large"},
};

static mhf_status parse(const char *json, size_t n, mhf_tokenizer **out)
{
    return mhf_tokenizer_parse(json, n, NULL, 0, "t.json", NULL, out);
}

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        mhf_tokenizer *tokenizer;
        mhf_status status = parse(refused[i].json, strlen(refused[i].json), &tokenizer);
        CU_ASSERT_EQUAL(status, MHF_E_DATA);
        CU_ASSERT_PTR_NULL(tokenizer);
        bool said = status == MHF_E_DATA && strstr(mhf_error(), refused[i].said);
        if (!said)
            printf("\n    %s\n    said: %s\n", refused[i].json, status ? mhf_error() : "nothing");
        CU_ASSERT_TRUE(said);
        mhf_tokenizer_free(tokenizer);
    }
}

static void test_deep_nesting(void)
{
    enum { DEPTH = 100000 };
    mhf_buf json = {0};
    mhf_tokenizer *tokenizer;
    CHECK_OK(mhf_buf_add_text(&json, "{\"normalizer\":"));
    for (int i = 0; i < DEPTH; i++)
        CHECK_OK(mhf_buf_add_text(&json, "{\"type\":\"Sequence\",\"normalizers\":["));
    CU_ASSERT_EQUAL(parse(json.data, json.n, &tokenizer), MHF_E_DATA);
    mhf_buf_free(&json);
    /* what JSON still reads, the pipeline does too */
    CHECK_OK(mhf_buf_add_text(&json, "{\"normalizer\":"));
    for (int i = 0; i < 1000; i++)
        CHECK_OK(mhf_buf_add_text(&json, "{\"type\":\"Sequence\",\"normalizers\":["));
    for (int i = 0; i < 1000; i++)
        CHECK_OK(mhf_buf_add_text(&json, "]}"));
    CHECK_OK(mhf_buf_add_text(&json, "," MODEL "}"));
    CHECK_OK(parse(json.data, json.n, &tokenizer));
    mhf_tokenizer_free(tokenizer);
    mhf_buf_free(&json);
}

static void test_catastrophic_regex(void)
{
    const char *json = SPLIT("(?:a|a|aa)+[bc]x");
    char text[200];
    mhf_tokenizer *tokenizer;
    mhf_encoding encoding = {0};
    memset(text, 'a', sizeof text);
    CHECK_OK(parse(json, strlen(json), &tokenizer));
    double started = mhf_seconds();
    text[199] = 'b'; /* lets the search begin, and fail in every way there is */
    mhf_status status = mhf_tokenizer_encode(tokenizer, text, sizeof text, 0, &encoding);
    CU_ASSERT_TRUE(status == MHF_OK || status == MHF_E_DATA);
    text[198] = 'x';
    status = mhf_tokenizer_encode(tokenizer, text, sizeof text - 1, 0, &encoding);
    CU_ASSERT_TRUE(status == MHF_OK || status == MHF_E_DATA);
    CU_ASSERT_TRUE(mhf_seconds() - started < 60);
    /* the same tokenizer goes on with a text that it can cut */
    CHECK_OK(mhf_tokenizer_encode(tokenizer, "ab", 2, 0, &encoding));
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
    json = SPLIT("(?:(?:a+)+)+(?<=b)");
    CHECK_OK(parse(json, strlen(json), &tokenizer));
    memset(text, 'a', sizeof text);
    CU_ASSERT_EQUAL(mhf_tokenizer_encode(tokenizer, text, sizeof text, 0, &encoding), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "regular expression"));
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
}

/* Every prefix of a file, and bytes changed at random: refused, or a tokenizer that works. */
static void try_bytes(const char *json, size_t n)
{
    static const char text[] = "a  b\xFF \xE2\x96\x81 <s>ab\xCC\x81";
    mhf_tokenizer *tokenizer;
    mhf_encoding encoding = {0};
    mhf_buf decoded = {0};
    mhf_status status = parse(json, n, &tokenizer);
    CU_ASSERT_TRUE(status == MHF_OK || status == MHF_E_DATA);
    if (status == MHF_OK) {
        status = mhf_tokenizer_encode(tokenizer, text, sizeof text - 1,
                                      MHF_ENCODE_RANGES | MHF_ENCODE_TEMPLATE, &encoding);
        CU_ASSERT_TRUE(status == MHF_OK || status == MHF_E_DATA);
        CHECK_OK(mhf_tokenizer_decode(tokenizer, encoding.ids, encoding.n, false, &decoded));
    }
    mhf_encoding_free(&encoding);
    mhf_buf_free(&decoded);
    mhf_tokenizer_free(tokenizer);
}

static void test_damage(void)
{
    static const char whole[] =
        "{\"added_tokens\":[{\"id\":7,\"content\":\"<s>\",\"special\":true,\"lstrip\":true}],"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}]},"
        "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"split\":true},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
        "\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[7]}"
        "}},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
        "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"u\",\"fuse_unk\":true,"
        "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"▁\":3,\"▁a\":4,\"u\":5,\"<0xFF>\":6},"
        "\"merges\":[\"a b\",[\"▁\",\"a\"]]}}";
    char changed[sizeof whole];
    mhf_rng rng = mhf_rng_named(7, "damage");
    for (size_t n = 0; n < sizeof whole; n++)
        try_bytes(whole, n);
    for (uint64_t i = 0; i < 20000; i++) {
        memcpy(changed, whole, sizeof whole);
        for (uint64_t j = 0; j < 1 + i % 3; j++) {
            uint64_t bits = mhf_rng_bits(rng, i * 4 + j);
            static const char other[] = "0123456789{}[],:\"ab \\+*?-";
            changed[bits % (sizeof whole - 1)] = other[(bits >> 32) % (sizeof other - 1)];
        }
        try_bytes(changed, sizeof whole - 1);
    }
}

/* No character is in the vocabulary and nothing stands for the unknown: no tokens, however often.
 */
static void test_no_tokens(void)
{
    mhf_tokenizer *tokenizer;
    mhf_encoding encoding = {0};
    CHECK_OK(parse("{" MODEL "}", strlen("{" MODEL "}"), &tokenizer));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mhf_tokenizer_encode(tokenizer, "zz", 2, 0, &encoding));
        CU_ASSERT_EQUAL(encoding.n, 0);
    }
    CHECK_OK(mhf_tokenizer_encode(tokenizer, "zazb", 4, 0, &encoding));
    CU_ASSERT_EQUAL(encoding.n, 2);
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
}

static void test_files(void)
{
    mhf_tokenizer *tokenizer;
    CU_ASSERT_EQUAL(mhf_tokenizer_load("no/such/folder", NULL, &tokenizer), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "no/such/folder"));
    CU_ASSERT_PTR_NULL(tokenizer);
}

/* Thirty steps, each of which makes ten of one: a file of some KB that asks for 10^30 bytes. */
static void test_growing_normalizer(void)
{
    mhf_buf json = {0};
    CHECK_OK(mhf_buf_add_text(&json, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["));
    for (int i = 0; i < 30; i++)
        CHECK_OK(mhf_buf_printf(&json,
                                "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                                "\"content\":\"aaaaaaaaaa\"}",
                                i ? "," : ""));
    CHECK_OK(mhf_buf_add_text(&json, "]}," MODEL "}"));
    mhf_tokenizer *tokenizer;
    mhf_encoding encoding = {0};
    CHECK_OK(mhf_tokenizer_parse(json.data, json.n, NULL, 0, "t.json", NULL, &tokenizer));
    CU_ASSERT_EQUAL(mhf_tokenizer_encode(tokenizer, "a", 1, MHF_ENCODE_RANGES, &encoding),
                    MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "normalizers make more than"));
    CHECK_OK(mhf_tokenizer_encode(tokenizer, "b", 1, MHF_ENCODE_RANGES, &encoding));
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
    mhf_buf_free(&json);
}

int main(void)
{
    const test_case cases[] = {
        {"each refusal names its place", test_refused},
        {"deep nesting", test_deep_nesting},
        {"catastrophic expressions", test_catastrophic_regex},
        {"a normalizer that grows", test_growing_normalizer},
        {"cut short and damaged", test_damage},
        {"texts without tokens", test_no_tokens},
        {"files", test_files},
    };
    return run_tests("text.tokenizer_hostile", cases, sizeof cases / sizeof cases[0]);
}
