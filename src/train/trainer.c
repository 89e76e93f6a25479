/* SPDX-License-Identifier: ISC */
/* Setting up a run on one rank: data, stage, weights, folder. */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

/* A store must be of the model's tokenizer, and hold a block. */
static mhf_status check_store(const trainer *t, const char *file, const mhf_tokens_info *info)
{
    const mhf_run_config *c = t->config;
    const mhf_tokenizer *tokenizer = t->inputs->tokenizer;
    if (tokenizer && *info->tokenizer_sha256 &&
        !mhf_tokenizer_is(tokenizer, info->tokenizer_sha256))
        return mhf_fail(MHF_E_MISMATCH, "%s: made with another tokenizer than %s", file,
                        c->tokenizer ? c->tokenizer : "the model's");
    if (info->vocab_size > c->model.vocab_size)
        return mhf_fail(MHF_E_MISMATCH, "%s: has %lld tokens in its vocabulary, the model %d", file,
                        (long long)info->vocab_size, c->model.vocab_size);
    if (info->n < c->block)
        return mhf_fail(MHF_E_DATA, "%s: holds %lld tokens, expected a block of %lld at least",
                        file, (long long)info->n, (long long)c->block);
    return MHF_OK;
}

static mhf_status open_data(trainer *t)
{
    const mhf_run_config *c = t->config;
    const int32_t V = c->model.vocab_size;
    MHF_TRY(mhf_cursor_new(c->train_files, c->n_train_files, c->block, c->seed, &t->cursor));
    for (int32_t i = 0; i < c->n_train_files; i++)
        MHF_TRY(check_store(t, c->train_files[i].file, mhf_cursor_store_info(t->cursor, i)));
    MHF_TRY(mhf_new(&t->token_bytes, V, sizeof *t->token_bytes, "token lengths"));
    for (int32_t id = 0; t->inputs->tokenizer && id < mhf_tokenizer_size(t->inputs->tokenizer);
         id++)
        t->token_bytes[id] = mhf_tokenizer_bytes(t->inputs->tokenizer, id);
    t->share = share_of(c->batch, c->micro_batch, t->grid.replicas, t->grid.replica);
    MHF_TRY(feed_new(t->share.n, c->micro_batch, c->block, c->model.mask_documents, &t->feed));
    if (!c->holdout || c->evaluate_every == 0)
        return MHF_OK;
    MHF_TRY(mhf_tokens_open(c->holdout, &t->holdout));
    MHF_TRY(check_store(t, c->holdout, mhf_tokens_info_of(t->holdout)));
    const int64_t blocks = mhf_tokens_info_of(t->holdout)->n / c->block;
    t->holdout_share = share_of(blocks, c->micro_batch, t->grid.replicas, t->grid.replica);
    return feed_new(t->holdout_share.n, c->micro_batch, c->block, false, &t->holdout_feed);
}

static mhf_status build_stage(trainer *t)
{
    const mhf_run_config *c = t->config;
    mhf_units *units;
    MHF_TRY(mhf_registry_new(&c->model, &t->registry));
    MHF_TRY(mhf_registry_train_only(&t->registry, &c->model, c->trainable, c->n_trainable));
    MHF_TRY(mhf_new(&units, t->grid.stages, sizeof *units, "stages"));
    mhf_status status = mhf_stages_balance(&c->model, c->block, t->grid.stages, c->layers, units);
    if (status == MHF_OK)
        status = mhf_params_new(&t->registry, &c->model, units[t->grid.stage], true, &t->params);
    free(units);
    if (status != MHF_OK)
        return status;
    MHF_TRY(mhf_optimizer_new(&t->grid, &t->params, &t->optimizer));
    const mhf_stage_options options = {
        .objective = c->objective,
        .max_tokens = c->micro_batch * c->block,
        .max_length = c->block,
        .slots = mhf_pipeline_slots(t->grid.stages, t->grid.stage, t->share.n),
        .recompute = c->recompute};
    return mhf_stage_new(&c->model, &t->params, &t->inputs->table, &options, &t->stage);
}

static mhf_status load_weights(trainer *t, mhf_source *source, bool moments)
{
    for (int32_t i = 0; i < t->registry.n; i++)
        if (t->params.value[i])
            MHF_TRY(mhf_source_read(source, MHF_PARAMETER, &t->registry.params[i], 0,
                                    t->registry.params[i].count, t->params.value[i]));
    for (int32_t s = 0; moments && s < t->optimizer.n_shards; s++) {
        const mhf_shard *shard = &t->optimizer.shards[s];
        const mhf_param *p = &t->registry.params[shard->param];
        MHF_TRY(mhf_source_read(source, MHF_EXP_AVG, p, shard->first, shard->count,
                                t->optimizer.m + shard->offset));
        MHF_TRY(mhf_source_read(source, MHF_EXP_AVG_SQ, p, shard->first, shard->count,
                                t->optimizer.v + shard->offset));
    }
    return MHF_OK;
}

static mhf_status start_weights(trainer *t, mhf_source *resumed)
{
    if (!resumed && !t->inputs->init)
        mhf_params_initialise(&t->params, &t->config->model, t->config->seed);
    if (!resumed)
        return t->inputs->init ? load_weights(t, t->inputs->init, false) : MHF_OK;
    const mhf_source_info *info = mhf_source_info_of(resumed);
    if (!info->has_optimizer)
        return mhf_fail(MHF_E_MISMATCH, "%s: holds no optimizer state to go on from", info->path);
    if (info->data_fingerprint != mhf_cursor_fingerprint(t->cursor))
        return mhf_fail(MHF_E_MISMATCH,
                        "%s: the run was trained on other tokens than data.train now holds",
                        info->path);
    t->step = t->optimizer.step = info->step;
    return load_weights(t, resumed, true);
}

mhf_status trainer_set_up(trainer *t, mhf_source *resumed)
{
    if (!t->config->run)
        return mhf_fail(MHF_E_CONFIG, "run is not given: the folder for checkpoints and metrics");
    if (t->config->reduction_shards > 0 && t->config->reduction_shards != t->grid.replicas)
        return mhf_fail(MHF_E_CONFIG,
                        "parallel.reduction_shards is %d, which this build does not have: expected "
                        "auto, or the number of replicas %d",
                        t->config->reduction_shards, t->grid.replicas);
    MHF_TRY(open_data(t));
    MHF_TRY(build_stage(t));
    MHF_TRY(start_weights(t, resumed));
    if (t->root)
        MHF_TRY(run_folder_open(t->config->run, t->config, t->step, &t->folder));
    return watchdog_start(t->options->stall_seconds,
                          t->grid.stage + t->grid.stages * t->grid.replica, &t->dog);
}

void trainer_tear_down(trainer *t)
{
    watchdog_stop(t->dog);
    run_folder_close(&t->folder);
    feed_free(&t->feed);
    feed_free(&t->holdout_feed);
    mhf_tokens_close(t->holdout);
    mhf_cursor_free(t->cursor);
    mhf_stage_free(t->stage);
    mhf_optimizer_free(&t->optimizer);
    mhf_params_free(&t->params);
    mhf_registry_free(&t->registry);
    free(t->token_bytes);
    mhf_grid_free(&t->grid);
}
