/* SPDX-License-Identifier: ISC */
/* Words set into a template: the texts a model reads, and where the word stands in each. */
#include <stdlib.h>
#include <string.h>

#include "mhf/study.h"

/* Code points of valid UTF-8: bytes that don't continue one. */
static int64_t count_code_points(const char *text, size_t n)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

static mhf_status fill_one(const char *before, size_t n_before, const char *after, const char *word,
                           char **out)
{
    mhf_buf text = {0};
    mhf_status status = mhf_buf_add(&text, before, n_before);
    if (status == MHF_OK)
        status = mhf_buf_add_text(&text, word);
    if (status == MHF_OK)
        status = mhf_buf_add_text(&text, after);
    if (status == MHF_OK)
        *out = text.data;
    else
        mhf_buf_free(&text);
    return status;
}

mhf_status mhf_prompts_fill(const mhf_pairs *pairs, const char *template_text, mhf_prompts *out)
{
    const char *place = strstr(template_text, "{}");
    if (!place || strstr(place + 2, "{}"))
        return mhf_fail(MHF_E_USAGE, "--template is '%s', expected a text that holds {} once",
                        template_text);
    size_t n_before = (size_t)(place - template_text);
    if (mhf_utf8_valid(template_text, strlen(template_text)) != strlen(template_text))
        return mhf_fail(MHF_E_USAGE, "--template is not UTF-8 text");
    MHF_TRY(mhf_new(&out->texts, pairs->n_words, sizeof *out->texts, "filled templates"));
    MHF_TRY(mhf_new(&out->begin, pairs->n_words, sizeof *out->begin, "filled templates"));
    MHF_TRY(mhf_new(&out->end, pairs->n_words, sizeof *out->end, "filled templates"));
    int64_t begin = count_code_points(template_text, n_before);
    for (int64_t i = 0; i < pairs->n_words; i++) {
        const char *word = pairs->words[i];
        MHF_TRY(fill_one(template_text, n_before, place + 2, word, &out->texts[i]));
        out->n = i + 1;
        out->begin[i] = begin;
        out->end[i] = begin + count_code_points(word, strlen(word));
    }
    return MHF_OK;
}

void mhf_prompts_free(mhf_prompts *prompts)
{
    for (int64_t i = 0; i < prompts->n; i++)
        free(prompts->texts[i]);
    free(prompts->texts);
    free(prompts->begin);
    free(prompts->end);
    *prompts = (mhf_prompts){0};
}
