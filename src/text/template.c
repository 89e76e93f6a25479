/* SPDX-License-Identifier: ISC */
#include "template.h"

#include <stdlib.h>
#include <string.h>

static mhf_status check_id(const json_t *json, const char *name, int32_t size, mhf_token *out)
{
    json_int_t id = json_is_integer(json) ? json_integer_value(json) : -1;
    if (id < 0 || id >= size)
        return mhf_fail(MHF_E_DATA, "%s: post_processor: a token id that is not one of 0 to %d",
                        name, size - 1);
    *out = (mhf_token)id;
    return MHF_OK;
}

static mhf_status add_before(mhf_template *out, mhf_token id)
{
    MHF_TRY(
        mhf_grow(&out->before, &out->before_capacity, out->n_before + 1, sizeof id, "a template"));
    out->before[out->n_before++] = id;
    return MHF_OK;
}

static mhf_status add_after(mhf_template *out, mhf_token id)
{
    MHF_TRY(mhf_grow(&out->after, &out->after_capacity, out->n_after + 1, sizeof id, "a template"));
    out->after[out->n_after++] = id;
    return MHF_OK;
}

/* One special token of the template: its ids go before the text, or after it. */
static mhf_status parse_special(const json_t *piece, const json_t *specials, const char *name,
                                int32_t size, bool seen_text, mhf_template *out)
{
    const char *key;
    MHF_TRY(mhf_json_string(piece, "id", name, &key, NULL));
    const json_t *ids = json_object_get(json_object_get(specials, key), "ids");
    if (!json_is_array(ids))
        return mhf_fail(MHF_E_DATA, "%s: post_processor: special token '%s' has no list of ids",
                        name, key);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        mhf_token id = 0;
        MHF_TRY(check_id(json_array_get(ids, i), name, size, &id));
        MHF_TRY(seen_text ? add_after(out, id) : add_before(out, id));
    }
    return MHF_OK;
}

static mhf_status parse_template(const json_t *json, const char *name, int32_t size,
                                 mhf_template *out)
{
    const json_t *single = json_object_get(json, "single");
    const json_t *specials = json_object_get(json, "special_tokens");
    int n_texts = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        const char *id =
            json_string_value(json_object_get(json_object_get(piece, "Sequence"), "id"));
        if (special)
            MHF_TRY(parse_special(special, specials, name, size, n_texts > 0, out));
        else if (id && strcmp(id, "A") == 0)
            n_texts++;
        else
            return mhf_fail(MHF_E_DATA,
                            "%s: post_processor: single[%zu] is neither a special token nor "
                            "sequence A",
                            name, i);
    }
    if (n_texts != 1)
        return mhf_fail(MHF_E_DATA,
                        "%s: post_processor: a template with %d times sequence A is not built, "
                        "expected one",
                        name, n_texts);
    return MHF_OK;
}

/* RobertaProcessing, BertProcessing: "cls" before, "sep" after, each [spelling, id]. */
static mhf_status parse_cls_sep(const json_t *json, const char *name, int32_t size,
                                mhf_template *out)
{
    mhf_token cls = 0, sep = 0;
    MHF_TRY(check_id(json_array_get(json_object_get(json, "cls"), 1), name, size, &cls));
    MHF_TRY(check_id(json_array_get(json_object_get(json, "sep"), 1), name, size, &sep));
    MHF_TRY(add_before(out, cls));
    return add_after(out, sep);
}

static mhf_status parse_sequence(const json_t *json, const char *name, int32_t size,
                                 mhf_template *out)
{
    const json_t *list = json_object_get(json, "processors");
    if (!json_is_array(list))
        return mhf_fail(MHF_E_DATA, "%s: post-processor Sequence without a list 'processors'",
                        name);
    for (size_t i = 0; i < json_array_size(list); i++)
        MHF_TRY(mhf_template_parse(json_array_get(list, i), name, size, out));
    return MHF_OK;
}

mhf_status mhf_template_parse(const json_t *json, const char *name, int32_t size, mhf_template *out)
{
    const char *type;
    if (!json || json_is_null(json))
        return MHF_OK;
    if (!json_is_object(json))
        return mhf_fail(MHF_E_DATA, "%s: a post-processor that is not an object", name);
    MHF_TRY(mhf_json_string(json, "type", name, &type, NULL));
    if (strcmp(type, "ByteLevel") == 0)
        return MHF_OK; /* it trims what other programs call offsets, no token */
    if (strcmp(type, "Sequence") == 0)
        return parse_sequence(json, name, size, out);
    if (out->given)
        return mhf_fail(MHF_E_DATA, "%s: a second post-processor that adds tokens is not built",
                        name);
    out->given = true;
    if (strcmp(type, "TemplateProcessing") == 0)
        return parse_template(json, name, size, out);
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0)
        return parse_cls_sep(json, name, size, out);
    return mhf_fail(MHF_E_DATA, "%s: post-processor '%s' is not built", name, type);
}

void mhf_template_free(mhf_template *around)
{
    free(around->before);
    free(around->after);
    *around = (mhf_template){0};
}
