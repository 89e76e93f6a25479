/* SPDX-License-Identifier: ISC */
/* The counts of all pairs are kept up to date: a merge changes only the pairs at its places. The
 * queue's counts may be old (too high); the first is checked against the true count when taken.
 */
#include "trainer_merges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer_pairs.h"

typedef struct span {
    int64_t begin, n; /* in symbols */
    int64_t count;
} span;

typedef struct learner {
    mhf_token *symbols; /* all words' tokens, one word after another */
    span *words;        /* [n_words] */
    int64_t n_words;
    mhf_pair_map counts;
    mhf_queue queue;
    /* Pairs that came up since the queue was last filled: index + 1 in fresh. */
    mhf_pair_map fresh_index;
    mhf_candidate *fresh;
    int64_t n_fresh, fresh_capacity;
    int64_t n_merges; /* learned so far */
} learner;

/* ---- the words as tokens -------------------------------------------------------------------- */

static mhf_status split_word(const char *word, size_t n, const mhf_pieces *pieces,
                             mhf_token *symbols, int64_t *n_symbols)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        int length = mhf_utf8_decode(word + i, n - i, &c);
        mhf_token id = length ? mhf_pieces_find(pieces, word + i, (size_t)length) : -1;
        if (id < 0)
            return mhf_fail(MHF_E_INTERNAL, "a word holds a character outside the alphabet");
        symbols[(*n_symbols)++] = id;
        i += (size_t)length;
    }
    return MHF_OK;
}

/* What the merges of `model` leave of a word's symbols. */
static mhf_status merge_word(const mhf_bpe *model, mhf_bpe_scratch *scratch, mhf_token *symbols,
                             int64_t *n)
{
    MHF_TRY(mhf_grow(&scratch->work, &scratch->work_capacity, *n, sizeof *scratch->work, "a word"));
    for (int64_t i = 0; i < *n; i++)
        scratch->work[i] = (mhf_symbol){.id = symbols[i]};
    scratch->n_work = *n;
    MHF_TRY(mhf_bpe_merge(model, scratch));
    for (int64_t i = 0; i < scratch->n_work; i++)
        symbols[i] = scratch->work[i].id;
    *n = scratch->n_work;
    return MHF_OK;
}

static mhf_status merge_words(learner *l, const mhf_bpe *model)
{
    mhf_bpe_scratch scratch = {0};
    mhf_status status = MHF_OK;
    for (int64_t w = 0; w < l->n_words && status == MHF_OK; w++)
        status = merge_word(model, &scratch, l->symbols + l->words[w].begin, &l->words[w].n);
    mhf_bpe_scratch_free(&scratch);
    return status;
}

static mhf_status split_words(learner *l, const mhf_word_table *table, const mhf_pieces *pieces)
{
    l->n_words = table->n;
    MHF_TRY(mhf_new(&l->words, table->n, sizeof *l->words, "the words of a text"));
    /* A character has at least one byte. */
    MHF_TRY(
        mhf_new(&l->symbols, (int64_t)table->bytes.n, sizeof *l->symbols, "the words of a text"));
    int64_t n = 0;
    for (int64_t w = 0; w < table->n; w++) {
        const mhf_word *word = &table->words[w];
        l->words[w] = (span){.begin = n, .count = word->count};
        MHF_TRY(split_word(table->bytes.data + word->begin, word->n, pieces, l->symbols, &n));
        l->words[w].n = n - l->words[w].begin;
    }
    return MHF_OK;
}

/* ---- counting ------------------------------------------------------------------------------- */

/* Remember that a fresh pair occurs in word w; words come in ascending order. */
static mhf_status note(learner *l, mhf_pair pair, int32_t w)
{
    int64_t *index;
    MHF_TRY(mhf_pair_map_at(&l->fresh_index, pair, &index));
    if (*index == 0) {
        MHF_TRY(mhf_grow(&l->fresh, &l->fresh_capacity, l->n_fresh + 1, sizeof *l->fresh,
                         "pairs of tokens"));
        l->fresh[l->n_fresh] = (mhf_candidate){.pair = pair, .made = l->n_merges};
        *index = ++l->n_fresh;
    }
    mhf_candidate *candidate = &l->fresh[*index - 1];
    if (candidate->n_words > 0 && candidate->words[candidate->n_words - 1] == w)
        return MHF_OK;
    MHF_TRY(mhf_grow(&candidate->words, &candidate->capacity, candidate->n_words + 1,
                     sizeof *candidate->words, "pairs of tokens"));
    candidate->words[candidate->n_words++] = w;
    return MHF_OK;
}

static mhf_status count_more(learner *l, mhf_token left, mhf_token right, int32_t w)
{
    mhf_pair pair = mhf_pair_of(left, right);
    int64_t *count;
    MHF_TRY(mhf_pair_map_at(&l->counts, pair, &count));
    *count += l->words[w].count;
    return note(l, pair, w);
}

static mhf_status count_less(learner *l, mhf_token left, mhf_token right, int32_t w)
{
    int64_t *count;
    MHF_TRY(mhf_pair_map_at(&l->counts, mhf_pair_of(left, right), &count));
    *count -= l->words[w].count;
    return MHF_OK;
}

static mhf_status count_pairs(learner *l)
{
    for (int64_t w = 0; w < l->n_words; w++) {
        const mhf_token *s = l->symbols + l->words[w].begin;
        for (int64_t i = 0; i + 1 < l->words[w].n; i++)
            MHF_TRY(count_more(l, s[i], s[i + 1], (int32_t)w));
    }
    return MHF_OK;
}

/* Queue the fresh pairs. */
static mhf_status fill_queue(learner *l)
{
    while (l->n_fresh > 0) {
        mhf_candidate *candidate = &l->fresh[l->n_fresh - 1];
        candidate->count = mhf_pair_map_get(&l->counts, candidate->pair);
        if (candidate->count > 0)
            MHF_TRY(mhf_queue_push(&l->queue, candidate));
        else
            free(candidate->words);
        l->n_fresh--;
    }
    mhf_pair_map_clear(&l->fresh_index);
    return MHF_OK;
}

/* ---- merging -------------------------------------------------------------------------------- */

static mhf_status merge_in_word(learner *l, mhf_pair pair, mhf_token id, int32_t w)
{
    mhf_token left = mhf_pair_left(pair), right = mhf_pair_right(pair);
    mhf_token *s = l->symbols + l->words[w].begin;
    int64_t n = l->words[w].n, kept = 0;
    for (int64_t i = 0; i < n;) {
        if (i + 1 == n || s[i] != left || s[i + 1] != right) {
            s[kept++] = s[i++];
            continue;
        }
        if (kept > 0) {
            MHF_TRY(count_less(l, s[kept - 1], left, w));
            MHF_TRY(count_more(l, s[kept - 1], id, w));
        }
        if (i + 2 < n) {
            MHF_TRY(count_less(l, right, s[i + 2], w));
            MHF_TRY(count_more(l, id, s[i + 2], w));
        }
        s[kept++] = id;
        i += 2;
    }
    l->words[w].n = kept;
    return MHF_OK;
}

static mhf_status merge(learner *l, const mhf_candidate *best, mhf_pieces *pieces,
                        mhf_buf *spelling, mhf_merge_list *out)
{
    mhf_token left = mhf_pair_left(best->pair), right = mhf_pair_right(best->pair), id;
    mhf_buf_clear(spelling);
    size_t n;
    const char *piece = mhf_pieces_get(pieces, left, &n);
    MHF_TRY(mhf_buf_add(spelling, piece, n));
    piece = mhf_pieces_get(pieces, right, &n);
    MHF_TRY(mhf_buf_add(spelling, piece, n));
    MHF_TRY(mhf_pieces_add(pieces, spelling->data, spelling->n, &id));
    MHF_TRY(mhf_merge_list_add(out, left, right));
    l->n_merges++;
    for (int64_t i = 0; i < best->n_words; i++)
        MHF_TRY(merge_in_word(l, best->pair, id, best->words[i]));
    return fill_queue(l);
}

static mhf_status learn(learner *l, int32_t vocab_size, mhf_pieces *pieces, mhf_merge_list *out)
{
    mhf_buf spelling = {0};
    mhf_progress progress;
    mhf_progress_start(&progress, "merges", "tokens", vocab_size);
    mhf_status status = MHF_OK;
    while (status == MHF_OK && pieces->n < vocab_size && l->queue.n > 0) {
        mhf_candidate best = mhf_queue_pop(&l->queue);
        int64_t count = mhf_pair_map_get(&l->counts, best.pair);
        if (best.count != count) {
            best.count = count;
            status = mhf_queue_push(&l->queue, &best);
            if (status != MHF_OK)
                free(best.words);
            continue;
        }
        if (count > 0)
            status = merge(l, &best, pieces, &spelling, out);
        free(best.words);
        if (count <= 0)
            break;
        mhf_progress_show(&progress, pieces->n, NULL);
    }
    mhf_buf_free(&spelling);
    return status;
}

/* A pair whose left or right spelling arose in a second way can be queued, and merged, again. In
 * the file it has one place, its last. */
static mhf_status drop_repeats(mhf_merge_list *list)
{
    mhf_pair_map last = {0};
    mhf_status status = MHF_OK;
    int64_t kept = 0;
    for (int64_t i = 0; i < list->n && status == MHF_OK; i++) {
        int64_t *place;
        status = mhf_pair_map_at(&last, mhf_pair_of(list->merges[i].left, list->merges[i].right),
                                 &place);
        if (status == MHF_OK)
            *place = i;
    }
    for (int64_t i = 0; i < list->n && status == MHF_OK; i++) {
        mhf_merge m = list->merges[i];
        if (mhf_pair_map_get(&last, mhf_pair_of(m.left, m.right)) == i)
            list->merges[kept++] = m;
    }
    if (status == MHF_OK)
        list->n = kept;
    mhf_pair_map_free(&last);
    return status;
}

mhf_status mhf_merges_learn(const mhf_word_table *words, const mhf_bpe *model, int32_t vocab_size,
                            mhf_pieces *pieces, mhf_merge_list *out)
{
    learner l = {0};
    mhf_status status = split_words(&l, words, pieces);
    if (status == MHF_OK && model)
        status = merge_words(&l, model);
    if (status == MHF_OK)
        status = count_pairs(&l);
    if (status == MHF_OK)
        status = fill_queue(&l);
    if (status == MHF_OK)
        status = learn(&l, vocab_size, pieces, out);
    if (status == MHF_OK)
        status = drop_repeats(out);
    for (int64_t i = 0; i < l.n_fresh; i++)
        free(l.fresh[i].words);
    free(l.fresh);
    free(l.symbols);
    free(l.words);
    mhf_pair_map_free(&l.counts);
    mhf_pair_map_free(&l.fresh_index);
    mhf_queue_free(&l.queue);
    return status;
}

mhf_status mhf_merge_list_add(mhf_merge_list *list, mhf_token left, mhf_token right)
{
    MHF_TRY(
        mhf_grow(&list->merges, &list->capacity, list->n + 1, sizeof *list->merges, "the merges"));
    list->merges[list->n++] = (mhf_merge){left, right};
    return MHF_OK;
}

void mhf_merge_list_free(mhf_merge_list *list)
{
    free(list->merges);
    *list = (mhf_merge_list){0};
}
