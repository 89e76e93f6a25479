/* SPDX-License-Identifier: ISC */
/* A study as tables: for the screen, and tab-separated at full precision. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "mhf/study.h"

static int64_t count_covered(const mhf_study_result *result)
{
    int64_t n = 0;
    for (int64_t p = 0; p < result->pairs; p++)
        n += result->covered[p];
    return n;
}

static bool is_multiword(const mhf_study_result *result, int64_t p)
{
    return strchr(result->word1[p], ' ') || strchr(result->word2[p], ' ');
}

static int64_t count_multiword(const mhf_study_result *result)
{
    int64_t n = 0;
    for (int64_t p = 0; p < result->pairs; p++)
        n += is_multiword(result, p);
    return n;
}

mhf_status mhf_study_table(const mhf_study_result *result, mhf_buf *out)
{
    size_t width = strlen("layer");
    for (int32_t i = 0; i < result->layers; i++)
        if (strlen(result->layer_names[i]) > width)
            width = strlen(result->layer_names[i]);
    MHF_TRY(mhf_buf_printf(out,
                           "%" PRId64 " of %" PRId64 " pairs covered, %" PRId64
                           " with several words; %" PRId64 " bootstrap draws, 95 %% intervals\n",
                           count_covered(result), result->pairs, count_multiword(result),
                           result->draws));
    MHF_TRY(mhf_buf_printf(out, "%-*s  %7s  %-17s  %8s  %s\n", (int)width, "layer", "pearson",
                           "interval", "spearman", "interval"));
    for (int32_t i = 0; i < result->layers; i++) {
        const double *interval = &result->interval[4 * i];
        MHF_TRY(mhf_buf_printf(out, "%-*s  %7.3f  [%6.3f, %6.3f]   %8.3f  [%6.3f, %6.3f]\n",
                               (int)width, result->layer_names[i], result->pearson[i], interval[0],
                               interval[1], result->spearman[i], interval[2], interval[3]));
    }
    return MHF_OK;
}

/* A tab and a number; an absent one is "nan" on every machine. */
static mhf_status add_real(mhf_buf *out, double value)
{
    return isfinite(value) ? mhf_buf_printf(out, "\t%.17g", value) : mhf_buf_add_text(out, "\tnan");
}

mhf_status mhf_study_tsv(const mhf_study_result *result, mhf_buf *out)
{
    MHF_TRY(mhf_buf_add_text(out,
                             "layer\tpearson\tpearson_low\tpearson_high\tspearman\tspearman_low\t"
                             "spearman_high\tcovered\tpairs\n"));
    for (int32_t i = 0; i < result->layers; i++) {
        const double *interval = &result->interval[4 * i];
        MHF_TRY(mhf_buf_add_text(out, result->layer_names[i]));
        MHF_TRY(add_real(out, result->pearson[i]));
        MHF_TRY(add_real(out, interval[0]));
        MHF_TRY(add_real(out, interval[1]));
        MHF_TRY(add_real(out, result->spearman[i]));
        MHF_TRY(add_real(out, interval[2]));
        MHF_TRY(add_real(out, interval[3]));
        MHF_TRY(mhf_buf_printf(out, "\t%" PRId64 "\t%" PRId64 "\n", count_covered(result),
                               result->pairs));
    }
    return MHF_OK;
}

mhf_status mhf_study_similarities_tsv(const mhf_study_result *result, mhf_buf *out)
{
    MHF_TRY(mhf_buf_add_text(out, "word1\tword2\thuman\tcovered\tmultiword\tpieces1\tpieces2"));
    if (result->rarest1)
        MHF_TRY(mhf_buf_add_text(out, "\trarest1\trarest2"));
    for (int32_t i = 0; i < result->layers; i++)
        MHF_TRY(mhf_buf_printf(out, "\t%s", result->layer_names[i]));
    MHF_TRY(mhf_buf_add_text(out, "\n"));
    for (int64_t p = 0; p < result->pairs; p++) {
        MHF_TRY(mhf_buf_printf(out, "%s\t%s", result->word1[p], result->word2[p]));
        MHF_TRY(add_real(out, result->human[p]));
        MHF_TRY(mhf_buf_printf(out, "\t%d\t%d\t%d\t%d", result->covered[p], is_multiword(result, p),
                               result->pieces1[p], result->pieces2[p]));
        if (result->rarest1)
            MHF_TRY(mhf_buf_printf(out, "\t%" PRId64 "\t%" PRId64, result->rarest1[p],
                                   result->rarest2[p]));
        for (int32_t i = 0; i < result->layers; i++)
            MHF_TRY(add_real(out, result->similarity[i * result->pairs + p]));
        MHF_TRY(mhf_buf_add_text(out, "\n"));
    }
    return MHF_OK;
}
