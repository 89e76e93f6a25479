/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

mhf_status mhf_json_parse(const char *text, size_t n, const char *name, json_t **out)
{
    json_error_t error;
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (!*out)
        return mhf_fail(MHF_E_DATA, "%s: not valid JSON: %s at line %d, column %d", name,
                        error.text, error.line, error.column);
    return MHF_OK;
}

mhf_status mhf_json_read(const char *path, json_t **out)
{
    mhf_buf text = {0};
    mhf_status status = mhf_file_read(path, (size_t)1 << 31, &text);
    if (status == MHF_OK)
        status = mhf_json_parse(text.data, text.n, path, out);
    mhf_buf_free(&text);
    return status;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "a list", "a string", "an integer",
                                        "a real",    "true",   "false",    "null"};
    return names[json_typeof(value)];
}

static mhf_status wrong(const json_t *value, const char *key, const char *name,
                        const char *expected)
{
    return mhf_fail(MHF_E_DATA, "%s: key '%s' is %s, expected %s", name, key, type_name(value),
                    expected);
}

static mhf_status missing(const char *key, const char *name)
{
    return mhf_fail(MHF_E_DATA, "%s: key '%s' is missing", name, key);
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) ? value : NULL;
}

mhf_status mhf_json_int_or(const json_t *object, const char *key, const char *name, int64_t low,
                           int64_t high, int64_t *out)
{
    const json_t *value = member(object, key);
    if (!value)
        return MHF_OK;
    if (!json_is_integer(value))
        return wrong(value, key, name, "an integer");
    int64_t i = json_integer_value(value);
    if (i < low || i > high)
        return mhf_fail(MHF_E_DATA, "%s: key '%s' is %" PRId64 ", expected %" PRId64 " to %" PRId64,
                        name, key, i, low, high);
    *out = i;
    return MHF_OK;
}

mhf_status mhf_json_int(const json_t *object, const char *key, const char *name, int64_t low,
                        int64_t high, int64_t *out)
{
    if (!member(object, key))
        return missing(key, name);
    return mhf_json_int_or(object, key, name, low, high, out);
}

mhf_status mhf_json_real_or(const json_t *object, const char *key, const char *name, double *out)
{
    const json_t *value = member(object, key);
    if (!value)
        return MHF_OK;
    if (!json_is_number(value))
        return wrong(value, key, name, "a number");
    *out = json_number_value(value);
    return MHF_OK;
}

mhf_status mhf_json_bool_or(const json_t *object, const char *key, const char *name, bool *out)
{
    const json_t *value = member(object, key);
    if (!value)
        return MHF_OK;
    if (!json_is_boolean(value))
        return wrong(value, key, name, "true or false");
    *out = json_is_true(value);
    return MHF_OK;
}

mhf_status mhf_json_string_or(const json_t *object, const char *key, const char *name,
                              const char **out, size_t *n)
{
    const json_t *value = member(object, key);
    if (!value)
        return MHF_OK;
    if (!json_is_string(value))
        return wrong(value, key, name, "a string");
    size_t length = json_string_length(value);
    if (n)
        *n = length;
    else if (strlen(json_string_value(value)) != length)
        return mhf_fail(MHF_E_DATA, "%s: key '%s' holds a NUL", name, key);
    *out = json_string_value(value);
    return MHF_OK;
}

mhf_status mhf_json_string(const json_t *object, const char *key, const char *name,
                           const char **out, size_t *n)
{
    if (!member(object, key))
        return missing(key, name);
    return mhf_json_string_or(object, key, name, out, n);
}
