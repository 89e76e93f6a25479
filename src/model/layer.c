/* SPDX-License-Identifier: ISC */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "mhf/tensor.h"

void layer_tensors_find(const mhf_registry *registry, int32_t l, float *const *pointers,
                        layer_tensors *out)
{
    /* A layer's parameters lie together in the registry, in this order. */
    float **const members[] = {&out->q,      &out->k,      &out->v,    &out->o,
                               &out->q_norm, &out->k_norm, &out->gate, &out->up,
                               &out->down,   &out->norm1,  &out->norm2};
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.self_attn.q_proj.weight", l);
    int32_t first = mhf_registry_find(registry, name);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        *members[i] = pointers[first + (int32_t)i];
}

typedef struct widths {
    int64_t d, h, q, kv, qkv, f, n_q, n_kv;
} widths;

static widths widths_of(const mhf_config *c)
{
    widths w = {.d = c->hidden_size,
                .h = c->head_dim,
                .n_q = c->num_attention_heads,
                .n_kv = c->num_key_value_heads,
                .f = c->intermediate_size};
    w.q = w.n_q * w.h;
    w.kv = w.n_kv * w.h;
    w.qkv = w.q + 2 * w.kv;
    return w;
}

int64_t layer_state_floats(const mhf_config *c)
{
    widths w = widths_of(c);
    return 2 * w.d + 2 + w.qkv + 2 * w.q + w.kv + 2 * w.n_q + w.n_kv + 2 * w.f;
}

int64_t layer_scratch_floats(const mhf_config *c)
{
    widths w = widths_of(c);
    return 2 * w.d + 4 * w.f + 2 * w.q + w.kv + w.qkv + 1;
}

mhf_status layer_state_new(const mhf_config *c, int64_t N, layer_state *out)
{
    widths w = widths_of(c);
    float *block;
    MHF_TRY(mhf_new(&block, N * layer_state_floats(c), sizeof *block, "a layer's activations"));
    out->x = block;
    out->mid = out->x + N * w.d;
    out->qkv = out->mid + N * w.d;
    out->q = out->qkv + N * w.qkv;
    out->k = out->q + N * w.q;
    out->o = out->k + N * w.kv;
    out->gu = out->o + N * w.q;
    out->lse = out->gu + N * 2 * w.f;
    out->rstd_q = out->lse + N * w.n_q;
    out->rstd_k = out->rstd_q + N * w.n_q;
    out->rstd1 = out->rstd_k + N * w.n_kv;
    out->rstd2 = out->rstd1 + N;
    return MHF_OK;
}

void layer_state_free(layer_state *state)
{
    free(state->x); /* the start of the block */
    *state = (layer_state){0};
}

mhf_status layer_scratch_new(const mhf_config *c, int64_t N, layer_scratch *out)
{
    widths w = widths_of(c);
    float *block;
    MHF_TRY(mhf_new(&block, N * (layer_scratch_floats(c) - 1), sizeof *block, "layers' scratch"));
    out->normed = block;
    out->dnormed = out->normed + N * w.d;
    out->y = out->dnormed + N * w.d;
    out->dy = out->y + N * w.f;
    out->dgu = out->dy + N * w.f;
    out->d_o = out->dgu + N * 2 * w.f;
    out->dq = out->d_o + N * w.q;
    out->dk = out->dq + N * w.q;
    out->dqkv = out->dk + N * w.kv;
    return mhf_new(&out->position, N, sizeof *out->position, "positions");
}

void layer_scratch_free(layer_scratch *scratch)
{
    free(scratch->normed); /* the start of the block */
    free(scratch->position);
    *scratch = (layer_scratch){0};
}

static mhf_attention_shape attention_shape(const mhf_batch *batch, const widths *w)
{
    return (mhf_attention_shape){.blocks = batch->blocks,
                                 .T = batch->T,
                                 .n_q = w->n_q,
                                 .n_kv = w->n_kv,
                                 .h = w->h,
                                 .ld_q = w->q,
                                 .ld_k = w->kv,
                                 .ld_v = w->qkv,
                                 .ld_o = w->q,
                                 .first = batch->first};
}

/* out = x + y Wᵀ: a projection back into the residual stream. */
static void project_residual(const float *x, const float *y, const float *W, int64_t N, int64_t in,
                             int64_t d, float *out)
{
    memcpy(out, x, (size_t)(N * d) * sizeof *out);
    mhf_gemm(MHF_N, MHF_T, N, d, in, y, in, W, in, 1.0f, out, d);
}

mhf_status layer_forward(const mhf_config *c, const layer_tensors *W, const mhf_batch *batch,
                         layer_state *s, layer_scratch *t, float *out)
{
    const widths w = widths_of(c);
    const int64_t N = batch->blocks * batch->T;
    const float eps = (float)c->rms_norm_eps;
    mhf_rmsnorm(s->x, W->norm1, N, w.d, eps, t->normed, s->rstd1);
    mhf_linear(t->normed, W->q, NULL, N, w.d, w.qkv, s->qkv);
    mhf_head_norm_rotary(s->qkv, w.qkv, W->q_norm, t->position, t->cos_table, t->sin_table, N,
                         w.n_q, w.h, eps, s->q, w.q, s->rstd_q);
    mhf_head_norm_rotary(s->qkv + w.q, w.qkv, W->k_norm, t->position, t->cos_table, t->sin_table, N,
                         w.n_kv, w.h, eps, s->k, w.kv, s->rstd_k);
    mhf_attention_shape shape = attention_shape(batch, &w);
    MHF_TRY(mhf_attention(&shape, s->q, s->k, s->qkv + w.q + w.kv, s->o, s->lse));
    project_residual(s->x, s->o, W->o, N, w.q, w.d, s->mid);

    mhf_rmsnorm(s->mid, W->norm2, N, w.d, eps, t->normed, s->rstd2);
    mhf_linear(t->normed, W->gate, NULL, N, w.d, 2 * w.f, s->gu);
    mhf_swiglu(s->gu, N, w.f, t->y);
    project_residual(s->mid, t->y, W->down, N, w.f, w.d, out);
    return MHF_OK;
}

/* dW += dyᵀ x for one matrix of a fused group: dy's columns start at `column` of rows ld wide. */
static void weight_gradient(const float *dy, int64_t ld, int64_t column, const float *x, int64_t N,
                            int64_t in, int64_t out, float *dW)
{
    if (dW)
        mhf_gemm(MHF_T, MHF_N, out, in, N, dy + column, ld, x, in, 1.0f, dW, in);
}

static void mlp_backward(const mhf_config *c, const layer_tensors *W, const layer_tensors *dW,
                         int64_t N, const layer_state *s, layer_scratch *t, float *dx)
{
    const widths w = widths_of(c);
    mhf_gemm(MHF_N, MHF_N, N, w.f, w.d, dx, w.d, W->down, w.f, 0.0f, t->dy, w.f);
    mhf_swiglu_backward(s->gu, t->dy, N, w.f, t->dgu, t->y);
    weight_gradient(dx, w.d, 0, t->y, N, w.f, w.d, dW->down);
    mhf_gemm(MHF_N, MHF_N, N, w.d, 2 * w.f, t->dgu, 2 * w.f, W->gate, w.d, 0.0f, t->dnormed, w.d);
    if (dW->gate || dW->up)
        mhf_rmsnorm(s->mid, W->norm2, N, w.d, (float)c->rms_norm_eps, t->normed, s->rstd2);
    if (dW->gate && dW->up == dW->gate + w.f * w.d) {
        weight_gradient(t->dgu, 2 * w.f, 0, t->normed, N, w.d, 2 * w.f, dW->gate);
    } else {
        weight_gradient(t->dgu, 2 * w.f, 0, t->normed, N, w.d, w.f, dW->gate);
        weight_gradient(t->dgu, 2 * w.f, w.f, t->normed, N, w.d, w.f, dW->up);
    }
    mhf_rmsnorm_backward(s->mid, W->norm2, s->rstd2, t->dnormed, N, w.d, 1.0f, dx, dW->norm2);
}

mhf_status layer_backward(const mhf_config *c, const layer_tensors *W, const layer_tensors *dW,
                          const mhf_batch *batch, const layer_state *s, layer_scratch *t, float *dx)
{
    const widths w = widths_of(c);
    const int64_t N = batch->blocks * batch->T;
    mlp_backward(c, W, dW, N, s, t, dx);

    mhf_gemm(MHF_N, MHF_N, N, w.q, w.d, dx, w.d, W->o, w.q, 0.0f, t->d_o, w.q);
    weight_gradient(dx, w.d, 0, s->o, N, w.q, w.d, dW->o);
    mhf_attention_shape shape = attention_shape(batch, &w);
    MHF_TRY(mhf_attention_backward(&shape, s->q, s->k, s->qkv + w.q + w.kv, s->o, s->lse, t->d_o,
                                   t->dq, t->dk, t->dqkv + w.q + w.kv));
    mhf_head_norm_rotary_backward(s->qkv, w.qkv, W->q_norm, t->position, t->cos_table, t->sin_table,
                                  s->rstd_q, t->dq, w.q, N, w.n_q, w.h, t->dqkv, w.qkv, dW->q_norm);
    mhf_head_norm_rotary_backward(s->qkv + w.q, w.qkv, W->k_norm, t->position, t->cos_table,
                                  t->sin_table, s->rstd_k, t->dk, w.kv, N, w.n_kv, w.h,
                                  t->dqkv + w.q, w.qkv, dW->k_norm);
    mhf_gemm(MHF_N, MHF_N, N, w.d, w.qkv, t->dqkv, w.qkv, W->q, w.d, 0.0f, t->dnormed, w.d);
    if (dW->q || dW->k || dW->v)
        mhf_rmsnorm(s->x, W->norm1, N, w.d, (float)c->rms_norm_eps, t->normed, s->rstd1);
    if (dW->q && dW->k == dW->q + w.q * w.d && dW->v == dW->k + w.kv * w.d) {
        weight_gradient(t->dqkv, w.qkv, 0, t->normed, N, w.d, w.qkv, dW->q);
    } else {
        weight_gradient(t->dqkv, w.qkv, 0, t->normed, N, w.d, w.q, dW->q);
        weight_gradient(t->dqkv, w.qkv, w.q, t->normed, N, w.d, w.kv, dW->k);
        weight_gradient(t->dqkv, w.qkv, w.q + w.kv, t->normed, N, w.d, w.kv, dW->v);
    }
    mhf_rmsnorm_backward(s->x, W->norm1, s->rstd1, t->dnormed, N, w.d, 1.0f, dx, dW->norm1);
    return MHF_OK;
}
