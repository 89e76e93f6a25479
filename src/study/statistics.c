/* SPDX-License-Identifier: ISC */
/* Correlations and their bootstrap intervals. */
#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/study.h"

double mhf_cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa == 0 || bb == 0 ? 0 : ab / (sqrt(aa) * sqrt(bb));
}

static bool is_constant(const double *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

double mhf_pearson(const double *x, const double *y, int64_t n)
{
    /* Rounding can give a constant side a tiny spread, hence the exact test first. */
    if (n < 2 || is_constant(x, n) || is_constant(y, n))
        return GSL_NAN;
    return gsl_stats_correlation(x, 1, y, 1, (size_t)n);
}

/* One side of the pairs: values in ascending order, once for all resamples. */
typedef struct side {
    size_t *order; /* [n] places by ascending value */
    bool *first;   /* [n] order[i] starts a run of equal values */
    const double *value;
} side;

static mhf_status side_new(const double *value, int64_t n, side *out)
{
    MHF_TRY(mhf_new(&out->order, n, sizeof *out->order, "the order of the pairs"));
    MHF_TRY(mhf_new(&out->first, n, sizeof *out->first, "the runs of equal values"));
    out->value = value;
    gsl_sort_index(out->order, value, 1, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        out->first[i] = i == 0 || value[out->order[i]] != value[out->order[i - 1]];
    return MHF_OK;
}

static void side_free(side *s)
{
    free(s->order);
    free(s->first);
}

/* rank [n] of a resample in which pair i stands count[i] times: the average over its run of equal
 * values, by counting along the presorted order. */
static void average_ranks(const side *s, const int32_t *count, int64_t n, double *rank)
{
    double before = 0;
    for (int64_t i = 0; i < n;) {
        double here = 0;
        int64_t end = i;
        do
            here += count[s->order[end++]];
        while (end < n && !s->first[end]);
        for (; i < end; i++)
            rank[s->order[i]] = before + (here + 1) / 2;
        before += here;
    }
}

/* Pearson's r of a resample: each pair weighs count[i]. */
static double counted_pearson(const double *x, const double *y, const int32_t *count, int64_t n)
{
    double mean_x = 0, mean_y = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        mean_x += count[i] * x[i];
        mean_y += count[i] * y[i];
        total += count[i];
    }
    mean_x /= total;
    mean_y /= total;
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) {
        double dx = x[i] - mean_x, dy = y[i] - mean_y;
        xx += count[i] * dx * dx;
        yy += count[i] * dy * dy;
        xy += count[i] * dx * dy;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : GSL_NAN;
}

mhf_status mhf_spearman(const double *x, const double *y, int64_t n, double *rho)
{
    side sx = {0}, sy = {0};
    double *rank = NULL;
    int32_t *count = NULL;
    *rho = GSL_NAN;
    mhf_status status = n < 0 ? mhf_fail(MHF_E_INTERNAL, "a negative number of pairs") : MHF_OK;
    if (n < 2)
        return status;
    if ((status = side_new(x, n, &sx)) != MHF_OK || (status = side_new(y, n, &sy)) != MHF_OK)
        goto out;
    if ((status = mhf_new(&rank, 2 * n, sizeof *rank, "ranks")) != MHF_OK ||
        (status = mhf_new(&count, n, sizeof *count, "counts")) != MHF_OK)
        goto out;
    for (int64_t i = 0; i < n; i++)
        count[i] = 1;
    average_ranks(&sx, count, n, rank);
    average_ranks(&sy, count, n, rank + n);
    *rho = mhf_pearson(rank, rank + n, n);
out:
    side_free(&sx);
    side_free(&sy);
    free(rank);
    free(count);
    return status;
}

/* The 2.5 % and 97.5 % quantiles of the finite values of r [draws], which is sorted. */
static void interval_of(double *r, int64_t draws, double interval[2])
{
    size_t n = 0;
    for (int64_t i = 0; i < draws; i++)
        if (isfinite(r[i]))
            r[n++] = r[i];
    interval[0] = interval[1] = GSL_NAN;
    if (n == 0)
        return;
    gsl_sort(r, 1, n);
    interval[0] = gsl_stats_quantile_from_sorted_data(r, 1, n, 0.025);
    interval[1] = gsl_stats_quantile_from_sorted_data(r, 1, n, 0.975);
}

/* Scratch of one thread. */
typedef struct scratch {
    int32_t *count;
    double *rank; /* [2, n] */
} scratch;

/* Resample `draw`: n pairs with replacement, then both correlations. */
static void one_draw(const side *x, const side *y, int64_t n, mhf_rng rng, int64_t draw,
                     const scratch *s, double *pearson, double *spearman)
{
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    for (int64_t i = 0; i < n; i++) {
        int64_t place = (int64_t)(mhf_rng_uniform(rng, (uint64_t)(draw * n + i)) * (double)n);
        s->count[place]++;
    }
    average_ranks(x, s->count, n, s->rank);
    average_ranks(y, s->count, n, s->rank + n);
    *pearson = counted_pearson(x->value, y->value, s->count, n);
    *spearman = counted_pearson(s->rank, s->rank + n, s->count, n);
}

mhf_status mhf_bootstrap(const double *x, const double *y, int64_t n, int64_t draws, uint64_t seed,
                         double pearson[2], double spearman[2])
{
    side sx = {0}, sy = {0};
    double *r = NULL;
    int64_t products;
    bool no_memory = false;
    mhf_rng rng = mhf_rng_named(seed, "bootstrap");
    pearson[0] = pearson[1] = spearman[0] = spearman[1] = GSL_NAN;
    if (n < 2 || draws < 1)
        return MHF_OK;
    if (!mhf_mul(n, draws, &products))
        return mhf_fail(MHF_E_USAGE, "too many bootstrap draws for so many pairs");
    mhf_status status = side_new(x, n, &sx);
    if (status == MHF_OK)
        status = side_new(y, n, &sy);
    if (status == MHF_OK)
        status = mhf_new(&r, 2 * draws, sizeof *r, "bootstrap draws");
    if (status != MHF_OK)
        goto out;
#pragma omp parallel
    {
        scratch s = {malloc((size_t)n * sizeof *s.count), malloc(2 * (size_t)n * sizeof *s.rank)};
        bool bad = !s.count || !s.rank;
#pragma omp for
        for (int64_t draw = 0; draw < draws; draw++)
            if (!bad)
                one_draw(&sx, &sy, n, rng, draw, &s, &r[draw], &r[draws + draw]);
        if (bad)
#pragma omp atomic write
            no_memory = true;
        free(s.count);
        free(s.rank);
    }
    if (no_memory) {
        status = mhf_fail(MHF_E_NOMEM, "no memory for bootstrap draws");
        goto out;
    }
    interval_of(r, draws, pearson);
    interval_of(r + draws, draws, spearman);
out:
    side_free(&sx);
    side_free(&sy);
    free(r);
    return status;
}
