/* SPDX-License-Identifier: ISC */
/* The table's dataset, for files that hold it among other things. */
#ifndef MHF_STORE_SIGNATURES_H
#define MHF_STORE_SIGNATURES_H

#include "h5.h"
#include "mhf/store.h"

mhf_status mhf_signatures_put(mhf_h5 *file, const mhf_signatures *table);
/** `out` is owned by the caller. */
mhf_status mhf_signatures_get(const mhf_h5 *file, mhf_signatures *out);

#endif
