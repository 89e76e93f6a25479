/* SPDX-License-Identifier: ISC */
/* Writing a checkpoint. Rank 0 lays the file out: every dataset with its room, and all that is
 * small. Then all ranks open it together and each writes the pieces that it owns, whole MiB, so
 * that each piece has one checksum by whoever knew the bytes. The layout comes before any rank's
 * share, so nothing in the file depends on the grid.
 */
#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mhf/tensor.h"
#include "signatures.h"

const char mhf_checkpoint_format[] = "mhf-checkpoint";

const char *mhf_tensor_group(mhf_tensor_kind kind)
{
    static const char *const groups[] = {"/parameters", "/optimizer/exp_avg",
                                         "/optimizer/exp_avg_sq"};
    return groups[kind];
}

mhf_h5_shape mhf_param_shape(const mhf_param *param)
{
    return (mhf_h5_shape){param->n_dims, {param->shape[0], param->shape[1], 0}};
}

mhf_status mhf_kept_path(const char *name, mhf_buf *out)
{
    mhf_buf_clear(out);
    return mhf_buf_printf(out, "/files/%s", name);
}

mhf_status mhf_check_finite(mhf_status status, const char *path, const char *group,
                            const mhf_param *param, int64_t first, int64_t count,
                            const float *values)
{
    int64_t i = mhf_find_nonfinite(values, count);
    if (i < 0)
        return MHF_OK;
    return mhf_fail(status, "%s: %s/%s: element %lld is %g", path, group, param->name,
                    (long long)(first + i), (double)values[i]);
}

/* ---- laying out ----------------------------------------------------------------------------- */

static mhf_status reserve(mhf_h5 *file, mhf_tensor_kind kind, const mhf_param *param)
{
    mhf_buf path = {0};
    mhf_h5_shape shape = mhf_param_shape(param);
    mhf_status status = mhf_buf_printf(&path, "%s/%s", mhf_tensor_group(kind), param->name);
    if (status == MHF_OK)
        status = mhf_h5_reserve(file, path.data, MHF_H5_F32, &shape, 0);
    mhf_buf_free(&path);
    return status;
}

static mhf_status put_kept(mhf_h5 *file, const char *name, const char *bytes, size_t n)
{
    mhf_buf path = {0};
    mhf_status status = mhf_kept_path(name, &path);
    if (status == MHF_OK)
        status = mhf_h5_put_bytes(file, path.data, bytes, n);
    mhf_buf_free(&path);
    return status;
}

/* The special tokens may have been named on a command line: keep what they are called. */
static mhf_status put_special(mhf_h5 *file, const mhf_tokenizer *tokenizer, const char *name,
                              mhf_token id)
{
    size_t n;
    const char *piece = id < 0 ? NULL : mhf_tokenizer_piece(tokenizer, id, &n);
    if (!piece)
        return MHF_OK;
    mhf_buf text = {0};
    mhf_status status = mhf_buf_add(&text, piece, n);
    if (status == MHF_OK)
        status = mhf_h5_put_text(file, "/files/tokenizer.json", name, text.data);
    mhf_buf_free(&text);
    return status;
}

static mhf_status put_tokenizer(mhf_h5 *file, const mhf_tokenizer *tokenizer)
{
    size_t n;
    const char *json = mhf_tokenizer_json(tokenizer, &n);
    MHF_TRY(put_kept(file, "tokenizer.json", json, n));
    MHF_TRY(put_special(file, tokenizer, "bos", mhf_tokenizer_bos(tokenizer)));
    MHF_TRY(put_special(file, tokenizer, "eos", mhf_tokenizer_eos(tokenizer)));
    MHF_TRY(put_special(file, tokenizer, "pad", mhf_tokenizer_pad(tokenizer)));
    const char *config = mhf_tokenizer_config_json(tokenizer, &n);
    return config ? put_kept(file, "tokenizer_config.json", config, n) : MHF_OK;
}

static mhf_status put_attributes(mhf_h5 *file, const mhf_checkpoint_meta *meta)
{
    MHF_TRY(mhf_h5_put_int(file, "/", "step", meta->step));
    MHF_TRY(mhf_h5_put_int(file, "/", "tokens_seen", meta->tokens_seen));
    MHF_TRY(mhf_h5_put_int(file, "/", "blocks_seen", meta->blocks_seen));
    MHF_TRY(mhf_h5_put_uint(file, "/", "seed", meta->seed));
    MHF_TRY(mhf_h5_put_uint(file, "/", "data_fingerprint", meta->data_fingerprint));
    MHF_TRY(mhf_h5_put_int(file, "/", "reduction_shards", meta->reduction_shards));
    MHF_TRY(mhf_h5_put_int(file, "/", "threads", meta->threads));
    MHF_TRY(mhf_h5_put_text(file, "/", "engine", meta->engine ? meta->engine : ""));
    return mhf_h5_put_text(file, "/", "program_build",
                           meta->program_build ? meta->program_build : "");
}

static mhf_status put_texts(mhf_h5 *file, const mhf_config *config, const mhf_checkpoint_meta *meta)
{
    mhf_buf json = {0};
    mhf_status status = mhf_config_to_json(config, &json);
    if (status == MHF_OK)
        status = mhf_h5_put_bytes(file, "/config", json.data, json.n);
    mhf_buf_free(&json);
    if (status == MHF_OK && meta->run)
        status = mhf_h5_put_bytes(file, "/run", meta->run, strlen(meta->run));
    if (status == MHF_OK && meta->tokenizer)
        status = put_tokenizer(file, meta->tokenizer);
    for (int32_t i = 0; status == MHF_OK && meta->carried && i < meta->carried->n; i++)
        status = put_kept(file, meta->carried->names[i], meta->carried->texts[i].data,
                          meta->carried->texts[i].n);
    return status;
}

static mhf_status lay_out(mhf_h5 *file, const mhf_config *config, const mhf_registry *registry,
                          bool moments, const mhf_checkpoint_meta *meta)
{
    MHF_TRY(put_attributes(file, meta));
    MHF_TRY(put_texts(file, config, meta));
    if (meta->table)
        MHF_TRY(mhf_signatures_put(file, meta->table));
    for (int32_t i = 0; i < registry->n; i++) {
        const mhf_param *param = &registry->params[i];
        MHF_TRY(reserve(file, MHF_PARAMETER, param));
        if (moments && param->trainable) {
            MHF_TRY(reserve(file, MHF_EXP_AVG, param));
            MHF_TRY(reserve(file, MHF_EXP_AVG_SQ, param));
        }
    }
    return MHF_OK;
}

/* Take the disk's room now, so that a full disk is told before anything is written. File systems
 * that can't do that are let be. */
static mhf_status take_room(const mhf_h5 *file)
{
    const char *path = file->temporary.data;
    struct stat info;
    mhf_status status = MHF_OK;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return mhf_fail_io(path, "can't open");
    if (fstat(fd, &info) != 0)
        status = mhf_fail_io(path, "can't tell the size");
    else if (info.st_size > 0 && fallocate(fd, 0, 0, info.st_size) != 0 &&
             (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        status = mhf_fail(MHF_E_IO, "%s: no room for its %lld bytes: %s", path,
                          (long long)info.st_size, strerror(errno));
    if (close(fd) != 0 && status == MHF_OK)
        status = mhf_fail_io(path, "can't close");
    return status;
}

/* ---- each rank's pieces --------------------------------------------------------------------- */

static mhf_status put_piece(mhf_h5 *file, mhf_tensor_kind kind, const mhf_param *param,
                            int64_t first, int64_t count, const float *values)
{
    mhf_buf path = {0};
    MHF_TRY(mhf_check_finite(MHF_E_NONFINITE, file->path.data, mhf_tensor_group(kind), param, first,
                             count, values));
    mhf_status status = mhf_buf_printf(&path, "%s/%s", mhf_tensor_group(kind), param->name);
    if (status == MHF_OK)
        status = mhf_h5_write(file, path.data, first, count, values);
    mhf_buf_free(&path);
    return status;
}

/* A parameter that two stages hold is written by the one that owns its unit. */
static bool owned(const mhf_params *params, int32_t i)
{
    int32_t unit = params->registry->params[i].unit;
    return unit >= params->units.first && unit <= params->units.last;
}

static mhf_status put_shards(mhf_h5 *file, const mhf_params *params, const mhf_optimizer *optimizer)
{
    for (int32_t s = 0; s < optimizer->n_shards; s++) {
        const mhf_shard *shard = &optimizer->shards[s];
        const mhf_param *param = &params->registry->params[shard->param];
        if (!owned(params, shard->param))
            continue;
        const int64_t first = shard->first, count = shard->count;
        MHF_TRY(put_piece(file, MHF_PARAMETER, param, first, count,
                          params->value[shard->param] + first));
        MHF_TRY(put_piece(file, MHF_EXP_AVG, param, first, count, optimizer->m + shard->offset));
        MHF_TRY(put_piece(file, MHF_EXP_AVG_SQ, param, first, count, optimizer->v + shard->offset));
    }
    return MHF_OK;
}

/* Whether a parameter has no shards that say who writes it. */
static bool undealt(const mhf_params *params, const mhf_optimizer *optimizer, int32_t i)
{
    return owned(params, i) && !(optimizer && params->registry->params[i].trainable);
}

static int64_t count_units(const mhf_param *param)
{
    return (param->count + MHF_SHARD_UNIT - 1) / MHF_SHARD_UNIT;
}

/* Deal the others out: the stage's MiB in one row, an equal run of it to each replica. */
static mhf_status put_undealt(mhf_h5 *file, const mhf_grid *grid, const mhf_params *params,
                              const mhf_optimizer *optimizer)
{
    const mhf_registry *registry = params->registry;
    int64_t total = 0, at = 0;
    for (int32_t i = 0; i < registry->n; i++)
        total += undealt(params, optimizer, i) ? count_units(&registry->params[i]) : 0;
    int64_t begin = total * grid->replica / grid->replicas;
    int64_t end = total * (grid->replica + 1) / grid->replicas;
    for (int32_t i = 0; i < registry->n; i++) {
        const mhf_param *param = &registry->params[i];
        if (!undealt(params, optimizer, i))
            continue;
        int64_t n = count_units(param);
        int64_t from = begin > at ? begin - at : 0, to = end - at < n ? end - at : n;
        at += n;
        if (from >= to)
            continue;
        int64_t first = from * MHF_SHARD_UNIT, last = to * MHF_SHARD_UNIT;
        last = last < param->count ? last : param->count;
        MHF_TRY(
            put_piece(file, MHF_PARAMETER, param, first, last - first, params->value[i] + first));
    }
    return MHF_OK;
}

/* ---- all ranks ------------------------------------------------------------------------------ */

static mhf_status begin(const char *path, const mhf_config *config, const mhf_params *params,
                        bool moments, const mhf_checkpoint_meta *meta, mhf_h5 *file)
{
    MHF_TRY(mhf_h5_create(path, mhf_checkpoint_format, file));
    mhf_status status = lay_out(file, config, params->registry, moments, meta);
    if (status == MHF_OK)
        status = mhf_h5_close(file);
    return status == MHF_OK ? take_room(file) : status;
}

static mhf_status write_together(const char *path, const mhf_grid *grid, const mhf_params *params,
                                 const mhf_optimizer *optimizer)
{
    mhf_h5 file;
    mhf_status status = mhf_agree(mhf_h5_join(path, grid->world, &file));
    if (status == MHF_OK && optimizer)
        status = put_shards(&file, params, optimizer);
    if (status == MHF_OK)
        status = put_undealt(&file, grid, params, optimizer);
    /* Closing is collective: a rank that failed takes part. */
    mhf_status closed = mhf_h5_close(&file);
    mhf_h5_free(&file);
    return mhf_agree(status != MHF_OK ? status : closed);
}

mhf_status mhf_checkpoint_write(const char *path, const mhf_grid *grid, const mhf_config *config,
                                const mhf_params *params, const mhf_optimizer *optimizer,
                                const mhf_checkpoint_meta *meta)
{
    mhf_h5 file = {0}; /* rank 0's hold on the temporary file */
    int rank;
    MPI_Comm_rank(grid->world, &rank);
    mhf_status status = MHF_OK;
    if (rank == 0)
        status = begin(path, config, params, optimizer != NULL, meta, &file);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = write_together(path, grid, params, optimizer);
    if (status == MHF_OK)
        status = mhf_agree(rank == 0 ? mhf_h5_publish(&file) : MHF_OK);
    mhf_h5_free(&file);
    return status;
}

mhf_status mhf_checkpoint_compose(const char *path, const mhf_config *config,
                                  mhf_tensor_reader read, void *context,
                                  const mhf_checkpoint_meta *meta)
{
    enum { PIECE = 16 * MHF_SHARD_UNIT };
    mhf_h5 file = {0};
    mhf_registry registry = {0};
    float *piece = NULL;
    mhf_status status = mhf_registry_new(config, &registry);
    if (status == MHF_OK)
        status = mhf_new(&piece, PIECE, sizeof *piece, "a piece");
    if (status == MHF_OK)
        status = mhf_h5_create(path, mhf_checkpoint_format, &file);
    if (status != MHF_OK)
        goto out;
    status = lay_out(&file, config, &registry, false, meta);
    for (int32_t i = 0; i < registry.n; i++) {
        const mhf_param *param = &registry.params[i];
        for (int64_t first = 0; status == MHF_OK && first < param->count; first += PIECE) {
            int64_t n = param->count - first < PIECE ? param->count - first : PIECE;
            status = read(context, param, first, n, piece);
            if (status == MHF_OK)
                status = put_piece(&file, MHF_PARAMETER, param, first, n, piece);
        }
    }
    status = mhf_h5_finish(&file, status);
out:
    free(piece);
    mhf_registry_free(&registry);
    return status;
}

static mhf_status read_source(void *context, const mhf_param *param, int64_t first, int64_t count,
                              float *out)
{
    return mhf_source_read(context, MHF_PARAMETER, param, first, count, out);
}

mhf_status mhf_checkpoint_import(mhf_source *source, const char *path,
                                 const mhf_checkpoint_meta *meta)
{
    return mhf_checkpoint_compose(path, mhf_source_config(source), read_source, source, meta);
}
