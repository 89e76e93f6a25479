/* SPDX-License-Identifier: ISC */
/* The normal deviates of PyTorch's CPU generator as a stream, so that a slice of a matrix too large
 * to keep can be picked out while the rest goes by. */
#ifndef MHF_HASH_TORCH_NORMALS_H
#define MHF_HASH_TORCH_NORMALS_H

#include "mhf/hash.h"

enum {
    MHF_MT_WORDS = 624,
    MHF_NORMAL_BATCH = 512, /* a multiple of the generator's block of 16 */
};

typedef struct mhf_mt19937 {
    uint32_t words[MHF_MT_WORDS];
    int next; /* first word not given out yet */
} mhf_mt19937;

typedef struct mhf_normal_stream {
    mhf_mt19937 generator;
    float batch[MHF_NORMAL_BATCH];
    int next; /* first deviate of the batch not given out yet */
} mhf_normal_stream;

/** Start at element 0 of torch.randn(n). The stream equals that tensor where n is a multiple of 16;
 * otherwise torch draws the last 16 elements anew, as mhf_torch_normals() does. */
void mhf_normal_stream_start(mhf_normal_stream *stream, uint32_t seed);
/** The next n deviates. */
void mhf_normal_stream_read(mhf_normal_stream *stream, int64_t n, float *out);
/** Pass over n deviates; whole batches cost the generator's steps only. */
void mhf_normal_stream_skip(mhf_normal_stream *stream, int64_t n);

#endif
