/* SPDX-License-Identifier: ISC */
#include "unicode.h"

#include <utf8proc.h>

bool mhf_char_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Symbols that are alphabetic by Other_Alphabetic: circled, squared letters. */
static bool is_enclosed_letter(uint32_t c)
{
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool mhf_char_is_word(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return is_enclosed_letter(c) || c == 0x200C || c == 0x200D;
    }
}

bool mhf_char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (c == 0x166D || c == 0x111C9) /* they became a symbol and a mark later */
        return true;
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
           !mhf_char_is_late_punctuation(c);
}

bool mhf_char_is_numeric(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool mhf_char_is_mark(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (c == 0x1CF2 || c == 0x1CF3) /* they became letters later */
        return true;
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME &&
           !mhf_char_is_late_mark(c);
}

int mhf_char_lower(uint32_t c, uint32_t out[2])
{
    if (c == 0x130) { /* the one code point whose lower case is two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

size_t mhf_utf8_invalid_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t whole = s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : s[0] >= 0xE0 && s[0] < 0xF0 ? 3 : 1;
    size_t length = 1;
    for (; length < whole && length < n; length++) {
        unsigned low = 0x80, high = 0xBF;
        if (length == 1) { /* the second byte also rules out overlong forms and surrogates */
            low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
            high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
        }
        if (s[length] < low || s[length] > high)
            break;
    }
    return length;
}

mhf_status mhf_utf8_mend(const char *text, size_t n, mhf_buf *out)
{
    while (n > 0) {
        size_t good = mhf_utf8_valid(text, n);
        MHF_TRY(mhf_buf_add(out, text, good));
        text += good;
        n -= good;
        if (n == 0)
            break;
        size_t bad = mhf_utf8_invalid_length(text, n);
        MHF_TRY(mhf_buf_add(out, "\xEF\xBF\xBD", 3));
        text += bad;
        n -= bad;
    }
    return MHF_OK;
}
