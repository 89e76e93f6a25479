/* SPDX-License-Identifier: ISC */
/* Small tokenizers made here: what each part of the pipeline does, ranges, special tokens, and
 * files that lie. */
#include "support.h"

#include "mhf/text.h"

/* A tokenizer.json of a pipeline over a small vocabulary; parts are JSON texts. */
typedef struct recipe {
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder, *added, *vocab, *merges,
        *options, /* of the model, each followed by a comma */
        *limits;  /* truncation and padding, the same way */
} recipe;

static void write_recipe(const recipe *r, mhf_buf *out)
{
    CHECK_OK(mhf_buf_printf(
        out,
        "{\"version\":\"1.0\",%s\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,"
        "\"decoder\":%s,\"added_tokens\":%s,\"model\":{\"type\":\"BPE\",%s\"vocab\":%s,"
        "\"merges\":%s}}",
        r->limits ? r->limits : "", r->normalizer ? r->normalizer : "null",
        r->pre_tokenizer ? r->pre_tokenizer : "null",
        r->post_processor ? r->post_processor : "null", r->decoder ? r->decoder : "null",
        r->added ? r->added : "[]", r->options ? r->options : "", r->vocab,
        r->merges ? r->merges : "[]"));
}

static mhf_status parse_recipe(const recipe *r, const char *config, mhf_tokenizer **out)
{
    mhf_buf json = {0};
    write_recipe(r, &json);
    mhf_status status = mhf_tokenizer_parse(json.data, json.n, config, config ? strlen(config) : 0,
                                            "t.json", NULL, out);
    mhf_buf_free(&json);
    return status;
}

/* The pieces of a text as one string, parted by "|"; "error" when it can't be encoded. */
static const char *pieces(const recipe *r, const char *text)
{
    static char line[4096];
    mhf_tokenizer *tokenizer;
    mhf_encoding encoding = {0};
    CHECK_OK(parse_recipe(r, NULL, &tokenizer));
    mhf_status status = mhf_tokenizer_encode(tokenizer, text, strlen(text), 0, &encoding);
    size_t at = 0;
    line[0] = 0;
    for (int64_t i = 0; status == MHF_OK && i < encoding.n; i++) {
        size_t n;
        const char *piece = mhf_tokenizer_piece(tokenizer, encoding.ids[i], &n);
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%.*s", i ? "|" : "", (int)n, piece);
    }
    mhf_encoding_free(&encoding);
    mhf_tokenizer_free(tokenizer);
    return status == MHF_OK ? line : "error";
}

#define VOCAB                                                                                      \
    "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5,\" \":6,\"1\":7,\".\":8,\"A\":9,"        \
    "\"<unk>\":10,\"▁\":11,\"▁a\":12,\"é\":13,\"e\":14,\"\xCC\x81\":15}"
#define MERGES "[\"a b\",[\"b\",\"c\"],\"ab c\",\"▁ a\"]"

static void test_merges(void)
{
    recipe r = {.vocab = VOCAB, .merges = MERGES};
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abc"), "abc");
    CU_ASSERT_STRING_EQUAL(pieces(&r, "bcab"), "bc|ab");
    CU_ASSERT_STRING_EQUAL(pieces(&r, ""), "");
    CU_ASSERT_STRING_EQUAL(pieces(&r, "axb"), "ab"); /* no unk_token: what is unknown is dropped */
    r.merges = "[\"b c\",\"a b\"]";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abc"), "a|bc"); /* rank goes before place */
    r.options = "\"ignore_merges\":true,";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abc"), "abc"); /* a whole word is looked up first */
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abca"), "a|bc|a");
}

static void test_unknown(void)
{
    recipe r = {.vocab = VOCAB, .merges = MERGES, .options = "\"unk_token\":\"<unk>\","};
    CU_ASSERT_STRING_EQUAL(pieces(&r, "axyb"), "a|<unk>|<unk>|b");
    r.options = "\"unk_token\":\"<unk>\",\"fuse_unk\":true,";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "axyb"), "a|<unk>|b");
    r.options = "\"unk_token\":\"<none>\",";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "ab"), "ab");
    CU_ASSERT_STRING_EQUAL(pieces(&r, "xb"), "error");
    /* a byte token that isn't one is a piece like others */
    recipe bytes = {.vocab = "{\"<0x-1>\":0,\"<0x78>\":1,\"a\":2}",
                    .options = "\"byte_fallback\":true,",
                    .decoder = "{\"type\":\"ByteFallback\"}"};
    CU_ASSERT_STRING_EQUAL(pieces(&bytes, "axa"), "a|<0x78>|a");
    mhf_tokenizer *tokenizer;
    mhf_buf text = {0};
    const mhf_token ids[] = {2, 0, 1};
    CHECK_OK(parse_recipe(&bytes, NULL, &tokenizer));
    CHECK_OK(mhf_tokenizer_decode(tokenizer, ids, 3, false, &text));
    CU_ASSERT_STRING_EQUAL(text.data, "a<0x-1>x");
    CU_ASSERT_EQUAL(mhf_tokenizer_bytes(tokenizer, 0), 6);
    CU_ASSERT_EQUAL(mhf_tokenizer_bytes(tokenizer, 1), 1);
    mhf_buf_free(&text);
    mhf_tokenizer_free(tokenizer);
}

static void test_normalizers(void)
{
    recipe r = {.vocab = VOCAB, .normalizer = "{\"type\":\"NFC\"}"};
    CU_ASSERT_STRING_EQUAL(pieces(&r, "ae\xCC\x81"), "a|é");
    CU_ASSERT_STRING_EQUAL(pieces(&r, "e\xCC\x81\xCC\x81"), "é|\xCC\x81");
    r.normalizer = "{\"type\":\"NFD\"}";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "é"), "e|\xCC\x81");
    r.normalizer = "{\"type\":\"NFKC\"}";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "\xEF\xBD\x81"), "a"); /* full-width a */
    r.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
                   "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"}]}";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "éA"), "e|a");
    r.normalizer =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"▁\"}"
        ",{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}]}";
    r.merges = MERGES;
    CU_ASSERT_STRING_EQUAL(pieces(&r, "a b"), "▁a|▁|b");
    /* U+11A8 is a final that joins the syllable, U+11A7 before it is none */
    recipe hangul = {.vocab = "{\"퀴\":0,\"\\u11A7\":1,\"퀵\":2}",
                     .normalizer = "{\"type\":\"NFC\"}"};
    CU_ASSERT_STRING_EQUAL(pieces(&hangul, "퀴\xE1\x86\xA8"), "퀵");
    CU_ASSERT_STRING_EQUAL(pieces(&hangul, "퀴\xE1\x86\xA7"), "퀴|\xE1\x86\xA7");
    CU_ASSERT_STRING_EQUAL(pieces(&hangul, "\xE1\x84\x8F\xE1\x85\xB1\xE1\x86\xA7"),
                           "퀴|\xE1\x86\xA7");
    /* Unicode 12.1 gave U+32FF its parts, 2.0 gave U+3399 its */
    recipe late = {.vocab = "{\"\u32FF\":0,\"f\":1,\"m\":2}", .normalizer = "{\"type\":\"NFKC\"}"};
    CU_ASSERT_STRING_EQUAL(pieces(&late, "\u32FF\u3399"), "\u32FF|f|m");
}

/* A split that removes what an expression finds shows what that is. */
static void test_classes(void)
{
    static const struct {
        const char *regex, *expected;
    } cases[] = {{"\\\\p{Han}", "a|、|²|\u0308"},
                 {"\\\\P{Han}", "中"},
                 {"\\\\p{^Han}", "中"},
                 {"\\\\w", "、"},
                 {"[\\\\w]", "、|²"},
                 {"\\\\W", "a|中|²|\u0308"},
                 {"\\\\p{M}", "a|中|、|²"},
                 {"[\\\\p{Han}a]", "、|²|\u0308"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[200];
        snprintf(json, sizeof json,
                 "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Removed\"}",
                 cases[i].regex);
        recipe r = {.vocab = "{\"a\":0,\"中\":1,\"、\":2,\"²\":3,\"\\u0308\":4}",
                    .pre_tokenizer = json};
        CU_ASSERT_STRING_EQUAL(pieces(&r, "a中、²\u0308"), cases[i].expected);
    }
}

static void test_behaviors(void)
{
    static const struct {
        const char *behavior, *expected;
    } cases[] = {{"Removed", "a|b"},
                 {"Isolated", "a| | |b"},
                 {"MergedWithPrevious", "a | |b"},
                 {"MergedWithNext", "a| | b"},
                 {"Contiguous", "a|  |b"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char step[256];
        snprintf(step, sizeof step,
                 "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s\"},\"behavior\":\"%s\","
                 "\"invert\":false}",
                 cases[i].behavior);
        recipe r = {.vocab = "{\"a\":0,\"b\":1,\" \":2,\"a \":3,\" b\":4,\"  \":5}",
                    .merges = "[[\"a\",\" \"],[\" \",\"b\"],[\" \",\" \"]]",
                    .pre_tokenizer = step};
        CU_ASSERT_STRING_EQUAL(pieces(&r, "a  b"), cases[i].expected);
    }
}

/* The parts of a text, each after "_". */
static void check_parts(const char *regex, const char *behavior, bool invert, const char *text,
                        const char *expected)
{
    char step[400], found[200];
    snprintf(step, sizeof step,
             "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
             "\"%s\"},\"behavior\":\"%s\",\"invert\":%s},{\"type\":\"Metaspace\",\"replacement\":"
             "\"_\",\"split\":false}]}",
             regex, behavior, invert ? "true" : "false");
    recipe r = {.vocab =
                    "{\"a\":0,\"b\":1,\"x\":2,\"\\t\":3,\"_\":4,\"'\":5,\"s\":6,\"S\":7,\"t\":8,"
                    "\"\u017F\":9,\"ß\":10,\"-\":11,\"k\":12,\"K\":13,\"\u212A\":14,\"\uFB05\":15}",
                .pre_tokenizer = step};
    size_t n = 0;
    for (const char *c = pieces(&r, text); *c && n + 1 < sizeof found; c++)
        if (*c != '|')
            found[n++] = *c;
    found[n] = 0;
    CU_ASSERT_STRING_EQUAL(found, expected);
}

/* An expression that matches nothing at all between two characters cuts there; the expected values
 * are those of tokenizers 0.22.2. */
static void test_empty_matches(void)
{
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                            "MergedWithNext", "Contiguous"};
    static const struct {
        const char *regex, *text, *expected[2][5]; /* [invert][behavior] */
    } cases[] = {{"\\\\s*",
                  "ab\t\txa\tb",
                  {{"_a_b_x_a_b", "_a_b_\t\t_x_a_\t_b", "_a_b\t\t_x_a\t_b", "_a_b_\t\tx_a_\tb",
                    "_a_b_\t\t_x_a_\t_b"},
                   {"_\t\t_\t", "_a_b_\t\t_x_a_\t_b", "_a_b_\t\tx_a_\tb", "_a_b\t\t_x_a\t_b",
                    "_a_b_\t\t_x_a_\t_b"}}},
                 {"x?",
                  "axxbxa",
                  {{"_a_b_a", "_a_x_x_b_x_a", "_ax_x_bx_a", "_a_x_xb_xa", "_a_xx_b_x_a"},
                   {"_x_x_x", "_a_x_x_b_x_a", "_a_x_xb_xa", "_ax_x_bx_a", "_a_xx_b_x_a"}}},
                 {"a*",
                  "baaxaab",
                  {{"_b_x_b", "_b_aa_x_aa_b", "_baa_xaa_b", "_b_aax_aab", "_b_aa_x_aa_b"},
                   {"_aa_aa", "_b_aa_x_aa_b", "_b_aax_aab", "_baa_xaa_b", "_b_aa_x_aa_b"}}},
                 {"",
                  "abx",
                  {{"_a_b_x", "_a_b_x", "_a_b_x", "_a_b_x", "_a_b_x"},
                   {"", "_a_b_x", "_a_b_x", "_a_b_x", "_a_b_x"}}},
                 {"(?=b)",
                  "abbxb",
                  {{"_a_b_bx_b", "_a_b_bx_b", "_a_b_bx_b", "_a_b_bx_b", "_a_b_bx_b"},
                   {"", "_a_b_bx_b", "_a_b_bx_b", "_a_b_bx_b", "_a_b_bx_b"}}},
                 {"(?<=a)|x+",
                  "aaxxba",
                  {{"_a_a_x_ba", "_a_a_x_x_ba", "_a_a_xx_ba", "_a_a_x_xba", "_a_a_x_x_ba"},
                   {"_x", "_a_a_x_x_ba", "_a_a_x_xba", "_a_a_xx_ba", "_a_a_x_x_ba"}}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t j = 0; j < 10; j++)
            check_parts(cases[i].regex, behaviors[j % 5], j >= 5, cases[i].text,
                        cases[i].expected[j / 5][j % 5]);
}

/* Letters whose other case is not ASCII, and others that equal two; the expected values are those
 * of tokenizers 0.22.2. */
static void test_case_insensitive(void)
{
    static const struct {
        const char *regex, *expected;
    } cases[] = {{"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "_'S_'ſ_'ß-KKk-sSſßst'ﬅ"},
                 {"(?i)[a-k]|s", "_'_S_'_ſ_'ß-_K_K_k_-_s_S_ſ_ß_s_t'ﬅ"},
                 {"ss|(?i:s)t|st", "_'S'ſ'ß-KKk-sSſß_st_'ﬅ"},
                 {"(?i:k+)[^\\\\p{L}]?", "_'S'ſ'ß-_KKk-_sSſßst'ﬅ"},
                 {"(?i:s[^a-z]|'(?:s|t))", "_'S_'ſ_'ß-KKk-sS_ſß_st'ﬅ"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_parts(cases[i].regex, "Isolated", false, "'S'ſ'ß-KKk-sSſßst'ﬅ", cases[i].expected);
}

static void test_metaspace(void)
{
    recipe r = {.vocab = VOCAB,
                .merges = MERGES,
                .pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"
                                 "\"first\",\"split\":true}",
                .added =
                    "[{\"id\":10,\"content\":\"<unk>\",\"special\":true,\"normalized\":false}]"};
    CU_ASSERT_STRING_EQUAL(pieces(&r, "a a"), "▁a|▁a");
    CU_ASSERT_STRING_EQUAL(pieces(&r, " a"), "▁a");
    CU_ASSERT_STRING_EQUAL(pieces(&r, "<unk>a<unk> a"), "<unk>|a|<unk>|▁a");
    r.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"▁\"}"; /* always */
    CU_ASSERT_STRING_EQUAL(pieces(&r, "<unk>a"), "<unk>|▁a");
    r.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"never\"}";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "a a"), "a|▁a");
}

#define STRIP "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false}"
#define REPLACE(pattern, content)                                                                  \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"" pattern "\"},\"content\":\"" content "\"}"
#define PREPEND(text) "{\"type\":\"Prepend\",\"prepend\":\"" text "\"}"
#define BOTH(a, b)    "{\"type\":\"Sequence\",\"normalizers\":[" a "," b "]}"

/* Metaspace's scheme `first` asks where a part began before it was normalized. Pieces are those of
 * the tokenizers library. */
static void test_first(void)
{
    static const struct {
        const char *normalizer, *text, *pieces;
    } cases[] = {{STRIP, "a a", "▁a|▁a"},
                 {STRIP, " a a", "a|▁a"},
                 {REPLACE("b", ""), "ba", "a"},
                 {REPLACE("b", "a"), "b", "▁a"},
                 {REPLACE("bc", "a"), "bc", "a"},
                 {PREPEND("a"), "b", "▁|ab"},
                 {BOTH(STRIP, PREPEND("a")), " b", "ab"},
                 {BOTH(STRIP, REPLACE("x*", "a")), " b", "▁|ab|a"},
                 {BOTH(PREPEND("cb"), REPLACE("c", "")), "a", "▁|b|a"}};
    recipe r = {.vocab = VOCAB,
                .merges = MERGES,
                .pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"
                                 "\"first\",\"split\":true}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r.normalizer = cases[i].normalizer;
        CU_ASSERT_STRING_EQUAL(pieces(&r, cases[i].text), cases[i].pieces);
    }
}

static void test_added(void)
{
    recipe r = {.vocab = VOCAB, .merges = MERGES};
    r.added = "[{\"id\":16,\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true},"
              "{\"id\":17,\"content\":\"<xy>\"},"
              "{\"id\":18,\"content\":\"cc\",\"single_word\":true}]";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "a <x> b<xy>"), "a|<x>|b|<xy>"); /* the longest wins */
    CU_ASSERT_STRING_EQUAL(pieces(&r, "cc acc .cc."), "cc| |a|c|c| |.|cc|.");
    /* one whose form is normalized is looked for in normalized text */
    r.normalizer = "{\"type\":\"Lowercase\"}";
    r.added = "[{\"id\":16,\"content\":\"CC\",\"normalized\":true},"
              "{\"id\":17,\"content\":\"BB\",\"normalized\":false}]";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "Cc cc bb BB"), "CC| |CC| |b|b| |BB");
    /* of equal ones a special token wins, else the first */
    r.added = "[{\"id\":16,\"content\":\"BB\",\"normalized\":true},"
              "{\"id\":17,\"content\":\"Bb\",\"normalized\":true},"
              "{\"id\":18,\"content\":\"bb\",\"normalized\":true,\"special\":true}]";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abba"), "a|bb|a");
    r.added = "[{\"id\":16,\"content\":\"BB\",\"normalized\":true},"
              "{\"id\":17,\"content\":\"Bb\",\"normalized\":true}]";
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abba"), "a|BB|a");
}

/* A file that was saved with truncation and padding on encodes whole texts, and stays as it is. */
static void test_limits(void)
{
    static const char limits[] =
        "\"truncation\":{\"direction\":\"Right\",\"max_length\":2,\"strategy\":"
        "\"LongestFirst\",\"stride\":0},\"padding\":{\"strategy\":{\"Fixed\":8},"
        "\"direction\":\"Right\",\"pad_to_multiple_of\":null,\"pad_id\":10,"
        "\"pad_type_id\":0,\"pad_token\":\"<unk>\"},";
    recipe r = {.vocab = VOCAB, .merges = MERGES, .limits = limits};
    mhf_tokenizer *tokenizer;
    size_t n;
    CU_ASSERT_STRING_EQUAL(pieces(&r, "abc bca"), "abc| |bc|a");
    CHECK_OK(parse_recipe(&r, NULL, &tokenizer));
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_tokenizer_json(tokenizer, &n), limits));
    CU_ASSERT_EQUAL(mhf_tokenizer_pad(tokenizer), -1);
    mhf_tokenizer_free(tokenizer);
}

static void check_ranges(const recipe *r, const char *text, const int64_t *expected, int64_t n)
{
    mhf_tokenizer *tokenizer;
    mhf_encoding e = {0};
    CHECK_OK(parse_recipe(r, NULL, &tokenizer));
    CHECK_OK(mhf_tokenizer_encode(tokenizer, text, strlen(text),
                                  MHF_ENCODE_RANGES | MHF_ENCODE_TEMPLATE, &e));
    CU_ASSERT_EQUAL_FATAL(e.n, n);
    for (int64_t i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(e.begin[i], expected[2 * i]);
        CU_ASSERT_EQUAL(e.end[i], expected[2 * i + 1]);
    }
    mhf_encoding_free(&e);
    mhf_tokenizer_free(tokenizer);
}

static void test_ranges(void)
{
    recipe r = {.vocab = VOCAB,
                .merges = MERGES,
                .pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"split\":false,"
                                 "\"prepend_scheme\":\"first\"}",
                .post_processor = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
                                  "\"id\":\"<unk>\"}},{\"Sequence\":{\"id\":\"A\"}}],"
                                  "\"special_tokens\":{\"<unk>\":{\"ids\":[10]}}}"};
    /* a prepended space stands for nothing, one of the text for its byte */
    const int64_t spaces[] = {-1, -1, 0, 0, 0, 1, 1, 2, 2, 3, 3, 5};
    check_ranges(&r, "b b a", spaces, 6);
    const int64_t joined[] = {-1, -1, 0, 1, 1, 3};
    check_ranges(&r, "a a", joined, 3); /* "▁a" that starts with the prepended one */
    r.pre_tokenizer = r.post_processor = NULL;
    r.normalizer = "{\"type\":\"NFC\"}";
    const int64_t composed[] = {0, 1, 1, 4, 4, 5};
    check_ranges(&r,
                 "ae\xCC\x81"
                 "b",
                 composed, 3);
    r.added = "[{\"id\":16,\"content\":\"<x>\",\"lstrip\":true,\"normalized\":true}]";
    const int64_t stripped[] = {0, 3, 3, 7, 7, 8};
    check_ranges(&r, "e\xCC\x81 <x>b", stripped, 3);
    r.normalizer = NULL;
    r.added = NULL;
    r.options = "\"unk_token\":\"<unk>\",\"fuse_unk\":true,";
    const int64_t mended[] = {0, 1, 1, 3, 3, 4}; /* two bytes that are no UTF-8 */
    check_ranges(&r,
                 "a\xFF\xFE"
                 "b",
                 mended, 3);
}

static void test_decoding(void)
{
    recipe r = {.vocab = VOCAB, .decoder = "{\"type\":\"Metaspace\",\"replacement\":\"▁\"}"};
    const mhf_token ids[] = {12, 12, 11}, bad[] = {0, 99};
    mhf_tokenizer *tokenizer;
    mhf_buf text = {0};
    CHECK_OK(parse_recipe(&r, NULL, &tokenizer));
    CHECK_OK(mhf_tokenizer_decode(tokenizer, ids, 3, false, &text));
    CU_ASSERT_STRING_EQUAL(text.data, "a a ");
    CU_ASSERT_EQUAL(mhf_tokenizer_bytes(tokenizer, 12), 2);
    CU_ASSERT_EQUAL(mhf_tokenizer_decode(tokenizer, bad, 2, false, &text), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "99"));
    mhf_tokenizer_free(tokenizer);
    r.decoder = NULL; /* without a decoder, spaces go between */
    mhf_buf_clear(&text);
    CHECK_OK(parse_recipe(&r, NULL, &tokenizer));
    CHECK_OK(mhf_tokenizer_decode(tokenizer, ids, 2, false, &text));
    CU_ASSERT_STRING_EQUAL(text.data, "▁a ▁a");
    mhf_tokenizer_free(tokenizer);
    mhf_buf_free(&text);
}

static void test_special_names(void)
{
    recipe r = {.vocab = VOCAB,
                .added = "[{\"id\":16,\"content\":\"<s>\",\"special\":true},"
                         "{\"id\":17,\"content\":\"</s>\",\"special\":true}]"};
    const char *config = "{\"bos_token\":{\"content\":\"<s>\",\"lstrip\":false},"
                         "\"eos_token\":\"</s>\",\"pad_token\":null,\"unk_token\":\"<unk>\","
                         "\"model_max_length\":1000000000000000019884624838656}";
    mhf_tokenizer *t;
    CHECK_OK(parse_recipe(&r, config, &t));
    CU_ASSERT_EQUAL(mhf_tokenizer_bos(t), 16);
    CU_ASSERT_EQUAL(mhf_tokenizer_eos(t), 17);
    CU_ASSERT_EQUAL(mhf_tokenizer_pad(t), -1);
    CU_ASSERT_EQUAL(mhf_tokenizer_unk(t), 10);
    CU_ASSERT_EQUAL(mhf_tokenizer_size(t), 18);
    CU_ASSERT_EQUAL(mhf_tokenizer_base_size(t), 16);
    CU_ASSERT_TRUE(mhf_tokenizer_is_special(t, 16));
    CU_ASSERT_FALSE(mhf_tokenizer_is_special(t, 0));
    CU_ASSERT_EQUAL(mhf_tokenizer_bytes(t, 16), 0);
    CU_ASSERT_EQUAL(strlen(mhf_tokenizer_sha256(t)), 64);
    size_t n;
    CU_ASSERT_EQUAL(strcmp(mhf_tokenizer_config_json(t, &n), config), 0);
    CU_ASSERT_PTR_NULL(mhf_tokenizer_piece(t, 18, &n));
    const char *json = mhf_tokenizer_json(t, &n);
    mhf_special_names names = {.pad = "<s>"}, wrong = {.eos = "<none>"};
    mhf_tokenizer *again;
    CHECK_OK(mhf_tokenizer_parse(json, n, NULL, 0, "t.json", &names, &again));
    CU_ASSERT_EQUAL(mhf_tokenizer_pad(again), 16);
    CU_ASSERT_EQUAL(mhf_tokenizer_bos(again), -1);
    mhf_tokenizer_free(again);
    CU_ASSERT_EQUAL(mhf_tokenizer_parse(json, n, NULL, 0, "t.json", &wrong, &again), MHF_E_USAGE);
    mhf_tokenizer_free(t);
    CU_ASSERT_EQUAL(parse_recipe(&r, "{\"bos_token\":\"<none>\"}", &t), MHF_E_DATA);
    CU_ASSERT_EQUAL(parse_recipe(&r, "[1", &t), MHF_E_DATA);
}

static void test_long_words(void)
{
    /* "ab" is merged across, "ca" never: cutting there must change nothing */
    recipe r = {.vocab = VOCAB, .merges = MERGES};
    mhf_tokenizer *tokenizer;
    mhf_encoding e = {0};
    mhf_buf text = {0};
    CHECK_OK(parse_recipe(&r, NULL, &tokenizer));
    for (int i = 0; i < 100000; i++)
        CHECK_OK(mhf_buf_add_text(&text, "abcab"));
    CHECK_OK(mhf_tokenizer_encode(tokenizer, text.data, text.n, 0, &e));
    CU_ASSERT_EQUAL(e.n, 200000);
    mhf_tokenizer_free(tokenizer);
    r.vocab = "{\"a\":0,\"aa\":1,\"aaaa\":2}";
    r.merges = "[\"a a\",\"aa aa\"]";
    CHECK_OK(parse_recipe(&r, NULL, &tokenizer));
    memset(text.data, 'a', text.n); /* one word without a place to cut */
    CHECK_OK(mhf_tokenizer_encode(tokenizer, text.data, text.n, 0, &e));
    CU_ASSERT_EQUAL(e.n, 125000);
    CU_ASSERT_EQUAL(e.ids[124999], 2);
    mhf_tokenizer_free(tokenizer);
    mhf_encoding_free(&e);
    mhf_buf_free(&text);
}

/* What mhf_tokenizer_differences says of r grown to s. */
static bool differs(const recipe *r, const recipe *s, const char *expected)
{
    mhf_tokenizer *old, *grown;
    mhf_buf names = {0};
    CHECK_OK(parse_recipe(r, NULL, &old));
    CHECK_OK(parse_recipe(s, NULL, &grown));
    CHECK_OK(mhf_buf_add_text(&names, ""));
    CHECK_OK(mhf_tokenizer_differences(old, grown, &names));
    bool as_expected = strcmp(names.data, expected) == 0;
    if (!as_expected)
        printf("differences: '%s', expected '%s'\n", names.data, expected);
    mhf_buf_free(&names);
    mhf_tokenizer_free(old);
    mhf_tokenizer_free(grown);
    return as_expected;
}

static void test_differences(void)
{
    const recipe r = {.vocab = VOCAB,
                      .merges = "[\"a b\",\"b c\"]",
                      .added = "[{\"id\":16,\"content\":\"<s>\",\"special\":true}]",
                      .options = "\"fuse_unk\":false,\"unk_token\":null,"};
    recipe s = r;
    CU_ASSERT(differs(&r, &s, ""));
    s.options = "\"ignore_merges\":false,\"dropout\":null,\"end_of_word_suffix\":\"\",";
    s.merges = "[[\"a\",\"b\"],[\"b\",\"c\"],[\"ab\",\"c\"]]";
    CU_ASSERT(differs(&r, &s, ""));
    s.options = "\"ignore_merges\":true,\"byte_fallback\":true,";
    CU_ASSERT(differs(&r, &s, "byte_fallback, ignore_merges"));
    s = r;
    s.merges = "[\"b c\",\"a b\"]";
    CU_ASSERT(differs(&r, &s, "merges ('b' + 'c' is absent or comes in another order)"));
    s.merges = "[\"a b\",\"ab c\"]";
    CU_ASSERT(differs(&r, &s, "merges ('b' + 'c' is absent or comes in another order)"));
    s.merges = "[]";
    CU_ASSERT(differs(&r, &s, "merges ('a' + 'b' is absent or comes in another order)"));
    s.merges = "[\"a b\",\"ab c\",\"b c\"]";
    CU_ASSERT(differs(&r, &s, "merges (1 new ones come before old ones)"));
    s = r;
    s.normalizer = "{\"type\":\"NFC\"}";
    s.pre_tokenizer = "{\"type\":\"Digits\",\"individual_digits\":true}";
    s.decoder = "{\"type\":\"Fuse\"}";
    CU_ASSERT(differs(&r, &s, "normalizer, pre_tokenizer, decoder"));
    s = r;
    s.added = "[{\"id\":16,\"content\":\"<s>\",\"special\":true,\"lstrip\":true}]";
    CU_ASSERT(differs(&r, &s, "added token '<s>'"));
    s.added = "[]";
    CU_ASSERT(differs(&r, &s, "added token '<s>'"));
}

/* The sum is that of Python's json.dumps(content, sort_keys=True, separators=(",", ":"),
 * ensure_ascii=False). */
static void test_identity(void)
{
    static const char sum[] = "d78d9db8aed2c432499d9f623bd11d8869840ee86e4ba0da205366d9691e6ba9";
    static const char *const files[] = {
        "{\"version\":\"1.0\",\"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,"
        "\"decoder\":null,\"added_tokens\":[],\"model\":{\"type\":\"BPE\","
        "\"vocab\":{\"a\":0,\"é\":1,\"aé\":2},\"merges\":[[\"a\",\"é\"]]}}",
        "{ \"model\": {\"merges\": [ \"a \\u00e9\" ], \"vocab\": {\"aé\": 2, \"\\u00e9\": 1, "
        "\"a\": 0},"
        " \"type\": \"BPE\"},\n \"decoder\": null, \"normalizer\": null, \"pre_tokenizer\": null,"
        " \"post_processor\": null, \"padding\": null, \"truncation\": {\"max_length\": 3},"
        " \"added_tokens\": [], \"version\": \"1.0\"}\n",
        "{\"version\":\"1.0\",\"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,"
        "\"decoder\":null,\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
        "\"vocab\":{\"a\":0,\"é\":1,\"aé\":2},\"merges\":[[\"a\",\"é\"]]}}"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char of_bytes[65];
        mhf_tokenizer *t;
        CHECK_OK(mhf_tokenizer_parse(files[i], strlen(files[i]), NULL, 0, "t.json", NULL, &t));
        CU_ASSERT_EQUAL(strcmp(mhf_tokenizer_sha256(t), sum) == 0, i < 2);
        CU_ASSERT_EQUAL(mhf_tokenizer_is(t, sum), i < 2);
        mhf_sha256_hex(files[i], strlen(files[i]), of_bytes);
        CU_ASSERT_TRUE(mhf_tokenizer_is(t, of_bytes));
        mhf_tokenizer_free(t);
    }
}

int main(void)
{
    const test_case cases[] = {
        {"merges by rank, whole words", test_merges},
        {"unknown characters and bytes", test_unknown},
        {"normalizers", test_normalizers},
        {"classes of characters in expressions", test_classes},
        {"every behaviour of Split", test_behaviors},
        {"empty matches in every behaviour", test_empty_matches},
        {"letters without regard to case", test_case_insensitive},
        {"Metaspace's schemes", test_metaspace},
        {"where a text begins", test_first},
        {"added tokens", test_added},
        {"truncation and padding", test_limits},
        {"ranges in the caller's text", test_ranges},
        {"decoders", test_decoding},
        {"special tokens' names", test_special_names},
        {"long words", test_long_words},
        {"the same tokenizer, written otherwise", test_identity},
        {"what differs in a tokenizer that has grown", test_differences},
    };
    return run_tests("text.tokenizer", cases, sizeof cases / sizeof cases[0]);
}
