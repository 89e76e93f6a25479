/* SPDX-License-Identifier: ISC */
/* A table in words: is it one-to-one, how full are its buckets, are its coordinates independent? */
#include "mhf/hash.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ids of all tokens that have a signature, one coordinate after another. */
typedef struct columns {
    mhf_bucket *ids;    /* [H, n] in token order */
    mhf_bucket *sorted; /* [H, n] ascending */
    int64_t n;
} columns;

static int compare_ids(const void *a, const void *b)
{
    mhf_bucket x = *(const mhf_bucket *)a, y = *(const mhf_bucket *)b;
    return (x > y) - (x < y);
}

static bool has_signature(const mhf_bucket *row, int64_t H)
{
    for (int64_t j = 0; j < H; j++)
        if (row[j] != 0)
            return true;
    return false;
}

static void columns_free(columns *c)
{
    free(c->ids);
    free(c->sorted);
}

static mhf_status columns_of(const mhf_signatures *table, columns *out)
{
    int64_t H = table->options.num_hashes, size = table->size, n = 0;
    columns c = {0};
    mhf_status status;
    for (int64_t t = 0; t < size; t++)
        c.n += has_signature(table->ids + t * H, H);
    if ((status = mhf_new(&c.ids, H * c.n, sizeof *c.ids, "a report")) ||
        (status = mhf_new(&c.sorted, H * c.n, sizeof *c.sorted, "a report"))) {
        columns_free(&c);
        return status;
    }
    for (int64_t t = 0; t < size; t++) {
        const mhf_bucket *row = table->ids + t * H;
        if (!has_signature(row, H))
            continue;
        for (int64_t j = 0; j < H; j++)
            c.ids[j * c.n + n] = row[j];
        n++;
    }
    memcpy(c.sorted, c.ids, (size_t)(H * c.n) * sizeof *c.ids);
    for (int64_t j = 0; j < H; j++)
        qsort(c.sorted + j * c.n, (size_t)c.n, sizeof *c.sorted, compare_ids);
    *out = c;
    return MHF_OK;
}

/* Length of the run of equal ids at the start of sorted[0..n). */
static int64_t run_length(const mhf_bucket *sorted, int64_t n)
{
    int64_t length = 1;
    while (length < n && sorted[length] == sorted[0])
        length++;
    return length;
}

/* ---- duplicates and capacity --------------------------------------------------------------------
 */

static mhf_status report_size(const mhf_signatures *table, int64_t n, mhf_buf *out)
{
    const mhf_signature_options *o = &table->options;
    double capacity = pow(o->num_buckets - 1, o->num_hashes);
    MHF_TRY(mhf_buf_printf(out, "%d tokens (pad %d), %d rows; H = %d, B = %d, %d LSH, rule %s",
                           table->size, table->pad, table->rows, o->num_hashes, o->num_buckets,
                           o->num_lsh, mhf_signature_rule_name(o->rule)));
    if (o->hash_seed != 0)
        MHF_TRY(mhf_buf_printf(out, ", hash seed %u", o->hash_seed));
    MHF_TRY(mhf_buf_printf(out, "\ncapacity (B-1)^H = %.4g for %lld signatures\n", capacity,
                           (long long)n));
    if (n < table->size - 1)
        MHF_TRY(mhf_buf_printf(out, "%lld tokens besides the pad have the all-zero signature\n",
                               (long long)(table->size - 1 - n)));
    if (table->duplicates == 0)
        return mhf_buf_add_text(out, "one-to-one: no two tokens share a signature\n");
    return mhf_buf_printf(out, "many-to-one: %d duplicates (tokens minus distinct signatures)\n",
                          table->duplicates);
}

/* ---- loads ---------------------------------------------------------------------------------- */

static mhf_status report_loads(const mhf_signatures *table, const columns *c, mhf_buf *out)
{
    int64_t buckets = table->options.num_buckets - 1;
    MHF_TRY(mhf_buf_printf(out, "tokens a bucket, mean %.2f:\n", (double)c->n / (double)buckets));
    MHF_TRY(mhf_buf_add_text(out, "  coordinate        smallest  largest     empty\n"));
    for (int32_t j = 0; j < table->options.num_hashes; j++) {
        const mhf_bucket *sorted = c->sorted + j * c->n;
        int64_t used = 0, smallest = c->n, largest = 0;
        for (int64_t i = 0; i < c->n;) {
            int64_t length = run_length(sorted + i, c->n - i);
            used += sorted[i] != 0; /* bucket 0 is the pad's */
            smallest = length < smallest ? length : smallest;
            largest = length > largest ? length : largest;
            i += length;
        }
        MHF_TRY(mhf_buf_printf(out, "  %10d %-6s  %8lld %8lld  %8lld\n", j,
                               j < table->options.num_lsh ? "LSH" : "murmur",
                               (long long)(used < buckets ? 0 : smallest), (long long)largest,
                               (long long)(buckets - used)));
    }
    return MHF_OK;
}

/* ---- coincidences --------------------------------------------------------------------------- */

static int64_t coincidences(const columns *c, int32_t a, int32_t b)
{
    int64_t found = 0;
    for (int64_t i = 0; i < c->n; i++)
        found += c->ids[a * c->n + i] == c->ids[b * c->n + i];
    return found;
}

/* Σ over buckets of the two loads' product, over n: what independent coordinates of these loads
 * give. LSH fills buckets unevenly, so n/(B-1) would be too low. */
static double expected_from_loads(const columns *c, int32_t a, int32_t b)
{
    const mhf_bucket *x = c->sorted + a * c->n, *y = c->sorted + b * c->n;
    double sum = 0;
    for (int64_t i = 0, k = 0; i < c->n && k < c->n;) {
        int64_t in_x = run_length(x + i, c->n - i), in_y = run_length(y + k, c->n - k);
        if (x[i] == y[k])
            sum += (double)in_x * (double)in_y;
        bool both = x[i] == y[k], only_x = x[i] < y[k];
        i += both || only_x ? in_x : 0;
        k += both || !only_x ? in_y : 0;
    }
    return sum / (double)c->n;
}

/* Central 95 % interval of a Poisson count. */
static void poisson_interval(double mean, int64_t *low, int64_t *high)
{
    double start = floor(mean - 4 * sqrt(mean) - 4);
    int64_t k = start > 0 ? (int64_t)start : 0;
    while (gsl_cdf_poisson_P((unsigned)k, mean) <= 0.025)
        k++;
    *low = k;
    while (gsl_cdf_poisson_P((unsigned)k, mean) < 0.975)
        k++;
    *high = k;
}

/* One line of the table of pairs, and whether the count lies within its interval. */
static mhf_status report_pair(const mhf_signatures *table, const columns *c, int32_t a, int32_t b,
                              bool *within, mhf_buf *out)
{
    const mhf_signature_options *o = &table->options;
    int64_t found = coincidences(c, a, b), low, high;
    double expected = a < o->num_lsh || b < o->num_lsh ? expected_from_loads(c, a, b)
                                                       : (double)c->n / (o->num_buckets - 1);
    poisson_interval(expected, &low, &high);
    *within = low <= found && found <= high;
    return mhf_buf_printf(out, "  %5d %5d  %8lld  %10.2f  %7lld..%lld%s\n", a, b, (long long)found,
                          expected, (long long)low, (long long)high,
                          *within       ? ""
                          : found < low ? ", below"
                                        : ", above");
}

/* Greatest common divisor of m and 2^65 + 1. */
static int64_t shared_factor(int64_t m)
{
    int64_t a = m, b = (int64_t)((((unsigned __int128)1 << 65) + 1) % (unsigned __int128)m);
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static mhf_status report_factor(const mhf_signature_options *o, mhf_buf *out)
{
    int64_t factor = shared_factor(o->num_buckets - 1);
    if (factor == 1 || o->num_hashes - o->num_lsh < 2)
        return MHF_OK;
    MHF_TRY(mhf_buf_printf(out,
                           "B-1 = %d shares the factor %lld with 2^65+1, by which MurmurHash3's "
                           "halves are correlated: "
                           "murmur coordinates coincide ",
                           o->num_buckets - 1, (long long)factor));
    return mhf_buf_add_text(out, factor == 3 ? "a little above chance (at most about 1.12 times)\n"
                                             : "more often than chance; another B avoids it\n");
}

static mhf_status report_coincidences(const mhf_signatures *table, const columns *c, mhf_buf *out)
{
    int64_t pairs = 0, outside = 0;
    MHF_TRY(mhf_buf_add_text(out, "tokens on which two coordinates coincide:\n"
                                  "  coordinates     found    expected  Poisson 95 %\n"));
    for (int32_t a = 0; a < table->options.num_hashes; a++) {
        for (int32_t b = a + 1; b < table->options.num_hashes; b++) {
            bool within;
            MHF_TRY(report_pair(table, c, a, b, &within, out));
            pairs++;
            outside += !within;
        }
    }
    MHF_TRY(report_factor(&table->options, out));
    if (outside == 0)
        return MHF_OK;
    return mhf_buf_printf(out,
                          "warning: %lld of %lld pairs of coordinates lie outside their interval "
                          "(by chance about 1 in 20 does)\n",
                          (long long)outside, (long long)pairs);
}

mhf_status mhf_signatures_report(const mhf_signatures *table, mhf_buf *out)
{
    columns c = {0};
    MHF_TRY(columns_of(table, &c));
    mhf_status status = report_size(table, c.n, out);
    if (status == MHF_OK && c.n > 0)
        status = report_loads(table, &c, out);
    if (status == MHF_OK && c.n > 0 && table->options.num_hashes > 1)
        status = report_coincidences(table, &c, out);
    columns_free(&c);
    return status;
}
