/* SPDX-License-Identifier: ISC */
#include "shape.h"

bool mhf_shape_is(const mhf_param *param, int n, const int64_t *dims)
{
    return n == param->n_dims && dims[0] == param->shape[0] &&
           (n == 1 || dims[1] == param->shape[1]);
}

void mhf_shape_text(int n, const int64_t *dims, char out[MHF_SHAPE_TEXT])
{
    size_t at = (size_t)snprintf(out, MHF_SHAPE_TEXT, "[");
    for (int i = 0; i < n && i < 4; i++)
        at += (size_t)snprintf(out + at, MHF_SHAPE_TEXT - at, i ? ", %lld" : "%lld",
                               (long long)dims[i]);
    snprintf(out + at, MHF_SHAPE_TEXT - at, n > 4 ? ", …]" : "]");
}
