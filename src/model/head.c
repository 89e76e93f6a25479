/* SPDX-License-Identifier: ISC */
#include "head.h"

#include <stdlib.h>
#include <string.h>

#include "mhf/tensor.h"

/* Values or gradients by registry index. */
static mhf_status find_mixers(const mhf_params *params, const mhf_config *c, float *const *pointers,
                              mixer_tensors **out)
{
    int32_t n = c->num_hashes - 1;
    *out = NULL;
    if (n <= 0)
        return MHF_OK;
    MHF_TRY(mhf_new(out, n, sizeof **out, "the cascade's tensors"));
    int32_t first = mhf_registry_find(params->registry, "hash_head.cascade_mixer.0.0.weight");
    for (int32_t k = 0; k < n; k++) {
        float *const *four = pointers + first + 4 * k;
        (*out)[k] = (mixer_tensors){four[0], four[1], four[2], four[3]};
    }
    return MHF_OK;
}

mhf_status head_tensors_find(const mhf_params *params, const mhf_config *c, head_tensors *out)
{
    const mhf_registry *r = params->registry;
    int32_t lm_head = mhf_registry_find(r, "lm_head.weight");
    out->retrieved = params->value[mhf_registry_find(r, "model.embed_tokens.weight")];
    out->logits = lm_head < 0 ? out->retrieved : params->value[lm_head];
    return find_mixers(params, c, params->value, &out->mixers);
}

mhf_status head_gradients_find(const mhf_params *params, const mhf_config *c, head_gradients *out)
{
    int32_t lm_head = mhf_registry_find(params->registry, "lm_head.weight");
    out->retrieved = params->head_gradient;
    out->logits = lm_head < 0 ? out->retrieved : params->gradient[lm_head];
    return find_mixers(params, c, params->gradient, &out->mixers);
}

/* Rows of one coordinate's matrix. */
static int64_t width_of(const mhf_config *c)
{
    return c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
}

static int64_t coordinates(const mhf_config *c)
{
    return c->head == MHF_HEAD_MHF ? c->num_hashes : 1;
}

static int64_t chunk_of(int64_t max_tokens)
{
    return max_tokens < HEAD_CHUNK ? max_tokens : HEAD_CHUNK;
}

int64_t head_scratch_floats(const mhf_config *c, mhf_objective objective, int64_t max_tokens)
{
    const int64_t H = coordinates(c), B = width_of(c), d = c->hidden_size, m = c->bottle_neck_dim;
    const int64_t kept = c->head == MHF_HEAD_MHF && objective == MHF_VOCABULARY ? 2 : 1;
    return chunk_of(max_tokens) * (kept * H * B + 3 * H * d + H * m + 2 * m + d + 3);
}

mhf_status head_scratch_new(const mhf_config *c, mhf_objective objective, int64_t max_tokens,
                            head_scratch *out)
{
    const int64_t H = coordinates(c), B = width_of(c), d = c->hidden_size, m = c->bottle_neck_dim;
    const int64_t n = chunk_of(max_tokens);
    const char *what = "the head's scratch";
    *out = (head_scratch){0};
    MHF_TRY(mhf_new(&out->p, n * H * B, sizeof(float), what));
    if (c->head == MHF_HEAD_MHF && objective == MHF_VOCABULARY)
        MHF_TRY(mhf_new(&out->z, n * H * B, sizeof(float), what));
    MHF_TRY(mhf_new(&out->gh, n * 2 * H * d, sizeof(float), what));
    MHF_TRY(mhf_new(&out->s, n * H * d, sizeof(float), what));
    MHF_TRY(mhf_new(&out->pre, n * H * m, sizeof(float), what));
    MHF_TRY(mhf_new(&out->hidden, n * m, sizeof(float), what));
    MHF_TRY(mhf_new(&out->dhidden, n * m, sizeof(float), what));
    MHF_TRY(mhf_new(&out->dh, n * d, sizeof(float), what));
    MHF_TRY(mhf_new(&out->lse, n, sizeof(float), what));
    MHF_TRY(mhf_new(&out->z_target, n, sizeof(float), what));
    return mhf_new(&out->target, n, sizeof(int32_t), what);
}

void head_scratch_free(head_scratch *t)
{
    float *const blocks[] = {t->p,      t->z,       t->gh, t->s,   t->pre,
                             t->hidden, t->dhidden, t->dh, t->lse, t->z_target};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    free(t->target);
    *t = (head_scratch){0};
}

/* ---- the cascade's parts, over n rows ----------------------------------------------------------
 */

/* z [n,B] = h E_kᵀ. */
static void coordinate_logits(const mhf_config *c, const head_tensors *w, int64_t k, const float *h,
                              int64_t n, float *z)
{
    const int64_t B = width_of(c), d = c->hidden_size;
    mhf_gemm(MHF_N, MHF_T, n, B, d, h, d, w->logits + k * B * d, d, 0.0f, z, B);
}

/* s = p E'_k;  pre = V₁ [h ; s] + u₁;  next = h + V₂ silu(pre) + u₂. */
static void mix_forward(const mhf_config *c, const head_tensors *w, int64_t k, const float *h,
                        const float *p, int64_t n, float *s, float *pre, float *hidden, float *next)
{
    const int64_t B = width_of(c), d = c->hidden_size, m = c->bottle_neck_dim;
    const mixer_tensors *mixer = &w->mixers[k];
    mhf_gemm(MHF_N, MHF_N, n, d, B, p, B, w->retrieved + k * B * d, d, 0.0f, s, d);
    for (int64_t t = 0; t < n; t++)
        memcpy(pre + t * m, mixer->u1, (size_t)m * sizeof *pre);
    mhf_gemm(MHF_N, MHF_T, n, m, d, h, d, mixer->V1, 2 * d, 1.0f, pre, m);
    mhf_gemm(MHF_N, MHF_T, n, m, d, s, d, mixer->V1 + d, 2 * d, 1.0f, pre, m);
    mhf_silu(pre, n * m, hidden);
    mhf_linear(hidden, mixer->V2, mixer->u2, n, m, d, next);
    mhf_add(h, n * d, next);
}

/* dh [n,d]: gradient of next on entry, of h through mixer and residual on return; G: of s. */
static void mix_backward(const mhf_config *c, const head_tensors *w, const head_gradients *dw,
                         int64_t k, const float *h, const float *s, const float *pre, int64_t n,
                         head_scratch *t, float *dh, float *G)
{
    const int64_t d = c->hidden_size, m = c->bottle_neck_dim;
    const mixer_tensors *mixer = &w->mixers[k], *dmixer = &dw->mixers[k];
    mhf_silu(pre, n * m, t->hidden);
    mhf_linear_backward(t->hidden, mixer->V2, dh, n, m, d, 0.0f, t->dhidden, dmixer->V2,
                        dmixer->u2);
    mhf_silu_backward(pre, t->dhidden, n * m, t->dhidden);
    mhf_gemm(MHF_N, MHF_N, n, d, m, t->dhidden, m, mixer->V1, 2 * d, 1.0f, dh, d);
    mhf_gemm(MHF_N, MHF_N, n, d, m, t->dhidden, m, mixer->V1 + d, 2 * d, 0.0f, G, d);
    if (dmixer->V1) {
        mhf_gemm(MHF_T, MHF_N, m, d, n, t->dhidden, m, h, d, 1.0f, dmixer->V1, 2 * d);
        mhf_gemm(MHF_T, MHF_N, m, d, n, t->dhidden, m, s, d, 1.0f, dmixer->V1 + d, 2 * d);
    }
    for (int64_t i = 0; dmixer->u1 && i < n; i++)
        mhf_add(t->dhidden + i * m, m, dmixer->u1);
}

/* ---- one chunk: forward of all coordinates, then backward ----------------------------------- */

/* A chunk's view of the scratch; strides follow the chunk's own n, so that neighbours touch: p_k
 * and the slot after it, which holds dz_k once p_{k+1} is done with, are one matrix of 2n rows; so
 * are G_k and h_k. dE_k then takes one product: [p; dz]ᵀ [G; h]. */
typedef struct chunk {
    int64_t n, H, B, d, m;
    head_scratch *t;
} chunk;

static float *p_of(const chunk *x, int64_t k)
{
    return x->t->p + k * x->n * x->B;
}

static float *z_of(const chunk *x, int64_t k)
{
    return x->t->z + k * x->n * x->B;
}

static float *G_of(const chunk *x, int64_t k)
{
    return x->t->gh + k * 2 * x->n * x->d;
}

static float *h_of(const chunk *x, int64_t k)
{
    return G_of(x, k) + x->n * x->d;
}

static void fill_targets(const mhf_config *c, const mhf_signatures *table, const mhf_token *next,
                         int64_t k, const chunk *x)
{
    for (int64_t t = 0; t < x->n; t++)
        x->t->target[t] = next[t] < 0 ? -1
                          : c->head == MHF_HEAD_MHF
                              ? (int32_t)table->ids[(int64_t)next[t] * x->H + k]
                              : next[t];
}

/* Turn logits into probabilities; Σ nats of the coordinate. */
static double softmax_loss(const chunk *x, float *z)
{
    for (int64_t t = 0; t < x->n; t++)
        x->t->z_target[t] = x->t->target[t] < 0 ? 0.0f : z[t * x->B + x->t->target[t]];
    mhf_softmax(z, x->n, x->B, x->B, x->t->lse);
    return mhf_cross_entropy(x->t->z_target, x->t->lse, x->t->target, x->n);
}

static mhf_status chunk_forward(const mhf_config *c, mhf_objective objective, const head_tensors *w,
                                const mhf_signatures *table, const mhf_token *next, float scale,
                                const chunk *x, mhf_losses *losses)
{
    const bool vocabulary = x->t->z && objective == MHF_VOCABULARY;
    for (int64_t k = 0; k < x->H; k++) {
        float *z = vocabulary ? z_of(x, k) : p_of(x, k);
        coordinate_logits(c, w, k, h_of(x, k), x->n, z);
        if (!vocabulary) {
            fill_targets(c, table, next, k, x);
            losses->nats[k] += softmax_loss(x, z);
        } else if (k < x->H - 1) {
            memcpy(p_of(x, k), z, (size_t)(x->n * x->B) * sizeof *z);
            mhf_softmax(p_of(x, k), x->n, x->B, x->B, NULL);
        }
        if (k < x->H - 1)
            mix_forward(c, w, k, h_of(x, k), p_of(x, k), x->n, x->t->s + k * x->n * x->d,
                        x->t->pre + k * x->n * x->m, x->t->hidden, h_of(x, k + 1));
    }
    if (!vocabulary)
        return MHF_OK;
    float *z[MHF_MAX_HASHES];
    for (int64_t k = 0; k < x->H; k++)
        z[k] = z_of(x, k);
    const int64_t rows = c->normalize_padding_rows ? table->rows : table->size;
    double nats = 0;
    int64_t correct = 0;
    MHF_TRY(mhf_vocabulary_loss((const float *const *)z, table->ids, next, x->n, x->H, x->B, rows,
                                scale, z, &nats, &correct));
    losses->nats[0] += nats;
    return MHF_OK;
}

/* dh [n,d] = gradient of the chunk's hidden states. */
static void chunk_backward(const mhf_config *c, mhf_objective objective, const head_tensors *w,
                           const head_gradients *dw, const mhf_signatures *table,
                           const mhf_token *next, float scale, const chunk *x, float *dh)
{
    const bool vocabulary = x->t->z && objective == MHF_VOCABULARY;
    const int64_t n = x->n, B = x->B, d = x->d;
    for (int64_t k = x->H - 1; k >= 0; k--) {
        const float *E_k = w->logits + k * B * d;
        float *dE_k = dw->logits ? dw->logits + k * B * d : NULL;
        const float *base = vocabulary ? z_of(x, k) : NULL;
        if (!vocabulary)
            fill_targets(c, table, next, k, x);
        if (k == x->H - 1) { /* no retrieval follows */
            const float *dz = base;
            if (!dz) {
                mhf_cross_entropy_backward(p_of(x, k), x->t->target, scale, n, B, p_of(x, k));
                dz = p_of(x, k);
            }
            mhf_gemm(MHF_N, MHF_N, n, d, B, dz, B, E_k, d, 0.0f, dh, d);
            if (dE_k)
                mhf_gemm(MHF_T, MHF_N, B, d, n, dz, B, h_of(x, k), d, 1.0f, dE_k, d);
            continue;
        }
        float *dz = p_of(x, k + 1);
        const float *retrieved = w->retrieved + k * B * d;
        mix_backward(c, w, dw, k, h_of(x, k), x->t->s + k * n * d, x->t->pre + k * n * x->m, n,
                     x->t, dh, G_of(x, k));
        mhf_gemm(MHF_N, MHF_T, n, B, d, G_of(x, k), d, retrieved, d, 0.0f, dz, B);
        mhf_retrieval_backward(p_of(x, k), base, x->t->target, scale, n, B, dz);
        mhf_gemm(MHF_N, MHF_N, n, d, B, dz, B, E_k, d, 1.0f, dh, d);
        if (dE_k && dw->retrieved == dw->logits) {
            mhf_gemm(MHF_T, MHF_N, B, d, 2 * n, p_of(x, k), B, G_of(x, k), d, 1.0f, dE_k, d);
        } else {
            if (dE_k)
                mhf_gemm(MHF_T, MHF_N, B, d, n, dz, B, h_of(x, k), d, 1.0f, dE_k, d);
            if (dw->retrieved)
                mhf_gemm(MHF_T, MHF_N, B, d, n, p_of(x, k), B, G_of(x, k), d, 1.0f,
                         dw->retrieved + k * B * d, d);
        }
    }
}

mhf_status head_run(const mhf_config *c, mhf_objective objective, const head_tensors *w,
                    const head_gradients *dw, const mhf_signatures *table, const float *hidden,
                    const mhf_token *next, int64_t N, float scale, head_scratch *t, float *dhidden,
                    mhf_losses *losses)
{
    const int64_t d = c->hidden_size;
    for (int64_t first = 0; first < N; first += HEAD_CHUNK) {
        chunk x = {.n = N - first < HEAD_CHUNK ? N - first : HEAD_CHUNK,
                   .H = coordinates(c),
                   .B = width_of(c),
                   .d = d,
                   .m = c->bottle_neck_dim,
                   .t = t};
        memcpy(h_of(&x, 0), hidden + first * d, (size_t)(x.n * d) * sizeof(float));
        MHF_TRY(chunk_forward(c, objective, w, table, next + first, scale, &x, losses));
        if (dhidden)
            chunk_backward(c, objective, w, dw, table, next + first, scale, &x,
                           dhidden + first * d);
    }
    return MHF_OK;
}

void head_logits(const mhf_config *c, const head_tensors *w, const float *hidden, int64_t n,
                 head_scratch *t, float *const *z)
{
    const int64_t d = c->hidden_size;
    chunk x = {
        .n = n, .H = coordinates(c), .B = width_of(c), .d = d, .m = c->bottle_neck_dim, .t = t};
    memcpy(h_of(&x, 0), hidden, (size_t)(n * d) * sizeof(float));
    for (int64_t k = 0; k < x.H; k++) {
        coordinate_logits(c, w, k, h_of(&x, k), n, z[k]);
        if (k == x.H - 1)
            break;
        memcpy(p_of(&x, k), z[k], (size_t)(n * x.B) * sizeof(float));
        mhf_softmax(p_of(&x, k), n, x.B, x.B, NULL);
        mix_forward(c, w, k, h_of(&x, k), p_of(&x, k), n, t->s, t->pre, t->hidden, h_of(&x, k + 1));
    }
}
