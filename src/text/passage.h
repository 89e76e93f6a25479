/* SPDX-License-Identifier: ISC */
/* A text on its way from the caller to the model: its bytes as they are now, the bytes of the
 * caller's text that each stands for, and the parts it has been cut into. Normalizers rewrite it,
 * pre-tokenizers cut it. */
#ifndef MHF_TEXT_PASSAGE_H
#define MHF_TEXT_PASSAGE_H

#include "mhf/text.h"

typedef struct mhf_part {
    int64_t begin, end; /* bytes of the passage; of the caller's text when id >= 0 */
    mhf_token id;       /* an added token that is done; -1: text for the model */
} mhf_part;

/* One of the two buffers that rewriting fills in turn. */
typedef struct mhf_passage_side {
    char *text;
    int64_t *begin, *end;
    int64_t n, text_capacity, begin_capacity, end_capacity;
    int64_t lead; /* as the passage's, of this side */
} mhf_passage_side;

/* Zero-initialise; reused from text to text; free with mhf_passage_free. */
typedef struct mhf_passage {
    const char *text; /* [n] valid UTF-8 */
    int64_t n;
    const int64_t *begin, *end; /* [n] of the caller's text, half-open; NULL: byte i is byte i */
    bool aligned;               /* begin and end are kept */
    int64_t most;               /* bytes that rewriting may make of the text */
    int64_t lead; /* bytes at its beginning that stand for the caller's first character */
    mhf_part *parts, *spare; /* spare: the list that cutting fills */
    int64_t n_parts, n_spare, parts_capacity, spare_capacity;
    mhf_passage_side sides[2];
    int side; /* the one that rewriting fills */
} mhf_passage;

/** Bytes that rewriting may make of n. Nothing of a real tokenizer comes near: a character's
 * longest normal form has 18 times its bytes. */
static inline size_t mhf_text_limit(size_t n)
{
    return n * 64 + (1 << 20);
}

/** Start with the caller's text as one part; it is borrowed until the next start. */
mhf_status mhf_passage_start(mhf_passage *passage, const char *text, size_t n, bool aligned);
void mhf_passage_free(mhf_passage *passage);

/** Does the part start where the caller's text starts, as the tokenizers library has it? Not where
 * a normalizer took the first character away. */
static inline bool mhf_passage_leads(const mhf_passage *passage, const mhf_part *part)
{
    return part->begin < passage->lead;
}

/** The caller's bytes that n bytes at `at` stand for. n = 0: an empty range at that place. */
void mhf_passage_origin(const mhf_passage *passage, int64_t at, int64_t n, int64_t *begin,
                        int64_t *end);

/* Rewriting: for every part in order the new text is put together from copies and from other bytes,
 * then the part is closed. */
void mhf_passage_rewrite(mhf_passage *passage);
mhf_status mhf_passage_copy(mhf_passage *passage, int64_t from, int64_t n);
/** Put other bytes for n_from bytes of the text (0: they stand for nothing) at `from`. */
mhf_status mhf_passage_put(mhf_passage *passage, const char *bytes, int64_t n, int64_t from,
                           int64_t n_from);
/** The same for what an expression found: in the library the new bytes belong to the last character
 * that they replace. */
mhf_status mhf_passage_replace(mhf_passage *passage, const char *bytes, int64_t n, int64_t from,
                               int64_t n_from);
/** The part that began at `begin` (the side's length then) is whole. */
void mhf_passage_close_part(mhf_passage *passage, mhf_part *part, int64_t begin);
void mhf_passage_rewritten(mhf_passage *passage);
static inline int64_t mhf_passage_written(const mhf_passage *passage)
{
    return passage->sides[passage->side].n;
}

/* Cutting: a new list of parts is put together, then it takes the old one's place. */
void mhf_passage_cut(mhf_passage *passage);
/** Empty parts of text are left out. */
mhf_status mhf_passage_add_part(mhf_passage *passage, mhf_part part);
void mhf_passage_cut_done(mhf_passage *passage);

#endif
