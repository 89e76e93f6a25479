/* SPDX-License-Identifier: ISC */
#include "normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "unicode.h"

static const struct {
    const char *name;
    mhf_normalizer_kind kind;
} known[] = {
    {"NFC", MHF_NORMALIZE_NFC},
    {"NFD", MHF_NORMALIZE_NFD},
    {"NFKC", MHF_NORMALIZE_NFKC},
    {"NFKD", MHF_NORMALIZE_NFKD},
    {"Lowercase", MHF_NORMALIZE_LOWERCASE},
    {"StripAccents", MHF_NORMALIZE_STRIP_ACCENTS},
    {"Strip", MHF_NORMALIZE_STRIP},
    {"Replace", MHF_NORMALIZE_REPLACE},
    {"Prepend", MHF_NORMALIZE_PREPEND},
    {"ByteLevel", MHF_NORMALIZE_BYTE_LEVEL},
};

static mhf_status parse_content(const json_t *json, const char *key, const char *name,
                                mhf_normalizer *out)
{
    const char *content;
    size_t n;
    MHF_TRY(mhf_json_string(json, key, name, &content, &n));
    MHF_TRY(mhf_new(&out->content, (int64_t)n + 1, 1, "a normalizer"));
    memcpy(out->content, content, n);
    out->n_content = (int64_t)n;
    return MHF_OK;
}

static mhf_status parse_members(const json_t *json, const char *name, mhf_normalizer *out)
{
    switch (out->kind) {
    case MHF_NORMALIZE_STRIP:
        MHF_TRY(mhf_json_bool_or(json, "strip_left", name, &out->left));
        return mhf_json_bool_or(json, "strip_right", name, &out->right);
    case MHF_NORMALIZE_REPLACE:
        MHF_TRY(mhf_pattern_parse(json, name, &out->pattern));
        if (!out->pattern.code && out->pattern.n == 0)
            return mhf_fail(MHF_E_DATA, "%s: normalizer Replace with an empty pattern", name);
        return parse_content(json, "content", name, out);
    case MHF_NORMALIZE_PREPEND:
        return parse_content(json, "prepend", name, out);
    default:
        return MHF_OK;
    }
}

static mhf_status parse_sequence(const json_t *json, const char *name, mhf_normalizers *out)
{
    const json_t *list = json_object_get(json, "normalizers");
    if (!json_is_array(list))
        return mhf_fail(MHF_E_DATA, "%s: normalizer Sequence without a list 'normalizers'", name);
    for (size_t i = 0; i < json_array_size(list); i++)
        MHF_TRY(mhf_normalizers_parse(json_array_get(list, i), name, out));
    return MHF_OK;
}

mhf_status mhf_normalizers_parse(const json_t *json, const char *name, mhf_normalizers *out)
{
    const char *type;
    if (!json || json_is_null(json))
        return MHF_OK;
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: a normalizer that is not an object", name);
    MHF_TRY(mhf_json_string(json, "type", name, &type, NULL));
    if (strcmp(type, "Sequence") == 0)
        return parse_sequence(json, name, out);
    size_t i = 0;
    while (i < sizeof known / sizeof known[0] && strcmp(known[i].name, type) != 0)
        i++;
    if (i == sizeof known / sizeof known[0])
        return mhf_fail(MHF_E_DATA, "%s: normalizer '%s' is not built", name, type);
    MHF_TRY(mhf_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list, "normalizers"));
    mhf_normalizer *step = &out->list[out->n++];
    *step = (mhf_normalizer){.kind = known[i].kind, .left = true, .right = true};
    return parse_members(json, name, step);
}

void mhf_normalizers_free(mhf_normalizers *normalizers)
{
    for (int64_t i = 0; i < normalizers->n; i++) {
        mhf_pattern_free(&normalizers->list[i].pattern);
        free(normalizers->list[i].content);
    }
    free(normalizers->list);
    *normalizers = (mhf_normalizers){0};
}

/* Code points one by one: lower case, dropped marks, bytes as characters. */
static mhf_status map_chars(mhf_normalizer_kind kind, mhf_passage *passage, const mhf_part *part)
{
    int64_t kept = part->begin; /* copied in one go when something else comes */
    for (int64_t at = part->begin; at < part->end;) {
        uint32_t c, lower[2];
        char bytes[16];
        int length = mhf_utf8_next(passage->text + at, &c), n = 0;
        bool same = kind == MHF_NORMALIZE_STRIP_ACCENTS && !mhf_char_is_mark(c);
        if (kind == MHF_NORMALIZE_LOWERCASE) {
            int n_lower = mhf_char_lower(c, lower);
            same = n_lower == 1 && lower[0] == c;
            for (int i = 0; i < n_lower; i++)
                n += mhf_utf8_encode(lower[i], bytes + n);
        } else if (kind == MHF_NORMALIZE_BYTE_LEVEL) {
            same = length == 1 && c == mhf_byte_char(c);
            for (int i = 0; i < length; i++)
                n +=
                    mhf_utf8_encode(mhf_byte_char((unsigned char)passage->text[at + i]), bytes + n);
        }
        if (!same) {
            MHF_TRY(mhf_passage_copy(passage, kept, at - kept));
            MHF_TRY(mhf_passage_put(passage, bytes, n, at, length));
            kept = at + length;
        }
        at += length;
    }
    return mhf_passage_copy(passage, kept, part->end - kept);
}

static mhf_status strip(const mhf_normalizer *step, mhf_passage *passage, const mhf_part *part)
{
    int64_t begin = part->begin, end = part->end;
    uint32_t c;
    int n;
    while (step->left && begin < end) {
        n = mhf_utf8_next(passage->text + begin, &c);
        if (!mhf_char_is_space(c))
            break;
        begin += n;
    }
    while (step->right && begin < end) {
        n = mhf_utf8_previous(passage->text + begin, end - begin, &c);
        if (!mhf_char_is_space(c))
            break;
        end -= n;
    }
    return mhf_passage_copy(passage, begin, end - begin);
}

static mhf_status replace(const mhf_normalizer *step, mhf_matcher *matcher, mhf_passage *passage,
                          const mhf_part *part)
{
    int64_t kept = part->begin, begin, end;
    mhf_matches matches = {.pattern = &step->pattern,
                           .matcher = matcher,
                           .text = passage->text + part->begin,
                           .n = part->end - part->begin,
                           .last = -1};
    for (;;) {
        MHF_TRY(mhf_matches_next(&matches, &begin, &end));
        if (begin < 0)
            return mhf_passage_copy(passage, kept, part->end - kept);
        begin += part->begin;
        end += part->begin;
        MHF_TRY(mhf_passage_copy(passage, kept, begin - kept));
        MHF_TRY(mhf_passage_replace(passage, step->content, step->n_content, begin, end - begin));
        kept = end;
    }
}

static mhf_status apply_to_part(const mhf_normalizer *step, mhf_matcher *matcher,
                                mhf_passage *passage, const mhf_part *part)
{
    switch (step->kind) {
    case MHF_NORMALIZE_NFC:
    case MHF_NORMALIZE_NFD:
    case MHF_NORMALIZE_NFKC:
    case MHF_NORMALIZE_NFKD:
        return mhf_normalize_form(step->kind, passage, part);
    case MHF_NORMALIZE_LOWERCASE:
    case MHF_NORMALIZE_STRIP_ACCENTS:
    case MHF_NORMALIZE_BYTE_LEVEL:
        return map_chars(step->kind, passage, part);
    case MHF_NORMALIZE_STRIP:
        return strip(step, passage, part);
    case MHF_NORMALIZE_REPLACE:
        return replace(step, matcher, passage, part);
    case MHF_NORMALIZE_PREPEND:
        if (part->begin < part->end) /* nothing is put before nothing */
            MHF_TRY(mhf_passage_put(passage, step->content, step->n_content, part->begin, 0));
        return mhf_passage_copy(passage, part->begin, part->end - part->begin);
    }
    return mhf_fail(MHF_E_INTERNAL, "a normalizer of unknown kind %d", (int)step->kind);
}

/* The four forms leave ASCII as it is: most texts need no rewriting. */
static bool leaves_alone(const mhf_normalizer *step, const mhf_passage *passage)
{
    if (step->kind > MHF_NORMALIZE_NFKD)
        return false;
    unsigned char high = 0;
    for (int64_t i = 0; i < passage->n; i++)
        high |= (unsigned char)passage->text[i];
    return high < 0x80;
}

mhf_status mhf_normalizers_apply(const mhf_normalizers *normalizers, mhf_matcher *matcher,
                                 mhf_passage *passage)
{
    for (int64_t i = 0; i < normalizers->n; i++) {
        const mhf_normalizer *step = &normalizers->list[i];
        if (leaves_alone(step, passage))
            continue;
        mhf_passage_rewrite(passage);
        for (int64_t j = 0; j < passage->n_parts; j++) {
            mhf_part *part = &passage->parts[j];
            if (part->id >= 0)
                continue;
            int64_t begin = mhf_passage_written(passage);
            MHF_TRY(apply_to_part(step, matcher, passage, part));
            mhf_passage_close_part(passage, part, begin);
        }
        mhf_passage_rewritten(passage);
    }
    return MHF_OK;
}
