/* SPDX-License-Identifier: ISC */
/* Names inside a file of states, shared by its writer and its reader. */
#ifndef MHF_STORE_STATES_H
#define MHF_STORE_STATES_H

#include "mhf/base.h"

extern const char mhf_states_format[];

/** "/layers/NAME/states". */
mhf_status mhf_states_path(const char *layer, mhf_buf *out);

#endif
