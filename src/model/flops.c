/* SPDX-License-Identifier: ISC */
#include "mhf/model.h"

double mhf_unit_flops(const mhf_config *c, int32_t unit, int64_t T)
{
    const double d = c->hidden_size, h = c->head_dim, f = c->intermediate_size;
    const double B = c->num_buckets, H = c->num_hashes, m = c->bottle_neck_dim;
    const double q = c->num_attention_heads * h, kv = c->num_key_value_heads * h;
    if (unit == 0) /* the encoder works on distinct tokens: an upper bound that counts all */
        return c->head == MHF_HEAD_MHF ? 6.0 * (d * d + mhf_config_encoder_hashes(c) * m * d) : 0.0;
    if (unit <=
        c->num_hidden_layers) /* scores and mix, half of T² each since causal: 2·(2·q·T/2) */
        return 6.0 * (d * (q + 2 * kv) + q * d + 3 * d * f) + 3.0 * (2.0 * q * (double)T);
    if (c->head == MHF_HEAD_STANDARD)
        return 6.0 * d * c->vocab_size;
    return 6.0 * d * B * (2 * H - 1) + 6.0 * (H - 1) * 3 * d * m;
}
