/* SPDX-License-Identifier: ISC */
/* A nameless file for what comes in pieces before its size is known: a killed process leaves
 * nothing. */
#ifndef MHF_STORE_SPILL_H
#define MHF_STORE_SPILL_H

#include "mhf/base.h"

typedef struct mhf_spill {
    int fd; /* -1: none */
    int64_t bytes;
    char *buffer;
    int64_t held; /* bytes in the buffer */
    mhf_buf name; /* as errors call it */
} mhf_spill;

/** In the folder of `path`. */
mhf_status mhf_spill_open(const char *path, mhf_spill *spill);
mhf_status mhf_spill_add(mhf_spill *spill, const void *bytes, int64_t n);
/** out = bytes first … of all that was added. */
mhf_status mhf_spill_read(mhf_spill *spill, int64_t first, int64_t n, void *out);
void mhf_spill_close(mhf_spill *spill);

#endif
