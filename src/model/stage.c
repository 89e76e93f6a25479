/* SPDX-License-Identifier: ISC */
/* One stage: its units in order for one micro-batch, activations kept by slot until the backward.
 */
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "head.h"
#include "layer.h"
#include "mhf/tensor.h"

/* A micro-batch in flight. */
typedef struct flight {
    encoder_state encoder;
    layer_state *layers; /* [n_layers]; with recompute only x is the slot's own */
    float *dx;           /* [N,d] with the head: gradient of the last layer's output */
} flight;

struct mhf_stage {
    const mhf_config *config;
    const mhf_signatures *table;
    mhf_stage_options options;
    mhf_units units;
    int32_t n_layers, first_layer;
    bool has_encoder, has_head;

    encoder_tensors encoder, d_encoder;
    layer_tensors *layers, *d_layers; /* [n_layers] */
    const float *norm;
    float *d_norm; /* [d] */
    head_tensors head;
    head_gradients d_head;

    flight *slots;          /* [options.slots] */
    layer_state recomputed; /* with recompute: one layer's activations, shared by all */
    encoder_scratch encoder_work;
    layer_scratch layer_work;
    head_scratch head_work;
    float *x;             /* [N,d] between units */
    float *normed, *rstd; /* [N,d], [N] of the final norm */
    mhf_token *next;      /* [N] targets */
    float *cos_table, *sin_table;
};

static mhf_status find_tensors(mhf_stage *s, const mhf_params *params)
{
    const mhf_registry *r = params->registry;
    MHF_TRY(mhf_new(&s->layers, s->n_layers, sizeof *s->layers, "layers"));
    MHF_TRY(mhf_new(&s->d_layers, s->n_layers, sizeof *s->d_layers, "layers"));
    for (int32_t i = 0; i < s->n_layers; i++) {
        layer_tensors_find(r, s->first_layer + i, params->value, &s->layers[i]);
        layer_tensors_find(r, s->first_layer + i, params->gradient, &s->d_layers[i]);
    }
    if (s->has_encoder) {
        encoder_tensors_find(r, s->config, params->value, &s->encoder);
        encoder_tensors_find(r, s->config, params->gradient, &s->d_encoder);
    }
    if (!s->has_head)
        return MHF_OK;
    int32_t norm = mhf_registry_find(r, "model.norm.weight");
    s->norm = params->value[norm];
    s->d_norm = params->gradient[norm];
    MHF_TRY(head_tensors_find(params, s->config, &s->head));
    return head_gradients_find(params, s->config, &s->d_head);
}

static mhf_status slot_new(mhf_stage *s, flight *out)
{
    const int64_t N = s->options.max_tokens, d = s->config->hidden_size;
    if (s->has_encoder)
        MHF_TRY(encoder_state_new(s->config, N, &out->encoder));
    MHF_TRY(mhf_new(&out->layers, s->n_layers, sizeof *out->layers, "activations"));
    for (int32_t i = 0; i < s->n_layers; i++) {
        if (s->options.recompute)
            MHF_TRY(mhf_new(&out->layers[i].x, N * d, sizeof(float), "a layer's input"));
        else
            MHF_TRY(layer_state_new(s->config, N, &out->layers[i]));
    }
    if (s->has_head)
        MHF_TRY(mhf_new(&out->dx, N * d, sizeof(float), "the head's gradient"));
    return MHF_OK;
}

static mhf_status allocate(mhf_stage *s)
{
    const mhf_config *c = s->config;
    const int64_t N = s->options.max_tokens, d = c->hidden_size, half = c->head_dim / 2;
    MHF_TRY(mhf_new(&s->slots, s->options.slots, sizeof *s->slots, "activations"));
    for (int32_t i = 0; i < s->options.slots; i++)
        MHF_TRY(slot_new(s, &s->slots[i]));
    if (s->has_encoder)
        MHF_TRY(encoder_scratch_new(c, N, &s->encoder_work));
    MHF_TRY(layer_scratch_new(c, N, &s->layer_work));
    if (s->options.recompute)
        MHF_TRY(layer_state_new(c, N, &s->recomputed));
    MHF_TRY(mhf_new(&s->x, N * d, sizeof(float), "activations"));
    MHF_TRY(mhf_new(&s->cos_table, s->options.max_length * half, sizeof(float), "rotary angles"));
    MHF_TRY(mhf_new(&s->sin_table, s->options.max_length * half, sizeof(float), "rotary angles"));
    mhf_rotary_table(0, s->options.max_length, c->head_dim, c->rope_theta, s->cos_table,
                     s->sin_table);
    s->layer_work.cos_table = s->cos_table;
    s->layer_work.sin_table = s->sin_table;
    if (!s->has_head)
        return MHF_OK;
    MHF_TRY(head_scratch_new(c, s->options.objective, N, &s->head_work));
    MHF_TRY(mhf_new(&s->normed, N * d, sizeof(float), "the final norm"));
    MHF_TRY(mhf_new(&s->rstd, N, sizeof(float), "the final norm"));
    return mhf_new(&s->next, N, sizeof *s->next, "targets");
}

mhf_status mhf_stage_new(const mhf_config *config, mhf_params *params, const mhf_signatures *table,
                         const mhf_stage_options *options, mhf_stage **out)
{
    mhf_stage *s;
    MHF_TRY(mhf_new(&s, 1, sizeof *s, "a stage"));
    const int32_t L = config->num_hidden_layers;
    s->config = config;
    s->table = table;
    s->options = *options;
    s->units = params->units;
    s->has_encoder = s->units.first == 0;
    s->has_head = s->units.last == L + 1;
    s->first_layer = s->has_encoder ? 0 : s->units.first - 1;
    s->n_layers = (s->has_head ? L : s->units.last) - s->first_layer;
    mhf_status status = find_tensors(s, params);
    if (status == MHF_OK)
        status = allocate(s);
    if (status != MHF_OK)
        mhf_stage_free(s);
    else
        *out = s;
    return status;
}

static void slot_free(mhf_stage *s, flight *slot)
{
    encoder_state_free(&slot->encoder);
    for (int32_t i = 0; slot->layers && i < s->n_layers; i++)
        layer_state_free(&slot->layers[i]);
    free(slot->layers);
    free(slot->dx);
}

void mhf_stage_free(mhf_stage *s)
{
    if (!s)
        return;
    for (int32_t i = 0; s->slots && i < s->options.slots; i++)
        slot_free(s, &s->slots[i]);
    free(s->slots);
    free(s->layers);
    free(s->d_layers);
    free(s->head.mixers);
    free(s->d_head.mixers);
    encoder_scratch_free(&s->encoder_work);
    layer_scratch_free(&s->layer_work);
    head_scratch_free(&s->head_work);
    layer_state_free(&s->recomputed);
    free(s->x);
    free(s->normed);
    free(s->rstd);
    free(s->next);
    free(s->cos_table);
    free(s->sin_table);
    free(s);
}

int64_t mhf_stage_memory(const mhf_config *c, mhf_units units, const mhf_stage_options *o)
{
    const int64_t N = o->max_tokens, d = c->hidden_size;
    const int32_t L = c->num_hidden_layers;
    const bool encoder = units.first == 0, head = units.last == L + 1;
    const int64_t layers = (head ? L : units.last) - (encoder ? 0 : units.first - 1);
    int64_t slot = layers * (o->recompute ? d : layer_state_floats(c)) +
                   (encoder ? encoder_state_floats(c) : 0) + (head ? d : 0);
    int64_t floats = N * (o->slots * slot + layer_scratch_floats(c) + d +
                          (o->recompute ? layer_state_floats(c) : 0) +
                          (encoder ? encoder_scratch_floats(c) : 0) + (head ? d + 2 : 0));
    floats += o->max_length * c->head_dim;
    if (encoder)
        floats += c->vocab_size;
    if (head)
        floats += head_scratch_floats(c, o->objective, N);
    return floats * (int64_t)sizeof(float);
}

/* The activations of layer i of a slot; with recompute the shared ones around the slot's own input.
 */
static layer_state state_of(mhf_stage *s, flight *slot, int32_t i)
{
    if (!s->options.recompute)
        return slot->layers[i];
    layer_state state = s->recomputed;
    state.x = slot->layers[i].x;
    return state;
}

/* next[t] = label of the following place of the block, -1 where there is none or it is ignored. */
static mhf_status fill_next(mhf_stage *s, const mhf_batch *batch, mhf_losses *losses)
{
    const mhf_token *labels = batch->labels ? batch->labels : batch->tokens;
    for (int64_t i = 0; i < batch->blocks * batch->T; i++) {
        bool last = i % batch->T == batch->T - 1;
        mhf_token label = last ? -100 : labels[i + 1];
        if (label >= s->config->vocab_size || (label < 0 && label != -100))
            return mhf_fail(MHF_E_DATA, "label %d at place %lld is outside the vocabulary of %d",
                            label, (long long)i + 1, s->config->vocab_size);
        s->next[i] = label < 0 ? -1 : label;
        losses->targets += label >= 0;
    }
    return MHF_OK;
}

static mhf_status run_head(mhf_stage *s, flight *slot, const mhf_batch *batch, const float *x,
                           mhf_losses *losses)
{
    const mhf_config *c = s->config;
    const int64_t N = batch->blocks * batch->T, d = c->hidden_size;
    *losses = (mhf_losses){0};
    MHF_TRY(fill_next(s, batch, losses));
    mhf_rmsnorm(x, s->norm, N, d, (float)c->rms_norm_eps, s->normed, s->rstd);
    float *dnormed =
        batch->evaluate ? NULL : s->layer_work.dnormed; /* free: layers go back later */
    MHF_TRY(head_run(c, s->options.objective, &s->head, &s->d_head, s->table, s->normed, s->next, N,
                     (float)batch->scale, &s->head_work, dnormed, losses));
    if (dnormed)
        mhf_rmsnorm_backward(x, s->norm, s->rstd, dnormed, N, d, 0.0f, slot->dx, s->d_norm);
    return MHF_OK;
}

static void fill_positions(mhf_stage *s, const mhf_batch *batch)
{
    for (int64_t i = 0; i < batch->blocks * batch->T; i++)
        s->layer_work.position[i] = (int32_t)(i % batch->T);
}

mhf_status mhf_stage_forward(mhf_stage *s, int32_t slot_index, const mhf_batch *batch,
                             const float *x_in, float *x_out, mhf_losses *losses)
{
    const int64_t N = batch->blocks * batch->T, d = s->config->hidden_size;
    flight *slot = &s->slots[slot_index];
    fill_positions(s, batch);
    /* Each unit writes where the next one reads: a layer's input, the head's, or the stage's
     * output. */
    float *end = x_out ? x_out : s->x;
    float *start = s->n_layers > 0 ? slot->layers[0].x : end;
    if (s->has_encoder)
        MHF_TRY(encoder_forward(s->config, &s->encoder, s->table, batch->tokens, N, &slot->encoder,
                                &s->encoder_work, start));
    else
        memcpy(start, x_in, (size_t)(N * d) * sizeof *start);
    for (int32_t i = 0; i < s->n_layers; i++) {
        layer_state state = state_of(s, slot, i);
        float *out = i + 1 < s->n_layers ? slot->layers[i + 1].x : end;
        MHF_TRY(layer_forward(s->config, &s->layers[i], batch, &state, &s->layer_work, out));
    }
    return s->has_head ? run_head(s, slot, batch, end, losses) : MHF_OK;
}

mhf_status mhf_stage_backward(mhf_stage *s, int32_t slot_index, const mhf_batch *batch,
                              const float *dx_out, float *dx_in)
{
    const int64_t N = batch->blocks * batch->T, d = s->config->hidden_size;
    flight *slot = &s->slots[slot_index];
    fill_positions(s, batch);
    float *dx = s->x;
    memcpy(dx, s->has_head ? slot->dx : dx_out, (size_t)(N * d) * sizeof *dx);
    for (int32_t i = s->n_layers - 1; i >= 0; i--) {
        layer_state state = state_of(s, slot, i);
        if (s->options.recompute) /* the output is not wanted: it goes to scratch */
            MHF_TRY(layer_forward(s->config, &s->layers[i], batch, &state, &s->layer_work,
                                  s->layer_work.dnormed));
        MHF_TRY(layer_backward(s->config, &s->layers[i], &s->d_layers[i], batch, &state,
                               &s->layer_work, dx));
    }
    if (s->has_encoder)
        encoder_backward(s->config, &s->encoder, &s->d_encoder, s->table, batch->tokens, N,
                         &slot->encoder, &s->encoder_work, dx);
    else
        memcpy(dx_in, dx, (size_t)(N * d) * sizeof *dx);
    return MHF_OK;
}
