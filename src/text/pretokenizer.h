/* SPDX-License-Identifier: ISC */
/* The "pre_tokenizer" of a tokenizer.json, a Sequence flattened to a list of steps. */
#ifndef MHF_TEXT_PRETOKENIZER_H
#define MHF_TEXT_PRETOKENIZER_H

#include "passage.h"
#include "pattern.h"

typedef enum mhf_cut_behavior {
    MHF_CUT_REMOVED,
    MHF_CUT_ISOLATED,
    MHF_CUT_MERGED_WITH_PREVIOUS,
    MHF_CUT_MERGED_WITH_NEXT,
    MHF_CUT_CONTIGUOUS,
} mhf_cut_behavior;

typedef enum mhf_pretokenizer_kind {
    MHF_PRETOKENIZE_PATTERN, /* cut at matches of a pattern */
    MHF_PRETOKENIZE_CHARS,   /* cut at code points of a class */
    MHF_PRETOKENIZE_PREFIX,  /* put a space before each part that has none */
    MHF_PRETOKENIZE_BYTES,   /* bytes become characters of the byte-level alphabet */
    MHF_PRETOKENIZE_SPACES,  /* Metaspace: spaces become its replacement, one is put before */
} mhf_pretokenizer_kind;

typedef enum mhf_prepend_scheme {
    MHF_PREPEND_ALWAYS,
    MHF_PREPEND_FIRST,
    MHF_PREPEND_NEVER,
} mhf_prepend_scheme;

typedef struct mhf_pretokenizer {
    mhf_pretokenizer_kind kind;
    mhf_pattern pattern;
    mhf_cut_behavior behavior;
    bool invert;
    bool (*is_match)(uint32_t c); /* CHARS; NULL: `replacement` alone */
    uint32_t replacement;
    mhf_prepend_scheme scheme;
} mhf_pretokenizer;

/* Zero-initialise; free with mhf_pretokenizers_free. */
typedef struct mhf_pretokenizers {
    mhf_pretokenizer *list;
    int64_t n, capacity;
    /* The last step is BYTES: the model takes bytes, so that step is not carried out. */
    bool bytes_last;
} mhf_pretokenizers;

/** `json` may be NULL or null: no steps. `name` is the file, for errors. */
mhf_status mhf_pretokenizers_parse(const json_t *json, const char *name, mhf_pretokenizers *out);
void mhf_pretokenizers_free(mhf_pretokenizers *pretokenizers);
/** Cut the parts of the passage that are still text into words. */
mhf_status mhf_pretokenizers_apply(const mhf_pretokenizers *pretokenizers, mhf_matcher *matcher,
                                   mhf_passage *passage);

/** Members of Metaspace, which is a decoder too. */
mhf_status mhf_metaspace_parse(const json_t *json, const char *name, uint32_t *replacement,
                               mhf_prepend_scheme *scheme, bool *split);
/** Cut every part at the matches of the step. */
mhf_status mhf_pretokenizer_cut(const mhf_pretokenizer *step, mhf_matcher *matcher,
                                mhf_passage *passage);

#endif
