/* SPDX-License-Identifier: ISC */
/* Reading a checkpoint that nobody vouches for: everything is checked against the model that its
 * own configuration tells. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "shape.h"
#include "source.h"

/* ---- attributes and texts -------------------------------------------------------------------- */

static mhf_status read_attributes(mhf_source *source)
{
    const mhf_h5 *file = &source->file;
    mhf_source_info *info = &source->info;
    int64_t shards, threads;
    MHF_TRY(mhf_h5_get_int(file, "/", "step", 0, INT64_MAX, &info->step));
    MHF_TRY(mhf_h5_get_int(file, "/", "tokens_seen", 0, INT64_MAX, &info->tokens_seen));
    MHF_TRY(mhf_h5_get_int(file, "/", "blocks_seen", 0, INT64_MAX, &info->blocks_seen));
    MHF_TRY(mhf_h5_get_uint(file, "/", "seed", &info->seed));
    MHF_TRY(mhf_h5_get_uint(file, "/", "data_fingerprint", &info->data_fingerprint));
    MHF_TRY(mhf_h5_get_int(file, "/", "reduction_shards", 0, INT32_MAX, &shards));
    MHF_TRY(mhf_h5_get_int(file, "/", "threads", 0, INT32_MAX, &threads));
    info->reduction_shards = (int32_t)shards;
    info->threads = (int32_t)threads;
    MHF_TRY(mhf_h5_get_text(file, "/", "engine", &source->engine));
    MHF_TRY(mhf_h5_get_text(file, "/", "program_build", &source->build));
    if (mhf_h5_exists(file, "/run"))
        MHF_TRY(mhf_h5_get_bytes(file, "/run", &source->run));
    return MHF_OK;
}

static mhf_status read_config(mhf_source *source)
{
    mhf_buf json = {0}, name = {0};
    mhf_status status = mhf_h5_get_bytes(&source->file, "/config", &json);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s: /config", source->file.path.data);
    if (status == MHF_OK)
        status = mhf_config_from_json(json.data, json.n, name.data, &source->config);
    mhf_buf_free(&json);
    mhf_buf_free(&name);
    return status;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static mhf_status check_shape(const mhf_h5_data *data, const mhf_param *param)
{
    char found[MHF_SHAPE_TEXT], wanted[MHF_SHAPE_TEXT];
    if (mhf_shape_is(param, data->shape.n, data->shape.dims))
        return MHF_OK;
    mhf_shape_text(data->shape.n, data->shape.dims, found);
    mhf_shape_text(param->n_dims, param->shape, wanted);
    return mhf_fail(MHF_E_DATA, "%s: %s has shape %s, expected %s", data->file->path.data,
                    data->path.data, found, wanted);
}

static mhf_status open_tensor(const mhf_source *source, mhf_tensor_kind kind,
                              const mhf_param *param, mhf_h5_data *data)
{
    mhf_buf path = {0};
    *data = (mhf_h5_data){.id = -1};
    mhf_status status = mhf_buf_printf(&path, "%s/%s", mhf_tensor_group(kind), param->name);
    if (status == MHF_OK)
        status = mhf_h5_data_open(&source->file, path.data, MHF_H5_F32, param->n_dims, data);
    if (status == MHF_OK)
        status = check_shape(data, param);
    mhf_buf_free(&path);
    return status;
}

static mhf_status check_tensors(const mhf_source *source, mhf_tensor_kind kind,
                                const mhf_h5_names *names)
{
    mhf_status status = MHF_OK;
    for (int64_t i = 0; status == MHF_OK && i < names->n; i++) {
        int32_t p = mhf_registry_find(&source->registry, names->names[i]);
        mhf_h5_data data = {.id = -1};
        if (p < 0)
            status = mhf_fail(MHF_E_DATA, "%s: %s/%.100s is no parameter of its model",
                              source->file.path.data, mhf_tensor_group(kind), names->names[i]);
        else
            status = open_tensor(source, kind, &source->registry.params[p], &data);
        mhf_h5_data_close(&data);
    }
    return status;
}

/* The names are those that are there, so a claim of many layers costs nothing. */
static mhf_status check_parameters(mhf_source *source)
{
    mhf_h5_names names = {0};
    const char *file = source->file.path.data;
    mhf_status status = mhf_h5_list(&source->file, "/parameters", &names);
    if (status == MHF_OK && names.n < source->config.num_hidden_layers)
        status =
            mhf_fail(MHF_E_DATA, "%s: %lld parameters, too few for the %d layers of its /config",
                     file, (long long)names.n, source->config.num_hidden_layers);
    if (status == MHF_OK)
        status = mhf_registry_new(&source->config, &source->registry);
    if (status == MHF_OK && names.n > source->registry.n)
        status = mhf_fail(MHF_E_DATA, "%s: %lld parameters, expected %d", file, (long long)names.n,
                          source->registry.n);
    if (status == MHF_OK)
        status = check_tensors(source, MHF_PARAMETER, &names);
    if (status == MHF_OK && names.n < source->registry.n)
        status = mhf_fail(MHF_E_DATA, "%s: only %lld of %d parameters are in it", file,
                          (long long)names.n, source->registry.n);
    mhf_h5_names_free(&names);
    return status;
}

static mhf_status check_moments(mhf_source *source)
{
    mhf_h5_names m = {0}, v = {0};
    source->info.has_optimizer = mhf_h5_exists(&source->file, "/optimizer");
    if (!source->info.has_optimizer)
        return MHF_OK;
    mhf_status status = mhf_h5_list(&source->file, mhf_tensor_group(MHF_EXP_AVG), &m);
    if (status == MHF_OK)
        status = mhf_h5_list(&source->file, mhf_tensor_group(MHF_EXP_AVG_SQ), &v);
    if (status == MHF_OK)
        status = check_tensors(source, MHF_EXP_AVG, &m);
    if (status == MHF_OK)
        status = check_tensors(source, MHF_EXP_AVG_SQ, &v);
    if (status == MHF_OK && m.n != v.n)
        status = mhf_fail(MHF_E_DATA, "%s: %lld first moments and %lld second ones",
                          source->file.path.data, (long long)m.n, (long long)v.n);
    mhf_h5_names_free(&m);
    mhf_h5_names_free(&v);
    return status;
}

mhf_status mhf_checkpoint_open(const char *path, mhf_source *source)
{
    source->info.is_checkpoint = true;
    MHF_TRY(mhf_h5_open(path, mhf_checkpoint_format, &source->file));
    MHF_TRY(read_attributes(source));
    MHF_TRY(read_config(source));
    MHF_TRY(check_parameters(source));
    MHF_TRY(check_moments(source));
    return mhf_buf_add_text(&source->path, path);
}

mhf_status mhf_checkpoint_read(mhf_source *source, mhf_tensor_kind kind, const mhf_param *param,
                               int64_t first, int64_t count, float *out)
{
    mhf_buf path = {0};
    mhf_status status = mhf_buf_printf(&path, "%s/%s", mhf_tensor_group(kind), param->name);
    bool held = status == MHF_OK && source->opened.path.data &&
                strcmp(source->opened.path.data, path.data) == 0;
    mhf_buf_free(&path);
    MHF_TRY(status);
    if (!held) {
        mhf_h5_data_close(&source->opened);
        status = open_tensor(source, kind, param, &source->opened);
    }
    if (status == MHF_OK)
        status = check_shape(&source->opened, param);
    if (status != MHF_OK) {
        mhf_h5_data_close(&source->opened);
        return status;
    }
    return mhf_h5_data_read(&source->opened, first, count, out);
}

/* ---- kept files ----------------------------------------------------------------------------- */

static const char tokenizer_path[] = "/files/tokenizer.json";
static const char config_path[] = "/files/tokenizer_config.json";

static mhf_status read_special(const mhf_h5 *file, const char *name, mhf_buf *text,
                               const char **out)
{
    *out = NULL;
    if (!mhf_h5_has_attribute(file, tokenizer_path, name))
        return MHF_OK;
    MHF_TRY(mhf_h5_get_text(file, tokenizer_path, name, text));
    *out = text->data;
    return MHF_OK;
}

mhf_status mhf_checkpoint_tokenizer(const mhf_source *source, mhf_tokenizer **out)
{
    const mhf_h5 *file = &source->file;
    mhf_buf json = {0}, config = {0}, bos = {0}, eos = {0}, pad = {0}, name = {0};
    mhf_special_names special = {0};
    mhf_status status = mhf_h5_get_bytes(file, tokenizer_path, &json);
    if (status == MHF_OK && mhf_h5_exists(file, config_path))
        status = mhf_h5_get_bytes(file, config_path, &config);
    if (status == MHF_OK)
        status = read_special(file, "bos", &bos, &special.bos);
    if (status == MHF_OK)
        status = read_special(file, "eos", &eos, &special.eos);
    if (status == MHF_OK)
        status = read_special(file, "pad", &pad, &special.pad);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s: %s", file->path.data, tokenizer_path);
    if (status == MHF_OK)
        status =
            mhf_tokenizer_parse(json.data, json.n, config.data, config.n, name.data, &special, out);
    mhf_buf *const texts[] = {&json, &config, &bos, &eos, &pad, &name};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        mhf_buf_free(texts[i]);
    return status;
}

mhf_status mhf_checkpoint_carried(const mhf_source *source, mhf_carried *out)
{
    mhf_h5_names names = {0};
    mhf_buf path = {0}, text = {0};
    if (!mhf_h5_exists(&source->file, "/files"))
        return MHF_OK;
    mhf_status status = mhf_h5_list(&source->file, "/files", &names);
    for (int64_t i = 0; status == MHF_OK && i < names.n; i++) {
        status = mhf_kept_path(names.names[i], &path);
        if (status != MHF_OK || strcmp(path.data, tokenizer_path) == 0 ||
            strcmp(path.data, config_path) == 0)
            continue;
        status = mhf_h5_get_bytes(&source->file, path.data, &text);
        if (status == MHF_OK)
            status = mhf_carried_add(out, names.names[i], &text);
    }
    mhf_buf_free(&path);
    mhf_buf_free(&text);
    mhf_h5_names_free(&names);
    return status;
}
