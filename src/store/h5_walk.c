/* SPDX-License-Identifier: ISC */
/* Walking through a file: members of groups, names of attributes, all datasets. Groups whose links
 * lie in a heap of their own are refused before HDF5 walks through it: 1.10.8 crashes when the heap
 * is damaged. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"

static mhf_status add_name(mhf_h5_names *names, const char *text)
{
    MHF_TRY(mhf_grow(&names->names, &names->capacity, names->n + 1, sizeof *names->names, "names"));
    char *copy = strdup(text);
    if (!copy)
        return mhf_fail(MHF_E_NOMEM, "no memory for a name");
    names->names[names->n++] = copy;
    return MHF_OK;
}

void mhf_h5_names_free(mhf_h5_names *names)
{
    for (int64_t i = 0; i < names->n; i++)
        free(names->names[i]);
    free(names->names);
    *names = (mhf_h5_names){0};
}

/* ---- kinds of storage ----------------------------------------------------------------------- */

mhf_status mhf_h5_check_group(const mhf_h5 *file, const char *path)
{
    H5G_info_t info;
    if (H5Gget_info_by_name(file->id, path, &info, H5P_DEFAULT) < 0)
        return mhf_h5_fail(MHF_E_DATA, file, "%s can't be opened as a group", path);
    if (info.storage_type != H5G_STORAGE_TYPE_COMPACT)
        return mhf_fail(MHF_E_DATA, "%s: group %s does not keep its links in its header",
                        file->path.data, path);
    return MHF_OK;
}

mhf_status mhf_h5_check_attributes(const mhf_h5 *file, const char *object)
{
    H5O_info_t info;
    if (H5Oget_info_by_name2(file->id, object, &info, H5O_INFO_META_SIZE, H5P_DEFAULT) < 0)
        return mhf_h5_fail(MHF_E_DATA, file, "%s can't be opened", object);
    if (info.meta_size.attr.index_size != 0 || info.meta_size.attr.heap_size != 0)
        return mhf_fail(MHF_E_DATA, "%s: %s does not keep its attributes in its header",
                        file->path.data, object);
    return MHF_OK;
}

/* ---- members and attributes ----------------------------------------------------------------- */

typedef struct walk {
    mhf_h5_names *names;
    mhf_status status;
} walk;

static herr_t take_member(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    (void)group, (void)info;
    walk *at = context;
    at->status = add_name(at->names, name);
    return at->status == MHF_OK ? 0 : -1;
}

mhf_status mhf_h5_list(const mhf_h5 *file, const char *group, mhf_h5_names *out)
{
    walk at = {out, MHF_OK};
    hsize_t place = 0;
    *out = (mhf_h5_names){0};
    if (strcmp(group, "/") != 0)
        MHF_TRY(mhf_h5_check_links(file, group));
    MHF_TRY(mhf_h5_check_group(file, group));
    if (H5Literate_by_name(file->id, group, H5_INDEX_NAME, H5_ITER_INC, &place, take_member, &at,
                           H5P_DEFAULT) < 0) {
        if (at.status == MHF_OK)
            at.status = mhf_h5_fail(MHF_E_DATA, file, "can't list %s", group);
        mhf_h5_names_free(out);
    }
    return at.status;
}

static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object, (void)info;
    walk *at = context;
    at->status = add_name(at->names, name);
    return at->status == MHF_OK ? 0 : -1;
}

mhf_status mhf_h5_attributes(const mhf_h5 *file, const char *object, mhf_h5_names *out)
{
    walk at = {out, MHF_OK};
    hsize_t place = 0;
    *out = (mhf_h5_names){0};
    MHF_TRY(mhf_h5_check_attributes(file, object));
    if (H5Aiterate_by_name(file->id, object, H5_INDEX_NAME, H5_ITER_INC, &place, take_attribute,
                           &at, H5P_DEFAULT) < 0) {
        if (at.status == MHF_OK)
            at.status = mhf_h5_fail(MHF_E_DATA, file, "can't list the attributes of %s", object);
        mhf_h5_names_free(out);
    }
    return at.status;
}

/* ---- the whole file ------------------------------------------------------------------------- */

/* Groups still to be seen, and the addresses of those that were: links may run in circles. */
typedef struct sweep {
    const mhf_h5 *file;
    mhf_h5_names *datasets, groups;
    mhf_map *seen;
} sweep;

static mhf_status take_object(sweep *at, const char *path)
{
    static const char sums[] = "/checksums";
    H5O_info_t info;
    MHF_TRY(mhf_h5_check_links(at->file, path));
    if (H5Oget_info_by_name2(at->file->id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return mhf_h5_fail(MHF_E_DATA, at->file, "%s can't be opened", path);
    if (info.type == H5O_TYPE_DATASET)
        return add_name(at->datasets, path);
    if (info.type != H5O_TYPE_GROUP || strcmp(path, sums) == 0 ||
        mhf_map_get(at->seen, &info.addr, sizeof info.addr, 0) != 0)
        return MHF_OK;
    MHF_TRY(mhf_map_put(at->seen, &info.addr, sizeof info.addr, 1));
    return add_name(&at->groups, path);
}

static mhf_status sweep_group(sweep *at, const char *group)
{
    mhf_h5_names members;
    mhf_buf path = {0};
    MHF_TRY(mhf_h5_list(at->file, group, &members));
    mhf_status status = MHF_OK;
    for (int64_t i = 0; status == MHF_OK && i < members.n; i++) {
        status = mhf_path_join(group, members.names[i], &path);
        if (status == MHF_OK)
            status = take_object(at, path.data);
    }
    mhf_buf_free(&path);
    mhf_h5_names_free(&members);
    return status;
}

mhf_status mhf_h5_datasets(const mhf_h5 *file, mhf_h5_names *out)
{
    sweep at = {.file = file, .datasets = out};
    *out = (mhf_h5_names){0};
    mhf_status status = mhf_map_new(16, &at.seen);
    if (status == MHF_OK)
        status = add_name(&at.groups, "/");
    for (int64_t i = 0; status == MHF_OK && i < at.groups.n; i++)
        status = sweep_group(&at, at.groups.names[i]);
    mhf_h5_names_free(&at.groups);
    mhf_map_free(at.seen);
    if (status != MHF_OK)
        mhf_h5_names_free(out);
    return status;
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
