/* SPDX-License-Identifier: ISC */
#include <math.h>
#include <stdlib.h>

#include "mhf/tensor.h"
#include "shards.h"

int64_t mhf_optimizer_elements(const mhf_registry *registry, const mhf_config *config,
                               mhf_units units, int replicas, int replica)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < registry->n; i++)
        if (registry->params[i].trainable && mhf_param_held(&registry->params[i], config, units))
            elements += shard_of(registry, i, replicas, replica).count;
    return elements;
}

mhf_status mhf_optimizer_new(const mhf_grid *grid, const mhf_params *params, mhf_optimizer *out)
{
    const mhf_registry *registry = params->registry;
    *out = (mhf_optimizer){0};
    MHF_TRY(mhf_new(&out->shards, registry->n, sizeof *out->shards, "optimizer state"));
    for (int32_t i = 0; i < registry->n; i++) {
        mhf_shard shard = shard_of(registry, i, grid->replicas, grid->replica);
        if (!joined_gradient(params, i) || shard.count == 0)
            continue;
        shard.offset = out->elements;
        out->shards[out->n_shards++] = shard;
        out->elements += shard.count;
    }
    mhf_status status = mhf_new(&out->m, out->elements, sizeof(float), "first moments");
    if (status == MHF_OK)
        status = mhf_new(&out->v, out->elements, sizeof(float), "second moments");
    if (status != MHF_OK)
        mhf_optimizer_free(out);
    return status;
}

void mhf_optimizer_free(mhf_optimizer *optimizer)
{
    free(optimizer->shards);
    free(optimizer->m);
    free(optimizer->v);
    *optimizer = (mhf_optimizer){0};
}

static void reduce(const mhf_grid *grid, mhf_params *params)
{
    const mhf_registry *registry = params->registry;
    for (int32_t i = 0; i < registry->n; i++) {
        if (params->gradient[i])
            shards_reduce(grid, registry, i, params->gradient[i]);
        if (!registry->params[i].also_head || !registry->params[i].trainable)
            continue;
        if (params->head_gradient)
            shards_reduce(grid, registry, i, params->head_gradient);
        shards_join_embedding(grid, params, i);
    }
}

static int64_t chunks_of(const mhf_param *p)
{
    return (p->count + MHF_CHUNK - 1) / MHF_CHUNK;
}

/* The squares of owned gradients by chunk, put in (registry, chunk) order and added up there: each
 * weight once, by the stage of its unit, with the same bits on every grid. MHF_E_NONFINITE names
 * the tensor. */
static mhf_status global_norm(const mhf_grid *grid, const mhf_params *params,
                              const mhf_optimizer *optimizer, double *norm)
{
    const mhf_registry *registry = params->registry;
    int64_t *start, total = 0;
    double *squares;
    MHF_TRY(mhf_new(&start, registry->n + 1, sizeof *start, "the norm"));
    for (int32_t i = 0; i < registry->n; i++) {
        start[i] = total;
        total += chunks_of(&registry->params[i]);
    }
    mhf_status status = mhf_new(&squares, total, sizeof *squares, "the norm");
    if (status != MHF_OK)
        mhf_abort(status);
    for (int32_t s = 0; s < optimizer->n_shards; s++) {
        const mhf_shard *shard = &optimizer->shards[s];
        const float *gradient = params->gradient[shard->param];
        for (int64_t e = 0; gradient && e < shard->count; e += MHF_CHUNK) {
            int64_t n = shard->count - e < MHF_CHUNK ? shard->count - e : MHF_CHUNK;
            squares[start[shard->param] + (shard->first + e) / MHF_CHUNK] =
                mhf_sum_of_squares(gradient + shard->first + e, n);
        }
    }
    /* One rank alone has a number other than 0 in any place, so the sum is exact in any order. */
    for (int64_t e = 0; e < total; e += INT32_MAX / 2) {
        int64_t n = total - e < INT32_MAX / 2 ? total - e : INT32_MAX / 2;
        MPI_Allreduce(MPI_IN_PLACE, squares + e, (int)n, MPI_DOUBLE, MPI_SUM, grid->world);
    }
    double sum = 0;
    for (int32_t i = 0; status == MHF_OK && i < registry->n; i++) {
        for (int64_t e = start[i]; e < start[i] + chunks_of(&registry->params[i]); e++)
            sum += squares[e];
        if (!isfinite(sum))
            status = mhf_fail(MHF_E_NONFINITE, "the gradient of %s holds a NaN or infinity",
                              registry->params[i].name);
    }
    *norm = sqrt(sum);
    free(start);
    free(squares);
    return status;
}

static void update_shards(mhf_params *params, mhf_optimizer *optimizer, const mhf_update *update,
                          double norm)
{
    const mhf_registry *registry = params->registry;
    const double factor = update->clip > 0 ? fmin(1.0, update->clip / (norm + 1e-6)) : 1.0;
    for (int32_t s = 0; s < optimizer->n_shards; s++) {
        const mhf_shard *shard = &optimizer->shards[s];
        const bool decays = registry->params[shard->param].decays;
        const mhf_adamw adamw = {.lr = update->lr,
                                 .beta1 = update->beta1,
                                 .beta2 = update->beta2,
                                 .eps = update->eps,
                                 .weight_decay = decays ? update->weight_decay : 0.0,
                                 .step = optimizer->step};
        mhf_adamw_update(&adamw, (float)factor,
                         joined_gradient(params, shard->param) + shard->first, shard->count,
                         params->value[shard->param] + shard->first, optimizer->m + shard->offset,
                         optimizer->v + shard->offset);
    }
}

mhf_status mhf_optimizer_step(const mhf_grid *grid, mhf_params *params, mhf_optimizer *optimizer,
                              const mhf_update *update, double *norm, mhf_phase_seconds *seconds)
{
    double start = mhf_seconds();
    reduce(grid, params);
    MHF_TRY(global_norm(grid, params, optimizer, norm));
    double reduced = mhf_seconds();
    optimizer->step++;
    update_shards(params, optimizer, update, *norm);
    double updated = mhf_seconds();
    const mhf_registry *registry = params->registry;
    for (int32_t i = 0; i < registry->n; i++)
        if (params->value[i] && registry->params[i].trainable)
            shards_gather(grid, registry, i, params->value[i]);
    seconds->reduce += reduced - start + mhf_seconds() - updated;
    seconds->update += updated - reduced;
    return MHF_OK;
}
