/* SPDX-License-Identifier: ISC */
/* Writing one safetensors file: a header that tells all tensors, then their bytes as they come. */
#ifndef MHF_STORE_SAFETENSORS_WRITE_H
#define MHF_STORE_SAFETENSORS_WRITE_H

#include "safetensors.h"

typedef struct mhf_safetensors_writer {
    mhf_buf path, temporary;
    int fd;
    int64_t left; /* bytes of data that the header promises and are not written yet */
} mhf_safetensors_writer;

/** Sort tensors as the safetensors library lays them out: the widest type first, then by name. */
void mhf_safetensors_sort(mhf_tensor **tensors, int64_t n);
/** Begin PATH under a temporary name with the header of n tensors whose data will come in this
 * order; of each, name, type, dims and bytes count. */
mhf_status mhf_safetensors_create(const char *path, mhf_tensor *const *tensors, int64_t n,
                                  mhf_safetensors_writer *out);
mhf_status mhf_safetensors_append(mhf_safetensors_writer *writer, const void *bytes, int64_t n);
/** With MHF_OK the file gets its name, else it is removed. Frees the writer. */
mhf_status mhf_safetensors_finish(mhf_safetensors_writer *writer, mhf_status status);

#endif
