/* SPDX-License-Identifier: ISC */
/* How a tokenizer that has grown may split old texts otherwise: read off the two files. */
#include <string.h>

#include "tokenizer.h"

static mhf_status name_part(mhf_buf *out, const char *name)
{
    return mhf_buf_printf(out, "%s%s", out->n > 0 ? ", " : "", name);
}

/* ---- members -------------------------------------------------------------------------------- */

/* Files of other ages leave a key out, say null, or say that it is off. */
static bool is_off(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static bool same(const json_t *a, const json_t *b)
{
    return (is_off(a) && is_off(b)) || (a && b && json_equal(a, b));
}

static mhf_status compare_members(const json_t *old, const json_t *grown, mhf_buf *out)
{
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    static const char *const flags[] = {"unk_token",          "continuing_subword_prefix",
                                        "end_of_word_suffix", "fuse_unk",
                                        "byte_fallback",      "ignore_merges"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!same(json_object_get(old, parts[i]), json_object_get(grown, parts[i])))
            MHF_TRY(name_part(out, parts[i]));
    const json_t *a = json_object_get(old, "model"), *b = json_object_get(grown, "model");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!same(json_object_get(a, flags[i]), json_object_get(b, flags[i])))
            MHF_TRY(name_part(out, flags[i]));
    return MHF_OK;
}

/* ---- added tokens --------------------------------------------------------------------------- */

static const json_t *find_added(const json_t *list, const json_t *id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_object_get(json_array_get(list, i), "id"), id))
            return json_array_get(list, i);
    return NULL;
}

static bool same_added(const json_t *a, const json_t *b)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!same(json_object_get(a, flags[i]), json_object_get(b, flags[i])))
            return false;
    return b != NULL;
}

static mhf_status compare_added(const json_t *old, const json_t *grown, mhf_buf *out)
{
    const json_t *before = json_object_get(old, "added_tokens");
    const json_t *after = json_object_get(grown, "added_tokens");
    for (size_t i = 0; i < json_array_size(before); i++) {
        const json_t *token = json_array_get(before, i);
        if (same_added(token, find_added(after, json_object_get(token, "id"))))
            continue;
        MHF_TRY(name_part(out, "added token "));
        return mhf_buf_printf(out, "'%.64s'", json_string_value(json_object_get(token, "content")));
    }
    return MHF_OK;
}

/* ---- merges --------------------------------------------------------------------------------- */

/* Both were loaded, so they are merges. */
static bool same_merge(const json_t *a, const json_t *b)
{
    mhf_spelling l[2], r[2];
    return mhf_merge_split(a, &l[0], &r[0]) && mhf_merge_split(b, &l[1], &r[1]) &&
           l[0].n == l[1].n && memcmp(l[0].text, l[1].text, l[0].n) == 0 && r[0].n == r[1].n &&
           memcmp(r[0].text, r[1].text, r[0].n) == 0;
}

static mhf_status compare_merges(const json_t *old, const json_t *grown, mhf_buf *out)
{
    const json_t *before = json_object_get(json_object_get(old, "model"), "merges");
    const json_t *after = json_object_get(json_object_get(grown, "model"), "merges");
    const size_t n = json_array_size(before), m = json_array_size(after);
    size_t found = 0, between = 0;
    for (size_t j = 0; found < n && j < m; j++) {
        if (same_merge(json_array_get(before, found), json_array_get(after, j)))
            found++;
        else
            between++;
    }
    if (found == n && between == 0)
        return MHF_OK;
    MHF_TRY(name_part(out, "merges ("));
    if (found == n)
        return mhf_buf_printf(out, "%zu new ones come before old ones)", between);
    mhf_spelling l = {"", 0}, r = {"", 0};
    mhf_merge_split(json_array_get(before, found), &l, &r);
    return mhf_buf_printf(out, "'%.*s' + '%.*s' is absent or comes in another order)",
                          l.n < 64 ? (int)l.n : 64, l.text, r.n < 64 ? (int)r.n : 64, r.text);
}

mhf_status mhf_tokenizer_differences(const mhf_tokenizer *old, const mhf_tokenizer *grown,
                                     mhf_buf *out)
{
    json_t *a = NULL, *b = NULL;
    mhf_status status = mhf_json_parse(old->json.data, old->json.n, "tokenizer.json", &a);
    if (status == MHF_OK)
        status = mhf_json_parse(grown->json.data, grown->json.n, "tokenizer.json", &b);
    if (status == MHF_OK)
        status = compare_members(a, b, out);
    if (status == MHF_OK)
        status = compare_added(a, b, out);
    if (status == MHF_OK)
        status = compare_merges(a, b, out);
    json_decref(a);
    json_decref(b);
    return status;
}
