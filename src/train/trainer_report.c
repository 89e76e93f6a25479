/* SPDX-License-Identifier: ISC */
/* What is told of a step: its line in metrics.jsonl and the progress line. */
#include <math.h>

#include "trainer.h"

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

mhf_status trainer_report(trainer *t, const step_result *r)
{
    const mhf_run_config *c = t->config;
    json_t *phases = phases_json(t, &r->seconds);
    if (!t->root) {
        json_decref(phases);
        return MHF_OK;
    }
    const double rate = (double)(c->batch * c->block) / r->took;
    /* A step above the peak tells that others were at work while the peak was measured. */
    if (rate * t->flops_per_token > t->peak)
        t->peak = rate * t->flops_per_token;
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
