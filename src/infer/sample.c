/* SPDX-License-Identifier: ISC */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "targets.h"

mhf_status mhf_sampler_new(int32_t counted, mhf_sampler *out)
{
    MHF_TRY(mhf_new(&out->order, counted, sizeof *out->order, "candidates"));
    return mhf_new(&out->weight, counted, sizeof *out->weight, "candidates");
}

void mhf_sampler_free(mhf_sampler *sampler)
{
    free(sampler->order);
    free(sampler->weight);
    *sampler = (mhf_sampler){0};
}

/* Likelier first, lower id on ties: the order is one on every machine. */
static int by_likelihood(const void *a, const void *b, void *logp)
{
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    const float *p = logp;
    if (p[i] != p[j])
        return p[i] > p[j] ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* weight[i] of candidate order[i]; returns their sum. */
static double weigh(const mhf_sampler *s, const float *logp, int32_t n, double temperature)
{
    double top = -INFINITY, total = 0;
    for (int32_t i = 0; i < n; i++)
        top = logp[s->order[i]] > top ? (double)logp[s->order[i]] : top;
    for (int32_t i = 0; i < n; i++) {
        s->weight[i] = exp(((double)logp[s->order[i]] - top) / temperature);
        total += s->weight[i];
    }
    return total;
}

mhf_token mhf_sample(const mhf_sampler *sampler, const float *logp,
                     const mhf_generate_options *options, double u)
{
    int32_t n = options->counted;
    if (options->temperature == 0)
        return mhf_arg_max(logp, n);
    for (int32_t i = 0; i < n; i++)
        sampler->order[i] = i;
    if (options->top_k > 0 || options->top_p < 1)
        qsort_r(sampler->order, (size_t)n, sizeof *sampler->order, by_likelihood, (void *)logp);
    if (options->top_k > 0 && options->top_k < n)
        n = options->top_k;
    double total = weigh(sampler, logp, n, options->temperature);
    if (options->top_p < 1) {
        double kept = 0;
        int32_t i = 0;
        while (i < n && kept < options->top_p * total)
            kept += sampler->weight[i++];
        n = i > 0 ? i : 1;
        total = i > 0 ? kept : sampler->weight[0];
    }
    double below = 0;
    for (int32_t i = 0; i < n; i++) {
        below += sampler->weight[i];
        if (u * total < below)
            return sampler->order[i];
    }
    /* Rounding alone can lead here: the last candidate that can be drawn at all. */
    while (n > 1 && sampler->weight[n - 1] == 0)
        n--;
    return sampler->order[n - 1];
}
