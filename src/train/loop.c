/* SPDX-License-Identifier: ISC */
/* The training loop: step, report, save, stop. */
#include <signal.h>

#include "mhf/tensor.h"
#include "trainer.h"

/* Requests to stop are held back and looked for between steps. No handler may run on a thread that
 * computes: oneDNN's AVX-512 products keep data where the kernel would put the handler's frame, and
 * the heap is overwritten. */
static const int stop_signals[] = {SIGUSR1, SIGTERM};

void mhf_train_hold_signals(void)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
        sigaddset(&held, stop_signals[i]);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
}

static bool asked_to_stop(void)
{
    sigset_t pending;
    sigpending(&pending);
    bool asked = false;
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
        asked |= sigismember(&pending, stop_signals[i]) == 1;
    return asked;
}

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
        status =
            mhf_agree(t->root ? run_folder_prune(c->run, t->step, c->checkpoint_keep) : MHF_OK);
    t->saved = mhf_seconds();
    t->saving += t->saved - start;
    mhf_buf_free(&run);
    mhf_buf_free(&path);
    return status;
}

/* One decision for all ranks: a signal on any of them, the stop file or the time on rank 0. */
static bool must_stop(trainer *t)
{
    const mhf_train_options *o = t->options;
    int stop = asked_to_stop() || (o->stop_after > 0 && t->step >= o->stop_after);
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

/* All ranks at once, so that shared memory and caches count as they do in the run. */
static void measure_peak(trainer *t)
{
    double mine = mhf_gemm_rate(MHF_N, MHF_T, 512, 512, 512, 0.2);
    MPI_Allreduce(&mine, &t->peak, 1, MPI_DOUBLE, MPI_SUM, t->grid.world);
    for (int32_t u = 0; u <= t->config->model.num_hidden_layers + 1; u++)
        t->flops_per_token += mhf_unit_flops(&t->config->model, u, t->config->block);
}

static mhf_status stopped(const trainer *t)
{
    return mhf_fail(MHF_E_STOPPED, "stopped after step %lld of %lld; the checkpoint is whole",
                    (long long)t->step, (long long)t->config->steps);
}

static mhf_status run_steps(trainer *t)
{
    const int64_t last = t->options->stop_after;
    if (last > 0 && t->step >= last && t->step < t->config->steps)
        return stopped(t); /* a job asked again for what is done */
    while (t->step < t->config->steps) {
        step_result r;
        MHF_TRY(trainer_step(t, &r));
        /* The line comes before the checkpoint: of a job that dies between them the line is cut off
         * and made again, where a checkpoint without its line would leave a hole for ever. */
        r.seconds.save = t->saving;
        t->saving = 0;
        MHF_TRY(mhf_agree(trainer_report(t, &r)));
        const bool stop = must_stop(t) && t->step < t->config->steps;
        if (must_save(t) || stop)
            MHF_TRY(save(t));
        if (stop)
            return stopped(t);
    }
    return MHF_OK;
}

static void say_start(const trainer *t)
{
    const mhf_run_config *c = t->config;
    if (t->step >= c->steps) {
        mhf_log(MHF_LOG_INFO, "%s: step %lld of %lld is done, there is nothing to do", c->run,
                (long long)t->step, (long long)c->steps);
        return;
    }
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
    mhf_status status = mhf_agree(trainer_set_up(&t, resumed));
    if (status == MHF_OK) {
        measure_peak(&t);
        say_start(&t);
        if (t.root) {
            mhf_progress_start(&t.progress, "train", "tokens",
                               (double)(config->steps * config->batch * config->block));
            t.progress.first = (double)(t.step * config->batch * config->block);
        }
        status = run_steps(&t);
        if (t.root && status == MHF_OK && t.progress.first < t.progress.total)
            mhf_progress_end(&t.progress, (double)(t.step * config->batch * config->block));
    }
    trainer_tear_down(&t);
    return status;
}
