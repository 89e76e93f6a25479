/* SPDX-License-Identifier: ISC */
/* A plan in words. */
#ifndef MHF_CMD_PLAN_TEXT_H
#define MHF_CMD_PLAN_TEXT_H

#include "mhf/train.h"

/* Append the plan, each line after `prefix`. */
mhf_status plan_text(const mhf_run_config *config, const mhf_plan *plan, const char *prefix,
                     mhf_buf *out);

#endif
