/* SPDX-License-Identifier: ISC */
/* Reading datasets of files that nobody vouches for. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"

bool mhf_h5_exists(const mhf_h5 *file, const char *path)
{
    return mhf_h5_check_links(file, path) == MHF_OK;
}

mhf_status mhf_h5_check_links(const mhf_h5 *file, const char *path)
{
    mhf_buf part = {0};
    MHF_TRY(mhf_h5_check_group(file, "/"));
    mhf_status status = mhf_buf_add_text(&part, path);
    for (size_t i = 1; status == MHF_OK && i <= part.n; i++) {
        if (part.data[i] != '/' && part.data[i] != 0)
            continue;
        char kept = part.data[i];
        part.data[i] = 0;
        H5L_info_t info;
        if (H5Lexists(file->id, part.data, H5P_DEFAULT) <= 0)
            status = mhf_fail(MHF_E_DATA, "%s: there is no %s in it", file->path.data, path);
        else if (H5Lget_info(file->id, part.data, &info, H5P_DEFAULT) < 0)
            status = mhf_h5_fail(MHF_E_DATA, file, "%s can't be read", part.data);
        else if (info.type != H5L_TYPE_HARD)
            status = mhf_fail(MHF_E_DATA, "%s: %s is a link that leads elsewhere", file->path.data,
                              part.data);
        else if (kept == '/')
            status = mhf_h5_check_group(file, part.data);
        part.data[i] = kept;
    }
    mhf_buf_free(&part);
    return status;
}

static bool equals(hid_t found, mhf_h5_type type)
{
    hid_t wanted = mhf_h5_type_new(type);
    bool equal = wanted >= 0 && H5Tequal(found, wanted) > 0;
    if (wanted >= 0)
        H5Tclose(wanted);
    return equal;
}

const char *mhf_h5_type_name(mhf_h5_type type)
{
    static const char *const names[] = {"uint8", "uint16",  "uint32",   "uint64",  "int32",
                                        "int64", "float16", "bfloat16", "float32", "float64"};
    return names[type];
}

mhf_status mhf_h5_type_of(const mhf_h5 *file, const char *path, mhf_h5_type *out)
{
    MHF_TRY(mhf_h5_check_links(file, path));
    hid_t data = H5Dopen2(file->id, path, H5P_DEFAULT);
    hid_t found = data < 0 ? -1 : H5Dget_type(data);
    mhf_status status = MHF_OK;
    int type = MHF_H5_U8;
    if (found < 0)
        status = mhf_h5_fail(MHF_E_DATA, file, "%s can't be opened as a dataset", path);
    while (status == MHF_OK && !equals(found, (mhf_h5_type)type))
        if (++type > MHF_H5_F64)
            status = mhf_fail(MHF_E_DATA, "%s: %s has a type that is not one of ours",
                              file->path.data, path);
    *out = (mhf_h5_type)type;
    if (found >= 0)
        H5Tclose(found);
    if (data >= 0)
        H5Dclose(data);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static mhf_status check_type(const mhf_h5_data *data)
{
    hid_t found = H5Dget_type(data->id);
    bool equal = found >= 0 && equals(found, data->type);
    if (found >= 0)
        H5Tclose(found);
    if (!equal)
        return mhf_fail(MHF_E_DATA, "%s: the type of %s is not %s", data->file->path.data,
                        data->path.data, mhf_h5_type_name(data->type));
    return MHF_OK;
}

static mhf_status take_shape(mhf_h5_data *data, int n_dims)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = H5Dget_space(data->id);
    int n = -1;
    if (space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE)
        n = H5Sget_simple_extent_dims(space, dims, NULL);
    if (space >= 0)
        H5Sclose(space);
    const char *file = data->file->path.data, *path = data->path.data;
    if (n < 1 || n > 3 || (n_dims != 0 && n != n_dims))
        return mhf_fail(MHF_E_DATA, "%s: %s has %d dimensions, expected %d", file, path, n, n_dims);
    data->shape.n = n;
    data->row = 1;
    int64_t bytes = mhf_h5_type_size(data->type);
    for (int i = n - 1; i >= 0; i--) {
        if (dims[i] > INT64_MAX || !mhf_mul(bytes, (int64_t)dims[i], &bytes))
            return mhf_fail(MHF_E_DATA, "%s: %s claims more than 2^63 bytes", file, path);
        data->shape.dims[i] = (int64_t)dims[i];
        data->row *= i > 0 ? (int64_t)dims[i] : 1;
    }
    data->count = bytes / mhf_h5_type_size(data->type);
    if (bytes > data->file->bytes)
        return mhf_fail(MHF_E_DATA, "%s: %s claims %lld bytes, the file has %lld", file, path,
                        (long long)bytes, (long long)data->file->bytes);
    if (n == 3 && bytes > MHF_H5_SUM_BYTES)
        return mhf_fail(MHF_E_DATA, "%s: %s has three dimensions and more than 1 MiB", file, path);
    return MHF_OK;
}

/* The bytes must really be there, in this file and as they are: no filter that could blow up, no
 * other file that they could come from. */
static mhf_status check_storage(const mhf_h5_data *data)
{
    const mhf_h5 *file = data->file;
    const char *path = data->path.data;
    int64_t bytes = data->count * mhf_h5_type_size(data->type);
    hid_t list = H5Dget_create_plist(data->id);
    if (list < 0)
        return mhf_h5_fail(MHF_E_DATA, file, "%s can't be opened", path);
    H5D_layout_t layout = H5Pget_layout(list);
    bool plain =
        H5Pget_nfilters(list) == 0 &&
        (layout == H5D_CHUNKED || (layout == H5D_CONTIGUOUS && H5Pget_external_count(list) == 0));
    H5Pclose(list);
    if (!plain)
        return mhf_fail(MHF_E_DATA, "%s: %s is not stored plainly in the file", file->path.data,
                        path);
    if (bytes == 0)
        return MHF_OK;
    if (H5Dget_storage_size(data->id) < (hsize_t)bytes)
        return mhf_fail(MHF_E_DATA, "%s: %s claims %lld bytes and stores %llu", file->path.data,
                        path, (long long)bytes, (unsigned long long)H5Dget_storage_size(data->id));
    haddr_t offset = layout == H5D_CONTIGUOUS ? H5Dget_offset(data->id) : 0;
    if (offset > (haddr_t)(file->bytes - bytes))
        return mhf_fail(MHF_E_DATA, "%s: %s lies past the file's end", file->path.data, path);
    return MHF_OK;
}

static mhf_status open_plain(const mhf_h5 *file, const char *path, mhf_h5_type type, int n_dims,
                             mhf_h5_data *data)
{
    *data = (mhf_h5_data){.file = file, .id = -1, .type = type};
    MHF_TRY(mhf_buf_add_text(&data->path, path));
    MHF_TRY(mhf_h5_check_links(file, path));
    data->id = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (data->id < 0)
        return mhf_h5_fail(MHF_E_DATA, file, "%s can't be opened as a dataset", path);
    MHF_TRY(check_type(data));
    MHF_TRY(take_shape(data, n_dims));
    return check_storage(data);
}

static mhf_status transfer(const mhf_h5_data *data, int64_t first, int64_t count, void *out)
{
    hid_t type = mhf_h5_type_new(data->type);
    mhf_status status = MHF_OK;
    if (type < 0 ||
        mhf_h5_transfer(data->id, type, data->shape.n, data->row, first, count, out, NULL) < 0)
        status = mhf_h5_fail(MHF_E_DATA, data->file, "can't read %s", data->path.data);
    if (type >= 0)
        H5Tclose(type);
    return status;
}

static mhf_status read_sums(mhf_h5_data *data)
{
    mhf_h5_data sums = {.id = -1};
    mhf_buf path = {0};
    int64_t bytes = data->count * mhf_h5_type_size(data->type);
    int64_t n = bytes / MHF_H5_SUM_BYTES + (bytes % MHF_H5_SUM_BYTES != 0);
    mhf_status status = mhf_h5_sums_path(data->path.data, &path);
    if (status == MHF_OK)
        status = open_plain(data->file, path.data, MHF_H5_U64, 1, &sums);
    if (status == MHF_OK && sums.count != n)
        status = mhf_fail(MHF_E_DATA, "%s: %s has %lld checksums, expected %lld",
                          data->file->path.data, path.data, (long long)sums.count, (long long)n);
    if (status == MHF_OK)
        status = mhf_new(&data->sums, n, sizeof *data->sums, "checksums");
    if (status == MHF_OK)
        status = mhf_new(&data->verified, n, 1, "checksums");
    if (status == MHF_OK)
        status = mhf_new(&data->piece, bytes < MHF_H5_SUM_BYTES ? bytes : MHF_H5_SUM_BYTES, 1,
                         "a piece");
    if (status == MHF_OK && n > 0)
        status = transfer(&sums, 0, n, data->sums);
    mhf_h5_data_close(&sums);
    mhf_buf_free(&path);
    return status;
}

mhf_status mhf_h5_data_open(const mhf_h5 *file, const char *path, mhf_h5_type type, int n_dims,
                            mhf_h5_data *data)
{
    mhf_status status = open_plain(file, path, type, n_dims, data);
    if (status == MHF_OK)
        status = read_sums(data);
    if (status != MHF_OK)
        mhf_h5_data_close(data);
    return status;
}

void mhf_h5_data_close(mhf_h5_data *data)
{
    if (data->id > 0)
        H5Dclose(data->id);
    mhf_buf_free(&data->path);
    free(data->sums);
    free(data->verified);
    free(data->piece);
    *data = (mhf_h5_data){.id = -1};
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Check the pieces that `bytes` holds, from piece `i` on. */
static mhf_status check_sums(mhf_h5_data *data, int64_t i, const char *bytes, int64_t n)
{
    for (int64_t begin = 0; begin < n; begin += MHF_H5_SUM_BYTES, i++) {
        int64_t rest = n - begin < MHF_H5_SUM_BYTES ? n - begin : MHF_H5_SUM_BYTES;
        if (mhf_hash64(bytes + begin, (size_t)rest) != data->sums[i])
            return mhf_fail(MHF_E_DATA, "%s: %s is damaged between its bytes %lld and %lld",
                            data->file->path.data, data->path.data,
                            (long long)(i * MHF_H5_SUM_BYTES),
                            (long long)(i * MHF_H5_SUM_BYTES + rest));
        data->verified[i] = 1;
    }
    return MHF_OK;
}

/* Elements first … inside piece i, which was not verified yet or is only wanted in part. */
static mhf_status read_part(mhf_h5_data *data, int64_t i, int64_t first, int64_t count, char *out)
{
    int64_t size = mhf_h5_type_size(data->type), a_piece = MHF_H5_SUM_BYTES / size;
    if (data->verified[i] && data->shape.n < 3)
        return transfer(data, first, count, out);
    int64_t begin = i * a_piece;
    int64_t n = data->count - begin < a_piece ? data->count - begin : a_piece;
    MHF_TRY(transfer(data, begin, n, data->piece));
    MHF_TRY(check_sums(data, i, data->piece, n * size));
    memcpy(out, data->piece + (first - begin) * size, (size_t)(count * size));
    return MHF_OK;
}

mhf_status mhf_h5_data_read(mhf_h5_data *data, int64_t first, int64_t count, void *out)
{
    if (first < 0 || count < 0 || first > data->count - count)
        return mhf_fail(MHF_E_DATA, "%s: elements %lld … of %s were wanted, it has %lld",
                        data->file->path.data, (long long)first, data->path.data,
                        (long long)data->count);
    int64_t size = mhf_h5_type_size(data->type), a_piece = MHF_H5_SUM_BYTES / size;
    int64_t end = first + count;
    char *to = out;
    while (first < end) {
        int64_t i = first / a_piece, n = end - first;
        if (first % a_piece == 0 && (n >= a_piece || end == data->count)) {
            int64_t most = MHF_H5_PIECE_BYTES / size;
            n = n > most ? most : n;
            if (n % a_piece != 0 && first + n != data->count)
                n -= n % a_piece;
            MHF_TRY(transfer(data, first, n, to));
            MHF_TRY(check_sums(data, i, to, n * size));
        } else {
            int64_t rest = (i + 1) * a_piece - first;
            n = n < rest ? n : rest;
            MHF_TRY(read_part(data, i, first, n, to));
        }
        first += n;
        to += n * size;
    }
    return MHF_OK;
}

mhf_status mhf_h5_get(const mhf_h5 *file, const char *path, mhf_h5_type type, void *array,
                      int64_t *count)
{
    mhf_h5_data data;
    void *values = NULL;
    mhf_status status = mhf_h5_data_open(file, path, type, 1, &data);
    if (status == MHF_OK)
        status = mhf_new(&values, data.count, (size_t)mhf_h5_type_size(type), path);
    if (status == MHF_OK)
        status = mhf_h5_data_read(&data, 0, data.count, values);
    if (status == MHF_OK) {
        *count = data.count;
        memcpy(array, &values, sizeof values);
        values = NULL;
    }
    free(values);
    mhf_h5_data_close(&data);
    return status;
}

mhf_status mhf_h5_get_bytes(const mhf_h5 *file, const char *path, mhf_buf *out)
{
    char *bytes = NULL;
    int64_t n = 0;
    mhf_buf_clear(out);
    mhf_status status = mhf_h5_get(file, path, MHF_H5_U8, &bytes, &n);
    if (status == MHF_OK)
        status = mhf_buf_add(out, bytes, (size_t)n);
    free(bytes);
    return status;
}
