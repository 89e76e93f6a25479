/* SPDX-License-Identifier: ISC */
#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"

/* Steps that one search may take: no expression in use comes near, a catastrophic one ends here
 * within about a second. */
static const uint32_t match_limit = 5000000;

mhf_status mhf_pattern_literal(const char *literal, size_t n, mhf_pattern *out)
{
    *out = (mhf_pattern){.n = n};
    MHF_TRY(mhf_new(&out->literal, (int64_t)n + 1, 1, "a pattern"));
    memcpy(out->literal, literal, n);
    return MHF_OK;
}

static mhf_status compile(const mhf_buf *regex, const char *name, mhf_pattern *out)
{
    int error;
    size_t place;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return mhf_fail(MHF_E_NOMEM, "no memory for a regular expression");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)regex->data, regex->n, options, &error, &place, context);
    pcre2_compile_context_free(context);
    if (!code) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(error, text, sizeof text);
        return mhf_fail(MHF_E_DATA, "%s: regular expression '%s' at byte %zu: %s", name,
                        regex->data, place, (char *)text);
    }
    *out = (mhf_pattern){.code = code};
    out->jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    return MHF_OK;
}

mhf_status mhf_pattern_regex(const char *regex, size_t n, const char *name, mhf_pattern *out)
{
    mhf_buf translated = {0};
    mhf_status status = mhf_pattern_translate(regex, n, name, &translated);
    if (status == MHF_OK)
        status = compile(&translated, name, out);
    mhf_buf_free(&translated);
    return status;
}

mhf_status mhf_pattern_parse(const json_t *step, const char *name, mhf_pattern *out)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *literal = json_object_get(pattern, "String");
    const json_t *regex = json_object_get(pattern, "Regex");
    if (json_is_string(literal) && !regex)
        return mhf_pattern_literal(json_string_value(literal), json_string_length(literal), out);
    if (json_is_string(regex) && !literal)
        return mhf_pattern_regex(json_string_value(regex), json_string_length(regex), name, out);
    return mhf_fail(MHF_E_DATA, "%s: key 'pattern' is not {\"String\": …} or {\"Regex\": …}", name);
}

void mhf_pattern_free(mhf_pattern *pattern)
{
    free(pattern->literal);
    pcre2_code_free(pattern->code);
    *pattern = (mhf_pattern){0};
}

void mhf_matcher_free(mhf_matcher *matcher)
{
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    *matcher = (mhf_matcher){0};
}

static mhf_status open_matcher(mhf_matcher *matcher)
{
    if (!matcher->data)
        matcher->data = pcre2_match_data_create(1, NULL);
    if (!matcher->context)
        matcher->context = pcre2_match_context_create(NULL);
    if (!matcher->data || !matcher->context)
        return mhf_fail(MHF_E_NOMEM, "no memory for matching");
    pcre2_set_match_limit(matcher->context, match_limit);
    pcre2_set_heap_limit(matcher->context, 64 << 10); /* KiB */
    return MHF_OK;
}

static int match(const mhf_pattern *pattern, mhf_matcher *matcher, const char *text, int64_t n,
                 int64_t from)
{
    if (!pattern->jit)
        return pcre2_match(pattern->code, (PCRE2_SPTR)text, (size_t)n, (size_t)from,
                           PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
    return pcre2_jit_match(pattern->code, (PCRE2_SPTR)text, (size_t)n, (size_t)from, 0,
                           matcher->data, matcher->context);
}

/* A larger stack, made only where the 32 KiB that matching starts with are not enough. */
static mhf_status open_stack(mhf_matcher *matcher)
{
    matcher->stack = pcre2_jit_stack_create(64 << 10, 8 << 20, NULL);
    if (!matcher->stack)
        return mhf_fail(MHF_E_NOMEM, "no memory for matching");
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return MHF_OK;
}

static mhf_status find_literal(const mhf_pattern *pattern, const char *text, int64_t n,
                               int64_t from, int64_t *begin, int64_t *end)
{
    const char *at =
        from > n ? NULL : memmem(text + from, (size_t)(n - from), pattern->literal, pattern->n);
    *begin = at ? at - text : -1;
    *end = at ? *begin + (int64_t)pattern->n : -1;
    return MHF_OK;
}

mhf_status mhf_pattern_find(const mhf_pattern *pattern, mhf_matcher *matcher, const char *text,
                            int64_t n, int64_t from, int64_t *begin, int64_t *end)
{
    if (!pattern->code)
        return find_literal(pattern, text, n, from, begin, end);
    *begin = *end = -1;
    if (from > n)
        return MHF_OK;
    if (!matcher->context)
        MHF_TRY(open_matcher(matcher));
    int found = match(pattern, matcher, text, n, from);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && !matcher->stack) {
        MHF_TRY(open_stack(matcher));
        found = match(pattern, matcher, text, n, from);
    }
    if (found == PCRE2_ERROR_NOMATCH)
        return MHF_OK;
    if (found < 0) {
        PCRE2_UCHAR message[128];
        pcre2_get_error_message(found, message, sizeof message);
        return mhf_fail(MHF_E_DATA,
                        "the tokenizer's regular expression can't be matched at byte %lld of a "
                        "text: %s",
                        (long long)from, (char *)message);
    }
    const size_t *range = pcre2_get_ovector_pointer(matcher->data);
    *begin = (int64_t)range[0];
    *end = (int64_t)range[1];
    return MHF_OK;
}

mhf_status mhf_matches_next(mhf_matches *matches, int64_t *begin, int64_t *end)
{
    for (;;) {
        MHF_TRY(mhf_pattern_find(matches->pattern, matches->matcher, matches->text, matches->n,
                                 matches->from, begin, end));
        if (*begin < 0)
            return MHF_OK;
        if (*begin == *end && *end == matches->last) {
            uint32_t c;
            matches->from +=
                matches->from < matches->n ? mhf_utf8_next(matches->text + matches->from, &c) : 1;
            matches->last = -1;
            continue;
        }
        matches->from = matches->last = *end;
        return MHF_OK;
    }
}
