/* SPDX-License-Identifier: ISC */
/* Names inside a checkpoint, shared by its writer and its reader. */
#ifndef MHF_STORE_CHECKPOINT_H
#define MHF_STORE_CHECKPOINT_H

#include "h5.h"
#include "mhf/store.h"

extern const char mhf_checkpoint_format[];

/** "/parameters", "/optimizer/exp_avg", "/optimizer/exp_avg_sq". */
const char *mhf_tensor_group(mhf_tensor_kind kind);
mhf_h5_shape mhf_param_shape(const mhf_param *param);
/** Where a checkpoint's own file is kept: /files/NAME. */
mhf_status mhf_kept_path(const char *name, mhf_buf *out);
/** Refuse NaN and infinity, naming tensor and place. */
mhf_status mhf_check_finite(mhf_status status, const char *path, const char *group,
                            const mhf_param *param, int64_t first, int64_t count,
                            const float *values);

#endif
