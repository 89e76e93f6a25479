/* SPDX-License-Identifier: ISC */
/* Looking for NaN and infinity in what a rank holds. Nothing here is collective: agree on the
 * answers. */
#ifndef MHF_TRAIN_FINITE_H
#define MHF_TRAIN_FINITE_H

#include "mhf/model.h"

/* MHF_E_NONFINITE names the first tensor, in registry order. */
mhf_status finite_weights(const mhf_params *params);
mhf_status finite_gradients(const mhf_params *params);

#endif
