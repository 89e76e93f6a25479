/* SPDX-License-Identifier: ISC */
/* Tokens to embeddings: the hash encoder (model.md §2), or rows of a standard embedding. */
#ifndef MHF_MODEL_ENCODER_H
#define MHF_MODEL_ENCODER_H

#include "mhf/model.h"

/* Values, and the same struct of gradients (NULL members are not trained). Standard: E alone. */
typedef struct encoder_tensors {
    float *W1, *c1; /* [m,d], [m] */
    float *w2, *c2; /* [1,m], [1] */
    float *Wp, *bp; /* [d,d], [d] */
    float *E;       /* [H·B,d] */
} encoder_tensors;

void encoder_tensors_find(const mhf_registry *registry, const mhf_config *c, float *const *pointers,
                          encoder_tensors *out);

/* x depends on the token alone, so the encoder works on the distinct tokens of a micro-batch in
 * ascending id; N tokens hold U ≤ N of them. n is the number of coordinates it sums. */
typedef struct encoder_state {
    int64_t U;
    mhf_token *distinct; /* [N], U used */
    int32_t *index;      /* [N] place of a token among the distinct */
    float *pre;          /* [N·n,m] before silu */
    float *gate;         /* [N,n] a */
    float *mix;          /* [N,d] Σ a e */
} encoder_state;

typedef struct encoder_scratch {
    float *e, *de; /* [N,n,d] */
    float *hidden; /* [N·n,m] */
    float *score;  /* [N,n] */
    float *x;      /* [N,d] rows of the distinct tokens */
    uint32_t *ids; /* [N,n] their bucket ids; standard: the tokens as one bucket each */
    int32_t *mark; /* [V] scratch for finding the distinct */
} encoder_scratch;

int64_t encoder_state_floats(const mhf_config *c);
int64_t encoder_scratch_floats(const mhf_config *c);
mhf_status encoder_state_new(const mhf_config *c, int64_t N, encoder_state *out);
void encoder_state_free(encoder_state *state);
mhf_status encoder_scratch_new(const mhf_config *c, int64_t N, encoder_scratch *out);
void encoder_scratch_free(encoder_scratch *scratch);

/* x [N,d] of N tokens. MHF_E_DATA for an id past the vocabulary. */
mhf_status encoder_forward(const mhf_config *c, const encoder_tensors *w,
                           const mhf_signatures *table, const mhf_token *tokens, int64_t N,
                           encoder_state *state, encoder_scratch *scratch, float *x);
/* dx [N,d]; as released, a standard embedding's pad row gets no gradient. */
void encoder_backward(const mhf_config *c, const encoder_tensors *w, const encoder_tensors *dw,
                      const mhf_signatures *table, const mhf_token *tokens, int64_t N,
                      const encoder_state *state, encoder_scratch *scratch, const float *dx);

#endif
