/* SPDX-License-Identifier: ISC */
/* The heads: the cascaded hash decoder (model.md §4) or a standard softmax, forward and backward in
 * one pass over chunks of tokens: the targets and the loss's scale are known before, so nothing of
 * size N×B outlives its chunk. */
#ifndef MHF_MODEL_HEAD_H
#define MHF_MODEL_HEAD_H

#include "mhf/model.h"

/* Tokens of a chunk: enough that the product into dE is not bound by dE's memory traffic. */
enum { HEAD_CHUNK = 512 };

/* One cascade mixer. */
typedef struct mixer_tensors {
    float *V1, *u1; /* [m,2d], [m] */
    float *V2, *u2; /* [d,m], [d] */
} mixer_tensors;

/* Values. */
typedef struct head_tensors {
    const float *logits;    /* [H·B,d] (standard: [V,d]): E when tied, else lm_head */
    const float *retrieved; /* [H·B,d] E, which the soft retrieval reads */
    mixer_tensors *mixers;  /* [H-1] */
} head_tensors;

/* Gradients; NULL members are not trained. Tied: logits == retrieved. */
typedef struct head_gradients {
    float *logits, *retrieved;
    mixer_tensors *mixers; /* [H-1] */
} head_gradients;

mhf_status head_tensors_find(const mhf_params *params, const mhf_config *c, head_tensors *out);
mhf_status head_gradients_find(const mhf_params *params, const mhf_config *c, head_gradients *out);

typedef struct head_scratch {
    float *p;   /* [H] slots of [chunk,B]: probabilities, then gradients (see head.c) */
    float *z;   /* [H] slots of [chunk,B]: logits kept for the vocabulary objective, else NULL */
    float *gh;  /* [H] pairs of [chunk,d]: G_k and h_k, one matrix */
    float *s;   /* [chunk,d] soft retrieval, one a coordinate [H] */
    float *pre; /* [H] of [chunk,m] mixers before silu */
    float *hidden, *dhidden; /* [chunk,m] */
    float *dh;               /* [chunk,d] */
    float *lse, *z_target;   /* [chunk] */
    int32_t *target;         /* [chunk] bucket, or token for standard */
} head_scratch;

int64_t head_scratch_floats(const mhf_config *c, mhf_objective objective, int64_t max_tokens);
mhf_status head_scratch_new(const mhf_config *c, mhf_objective objective, int64_t max_tokens,
                            head_scratch *out);
void head_scratch_free(head_scratch *scratch);

/* hidden [N,d] after the final norm; next [N] target token or -1. dhidden [N,d] is overwritten with
 * scale times the gradient of the summed cross-entropies (NULL: losses alone); losses are added to.
 */
mhf_status head_run(const mhf_config *c, mhf_objective objective, const head_tensors *w,
                    const head_gradients *dw, const mhf_signatures *table, const float *hidden,
                    const mhf_token *next, int64_t N, float scale, head_scratch *scratch,
                    float *dhidden, mhf_losses *losses);

/* Forward only, n ≤ HEAD_CHUNK rows: z[k] [n,B], or z[0] [n,V]. Uses scratch->{p,gh,s,pre,hidden}.
 */
void head_logits(const mhf_config *c, const head_tensors *w, const float *hidden, int64_t n,
                 head_scratch *scratch, float *const *z);

#endif
