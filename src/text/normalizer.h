/* SPDX-License-Identifier: ISC */
/* The "normalizer" of a tokenizer.json, a Sequence flattened to a list of steps. */
#ifndef MHF_TEXT_NORMALIZER_H
#define MHF_TEXT_NORMALIZER_H

#include "passage.h"
#include "pattern.h"

typedef enum mhf_normalizer_kind {
    MHF_NORMALIZE_NFC,
    MHF_NORMALIZE_NFD,
    MHF_NORMALIZE_NFKC,
    MHF_NORMALIZE_NFKD,
    MHF_NORMALIZE_LOWERCASE,
    MHF_NORMALIZE_STRIP_ACCENTS,
    MHF_NORMALIZE_STRIP,
    MHF_NORMALIZE_REPLACE,
    MHF_NORMALIZE_PREPEND,
    MHF_NORMALIZE_BYTE_LEVEL,
} mhf_normalizer_kind;

typedef struct mhf_normalizer {
    mhf_normalizer_kind kind;
    mhf_pattern pattern; /* Replace */
    char *content;       /* Replace, Prepend */
    int64_t n_content;
    bool left, right; /* Strip */
} mhf_normalizer;

/* Zero-initialise; free with mhf_normalizers_free. */
typedef struct mhf_normalizers {
    mhf_normalizer *list;
    int64_t n, capacity;
} mhf_normalizers;

/** `json` may be NULL or null: no steps. `name` is the file, for errors. */
mhf_status mhf_normalizers_parse(const json_t *json, const char *name, mhf_normalizers *out);
void mhf_normalizers_free(mhf_normalizers *normalizers);
/** Normalize every part of the passage that is still text. */
mhf_status mhf_normalizers_apply(const mhf_normalizers *normalizers, mhf_matcher *matcher,
                                 mhf_passage *passage);

/** One part in one of the four Unicode forms, written to the passage being rewritten. */
mhf_status mhf_normalize_form(mhf_normalizer_kind form, mhf_passage *passage, const mhf_part *part);

#endif
