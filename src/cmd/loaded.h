/* SPDX-License-Identifier: ISC */
/* What the commands that use a model share: opening MODEL on every rank, and options of several. */
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

/** argp's answer to --precision: float32 is what is built. */
void mhf_option_precision(const char *value, struct argp_state *state);
/** Whole number in [low, high], or argp_error naming the option. */
int64_t mhf_option_int(const char *option, const char *value, int64_t low, int64_t high,
                       struct argp_state *state);
/** Real number; the caller checks its range. NaN and infinity are errors. */
double mhf_option_real(const char *option, const char *value, struct argp_state *state);

#define MHF_PRECISION_OPTION                                                                       \
    {                                                                                              \
        "precision", MHF_KEY_PRECISION, "KIND", 0, "float32 (default) or auto", 0                  \
    }
enum { MHF_KEY_PRECISION = 0x3000 };

#endif
