/* SPDX-License-Identifier: ISC */
/* A model to read, of either kind: a checkpoint or a Hugging Face folder. */
#ifndef MHF_STORE_SOURCE_H
#define MHF_STORE_SOURCE_H

#include "h5.h"
#include "mhf/store.h"
#include "safetensors.h"

struct mhf_source {
    mhf_source_info info; /* its texts are the buffers below */
    mhf_config config;
    mhf_registry registry;
    mhf_buf path, engine, build, run;
    mhf_h5 file;              /* of a checkpoint */
    mhf_h5_data opened;       /* the tensor of the last read */
    mhf_safetensors *tensors; /* of a folder */
};

/** These fill a zeroed source; the caller closes it in any case. */
mhf_status mhf_checkpoint_open(const char *path, mhf_source *source);
mhf_status mhf_folder_open(const char *path, mhf_source *source);

mhf_status mhf_checkpoint_tokenizer(const mhf_source *source, mhf_tokenizer **out);
mhf_status mhf_folder_tokenizer(const mhf_source *source, mhf_tokenizer **out);
mhf_status mhf_folder_signatures(const mhf_source *source, mhf_signatures *out);
mhf_status mhf_checkpoint_carried(const mhf_source *source, mhf_carried *out);
mhf_status mhf_folder_carried(const mhf_source *source, mhf_carried *out);
mhf_status mhf_checkpoint_read(mhf_source *source, mhf_tensor_kind kind, const mhf_param *param,
                               int64_t first, int64_t count, float *out);
mhf_status mhf_folder_read(mhf_source *source, const mhf_param *param, int64_t first, int64_t count,
                           float *out);
/** Append a file to the list; takes the text over. */
mhf_status mhf_carried_add(mhf_carried *carried, const char *name, mhf_buf *text);

#endif
