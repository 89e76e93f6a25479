/* SPDX-License-Identifier: ISC */
/* Writing datasets and their checksums. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"

int64_t mhf_h5_type_size(mhf_h5_type type)
{
    static const int64_t sizes[] = {1, 2, 4, 8, 4, 8, 2, 2, 4, 8};
    return sizes[type];
}

/* A float of 16 bits: sign, exponent of `exponent` bits, mantissa of the rest. */
static hid_t half_type(size_t exponent, size_t bias)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    size_t mantissa = 15 - exponent;
    if (type >= 0 && (H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa) < 0 ||
                      H5Tset_precision(type, 16) < 0 || H5Tset_size(type, 2) < 0 ||
                      H5Tset_ebias(type, bias) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t mhf_h5_type_new(mhf_h5_type type)
{
    switch (type) {
    case MHF_H5_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case MHF_H5_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case MHF_H5_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case MHF_H5_U64:
        return H5Tcopy(H5T_STD_U64LE);
    case MHF_H5_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case MHF_H5_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case MHF_H5_F16:
        return half_type(5, 15);
    case MHF_H5_BF16:
        return half_type(8, 127);
    case MHF_H5_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case MHF_H5_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    }
    return -1;
}

mhf_status mhf_h5_sums_path(const char *path, mhf_buf *out)
{
    mhf_buf_clear(out);
    return mhf_buf_printf(out, "/checksums%s", path);
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Make the groups above `path`. */
static mhf_status make_groups(mhf_h5 *file, const char *path)
{
    mhf_buf part = {0};
    mhf_status status = mhf_buf_add_text(&part, path);
    for (size_t i = 1; status == MHF_OK && i < part.n; i++) {
        if (part.data[i] != '/')
            continue;
        part.data[i] = 0;
        if (H5Lexists(file->id, part.data, H5P_DEFAULT) <= 0) {
            hid_t list = mhf_h5_creation_new(H5P_GROUP_CREATE);
            hid_t group =
                list < 0 ? -1 : H5Gcreate2(file->id, part.data, H5P_DEFAULT, list, H5P_DEFAULT);
            if (group < 0 || H5Gclose(group) < 0)
                status = mhf_h5_fail(MHF_E_IO, file, "can't make group %s", part.data);
            if (list >= 0)
                H5Pclose(list);
        }
        part.data[i] = '/';
    }
    mhf_buf_free(&part);
    return status;
}

static mhf_status create_dataset(mhf_h5 *file, const char *path, mhf_h5_type type,
                                 const mhf_h5_shape *shape, int64_t chunk_rows)
{
    MHF_TRY(make_groups(file, path));
    mhf_status status = MHF_OK;
    hsize_t dims[3], chunk[3];
    for (int i = 0; i < shape->n; i++)
        chunk[i] = dims[i] = (hsize_t)shape->dims[i];
    chunk[0] = (hsize_t)chunk_rows;
    hid_t kind = mhf_h5_type_new(type), space = H5Screate_simple(shape->n, dims, NULL);
    hid_t list = mhf_h5_creation_new(H5P_DATASET_CREATE), data = -1;
    /* Room at once and no fill: every byte is written by whoever owns it. */
    if (kind >= 0 && space >= 0 && list >= 0 &&
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0 &&
        (chunk_rows == 0 || H5Pset_chunk(list, shape->n, chunk) >= 0))
        data = H5Dcreate2(file->id, path, kind, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (data < 0 || H5Dclose(data) < 0)
        status = mhf_h5_fail(MHF_E_IO, file, "can't make dataset %s", path);
    if (list >= 0)
        H5Pclose(list);
    if (space >= 0)
        H5Sclose(space);
    if (kind >= 0)
        H5Tclose(kind);
    return status;
}

static int64_t count_sums(int64_t bytes)
{
    return (bytes + MHF_H5_SUM_BYTES - 1) / MHF_H5_SUM_BYTES;
}

mhf_status mhf_h5_reserve(mhf_h5 *file, const char *path, mhf_h5_type type,
                          const mhf_h5_shape *shape, int64_t chunk_rows)
{
    int64_t bytes = mhf_h5_type_size(type);
    for (int i = 0; i < shape->n; i++)
        if (!mhf_mul(bytes, shape->dims[i], &bytes))
            return mhf_fail(MHF_E_INTERNAL, "%s: %s would be too large", file->path.data, path);
    if (shape->n == 3 && bytes > MHF_H5_SUM_BYTES) /* see mhf_h5_transfer */
        return mhf_fail(MHF_E_INTERNAL, "%s: %s is too large for three dimensions", file->path.data,
                        path);
    MHF_TRY(create_dataset(file, path, type, shape, chunk_rows));
    mhf_buf sums = {0};
    mhf_status status = mhf_h5_sums_path(path, &sums);
    mhf_h5_shape n = {1, {count_sums(bytes), 0, 0}};
    if (status == MHF_OK)
        status = create_dataset(file, sums.data, MHF_H5_U64, &n, 0);
    mhf_buf_free(&sums);
    return status;
}

/* ---- transfers ------------------------------------------------------------------------------ */

static herr_t transfer_block(hid_t data, hid_t type, const hsize_t *start, const hsize_t *count,
                             int n_dims, void *read, const void *write)
{
    hsize_t n = 1;
    for (int i = 0; i < n_dims; i++)
        n *= count[i];
    hid_t memory = H5Screate_simple(1, &n, NULL), space = H5Dget_space(data);
    herr_t result = -1;
    if (memory >= 0 && space >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
        result = read ? H5Dread(data, type, memory, space, H5P_DEFAULT, read)
                      : H5Dwrite(data, type, memory, space, H5P_DEFAULT, write);
    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    return result;
}

herr_t mhf_h5_transfer(hid_t data, hid_t type, int n_dims, int64_t row, int64_t first,
                       int64_t count, void *read, const void *write)
{
    if (n_dims == 3) /* small: always whole */
        return read ? H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, read)
                    : H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, write);
    size_t size = H5Tget_size(type);
    char *to = read;
    const char *from = write;
    int64_t end = first + count;
    herr_t result = 0;
    while (result >= 0 && first < end) {
        /* Of a matrix: the rest of a begun row, then whole rows, then the start of a row. */
        int64_t column = first % row, n = end - first;
        hsize_t start[2] = {(hsize_t)(first / row), (hsize_t)column}, block[2] = {1, 1};
        if (n_dims == 2 && (column != 0 || n < row)) {
            n = n < row - column ? n : row - column;
            block[1] = (hsize_t)n;
        } else if (n_dims == 2) {
            n -= n % row;
            block[0] = (hsize_t)(n / row), block[1] = (hsize_t)row;
        } else {
            block[0] = (hsize_t)n;
        }
        result = transfer_block(data, type, start, block, n_dims, to, from);
        first += n;
        to = to ? to + (size_t)n * size : NULL;
        from = from ? from + (size_t)n * size : NULL;
    }
    return result;
}

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct target {
    hid_t data, type;
    int n_dims;
    int64_t row, size;
} target;

static void close_target(target *to)
{
    if (to->type >= 0)
        H5Tclose(to->type);
    if (to->data >= 0)
        H5Dclose(to->data);
    to->data = to->type = -1;
}

static mhf_status open_target(mhf_h5 *file, const char *path, target *to)
{
    hsize_t dims[3] = {0, 1, 1};
    *to = (target){.data = H5Dopen2(file->id, path, H5P_DEFAULT), .type = -1};
    if (to->data < 0)
        return mhf_h5_fail(MHF_E_INTERNAL, file, "can't open %s to write", path);
    to->type = H5Dget_type(to->data);
    hid_t space = H5Dget_space(to->data);
    to->n_dims = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
    if (space >= 0)
        H5Sclose(space);
    if (to->n_dims < 1 || to->type < 0)
        return mhf_h5_fail(MHF_E_INTERNAL, file, "can't open %s to write", path);
    to->row = to->n_dims == 1 ? 1 : (int64_t)(dims[1] * dims[2]);
    to->size = (int64_t)H5Tget_size(to->type);
    return MHF_OK;
}

mhf_status mhf_h5_write_plain(mhf_h5 *file, const char *path, int64_t first, int64_t count,
                              const void *data)
{
    target to;
    mhf_status status = open_target(file, path, &to);
    const char *from = data;
    int64_t done = 0;
    while (status == MHF_OK && done < count) {
        int64_t n = MHF_H5_PIECE_BYTES / to.size;
        n = n < count - done ? n : count - done;
        if (mhf_h5_transfer(to.data, to.type, to.n_dims, to.row, first + done, n, NULL, from) < 0)
            status = mhf_h5_fail(MHF_E_IO, file, "can't write %lld bytes of %s",
                                 (long long)(n * to.size), path);
        done += n;
        from += n * to.size;
    }
    hid_t id = to.data;
    to.data = -1;
    if (id >= 0 && H5Dclose(id) < 0 && status == MHF_OK)
        status = mhf_h5_fail(MHF_E_IO, file, "can't write all of %lld bytes of %s",
                             (long long)(count * to.size), path);
    close_target(&to);
    return status;
}

static mhf_status dataset_size(mhf_h5 *file, const char *path, int64_t *size)
{
    target to;
    mhf_status status = open_target(file, path, &to);
    *size = to.size;
    close_target(&to);
    return status;
}

static mhf_status write_sums(mhf_h5 *file, const char *path, int64_t first, int64_t bytes,
                             const void *data)
{
    mhf_buf name = {0};
    uint64_t *sums = NULL;
    int64_t n = count_sums(bytes);
    mhf_status status = mhf_new(&sums, n, sizeof *sums, "checksums");
    if (status == MHF_OK)
        status = mhf_h5_sums_path(path, &name);
    if (status != MHF_OK)
        goto out;
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = i * MHF_H5_SUM_BYTES, rest = bytes - begin;
        sums[i] = mhf_hash64((const char *)data + begin,
                             (size_t)(rest < MHF_H5_SUM_BYTES ? rest : MHF_H5_SUM_BYTES));
    }
    status = mhf_h5_write_plain(file, name.data, first / MHF_H5_SUM_BYTES, n, sums);
out:
    free(sums);
    mhf_buf_free(&name);
    return status;
}

mhf_status mhf_h5_write(mhf_h5 *file, const char *path, int64_t first, int64_t count,
                        const void *data)
{
    if (count == 0)
        return MHF_OK;
    int64_t size;
    MHF_TRY(dataset_size(file, path, &size));
    if (first * size % MHF_H5_SUM_BYTES != 0)
        return mhf_fail(MHF_E_INTERNAL, "%s: a piece of %s starts inside a MiB", file->path.data,
                        path);
    MHF_TRY(mhf_h5_write_plain(file, path, first, count, data));
    return write_sums(file, path, first * size, count * size, data);
}

mhf_status mhf_h5_put(mhf_h5 *file, const char *path, mhf_h5_type type, const mhf_h5_shape *shape,
                      const void *data)
{
    MHF_TRY(mhf_h5_reserve(file, path, type, shape, 0));
    int64_t count = 1;
    for (int i = 0; i < shape->n; i++)
        count *= shape->dims[i];
    return mhf_h5_write(file, path, 0, count, data);
}

/* ---- checksums of what came in any order ---------------------------------------------------- */

mhf_status mhf_h5_sum_written(mhf_h5 *file, const char *path, int part, int parts)
{
    target to;
    char *piece = NULL;
    int64_t bytes = 0;
    mhf_status status = open_target(file, path, &to);
    if (status == MHF_OK)
        status = mhf_new(&piece, MHF_H5_SUM_BYTES, 1, "a piece");
    if (status == MHF_OK) {
        hid_t space = H5Dget_space(to.data);
        bytes = (int64_t)H5Sget_simple_extent_npoints(space) * to.size;
        H5Sclose(space);
    }
    int64_t n = count_sums(bytes), i = n * part / parts, end = n * (part + 1) / parts;
    for (; status == MHF_OK && i < end; i++) {
        int64_t first = i * MHF_H5_SUM_BYTES, rest = bytes - first;
        rest = rest < MHF_H5_SUM_BYTES ? rest : MHF_H5_SUM_BYTES;
        if (mhf_h5_transfer(to.data, to.type, to.n_dims, to.row, first / to.size, rest / to.size,
                            piece, NULL) < 0)
            status = mhf_h5_fail(MHF_E_IO, file, "can't read back %s", path);
        else
            status = write_sums(file, path, first, rest, piece);
    }
    free(piece);
    close_target(&to);
    return status;
}
