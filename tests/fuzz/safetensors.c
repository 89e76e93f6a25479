/* SPDX-License-Identifier: ISC */
/* Any bytes as model.safetensors, or as the index of shards when they begin with a brace: refused
 * with a sentence, or every tensor can be read at both ends. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "store/safetensors.h"

enum { PATH_SIZE = 64 };

/* A shard that indexes may name: one tensor "a" of two floats. */
static const char shard[] = "\x38\0\0\0\0\0\0\0"
                            "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
                            "\0\0\0\0\0\0\x80\x3F";

static void write_file(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0, "a file");
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "s.safetensors"};
    char path[PATH_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    require(rmdir(folder) == 0, "the folder");
}

static void read_ends(const mhf_safetensors *tensors, const mhf_tensor *tensor)
{
    enum { N = 4 };
    float values[N];
    int64_t integers[N];
    int64_t n = tensor->count < N ? tensor->count : N;
    for (int end = 0; end < 2; end++) {
        int64_t first = end ? tensor->count - n : 0;
        mhf_status status = MHF_OK;
        if (tensor->type == MHF_TENSOR_I64)
            status = mhf_safetensors_read_int(tensors, tensor, first, n, integers);
        else if (tensor->type != MHF_TENSOR_OTHER)
            status = mhf_safetensors_read(tensors, tensor, first, n, values);
        require(status == MHF_OK || status == MHF_E_DATA, "reading");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char folder[] = "/dev/shm/mhf-fuzz-XXXXXX";
    mhf_safetensors *tensors;
    require(mkdtemp(folder) != NULL, "a folder");
    bool index = n > 0 && data[0] == '{';
    if (index)
        write_file(folder, "s.safetensors", shard, sizeof shard - 1);
    write_file(folder, index ? "model.safetensors.index.json" : "model.safetensors", data, n);
    mhf_status status = mhf_safetensors_open(folder, &tensors);
    require(status == MHF_OK || status == MHF_E_DATA || status == MHF_E_IO, "opening");
    for (int64_t i = 0; status == MHF_OK && i < mhf_safetensors_count(tensors); i++)
        read_ends(tensors, mhf_safetensors_at(tensors, i));
    if (status == MHF_OK)
        mhf_safetensors_close(tensors);
    remove_folder(folder);
    return 0;
}
