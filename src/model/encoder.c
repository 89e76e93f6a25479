/* SPDX-License-Identifier: ISC */
#include "encoder.h"

#include <stdlib.h>
#include <string.h>

#include "mhf/tensor.h"

void encoder_tensors_find(const mhf_registry *registry, const mhf_config *c, float *const *pointers,
                          encoder_tensors *out)
{
    *out = (encoder_tensors){0};
    out->E = pointers[mhf_registry_find(registry, "model.embed_tokens.weight")];
    if (c->head == MHF_HEAD_STANDARD)
        return;
    out->W1 = pointers[mhf_registry_find(registry, "model.combiner.scorer.0.weight")];
    out->c1 = pointers[mhf_registry_find(registry, "model.combiner.scorer.0.bias")];
    out->w2 = pointers[mhf_registry_find(registry, "model.combiner.scorer.2.weight")];
    out->c2 = pointers[mhf_registry_find(registry, "model.combiner.scorer.2.bias")];
    out->Wp = pointers[mhf_registry_find(registry, "model.combiner.output_proj.0.weight")];
    out->bp = pointers[mhf_registry_find(registry, "model.combiner.output_proj.0.bias")];
}

/* A standard embedding is one coordinate of V buckets, without gate or projection. */
static int64_t coordinates(const mhf_config *c)
{
    return c->head == MHF_HEAD_MHF ? mhf_config_encoder_hashes(c) : 1;
}

static int64_t buckets(const mhf_config *c)
{
    return c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
}

int64_t encoder_state_floats(const mhf_config *c)
{
    int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim;
    return 2 + (c->head == MHF_HEAD_MHF ? n * m + n + d : 0);
}

int64_t encoder_scratch_floats(const mhf_config *c)
{
    int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim;
    return d + n + (c->head == MHF_HEAD_MHF ? 2 * n * d + n * m + n : 0);
}

mhf_status encoder_state_new(const mhf_config *c, int64_t N, encoder_state *out)
{
    int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim;
    MHF_TRY(mhf_new(&out->distinct, N, sizeof *out->distinct, "distinct tokens"));
    MHF_TRY(mhf_new(&out->index, N, sizeof *out->index, "distinct tokens"));
    if (c->head == MHF_HEAD_STANDARD)
        return MHF_OK;
    MHF_TRY(mhf_new(&out->pre, N * n * m, sizeof(float), "the encoder's activations"));
    MHF_TRY(mhf_new(&out->gate, N * n, sizeof(float), "the encoder's activations"));
    return mhf_new(&out->mix, N * d, sizeof(float), "the encoder's activations");
}

void encoder_state_free(encoder_state *s)
{
    free(s->distinct);
    free(s->index);
    free(s->pre);
    free(s->gate);
    free(s->mix);
    *s = (encoder_state){0};
}

mhf_status encoder_scratch_new(const mhf_config *c, int64_t N, encoder_scratch *out)
{
    int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim;
    MHF_TRY(mhf_new(&out->ids, N * n, sizeof *out->ids, "bucket ids"));
    MHF_TRY(mhf_new(&out->mark, c->vocab_size, sizeof *out->mark, "token marks"));
    MHF_TRY(mhf_new(&out->x, N * d, sizeof(float), "the encoder's scratch"));
    if (c->head == MHF_HEAD_STANDARD)
        return MHF_OK;
    MHF_TRY(mhf_new(&out->e, N * n * d, sizeof(float), "the encoder's scratch"));
    MHF_TRY(mhf_new(&out->de, N * n * d, sizeof(float), "the encoder's scratch"));
    MHF_TRY(mhf_new(&out->hidden, N * n * m, sizeof(float), "the encoder's scratch"));
    return mhf_new(&out->score, N * n, sizeof(float), "the encoder's scratch");
}

void encoder_scratch_free(encoder_scratch *s)
{
    free(s->ids);
    free(s->mark);
    free(s->x);
    free(s->e);
    free(s->de);
    free(s->hidden);
    free(s->score);
    *s = (encoder_scratch){0};
}

static int by_id(const void *a, const void *b)
{
    mhf_token x = *(const mhf_token *)a, y = *(const mhf_token *)b;
    return (x > y) - (x < y);
}

/* mark holds 0 for every token before and after. */
static mhf_status find_distinct(const mhf_config *c, const mhf_token *tokens, int64_t N,
                                encoder_state *s, int32_t *mark)
{
    s->U = 0;
    for (int64_t t = 0; t < N; t++) {
        if (tokens[t] < 0 || tokens[t] >= c->vocab_size) {
            for (int64_t u = 0; u < s->U; u++)
                mark[s->distinct[u]] = 0;
            return mhf_fail(MHF_E_DATA, "token id %d at place %lld is outside the vocabulary of %d",
                            tokens[t], (long long)t, c->vocab_size);
        }
        if (!mark[tokens[t]]) {
            mark[tokens[t]] = 1;
            s->distinct[s->U++] = tokens[t];
        }
    }
    qsort(s->distinct, (size_t)s->U, sizeof *s->distinct, by_id);
    for (int64_t u = 0; u < s->U; u++)
        mark[s->distinct[u]] = (int32_t)u;
    for (int64_t t = 0; t < N; t++)
        s->index[t] = mark[tokens[t]];
    for (int64_t u = 0; u < s->U; u++)
        mark[s->distinct[u]] = 0;
    return MHF_OK;
}

/* ids [U,n] of the distinct tokens. */
static void fill_ids(const mhf_config *c, const mhf_signatures *table, const encoder_state *s,
                     uint32_t *ids)
{
    const int64_t n = coordinates(c);
    for (int64_t u = 0; u < s->U; u++) {
        for (int64_t j = 0; j < n; j++)
            ids[u * n + j] = c->head == MHF_HEAD_MHF
                                 ? table->ids[(int64_t)s->distinct[u] * c->num_hashes + j]
                                 : (uint32_t)s->distinct[u];
    }
}

static void hash_encoder(const mhf_config *c, const encoder_tensors *w, encoder_state *s,
                         encoder_scratch *t)
{
    const int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim, U = s->U;
    mhf_gather(w->E, t->ids, n, U, n, buckets(c), d, t->e);
    mhf_linear(t->e, w->W1, w->c1, U * n, d, m, s->pre);
    mhf_silu(s->pre, U * n * m, t->hidden);
    mhf_linear(t->hidden, w->w2, w->c2, U * n, m, 1, s->gate);
    mhf_gate_mix(t->e, U, n, d, s->gate, s->mix);
    mhf_linear(s->mix, w->Wp, w->bp, U, d, d, t->x);
}

mhf_status encoder_forward(const mhf_config *c, const encoder_tensors *w,
                           const mhf_signatures *table, const mhf_token *tokens, int64_t N,
                           encoder_state *s, encoder_scratch *t, float *x)
{
    const int64_t d = c->hidden_size;
    MHF_TRY(find_distinct(c, tokens, N, s, t->mark));
    fill_ids(c, table, s, t->ids);
    if (c->head == MHF_HEAD_MHF)
        hash_encoder(c, w, s, t);
    else
        mhf_gather(w->E, t->ids, 1, s->U, 1, buckets(c), d, t->x);
    for (int64_t i = 0; i < N; i++)
        memcpy(x + i * d, t->x + s->index[i] * d, (size_t)d * sizeof *x);
    return MHF_OK;
}

void encoder_backward(const mhf_config *c, const encoder_tensors *w, const encoder_tensors *dw,
                      const mhf_signatures *table, const mhf_token *tokens, int64_t N,
                      const encoder_state *s, encoder_scratch *t, const float *dx)
{
    const int64_t n = coordinates(c), d = c->hidden_size, m = c->bottle_neck_dim, U = s->U;
    fill_ids(c, table, s, t->ids);
    /* Repeats of a token are added in position order. */
    memset(t->x, 0, (size_t)(U * d) * sizeof(float));
    for (int64_t i = 0; i < N; i++)
        if (c->head == MHF_HEAD_MHF || tokens[i] != c->pad_token_id)
            mhf_add(dx + i * d, d, t->x + s->index[i] * d);
    if (c->head == MHF_HEAD_STANDARD) {
        if (dw->E)
            mhf_gather_backward(t->x, t->ids, 1, U, 1, buckets(c), d, dw->E);
        return;
    }
    float *dmix = t->e; /* free until the gather below, and large enough */
    mhf_linear_backward(s->mix, w->Wp, t->x, U, d, d, 0.0f, dmix, dw->Wp, dw->bp);
    memcpy(t->x, dmix, (size_t)(U * d) * sizeof(float));
    mhf_gather(w->E, t->ids, n, U, n, buckets(c), d, t->e);
    mhf_gate_mix_backward(t->e, s->gate, t->x, U, n, d, t->de, t->score);
    mhf_silu(s->pre, U * n * m, t->hidden);
    /* dhidden takes the place of hidden once dw2 has used it: out = 1, so dhidden = dscore w2. */
    if (dw->w2)
        mhf_gemm(MHF_T, MHF_N, 1, m, U * n, t->score, 1, t->hidden, m, 1.0f, dw->w2, m);
    for (int64_t i = 0; dw->c2 && i < U * n; i++)
        dw->c2[0] += t->score[i];
    mhf_gemm(MHF_N, MHF_N, U * n, m, 1, t->score, 1, w->w2, m, 0.0f, t->hidden, m);
    mhf_silu_backward(s->pre, t->hidden, U * n * m, t->hidden);
    mhf_linear_backward(t->e, w->W1, t->hidden, U * n, d, m, 1.0f, t->de, dw->W1, dw->c1);
    if (dw->E)
        mhf_gather_backward(t->de, t->ids, n, U, n, buckets(c), d, dw->E);
}
