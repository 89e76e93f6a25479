/* SPDX-License-Identifier: ISC */
/* NFC, NFD, NFKC, NFKD stretch by stretch. A stretch runs from one code point that nothing before
 * it can join or pass to the next such, so that each gives its form alone and bytes keep their
 * origin. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "normalizer.h"
#include "unicode.h"

typedef struct stretch {
    utf8proc_int32_t *chars; /* [capacity] */
    int64_t n, capacity;
    int options;
} stretch;

/* Marks, vowels and finals of Hangul. U+11A7, just before the modern finals, joins nothing, and as
 * a start it stays out of utf8proc's sight, which takes it for an empty final and drops it. */
static bool joins(uint32_t c)
{
    return mhf_char_is_mark(c) || (c >= 0x1160 && c <= 0x11FF && c != 0x11A7);
}

/* Can something before c join or pass it in this form? */
static bool is_start(uint32_t c, int options)
{
    utf8proc_int32_t parts[32];
    if (c < 0x300)
        return true;
    if (joins(c))
        return false;
    if (!(options & UTF8PROC_COMPAT) || mhf_char_is_late_mark(c))
        return true;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32, (utf8proc_option_t)options, NULL);
    return n < 1 || n > 32 || !joins((uint32_t)parts[0]);
}

static int class_of(utf8proc_int32_t c)
{
    return mhf_char_is_late_mark((uint32_t)c) ? 0 : utf8proc_get_property(c)->combining_class;
}

/* A stable counting sort by combining class: linear also where a text is marks only. */
static mhf_status sort_by_class(utf8proc_int32_t *chars, int64_t n)
{
    int64_t first[257] = {0};
    utf8proc_int32_t *sorted;
    MHF_TRY(mhf_new(&sorted, n, sizeof *sorted, "a text's marks"));
    for (int64_t i = 0; i < n; i++)
        first[class_of(chars[i]) + 1]++;
    for (int i = 0; i < 256; i++)
        first[i + 1] += first[i];
    for (int64_t i = 0; i < n; i++)
        sorted[first[class_of(chars[i])]++] = chars[i];
    memcpy(chars, sorted, (size_t)n * sizeof *chars);
    free(sorted);
    return MHF_OK;
}

static mhf_status order_marks(stretch *s)
{
    for (int64_t i = 0; i < s->n;) {
        if (class_of(s->chars[i]) == 0) {
            i++;
            continue;
        }
        int64_t end = i + 1;
        while (end < s->n && class_of(s->chars[end]) != 0)
            end++;
        if (end - i > 1)
            MHF_TRY(sort_by_class(s->chars + i, end - i));
        i = end;
    }
    return MHF_OK;
}

/* text[0..n), at least one character */
static mhf_status decompose(stretch *s, const char *text, int64_t n)
{
    int64_t at = 0;
    s->n = 0;
    do {
        uint32_t c;
        at += mhf_utf8_next(text + at, &c);
        MHF_TRY(mhf_grow(&s->chars, &s->capacity, s->n + 32, sizeof *s->chars, "a text"));
        if (mhf_char_is_late_mark(c)) {
            s->chars[s->n++] = (utf8proc_int32_t)c;
            continue;
        }
        utf8proc_ssize_t length = utf8proc_decompose_char((utf8proc_int32_t)c, s->chars + s->n, 32,
                                                          (utf8proc_option_t)s->options, NULL);
        if (length < 0 || length > 32)
            return mhf_fail(MHF_E_INTERNAL, "U+%04X can't be decomposed", (unsigned)c);
        s->n += length;
    } while (at < n);
    return MHF_OK;
}

static mhf_status write_stretch(stretch *s, mhf_passage *passage, int64_t begin, int64_t end,
                                mhf_buf *bytes)
{
    MHF_TRY(decompose(s, passage->text + begin, end - begin));
    MHF_TRY(order_marks(s));
    utf8proc_ssize_t n = utf8proc_normalize_utf32(s->chars, s->n, (utf8proc_option_t)s->options);
    if (n < 0)
        return mhf_fail(MHF_E_INTERNAL, "a text can't be normalized: %s", utf8proc_errmsg(n));
    mhf_buf_clear(bytes);
    for (int64_t i = 0; i < n; i++) {
        char c[4];
        MHF_TRY(mhf_buf_add(bytes, c, (size_t)mhf_utf8_encode((uint32_t)s->chars[i], c)));
    }
    if (bytes->n == (size_t)(end - begin) &&
        memcmp(bytes->data, passage->text + begin, bytes->n) == 0)
        return mhf_passage_copy(passage, begin, end - begin);
    return mhf_passage_put(passage, bytes->data, (int64_t)bytes->n, begin, end - begin);
}

static int options_of(mhf_normalizer_kind form)
{
    bool compose = form == MHF_NORMALIZE_NFC || form == MHF_NORMALIZE_NFKC;
    bool compat = form == MHF_NORMALIZE_NFKC || form == MHF_NORMALIZE_NFKD;
    return (int)UTF8PROC_STABLE | (int)(compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
           (compat ? (int)UTF8PROC_COMPAT : 0);
}

static int64_t skip_ascii(const mhf_passage *passage, int64_t at, int64_t end)
{
    while (at < end && (unsigned char)passage->text[at] < 0x80)
        at++;
    return at;
}

mhf_status mhf_normalize_form(mhf_normalizer_kind form, mhf_passage *passage, const mhf_part *part)
{
    stretch s = {.options = options_of(form)};
    mhf_buf bytes = {0};
    mhf_status status = MHF_OK;
    int64_t at = part->begin;
    while (status == MHF_OK && at < part->end) {
        int64_t ascii = skip_ascii(passage, at, part->end);
        /* the last ASCII character may be the base of marks */
        int64_t begin = ascii < part->end && ascii > at ? ascii - 1 : ascii;
        status = mhf_passage_copy(passage, at, begin - at);
        at = begin;
        if (status != MHF_OK || at == part->end)
            break;
        uint32_t c;
        int64_t end = at + mhf_utf8_next(passage->text + at, &c);
        while (end < part->end) {
            int length = mhf_utf8_next(passage->text + end, &c);
            if (is_start(c, s.options))
                break;
            end += length;
        }
        status = write_stretch(&s, passage, at, end, &bytes);
        at = end;
    }
    mhf_buf_free(&bytes);
    free(s.chars);
    return status;
}
