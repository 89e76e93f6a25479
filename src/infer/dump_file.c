/* SPDX-License-Identifier: ISC */
/* Items of a dump in JSON lines. */
#include <inttypes.h>
#include <stdlib.h>

#include "lines.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

/* The items' texts are borrowed from the objects, their ids owned. */
typedef struct item_list {
    mhf_dump_item *items;
    json_t **objects;
    mhf_token **ids;
    int64_t n;
} item_list;

static mhf_status read_span(const json_t *object, const char *where, mhf_dump_item *out)
{
    const json_t *span = json_object_get(object, "span");
    out->span_begin = out->span_end = -1;
    if (!span || json_is_null(span))
        return MHF_OK;
    const json_t *begin = json_array_get(span, 0), *end = json_array_get(span, 1);
    if (json_array_size(span) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return mhf_fail(MHF_E_DATA, "%s: key 'span' is not [start, end) with 0 <= start <= end",
                        where);
    out->span_begin = json_integer_value(begin);
    out->span_end = json_integer_value(end);
    return MHF_OK;
}

static mhf_status read_item(const mhf_lines *lines, int64_t i, int32_t size, item_list *list)
{
    mhf_buf where = {0};
    mhf_dump_item *item = &list->items[i];
    mhf_status status = mhf_lines_parse(lines, i, &list->objects[i], &where);
    if (status != MHF_OK)
        goto out;
    const json_t *object = list->objects[i], *ids = json_object_get(object, "ids");
    item->line = lines->number[i];
    if (ids && json_object_get(object, "text"))
        status = mhf_fail(MHF_E_DATA, "%s: both 'text' and 'ids', expected one", where.data);
    else if (ids)
        status = mhf_lines_ids(ids, "ids", where.data, size, &list->ids[i], &item->n_ids);
    else
        status = mhf_json_string(object, "text", where.data, &item->text, &item->n_text);
    item->ids = list->ids[i];
    if (status == MHF_OK)
        status = read_span(object, where.data, item);
out:
    mhf_buf_free(&where);
    return status;
}

static mhf_status read_items(const mhf_lines *lines, int32_t size, item_list *list)
{
    list->n = lines->n;
    MHF_TRY(mhf_new(&list->items, lines->n, sizeof *list->items, "items"));
    MHF_TRY(mhf_new(&list->objects, lines->n, sizeof *list->objects, "items"));
    MHF_TRY(mhf_new(&list->ids, lines->n, sizeof *list->ids, "items"));
    for (int64_t i = 0; i < lines->n; i++)
        MHF_TRY(read_item(lines, i, size, list));
    return MHF_OK;
}

static void free_items(item_list *list)
{
    for (int64_t i = 0; i < list->n; i++) {
        if (list->objects)
            json_decref(list->objects[i]);
        if (list->ids)
            free(list->ids[i]);
    }
    free(list->items);
    free(list->objects);
    free(list->ids);
}

mhf_status mhf_dump_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                         const mhf_dump_options *options, const char *checkpoint, int64_t step,
                         const char *out)
{
    mhf_lines lines = {0};
    item_list list = {0};
    mhf_status status = mhf_lines_read(in, &lines);
    /* Every rank reads all items: the file's tables are written collectively. */
    if (status == MHF_OK)
        status =
            mhf_agree(read_items(&lines, mhf_counted_rows(model, tokenizer, MHF_ACTUAL), &list));
    if (status == MHF_OK)
        status = mhf_dump_items(model, tokenizer, list.items, list.n, lines.name, options,
                                checkpoint, step, out);
    free_items(&list);
    mhf_lines_free(&lines);
    return status;
}
