/* SPDX-License-Identifier: ISC */
/* One Qwen3 decoder layer (model.md §3): forward and backward over N rows of d. */
#ifndef MHF_MODEL_LAYER_H
#define MHF_MODEL_LAYER_H

#include "mhf/model.h"

/* Weights of a layer, and the same struct of gradients (NULL members are not trained). */
typedef struct layer_tensors {
    float *q, *k,
        *v;   /* [n_q·h,d], [n_kv·h,d], [n_kv·h,d]; as values they are one matrix from q on */
    float *o; /* [d,n_q·h] */
    float *q_norm, *k_norm; /* [h] */
    float *gate, *up;       /* [f,d] each; as values one matrix from gate on */
    float *down;            /* [d,f] */
    float *norm1, *norm2;   /* [d] */
} layer_tensors;

/* What the backward needs of the forward, for up to N rows. */
typedef struct layer_state {
    float *x;               /* [N,d] input */
    float *rstd1, *rstd2;   /* [N] */
    float *qkv;             /* [N,(n_q+2n_kv)h] before norm and rotation */
    float *q, *k;           /* [N,n_q·h], [N,n_kv·h] after them */
    float *rstd_q, *rstd_k; /* [N,n_q], [N,n_kv] */
    float *o;               /* [N,n_q·h] */
    float *lse;             /* [N,n_q] */
    float *mid;             /* [N,d] after attention */
    float *gu;              /* [N,2f] gate and up */
} layer_state;

/* Shared by all layers and slots of a stage. */
typedef struct layer_scratch {
    float *normed;                      /* [N,d] */
    float *y;                           /* [N,f] */
    float *dy;                          /* [N,f] */
    float *dgu;                         /* [N,2f] */
    float *dnormed;                     /* [N,d] */
    float *d_o;                         /* [N,n_q·h] */
    float *dq, *dk;                     /* [N,n_q·h], [N,n_kv·h] */
    float *dqkv;                        /* [N,(n_q+2n_kv)h] */
    int32_t *position;                  /* [N] place within the block */
    const float *cos_table, *sin_table; /* [positions,h/2] */
} layer_scratch;

/* The tensors of layer l among `pointers` (values or gradients by registry index). */
void layer_tensors_find(const mhf_registry *registry, int32_t l, float *const *pointers,
                        layer_tensors *out);

/* Floats of a state and of the scratch a row, for planning and allocation. */
int64_t layer_state_floats(const mhf_config *c);
int64_t layer_scratch_floats(const mhf_config *c);
mhf_status layer_state_new(const mhf_config *c, int64_t N, layer_state *out);
void layer_state_free(layer_state *state);
mhf_status layer_scratch_new(const mhf_config *c, int64_t N, layer_scratch *out);
void layer_scratch_free(layer_scratch *scratch);

/* state->x holds the input; out [N,d] may not be state->x. */
mhf_status layer_forward(const mhf_config *c, const layer_tensors *w, const mhf_batch *batch,
                         layer_state *state, layer_scratch *scratch, float *out);
/* dx [N,d]: gradient of the output on entry, of the input on return. */
mhf_status layer_backward(const mhf_config *c, const layer_tensors *w, const layer_tensors *dw,
                          const mhf_batch *batch, const layer_state *state, layer_scratch *scratch,
                          float *dx);

#endif
