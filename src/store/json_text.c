/* SPDX-License-Identifier: ISC */
#include "json_text.h"

#include <stdlib.h>
#include <string.h>

static mhf_status print(const json_t *value, int depth, mhf_buf *out);

/* The fewest digits that read back as the same number, laid out as Python does. */
static mhf_status print_real(double value, mhf_buf *out)
{
    char text[64];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
    while (strtod(text, NULL) != value && digits++ < 17);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16)
        return mhf_buf_add_text(out, text);
    int decimals = digits - 1 - exponent;
    return mhf_buf_printf(out, "%.*f", decimals < 1 ? 1 : decimals, value);
}

static mhf_status print_scalar(const json_t *value, mhf_buf *out)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    if (!text)
        return mhf_fail(MHF_E_NOMEM, "no memory for a JSON text");
    mhf_status status = mhf_buf_add_text(out, text);
    free(text);
    return status;
}

static mhf_status new_line(int depth, mhf_buf *out)
{
    return mhf_buf_printf(out, "\n%*s", 2 * depth, "");
}

static mhf_status print_list(const json_t *list, int depth, mhf_buf *out)
{
    size_t n = json_array_size(list);
    if (n == 0)
        return mhf_buf_add_text(out, "[]");
    for (size_t i = 0; i < n; i++) {
        MHF_TRY(mhf_buf_add_text(out, i ? "," : "["));
        MHF_TRY(new_line(depth + 1, out));
        MHF_TRY(print(json_array_get(list, i), depth + 1, out));
    }
    MHF_TRY(new_line(depth, out));
    return mhf_buf_add_text(out, "]");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static mhf_status print_member(const json_t *object, const char *key, int depth, mhf_buf *out)
{
    json_t *name = json_string(key);
    if (!name)
        return mhf_fail(MHF_E_NOMEM, "no memory for a JSON text");
    mhf_status status = print_scalar(name, out);
    json_decref(name);
    MHF_TRY(status);
    MHF_TRY(mhf_buf_add_text(out, ": "));
    return print(json_object_get(object, key), depth, out);
}

static mhf_status print_object(const json_t *object, int depth, mhf_buf *out)
{
    const char **keys = NULL, *key;
    json_t *value;
    size_t n = 0;
    if (json_object_size(object) == 0)
        return mhf_buf_add_text(out, "{}");
    MHF_TRY(mhf_new(&keys, (int64_t)json_object_size(object), sizeof *keys, "JSON keys"));
    json_object_foreach((json_t *)object, key, value) keys[n++] = key;
    qsort(keys, n, sizeof *keys, by_text);
    mhf_status status = MHF_OK;
    for (size_t i = 0; status == MHF_OK && i < n; i++) {
        status = mhf_buf_add_text(out, i ? "," : "{");
        if (status == MHF_OK)
            status = new_line(depth + 1, out);
        if (status == MHF_OK)
            status = print_member(object, keys[i], depth + 1, out);
    }
    free(keys);
    MHF_TRY(status);
    MHF_TRY(new_line(depth, out));
    return mhf_buf_add_text(out, "}");
}

/* The depth is bounded by what jansson reads. */
static mhf_status print(const json_t *value, int depth, mhf_buf *out)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return print_object(value, depth, out);
    case JSON_ARRAY:
        return print_list(value, depth, out);
    case JSON_REAL:
        return print_real(json_real_value(value), out);
    default:
        return print_scalar(value, out);
    }
}

mhf_status mhf_json_text(const json_t *value, mhf_buf *out)
{
    MHF_TRY(print(value, 0, out));
    return mhf_buf_add_text(out, "\n");
}
