/* SPDX-License-Identifier: ISC */
/* Which tokenizer a file is, however a program has written it: the SHA-256 of its content. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer.h"

/* Merges as pairs, as newer files have them. */
static json_t *pairs_of(const json_t *merges)
{
    json_t *pairs = json_array();
    for (size_t i = 0; pairs && i < json_array_size(merges); i++) {
        json_t *merge = json_array_get(merges, i);
        mhf_spelling l, r;
        const bool text = json_is_string(merge) && mhf_merge_split(merge, &l, &r);
        if (json_array_append_new(pairs, text ? json_pack("[s%,s%]", l.text, l.n, r.text, r.n)
                                              : json_incref(merge))) {
            json_decref(pairs);
            pairs = NULL;
        }
    }
    return pairs;
}

/* The file's members but for those that don't tell how a text is split. */
static json_t *content_of(const json_t *json)
{
    json_t *content = json_copy((json_t *)json);
    json_t *model = json_copy(json_object_get(json, "model"));
    if (!content || !model ||
        json_object_set_new(model, "merges", pairs_of(json_object_get(model, "merges"))) ||
        json_object_set(content, "model", model)) {
        json_decref(content);
        content = NULL;
    } else {
        json_object_del(content, "truncation");
        json_object_del(content, "padding");
    }
    json_decref(model);
    return content;
}

mhf_status mhf_tokenizer_identify(mhf_tokenizer *t, const json_t *json)
{
    json_t *content = content_of(json);
    char *text = content ? json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(content);
    if (!text)
        return mhf_fail(MHF_E_NOMEM, "no memory for a tokenizer's content");
    mhf_sha256_hex(text, strlen(text), t->sha256);
    free(text);
    return MHF_OK;
}

const char *mhf_tokenizer_sha256(const mhf_tokenizer *t)
{
    return t->sha256;
}

bool mhf_tokenizer_is(const mhf_tokenizer *t, const char *sha256)
{
    char of_bytes[65];
    if (strcmp(sha256, t->sha256) == 0)
        return true;
    mhf_sha256_hex(t->json.data, t->json.n, of_bytes);
    return strcmp(sha256, of_bytes) == 0;
}
