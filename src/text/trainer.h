/* SPDX-License-Identifier: ISC */
/* Training, seen from beside: the vocabulary and merges themselves. */
#ifndef MHF_TEXT_TRAINER_H
#define MHF_TEXT_TRAINER_H

#include "trainer_merges.h"

/** Learn from what was added so far. May be called again with another size. The alphabet is taken
 * whole even where vocab_size is too small for it.
 * pieces, merges  empty at first. n_start  tokens before the first merge's. */
mhf_status mhf_tokenizer_trainer_learn(mhf_tokenizer_trainer *trainer, int32_t vocab_size,
                                       mhf_pieces *pieces, int32_t *n_start,
                                       mhf_merge_list *merges);
/** Go on where the tokenizer to be like ends: its tokens keep their ids, characters that it lacks
 * follow, and merges are learned from words as its own merges leave them.
 * n_new  merges' tokens to add, fewer where no pair is left. */
mhf_status mhf_tokenizer_trainer_continue(mhf_tokenizer_trainer *trainer, int32_t n_new,
                                          mhf_pieces *pieces, int32_t *n_start,
                                          mhf_merge_list *merges);

#endif
