/* SPDX-License-Identifier: ISC */
/* What the fuzz targets share: a promise that is broken ends the program, so that the fuzzer keeps
 * the input. */
#ifndef MHF_FUZZ_H
#define MHF_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "mhf/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void require(bool kept, const char *what)
{
    if (kept)
        return;
    fprintf(stderr, "%s: %s\n", what, mhf_error());
    abort();
}

#endif
