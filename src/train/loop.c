/* SPDX-License-Identifier: ISC */
/* The training loop: read, run the pipeline, update, report, save, stop. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "feed.h"
#include "finite.h"
#include "mhf/tensor.h"
#include "run_folder.h"
#include "watchdog.h"

/* Set by SIGUSR1 and SIGTERM: a signal's handler can reach nothing else. */
static volatile sig_atomic_t asked_to_stop;

static void ask_to_stop(int signal_number)
{
    (void)signal_number;
    asked_to_stop = 1;
}

typedef struct trainer {
    const mhf_run_config *config;
    const mhf_run_inputs *inputs;
    const mhf_train_options *options;
    mhf_grid grid;
    mhf_registry registry;
    mhf_params params;
    mhf_optimizer optimizer;
    mhf_stage *stage;
    mhf_cursor *cursor;
    mhf_tokens *holdout;
    micro_share share, holdout_share;
    batch_feed feed, holdout_feed;
    int32_t *token_bytes; /* [V] */
    run_folder folder;
    watchdog *dog;
    mhf_progress progress;
    int64_t step;                 /* updates done */
    double started, saved;        /* seconds of the clock */
    double saving;                /* seconds spent on checkpoints since the last line of metrics */
    double flops_per_token, peak; /* peak: FLOP/s of all ranks' GEMM at once */
    bool root;                    /* rank 0 */
} trainer;

/* ---- setting up ----------------------------------------------------------------------------- */

/* A store must be of the model's tokenizer, and hold a block. */
static mhf_status check_store(const trainer *t, const char *file, const mhf_tokens_info *info)
{
    const mhf_run_config *c = t->config;
    const mhf_tokenizer *tokenizer = t->inputs->tokenizer;
    if (tokenizer && *info->tokenizer_sha256 &&
        strcmp(info->tokenizer_sha256, mhf_tokenizer_sha256(tokenizer)) != 0)
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

static mhf_status set_up(trainer *t, mhf_source *resumed)
{
    if (!t->config->run)
        return mhf_fail(MHF_E_CONFIG, "run is not given: the folder for checkpoints and metrics");
    MHF_TRY(open_data(t));
    MHF_TRY(build_stage(t));
    MHF_TRY(start_weights(t, resumed));
    if (t->root)
        MHF_TRY(run_folder_open(t->config->run, t->config, t->step, &t->folder));
    return watchdog_start(t->options->stall_seconds,
                          t->grid.stage + t->grid.stages * t->grid.replica, &t->dog);
}

/* All ranks at once, so that shared memory and caches count as they do in the run. */
static void measure_peak(trainer *t)
{
    double mine = mhf_gemm_rate(MHF_N, MHF_T, 512, 512, 512, 0.05);
    MPI_Allreduce(&mine, &t->peak, 1, MPI_DOUBLE, MPI_SUM, t->grid.world);
    for (int32_t u = 0; u <= t->config->model.num_hidden_layers + 1; u++)
        t->flops_per_token += mhf_unit_flops(&t->config->model, u, t->config->block);
}

static void tear_down(trainer *t)
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

/* ---- losses --------------------------------------------------------------------------------- */

/* Losses of all micro-batches as reported: each coordinate's mean, their sum, bits per byte. */
typedef struct report {
    int32_t n;
    double losses[MHF_MAX_HASHES], loss, bits_per_byte;
} report;

static report join_losses(trainer *t, const batch_feed *feed, micro_share share, double denominator)
{
    mhf_losses total;
    mhf_losses_join(&t->grid, feed->losses, share.first, share.n, share.n_global, &total);
    int64_t bytes = t->grid.stage == 0 ? feed_bytes(feed, share.n, t->token_bytes) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, t->grid.world);
    const mhf_config *c = &t->config->model;
    const bool joint = c->head == MHF_HEAD_STANDARD || t->config->objective == MHF_VOCABULARY;
    report r = {.n = joint ? 1 : c->num_hashes};
    double nats = 0;
    for (int32_t k = 0; k < r.n; k++) {
        r.losses[k] = total.nats[k] / (denominator > 0 ? denominator : (double)total.targets);
        r.loss += r.losses[k];
        nats += total.nats[k];
    }
    r.bits_per_byte = bytes > 0 ? nats / (log(2.0) * (double)bytes) : 0;
    return r;
}

/* JSON has no NaN: a skipped step's numbers may be null. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *report_json(const report *r)
{
    json_t *losses = json_array();
    for (int32_t k = 0; k < r->n; k++)
        json_array_append_new(losses, number(r->losses[k]));
    json_t *o = json_object();
    json_object_set_new(o, "loss", number(r->loss));
    json_object_set_new(o, "losses", losses);
    json_object_set_new(o, "bits_per_byte", number(r->bits_per_byte));
    return o;
}

static mhf_status evaluate(trainer *t, mhf_phase_seconds *seconds, report *out)
{
    const int64_t blocks = mhf_tokens_info_of(t->holdout)->n / t->config->block;
    MHF_TRY(mhf_agree(feed_fill_store(&t->holdout_feed, t->holdout, blocks, t->holdout_share)));
    mhf_pipeline_run(&t->grid, t->stage, &t->config->model, t->holdout_feed.batches,
                     t->holdout_share.n, t->holdout_feed.losses, seconds);
    *out = join_losses(t, &t->holdout_feed, t->holdout_share, 0);
    return MHF_OK;
}

/* ---- saving --------------------------------------------------------------------------------- */

static mhf_status save(trainer *t)
{
    const mhf_run_config *c = t->config;
    const double start = mhf_seconds();
    mhf_buf run = {0}, path = {0};
    watchdog_mark(t->dog, "saving a checkpoint", t->step);
    mhf_status status = mhf_run_config_print(c, false, &run);
    if (status == MHF_OK && t->root)
        status = run_folder_sync(&t->folder);
    if (status == MHF_OK)
        status = run_folder_checkpoint(c->run, t->step, &path);
    status = mhf_agree(status);
    const mhf_checkpoint_meta meta = {.step = t->step,
                                      .tokens_seen = t->step * c->batch * c->block,
                                      .blocks_seen = t->step * c->batch,
                                      .seed = c->seed,
                                      .data_fingerprint = mhf_cursor_fingerprint(t->cursor),
                                      .reduction_shards = t->grid.replicas,
                                      .threads = mhf_engine_threads(),
                                      .engine = mhf_engine_name(),
                                      .program_build = mhf_build(),
                                      .run = run.data,
                                      .tokenizer = t->inputs->tokenizer,
                                      .table = t->inputs->table.ids ? &t->inputs->table : NULL,
                                      .carried = &t->inputs->carried};
    if (status == MHF_OK)
        status =
            mhf_checkpoint_write(path.data, &t->grid, &c->model, &t->params, &t->optimizer, &meta);
    if (status == MHF_OK)
        status = mhf_agree(t->root ? run_folder_prune(c->run, c->checkpoint_keep) : MHF_OK);
    t->saved = mhf_seconds();
    t->saving += t->saved - start;
    mhf_buf_free(&run);
    mhf_buf_free(&path);
    return status;
}

/* ---- one step ------------------------------------------------------------------------------- */

typedef struct step_result {
    report train, holdout;
    bool evaluated, skipped;
    double lr, norm, took;
    mhf_phase_seconds seconds;
} step_result;

/* A loss that is no number comes from a tensor: say which. Collective, agreed. */
static mhf_status check_loss(const trainer *t, double loss)
{
    if (isfinite(loss))
        return MHF_OK;
    mhf_status status = mhf_agree(finite_weights(&t->params));
    if (status == MHF_OK)
        status = mhf_agree(finite_gradients(&t->params));
    return status != MHF_OK ? status : mhf_fail(MHF_E_NONFINITE, "the loss is %g", loss);
}

static mhf_status run_step(trainer *t, step_result *r)
{
    const mhf_run_config *c = t->config;
    const double start = mhf_seconds();
    const int64_t labels = c->reference_denominator ? c->block : c->block - 1;
    const double denominator = (double)(c->batch * labels);
    *r = (step_result){.lr = mhf_learning_rate(c->lr, t->step, c->warmup, c->steps)};
    watchdog_mark(t->dog, "reading data", t->step + 1);
    MHF_TRY(mhf_agree(
        feed_fill(&t->feed, t->cursor, t->step * c->batch, c->batch, t->share, 1.0 / denominator)));
    r->seconds.data = mhf_seconds() - start;
    watchdog_mark(t->dog, "in the pipeline", t->step + 1);
    mhf_params_zero_gradients(&t->params);
    mhf_pipeline_run(&t->grid, t->stage, &c->model, t->feed.batches, t->share.n, t->feed.losses,
                     &r->seconds);
    r->train = join_losses(t, &t->feed, t->share, denominator);
    const mhf_update update = {.lr = r->lr,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = c->weight_decay,
                               .clip = c->clip};
    watchdog_mark(t->dog, "reducing gradients", t->step + 1);
    mhf_status status = check_loss(t, r->train.loss);
    if (status == MHF_OK)
        status =
            mhf_optimizer_step(&t->grid, &t->params, &t->optimizer, &update, &r->norm, &r->seconds);
    if (status == MHF_E_NONFINITE && c->skip_nonfinite) {
        if (t->root) /* all know of it, one tells */
            mhf_log(MHF_LOG_WARN, "step %lld is skipped: %s", (long long)t->step + 1, mhf_error());
        r->skipped = true;
        t->optimizer.step = t->step + 1;
        status = MHF_OK;
    }
    if (status != MHF_OK)
        return mhf_fail_within(status, "step %lld", (long long)t->step + 1);
    t->step++;
    r->took = mhf_seconds() - start;
    r->evaluated = t->holdout && (t->step % c->evaluate_every == 0 || t->step == c->steps);
    if (r->evaluated)
        MHF_TRY(evaluate(t, &(mhf_phase_seconds){0}, &r->holdout));
    return MHF_OK;
}

/* Mean over ranks of the seconds by phase. */
static json_t *phases_json(trainer *t, const mhf_phase_seconds *seconds)
{
    double mine[] = {seconds->data,   seconds->forward, seconds->backward, seconds->wait,
                     seconds->reduce, seconds->update,  seconds->save};
    static const char *const names[] = {"data",   "forward", "backward", "wait",
                                        "reduce", "update",  "save"};
    enum { N = sizeof mine / sizeof *mine };
    double mean[N];
    MPI_Reduce(mine, mean, N, MPI_DOUBLE, MPI_SUM, 0, t->grid.world);
    json_t *o = json_object();
    for (int i = 0; i < N; i++)
        json_object_set_new(o, names[i], json_real(mean[i] / (t->grid.stages * t->grid.replicas)));
    return o;
}

static mhf_status report_step(trainer *t, const step_result *r)
{
    const mhf_run_config *c = t->config;
    json_t *phases = phases_json(t, &r->seconds);
    if (!t->root) {
        json_decref(phases);
        return MHF_OK;
    }
    const double rate = (double)(c->batch * c->block) / r->took;
    json_t *line = json_object();
    json_object_set_new(line, "step", json_integer(t->step));
    json_t *losses = report_json(&r->train);
    json_object_update(line, losses);
    json_decref(losses);
    json_object_set_new(line, "lr", json_real(r->lr));
    json_object_set_new(line, "grad_norm", number(r->norm));
    json_object_set_new(line, "tokens", json_integer(t->step * c->batch * c->block));
    json_object_set_new(line, "tokens_per_s", json_real(rate));
    json_object_set_new(line, "mfu", json_real(rate * t->flops_per_token / t->peak));
    json_object_set_new(line, "seconds", phases);
    if (r->evaluated)
        json_object_set_new(line, "holdout", report_json(&r->holdout));
    if (r->skipped)
        json_object_set_new(line, "skipped", json_true());
    mhf_status status = run_folder_metrics(&t->folder, line);
    json_decref(line);
    char note[128];
    snprintf(note, sizeof note, "step %lld, loss %.4f, %.3f bits/byte", (long long)t->step,
             r->train.loss, r->train.bits_per_byte);
    mhf_progress_show(&t->progress, (double)(t->step * c->batch * c->block), note);
    return status;
}

/* One decision for all ranks: a signal on any of them, the stop file or the time on rank 0. */
static bool must_stop(trainer *t)
{
    const mhf_train_options *o = t->options;
    int stop = asked_to_stop != 0 || (o->stop_after > 0 && t->step >= o->stop_after);
    if (t->root && o->max_hours > 0 && mhf_seconds() - t->started > o->max_hours * 3600)
        stop = 1;
    if (t->root && run_folder_stop_asked(t->config->run))
        stop = 1;
    MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MAX, t->grid.world);
    return stop != 0;
}

static bool must_save(trainer *t)
{
    const mhf_run_config *c = t->config;
    int save =
        t->step == c->steps || (c->checkpoint_every > 0 && t->step % c->checkpoint_every == 0);
    if (t->root && c->checkpoint_minutes > 0 &&
        mhf_seconds() - t->saved > c->checkpoint_minutes * 60)
        save = 1;
    MPI_Bcast(&save, 1, MPI_INT, 0, t->grid.world);
    return save != 0;
}

static mhf_status run_steps(trainer *t)
{
    while (t->step < t->config->steps) {
        step_result r;
        MHF_TRY(run_step(t, &r));
        /* The line comes before the checkpoint: of a job that dies between them the line is cut off
         * and made again, where a checkpoint without its line would leave a hole for ever. */
        r.seconds.save = t->saving;
        t->saving = 0;
        MHF_TRY(mhf_agree(report_step(t, &r)));
        const bool stop = must_stop(t) && t->step < t->config->steps;
        if (must_save(t) || stop)
            MHF_TRY(save(t));
        if (stop)
            return mhf_fail(MHF_E_STOPPED,
                            "stopped after step %lld of %lld; the checkpoint is whole",
                            (long long)t->step, (long long)t->config->steps);
    }
    return MHF_OK;
}

static void say_start(const trainer *t)
{
    const mhf_run_config *c = t->config;
    mhf_log(MHF_LOG_INFO,
            "%s: %lld parameters, %d stages x %d replicas, engine %s, steps %lld to %lld of %lld "
            "tokens",
            c->run, (long long)t->registry.total, t->grid.stages, t->grid.replicas,
            mhf_engine_name(), (long long)t->step + 1, (long long)c->steps,
            (long long)(c->batch * c->block));
}

mhf_status mhf_train(mhf_run_config *config, mhf_run_inputs *inputs, mhf_source *resumed,
                     const mhf_train_options *options)
{
    trainer t = {.config = config, .inputs = inputs, .options = options, .folder = {.lock = -1}};
    MHF_TRY(mhf_agree(mhf_grid_new(config->stages, &t.grid)));
    t.root = t.grid.stage == 0 && t.grid.replica == 0;
    t.started = t.saved = mhf_seconds();
    asked_to_stop = 0;
    signal(SIGUSR1, ask_to_stop);
    signal(SIGTERM, ask_to_stop);
    mhf_status status = mhf_agree(set_up(&t, resumed));
    if (status == MHF_OK) {
        measure_peak(&t);
        say_start(&t);
        if (t.root) {
            mhf_progress_start(&t.progress, "train", "tokens",
                               (double)(config->steps * config->batch * config->block));
            t.progress.first = (double)(t.step * config->batch * config->block);
        }
        status = run_steps(&t);
        if (t.root && status == MHF_OK)
            mhf_progress_end(&t.progress, (double)(t.step * config->batch * config->block));
    }
    tear_down(&t);
    return status;
}
