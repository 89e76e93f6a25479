/* SPDX-License-Identifier: ISC */
/* Word pairs with human scores. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/study.h"

/* A set is a table that people made: no more than this is read. */
static const size_t file_limit = (size_t)1 << 30;

/* The next tab-separated field of [*at, end); false when there is none. */
static bool next_field(const char **at, const char *end, const char **field, size_t *n)
{
    if (!*at)
        return false;
    const char *tab = memchr(*at, '\t', (size_t)(end - *at));
    *field = *at;
    *n = (size_t)((tab ? tab : end) - *at);
    *at = tab ? tab + 1 : NULL;
    return true;
}

static mhf_status take_word(const char *field, size_t n, const char *path, int64_t line, char **out)
{
    if (n == 0)
        return mhf_fail(MHF_E_DATA, "%s line %" PRId64 ": an empty word", path, line);
    if (memchr(field, 0, n) || mhf_utf8_valid(field, n) != n)
        return mhf_fail(MHF_E_DATA, "%s line %" PRId64 ": a word that is not UTF-8 text", path,
                        line);
    MHF_TRY(mhf_new(out, (int64_t)n + 1, 1, "a word"));
    for (size_t i = 0; i < n; i++)
        (*out)[i] = field[i] == '_' ? ' ' : field[i];
    return MHF_OK;
}

static mhf_status take_score(const char *field, size_t n, const char *path, int64_t line,
                             double *out)
{
    char text[64], *end = text;
    if (n > 0 && n < sizeof text) {
        memcpy(text, field, n);
        text[n] = 0;
        if (strspn(text, " +-.0123456789eE") == n) /* strtod takes hexadecimal, too */
            *out = strtod(text, &end);
        end += strspn(end, " ");
    }
    if (end == text || *end != 0 || !isfinite(*out))
        return mhf_fail(MHF_E_DATA, "%s line %" PRId64 ": score is '%.*s', expected a number", path,
                        line, (int)(n < 40 ? n : 40), field);
    return MHF_OK;
}

static mhf_status take_line(const char *text, const char *end, const char *path, int64_t line,
                            mhf_pairs *out)
{
    const char *field[3];
    size_t n[3];
    for (int i = 0; i < 3; i++)
        if (!next_field(&text, end, &field[i], &n[i]))
            return mhf_fail(MHF_E_DATA,
                            "%s line %" PRId64
                            ": %d tab-separated fields, expected word, word, score",
                            path, line, i);
    int64_t k = out->n++; /* counted first, so that mhf_pairs_free sees what was made */
    MHF_TRY(take_word(field[0], n[0], path, line, &out->word1[k]));
    MHF_TRY(take_word(field[1], n[1], path, line, &out->word2[k]));
    return take_score(field[2], n[2], path, line, &out->human[k]);
}

static bool is_blank(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    return text == end;
}

static mhf_status take_lines(const mhf_buf *text, const char *path, mhf_pairs *out)
{
    const char *at = text->data, *stop = text->data + text->n;
    for (int64_t line = 1; at < stop; line++) {
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        const char *end = newline ? newline : stop, *next = newline ? newline + 1 : stop;
        if (end > at && end[-1] == '\r')
            end--;
        if (!is_blank(at, end))
            MHF_TRY(take_line(at, end, path, line, out));
        at = next;
    }
    if (out->n == 0)
        return mhf_fail(MHF_E_DATA, "%s: no word pairs", path);
    return MHF_OK;
}

static mhf_status index_word(mhf_map *map, char *word, mhf_pairs *pairs, int64_t *index)
{
    size_t n = strlen(word);
    *index = mhf_map_get(map, word, n, -1);
    if (*index >= 0)
        return MHF_OK;
    *index = pairs->n_words++;
    pairs->words[*index] = word;
    return mhf_map_put(map, word, n, *index);
}

static mhf_status index_words(mhf_pairs *pairs)
{
    mhf_map *map = NULL;
    mhf_status status = mhf_map_new(2 * pairs->n, &map);
    for (int64_t i = 0; status == MHF_OK && i < pairs->n; i++) {
        status = index_word(map, pairs->word1[i], pairs, &pairs->index1[i]);
        if (status == MHF_OK)
            status = index_word(map, pairs->word2[i], pairs, &pairs->index2[i]);
    }
    mhf_map_free(map);
    return status;
}

mhf_status mhf_pairs_read(const char *path, mhf_pairs *out)
{
    mhf_buf text = {0};
    mhf_status status = mhf_file_read(path, file_limit, &text);
    int64_t lines = 1;
    for (size_t i = 0; i < text.n; i++)
        lines += text.data[i] == '\n';
    const struct {
        void *pointer;
        int64_t n;
        size_t size;
    } arrays[] = {
        {&out->word1, lines, sizeof *out->word1},   {&out->word2, lines, sizeof *out->word2},
        {&out->human, lines, sizeof *out->human},   {&out->words, 2 * lines, sizeof *out->words},
        {&out->index1, lines, sizeof *out->index1}, {&out->index2, lines, sizeof *out->index2}};
    for (size_t i = 0; status == MHF_OK && i < sizeof arrays / sizeof *arrays; i++)
        status = mhf_new(arrays[i].pointer, arrays[i].n, arrays[i].size, "word pairs");
    if (status == MHF_OK)
        status = take_lines(&text, strcmp(path, "-") == 0 ? "standard input" : path, out);
    if (status == MHF_OK)
        status = index_words(out);
    mhf_buf_free(&text);
    return status;
}

void mhf_pairs_free(mhf_pairs *pairs)
{
    for (int64_t i = 0; i < pairs->n; i++) {
        free(pairs->word1[i]);
        free(pairs->word2[i]);
    }
    free(pairs->word1);
    free(pairs->word2);
    free(pairs->human);
    free(pairs->words);
    free(pairs->index1);
    free(pairs->index2);
    *pairs = (mhf_pairs){0};
}
