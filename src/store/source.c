/* SPDX-License-Identifier: ISC */
/* A model to read, wherever it is: which kind a path is, and what both kinds share. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "signatures.h"

/* ---- opening -------------------------------------------------------------------------------- */

static mhf_status open_as(mhf_status (*open)(const char *, mhf_source *), const char *path,
                          mhf_source **out)
{
    mhf_source *source = NULL;
    MHF_TRY(mhf_new(&source, 1, sizeof *source, "a model to read"));
    source->opened.id = -1;
    mhf_status status = open(path, source);
    if (status != MHF_OK) {
        mhf_source_close(source);
        return status;
    }
    source->info.path = source->path.data;
    source->info.engine = source->engine.data ? source->engine.data : "";
    source->info.program_build = source->build.data ? source->build.data : "";
    source->info.run = source->run.data ? source->run.data : "";
    *out = source;
    return MHF_OK;
}

static mhf_status open_newest(const char *run, mhf_source **out)
{
    int32_t refused;
    MHF_TRY(mhf_run_newest(run, out, &refused));
    if (*out)
        return MHF_OK;
    if (refused == 0)
        return mhf_fail(MHF_E_DATA, "%s: there is no checkpoint in it", run);
    return mhf_fail(MHF_E_DATA, "%s: none of its %d checkpoints is whole", run, refused);
}

mhf_status mhf_source_open(const char *path, mhf_source **out)
{
    mhf_buf name = {0};
    *out = NULL;
    if (!mhf_dir_exists(path))
        return open_as(mhf_checkpoint_open, path, out);
    mhf_status status = mhf_path_join(path, "checkpoints", &name);
    bool run = status == MHF_OK && mhf_dir_exists(name.data);
    mhf_buf_free(&name);
    MHF_TRY(status);
    return run ? open_newest(path, out) : open_as(mhf_folder_open, path, out);
}

void mhf_source_close(mhf_source *source)
{
    if (!source)
        return;
    mhf_h5_data_close(&source->opened);
    mhf_h5_free(&source->file);
    mhf_safetensors_close(source->tensors);
    mhf_registry_free(&source->registry);
    mhf_buf_free(&source->path);
    mhf_buf_free(&source->engine);
    mhf_buf_free(&source->build);
    mhf_buf_free(&source->run);
    free(source);
}

/* ---- what is in it -------------------------------------------------------------------------- */

const mhf_source_info *mhf_source_info_of(const mhf_source *source)
{
    return &source->info;
}

const mhf_config *mhf_source_config(const mhf_source *source)
{
    return &source->config;
}

mhf_status mhf_source_tokenizer(const mhf_source *source, mhf_tokenizer **out)
{
    *out = NULL;
    MHF_TRY(source->info.is_checkpoint ? mhf_checkpoint_tokenizer(source, out)
                                       : mhf_folder_tokenizer(source, out));
    int32_t size = mhf_tokenizer_size(*out);
    if (size <= source->config.vocab_size)
        return MHF_OK;
    mhf_tokenizer_free(*out);
    *out = NULL;
    return mhf_fail(MHF_E_DATA, "%s: its tokenizer has %d tokens, more than the model's %d rows",
                    source->info.path, size, source->config.vocab_size);
}

mhf_status mhf_source_signatures(const mhf_source *source, mhf_signatures *out)
{
    const mhf_config *config = &source->config;
    *out = (mhf_signatures){0};
    if (config->head != MHF_HEAD_MHF)
        return mhf_fail(MHF_E_DATA, "%s: a standard model, which has no signature table",
                        source->info.path);
    MHF_TRY(source->info.is_checkpoint ? mhf_signatures_get(&source->file, out)
                                       : mhf_folder_signatures(source, out));
    const mhf_signature_options *has = &out->options;
    if (out->rows == config->vocab_size && has->num_hashes == config->num_hashes &&
        has->num_buckets == config->num_buckets && has->num_lsh == config->num_lsh)
        return MHF_OK;
    mhf_status status = mhf_fail(
        MHF_E_DATA, "%s: its table has V %d, H %d, B %d, L %d, its configuration %d, %d, %d, %d",
        source->info.path, out->rows, has->num_hashes, has->num_buckets, has->num_lsh,
        config->vocab_size, config->num_hashes, config->num_buckets, config->num_lsh);
    mhf_signatures_free(out);
    return status;
}

mhf_status mhf_source_read(mhf_source *source, mhf_tensor_kind kind, const mhf_param *param,
                           int64_t first, int64_t count, float *out)
{
    if (first < 0 || count < 0 || first > param->count - count)
        return mhf_fail(MHF_E_INTERNAL, "%s: elements %lld … of %s were wanted, it has %lld",
                        source->info.path, (long long)first, param->name, (long long)param->count);
    if (source->info.is_checkpoint)
        MHF_TRY(mhf_checkpoint_read(source, kind, param, first, count, out));
    else if (kind != MHF_PARAMETER)
        return mhf_fail(MHF_E_DATA, "%s: has no optimizer state", source->info.path);
    else
        MHF_TRY(mhf_folder_read(source, param, first, count, out));
    return mhf_check_finite(MHF_E_DATA, source->info.path, mhf_tensor_group(kind), param, first,
                            count, out);
}

mhf_status mhf_source_verify(mhf_source *source)
{
    return source->info.is_checkpoint ? mhf_h5_verify(&source->file) : MHF_OK;
}

/* ---- kept files ----------------------------------------------------------------------------- */

mhf_status mhf_source_carried(const mhf_source *source, mhf_carried *out)
{
    *out = (mhf_carried){0};
    mhf_status status = source->info.is_checkpoint ? mhf_checkpoint_carried(source, out)
                                                   : mhf_folder_carried(source, out);
    if (status != MHF_OK)
        mhf_carried_free(out);
    return status;
}

mhf_status mhf_carried_add(mhf_carried *carried, const char *name, mhf_buf *text)
{
    int64_t names = carried->n, texts = carried->n;
    MHF_TRY(mhf_grow(&carried->names, &names, carried->n + 1, sizeof *carried->names, "files"));
    MHF_TRY(mhf_grow(&carried->texts, &texts, carried->n + 1, sizeof *carried->texts, "files"));
    char *copy = strdup(name);
    if (!copy)
        return mhf_fail(MHF_E_NOMEM, "no memory for a file's name");
    carried->names[carried->n] = copy;
    carried->texts[carried->n] = *text;
    carried->n++;
    *text = (mhf_buf){0};
    return MHF_OK;
}

void mhf_carried_free(mhf_carried *carried)
{
    for (int32_t i = 0; i < carried->n; i++) {
        free(carried->names[i]);
        mhf_buf_free(&carried->texts[i]);
    }
    free(carried->names);
    free(carried->texts);
    *carried = (mhf_carried){0};
}

/* ---- the whole model ------------------------------------------------------------------------ */

static mhf_status read_all(mhf_source *source, const mhf_params *params)
{
    for (int32_t i = 0; i < params->registry->n; i++) {
        const mhf_param *param = &params->registry->params[i];
        MHF_TRY(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, params->value[i]));
    }
    return MHF_OK;
}

mhf_status mhf_model_load(mhf_source *source, mhf_model **model, mhf_tokenizer **tokenizer)
{
    const mhf_config *config = &source->config;
    mhf_registry registry = {0};
    mhf_params params = {0};
    mhf_signatures table = {0};
    *model = NULL;
    if (tokenizer)
        *tokenizer = NULL;
    mhf_status status = mhf_registry_new(config, &registry);
    if (status == MHF_OK)
        status = mhf_params_new(&registry, config, (mhf_units){0, config->num_hidden_layers + 1},
                                false, &params);
    if (status == MHF_OK)
        status = read_all(source, &params);
    if (status == MHF_OK && config->head == MHF_HEAD_MHF)
        status = mhf_source_signatures(source, &table);
    if (status == MHF_OK && tokenizer)
        status = mhf_source_tokenizer(source, tokenizer);
    if (status == MHF_OK && tokenizer && table.ids && table.size != mhf_tokenizer_size(*tokenizer))
        status = mhf_fail(MHF_E_DATA, "%s: its table is for %d tokens, its tokenizer has %d",
                          source->info.path, table.size, mhf_tokenizer_size(*tokenizer));
    if (status == MHF_OK)
        status = mhf_model_new(config, &registry, &params, &table, model);
    mhf_params_free(&params);
    mhf_registry_free(&registry);
    mhf_signatures_free(&table);
    if (status != MHF_OK && tokenizer) {
        mhf_tokenizer_free(*tokenizer);
        *tokenizer = NULL;
    }
    return status;
}
