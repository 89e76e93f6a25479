/* SPDX-License-Identifier: ISC */
/** study: word pairs, similarities, correlations with intervals, tables. Knows nothing of how
 * states were computed. Nothing here is collective: rank 0 studies.
 */
#ifndef MHF_STUDY_H
#define MHF_STUDY_H

#include "mhf/base.h"
#include "mhf/store.h"

/* ---- statistics --------------------------------------------------------------------------------
 */

/** Cosine of two vectors of n floats, in double; 0 when either is zero. */
double mhf_cosine(const float *a, const float *b, int64_t n);
/** Pearson's r of n pairs; NaN when n < 2 or one side is constant. */
double mhf_pearson(const double *x, const double *y, int64_t n);
/** Spearman's rho: Pearson's r of average ranks. */
mhf_status mhf_spearman(const double *x, const double *y, int64_t n, double *rho);
/** 95 % percentile bootstrap intervals over pairs, of x [layers, n] against y [n]: `draws`
 * resamples keyed by seed, the same for every layer; interval [layers, 2 (pearson, spearman), 2
 * (low, high)]. Resamples without a correlation (one side constant) are left out; NaN when none has
 * one. O(draws·n·layers) after sorting; threads share the draws, the result does not depend on
 * them. */
mhf_status mhf_bootstrap(const double *x, const double *y, int64_t layers, int64_t n, int64_t draws,
                         uint64_t seed, double *interval);

/* ---- word pairs ----------------------------------------------------------------------------- */

typedef struct mhf_pairs {
    int64_t n;
    char **word1, **word2; /* [n] as in the file, `_` turned to a space */
    double *human;         /* [n] */
    char **words; /* [n_words] distinct, in order of first appearance; borrowed from word1, 2 */
    int64_t n_words;
    int64_t *index1, *index2; /* [n] into words */
} mhf_pairs;

/** word, word, score, tab-separated; more columns and blank lines are ignored; `#` does not start a
 * comment. MHF_E_DATA names file and line. `out` zero-initialised; freed by the caller in any case.
 */
mhf_status mhf_pairs_read(const char *path, mhf_pairs *out);
void mhf_pairs_free(mhf_pairs *pairs);

/* ---- templates ------------------------------------------------------------------------------ */

/* Every distinct word in its template: what the model reads. */
typedef struct mhf_prompts {
    int64_t n;
    char **texts;         /* [n] */
    int64_t *begin, *end; /* [n] the word's span in code points */
} mhf_prompts;

/** MHF_E_USAGE unless `template_text` holds "{}" once. */
mhf_status mhf_prompts_fill(const mhf_pairs *pairs, const char *template_text, mhf_prompts *out);
void mhf_prompts_free(mhf_prompts *prompts);

/* ---- a study -------------------------------------------------------------------------------- */

typedef struct mhf_study_options {
    const char *pooling; /* that the states must have: mean, last or first */
    const char *template_text;
    uint64_t seed;
    int64_t draws;
} mhf_study_options;

/* States to study: an open file and the name its layers get in a table of several. */
typedef struct mhf_study_input {
    mhf_states *states;
    const char *path, *label;
} mhf_study_input;

/** MHF_E_DATA when the file does not hold exactly `prompts`' texts, pooled as asked. */
mhf_status mhf_study_check(const mhf_study_input *input, const mhf_prompts *prompts,
                           const mhf_study_options *options);
/** Similarity of every pair at every layer, correlations and intervals. Layers of several inputs
 * stand one input after another ("label/00"); a pair counts when all inputs cover it, so that their
 * numbers are over the same pairs. occurrences [ids] (NULL: not asked for): how often each of
 * n_occurrences tokens stands in the training data of the first input. Borrows pairs and options;
 * free with mhf_study_free. */
mhf_status mhf_study_run(const mhf_study_input *inputs, int32_t n_inputs, const mhf_pairs *pairs,
                         const mhf_study_options *options, const int64_t *occurrences,
                         int64_t n_occurrences, mhf_study_result *out);
void mhf_study_free(mhf_study_result *result);

/* ---- tables --------------------------------------------------------------------------------- */

/** Append the table for the screen: a line a layer, coverage and multi-word pairs above. */
mhf_status mhf_study_table(const mhf_study_result *result, mhf_buf *out);
/** Append study.tsv: a line a layer. */
mhf_status mhf_study_tsv(const mhf_study_result *result, mhf_buf *out);
/** Append similarities.tsv: a line a pair, with its similarity at every layer. */
mhf_status mhf_study_similarities_tsv(const mhf_study_result *result, mhf_buf *out);

#endif
