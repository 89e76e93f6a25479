/* SPDX-License-Identifier: ISC */
/* JSON out: compact, or as Python's json.dumps(value, indent=2, sort_keys=True) prints it. */
#include <stdlib.h>
#include <string.h>

#include "mhf/base.h"

typedef struct printer {
    mhf_buf *out;
    bool compact; /* on one line, keys as they come, UTF-8 as it is */
} printer;

/* The depth is bounded by what jansson reads. */
static mhf_status print(const printer *p, const json_t *value, int depth);

/* The fewest digits that read back as the same number, laid out as Python does. */
static mhf_status print_real(const printer *p, double value)
{
    char text[64];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
    while (strtod(text, NULL) != value && digits++ < 17);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16)
        return mhf_buf_add_text(p->out, text);
    int decimals = digits - 1 - exponent;
    return mhf_buf_printf(p->out, "%.*f", decimals < 1 ? 1 : decimals, value);
}

static mhf_status print_scalar(const printer *p, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | (p->compact ? 0 : JSON_ENSURE_ASCII));
    if (!text)
        return mhf_fail(MHF_E_NOMEM, "no memory for a JSON text");
    mhf_status status = mhf_buf_add_text(p->out, text);
    free(text);
    return status;
}

static mhf_status new_line(const printer *p, int depth)
{
    return p->compact ? MHF_OK : mhf_buf_printf(p->out, "\n%*s", 2 * depth, "");
}

static mhf_status print_list(const printer *p, const json_t *list, int depth)
{
    size_t n = json_array_size(list);
    if (n == 0)
        return mhf_buf_add_text(p->out, "[]");
    for (size_t i = 0; i < n; i++) {
        MHF_TRY(mhf_buf_add_text(p->out, i ? "," : "["));
        MHF_TRY(new_line(p, depth + 1));
        MHF_TRY(print(p, json_array_get(list, i), depth + 1));
    }
    MHF_TRY(new_line(p, depth));
    return mhf_buf_add_text(p->out, "]");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static mhf_status print_member(const printer *p, const json_t *object, const char *key, int depth)
{
    json_t *name = json_string(key);
    if (!name)
        return mhf_fail(MHF_E_NOMEM, "no memory for a JSON text");
    mhf_status status = print_scalar(p, name);
    json_decref(name);
    MHF_TRY(status);
    MHF_TRY(mhf_buf_add_text(p->out, p->compact ? ":" : ": "));
    return print(p, json_object_get(object, key), depth);
}

static mhf_status print_object(const printer *p, const json_t *object, int depth)
{
    const char **keys = NULL, *key;
    json_t *value;
    size_t n = 0;
    if (json_object_size(object) == 0)
        return mhf_buf_add_text(p->out, "{}");
    MHF_TRY(mhf_new(&keys, (int64_t)json_object_size(object), sizeof *keys, "JSON keys"));
    json_object_foreach((json_t *)object, key, value) keys[n++] = key;
    if (!p->compact)
        qsort(keys, n, sizeof *keys, by_text);
    mhf_status status = MHF_OK;
    for (size_t i = 0; status == MHF_OK && i < n; i++) {
        status = mhf_buf_add_text(p->out, i ? "," : "{");
        if (status == MHF_OK)
            status = new_line(p, depth + 1);
        if (status == MHF_OK)
            status = print_member(p, object, keys[i], depth + 1);
    }
    free(keys);
    MHF_TRY(status);
    MHF_TRY(new_line(p, depth));
    return mhf_buf_add_text(p->out, "}");
}

static mhf_status print(const printer *p, const json_t *value, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return print_object(p, value, depth);
    case JSON_ARRAY:
        return print_list(p, value, depth);
    case JSON_REAL:
        return print_real(p, json_real_value(value));
    default:
        return print_scalar(p, value);
    }
}

static bool has_real(const json_t *value)
{
    const char *key;
    json_t *member;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (has_real(json_array_get(value, i)))
            return true;
    json_object_foreach((json_t *)value, key, member) if (has_real(member)) return true;
    return json_is_real(value);
}

static int append(const char *bytes, size_t n, void *buf)
{
    return mhf_buf_add(buf, bytes, n) == MHF_OK ? 0 : -1;
}

/* Answers of a line each are long lists without a real number: jansson prints those at once. */
mhf_status mhf_json_print(const json_t *value, mhf_buf *out)
{
    if (!has_real(value))
        return json_dump_callback(value, append, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0
                   ? MHF_OK
                   : mhf_fail(MHF_E_NOMEM, "no memory for a JSON text");
    return print(&(printer){.out = out, .compact = true}, value, 0);
}

mhf_status mhf_json_text(const json_t *value, mhf_buf *out)
{
    MHF_TRY(print(&(printer){.out = out}, value, 0));
    return mhf_buf_add_text(out, "\n");
}
