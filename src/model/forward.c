/* SPDX-License-Identifier: ISC */
/* A whole model on one rank: hidden states and probabilities without gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "head.h"
#include "layer.h"
#include "mhf/tensor.h"

/* Tokens run through the layers together; bounds the scratch of a long sequence. */
enum { PASS = 512 };

mhf_status mhf_model_new(const mhf_config *config, mhf_registry *registry, mhf_params *params,
                         mhf_signatures *table, mhf_model **out)
{
    mhf_model *model;
    MHF_TRY(mhf_new(&model, 1, sizeof *model, "a model"));
    model->config = *config;
    model->registry = *registry;
    model->params = *params;
    model->params.registry = &model->registry;
    *registry = (mhf_registry){0};
    *params = (mhf_params){0};
    if (table) {
        model->table = *table;
        *table = (mhf_signatures){0};
    }
    *out = model;
    return MHF_OK;
}

void mhf_model_free(mhf_model *model)
{
    if (!model)
        return;
    mhf_params_free(&model->params);
    mhf_registry_free(&model->registry);
    mhf_signatures_free(&model->table);
    free(model);
}

mhf_status mhf_cache_reserve(const mhf_model *model, mhf_cache *cache, int64_t capacity)
{
    const mhf_config *c = &model->config;
    const int64_t L = c->num_hidden_layers, kv = (int64_t)c->num_key_value_heads * c->head_dim;
    if (capacity <= cache->capacity)
        return MHF_OK;
    mhf_cache grown = {.n = cache->n, .capacity = capacity};
    mhf_status status = mhf_new(&grown.k, L * capacity * kv, sizeof(float), "the key-value cache");
    if (status == MHF_OK)
        status = mhf_new(&grown.v, L * capacity * kv, sizeof(float), "the key-value cache");
    if (status != MHF_OK) {
        mhf_cache_free(&grown);
        return status;
    }
    const size_t used = (size_t)(cache->n * kv) * sizeof(float);
    for (int64_t l = 0; used > 0 && l < L; l++) {
        memcpy(grown.k + l * capacity * kv, cache->k + l * cache->capacity * kv, used);
        memcpy(grown.v + l * capacity * kv, cache->v + l * cache->capacity * kv, used);
    }
    mhf_cache_free(cache);
    *cache = grown;
    return MHF_OK;
}

void mhf_cache_free(mhf_cache *cache)
{
    free(cache->k);
    free(cache->v);
    *cache = (mhf_cache){0};
}

/* Scratch of one call. */
typedef struct pass {
    encoder_state encoder;
    encoder_scratch encoder_work;
    layer_state state;
    layer_scratch work;
    float *rstd;
    float *cos_table, *sin_table; /* [n,h/2] of the positions of this pass */
} pass;

static mhf_status pass_new(const mhf_config *c, int64_t n, pass *out)
{
    MHF_TRY(encoder_state_new(c, n, &out->encoder));
    MHF_TRY(encoder_scratch_new(c, n, &out->encoder_work));
    MHF_TRY(layer_state_new(c, n, &out->state));
    MHF_TRY(layer_scratch_new(c, n, &out->work));
    MHF_TRY(mhf_new(&out->rstd, n, sizeof(float), "the final norm"));
    MHF_TRY(mhf_new(&out->cos_table, n * (c->head_dim / 2), sizeof(float), "rotary angles"));
    return mhf_new(&out->sin_table, n * (c->head_dim / 2), sizeof(float), "rotary angles");
}

static void pass_free(pass *p)
{
    encoder_state_free(&p->encoder);
    encoder_scratch_free(&p->encoder_work);
    layer_state_free(&p->state);
    layer_scratch_free(&p->work);
    free(p->rstd);
    free(p->cos_table);
    free(p->sin_table);
}

/* p->state.x = layer of p->state.x for n rows at positions past …; keys and values go to the cache.
 */
static mhf_status cached_layer(const mhf_model *model, int32_t l, int64_t n, mhf_cache *cache,
                               pass *p)
{
    const mhf_config *c = &model->config;
    const int64_t d = c->hidden_size, h = c->head_dim, f = c->intermediate_size;
    const int64_t n_q = c->num_attention_heads, n_kv = c->num_key_value_heads;
    const int64_t q = n_q * h, kv = n_kv * h, qkv = q + 2 * kv, past = cache->n;
    const float eps = (float)c->rms_norm_eps;
    layer_state *s = &p->state;
    layer_scratch *t = &p->work;
    layer_tensors W;
    layer_tensors_find(&model->registry, l, model->params.value, &W);
    float *keys = cache->k + l * cache->capacity * kv,
          *values = cache->v + l * cache->capacity * kv;

    mhf_rmsnorm(s->x, W.norm1, n, d, eps, t->normed, s->rstd1);
    mhf_linear(t->normed, W.q, NULL, n, d, qkv, s->qkv);
    mhf_head_norm_rotary(s->qkv, qkv, W.q_norm, t->position, p->cos_table, p->sin_table, n, n_q, h,
                         eps, s->q, q, s->rstd_q);
    mhf_head_norm_rotary(s->qkv + q, qkv, W.k_norm, t->position, p->cos_table, p->sin_table, n,
                         n_kv, h, eps, keys + past * kv, kv, s->rstd_k);
    for (int64_t i = 0; i < n; i++)
        memcpy(values + (past + i) * kv, s->qkv + i * qkv + q + kv, (size_t)kv * sizeof(float));
    MHF_TRY(mhf_attention_cached(n, past, n_q, n_kv, h, s->q, keys, values, s->o));
    memcpy(s->mid, s->x, (size_t)(n * d) * sizeof(float));
    mhf_gemm(MHF_N, MHF_T, n, d, q, s->o, q, W.o, q, 1.0f, s->mid, d);

    mhf_rmsnorm(s->mid, W.norm2, n, d, eps, t->normed, s->rstd2);
    mhf_linear(t->normed, W.gate, NULL, n, d, 2 * f, s->gu);
    mhf_swiglu(s->gu, n, f, t->y);
    memcpy(s->x, s->mid, (size_t)(n * d) * sizeof(float));
    mhf_gemm(MHF_N, MHF_T, n, d, f, t->y, f, W.down, f, 1.0f, s->x, d);
    return MHF_OK;
}

static void copy_out(const float *x, int64_t n, int64_t d, float *const *layers, int32_t i,
                     int64_t first)
{
    if (layers && layers[i])
        memcpy(layers[i] + first * d, x, (size_t)(n * d) * sizeof *x);
}

/* One pass of n ≤ PASS tokens; their rows in layers and out start at `first`. */
static mhf_status run_pass(const mhf_model *model, const mhf_token *ids, int64_t n,
                           mhf_cache *cache, pass *p, float *const *layers, float *out,
                           int64_t first)
{
    const mhf_config *c = &model->config;
    const int64_t d = c->hidden_size;
    const int32_t L = c->num_hidden_layers;
    encoder_tensors encoder;
    encoder_tensors_find(&model->registry, c, model->params.value, &encoder);
    for (int64_t i = 0; i < n; i++)
        p->work.position[i] = (int32_t)i;
    mhf_rotary_table(cache->n, n, c->head_dim, c->rope_theta, p->cos_table, p->sin_table);
    MHF_TRY(encoder_forward(c, &encoder, &model->table, ids, n, &p->encoder, &p->encoder_work,
                            p->state.x));
    copy_out(p->state.x, n, d, layers, 0, first);
    for (int32_t l = 0; l < L; l++) {
        MHF_TRY(cached_layer(model, l, n, cache, p));
        copy_out(p->state.x, n, d, layers, l + 1, first);
    }
    const float *norm =
        model->params.value[mhf_registry_find(&model->registry, "model.norm.weight")];
    mhf_rmsnorm(p->state.x, norm, n, d, (float)c->rms_norm_eps, p->work.normed, p->rstd);
    copy_out(p->work.normed, n, d, layers, L + 1, first);
    if (out)
        memcpy(out + first * d, p->work.normed, (size_t)(n * d) * sizeof *out);
    cache->n += n;
    return MHF_OK;
}

mhf_status mhf_model_forward(const mhf_model *model, const mhf_token *ids, int64_t n,
                             mhf_cache *cache, float *const *layers, float *out)
{
    mhf_cache own = {0};
    pass p = {0};
    if (!cache)
        cache = &own;
    if (cache->n + n > model->config.max_position_embeddings)
        return mhf_fail(MHF_E_DATA, "%lld tokens are more than the model's %d positions",
                        (long long)(cache->n + n), model->config.max_position_embeddings);
    mhf_status status = mhf_cache_reserve(model, cache, cache->n + n);
    if (status == MHF_OK)
        status = pass_new(&model->config, n < PASS ? n : PASS, &p);
    for (int64_t first = 0; status == MHF_OK && first < n; first += PASS) {
        int64_t m = n - first < PASS ? n - first : PASS;
        status = run_pass(model, ids + first, m, cache, &p, layers, out, first);
    }
    pass_free(&p);
    mhf_cache_free(&own);
    return status;
}

/* ---- head ----------------------------------------------------------------------------------- */

mhf_status mhf_model_head(const mhf_model *model, const float *hidden, int64_t n, float *const *z)
{
    const mhf_config *c = &model->config;
    const int64_t B = c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
    const int64_t H = c->head == MHF_HEAD_MHF ? c->num_hashes : 1;
    head_tensors w = {0};
    head_scratch scratch = {0};
    mhf_status status = head_tensors_find(&model->params, c, &w);
    if (status == MHF_OK)
        status = head_scratch_new(c, MHF_PRODUCT, n, &scratch);
    for (int64_t first = 0; status == MHF_OK && first < n; first += HEAD_CHUNK) {
        float *part[MHF_MAX_HASHES];
        for (int64_t k = 0; k < H; k++)
            part[k] = z[k] + first * B;
        head_logits(c, &w, hidden + first * c->hidden_size,
                    n - first < HEAD_CHUNK ? n - first : HEAD_CHUNK, &scratch, part);
    }
    head_scratch_free(&scratch);
    free(w.mixers);
    return status;
}

/* logits [V] → log P over the first `counted`, -infinity past them. */
static void normalise(float *logits, int64_t V, int64_t counted)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < counted; v++)
        largest = logits[v] > largest ? logits[v] : largest;
    for (int64_t v = 0; v < counted; v++)
        sum += exp((double)logits[v] - largest);
    const double lse = largest + log(sum);
    for (int64_t v = 0; v < V; v++)
        logits[v] = v < counted ? (float)((double)logits[v] - lse) : -INFINITY;
}

mhf_status mhf_model_log_probabilities(const mhf_model *model, const float *hidden, int64_t n,
                                       int32_t counted, double temperature, float *logp)
{
    const mhf_config *c = &model->config;
    const int64_t V = c->vocab_size, d = c->hidden_size, H = c->num_hashes, B = c->num_buckets;
    const float inverse = (float)(1.0 / temperature);
    if (c->head == MHF_HEAD_STANDARD) {
        MHF_TRY(mhf_model_head(model, hidden, n, &logp));
        mhf_scale(inverse, n * V, logp);
    }
    float *block = NULL, *z[MHF_MAX_HASHES];
    const int64_t chunk = n < HEAD_CHUNK ? n : HEAD_CHUNK;
    if (c->head == MHF_HEAD_MHF)
        MHF_TRY(mhf_new(&block, H * chunk * B, sizeof *block, "logits"));
    for (int64_t k = 0; block && k < H; k++)
        z[k] = block + k * chunk * B;
    mhf_status status = MHF_OK;
    for (int64_t first = 0; block && status == MHF_OK && first < n; first += chunk) {
        int64_t m = n - first < chunk ? n - first : chunk;
        status = mhf_model_head(model, hidden + first * d, m, z);
        if (status == MHF_OK)
            mhf_vocabulary_logits((const float *const *)z, model->table.ids, m, H, B, V, inverse,
                                  logp + first * V);
    }
    free(block);
    for (int64_t t = 0; status == MHF_OK && t < n; t++)
        normalise(logp + t * V, V, counted);
    return status;
}
