/* SPDX-License-Identifier: ISC */
/* Reading safetensors: one file, or the shards that an index names. Headers are untrusted: what
 * they claim is checked against the file's size before it is believed. */
#ifndef MHF_STORE_SAFETENSORS_H
#define MHF_STORE_SAFETENSORS_H

#include "mhf/base.h"

typedef enum mhf_tensor_type {
    MHF_TENSOR_F32,
    MHF_TENSOR_F16,
    MHF_TENSOR_BF16,
    MHF_TENSOR_I64,
    MHF_TENSOR_OTHER
} mhf_tensor_type;

enum { MHF_TENSOR_DIMS = 8 };

typedef struct mhf_tensor {
    char *name;
    mhf_tensor_type type;
    char type_name[12];
    int32_t n_dims, file;
    int64_t dims[MHF_TENSOR_DIMS];
    int64_t count;        /* elements */
    int64_t begin, bytes; /* of its data in the file */
} mhf_tensor;

typedef struct mhf_safetensors mhf_safetensors;

/** Open model.safetensors of a folder, or the shards of its model.safetensors.index.json. */
mhf_status mhf_safetensors_open(const char *folder, mhf_safetensors **out);
void mhf_safetensors_close(mhf_safetensors *tensors);
int64_t mhf_safetensors_count(const mhf_safetensors *tensors);
const mhf_tensor *mhf_safetensors_at(const mhf_safetensors *tensors, int64_t i);
/** NULL when there is none. */
const mhf_tensor *mhf_safetensors_find(const mhf_safetensors *tensors, const char *name);
/** Path of the file that holds the tensor. */
const char *mhf_safetensors_path(const mhf_safetensors *tensors, const mhf_tensor *tensor);
/** out = elements first … as float32 (F32, F16, BF16), or as they are (I64). */
mhf_status mhf_safetensors_read(const mhf_safetensors *tensors, const mhf_tensor *tensor,
                                int64_t first, int64_t count, float *out);
mhf_status mhf_safetensors_read_int(const mhf_safetensors *tensors, const mhf_tensor *tensor,
                                    int64_t first, int64_t count, int64_t *out);

#endif
