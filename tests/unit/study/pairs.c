// SPDX-License-Identifier: ISC
/* Reading word pairs, bad files included, and setting words into templates. */
#include <unistd.h>

#include "mhf/study.h"
#include "support.h"

static char path[64];

static mhf_status read_text(const char *text, size_t n, mhf_pairs *out)
{
    *out = (mhf_pairs){0};
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, n, file), n);
    fclose(file);
    return mhf_pairs_read(path, out);
}

static void good(void)
{
    static const char text[] = "Pokemon\tPocket_Monsters\t3.81\r\n#tag\tcat\t-1e0\textra\n\n  \n"
                               "cat\tPokemon\t0\n\xC3\xA9t\xC3\xA9\tcat\t 2.5";
    mhf_pairs pairs;
    CHECK_OK(read_text(text, sizeof text - 1, &pairs));
    CU_ASSERT_EQUAL_FATAL(pairs.n, 4);
    CU_ASSERT_STRING_EQUAL(pairs.word2[0], "Pocket Monsters");
    CU_ASSERT_STRING_EQUAL(pairs.word1[1], "#tag");
    CU_ASSERT_EQUAL(pairs.human[0], 3.81);
    CU_ASSERT_EQUAL(pairs.human[1], -1);
    CU_ASSERT_EQUAL(pairs.human[3], 2.5);
    CU_ASSERT_EQUAL_FATAL(pairs.n_words, 5);
    static const char *const words[] = {"Pokemon", "Pocket Monsters", "#tag", "cat",
                                        "\xC3\xA9t\xC3\xA9"};
    for (int i = 0; i < 5; i++)
        CU_ASSERT_STRING_EQUAL(pairs.words[i], words[i]);
    CU_ASSERT_EQUAL(pairs.index1[2], 3);
    CU_ASSERT_EQUAL(pairs.index2[2], 0);

    mhf_prompts prompts = {0};
    CHECK_OK(mhf_prompts_fill(&pairs, "\xC3\xBC {}!", &prompts));
    CU_ASSERT_STRING_EQUAL(prompts.texts[1], "\xC3\xBC Pocket Monsters!");
    CU_ASSERT_EQUAL(prompts.begin[1], 2);
    CU_ASSERT_EQUAL(prompts.end[1], 17);
    CU_ASSERT_EQUAL(prompts.end[4], 5);
    mhf_prompts_free(&prompts);
    mhf_pairs_free(&pairs);
}

static void bad(void)
{
    static const struct {
        const char *text, *says;
        size_t n;
    } cases[] = {
#define CASE(text, says) {text, says, sizeof text - 1}
        CASE("a\tb\t1\na\tb\n", "line 2: 2 tab-separated"),
        CASE("a b 1\n", "line 1: 1 tab-separated"),
        CASE("a\tb\t\n", "line 1: score"),
        CASE("a\tb\tone\n", "line 1: score is 'one'"),
        CASE("a\tb\tnan\n", "line 1: score"),
        CASE("a\tb\t1e999\n", "line 1: score"),
        CASE("a\tb\t1 2\n", "line 1: score"),
        CASE("a\t\t1\n", "line 1: an empty word"),
        CASE("a\xFF\tb\t1\n", "line 1: a word that is not UTF-8"),
        CASE("a\0z\tb\t1\n", "line 1: a word that is not UTF-8"),
        CASE("", "no word pairs"),
        CASE("\n \n", "no word pairs"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mhf_pairs pairs;
        CU_ASSERT_EQUAL(read_text(cases[i].text, cases[i].n, &pairs), MHF_E_DATA);
        CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), cases[i].says));
        CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), path));
        mhf_pairs_free(&pairs);
    }
    mhf_pairs pairs = {0};
    CU_ASSERT_EQUAL(mhf_pairs_read("/nowhere/pairs.tsv", &pairs), MHF_E_IO);
    mhf_pairs_free(&pairs);
}

static void bad_templates(void)
{
    mhf_pairs pairs;
    CHECK_OK(read_text("a\tb\t1\n", 6, &pairs));
    static const char *const templates[] = {"", "{", "{} {}", "\xFF{}"};
    for (int i = 0; i < 4; i++) {
        mhf_prompts prompts = {0};
        CU_ASSERT_EQUAL(mhf_prompts_fill(&pairs, templates[i], &prompts), MHF_E_USAGE);
        mhf_prompts_free(&prompts);
    }
    mhf_pairs_free(&pairs);
}

int main(void)
{
    static const test_case cases[] = {
        {"good pairs", good},
        {"bad pairs name file and line", bad},
        {"templates hold {} once", bad_templates},
    };
    snprintf(path, sizeof path, "/tmp/mhf-pairs-%d.tsv", (int)getpid());
    int code = run_tests("study pairs", cases, sizeof cases / sizeof *cases);
    unlink(path);
    return code;
}
