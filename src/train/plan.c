/* SPDX-License-Identifier: ISC */
/* What a grid needs, from the configuration alone. */
#include <stdlib.h>

#include "mhf/train.h"

/* What a process holds before the model: MPI, HDF5 and BLIS with their buffers. */
static const int64_t process_bytes = 96 << 20;

static mhf_status plan_rank(const mhf_run_config *c, const mhf_registry *registry, int stages,
                            int replicas, int stage, mhf_units units, mhf_plan *plan)
{
    mhf_rank_plan *r = &plan->ranks[stage];
    const mhf_config *m = &c->model;
    const bool head = units.last == m->num_hidden_layers + 1;
    int64_t gradients = 0;
    *r = (mhf_rank_plan){.units = units};
    for (int32_t i = 0; i < registry->n; i++) {
        const mhf_param *p = &registry->params[i];
        bool owned = p->unit >= units.first && p->unit <= units.last;
        if (!mhf_param_held(p, m, units))
            continue;
        r->parameters += p->count;
        if (p->trainable && owned)
            gradients += p->count;
        if (p->trainable && p->also_head && head)
            gradients += p->count;
    }
    int64_t moments = 0;
    for (int replica = 0; replica < replicas; replica++) {
        int64_t n = mhf_optimizer_elements(registry, m, units, replicas, replica);
        moments = n > moments ? n : moments;
    }
    const mhf_stage_options options = {.objective = c->objective,
                                       .max_tokens = c->micro_batch * c->block,
                                       .max_length = c->block,
                                       .slots =
                                           mhf_pipeline_slots(stages, stage, plan->micro_batches),
                                       .recompute = c->recompute};
    const int64_t message = c->micro_batch * c->block * m->hidden_size * (int64_t)sizeof(float);
    r->weights = r->parameters * (int64_t)sizeof(float);
    r->gradients = gradients * (int64_t)sizeof(float);
    r->moments = 2 * moments * (int64_t)sizeof(float);
    r->activations = mhf_stage_memory(m, units, &options);
    r->messages = 3 * message * ((stage > 0) + (stage < stages - 1));
    if (replicas > 1)
        r->messages += (int64_t)replicas * (16 << 20);
    r->memory_bytes =
        r->weights + r->gradients + r->moments + r->activations + r->messages + process_bytes;
    for (int32_t u = units.first; u <= units.last; u++)
        r->flops_share += mhf_unit_flops(m, u, c->block) / plan->flops_per_token;
    return MHF_OK;
}

mhf_status mhf_plan_new(const mhf_run_config *c, int stages, int replicas, mhf_plan *out)
{
    mhf_registry registry = {0};
    mhf_units *units = NULL;
    *out = (mhf_plan){.stages = stages, .replicas = replicas};
    MHF_TRY(mhf_config_check(&c->model));
    MHF_TRY(mhf_registry_new(&c->model, &registry));
    mhf_status status = mhf_registry_train_only(&registry, &c->model, c->trainable, c->n_trainable);
    out->total = registry.total;
    out->embedding = registry.embedding;
    for (int32_t u = 0; u <= c->model.num_hidden_layers + 1; u++)
        out->flops_per_token += mhf_unit_flops(&c->model, u, c->block);
    const int64_t micro_batches = (c->batch + c->micro_batch - 1) / c->micro_batch;
    out->micro_batches = (int32_t)((micro_batches + replicas - 1) / replicas);
    out->bubble = (double)(stages - 1) / (double)(out->micro_batches + stages - 1);
    if (status == MHF_OK)
        status = mhf_new(&units, stages, sizeof *units, "stages");
    if (status == MHF_OK)
        status = mhf_new(&out->ranks, stages, sizeof *out->ranks, "stages");
    if (status == MHF_OK)
        status = mhf_stages_balance(&c->model, c->block, stages,
                                    c->n_layers == stages ? c->layers : NULL, units);
    for (int s = 0; status == MHF_OK && s < stages; s++)
        status = plan_rank(c, &registry, stages, replicas, s, units[s], out);
    free(units);
    mhf_registry_free(&registry);
    if (status != MHF_OK)
        mhf_plan_free(out);
    return status;
}

void mhf_plan_free(mhf_plan *plan)
{
    free(plan->ranks);
    plan->ranks = NULL;
}
