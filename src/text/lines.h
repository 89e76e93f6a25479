/* SPDX-License-Identifier: ISC */
/* Lines of a corpus as they stand: what training a tokenizer reads. */
#ifndef MHF_TEXT_LINES_H
#define MHF_TEXT_LINES_H

#include "mhf/text.h"

/** Like mhf_corpus_next, but .txt gives each line as a text of its own, as it is, without its end.
 */
mhf_status mhf_corpus_next_line(mhf_corpus *corpus, const char **text, size_t *n, bool *end);

#endif
