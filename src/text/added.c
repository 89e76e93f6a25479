/* SPDX-License-Identifier: ISC */
#include "added.h"

#include <stdlib.h>
#include <string.h>

#include "unicode.h"

static mhf_status parse_token(const json_t *json, const char *name, size_t i, mhf_pieces *vocab,
                              mhf_map *places, mhf_added *out)
{
    const char *content;
    size_t n;
    int64_t id;
    mhf_added_token token = {.normalized = true};
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: added_tokens[%zu] is not an object", name, i);
    MHF_TRY(mhf_json_string(json, "content", name, &content, &n));
    MHF_TRY(mhf_json_int(json, "id", name, 0, INT32_MAX, &id));
    MHF_TRY(mhf_json_bool_or(json, "single_word", name, &token.single_word));
    MHF_TRY(mhf_json_bool_or(json, "lstrip", name, &token.left));
    MHF_TRY(mhf_json_bool_or(json, "rstrip", name, &token.right));
    MHF_TRY(mhf_json_bool_or(json, "special", name, &token.special));
    token.normalized = !token.special;
    MHF_TRY(mhf_json_bool_or(json, "normalized", name, &token.normalized));
    if (n == 0)
        return MHF_OK;
    MHF_TRY(mhf_pieces_add(vocab, content, n, &token.id));
    if (token.id != id)
        return mhf_fail(MHF_E_DATA,
                        "%s: added_tokens[%zu] '%s' has id %lld, expected %d, the vocabulary's or "
                        "the next free one",
                        name, i, content, (long long)id, token.id);
    int64_t place = mhf_map_get(places, &token.id, sizeof token.id, -1);
    if (place >= 0) { /* given twice, the later counts */
        out->list[place] = token;
        return MHF_OK;
    }
    MHF_TRY(mhf_map_put(places, &token.id, sizeof token.id, out->n));
    MHF_TRY(mhf_grow(&out->list, &out->capacity, out->n + 1, sizeof token, "added tokens"));
    out->list[out->n++] = token;
    return MHF_OK;
}

static mhf_status add_pattern(const mhf_normalizers *normalizers, const mhf_pieces *vocab,
                              mhf_matcher *matcher, mhf_passage *passage, int64_t i, mhf_added *out)
{
    size_t n;
    const char *piece = mhf_pieces_get(vocab, out->list[i].id, &n);
    if (!out->list[i].normalized)
        return mhf_added_finder_add(&out->plain, piece, n, i);
    MHF_TRY(mhf_passage_start(passage, piece, n, false));
    MHF_TRY(mhf_normalizers_apply(normalizers, matcher, passage));
    return mhf_added_finder_add(&out->normalized, passage->text, (size_t)passage->n, i);
}

static mhf_status add_patterns(const mhf_normalizers *normalizers, const mhf_pieces *vocab,
                               mhf_matcher *matcher, mhf_passage *passage, bool special,
                               const char *name, mhf_added *out)
{
    for (int64_t i = 0; i < out->n; i++) {
        if (out->list[i].special != special)
            continue;
        mhf_status status = add_pattern(normalizers, vocab, matcher, passage, i, out);
        if (status != MHF_OK)
            return mhf_fail_within(status, "%s: added_tokens", name);
    }
    return MHF_OK;
}

mhf_status mhf_added_parse(const json_t *json, const char *name, const mhf_normalizers *normalizers,
                           mhf_pieces *vocab, mhf_added *out)
{
    mhf_matcher matcher = {0};
    mhf_passage passage = {0};
    mhf_map *places;
    if (json && !json_is_null(json) && !json_is_array(json))
        return mhf_fail(MHF_E_DATA, "%s: added_tokens is not a list", name);
    mhf_status status = mhf_map_new(64, &places);
    if (status != MHF_OK)
        return status;
    for (size_t i = 0; i < json_array_size(json) && status == MHF_OK; i++)
        status = parse_token(json_array_get(json, i), name, i, vocab, places, out);
    mhf_map_free(places);
    /* Of two that look for the same text the first one wins, and special tokens come first. */
    if (status == MHF_OK)
        status = add_patterns(normalizers, vocab, &matcher, &passage, true, name, out);
    if (status == MHF_OK)
        status = add_patterns(normalizers, vocab, &matcher, &passage, false, name, out);
    mhf_added_finder_seal(&out->plain);
    mhf_added_finder_seal(&out->normalized);
    mhf_matcher_free(&matcher);
    mhf_passage_free(&passage);
    return status;
}

void mhf_added_free(mhf_added *added)
{
    free(added->list);
    mhf_added_finder_free(&added->plain);
    mhf_added_finder_free(&added->normalized);
    *added = (mhf_added){0};
}

static bool stands_alone(const char *text, int64_t begin, int64_t end, int64_t n)
{
    uint32_t c;
    if (begin > 0) {
        mhf_utf8_previous(text, begin, &c);
        if (mhf_char_is_word(c))
            return false;
    }
    if (end < n) {
        mhf_utf8_next(text + end, &c);
        if (mhf_char_is_word(c))
            return false;
    }
    return true;
}

static int64_t space_before(const char *text, int64_t begin)
{
    uint32_t c;
    while (begin > 0) {
        int length = mhf_utf8_previous(text, begin, &c);
        if (!mhf_char_is_space(c))
            break;
        begin -= length;
    }
    return begin;
}

static int64_t space_behind(const char *text, int64_t end, int64_t n)
{
    uint32_t c;
    while (end < n) {
        int length = mhf_utf8_next(text + end, &c);
        if (!mhf_char_is_space(c))
            break;
        end += length;
    }
    return end;
}

static mhf_status add_text(mhf_passage *passage, const mhf_part *whole, int64_t begin, int64_t end)
{
    return mhf_passage_add_part(
        passage, (mhf_part){.begin = whole->begin + begin, .end = whole->begin + end, .id = -1});
}

static mhf_status add_token(mhf_passage *passage, const mhf_part *whole, int64_t begin, int64_t end,
                            mhf_token id)
{
    mhf_part part = {.id = id};
    mhf_passage_origin(passage, whole->begin + begin, end - begin, &part.begin, &part.end);
    return mhf_passage_add_part(passage, part);
}

static mhf_status cut_part(const mhf_added *added, const mhf_added_finder *finder,
                           mhf_passage *passage, const mhf_part *whole)
{
    const char *text = passage->text + whole->begin;
    int64_t n = whole->end - whole->begin, done = 0;
    for (int64_t at = 0; at < n;) {
        const int64_t *first = &finder->first[(unsigned char)text[at]];
        const mhf_added_pattern *pattern =
            first[0] < first[1] ? mhf_added_finder_match(finder, text + at, n - at) : NULL;
        if (!pattern) {
            at++;
            continue;
        }
        const mhf_added_token *token = &added->list[pattern->token];
        int64_t begin = at, end = at + (int64_t)pattern->n;
        at = end;
        if (token->single_word && !stands_alone(text, begin, end, n))
            continue;
        if (token->left) {
            int64_t space = space_before(text, begin);
            begin = space > done ? space : done;
        }
        if (token->right)
            end = space_behind(text, end, n);
        if (begin >= end) /* all of it is white space that the token before has taken */
            continue;
        if (done < begin)
            MHF_TRY(add_text(passage, whole, done, begin));
        MHF_TRY(add_token(passage, whole, begin, end, token->id));
        done = end;
    }
    return done != n ? add_text(passage, whole, done, n) : MHF_OK;
}

mhf_status mhf_added_cut(const mhf_added *added, const mhf_added_finder *finder,
                         mhf_passage *passage)
{
    if (finder->n == 0)
        return MHF_OK;
    mhf_passage_cut(passage);
    for (int64_t i = 0; i < passage->n_parts; i++) {
        if (passage->parts[i].id >= 0)
            MHF_TRY(mhf_passage_add_part(passage, passage->parts[i]));
        else
            MHF_TRY(cut_part(added, finder, passage, &passage->parts[i]));
    }
    mhf_passage_cut_done(passage);
    return MHF_OK;
}
