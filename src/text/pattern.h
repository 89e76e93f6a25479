/* SPDX-License-Identifier: ISC */
/* Patterns of tokenizer files: a literal string, or a regular expression in Oniguruma's Ruby syntax
 * that is translated for PCRE2. What would mean something else there is refused. */
#ifndef MHF_TEXT_PATTERN_H
#define MHF_TEXT_PATTERN_H

#include "mhf/base.h"

typedef struct mhf_pattern {
    char *literal; /* or NULL */
    size_t n;      /* of the literal */
    void *code;    /* compiled expression, or NULL */
    bool jit;
} mhf_pattern;

/* What a thread needs to match. Zero-initialise; free with mhf_matcher_free. */
typedef struct mhf_matcher {
    void *data, *context, *stack;
} mhf_matcher;

/** Member "pattern" of a step: {"String": …} or {"Regex": …}. `name` stands in errors. */
mhf_status mhf_pattern_parse(const json_t *step, const char *name, mhf_pattern *out);
mhf_status mhf_pattern_literal(const char *literal, size_t n, mhf_pattern *out);
mhf_status mhf_pattern_regex(const char *regex, size_t n, const char *name, mhf_pattern *out);
void mhf_pattern_free(mhf_pattern *pattern);

/** Translate from Ruby's syntax; MHF_E_DATA names what is not built. */
mhf_status mhf_pattern_translate(const char *regex, size_t n, const char *name, mhf_buf *out);

/* What an expression looks for without regard to case. Zero-initialise; free with mhf_folds_free.
 */
typedef struct mhf_folds {
    mhf_buf literals; /* characters that may follow one another, folded; "|" between others */
    mhf_buf lists;    /* bracket lists, "|" between them */
} mhf_folds;

mhf_status mhf_folds_add(mhf_folds *folds, uint32_t c);
mhf_status mhf_folds_part(mhf_folds *folds);
mhf_status mhf_folds_add_list(mhf_folds *folds, const char *list, size_t n);
/** *c = a character that equals several others of the literals, or that is in a list and equals
 * several; 0: there is none, and one character stands for one. */
mhf_status mhf_folds_find(const mhf_folds *folds, uint32_t *c);
void mhf_folds_free(mhf_folds *folds);

/** Next match in text[0..n), valid UTF-8, that begins at or after `from`; *begin = -1 when there is
 * none. Errors: MHF_E_DATA when the expression needs too many steps. */
mhf_status mhf_pattern_find(const mhf_pattern *pattern, mhf_matcher *matcher, const char *text,
                            int64_t n, int64_t from, int64_t *begin, int64_t *end);
void mhf_matcher_free(mhf_matcher *matcher);

/* Walk over all matches: empty ones right after a match are skipped, as Oniguruma's iterator does.
 */
typedef struct mhf_matches {
    const mhf_pattern *pattern;
    mhf_matcher *matcher;
    const char *text;
    int64_t n, from, last; /* last: end of the match before, or -1 */
} mhf_matches;

mhf_status mhf_matches_next(mhf_matches *matches, int64_t *begin, int64_t *end);

#endif
