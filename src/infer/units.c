/* SPDX-License-Identifier: ISC */
#include "units.h"

#include <stdlib.h>

/* Enough for the choices of any question; bounds what one thread may get at once. */
enum { MOST = 32 };

/* A key that lines with the same context share; 0 for a line that stands alone. */
static mhf_status context_key(const json_t *object, uint64_t *key)
{
    const json_t *context = json_object_get(object, "context");
    *key = 0;
    if (!context)
        context = json_object_get(object, "context_ids");
    if (json_string_length(context) == 0 && json_array_size(context) == 0)
        return MHF_OK;
    mhf_buf text = {0};
    mhf_status status = mhf_json_print(context, &text);
    if (status == MHF_OK)
        *key = mhf_hash64(text.data, text.n) | 1;
    mhf_buf_free(&text);
    return status;
}

mhf_status mhf_units_cut(mhf_lines *lines, mhf_units_of_lines *out)
{
    mhf_buf where = {0};
    uint64_t before = 0;
    mhf_status status = mhf_new(&out->begin, lines->n + 1, sizeof *out->begin, "requests");
    for (int64_t i = 0; status == MHF_OK && i < lines->n; i++) {
        json_t *object;
        uint64_t key = 0;
        status = mhf_lines_parse(lines, i, &object, &where);
        if (status == MHF_OK)
            status = context_key(object, &key);
        json_decref(object);
        if (key == 0 || key != before || i - out->begin[out->n - 1] >= MOST)
            out->begin[out->n++] = i;
        before = key;
        lines->owner[i] = (int32_t)((out->n - 1) % lines->n_ranks);
    }
    if (status == MHF_OK)
        out->begin[out->n] = lines->n;
    mhf_buf_free(&where);
    return status;
}

void mhf_units_free(mhf_units_of_lines *units)
{
    free(units->begin);
    *units = (mhf_units_of_lines){0};
}
