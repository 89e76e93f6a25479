/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "mhf/model.h"

static const struct preset {
    const char *name;
    int32_t hidden_size, layers, heads, kv_heads, head_dim, intermediate_size, positions;
} presets[] = {
    {"100m", 768, 12, 12, 2, 64, 2560, 32768},
    {"500m", 1024, 28, 16, 8, 128, 3072, 32768},
    {"1b", 2048, 20, 16, 8, 128, 6144, 40960},
    {"3b", 2048, 36, 16, 2, 128, 11008, 40960},
};

mhf_status mhf_config_preset(const char *name, mhf_config *config)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset *p = &presets[i];
        if (strcmp(name, p->name) != 0)
            continue;
        config->hidden_size = p->hidden_size;
        config->num_hidden_layers = p->layers;
        config->num_attention_heads = p->heads;
        config->num_key_value_heads = p->kv_heads;
        config->head_dim = p->head_dim;
        config->intermediate_size = p->intermediate_size;
        config->max_position_embeddings = p->positions;
        return MHF_OK;
    }
    return mhf_fail(MHF_E_CONFIG, "model.preset is '%s', expected 100m, 500m, 1b or 3b", name);
}

static mhf_status check_range(const char *key, int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high)
        return mhf_fail(MHF_E_CONFIG, "model.%s is %lld, expected %lld to %lld", key,
                        (long long)value, (long long)low, (long long)high);
    return MHF_OK;
}

static mhf_status check_geometry(const mhf_config *c)
{
    MHF_TRY(check_range("vocab_size", c->vocab_size, 1, INT32_MAX - 128));
    MHF_TRY(check_range("hidden_size", c->hidden_size, 1, 1 << 20));
    MHF_TRY(check_range("num_hidden_layers", c->num_hidden_layers, 1, 4096));
    MHF_TRY(check_range("num_attention_heads", c->num_attention_heads, 1, 4096));
    MHF_TRY(check_range("num_key_value_heads", c->num_key_value_heads, 1, 4096));
    MHF_TRY(check_range("head_dim", c->head_dim, 2, 4096));
    MHF_TRY(check_range("intermediate_size", c->intermediate_size, 1, 1 << 22));
    MHF_TRY(check_range("max_position_embeddings", c->max_position_embeddings, 1, 1 << 24));
    if (c->num_attention_heads % c->num_key_value_heads != 0)
        return mhf_fail(MHF_E_CONFIG,
                        "model.num_attention_heads is %d, expected a multiple of "
                        "num_key_value_heads %d",
                        c->num_attention_heads, c->num_key_value_heads);
    if (c->head_dim % 2 != 0)
        return mhf_fail(MHF_E_CONFIG, "model.head_dim is %d, expected an even number (rotary)",
                        c->head_dim);
    if (!(c->rms_norm_eps > 0 && c->rms_norm_eps < 1))
        return mhf_fail(MHF_E_CONFIG, "model.rms_norm_eps is %g, expected above 0 and below 1",
                        c->rms_norm_eps);
    if (!(c->rope_theta > 1 && c->rope_theta < 1e30))
        return mhf_fail(MHF_E_CONFIG, "model.rope_theta is %g, expected above 1", c->rope_theta);
    return MHF_OK;
}

mhf_status mhf_config_check(const mhf_config *c)
{
    MHF_TRY(check_geometry(c));
    if (c->head == MHF_HEAD_STANDARD)
        return MHF_OK;
    MHF_TRY(check_range("num_hashes", c->num_hashes, 1, MHF_MAX_HASHES));
    MHF_TRY(check_range("num_buckets", c->num_buckets, 2, INT32_MAX / MHF_MAX_HASHES));
    MHF_TRY(check_range("num_lsh", c->num_lsh, 0, c->num_hashes));
    MHF_TRY(check_range("bottle_neck_dim", c->bottle_neck_dim, 1, 1 << 20));
    if (c->lsh_only_embed && c->num_lsh == 0)
        return mhf_fail(
            MHF_E_CONFIG,
            "model.lsh_only_embed is true and num_lsh is 0, expected num_lsh of 1 or more");
    return MHF_OK;
}

int32_t mhf_config_encoder_hashes(const mhf_config *c)
{
    return c->lsh_only_embed ? c->num_lsh : c->num_hashes;
}

int64_t mhf_config_embedding_rows(const mhf_config *c)
{
    return c->head == MHF_HEAD_MHF ? (int64_t)c->num_hashes * c->num_buckets : c->vocab_size;
}
