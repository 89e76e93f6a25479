/* SPDX-License-Identifier: ISC */
/* Attributes: 64-bit integers and UTF-8 text of fixed length. */
#include <string.h>

#include "h5.h"

enum { TEXT_MAX = 1 << 16 };

static mhf_status put_attribute(mhf_h5 *file, const char *object, const char *name, hid_t type,
                                const void *value)
{
    mhf_status status = MHF_OK;
    hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
    if (space < 0)
        return mhf_h5_fail(MHF_E_INTERNAL, file, "can't make a dataspace");
    attribute = H5Acreate_by_name(file->id, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                  H5P_DEFAULT);
    if (attribute < 0 || H5Awrite(attribute, type, value) < 0)
        status = mhf_h5_fail(MHF_E_IO, file, "can't write attribute '%s' of %s", name, object);
    if (attribute >= 0 && H5Aclose(attribute) < 0 && status == MHF_OK)
        status = mhf_h5_fail(MHF_E_IO, file, "can't close attribute '%s' of %s", name, object);
    H5Sclose(space);
    return status;
}

mhf_status mhf_h5_put_text(mhf_h5 *file, const char *object, const char *name, const char *text)
{
    size_t n = strlen(text);
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, n ? n : 1) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
        H5Tset_strpad(type, H5T_STR_NULLPAD) < 0)
        return mhf_h5_fail(MHF_E_INTERNAL, file, "can't make a text type");
    mhf_status status = put_attribute(file, object, name, type, text);
    H5Tclose(type);
    return status;
}

mhf_status mhf_h5_put_int(mhf_h5 *file, const char *object, const char *name, int64_t value)
{
    return put_attribute(file, object, name, H5T_STD_I64LE, &value);
}

mhf_status mhf_h5_put_uint(mhf_h5 *file, const char *object, const char *name, uint64_t value)
{
    return put_attribute(file, object, name, H5T_STD_U64LE, &value);
}

bool mhf_h5_has_attribute(const mhf_h5 *file, const char *object, const char *name)
{
    return H5Aexists_by_name(file->id, object, name, H5P_DEFAULT) > 0;
}

/* Open a scalar attribute; *type is its type in the file. */
static mhf_status open_attribute(const mhf_h5 *file, const char *object, const char *name,
                                 hid_t *attribute, hid_t *type)
{
    *type = *attribute = -1;
    MHF_TRY(mhf_h5_check_attributes(file, object));
    *attribute = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (*attribute < 0)
        return mhf_h5_fail(MHF_E_DATA, file, "no attribute '%s' of %s", name, object);
    *type = H5Aget_type(*attribute);
    hid_t space = H5Aget_space(*attribute);
    bool scalar = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SCALAR;
    if (space >= 0)
        H5Sclose(space);
    if (*type < 0 || !scalar)
        return mhf_fail(MHF_E_DATA, "%s: attribute '%s' of %s is not one value", file->path.data,
                        name, object);
    return MHF_OK;
}

static void close_attribute(hid_t attribute, hid_t type)
{
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
}

mhf_status mhf_h5_get_text(const mhf_h5 *file, const char *object, const char *name, mhf_buf *out)
{
    hid_t attribute, type;
    mhf_status status = open_attribute(file, object, name, &attribute, &type);
    char *text = NULL;
    mhf_buf_clear(out);
    if (status != MHF_OK)
        goto out;
    size_t n = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || n == 0 ||
        n > TEXT_MAX) {
        status = mhf_fail(MHF_E_DATA, "%s: attribute '%s' of %s is not text of fixed length",
                          file->path.data, name, object);
        goto out;
    }
    status = mhf_new(&text, (int64_t)n + 1, 1, name);
    if (status != MHF_OK)
        goto out;
    if (H5Aread(attribute, type, text) < 0)
        status = mhf_h5_fail(MHF_E_DATA, file, "can't read attribute '%s' of %s", name, object);
    else
        status = mhf_buf_add(out, text, strlen(text));
    if (status == MHF_OK && mhf_utf8_valid(out->data, out->n) != out->n)
        status = mhf_fail(MHF_E_DATA, "%s: attribute '%s' of %s is not UTF-8", file->path.data,
                          name, object);
out:
    free(text);
    close_attribute(attribute, type);
    return status;
}

static mhf_status get_integer(const mhf_h5 *file, const char *object, const char *name,
                              hid_t memory, void *out)
{
    hid_t attribute, type;
    mhf_status status = open_attribute(file, object, name, &attribute, &type);
    if (status == MHF_OK && H5Tget_class(type) != H5T_INTEGER)
        status = mhf_fail(MHF_E_DATA, "%s: attribute '%s' of %s is not an integer", file->path.data,
                          name, object);
    if (status == MHF_OK && H5Aread(attribute, memory, out) < 0)
        status = mhf_h5_fail(MHF_E_DATA, file, "can't read attribute '%s' of %s", name, object);
    close_attribute(attribute, type);
    return status;
}

mhf_status mhf_h5_get_int(const mhf_h5 *file, const char *object, const char *name, int64_t low,
                          int64_t high, int64_t *out)
{
    int64_t value = 0;
    MHF_TRY(get_integer(file, object, name, H5T_NATIVE_INT64, &value));
    if (value < low || value > high)
        return mhf_fail(MHF_E_DATA, "%s: attribute '%s' of %s is %lld, expected %lld to %lld",
                        file->path.data, name, object, (long long)value, (long long)low,
                        (long long)high);
    *out = value;
    return MHF_OK;
}

mhf_status mhf_h5_get_uint(const mhf_h5 *file, const char *object, const char *name, uint64_t *out)
{
    return get_integer(file, object, name, H5T_NATIVE_UINT64, out);
}
