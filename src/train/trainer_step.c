/* SPDX-License-Identifier: ISC */
/* One step: read, run the pipeline, update, evaluate where it is due. */
#include <math.h>

#include "finite.h"
#include "trainer.h"

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

static mhf_status evaluate(trainer *t, mhf_phase_seconds *seconds, report *out)
{
    const int64_t blocks = mhf_tokens_info_of(t->holdout)->n / t->config->block;
    MHF_TRY(mhf_agree(feed_fill_store(&t->holdout_feed, t->holdout, blocks, t->holdout_share)));
    mhf_pipeline_run(&t->grid, t->stage, &t->config->model, t->holdout_feed.batches,
                     t->holdout_share.n, t->holdout_feed.losses, seconds);
    *out = join_losses(t, &t->holdout_feed, t->holdout_share, 0);
    return MHF_OK;
}

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

mhf_status trainer_step(trainer *t, step_result *r)
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
