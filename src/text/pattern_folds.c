/* SPDX-License-Identifier: ISC */
/* Without regard to case Oniguruma takes "ss" and "ß" for the same, in both directions; PCRE2 folds
 * one character to one. Expressions in which that could matter are refused. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

#include "pattern.h"

/* Where the characters are whose case folding is longer than they are. */
static const struct {
    uint32_t first, last;
} ranges[] = {{0xDF, 0x587}, {0x1E96, 0x1FFC}, {0xFB00, 0xFB17}};

/* The full case folding of c in UTF-8; returns how many characters it has. */
static int fold(uint32_t c, char out[12], size_t *n)
{
    utf8proc_int32_t folded[8] = {0};
    utf8proc_ssize_t length =
        utf8proc_decompose_char((utf8proc_int32_t)c, folded, 8, UTF8PROC_CASEFOLD, NULL);
    *n = 0;
    for (utf8proc_ssize_t i = 0; i < length && i < 3; i++)
        *n += (size_t)mhf_utf8_encode((uint32_t)folded[i], out + *n);
    return (int)length;
}

mhf_status mhf_folds_add(mhf_folds *folds, uint32_t c)
{
    char folded[12];
    size_t n;
    fold(c, folded, &n);
    return mhf_buf_add(&folds->literals, folded, n);
}

mhf_status mhf_folds_part(mhf_folds *folds)
{
    return mhf_buf_add(&folds->literals, "|", 1);
}

mhf_status mhf_folds_add_list(mhf_folds *folds, const char *list, size_t n)
{
    if (folds->lists.n > 0)
        MHF_TRY(mhf_buf_add(&folds->lists, "|", 1));
    return mhf_buf_add(&folds->lists, list, n);
}

void mhf_folds_free(mhf_folds *folds)
{
    mhf_buf_free(&folds->literals);
    mhf_buf_free(&folds->lists);
}

static bool lists_have(pcre2_code *code, pcre2_match_data *data, uint32_t c)
{
    char text[4];
    int n = mhf_utf8_encode(c, text);
    return code && pcre2_match(code, (PCRE2_SPTR)text, (size_t)n, 0, 0, data, NULL) >= 0;
}

static uint32_t find(const mhf_folds *folds, pcre2_code *code, pcre2_match_data *data)
{
    char folded[12];
    size_t n;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
            if (fold(c, folded, &n) > 1 &&
                (lists_have(code, data, c) ||
                 (folds->literals.n >= n &&
                  memmem(folds->literals.data, folds->literals.n, folded, n))))
                return c;
    return 0;
}

mhf_status mhf_folds_find(const mhf_folds *folds, uint32_t *c)
{
    int error;
    PCRE2_SIZE place;
    pcre2_code *code = NULL;
    *c = 0;
    if (folds->lists.n > 0) {
        code = pcre2_compile((PCRE2_SPTR)folds->lists.data, folds->lists.n, PCRE2_UTF | PCRE2_UCP,
                             &error, &place, NULL);
        if (!code)
            return mhf_fail(MHF_E_DATA, "lists of characters without regard to case are too many "
                                        "or not valid");
    }
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (data)
        *c = find(folds, code, data);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return data ? MHF_OK : mhf_fail(MHF_E_NOMEM, "no memory for a regular expression");
}
