/* SPDX-License-Identifier: ISC */
/* From Oniguruma's Ruby syntax to PCRE2's. Most of an expression is common to both; what differs is
 * rewritten (\s, \w, \h and their like have other members), what we don't know is refused. */
#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

typedef struct translation {
    const char *at, *end, *regex, *name;
    size_t n;
    mhf_buf *out;
    mhf_folds *folds;
    int depth;  /* open groups */
    int folded; /* the group that began to disregard case; -1: none did */
} translation;

static mhf_status refuse(const translation *t, const char *what, const char *place, size_t n)
{
    return mhf_fail(MHF_E_DATA, "%s: regular expression '%.*s': %s '%.*s' is not built", t->name,
                    (int)t->n, t->regex, what, (int)n, place);
}

static mhf_status add(const translation *t, const char *text)
{
    return mhf_buf_add_text(t->out, text);
}

static mhf_status take(translation *t, size_t n)
{
    MHF_TRY(mhf_buf_add(t->out, t->at, n));
    t->at += n;
    return MHF_OK;
}

static size_t left(const translation *t)
{
    return (size_t)(t->end - t->at);
}

static bool starts(const translation *t, const char *text)
{
    size_t n = strlen(text);
    return left(t) >= n && memcmp(t->at, text, n) == 0;
}

/* What stands next is no literal: those before and after it are not one text. */
static mhf_status part(const translation *t)
{
    return t->folded < 0 ? MHF_OK : mhf_folds_part(t->folds);
}

static mhf_status literal(const translation *t, uint32_t c)
{
    return t->folded < 0 ? MHF_OK : mhf_folds_add(t->folds, c);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The members of a class escape, to stand inside brackets; NULL when it isn't one. */
static const char *class_members(char escape)
{
    switch (escape) {
    case 's':
        return "\\p{White_Space}";
    case 'd':
        return "\\p{Nd}";
    case 'w':
        return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
    case 'h':
        return "0-9A-Fa-f";
    case 'S':
        return "\\P{White_Space}";
    case 'D':
        return "\\P{Nd}";
    default:
        return NULL;
    }
}

/* Outside brackets Oniguruma looks a word's character up in another table below U+0100, which has
 * the small numbers and fractions. */
static const char latin_numbers[] = "\\xB2\\xB3\\xB9\\xBC-\\xBE";

static mhf_status class_escape(translation *t, bool in_brackets)
{
    char c = t->at[1];
    bool negated = c == 'W' || c == 'H', word = c == 'w' || c == 'W';
    if (negated && in_brackets)
        return refuse(t, "within brackets", t->at, 2);
    if (!in_brackets)
        MHF_TRY(add(t, negated ? "[^" : "["));
    MHF_TRY(add(t, class_members(c == 'W' ? 'w' : c == 'H' ? 'h' : c)));
    if (!in_brackets)
        MHF_TRY(add(t, word ? latin_numbers : ""));
    t->at += 2;
    return add(t, in_brackets ? "" : "]");
}

static bool is_script(const char *name, size_t n)
{
    mhf_buf regex = {0};
    int error;
    PCRE2_SIZE place;
    pcre2_code *code = NULL;
    if (mhf_buf_printf(&regex, "\\p{sc:%.*s}", (int)n, name) == MHF_OK)
        code = pcre2_compile((PCRE2_SPTR)regex.data, regex.n, PCRE2_UTF, &error, &place, NULL);
    pcre2_code_free(code);
    mhf_buf_free(&regex);
    return code != NULL;
}

/* \p{Name}, \p{^Name}, \P{Name}: PCRE2 knows the same names or refuses them. A script's name alone
 * would mean its extensions there. */
static mhf_status property(translation *t, bool in_brackets)
{
    const char *close = memchr(t->at, '}', left(t));
    if (left(t) < 4 || t->at[2] != '{' || !close)
        return refuse(t, "property", t->at, left(t) < 3 ? left(t) : 3);
    /* there the list takes in the other case of the property's characters */
    if (in_brackets && t->folded >= 0)
        return refuse(t, "within case-insensitive brackets", t->at, (size_t)(close + 1 - t->at));
    size_t before = t->at[3] == '^' ? 4 : 3;
    if (is_script(t->at + before, (size_t)(close - t->at) - before)) {
        MHF_TRY(take(t, before));
        MHF_TRY(add(t, "sc:"));
    }
    return take(t, (size_t)(close + 1 - t->at));
}

/* \uHHHH, \xHH, \x{H…} */
static mhf_status code_escape(translation *t, bool in_brackets)
{
    size_t n = t->at[1] == 'u' ? 4 : 2, i = 0;
    if (t->at[1] == 'x' && left(t) > 2 && t->at[2] == '{') {
        const char *close = memchr(t->at, '}', left(t));
        if (!close || close - t->at > 12)
            return refuse(t, "escape", t->at, 3);
        if (!in_brackets)
            MHF_TRY(literal(t, (uint32_t)strtoul(t->at + 3, NULL, 16)));
        return take(t, (size_t)(close + 1 - t->at));
    }
    while (i < n && 2 + i < left(t) && is_hex(t->at[2 + i]))
        i++;
    /* a byte of \x80 or more would be part of a character there, a code point here */
    if (i != n || (n == 2 && t->at[2] >= '8'))
        return refuse(t, "escape", t->at, 2 + i);
    if (!in_brackets) {
        char digits[5] = {0};
        memcpy(digits, t->at + 2, n);
        MHF_TRY(literal(t, (uint32_t)strtoul(digits, NULL, 16)));
    }
    MHF_TRY(add(t, "\\x{"));
    MHF_TRY(mhf_buf_add(t->out, t->at + 2, n));
    t->at += 2 + n;
    return add(t, "}");
}

static mhf_status escape(translation *t, bool in_brackets)
{
    if (left(t) < 2)
        return refuse(t, "a last", "\\", 1);
    char c = t->at[1];
    if (c == 'u' || c == 'x')
        return code_escape(t, in_brackets);
    MHF_TRY(part(t));
    if (strchr("sdwhSDWH", c) && c != 0)
        return class_escape(t, in_brackets);
    if (c == 'p' || c == 'P')
        return property(t, in_brackets);
    if (c == 'v') { /* the one control character, not the class */
        t->at += 2;
        return add(t, "\\x0B");
    }
    bool control = strchr("rntfae", c) && c != 0;
    bool anchor = !in_brackets && (c == 'A' || c == 'z');
    bool literal = (unsigned char)c < 0x80 && !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                                (c >= '0' && c <= '9') || c == 0);
    if (!control && !anchor && !literal)
        return refuse(t, "escape", t->at, 2);
    return take(t, 2);
}

static mhf_status brackets(translation *t)
{
    size_t begin = t->out->n;
    MHF_TRY(part(t));
    MHF_TRY(take(t, 1));
    bool negated = starts(t, "^");
    if (negated)
        MHF_TRY(take(t, 1));
    if (starts(t, "]"))
        return refuse(t, "an empty bracket list", t->at, 1);
    while (t->at < t->end && *t->at != ']') {
        if (*t->at == '\\')
            MHF_TRY(escape(t, true));
        else if (*t->at == '[')
            return refuse(t, "within brackets", t->at, left(t) < 2 ? 1 : 2);
        else if (starts(t, "&&"))
            return refuse(t, "within brackets", t->at, 2);
        else
            MHF_TRY(take(t, 1));
    }
    if (t->at == t->end)
        return refuse(t, "an open", "[", 1);
    MHF_TRY(take(t, 1));
    if (t->folded < 0 || negated)
        return MHF_OK;
    return mhf_folds_add_list(t->folds, t->out->data + begin, t->out->n - begin);
}

static mhf_status group(translation *t)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    if (starts(t, "(*"))
        return refuse(t, "group", t->at, 2);
    t->depth++;
    if (!starts(t, "(?"))
        return take(t, 1);
    if (starts(t, "(?i:") && t->folded < 0) {
        t->folded = t->depth;
        MHF_TRY(part(t));
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (starts(t, known[i]))
            return take(t, strlen(known[i]));
    /* elsewhere Ruby ends the option's scope at a place of its own */
    if (starts(t, "(?i)") && t->at == t->regex) {
        t->folded = t->depth = 0;
        return take(t, 4);
    }
    return refuse(t, "group", t->at, left(t) < 4 ? left(t) : 4);
}

static mhf_status close_group(translation *t)
{
    if (t->depth == t->folded && t->depth > 0)
        t->folded = -1;
    t->depth--;
    return take(t, 1);
}

/* A character that stands for itself, or one of the signs that may follow or part such. */
static mhf_status character(translation *t)
{
    uint32_t c;
    if (strchr(".^$|*+?", *t->at) && *t->at != 0) {
        MHF_TRY(part(t));
        return take(t, starts(t, "++") || starts(t, "*+") || starts(t, "?+") ? 2 : 1);
    }
    int n = mhf_utf8_decode(t->at, left(t), &c);
    MHF_TRY(n > 0 ? literal(t, c) : part(t));
    return take(t, n > 0 ? (size_t)n : 1);
}

/* {n,m}: what follows it differs ("+" is possessive here, "?" after {n} optional there). */
static mhf_status interval(translation *t)
{
    const char *p = t->at + 1;
    bool digits = false, comma = false;
    for (; p < t->end && ((*p >= '0' && *p <= '9') || (*p == ',' && !comma)); p++) {
        digits = digits || *p != ',';
        comma = comma || *p == ',';
    }
    if (p == t->end || *p != '}' || !digits) { /* a brace that stands for itself */
        t->at++;
        return add(t, "\\{");
    }
    size_t n = (size_t)(p + 1 - t->at);
    char after = p + 1 < t->end ? p[1] : 0;
    if (after == '+' || (after == '?' && !comma))
        return refuse(t, "repetition", t->at, n + 1);
    if (t->at[1] == ',') {
        MHF_TRY(add(t, "{0"));
        t->at++;
        n--;
    }
    return take(t, n);
}

static mhf_status translate(translation *t)
{
    while (t->at < t->end) {
        if (*t->at == '\\')
            MHF_TRY(escape(t, false));
        else if (*t->at == '[')
            MHF_TRY(brackets(t));
        else if (*t->at == '(')
            MHF_TRY(group(t));
        else if (*t->at == ')')
            MHF_TRY(close_group(t));
        else if (*t->at == '{')
            MHF_TRY(interval(t));
        else
            MHF_TRY(character(t));
    }
    return MHF_OK;
}

static mhf_status refuse_folds(const translation *t)
{
    char text[4];
    uint32_t c = 0;
    if (t->folds->literals.n == 0 && t->folds->lists.n == 0)
        return MHF_OK;
    mhf_status status = mhf_folds_find(t->folds, &c);
    if (status != MHF_OK)
        return mhf_fail_within(status, "%s: regular expression '%.*s'", t->name, (int)t->n,
                               t->regex);
    if (c == 0)
        return MHF_OK;
    return refuse(t, "case-insensitive matching of several letters with", text,
                  (size_t)mhf_utf8_encode(c, text));
}

mhf_status mhf_pattern_translate(const char *regex, size_t n, const char *name, mhf_buf *out)
{
    mhf_folds folds = {0};
    translation t = {.at = regex,
                     .end = regex + n,
                     .regex = regex,
                     .name = name,
                     .n = n,
                     .out = out,
                     .folds = &folds,
                     .folded = -1};
    mhf_status status = mhf_buf_add(out, "", 0);
    if (status == MHF_OK)
        status = translate(&t);
    if (status == MHF_OK)
        status = refuse_folds(&t);
    mhf_folds_free(&folds);
    return status;
}
