/* SPDX-License-Identifier: ISC */
/* Bytes of a file, decompressed when its name ends in .gz or .zst. */
#ifndef MHF_TEXT_STREAM_H
#define MHF_TEXT_STREAM_H

#include "mhf/base.h"

typedef struct mhf_stream mhf_stream;

/** "-" is stdin. Errors: MHF_E_IO with the path. */
mhf_status mhf_stream_open(const char *path, mhf_stream **out);
/** Read up to `capacity` bytes; *n = 0 at the end. Errors: MHF_E_IO with the path; MHF_E_DATA for
 * compressed data that are damaged or end early, without the path: the caller knows the place. */
mhf_status mhf_stream_read(mhf_stream *stream, char *out, size_t capacity, size_t *n);
void mhf_stream_close(mhf_stream *stream);

#endif
