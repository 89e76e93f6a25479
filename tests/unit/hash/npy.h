/* SPDX-License-Identifier: ISC */
/* Reading what NumPy wrote: .npy files, and members of .npz files that are stored, not compressed.
 */
#ifndef MHF_TEST_NPY_H
#define MHF_TEST_NPY_H

#include "support.h"

typedef struct npy {
    mhf_buf file;
    const char *type; /* "<i4", "<f4", "<i8" */
    int64_t shape[4], n;
    bool columns_first; /* Fortran order */
    const char *data;   /* not aligned: read it with memcpy */
} npy;

static inline bool npy_parse_shape(const char *header, npy *out)
{
    const char *at = strstr(header, "'shape': (");
    if (!at)
        return false;
    out->n = 1;
    at += strlen("'shape': (");
    for (int axis = 0; axis < 4 && *at >= '0' && *at <= '9'; axis++) {
        char *end;
        out->shape[axis] = strtoll(at, &end, 10);
        out->n *= out->shape[axis];
        at = end + strspn(end, ", ");
    }
    return *at == ')';
}

/* The array in bytes[0..size), of file format 1.0. */
static inline bool npy_parse(const char *bytes, size_t size, npy *out)
{
    static const char *const types[] = {"<i4", "<f4", "<i8", "<u4"};
    if (size < 10 || memcmp(bytes, "\x93NUMPY\x01", 7) != 0)
        return false;
    size_t length = (size_t)(uint8_t)bytes[8] + 256 * (size_t)(uint8_t)bytes[9];
    char header[512];
    if (length >= sizeof header || 10 + length > size)
        return false;
    memcpy(header, bytes + 10, length);
    header[length] = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(header, types[i]))
            out->type = types[i];
    out->data = bytes + 10 + length;
    out->columns_first = strstr(header, "'fortran_order': True") != NULL;
    if (!out->type || !npy_parse_shape(header, out))
        return false;
    return (size_t)out->n * (size_t)(out->type[2] - '0') <= size - 10 - length;
}

static inline bool npy_read(const char *path, npy *out)
{
    *out = (npy){0};
    return mhf_file_read(path, 1u << 30, &out->file) == MHF_OK &&
           npy_parse(out->file.data, out->file.n, out);
}

static inline size_t npz_number(const char *bytes, int n)
{
    size_t x = 0;
    for (int i = n - 1; i >= 0; i--)
        x = x << 8 | (uint8_t)bytes[i];
    return x;
}

/* Member `name` (without .npy) of a .npz, found by walking the local headers. */
static inline bool npz_read(const char *path, const char *name, npy *out)
{
    *out = (npy){0};
    if (mhf_file_read(path, 1u << 30, &out->file) != MHF_OK)
        return false;
    const char *at = out->file.data, *end = at + out->file.n;
    while (end - at > 30 && memcmp(at, "PK\x03\x04", 4) == 0) {
        size_t method = npz_number(at + 8, 2), size = npz_number(at + 18, 4);
        size_t name_length = npz_number(at + 26, 2), extra = npz_number(at + 28, 2);
        const char *member = at + 30, *data = member + name_length + extra;
        if (size == UINT32_MAX && extra >= 12) /* the 64-bit size in the extra field */
            size = npz_number(member + name_length + 4, 8);
        if (method != 0 || size > (size_t)(end - data))
            return false;
        if (name_length == strlen(name) + 4 && memcmp(member, name, strlen(name)) == 0)
            return npy_parse(data, size, out);
        at = data + size;
    }
    return false;
}

static inline void npy_free(npy *array)
{
    mhf_buf_free(&array->file);
}

static inline int32_t npy_int(const npy *array, int64_t i)
{
    int32_t x;
    memcpy(&x, array->data + 4 * i, sizeof x);
    return x;
}

/* Element [i, j] of a matrix in either order. */
static inline int32_t npy_int_at(const npy *array, int64_t i, int64_t j)
{
    return npy_int(array, array->columns_first ? j * array->shape[0] + i : i * array->shape[1] + j);
}

static inline float npy_float(const npy *array, int64_t i)
{
    float x;
    memcpy(&x, array->data + 4 * i, sizeof x);
    return x;
}

#endif
