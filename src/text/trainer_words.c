/* SPDX-License-Identifier: ISC */
#include "trainer_words.h"

#include <stdlib.h>
#include <string.h>

/* Slot of the word, or the free slot where it belongs. */
static int64_t find(const mhf_word_table *table, uint64_t hash, const char *word, size_t n)
{
    uint64_t mask = (uint64_t)table->n_slots - 1, i = hash & mask;
    for (; table->slots[i]; i = (i + 1) & mask) {
        const mhf_word *w = &table->words[table->slots[i] - 1];
        if (w->hash == hash && w->n == n &&
            (n == 0 || memcmp(table->bytes.data + w->begin, word, n) == 0))
            break;
    }
    return (int64_t)i;
}

static mhf_status enlarge(mhf_word_table *table)
{
    int64_t n_slots = table->n_slots ? table->n_slots * 2 : 1 << 12;
    uint32_t *slots;
    MHF_TRY(mhf_new(&slots, n_slots, sizeof *slots, "the words of a text"));
    uint64_t mask = (uint64_t)n_slots - 1;
    for (int64_t w = 0; w < table->n; w++) {
        uint64_t i = table->words[w].hash & mask;
        while (slots[i])
            i = (i + 1) & mask;
        slots[i] = (uint32_t)w + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    return MHF_OK;
}

mhf_status mhf_word_table_add(mhf_word_table *table, const char *word, size_t n, int64_t count)
{
    if (table->n * 2 >= table->n_slots)
        MHF_TRY(enlarge(table));
    uint64_t hash = mhf_hash64(word, n);
    int64_t slot = find(table, hash, word, n);
    if (table->slots[slot]) {
        table->words[table->slots[slot] - 1].count += count;
        return MHF_OK;
    }
    if (table->n == INT32_MAX)
        return mhf_fail(MHF_E_DATA, "more than %d distinct words", INT32_MAX);
    MHF_TRY(mhf_grow(&table->words, &table->capacity, table->n + 1, sizeof *table->words,
                     "the words of a text"));
    size_t begin = table->bytes.n;
    MHF_TRY(mhf_buf_add(&table->bytes, word, n));
    table->words[table->n] = (mhf_word){.hash = hash, .begin = begin, .n = n, .count = count};
    table->slots[slot] = (uint32_t)++table->n;
    return MHF_OK;
}

mhf_status mhf_word_table_join(mhf_word_table *table, const mhf_word_table *from)
{
    for (int64_t w = 0; w < from->n; w++) {
        const mhf_word *word = &from->words[w];
        MHF_TRY(mhf_word_table_add(table, from->bytes.data + word->begin, word->n, word->count));
    }
    return MHF_OK;
}

/* Before each printed word's bytes; as it lies in memory, for the same program on the same kind of
 * machine. */
typedef struct printed_word {
    int64_t count;
    uint64_t n;
} printed_word;

mhf_status mhf_word_table_print(const mhf_word_table *table, int64_t *next, size_t limit,
                                mhf_buf *out)
{
    for (; *next < table->n && out->n < limit; ++*next) {
        const mhf_word *word = &table->words[*next];
        printed_word head = {.count = word->count, .n = word->n};
        MHF_TRY(mhf_buf_add(out, &head, sizeof head));
        MHF_TRY(mhf_buf_add(out, table->bytes.data + word->begin, word->n));
    }
    return MHF_OK;
}

mhf_status mhf_word_table_parse(mhf_word_table *table, const char *bytes, size_t n)
{
    while (n > 0) {
        printed_word head = {0};
        if (n >= sizeof head)
            memcpy(&head, bytes, sizeof head);
        if (head.count < 1 || head.n > n - sizeof head)
            return mhf_fail(MHF_E_DATA, "counted words end or lie in their middle");
        bytes += sizeof head;
        MHF_TRY(mhf_word_table_add(table, bytes, head.n, head.count));
        bytes += head.n;
        n -= sizeof head + head.n;
    }
    return MHF_OK;
}

void mhf_word_table_free(mhf_word_table *table)
{
    mhf_buf_free(&table->bytes);
    free(table->words);
    free(table->slots);
    *table = (mhf_word_table){0};
}
