/* SPDX-License-Identifier: ISC */
/* Classes of code points as tokenizer files mean them, and mending of invalid UTF-8. */
#ifndef MHF_TEXT_UNICODE_H
#define MHF_TEXT_UNICODE_H

#include "mhf/base.h"

/** Unicode White_Space. */
bool mhf_char_is_space(uint32_t c);
/** Alphabetic, mark, decimal digit, connector punctuation or join control. */
bool mhf_char_is_word(uint32_t c);
/** General category P* in Unicode 8.0, or punctuation or a symbol of ASCII. */
bool mhf_char_is_punctuation(uint32_t c);
/** General category N*. */
bool mhf_char_is_numeric(uint32_t c);
/** General category M* in Unicode 9.0. */
bool mhf_char_is_mark(uint32_t c);
/** A mark, or a character that normalization changes or moves, that Unicode 9.0 did not have. */
bool mhf_char_is_late_mark(uint32_t c);
/** Punctuation that Unicode 8.0 did not have. */
bool mhf_char_is_late_punctuation(uint32_t c);
/** Lower case of one code point, without context; returns how many of out[] are used. */
int mhf_char_lower(uint32_t c, uint32_t out[2]);

/** Bytes of the longest part at text[0..n), which is not valid UTF-8, that one U+FFFD stands for.
 */
size_t mhf_utf8_invalid_length(const char *text, size_t n);
/** Append the text with U+FFFD for what is not valid UTF-8. */
mhf_status mhf_utf8_mend(const char *text, size_t n, mhf_buf *out);

/** Code point at text of *known valid* UTF-8; returns its length. */
static inline int mhf_utf8_next(const char *text, uint32_t *c)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *c = s[0];
        return 1;
    }
    if (s[0] < 0xE0) {
        *c = (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
        return 2;
    }
    if (s[0] < 0xF0) {
        *c = (s[0] & 0xFu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
        return 3;
    }
    *c = (s[0] & 7u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
    return 4;
}

/** Code point that ends before text[n], n > 0, of valid UTF-8; returns its length. */
static inline int mhf_utf8_previous(const char *text, int64_t n, uint32_t *c)
{
    int length = 1;
    while (length < n && length < 4 && ((unsigned char)text[n - length] & 0xC0) == 0x80)
        length++;
    return mhf_utf8_next(text + n - length, c);
}

#endif
