/* SPDX-License-Identifier: ISC */
/* The "post_processor" of a tokenizer.json: the tokens put around a text. */
#ifndef MHF_TEXT_TEMPLATE_H
#define MHF_TEXT_TEMPLATE_H

#include "mhf/text.h"

/* Zero-initialise; free with mhf_template_free. */
typedef struct mhf_template {
    mhf_token *before, *after; /* [n_before], [n_after] */
    int64_t n_before, n_after, before_capacity, after_capacity;
    bool given; /* a post-processor that adds tokens has been read */
} mhf_template;

/** `json` may be NULL or null: nothing is put around. Ids must be below `size`. */
mhf_status mhf_template_parse(const json_t *json, const char *name, int32_t size,
                              mhf_template *out);
void mhf_template_free(mhf_template *around);

#endif
