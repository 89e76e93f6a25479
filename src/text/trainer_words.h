/* SPDX-License-Identifier: ISC */
/* The distinct words of a training text and how often each occurs. */
#ifndef MHF_TEXT_TRAINER_WORDS_H
#define MHF_TEXT_TRAINER_WORDS_H

#include "mhf/base.h"

typedef struct mhf_word {
    uint64_t hash;
    size_t begin, n; /* in the table's bytes */
    int64_t count;
} mhf_word;

/* Zero-initialise; free with mhf_word_table_free. */
typedef struct mhf_word_table {
    mhf_buf bytes;
    mhf_word *words; /* [n] in order of first appearance */
    int64_t n, capacity;
    uint32_t *slots; /* [n_slots], a power of two: 1 + index in words, 0 free */
    int64_t n_slots;
} mhf_word_table;

mhf_status mhf_word_table_add(mhf_word_table *table, const char *word, size_t n, int64_t count);
/** Add every word of `from`. */
mhf_status mhf_word_table_join(mhf_word_table *table, const mhf_word_table *from);
/** Append words from *next on, and move *next, until `out` holds `limit` bytes or all are there. */
mhf_status mhf_word_table_print(const mhf_word_table *table, int64_t *next, size_t limit,
                                mhf_buf *out);
/** Add what was printed. */
mhf_status mhf_word_table_parse(mhf_word_table *table, const char *bytes, size_t n);
void mhf_word_table_free(mhf_word_table *table);

#endif
