/* SPDX-License-Identifier: ISC */
/* Two ways to the same tokens: scanning for the best pair is faster where a word is short, a heap
 * keeps long ones (a whole line where words are not split) at O(n log n). */
#include "bpe.h"

#include <string.h>

enum { SHORT = 24 };

static void look_up(const mhf_bpe *bpe, const mhf_symbol *symbols, int64_t i, int32_t *rank,
                    mhf_token *into)
{
    const mhf_ranked_merge *merge = mhf_bpe_find(bpe, symbols[i].id, symbols[i + 1].id);
    rank[i] = merge ? merge->rank : INT32_MAX;
    into[i] = merge ? merge->id : -1;
}

static void merge_short(const mhf_bpe *bpe, mhf_bpe_scratch *scratch)
{
    int32_t rank[SHORT];
    mhf_token into[SHORT];
    mhf_symbol *symbols = scratch->work;
    int64_t n = scratch->n_work;
    for (int64_t i = 0; i + 1 < n; i++)
        look_up(bpe, symbols, i, rank, into);
    while (n > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == INT32_MAX)
            break;
        symbols[best].id = into[best];
        symbols[best].n += symbols[best + 1].n;
        size_t tail = (size_t)(n - best - 2);
        memmove(symbols + best + 1, symbols + best + 2, tail * sizeof *symbols);
        if (tail > 0) { /* the pairs behind the one that begins with the new symbol */
            memmove(rank + best + 1, rank + best + 2, (tail - 1) * sizeof *rank);
            memmove(into + best + 1, into + best + 2, (tail - 1) * sizeof *into);
        }
        n--;
        if (best + 1 < n)
            look_up(bpe, symbols, best, rank, into);
        if (best > 0)
            look_up(bpe, symbols, best - 1, rank, into);
    }
    scratch->n_work = n;
}

static void sift_up(mhf_heap_entry *heap, int64_t i)
{
    mhf_heap_entry entry = heap[i];
    for (; i > 0 && heap[(i - 1) / 4].key > entry.key; i = (i - 1) / 4)
        heap[i] = heap[(i - 1) / 4];
    heap[i] = entry;
}

static void sift_down(mhf_heap_entry *heap, int64_t n, int64_t i)
{
    mhf_heap_entry entry = heap[i];
    for (;;) {
        int64_t child = i * 4 + 1, best = child;
        for (int64_t j = child + 1; j < n && j < child + 4; j++)
            if (heap[j].key < heap[best].key)
                best = j;
        if (child >= n || heap[best].key >= entry.key)
            break;
        heap[i] = heap[best];
        i = best;
    }
    heap[i] = entry;
}

static mhf_status push(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, int32_t at)
{
    const mhf_ranked_merge *merge =
        mhf_bpe_find(bpe, scratch->work[at].id, scratch->work[scratch->next[at]].id);
    if (!merge)
        return MHF_OK;
    MHF_TRY(mhf_grow(&scratch->heap, &scratch->heap_capacity, scratch->n_heap + 1,
                     sizeof *scratch->heap, "a word"));
    scratch->heap[scratch->n_heap] =
        (mhf_heap_entry){(uint64_t)merge->rank << 32 | (uint32_t)at, merge->id};
    sift_up(scratch->heap, scratch->n_heap++);
    return MHF_OK;
}

static mhf_status link(mhf_bpe_scratch *scratch)
{
    int64_t n = scratch->n_work;
    MHF_TRY(mhf_grow(&scratch->previous, &scratch->previous_capacity, n, sizeof *scratch->previous,
                     "a word"));
    MHF_TRY(mhf_grow(&scratch->next, &scratch->next_capacity, n, sizeof *scratch->next, "a word"));
    for (int64_t i = 0; i < n; i++) {
        scratch->previous[i] = (int32_t)i - 1;
        scratch->next[i] = i + 1 < n ? (int32_t)i + 1 : -1;
    }
    return MHF_OK;
}

/* Join the symbol to the next one, when the entry still fits. */
static mhf_status join(const mhf_bpe *bpe, mhf_bpe_scratch *scratch, mhf_heap_entry top)
{
    mhf_symbol *symbols = scratch->work;
    int32_t *next = scratch->next, *previous = scratch->previous;
    int32_t at = (int32_t)(uint32_t)top.key, right = next[at];
    if (symbols[at].id < 0 || right < 0)
        return MHF_OK;
    const mhf_ranked_merge *merge = mhf_bpe_find(bpe, symbols[at].id, symbols[right].id);
    if (!merge || merge->id != top.id)
        return MHF_OK;
    symbols[at].id = top.id;
    symbols[at].n += symbols[right].n;
    symbols[right].id = -1;
    next[at] = next[right];
    if (next[at] >= 0)
        previous[next[at]] = at;
    if (previous[at] >= 0)
        MHF_TRY(push(bpe, scratch, previous[at]));
    return next[at] >= 0 ? push(bpe, scratch, at) : MHF_OK;
}

static mhf_status merge_long(const mhf_bpe *bpe, mhf_bpe_scratch *scratch)
{
    MHF_TRY(link(scratch));
    scratch->n_heap = 0;
    for (int64_t i = 0; i + 1 < scratch->n_work; i++)
        MHF_TRY(push(bpe, scratch, (int32_t)i));
    while (scratch->n_heap > 0) {
        mhf_heap_entry top = scratch->heap[0];
        scratch->heap[0] = scratch->heap[--scratch->n_heap];
        if (scratch->n_heap > 1)
            sift_down(scratch->heap, scratch->n_heap, 0);
        MHF_TRY(join(bpe, scratch, top));
    }
    int64_t n = 0;
    for (int64_t i = 0; i < scratch->n_work; i++)
        if (scratch->work[i].id >= 0)
            scratch->work[n++] = scratch->work[i];
    scratch->n_work = n;
    return MHF_OK;
}

mhf_status mhf_bpe_merge(const mhf_bpe *bpe, mhf_bpe_scratch *scratch)
{
    if (scratch->n_work > SHORT)
        return merge_long(bpe, scratch);
    merge_short(bpe, scratch);
    return MHF_OK;
}
