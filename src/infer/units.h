/* SPDX-License-Identifier: ISC */
/* Work for the threads of a rank: runs of lines that one thread answers one after another, and
 * their answers put together in order.
 */
#ifndef MHF_INFER_UNITS_H
#define MHF_INFER_UNITS_H

#include "lines.h"

/* Lines that share a context stand in one unit; units are dealt to ranks in turn. */
typedef struct mhf_units_of_lines {
    int64_t n;
    int64_t *begin; /* [n+1] first line of each */
} mhf_units_of_lines;

/** Cut the lines: neighbours of the same kind with the same non-empty context stand together, a few
 * dozen at most. Sets lines->owner. Every line is parsed, on every rank: the first bad one is the
 * error. Not collective, the same on every rank. */
mhf_status mhf_units_cut(mhf_lines *lines, mhf_units_of_lines *out);
void mhf_units_free(mhf_units_of_lines *units);

#endif
