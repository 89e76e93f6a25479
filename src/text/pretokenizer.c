/* SPDX-License-Identifier: ISC */
#include "pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "unicode.h"

/* The expression of byte-level pre-tokenizers that bring none of their own. */
static const char gpt2_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/* Whitespace: runs of word characters (joiners too) and of what is neither word nor space. */
static const char whitespace_regex[] = "[\\w\\u200C\\u200D]+|[^\\w\\u200C\\u200D\\s]+";

static mhf_status add(mhf_pretokenizers *out, mhf_pretokenizer_kind kind, mhf_cut_behavior behavior)
{
    MHF_TRY(mhf_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list, "pre-tokenizers"));
    out->list[out->n++] = (mhf_pretokenizer){.kind = kind, .behavior = behavior};
    return MHF_OK;
}

static mhf_pretokenizer *last(mhf_pretokenizers *out)
{
    return &out->list[out->n - 1];
}

static mhf_status add_regex(mhf_pretokenizers *out, const char *regex, mhf_cut_behavior behavior)
{
    MHF_TRY(add(out, MHF_PRETOKENIZE_PATTERN, behavior));
    return mhf_pattern_regex(regex, strlen(regex), "pre-tokenizer", &last(out)->pattern);
}

static mhf_status parse_behavior(const json_t *json, const char *name, mhf_cut_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *behavior = names[*out];
    MHF_TRY(mhf_json_string_or(json, "behavior", name, &behavior, NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], behavior) == 0) {
            *out = (mhf_cut_behavior)i;
            return MHF_OK;
        }
    }
    return mhf_fail(MHF_E_DATA, "%s: pre-tokenizer behavior '%s' is not built", name, behavior);
}

static mhf_status parse_char(const json_t *json, const char *key, const char *name, uint32_t *out)
{
    const char *text;
    size_t n;
    MHF_TRY(mhf_json_string(json, key, name, &text, &n));
    if (n == 0 || mhf_utf8_decode(text, n, out) != (int)n)
        return mhf_fail(MHF_E_DATA, "%s: key '%s' is '%s', expected one character", name, key,
                        text);
    return MHF_OK;
}

mhf_status mhf_metaspace_parse(const json_t *json, const char *name, uint32_t *replacement,
                               mhf_prepend_scheme *scheme, bool *split)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *text = names[0];
    bool prefix = true;
    MHF_TRY(parse_char(json, "replacement", name, replacement));
    MHF_TRY(mhf_json_string_or(json, "prepend_scheme", name, &text, NULL));
    MHF_TRY(mhf_json_bool_or(json, "add_prefix_space", name, &prefix));
    MHF_TRY(mhf_json_bool_or(json, "split", name, split));
    size_t i = 0;
    while (i < 3 && strcmp(names[i], text) != 0)
        i++;
    if (i == 3)
        return mhf_fail(MHF_E_DATA, "%s: Metaspace's prepend_scheme '%s' is not built", name, text);
    *scheme = (mhf_prepend_scheme)i;
    if (!prefix && *scheme != MHF_PREPEND_NEVER)
        return mhf_fail(MHF_E_DATA,
                        "%s: Metaspace's add_prefix_space false contradicts prepend_scheme '%s'",
                        name, text);
    return MHF_OK;
}

static mhf_status parse_split(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    MHF_TRY(add(out, MHF_PRETOKENIZE_PATTERN, MHF_CUT_ISOLATED));
    MHF_TRY(mhf_json_bool_or(json, "invert", name, &last(out)->invert));
    MHF_TRY(parse_behavior(json, name, &last(out)->behavior));
    return mhf_pattern_parse(json, name, &last(out)->pattern);
}

static mhf_status parse_byte_level(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    bool prefix = true, use_regex = true;
    MHF_TRY(mhf_json_bool_or(json, "add_prefix_space", name, &prefix));
    MHF_TRY(mhf_json_bool_or(json, "use_regex", name, &use_regex));
    if (prefix)
        MHF_TRY(add(out, MHF_PRETOKENIZE_PREFIX, MHF_CUT_ISOLATED));
    if (use_regex)
        MHF_TRY(add_regex(out, gpt2_regex, MHF_CUT_ISOLATED));
    return add(out, MHF_PRETOKENIZE_BYTES, MHF_CUT_ISOLATED);
}

static mhf_status parse_metaspace(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    bool split = true;
    uint32_t replacement = 0;
    mhf_prepend_scheme scheme = MHF_PREPEND_ALWAYS;
    MHF_TRY(mhf_metaspace_parse(json, name, &replacement, &scheme, &split));
    MHF_TRY(add(out, MHF_PRETOKENIZE_SPACES, MHF_CUT_ISOLATED));
    last(out)->replacement = replacement;
    last(out)->scheme = scheme;
    if (!split)
        return MHF_OK;
    MHF_TRY(add(out, MHF_PRETOKENIZE_CHARS, MHF_CUT_MERGED_WITH_NEXT));
    last(out)->replacement = replacement;
    return MHF_OK;
}

static mhf_status parse_digits(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    bool individual = false;
    MHF_TRY(mhf_json_bool_or(json, "individual_digits", name, &individual));
    MHF_TRY(add(out, MHF_PRETOKENIZE_CHARS, individual ? MHF_CUT_ISOLATED : MHF_CUT_CONTIGUOUS));
    last(out)->is_match = mhf_char_is_numeric;
    return MHF_OK;
}

static mhf_status parse_punctuation(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    MHF_TRY(add(out, MHF_PRETOKENIZE_CHARS, MHF_CUT_ISOLATED));
    last(out)->is_match = mhf_char_is_punctuation;
    return parse_behavior(json, name, &last(out)->behavior);
}

static mhf_status parse_whitespace(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    (void)json;
    (void)name;
    MHF_TRY(add_regex(out, whitespace_regex, MHF_CUT_REMOVED));
    last(out)->invert = true;
    return MHF_OK;
}

static mhf_status parse_whitespace_split(const json_t *json, const char *name,
                                         mhf_pretokenizers *out)
{
    (void)json;
    (void)name;
    MHF_TRY(add(out, MHF_PRETOKENIZE_CHARS, MHF_CUT_REMOVED));
    last(out)->is_match = mhf_char_is_space;
    return MHF_OK;
}

static mhf_status parse_delimiter(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    MHF_TRY(add(out, MHF_PRETOKENIZE_CHARS, MHF_CUT_REMOVED));
    return parse_char(json, "delimiter", name, &last(out)->replacement);
}

static mhf_status parse_sequence(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    const json_t *list = json_object_get(json, "pretokenizers");
    if (!json_is_array(list))
        return mhf_fail(MHF_E_DATA, "%s: pre-tokenizer Sequence without a list 'pretokenizers'",
                        name);
    for (size_t i = 0; i < json_array_size(list); i++)
        MHF_TRY(mhf_pretokenizers_parse(json_array_get(list, i), name, out));
    return MHF_OK;
}

static const struct {
    const char *name;
    mhf_status (*parse)(const json_t *json, const char *name, mhf_pretokenizers *out);
} known[] = {
    {"Sequence", parse_sequence},
    {"Split", parse_split},
    {"ByteLevel", parse_byte_level},
    {"Metaspace", parse_metaspace},
    {"Digits", parse_digits},
    {"Punctuation", parse_punctuation},
    {"Whitespace", parse_whitespace},
    {"WhitespaceSplit", parse_whitespace_split},
    {"CharDelimiterSplit", parse_delimiter},
};

mhf_status mhf_pretokenizers_parse(const json_t *json, const char *name, mhf_pretokenizers *out)
{
    const char *type;
    if (!json || json_is_null(json))
        return MHF_OK;
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: a pre-tokenizer that is not an object", name);
    MHF_TRY(mhf_json_string(json, "type", name, &type, NULL));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, type) == 0) {
            MHF_TRY(known[i].parse(json, name, out));
            out->bytes_last = out->n > 0 && last(out)->kind == MHF_PRETOKENIZE_BYTES;
            return MHF_OK;
        }
    }
    return mhf_fail(MHF_E_DATA, "%s: pre-tokenizer '%s' is not built", name, type);
}

void mhf_pretokenizers_free(mhf_pretokenizers *pretokenizers)
{
    for (int64_t i = 0; i < pretokenizers->n; i++)
        mhf_pattern_free(&pretokenizers->list[i].pattern);
    free(pretokenizers->list);
    *pretokenizers = (mhf_pretokenizers){0};
}

static mhf_status prefix(mhf_passage *passage, const mhf_part *part)
{
    if (part->begin < part->end && passage->text[part->begin] != ' ')
        MHF_TRY(mhf_passage_put(passage, " ", 1, part->begin, 0));
    return mhf_passage_copy(passage, part->begin, part->end - part->begin);
}

static mhf_status bytes(mhf_passage *passage, const mhf_part *part)
{
    for (int64_t at = part->begin; at < part->end; at++) {
        char c[4];
        int n = mhf_utf8_encode(mhf_byte_char((unsigned char)passage->text[at]), c);
        MHF_TRY(mhf_passage_put(passage, c, n, at, 1));
    }
    return MHF_OK;
}

static mhf_status spaces(const mhf_pretokenizer *step, mhf_passage *passage, const mhf_part *part)
{
    char mark[4];
    int n_mark = mhf_utf8_encode(step->replacement, mark);
    const char *text = passage->text;
    int64_t at = part->begin, n = part->end - at;
    bool marked =
        n > 0 && (text[at] == ' ' || (n >= n_mark && memcmp(text + at, mark, (size_t)n_mark) == 0));
    if (n > 0 && !marked &&
        (step->scheme == MHF_PREPEND_ALWAYS ||
         (step->scheme == MHF_PREPEND_FIRST && mhf_passage_leads(passage, part))))
        MHF_TRY(mhf_passage_put(passage, mark, n_mark, at, 0));
    while (at < part->end) {
        const char *space = memchr(text + at, ' ', (size_t)(part->end - at));
        int64_t stop = space ? space - text : part->end;
        MHF_TRY(mhf_passage_copy(passage, at, stop - at));
        at = stop;
        if (space)
            MHF_TRY(mhf_passage_put(passage, mark, n_mark, at++, 1));
    }
    return MHF_OK;
}

static mhf_status rewrite(const mhf_pretokenizer *step, mhf_passage *passage)
{
    mhf_passage_rewrite(passage);
    for (int64_t i = 0; i < passage->n_parts; i++) {
        mhf_part *part = &passage->parts[i];
        if (part->id >= 0)
            continue;
        int64_t begin = mhf_passage_written(passage);
        if (step->kind == MHF_PRETOKENIZE_PREFIX)
            MHF_TRY(prefix(passage, part));
        else if (step->kind == MHF_PRETOKENIZE_BYTES)
            MHF_TRY(bytes(passage, part));
        else
            MHF_TRY(spaces(step, passage, part));
        mhf_passage_close_part(passage, part, begin);
    }
    mhf_passage_rewritten(passage);
    return MHF_OK;
}

mhf_status mhf_pretokenizers_apply(const mhf_pretokenizers *pretokenizers, mhf_matcher *matcher,
                                   mhf_passage *passage)
{
    int64_t n = pretokenizers->n - pretokenizers->bytes_last;
    for (int64_t i = 0; i < n; i++) {
        const mhf_pretokenizer *step = &pretokenizers->list[i];
        bool cuts = step->kind == MHF_PRETOKENIZE_PATTERN || step->kind == MHF_PRETOKENIZE_CHARS;
        MHF_TRY(cuts ? mhf_pretokenizer_cut(step, matcher, passage) : rewrite(step, passage));
    }
    return MHF_OK;
}
