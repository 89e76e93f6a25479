/* SPDX-License-Identifier: ISC */
/* Correlations and their bootstrap intervals. */
#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/study.h"

/* Rounding can lead a hair out of [-1, 1]; NaN stays. */
static double clamp(double r)
{
    return r > 1 ? 1 : r < -1 ? -1 : r;
}

double mhf_cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa == 0 || bb == 0 ? 0 : clamp(ab / (sqrt(aa) * sqrt(bb)));
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
    return clamp(gsl_stats_correlation(x, 1, y, 1, (size_t)n));
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
 * values, by counting along the presorted order. Returns how many different values stand in it. */
static int64_t average_ranks(const side *s, const int32_t *count, int64_t n, double *rank)
{
    double before = 0;
    int64_t values = 0;
    for (int64_t i = 0; i < n;) {
        double here = 0;
        int64_t end = i;
        do
            here += count[s->order[end++]];
        while (end < n && !s->first[end]);
        for (; i < end; i++)
            rank[s->order[i]] = before + (here + 1) / 2;
        before += here;
        values += here > 0;
    }
    return values;
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
    return xx > 0 && yy > 0 ? clamp(xy / sqrt(xx * yy)) : GSL_NAN;
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
    (void)average_ranks(&sx, count, n, rank);
    (void)average_ranks(&sy, count, n, rank + n);
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

typedef struct bootstrap {
    int64_t n, draws, layers;
    mhf_rng rng;
    side y;
    side *x;          /* [layers] */
    double *pearson;  /* [layers, draws] */
    double *spearman; /* [layers, draws] */
} bootstrap;

static mhf_status bootstrap_new(const double *x, const double *y, bootstrap *b)
{
    int64_t results;
    if (!mhf_mul(b->n, b->draws, &results) || !mhf_mul(b->layers, b->draws, &results))
        return mhf_fail(MHF_E_USAGE, "too many bootstrap draws for so many pairs");
    MHF_TRY(side_new(y, b->n, &b->y));
    MHF_TRY(mhf_new(&b->x, b->layers, sizeof *b->x, "the order of the pairs"));
    for (int64_t l = 0; l < b->layers; l++)
        MHF_TRY(side_new(x + l * b->n, b->n, &b->x[l]));
    MHF_TRY(mhf_new(&b->pearson, results, sizeof *b->pearson, "bootstrap draws"));
    return mhf_new(&b->spearman, results, sizeof *b->spearman, "bootstrap draws");
}

static void bootstrap_free(bootstrap *b)
{
    for (int64_t l = 0; b->x && l < b->layers; l++)
        side_free(&b->x[l]);
    side_free(&b->y);
    free(b->x);
    free(b->pearson);
    free(b->spearman);
}

/* Scratch of one thread. */
typedef struct scratch {
    int32_t *count;          /* [n] how often each pair stands in the resample */
    double *rank_x, *rank_y; /* [n] */
} scratch;

/* Resample `draw`: n pairs with replacement, the same for every layer. */
static void one_draw(const bootstrap *b, int64_t draw, const scratch *s)
{
    int64_t n = b->n;
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    for (int64_t i = 0; i < n; i++) {
        double u = mhf_rng_uniform(b->rng, (uint64_t)(draw * n + i));
        s->count[(int64_t)(u * (double)n)]++;
    }
    bool varies = average_ranks(&b->y, s->count, n, s->rank_y) > 1;
    for (int64_t l = 0; l < b->layers; l++) {
        /* Rounding can give a constant side a tiny spread, hence the exact test. */
        bool both = average_ranks(&b->x[l], s->count, n, s->rank_x) > 1 && varies;
        const double *x = b->x[l].value, *y = b->y.value;
        b->pearson[l * b->draws + draw] = both ? counted_pearson(x, y, s->count, n) : GSL_NAN;
        b->spearman[l * b->draws + draw] =
            both ? counted_pearson(s->rank_x, s->rank_y, s->count, n) : GSL_NAN;
    }
}

/* Each draw is independent of the others, so threads don't show in the result. */
static mhf_status draw_all(const bootstrap *b)
{
    bool no_memory = false;
    size_t n = (size_t)b->n;
#pragma omp parallel
    {
        scratch s = {malloc(n * sizeof *s.count), malloc(n * sizeof *s.rank_x),
                     malloc(n * sizeof *s.rank_y)};
        bool bad = !s.count || !s.rank_x || !s.rank_y;
#pragma omp for
        for (int64_t draw = 0; draw < b->draws; draw++)
            if (!bad)
                one_draw(b, draw, &s);
        if (bad)
#pragma omp atomic write
            no_memory = true;
        free(s.count);
        free(s.rank_x);
        free(s.rank_y);
    }
    return no_memory ? mhf_fail(MHF_E_NOMEM, "no memory for bootstrap draws") : MHF_OK;
}

mhf_status mhf_bootstrap(const double *x, const double *y, int64_t layers, int64_t n, int64_t draws,
                         uint64_t seed, double *interval)
{
    bootstrap b = {
        .n = n, .draws = draws, .layers = layers, .rng = mhf_rng_named(seed, "bootstrap")};
    for (int64_t i = 0; i < 4 * layers; i++)
        interval[i] = GSL_NAN;
    if (n < 2 || draws < 1)
        return MHF_OK;
    mhf_status status = bootstrap_new(x, y, &b);
    if (status == MHF_OK)
        status = draw_all(&b);
    for (int64_t l = 0; status == MHF_OK && l < layers; l++) {
        interval_of(b.pearson + l * draws, draws, interval + 4 * l);
        interval_of(b.spearman + l * draws, draws, interval + 4 * l + 2);
    }
    bootstrap_free(&b);
    return status;
}
