/* SPDX-License-Identifier: ISC */
/* A vocabulary while it grows: spellings numbered in the order in which they came. */
#ifndef MHF_TEXT_PIECES_H
#define MHF_TEXT_PIECES_H

#include "mhf/text.h"

/* Zero-initialise; free with mhf_pieces_free. */
typedef struct mhf_pieces {
    mhf_buf bytes;    /* all spellings, one after another */
    size_t *ends;     /* [n] */
    int64_t capacity; /* of ends */
    int32_t n;
    mhf_map *ids;
} mhf_pieces;

/** *id = the number of the spelling, which is added when it is new. */
mhf_status mhf_pieces_add(mhf_pieces *pieces, const char *piece, size_t n, mhf_token *id);
/** Borrowed until the next addition. */
const char *mhf_pieces_get(const mhf_pieces *pieces, mhf_token id, size_t *n);
/** -1 when there is none. */
mhf_token mhf_pieces_find(const mhf_pieces *pieces, const char *piece, size_t n);
void mhf_pieces_free(mhf_pieces *pieces);

#endif
