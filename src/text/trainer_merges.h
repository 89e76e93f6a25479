/* SPDX-License-Identifier: ISC */
/* Learning the merges of a byte-pair encoding from counted words. */
#ifndef MHF_TEXT_TRAINER_MERGES_H
#define MHF_TEXT_TRAINER_MERGES_H

#include "bpe.h"
#include "pieces.h"
#include "trainer_words.h"

typedef struct mhf_merge {
    mhf_token left, right;
} mhf_merge;

/* Zero-initialise; free with mhf_merge_list_free. */
typedef struct mhf_merge_list {
    mhf_merge *merges; /* [n], first to apply first */
    int64_t n, capacity;
} mhf_merge_list;

/** Learn merges until `pieces` holds vocab_size tokens or no pair is left.
 *
 * The most frequent pair first, ties by the smaller (left id, right id). A merge whose spelling
 * exists already takes its id.
 * model   NULL, or: words start as its merges leave them, not from their characters.
 * pieces  special tokens (or the vocabulary of `model`) and the alphabet of `words`; grows.
 * Cost: for each merge the length of the words that hold its pair. */
mhf_status mhf_merges_learn(const mhf_word_table *words, const mhf_bpe *model, int32_t vocab_size,
                            mhf_pieces *pieces, mhf_merge_list *out);
mhf_status mhf_merge_list_add(mhf_merge_list *list, mhf_token left, mhf_token right);
void mhf_merge_list_free(mhf_merge_list *list);

#endif
