/* SPDX-License-Identifier: ISC */
/* What the commands that use a model share: opening MODEL on every rank. */
#ifndef MHF_CMD_LOADED_H
#define MHF_CMD_LOADED_H

#include "cmd.h"
#include "mhf/model.h"
#include "mhf/store.h"
#include "mhf/text.h"

typedef struct mhf_loaded {
    mhf_source *source;
    const mhf_source_info *info;
    mhf_model *model;
    mhf_tokenizer *tokenizer;
} mhf_loaded;

/** Read a MODEL whole on this rank. `common`: also choose the engine, the stored one unless another
 * is asked for or it doesn't run here; NULL: it was chosen before. Collective over the world,
 * agreed. The caller frees in any case. */
mhf_status mhf_loaded_open(const char *path, const mhf_common *common, mhf_loaded *out);
void mhf_loaded_free(mhf_loaded *loaded);

#endif
