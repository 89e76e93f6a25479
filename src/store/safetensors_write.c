/* SPDX-License-Identifier: ISC */
#include "safetensors_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors are little-endian and are written as they lie in memory"
#endif

static int by_type_and_name(const void *a, const void *b)
{
    const mhf_tensor *x = *(mhf_tensor *const *)a, *y = *(mhf_tensor *const *)b;
    bool x_first = x->type == MHF_TENSOR_I64, y_first = y->type == MHF_TENSOR_I64;
    if (x_first != y_first)
        return x_first ? -1 : 1;
    return strcmp(x->name, y->name);
}

void mhf_safetensors_sort(mhf_tensor **tensors, int64_t n)
{
    if (n > 1)
        qsort(tensors, (size_t)n, sizeof *tensors, by_type_and_name);
}

static mhf_status add_entry(const mhf_tensor *tensor, int64_t begin, mhf_buf *header)
{
    static const char *const types[] = {"F32", "F16", "BF16", "I64"};
    MHF_TRY(mhf_buf_printf(header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", tensor->name,
                           types[tensor->type]));
    for (int32_t i = 0; i < tensor->n_dims; i++)
        MHF_TRY(mhf_buf_printf(header, "%s%lld", i ? "," : "", (long long)tensor->dims[i]));
    return mhf_buf_printf(header, "],\"data_offsets\":[%lld,%lld]}", (long long)begin,
                          (long long)(begin + tensor->bytes));
}

/* The length of the header stands first; blanks after it bring the data to a multiple of 8. */
static mhf_status make_header(mhf_tensor *const *tensors, int64_t n, mhf_buf *out, int64_t *bytes)
{
    unsigned char length[8] = {0};
    MHF_TRY(mhf_buf_add(out, length, sizeof length));
    MHF_TRY(mhf_buf_add_text(out, "{\"__metadata__\":{\"format\":\"pt\"}"));
    *bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        MHF_TRY(add_entry(tensors[i], *bytes, out));
        *bytes += tensors[i]->bytes;
    }
    MHF_TRY(mhf_buf_add_text(out, "}"));
    while (out->n % 8 != 0)
        MHF_TRY(mhf_buf_add_text(out, " "));
    uint64_t header = out->n - sizeof length;
    for (size_t i = 0; i < sizeof length; i++)
        out->data[i] = (char)(header >> 8 * i & 0xff);
    return MHF_OK;
}

static mhf_status write_all(const mhf_safetensors_writer *writer, const char *bytes, int64_t n)
{
    while (n > 0) {
        ssize_t k = write(writer->fd, bytes, (size_t)n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return mhf_fail_io(writer->temporary.data, "can't write");
        bytes += k;
        n -= k;
    }
    return MHF_OK;
}

mhf_status mhf_safetensors_create(const char *path, mhf_tensor *const *tensors, int64_t n,
                                  mhf_safetensors_writer *out)
{
    mhf_buf header = {0};
    *out = (mhf_safetensors_writer){.fd = -1};
    mhf_status status = make_header(tensors, n, &header, &out->left);
    if (status == MHF_OK)
        status = mhf_buf_add_text(&out->path, path);
    if (status == MHF_OK)
        status = mhf_file_temporary(path, &out->temporary);
    if (status == MHF_OK) {
        out->fd = open(out->temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (out->fd < 0)
            status = mhf_fail_io(out->temporary.data, "can't create");
    }
    if (status == MHF_OK)
        status = write_all(out, header.data, (int64_t)header.n);
    mhf_buf_free(&header);
    return status == MHF_OK ? MHF_OK : mhf_safetensors_finish(out, status);
}

mhf_status mhf_safetensors_append(mhf_safetensors_writer *writer, const void *bytes, int64_t n)
{
    if (n > writer->left)
        return mhf_fail(MHF_E_INTERNAL, "%s: more data than its header tells", writer->path.data);
    MHF_TRY(write_all(writer, bytes, n));
    writer->left -= n;
    return MHF_OK;
}

mhf_status mhf_safetensors_finish(mhf_safetensors_writer *writer, mhf_status status)
{
    if (status == MHF_OK && writer->left != 0)
        status = mhf_fail(MHF_E_INTERNAL, "%s: less data than its header tells", writer->path.data);
    if (writer->fd >= 0) {
        if (close(writer->fd) != 0 && status == MHF_OK)
            status = mhf_fail_io(writer->temporary.data, "can't close");
        if (status == MHF_OK)
            status = mhf_file_publish(writer->temporary.data, writer->path.data);
        if (status != MHF_OK)
            unlink(writer->temporary.data);
    }
    mhf_buf_free(&writer->path);
    mhf_buf_free(&writer->temporary);
    writer->fd = -1;
    return status;
}
