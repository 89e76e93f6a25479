/* SPDX-License-Identifier: ISC */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "halves.h"

enum { HEADER_MAX = 100 << 20, INDEX_MAX = 100 << 20, PIECE = 1 << 20 };

typedef struct shard {
    char *path;
    int fd;
} shard;

struct mhf_safetensors {
    shard *shards;
    mhf_tensor *tensors;
    int64_t n_shards, shard_capacity, n, capacity;
    mhf_map *by_name;
};

static mhf_status read_at(int fd, const char *path, int64_t at, int64_t n, void *out)
{
    char *to = out;
    while (n > 0) {
        ssize_t k = pread(fd, to, (size_t)n, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return mhf_fail_io(path, "can't read");
        if (k == 0)
            return mhf_fail(MHF_E_DATA, "%s: ends before byte %lld", path, (long long)(at + n));
        to += k;
        at += k;
        n -= k;
    }
    return MHF_OK;
}

/* ---- one entry of a header ------------------------------------------------------------------ */

static int64_t type_size(const char *name)
{
    static const struct {
        const char *name;
        int64_t size;
    } sizes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2},    {"I64", 8},     {"F64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},      {"U8", 1},      {"BOOL", 1},
                 {"U16", 2}, {"U32", 4}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U64", 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(name, sizes[i].name) == 0)
            return sizes[i].size;
    return 0;
}

static mhf_status take_type(const json_t *entry, const char *where, mhf_tensor *tensor,
                            int64_t *size)
{
    static const char *const names[] = {"F32", "F16", "BF16", "I64"};
    const char *name;
    MHF_TRY(mhf_json_string(entry, "dtype", where, &name, NULL));
    *size = type_size(name);
    if (*size == 0)
        return mhf_fail(MHF_E_DATA, "%s: dtype '%.20s' is not known", where, name);
    snprintf(tensor->type_name, sizeof tensor->type_name, "%s", name);
    int type = MHF_TENSOR_F32;
    while (type < MHF_TENSOR_OTHER && strcmp(name, names[type]) != 0)
        type++;
    tensor->type = (mhf_tensor_type)type;
    return MHF_OK;
}

static mhf_status take_integers(const json_t *entry, const char *key, const char *where, size_t low,
                                size_t high, int64_t *out, int32_t *n)
{
    const json_t *list = json_object_get(entry, key);
    if (!json_is_array(list) || json_array_size(list) < low || json_array_size(list) > high)
        return mhf_fail(MHF_E_DATA, "%s: '%s' is not a list of %zu to %zu integers", where, key,
                        low, high);
    *n = (int32_t)json_array_size(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return mhf_fail(MHF_E_DATA, "%s: '%s' holds something else than integers from 0 on",
                            where, key);
        out[i] = json_integer_value(value);
    }
    return MHF_OK;
}

static mhf_status take_tensor(const json_t *entry, const char *where, int64_t data_bytes,
                              mhf_tensor *tensor)
{
    int64_t size, span[2];
    int32_t n;
    if (!json_is_object(entry))
        return mhf_fail(MHF_E_DATA, "%s: is not an object", where);
    MHF_TRY(take_type(entry, where, tensor, &size));
    MHF_TRY(
        take_integers(entry, "shape", where, 0, MHF_TENSOR_DIMS, tensor->dims, &tensor->n_dims));
    MHF_TRY(take_integers(entry, "data_offsets", where, 2, 2, span, &n));
    if (span[0] > span[1] || span[1] > data_bytes)
        return mhf_fail(MHF_E_DATA,
                        "%s: data_offsets [%lld, %lld], expected an ascending range of "
                        "the %lld bytes of data",
                        where, (long long)span[0], (long long)span[1], (long long)data_bytes);
    int64_t bytes = size;
    for (int32_t i = 0; i < tensor->n_dims; i++)
        if (!mhf_mul(bytes, tensor->dims[i], &bytes))
            return mhf_fail(MHF_E_DATA, "%s: its shape has more than 2^63 bytes", where);
    tensor->begin = span[0];
    tensor->bytes = span[1] - span[0];
    tensor->count = bytes / size;
    if (bytes != tensor->bytes)
        return mhf_fail(MHF_E_DATA,
                        "%s: its shape and dtype %s need %lld bytes, data_offsets give "
                        "%lld",
                        where, tensor->type_name, (long long)bytes, (long long)tensor->bytes);
    return MHF_OK;
}

/* ---- a header ------------------------------------------------------------------------------- */

static mhf_status add_tensor(mhf_safetensors *all, const char *name, const json_t *entry,
                             int32_t file, int64_t data_bytes)
{
    const char *path = all->shards[file].path;
    mhf_buf where = {0};
    if (mhf_map_get(all->by_name, name, strlen(name), -1) >= 0)
        return mhf_fail(MHF_E_DATA, "%s: tensor '%.200s' stands in another shard too", path, name);
    MHF_TRY(mhf_grow(&all->tensors, &all->capacity, all->n + 1, sizeof *all->tensors, "tensors"));
    mhf_tensor *tensor = &all->tensors[all->n];
    *tensor = (mhf_tensor){.file = file};
    mhf_status status = mhf_buf_printf(&where, "%s: tensor '%.200s'", path, name);
    if (status == MHF_OK)
        status = take_tensor(entry, where.data, data_bytes, tensor);
    mhf_buf_free(&where);
    MHF_TRY(status);
    MHF_TRY(mhf_map_put(all->by_name, name, strlen(name), all->n));
    tensor->name = strdup(name);
    if (!tensor->name)
        return mhf_fail(MHF_E_NOMEM, "no memory for a tensor's name");
    all->n++;
    return MHF_OK;
}

static int by_begin(const void *a, const void *b)
{
    const mhf_tensor *x = *(mhf_tensor *const *)a, *y = *(mhf_tensor *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty ones first */
}

/* The tensors must tile the data: no overlap, no hole, nothing after the last. */
static mhf_status check_tiling(mhf_safetensors *all, int64_t from, int64_t data_start,
                               int64_t data_bytes)
{
    int64_t n = all->n - from, end = 0;
    mhf_tensor **order = NULL;
    MHF_TRY(mhf_new(&order, n, sizeof *order, "tensors"));
    for (int64_t i = 0; i < n; i++)
        order[i] = &all->tensors[from + i];
    if (n > 1)
        qsort(order, (size_t)n, sizeof *order, by_begin);
    mhf_status status = MHF_OK;
    for (int64_t i = 0; status == MHF_OK && i < n; i++) {
        const char *path = all->shards[order[i]->file].path;
        if (order[i]->begin != end)
            status =
                mhf_fail(MHF_E_DATA, "%s: tensor '%.200s' begins at byte %lld of the data, %s %lld",
                         path, order[i]->name, (long long)order[i]->begin,
                         order[i]->begin < end ? "inside the one that ends at"
                                               : "after a hole that begins at",
                         (long long)end);
        end = order[i]->begin + order[i]->bytes;
        order[i]->begin += data_start;
    }
    if (status == MHF_OK && end != data_bytes)
        status = mhf_fail(MHF_E_DATA, "%s: %lld bytes of data belong to no tensor",
                          all->shards[all->n_shards - 1].path, (long long)(data_bytes - end));
    free(order);
    return status;
}

static mhf_status take_header(mhf_safetensors *all, int32_t file, const json_t *header,
                              int64_t data_start, int64_t data_bytes)
{
    const char *path = all->shards[file].path, *name;
    json_t *entry;
    int64_t from = all->n;
    if (!json_is_object(header))
        return mhf_fail(MHF_E_DATA, "%s: its header is not a JSON object", path);
    json_object_foreach((json_t *)header, name, entry) if (strcmp(name, "__metadata__") != 0)
        MHF_TRY(add_tensor(all, name, entry, file, data_bytes));
    return check_tiling(all, from, data_start, data_bytes);
}

static mhf_status header_length(const shard *in, int64_t size, int64_t *n)
{
    unsigned char bytes[8];
    if (size < 8)
        return mhf_fail(MHF_E_DATA, "%s: %lld bytes, too short for a safetensors file", in->path,
                        (long long)size);
    MHF_TRY(read_at(in->fd, in->path, 0, 8, bytes));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > (uint64_t)(size - 8) || length > HEADER_MAX)
        return mhf_fail(MHF_E_DATA, "%s: claims a header of %llu bytes, the file has %lld after it",
                        in->path, (unsigned long long)length, (long long)(size - 8));
    *n = (int64_t)length;
    return MHF_OK;
}

static mhf_status read_header(mhf_safetensors *all, int32_t file)
{
    const shard *in = &all->shards[file];
    struct stat info;
    int64_t n = 0;
    if (fstat(in->fd, &info) != 0)
        return mhf_fail_io(in->path, "can't tell the size");
    if (!S_ISREG(info.st_mode))
        return mhf_fail(MHF_E_DATA, "%s: is not a regular file", in->path);
    MHF_TRY(header_length(in, info.st_size, &n));
    char *text = NULL;
    json_t *header = NULL;
    mhf_status status = mhf_new(&text, n + 1, 1, "a header");
    if (status == MHF_OK)
        status = read_at(in->fd, in->path, 8, n, text);
    if (status == MHF_OK)
        status = mhf_json_parse(text, (size_t)n, in->path, &header);
    if (status == MHF_OK)
        status = take_header(all, file, header, 8 + n, info.st_size - 8 - n);
    json_decref(header);
    free(text);
    return status;
}

static mhf_status open_shard(mhf_safetensors *all, const char *folder, const char *name)
{
    mhf_buf path = {0};
    MHF_TRY(mhf_grow(&all->shards, &all->shard_capacity, all->n_shards + 1, sizeof *all->shards,
                     "shards"));
    MHF_TRY(mhf_path_join(folder, name, &path));
    int fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    all->shards[all->n_shards] = (shard){path.data, fd};
    all->n_shards++;
    if (fd < 0)
        return mhf_fail_io(path.data, "can't open");
    return read_header(all, (int32_t)all->n_shards - 1);
}

/* ---- the index of a model in several files -------------------------------------------------- */

static mhf_status open_listed(mhf_safetensors *all, const char *folder, const char *index,
                              const json_t *weights)
{
    const char *name;
    json_t *entry;
    mhf_map *opened = NULL;
    MHF_TRY(mhf_map_new(16, &opened));
    mhf_status status = MHF_OK;
    json_object_foreach((json_t *)weights, name, entry)
    {
        const char *file = json_string_value(entry);
        if (status != MHF_OK)
            break;
        if (!file || !*file || strchr(file, '/') || strlen(file) != json_string_length(entry))
            status = mhf_fail(MHF_E_DATA, "%s: '%.200s' does not name a file of the folder", index,
                              name);
        else if (mhf_map_get(opened, file, strlen(file), -1) < 0) {
            status = mhf_map_put(opened, file, strlen(file), all->n_shards);
            if (status == MHF_OK)
                status = open_shard(all, folder, file);
        }
    }
    json_object_foreach((json_t *)weights, name, entry)
    {
        if (status != MHF_OK)
            break;
        const mhf_tensor *tensor = mhf_safetensors_find(all, name);
        const char *file = json_string_value(entry);
        if (!tensor || tensor->file != mhf_map_get(opened, file, strlen(file), -1))
            status = mhf_fail(MHF_E_DATA, "%s: '%.200s' is not in %.200s", index, name, file);
    }
    mhf_map_free(opened);
    return status;
}

static mhf_status open_index(mhf_safetensors *all, const char *folder, const char *index)
{
    mhf_buf text = {0};
    json_t *root = NULL;
    mhf_status status = mhf_file_read(index, INDEX_MAX, &text);
    if (status == MHF_OK)
        status = mhf_json_parse(text.data, text.n, index, &root);
    const json_t *weights = json_object_get(root, "weight_map");
    if (status == MHF_OK && (!json_is_object(weights) || json_object_size(weights) == 0))
        status = mhf_fail(MHF_E_DATA, "%s: has no object 'weight_map' with tensors", index);
    if (status == MHF_OK)
        status = open_listed(all, folder, index, weights);
    json_decref(root);
    mhf_buf_free(&text);
    return status;
}

mhf_status mhf_safetensors_open(const char *folder, mhf_safetensors **out)
{
    static const char single[] = "model.safetensors", sharded[] = "model.safetensors.index.json";
    mhf_safetensors *all = NULL;
    mhf_buf path = {0};
    *out = NULL;
    MHF_TRY(mhf_new(&all, 1, sizeof *all, "tensors"));
    mhf_status status = mhf_map_new(64, &all->by_name);
    if (status == MHF_OK)
        status = mhf_path_join(folder, single, &path);
    bool one = status == MHF_OK && mhf_file_exists(path.data);
    if (status == MHF_OK && !one)
        status = mhf_path_join(folder, sharded, &path);
    if (status == MHF_OK && one)
        status = open_shard(all, folder, single);
    else if (status == MHF_OK && mhf_file_exists(path.data))
        status = open_index(all, folder, path.data);
    else if (status == MHF_OK)
        status =
            mhf_fail(MHF_E_IO, "%s: there is neither %s nor %s in it", folder, single, sharded);
    mhf_buf_free(&path);
    if (status != MHF_OK)
        mhf_safetensors_close(all);
    else
        *out = all;
    return status;
}

void mhf_safetensors_close(mhf_safetensors *tensors)
{
    if (!tensors)
        return;
    for (int64_t i = 0; i < tensors->n; i++)
        free(tensors->tensors[i].name);
    for (int64_t i = 0; i < tensors->n_shards; i++) {
        if (tensors->shards[i].fd >= 0)
            close(tensors->shards[i].fd);
        free(tensors->shards[i].path);
    }
    free(tensors->tensors);
    free(tensors->shards);
    mhf_map_free(tensors->by_name);
    free(tensors);
}

/* ---- reading -------------------------------------------------------------------------------- */

int64_t mhf_safetensors_count(const mhf_safetensors *tensors)
{
    return tensors->n;
}

const mhf_tensor *mhf_safetensors_at(const mhf_safetensors *tensors, int64_t i)
{
    return &tensors->tensors[i];
}

const mhf_tensor *mhf_safetensors_find(const mhf_safetensors *tensors, const char *name)
{
    int64_t i = mhf_map_get(tensors->by_name, name, strlen(name), -1);
    return i < 0 ? NULL : &tensors->tensors[i];
}

const char *mhf_safetensors_path(const mhf_safetensors *tensors, const mhf_tensor *tensor)
{
    return tensors->shards[tensor->file].path;
}

static mhf_status read_halves(const shard *in, const mhf_tensor *tensor, int64_t first,
                              int64_t count, float *out)
{
    uint16_t *piece = NULL;
    mhf_status status = mhf_new(&piece, count < PIECE ? count : PIECE, sizeof *piece, "a piece");
    for (int64_t done = 0; status == MHF_OK && done < count; done += PIECE) {
        int64_t n = count - done < PIECE ? count - done : PIECE;
        status = read_at(in->fd, in->path, tensor->begin + 2 * (first + done), 2 * n, piece);
        if (status == MHF_OK && tensor->type == MHF_TENSOR_BF16)
            mhf_bf16_to_floats(piece, n, out + done);
        else if (status == MHF_OK)
            mhf_f16_to_floats(piece, n, out + done);
    }
    free(piece);
    return status;
}

mhf_status mhf_safetensors_read(const mhf_safetensors *tensors, const mhf_tensor *tensor,
                                int64_t first, int64_t count, float *out)
{
    const shard *in = &tensors->shards[tensor->file];
    switch (tensor->type) {
    case MHF_TENSOR_F32:
        return read_at(in->fd, in->path, tensor->begin + 4 * first, 4 * count, out);
    case MHF_TENSOR_F16:
    case MHF_TENSOR_BF16:
        return read_halves(in, tensor, first, count, out);
    default:
        return mhf_fail(MHF_E_DATA, "%s: tensor '%s' has dtype %s, expected F32, BF16 or F16",
                        in->path, tensor->name, tensor->type_name);
    }
}

mhf_status mhf_safetensors_read_int(const mhf_safetensors *tensors, const mhf_tensor *tensor,
                                    int64_t first, int64_t count, int64_t *out)
{
    const shard *in = &tensors->shards[tensor->file];
    if (tensor->type != MHF_TENSOR_I64)
        return mhf_fail(MHF_E_DATA, "%s: tensor '%s' has dtype %s, expected I64", in->path,
                        tensor->name, tensor->type_name);
    return read_at(in->fd, in->path, tensor->begin + 8 * first, 8 * count, out);
}
