/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "added.h"

/* A search looks no further than this at any place, so that its time is bounded. */
static const size_t longest_pattern = 4096;

mhf_status mhf_added_finder_add(mhf_added_finder *finder, const char *text, size_t n, int64_t token)
{
    if (n == 0 || n > longest_pattern)
        return mhf_fail(MHF_E_DATA,
                        "an added token of %zu bytes once normalized, expected 1 to %zu", n,
                        longest_pattern);
    MHF_TRY(mhf_grow(&finder->patterns, &finder->capacity, finder->n + 1, sizeof *finder->patterns,
                     "added tokens"));
    mhf_added_pattern pattern = {.offset = finder->bytes.n, .n = n, .token = token};
    MHF_TRY(mhf_buf_add(&finder->bytes, text, n));
    finder->patterns[finder->n++] = pattern;
    return MHF_OK;
}

/* By bytes, a prefix before what it begins, equal ones as they came. */
static int compare(const void *a, const void *b)
{
    const mhf_added_pattern *l = a, *r = b;
    int order = memcmp(l->text, r->text, l->n < r->n ? l->n : r->n);
    if (order == 0)
        order = (l->n > r->n) - (l->n < r->n);
    return order ? order : (l->offset > r->offset) - (l->offset < r->offset);
}

void mhf_added_finder_seal(mhf_added_finder *finder)
{
    for (int64_t i = 0; i < finder->n; i++)
        finder->patterns[i].text = finder->bytes.data + finder->patterns[i].offset;
    if (finder->n > 0)
        qsort(finder->patterns, (size_t)finder->n, sizeof *finder->patterns, compare);
    int64_t i = 0;
    for (int byte = 0; byte < 256; byte++) {
        finder->first[byte] = i;
        while (i < finder->n && (unsigned char)finder->patterns[i].text[0] == byte)
            i++;
    }
    finder->first[256] = finder->n;
}

/* First of patterns[low..high), all longer than `depth`, whose byte there is at least `byte`. */
static int64_t lower_bound(const mhf_added_finder *finder, int64_t low, int64_t high, size_t depth,
                           int byte)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((unsigned char)finder->patterns[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const mhf_added_pattern *mhf_added_finder_match(const mhf_added_finder *finder, const char *text,
                                                int64_t n)
{
    int64_t low = finder->first[(unsigned char)text[0]];
    int64_t high = finder->first[(unsigned char)text[0] + 1];
    const mhf_added_pattern *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        if (finder->patterns[low].n == depth)
            best = &finder->patterns[low];
        while (low < high && finder->patterns[low].n == depth)
            low++;
        if (depth == (size_t)n)
            break;
        int byte = (unsigned char)text[depth];
        low = lower_bound(finder, low, high, depth, byte);
        high = lower_bound(finder, low, high, depth, byte + 1);
    }
    return best;
}

void mhf_added_finder_free(mhf_added_finder *finder)
{
    free(finder->patterns);
    mhf_buf_free(&finder->bytes);
    *finder = (mhf_added_finder){0};
}
