/* SPDX-License-Identifier: ISC */
/* String lists, names, and the walk over a whole file. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"

/* ---- string lists -------------------------------------------------------------------------------
 */

static mhf_status put_list(mhf_h5 *file, const char *path, const char *bytes, int64_t n_bytes,
                           const uint64_t *offsets, int64_t n)
{
    mhf_buf name = {0};
    mhf_status status = mhf_buf_printf(&name, "%s/bytes", path);
    if (status == MHF_OK)
        status = mhf_h5_put(file, name.data, MHF_H5_U8, &(mhf_h5_shape){1, {n_bytes}}, bytes);
    mhf_buf_clear(&name);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s/offsets", path);
    if (status == MHF_OK)
        status = mhf_h5_put(file, name.data, MHF_H5_U64, &(mhf_h5_shape){1, {n + 1}}, offsets);
    mhf_buf_free(&name);
    return status;
}

mhf_status mhf_h5_put_strings(mhf_h5 *file, const char *path, int64_t n, const char *const *strings,
                              const size_t *lengths)
{
    mhf_buf bytes = {0};
    uint64_t *offsets = NULL;
    mhf_status status = mhf_new(&offsets, n + 1, sizeof *offsets, path);
    for (int64_t i = 0; status == MHF_OK && i < n; i++) {
        if (strings[i])
            status = mhf_buf_add(&bytes, strings[i], lengths[i]);
        offsets[i + 1] = bytes.n;
    }
    if (status == MHF_OK)
        status = put_list(file, path, bytes.data, (int64_t)bytes.n, offsets, n);
    free(offsets);
    mhf_buf_free(&bytes);
    return status;
}

mhf_status mhf_h5_put_bytes(mhf_h5 *file, const char *path, const void *bytes, size_t n)
{
    return mhf_h5_put(file, path, MHF_H5_U8, &(mhf_h5_shape){1, {(int64_t)n}}, bytes);
}

mhf_status mhf_h5_get_strings(const mhf_h5 *file, const char *path, mhf_h5_strings *out)
{
    mhf_buf name = {0};
    int64_t n_bytes = 0, n = 0;
    *out = (mhf_h5_strings){0};
    mhf_status status = mhf_buf_printf(&name, "%s/bytes", path);
    if (status == MHF_OK)
        status = mhf_h5_get(file, name.data, MHF_H5_U8, &out->bytes, &n_bytes);
    mhf_buf_clear(&name);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s/offsets", path);
    if (status == MHF_OK)
        status = mhf_h5_get(file, name.data, MHF_H5_U64, &out->offsets, &n);
    bool good = status != MHF_OK ||
                (n > 0 && out->offsets[0] == 0 && out->offsets[n - 1] == (uint64_t)n_bytes);
    for (int64_t i = 1; status == MHF_OK && good && i < n; i++)
        good = out->offsets[i - 1] <= out->offsets[i];
    if (!good)
        status = mhf_fail(MHF_E_DATA, "%s: %s does not run from 0 to %lld upwards", file->path.data,
                          name.data, (long long)n_bytes);
    out->n = n - 1;
    mhf_buf_free(&name);
    if (status != MHF_OK)
        mhf_h5_strings_free(out);
    return status;
}

void mhf_h5_strings_free(mhf_h5_strings *strings)
{
    free(strings->bytes);
    free(strings->offsets);
    *strings = (mhf_h5_strings){0};
}

/* ---- names
 * ----------------------------------------------------------------------------------------- */

static mhf_status add_name(mhf_h5_names *names, const char *format, const char *name)
{
    mhf_buf text = {0};
    MHF_TRY(mhf_grow(&names->names, &names->capacity, names->n + 1, sizeof *names->names, "names"));
    MHF_TRY(mhf_buf_printf(&text, "%s%s", format, name));
    names->names[names->n++] = text.data;
    return MHF_OK;
}

void mhf_h5_names_free(mhf_h5_names *names)
{
    for (int64_t i = 0; i < names->n; i++)
        free(names->names[i]);
    free(names->names);
    *names = (mhf_h5_names){0};
}

typedef struct walk {
    mhf_h5_names *names;
    mhf_status status;
} walk;

static herr_t take_member(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    (void)group, (void)info;
    walk *at = context;
    at->status = add_name(at->names, "", name);
    return at->status == MHF_OK ? 0 : -1;
}

mhf_status mhf_h5_list(const mhf_h5 *file, const char *group, mhf_h5_names *out)
{
    *out = (mhf_h5_names){0};
    MHF_TRY(mhf_h5_check_links(file, group));
    walk at = {out, MHF_OK};
    hsize_t place = 0;
    if (H5Literate_by_name(file->id, group, H5_INDEX_NAME, H5_ITER_INC, &place, take_member, &at,
                           H5P_DEFAULT) < 0) {
        if (at.status == MHF_OK)
            at.status = mhf_h5_fail(MHF_E_DATA, file, "can't list %s", group);
        mhf_h5_names_free(out);
    }
    return at.status;
}

/* ---- the whole file
 * ------------------------------------------------------------------------------------ */

static herr_t take_dataset(hid_t file, const char *name, const H5O_info_t *info, void *context)
{
    (void)file;
    static const char sums[] = "checksums/";
    walk *at = context;
    if (info->type == H5O_TYPE_DATASET && strncmp(name, sums, sizeof sums - 1) != 0)
        at->status = add_name(at->names, "/", name);
    return at->status == MHF_OK ? 0 : -1;
}

static mhf_status verify_dataset(const mhf_h5 *file, const char *path, char *buffer)
{
    mhf_h5_type type;
    MHF_TRY(mhf_h5_type_of(file, path, &type));
    mhf_h5_data data;
    mhf_status status = mhf_h5_data_open(file, path, type, 0, &data);
    int64_t most = MHF_H5_SUM_BYTES / mhf_h5_type_size(type);
    for (int64_t first = 0; status == MHF_OK && first < data.count; first += most)
        status = mhf_h5_data_read(&data, first,
                                  data.count - first < most ? data.count - first : most, buffer);
    mhf_h5_data_close(&data);
    return status;
}

mhf_status mhf_h5_datasets(const mhf_h5 *file, mhf_h5_names *out)
{
    walk at = {out, MHF_OK};
    *out = (mhf_h5_names){0};
    if (H5Ovisit2(file->id, H5_INDEX_NAME, H5_ITER_INC, take_dataset, &at, H5O_INFO_BASIC) < 0) {
        if (at.status == MHF_OK)
            at.status = mhf_h5_fail(MHF_E_DATA, file, "can't walk through it");
        mhf_h5_names_free(out);
    }
    return at.status;
}

static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object, (void)info;
    walk *at = context;
    at->status = add_name(at->names, "", name);
    return at->status == MHF_OK ? 0 : -1;
}

mhf_status mhf_h5_attributes(const mhf_h5 *file, const char *object, mhf_h5_names *out)
{
    walk at = {out, MHF_OK};
    hsize_t place = 0;
    *out = (mhf_h5_names){0};
    if (H5Aiterate_by_name(file->id, object, H5_INDEX_NAME, H5_ITER_INC, &place, take_attribute,
                           &at, H5P_DEFAULT) < 0) {
        if (at.status == MHF_OK)
            at.status = mhf_h5_fail(MHF_E_DATA, file, "can't list the attributes of %s", object);
        mhf_h5_names_free(out);
    }
    return at.status;
}

mhf_status mhf_h5_verify(const mhf_h5 *file)
{
    mhf_h5_names names;
    char *buffer = NULL;
    MHF_TRY(mhf_h5_datasets(file, &names));
    mhf_status status = mhf_new(&buffer, MHF_H5_SUM_BYTES, 1, "a piece");
    for (int64_t i = 0; status == MHF_OK && i < names.n; i++)
        status = verify_dataset(file, names.names[i], buffer);
    free(buffer);
    mhf_h5_names_free(&names);
    return status;
}
