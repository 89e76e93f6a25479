/* SPDX-License-Identifier: ISC */
/* The result of a study. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"
#include "mhf/store.h"

static mhf_status put_words(mhf_h5 *file, const char *path, int64_t n, char *const *words)
{
    size_t *lengths = NULL;
    MHF_TRY(mhf_new(&lengths, n, sizeof *lengths, path));
    for (int64_t i = 0; i < n; i++)
        lengths[i] = strlen(words[i]);
    mhf_status status = mhf_h5_put_strings(file, path, n, (const char *const *)words, lengths);
    free(lengths);
    return status;
}

static mhf_status put_pairs(mhf_h5 *file, const mhf_study_result *r)
{
    mhf_h5_shape pairs = {1, {r->pairs}};
    MHF_TRY(put_words(file, "/pairs/word1", r->pairs, r->word1));
    MHF_TRY(put_words(file, "/pairs/word2", r->pairs, r->word2));
    MHF_TRY(mhf_h5_put(file, "/pairs/human", MHF_H5_F64, &pairs, r->human));
    MHF_TRY(mhf_h5_put(file, "/pairs/covered", MHF_H5_U8, &pairs, r->covered));
    const struct {
        const char *path;
        mhf_h5_type type;
        const void *values;
    } more[] = {{"/pairs/pieces1", MHF_H5_I32, r->pieces1},
                {"/pairs/pieces2", MHF_H5_I32, r->pieces2},
                {"/pairs/rarest1", MHF_H5_I64, r->rarest1},
                {"/pairs/rarest2", MHF_H5_I64, r->rarest2}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].values)
            MHF_TRY(mhf_h5_put(file, more[i].path, more[i].type, &pairs, more[i].values));
    return MHF_OK;
}

static mhf_status put_layers(mhf_h5 *file, const mhf_study_result *r)
{
    mhf_h5_shape layers = {1, {r->layers}}, similarity = {2, {r->layers, r->pairs}};
    mhf_h5_shape interval = {3, {r->layers, 2, 2}};
    MHF_TRY(put_words(file, "/layer_names", r->layers, r->layer_names));
    MHF_TRY(mhf_h5_put(file, "/similarity", MHF_H5_F64, &similarity, r->similarity));
    MHF_TRY(mhf_h5_put(file, "/pearson", MHF_H5_F64, &layers, r->pearson));
    MHF_TRY(mhf_h5_put(file, "/spearman", MHF_H5_F64, &layers, r->spearman));
    return mhf_h5_put(file, "/interval", MHF_H5_F64, &interval, r->interval);
}

static mhf_status put_attributes(mhf_h5 *file, const mhf_study_result *r)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"pairs", r->pairs_name},
                 {"model", r->model_name},
                 {"pooling", r->pooling},
                 {"template", r->template_text}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        MHF_TRY(mhf_h5_put_text(file, "/", texts[i].name, texts[i].text ? texts[i].text : ""));
    MHF_TRY(mhf_h5_put_uint(file, "/", "seed", r->seed));
    return mhf_h5_put_int(file, "/", "draws", r->draws);
}

mhf_status mhf_study_write(const char *path, const mhf_study_result *result)
{
    mhf_h5 file;
    MHF_TRY(mhf_h5_create(path, "mhf-study", &file));
    mhf_status status = put_attributes(&file, result);
    if (status == MHF_OK)
        status = put_pairs(&file, result);
    if (status == MHF_OK)
        status = put_layers(&file, result);
    return mhf_h5_finish(&file, status);
}
