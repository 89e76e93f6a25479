/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "mhf/model.h"

static const float initializer_range = 0.02f;

static bool owned(const mhf_param *p, mhf_units units)
{
    return p->unit >= units.first && p->unit <= units.last;
}

mhf_status mhf_params_new(const mhf_registry *registry, const mhf_config *config, mhf_units units,
                          bool gradients, mhf_params *out)
{
    *out = (mhf_params){.registry = registry, .units = units};
    mhf_status status = mhf_new(&out->value, registry->n, sizeof *out->value, "parameters");
    if (status == MHF_OK && gradients)
        status = mhf_new(&out->gradient, registry->n, sizeof *out->gradient, "gradients");
    int64_t trained = 0, head = 0;
    for (int32_t i = 0; i < registry->n; i++) {
        const mhf_param *p = &registry->params[i];
        if (!mhf_param_held(p, config, units))
            continue;
        out->held += p->count;
        trained += p->trainable && owned(p, units) ? p->count : 0;
        if (p->also_head && p->trainable && units.last == config->num_hidden_layers + 1)
            head = p->count;
    }
    if (status == MHF_OK)
        status = mhf_new(&out->value_block, out->held, sizeof(float), "parameters");
    if (status == MHF_OK && gradients)
        status = mhf_new(&out->gradient_block, trained + head, sizeof(float), "gradients");
    if (status != MHF_OK) {
        mhf_params_free(out);
        return status;
    }
    int64_t value = 0, gradient = 0;
    for (int32_t i = 0; i < registry->n; i++) {
        const mhf_param *p = &registry->params[i];
        if (!mhf_param_held(p, config, units))
            continue;
        out->value[i] = out->value_block + value;
        value += p->count;
        if (gradients && p->trainable && owned(p, units)) {
            out->gradient[i] = out->gradient_block + gradient;
            gradient += p->count;
        }
    }
    if (gradients && head > 0)
        out->head_gradient = out->gradient_block + trained;
    return MHF_OK;
}

void mhf_params_free(mhf_params *params)
{
    free(params->value);
    free(params->gradient);
    free(params->value_block);
    free(params->gradient_block);
    *params = (mhf_params){0};
}

void mhf_params_zero_gradients(mhf_params *params)
{
    const mhf_registry *r = params->registry;
    for (int32_t i = 0; i < r->n; i++)
        if (params->gradient[i])
            memset(params->gradient[i], 0, (size_t)r->params[i].count * sizeof(float));
    for (int32_t i = 0; params->head_gradient && i < r->n; i++)
        if (r->params[i].also_head)
            memset(params->head_gradient, 0, (size_t)r->params[i].count * sizeof(float));
}

static void initialise(const mhf_param *p, const mhf_config *config, uint64_t seed, float *value)
{
    if (p->n_dims == 1) {
        /* Vectors are norm weights, which start at one, and biases. */
        size_t n = strlen(p->name);
        float start = n > 5 && strcmp(p->name + n - 5, ".bias") == 0 ? 0.0f : 1.0f;
        for (int64_t i = 0; i < p->count; i++)
            value[i] = start;
        return;
    }
    mhf_rng rng = mhf_rng_named(seed, p->name);
    mhf_rng_normals(rng, 0, p->count, value);
    for (int64_t i = 0; i < p->count; i++)
        value[i] *= initializer_range;
    int64_t pad = config->pad_token_id;
    if (config->head == MHF_HEAD_STANDARD && strcmp(p->name, "model.embed_tokens.weight") == 0 &&
        pad >= 0 && pad < p->shape[0])
        memset(value + pad * p->shape[1], 0, (size_t)p->shape[1] * sizeof(float));
}

void mhf_params_initialise(mhf_params *params, const mhf_config *config, uint64_t seed)
{
    const mhf_registry *r = params->registry;
    for (int32_t i = 0; i < r->n; i++)
        if (params->value[i])
            initialise(&r->params[i], config, seed, params->value[i]);
}
