/* SPDX-License-Identifier: ISC */
/* The "added_tokens" of a tokenizer.json: found in a text before the model sees the rest. */
#ifndef MHF_TEXT_ADDED_H
#define MHF_TEXT_ADDED_H

#include "normalizer.h"
#include "pieces.h"

typedef struct mhf_added_token {
    mhf_token id;
    bool single_word, left, right, normalized, special; /* left, right: take white space along */
} mhf_added_token;

typedef struct mhf_added_pattern {
    const char *text; /* [n] in the finder's bytes once sealed */
    size_t offset, n;
    int64_t token; /* index in the list */
} mhf_added_pattern;

/* Finds the longest of many strings that a text has at a place. */
typedef struct mhf_added_finder {
    mhf_added_pattern *patterns; /* [n] sorted */
    int64_t n, capacity;
    int64_t first[257]; /* patterns that begin with byte b: first[b] to first[b + 1] - 1 */
    mhf_buf bytes;
} mhf_added_finder;

/* Zero-initialise; free with mhf_added_free. */
typedef struct mhf_added {
    mhf_added_token *list;
    int64_t n, capacity;
    mhf_added_finder plain, normalized; /* looked for before, after normalization */
} mhf_added;

/** `json` is the list or NULL. Tokens that the vocabulary lacks are appended to it; an id that is
 * not the one that follows from the list is refused (MHF_E_DATA). */
mhf_status mhf_added_parse(const json_t *json, const char *name, const mhf_normalizers *normalizers,
                           mhf_pieces *vocab, mhf_added *out);
void mhf_added_free(mhf_added *added);
/** Cut the tokens out of the passage's parts. */
mhf_status mhf_added_cut(const mhf_added *added, const mhf_added_finder *finder,
                         mhf_passage *passage);

mhf_status mhf_added_finder_add(mhf_added_finder *finder, const char *text, size_t n,
                                int64_t token);
/** After the last addition. */
void mhf_added_finder_seal(mhf_added_finder *finder);
/** The longest pattern that text[0..n) begins with, or NULL. */
const mhf_added_pattern *mhf_added_finder_match(const mhf_added_finder *finder, const char *text,
                                                int64_t n);
void mhf_added_finder_free(mhf_added_finder *finder);

#endif
