/* SPDX-License-Identifier: ISC */
/* Similarities of word pairs at every layer, and their correlation with human scores. */
#include <gsl/gsl_math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/study.h"

mhf_status mhf_study_check(const mhf_study_input *input, const mhf_prompts *prompts,
                           const mhf_study_options *options)
{
    mhf_states *states = input->states;
    const char *pooling = mhf_states_pooling(states);
    if (strcmp(pooling, options->pooling) != 0)
        return mhf_fail(MHF_E_DATA, "%s: states pooled by '%s', expected '%s'", input->path,
                        pooling, options->pooling);
    if (mhf_states_items(states) != prompts->n || mhf_states_rows(states) != prompts->n)
        return mhf_fail(MHF_E_DATA,
                        "%s: %" PRId64 " items and %" PRId64
                        " rows, expected one for each of the %" PRId64 " distinct words",
                        input->path, mhf_states_items(states), mhf_states_rows(states), prompts->n);
    for (int64_t i = 0; i < prompts->n; i++) {
        size_t n;
        const char *text = mhf_states_text(states, i, &n);
        if (n != strlen(prompts->texts[i]) || memcmp(text, prompts->texts[i], n) != 0)
            return mhf_fail(MHF_E_DATA, "%s: item %" PRId64 " is '%.*s', expected '%s'",
                            input->path, i, (int)(n < 200 ? n : 200), text, prompts->texts[i]);
    }
    return MHF_OK;
}

/* ---- coverage ---------------------------------------------------------------------------------
 */

/* A word is covered when it has a token and no unknown one. */
static bool word_is_covered(const mhf_states *states, int64_t word)
{
    int64_t n, unknown = mhf_states_unknown_id(states);
    const uint32_t *ids = mhf_states_pooled(states, word, &n);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == unknown)
            return false;
    return n > 0;
}

static void cover_pairs(const mhf_study_input *inputs, int32_t n_inputs, const mhf_pairs *pairs,
                        uint8_t *covered)
{
    for (int64_t p = 0; p < pairs->n; p++) {
        covered[p] = 1;
        for (int32_t i = 0; i < n_inputs; i++)
            covered[p] &= word_is_covered(inputs[i].states, pairs->index1[p]) &&
                          word_is_covered(inputs[i].states, pairs->index2[p]);
    }
}

/* Number of a word's tokens, and how often the rarest occurs (-1: it has none). */
static void count_pieces(const mhf_states *states, int64_t word, const int64_t *occurrences,
                         int64_t n_occurrences, int32_t *pieces, int64_t *rarest)
{
    int64_t n;
    const uint32_t *ids = mhf_states_pooled(states, word, &n);
    *pieces = (int32_t)n;
    if (!occurrences)
        return;
    *rarest = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = ids[i] < n_occurrences ? occurrences[ids[i]] : 0;
        if (*rarest < 0 || count < *rarest)
            *rarest = count;
    }
}

/* ---- one layer ---------------------------------------------------------------------------------
 */

/* similarity [pairs] of layer `layer`; rows [n_words, d] is scratch. */
static mhf_status fill_similarity(mhf_states *states, int32_t layer, const mhf_pairs *pairs,
                                  const uint8_t *covered, float *rows, double *similarity)
{
    int64_t d = mhf_states_width(states);
    MHF_TRY(mhf_states_read(states, layer, 0, pairs->n_words, rows));
    int64_t bad = -1;
    for (int64_t i = 0; bad < 0 && i < pairs->n_words * d; i++)
        if (!gsl_finite((double)rows[i]))
            bad = i;
    if (bad >= 0)
        return mhf_fail(MHF_E_NONFINITE, "layer %s: the state of '%s' holds NaN or infinity",
                        mhf_states_layer_name(states, layer), pairs->words[bad / d]);
    for (int64_t p = 0; p < pairs->n; p++)
        similarity[p] =
            covered[p] ? mhf_cosine(&rows[pairs->index1[p] * d], &rows[pairs->index2[p] * d], d)
                       : GSL_NAN;
    return MHF_OK;
}

/* Correlations over the covered pairs; x [layers + 1, pairs] scratch, y last. */
static mhf_status correlate(mhf_study_result *result, double *x)
{
    int64_t n = 0, layers = result->layers;
    for (int64_t p = 0; p < result->pairs; p++)
        n += result->covered[p];
    if (n < 3)
        mhf_log(MHF_LOG_WARN, "%lld pairs are covered, too few for a correlation", (long long)n);
    double *y = x + layers * n;
    for (int64_t l = 0; l <= layers; l++) {
        const double *from = l < layers ? &result->similarity[l * result->pairs] : result->human;
        double *to = x + l * n;
        for (int64_t p = 0; p < result->pairs; p++)
            if (result->covered[p])
                *to++ = from[p];
    }
    for (int64_t l = 0; l < layers; l++) {
        result->pearson[l] = mhf_pearson(x + l * n, y, n);
        MHF_TRY(mhf_spearman(x + l * n, y, n, &result->spearman[l]));
    }
    return mhf_bootstrap(x, y, layers, n, result->draws, result->seed, result->interval);
}

static mhf_status study_input(const mhf_study_input *input, const mhf_pairs *pairs, bool several,
                              int32_t first, mhf_study_result *out)
{
    float *rows = NULL;
    int64_t elements;
    if (!mhf_mul(pairs->n_words, mhf_states_width(input->states), &elements))
        return mhf_fail(MHF_E_DATA, "%s: states too wide to read", input->path);
    mhf_status status = mhf_new(&rows, elements, sizeof *rows, "the states of a layer");
    for (int32_t i = 0; status == MHF_OK && i < mhf_states_layers(input->states); i++) {
        int32_t layer = first + i;
        mhf_buf name = {0};
        status = mhf_buf_printf(&name, "%s%s%s", several ? input->label : "", several ? "/" : "",
                                mhf_states_layer_name(input->states, i));
        out->layer_names[layer] = name.data;
        if (status == MHF_OK)
            status = fill_similarity(input->states, i, pairs, out->covered, rows,
                                     &out->similarity[layer * out->pairs]);
    }
    free(rows);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static mhf_status make_result(const mhf_pairs *pairs, bool occurrences, mhf_study_result *out)
{
    int64_t layers = out->layers, n = pairs->n;
    const struct {
        void *pointer;
        int64_t n;
        size_t size;
    } arrays[] = {
        {&out->covered, n, sizeof *out->covered},
        {&out->layer_names, layers, sizeof *out->layer_names},
        {&out->pearson, layers, sizeof *out->pearson},
        {&out->spearman, layers, sizeof *out->spearman},
        {&out->interval, 4 * layers, sizeof *out->interval},
        {&out->pieces1, n, sizeof *out->pieces1},
        {&out->pieces2, n, sizeof *out->pieces2},
        {&out->rarest1, occurrences ? n : 0, sizeof *out->rarest1},
        {&out->rarest2, occurrences ? n : 0, sizeof *out->rarest2},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        MHF_TRY(mhf_new(arrays[i].pointer, arrays[i].n, arrays[i].size, "a study"));
    if (!occurrences) {
        free(out->rarest1);
        free(out->rarest2);
        out->rarest1 = out->rarest2 = NULL;
    }
    int64_t elements;
    if (!mhf_mul(layers, n, &elements))
        return mhf_fail(MHF_E_DATA, "too many layers and pairs");
    return mhf_new(&out->similarity, elements, sizeof *out->similarity, "similarities");
}

mhf_status mhf_study_run(const mhf_study_input *inputs, int32_t n_inputs, const mhf_pairs *pairs,
                         const mhf_study_options *options, const int64_t *occurrences,
                         int64_t n_occurrences, mhf_study_result *out)
{
    double *x = NULL;
    *out = (mhf_study_result){.pairs = pairs->n,
                              .word1 = pairs->word1,
                              .word2 = pairs->word2,
                              .human = pairs->human,
                              .pooling = options->pooling,
                              .template_text = options->template_text,
                              .seed = options->seed,
                              .draws = options->draws};
    for (int32_t i = 0; i < n_inputs; i++)
        out->layers += mhf_states_layers(inputs[i].states);
    mhf_status status = make_result(pairs, occurrences != NULL, out);
    if (status == MHF_OK)
        status = mhf_new(&x, (out->layers + 1) * pairs->n, sizeof *x, "a study");
    if (status != MHF_OK)
        goto out;
    cover_pairs(inputs, n_inputs, pairs, out->covered);
    for (int64_t p = 0; p < pairs->n; p++) {
        count_pieces(inputs[0].states, pairs->index1[p], occurrences, n_occurrences,
                     &out->pieces1[p], occurrences ? &out->rarest1[p] : NULL);
        count_pieces(inputs[0].states, pairs->index2[p], occurrences, n_occurrences,
                     &out->pieces2[p], occurrences ? &out->rarest2[p] : NULL);
    }
    int32_t layer = 0;
    for (int32_t i = 0; status == MHF_OK && i < n_inputs; i++) {
        status = study_input(&inputs[i], pairs, n_inputs > 1, layer, out);
        layer += mhf_states_layers(inputs[i].states);
    }
    if (status == MHF_OK)
        status = correlate(out, x);
out:
    free(x);
    return status;
}

void mhf_study_free(mhf_study_result *result)
{
    for (int32_t i = 0; result->layer_names && i < result->layers; i++)
        free(result->layer_names[i]);
    free(result->layer_names);
    free(result->covered);
    free(result->similarity);
    free(result->pearson);
    free(result->spearman);
    free(result->interval);
    free(result->pieces1);
    free(result->pieces2);
    free(result->rarest1);
    free(result->rarest2);
    *result = (mhf_study_result){0};
}
