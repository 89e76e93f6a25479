/* SPDX-License-Identifier: ISC */
/* JSON lines in and out: every rank holds the whole input, deals with its share of the lines, and
 * rank 0 gets the answers back in order.
 */
#ifndef MHF_INFER_LINES_H
#define MHF_INFER_LINES_H

#include "mhf/base.h"

typedef struct mhf_lines {
    mhf_buf text;
    const char *name; /* for messages */
    int64_t n;        /* lines that hold more than white space */
    const char **begin;
    size_t *length;
    int64_t *number; /* from 1, blank lines counted */
    int32_t *owner;  /* the rank that answers the line: i mod n_ranks unless the reader says so */
    int rank, n_ranks;
} mhf_lines;

/** Rank 0 reads ("-": stdin), all get the text. Collective over the world, agreed. */
mhf_status mhf_lines_read(const char *path, mhf_lines *out);
void mhf_lines_free(mhf_lines *lines);
/** Parse line i as an object; errors name file and line, as does `where` for later ones. */
mhf_status mhf_lines_parse(const mhf_lines *lines, int64_t i, json_t **object, mhf_buf *where);
/** Agree on the failure of the earliest line: the same sentence on any number of ranks. Collective.
 */
mhf_status mhf_lines_agree(mhf_status mine, int64_t line);
/** Rank 0 appends the answers of lines [first, last) to `all` in order; `mine` holds this rank's,
 * each ended by a newline, and is cleared. Collective over the world, agreed. */
mhf_status mhf_lines_gather(const mhf_lines *lines, int64_t first, int64_t last, mhf_buf *mine,
                            mhf_buf *all);
/** The `id` of a request, or its line's number; a new reference. */
json_t *mhf_lines_id(const mhf_lines *lines, int64_t i, const json_t *object);
/** A list of token ids, each below `size`; ids is allocated. */
mhf_status mhf_lines_ids(const json_t *list, const char *key, const char *where, int32_t size,
                         int32_t **ids, int64_t *n);

#endif
