/* SPDX-License-Identifier: ISC */
/* Shapes of tensors in files against those of the registry. */
#ifndef MHF_STORE_SHAPE_H
#define MHF_STORE_SHAPE_H

#include "mhf/model.h"

enum { MHF_SHAPE_TEXT = 96 };

bool mhf_shape_is(const mhf_param *param, int n, const int64_t *dims);
/** "[3, 4]"; at most 4 extents are shown. */
void mhf_shape_text(int n, const int64_t *dims, char out[MHF_SHAPE_TEXT]);

#endif
