/* SPDX-License-Identifier: ISC */
/* What kind of file a path is. */
#include <string.h>

#include "h5.h"
#include "mhf/store.h"

mhf_status mhf_file_format(const char *path, char out[32])
{
    mhf_h5 file;
    mhf_buf format = {0};
    MHF_TRY(mhf_h5_open(path, NULL, &file));
    mhf_status status = mhf_h5_get_text(&file, "/", "format", &format);
    if (status == MHF_OK && (strncmp(format.data, "mhf-", 4) != 0 || format.n > 31))
        status =
            mhf_fail(MHF_E_DATA, "%s: its format '%.40s' is not one of ours", path, format.data);
    if (status == MHF_OK)
        snprintf(out, 32, "%s", format.data);
    mhf_buf_free(&format);
    mhf_h5_free(&file);
    return status;
}

/* ---- in words -------------------------------------------------------------------------------- */

static mhf_status set(json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_set_new(object, key, value) != 0)
        return mhf_fail(MHF_E_NOMEM, "no memory for a description, or '%.40s' is not UTF-8", key);
    return MHF_OK;
}

static mhf_status describe_attribute(const mhf_h5 *file, const char *name, json_t *object)
{
    mhf_buf text = {0};
    int64_t value = 0;
    uint64_t large = 0;
    mhf_status status = mhf_h5_get_text(file, "/", name, &text);
    if (status == MHF_OK) {
        status = set(object, name, json_string(text.data));
        mhf_buf_free(&text);
        return status;
    }
    mhf_buf_free(&text);
    MHF_TRY(mhf_h5_get_int(file, "/", name, INT64_MIN, INT64_MAX, &value));
    MHF_TRY(mhf_h5_get_uint(file, "/", name, &large));
    if (value < 0 || large <= INT64_MAX)
        return set(object, name, json_integer(value));
    return set(object, name, json_sprintf("%llu", (unsigned long long)large));
}

static mhf_status describe_dataset(const mhf_h5 *file, const char *path, json_t *list)
{
    mhf_h5_type type;
    mhf_h5_data data;
    MHF_TRY(mhf_h5_type_of(file, path, &type));
    MHF_TRY(mhf_h5_data_open(file, path, type, 0, &data));
    json_t *entry =
        json_pack("{s:s,s:s,s:[]}", "name", path, "type", mhf_h5_type_name(type), "shape");
    json_t *shape = json_object_get(entry, "shape");
    for (int i = 0; i < data.shape.n; i++)
        json_array_append_new(shape, json_integer(data.shape.dims[i]));
    mhf_h5_data_close(&data);
    if (!entry || json_array_append_new(list, entry) != 0)
        return mhf_fail(MHF_E_NOMEM, "no memory for a description");
    return MHF_OK;
}

static mhf_status describe(const mhf_h5 *file, json_t *object)
{
    mhf_h5_names names;
    MHF_TRY(mhf_h5_attributes(file, "/", &names));
    mhf_status status = MHF_OK;
    for (int64_t i = 0; status == MHF_OK && i < names.n; i++)
        status = describe_attribute(file, names.names[i], object);
    mhf_h5_names_free(&names);
    if (status == MHF_OK)
        status = set(object, "datasets", json_array());
    if (status == MHF_OK)
        status = mhf_h5_datasets(file, &names);
    for (int64_t i = 0; status == MHF_OK && i < names.n; i++)
        status = describe_dataset(file, names.names[i], json_object_get(object, "datasets"));
    mhf_h5_names_free(&names);
    return status;
}

mhf_status mhf_file_describe(const char *path, json_t *object)
{
    mhf_h5 file;
    MHF_TRY(mhf_h5_open(path, NULL, &file));
    mhf_status status = describe(&file, object);
    mhf_h5_free(&file);
    return status;
}

mhf_status mhf_file_verify(const char *path)
{
    mhf_h5 file;
    MHF_TRY(mhf_h5_open(path, NULL, &file));
    mhf_status status = mhf_h5_verify(&file);
    mhf_h5_free(&file);
    return status;
}
