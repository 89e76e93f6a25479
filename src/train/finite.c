/* SPDX-License-Identifier: ISC */
#include "finite.h"

#include "mhf/tensor.h"

static mhf_status check_finite(const float *x, const char *what, const mhf_param *param)
{
    int64_t i = x ? mhf_find_nonfinite(x, param->count) : -1;
    if (i < 0)
        return MHF_OK;
    return mhf_fail(MHF_E_NONFINITE, "%s%s: element %lld is %g", what, param->name, (long long)i,
                    (double)x[i]);
}

mhf_status finite_weights(const mhf_params *params)
{
    for (int32_t i = 0; i < params->registry->n; i++) {
        const mhf_param *p = &params->registry->params[i];
        MHF_TRY(check_finite(params->value[i], "", p));
    }
    return MHF_OK;
}

mhf_status finite_gradients(const mhf_params *params)
{
    for (int32_t i = 0; i < params->registry->n; i++) {
        const mhf_param *p = &params->registry->params[i];
        MHF_TRY(check_finite(params->gradient[i], "the gradient of ", p));
        if (p->also_head)
            MHF_TRY(check_finite(params->head_gradient, "the gradient of ", p));
    }
    return MHF_OK;
}
