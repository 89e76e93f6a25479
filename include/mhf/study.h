/* SPDX-License-Identifier: ISC */
/** study: word pairs, similarities, correlations with intervals, tables. Knows nothing of how states
 * were computed. Nothing here is collective: rank 0 studies.
 */
#ifndef MHF_STUDY_H
#define MHF_STUDY_H

#include "mhf/base.h"

/* ---- statistics -------------------------------------------------------------------------------- */

/** Cosine of two vectors of n floats, in double; 0 when either is zero. */
double mhf_cosine(const float *a, const float *b, int64_t n);
/** Pearson's r of n pairs; NaN when n < 2 or one side is constant. */
double mhf_pearson(const double *x, const double *y, int64_t n);
/** Spearman's rho: Pearson's r of average ranks. */
mhf_status mhf_spearman(const double *x, const double *y, int64_t n, double *rho);
/** 95 % percentile bootstrap intervals over pairs: `draws` resamples keyed by seed;
 * pearson and spearman get {low, high}. */
mhf_status mhf_bootstrap(const double *x, const double *y, int64_t n, int64_t draws, uint64_t seed,
                         double pearson[2], double spearman[2]);

/* ---- word pairs ---------------------------------------------------------------------------------- */

typedef struct mhf_pairs {
    int64_t n;
    char **word1, **word2; /* [n] as in the file, `_` turned to a space */
    double *human;         /* [n] */
    char **words;          /* [n_words] distinct, in order of first appearance */
    int64_t n_words;
    int64_t *index1, *index2; /* [n] into words */
} mhf_pairs;

/** word, word, score, tab-separated; more columns are ignored; `#` does not start a comment. MHF_E_DATA names
 * file and line. */
mhf_status mhf_pairs_read(const char *path, mhf_pairs *out);
void mhf_pairs_free(mhf_pairs *pairs);

#endif
