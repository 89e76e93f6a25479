/* SPDX-License-Identifier: ISC */
/* How training sees a tokenizer: the words that its normalizer and pre-tokenizer make of a text. */
#ifndef MHF_TEXT_WORDS_H
#define MHF_TEXT_WORDS_H

#include "mhf/text.h"

typedef mhf_status (*mhf_word_fn)(void *context, const char *bytes, size_t n);

/** Call `word` with each word of `text` in order, in the tokenizer's internal alphabet (byte-level
 * characters, or with "▁" for spaces), before any merge. Added tokens are not looked for: training
 * sees a text as plain. Stops at the first failure and returns it. Any thread; the bytes are
 * valid during the call only. */
mhf_status mhf_tokenizer_words(const mhf_tokenizer *tokenizer, const char *text, size_t n,
                               mhf_word_fn word, void *context);

#endif
