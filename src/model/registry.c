/* SPDX-License-Identifier: ISC */
/* The one list of a model's parameters: names and shapes as Hugging Face has them, in the released
 * state_dict's order but for lm_head, which stands right after the final norm there too. */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/model.h"

typedef struct builder {
    mhf_registry *registry;
    int64_t capacity;
    mhf_status status; /* sticky: the first failure */
} builder;

static mhf_param *add(builder *b, int32_t unit, int64_t rows, int64_t cols, bool decays,
                      const char *format, ...) MHF_PRINTF(6, 7);

static mhf_param *add(builder *b, int32_t unit, int64_t rows, int64_t cols, bool decays,
                      const char *format, ...)
{
    static mhf_param nowhere;
    mhf_registry *r = b->registry;
    if (b->status == MHF_OK)
        b->status = mhf_grow(&r->params, &b->capacity, r->n + 1, sizeof *r->params, "parameters");
    if (b->status != MHF_OK)
        return &nowhere;
    mhf_param *p = &r->params[r->n++];
    *p = (mhf_param){.n_dims = cols > 0 ? 2 : 1,
                     .shape = {rows, cols > 0 ? cols : 1},
                     .unit = unit,
                     .decays = decays,
                     .trainable = true};
    if (!mhf_mul(p->shape[0], p->shape[1], &p->count) ||
        __builtin_add_overflow(r->total, p->count, &r->total))
        b->status = mhf_fail(MHF_E_CONFIG, "the model has more than 2^63 parameters");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->name, sizeof p->name, format, arguments);
    va_end(arguments);
    return p;
}

static void add_encoder(builder *b, const mhf_config *c)
{
    const int64_t d = c->hidden_size, m = c->bottle_neck_dim;
    if (c->head == MHF_HEAD_MHF) {
        add(b, 0, m, d, true, "model.combiner.scorer.0.weight");
        add(b, 0, m, 0, false, "model.combiner.scorer.0.bias");
        add(b, 0, 1, m, true, "model.combiner.scorer.2.weight");
        add(b, 0, 1, 0, false, "model.combiner.scorer.2.bias");
        add(b, 0, d, d, true, "model.combiner.output_proj.0.weight");
        add(b, 0, d, 0, false, "model.combiner.output_proj.0.bias");
    }
    mhf_param *E = add(b, 0, mhf_config_embedding_rows(c), d, true, "model.embed_tokens.weight");
    /* The head reads E as its matrix when tied, and in the soft retrieval of all but the last
     * coordinate. */
    E->also_head = c->tie_word_embeddings || (c->head == MHF_HEAD_MHF && c->num_hashes > 1);
    b->registry->embedding = E->count;
}

static void add_layer(builder *b, const mhf_config *c, int32_t l)
{
    const int64_t d = c->hidden_size, h = c->head_dim, f = c->intermediate_size;
    const int64_t q = c->num_attention_heads * h, kv = c->num_key_value_heads * h;
    const int32_t unit = l + 1;
    add(b, unit, q, d, true, "model.layers.%d.self_attn.q_proj.weight", l);
    add(b, unit, kv, d, true, "model.layers.%d.self_attn.k_proj.weight", l);
    add(b, unit, kv, d, true, "model.layers.%d.self_attn.v_proj.weight", l);
    add(b, unit, d, q, true, "model.layers.%d.self_attn.o_proj.weight", l);
    add(b, unit, h, 0, false, "model.layers.%d.self_attn.q_norm.weight", l);
    add(b, unit, h, 0, false, "model.layers.%d.self_attn.k_norm.weight", l);
    add(b, unit, f, d, true, "model.layers.%d.mlp.gate_proj.weight", l);
    add(b, unit, f, d, true, "model.layers.%d.mlp.up_proj.weight", l);
    add(b, unit, d, f, true, "model.layers.%d.mlp.down_proj.weight", l);
    add(b, unit, d, 0, false, "model.layers.%d.input_layernorm.weight", l);
    add(b, unit, d, 0, false, "model.layers.%d.post_attention_layernorm.weight", l);
}

static void add_head(builder *b, const mhf_config *c)
{
    const int64_t d = c->hidden_size, m = c->bottle_neck_dim;
    const int32_t unit = c->num_hidden_layers + 1;
    add(b, unit, d, 0, false, "model.norm.weight");
    if (!c->tie_word_embeddings)
        b->registry->embedding +=
            add(b, unit, mhf_config_embedding_rows(c), d, true, "lm_head.weight")->count;
    for (int32_t k = 0; c->head == MHF_HEAD_MHF && k < c->num_hashes - 1; k++) {
        add(b, unit, m, 2 * d, true, "hash_head.cascade_mixer.%d.0.weight", k);
        add(b, unit, m, 0, false, "hash_head.cascade_mixer.%d.0.bias", k);
        add(b, unit, d, m, true, "hash_head.cascade_mixer.%d.2.weight", k);
        add(b, unit, d, 0, false, "hash_head.cascade_mixer.%d.2.bias", k);
    }
}

mhf_status mhf_registry_new(const mhf_config *config, mhf_registry *out)
{
    *out = (mhf_registry){0};
    builder b = {.registry = out};
    add_encoder(&b, config);
    for (int32_t l = 0; l < config->num_hidden_layers; l++)
        add_layer(&b, config, l);
    add_head(&b, config);
    if (b.status != MHF_OK)
        mhf_registry_free(out);
    return b.status;
}

void mhf_registry_free(mhf_registry *registry)
{
    free(registry->params);
    *registry = (mhf_registry){0};
}

int32_t mhf_registry_find(const mhf_registry *registry, const char *name)
{
    for (int32_t i = 0; i < registry->n; i++)
        if (strcmp(registry->params[i].name, name) == 0)
            return i;
    return -1;
}

/* What the paper's vocabulary expansion trains: everything but the middle layers. */
static void train_expansion(mhf_registry *registry, const mhf_config *c)
{
    for (int32_t i = 0; i < registry->n; i++) {
        int32_t layer = registry->params[i].unit - 1;
        registry->params[i].trainable = layer < 2 || layer >= c->num_hidden_layers - 2;
    }
}

mhf_status mhf_registry_train_only(mhf_registry *registry, const mhf_config *config,
                                   const char *const *patterns, int32_t n)
{
    if (n == 1 && strcmp(patterns[0], "expansion") == 0) {
        train_expansion(registry, config);
        return MHF_OK;
    }
    bool all = n == 1 && strcmp(patterns[0], "all") == 0;
    for (int32_t i = 0; i < registry->n; i++)
        registry->params[i].trainable = all;
    for (int32_t j = 0; !all && j < n; j++) {
        bool matched = false;
        for (int32_t i = 0; i < registry->n; i++) {
            if (fnmatch(patterns[j], registry->params[i].name, 0) == 0)
                matched = registry->params[i].trainable = true;
        }
        if (!matched)
            return mhf_fail(MHF_E_CONFIG,
                            "train.trainable: the pattern '%s' matches no parameter of the model",
                            patterns[j]);
    }
    return MHF_OK;
}

bool mhf_param_held(const mhf_param *param, const mhf_config *config, mhf_units units)
{
    if (param->unit >= units.first && param->unit <= units.last)
        return true;
    return param->also_head && units.last == config->num_hidden_layers + 1;
}
