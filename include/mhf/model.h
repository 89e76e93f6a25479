/* SPDX-License-Identifier: ISC */
/** model: configuration, the registry of parameters, and forward and backward of one stage (a run
 * of the units [encoder][layer]…[norm + head]) for one micro-batch. Knows nothing of how many ranks
 * there are: nothing here is collective. Symbols are those of the paper: T tokens, d hidden size, L
 * layers, H hash functions, B buckets, V rows of the signature table, m bottleneck.
 */
#ifndef MHF_MODEL_H
#define MHF_MODEL_H

#include "mhf/base.h"
#include "mhf/hash.h"
#include "mhf/text.h"

/* ---- configuration -------------------------------------------------------------------------- */

typedef enum mhf_head_kind { MHF_HEAD_MHF, MHF_HEAD_STANDARD } mhf_head_kind;
typedef enum mhf_objective { MHF_PRODUCT, MHF_VOCABULARY } mhf_objective;

typedef struct mhf_config {
    mhf_head_kind head;
    int32_t vocab_size; /* V: rows of the table, or of a standard embedding */
    int32_t hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
    int32_t intermediate_size, max_position_embeddings;
    int32_t num_hashes, num_buckets, num_lsh; /* 0 for a standard head */
    int32_t bottle_neck_dim;                  /* m */
    bool tie_word_embeddings, lsh_only_embed, mask_documents;
    bool use_conditional_prob;   /* trained with the objective `vocabulary`, in the released name */
    bool normalize_padding_rows; /* and over all V rows, as the released code does; else V_actl */
    double rms_norm_eps, rope_theta;
    int32_t bos_token_id, eos_token_id, pad_token_id; /* -1: none */
} mhf_config;

/** Fill by preset ("100m", "500m", "1b", "3b"): geometry, tied, V = 32768. MHF_E_CONFIG when
 * unknown. */
mhf_status mhf_config_preset(const char *name, mhf_config *config);
/** Check ranges and that sizes fit together; MHF_E_CONFIG names the key. */
mhf_status mhf_config_check(const mhf_config *config);
/** Read Hugging Face's config.json text; what is not built (rope types, attention bias, sliding
 * layers, another activation, dropout) is MHF_E_DATA naming the key. Absent keys are what the
 * configuration classes of transformers and of the released code take them for; sizes of the model
 * must be given. */
mhf_status mhf_config_from_json(const char *json, size_t n, const char *name, mhf_config *config);
/** Append config.json text with the released code's keys, and where they differ from its ways,
 * mask_documents and normalize_padding_rows. */
mhf_status mhf_config_to_json(const mhf_config *config, mhf_buf *out);
/** Number of coordinates the encoder sums: H, or num_lsh with lsh_only_embed. */
int32_t mhf_config_encoder_hashes(const mhf_config *config);
/** Rows of the embedding matrix: H·B, or V for a standard head. */
int64_t mhf_config_embedding_rows(const mhf_config *config);

/* ---- registry of parameters ----------------------------------------------------------------- */

/* Unit 0 is the encoder, 1..L the layers, L+1 the final norm and the head. */
typedef struct mhf_units {
    int32_t first, last; /* inclusive */
} mhf_units;

typedef struct mhf_param {
    char name[96];    /* as Hugging Face names it */
    int32_t n_dims;   /* 1 or 2 */
    int64_t shape[2]; /* shape[1] = 1 for a vector */
    int64_t count;    /* elements */
    int32_t unit;     /* that owns it (the norm of gradients counts it there) */
    bool also_head;   /* the embedding where the head reads it too: tied, or soft retrieval */
    bool decays;      /* weight decay: not biases, not norm weights */
    bool trainable;
} mhf_param;

/* Every parameter of the model in registry order, whichever stage holds it. */
typedef struct mhf_registry {
    mhf_param *params; /* [n] */
    int32_t n;
    int64_t total, embedding; /* elements: all; embedding matrix and untied head */
} mhf_registry;

mhf_status mhf_registry_new(const mhf_config *config, mhf_registry *out);
void mhf_registry_free(mhf_registry *registry);
/** Index of a name, or -1. */
int32_t mhf_registry_find(const mhf_registry *registry, const char *name);
/** Set which parameters train: "all", "expansion" (first 2 and last 2 layers, final norm,
 * embeddings, head, combiner, cascade), or n shell patterns (fnmatch) of names. MHF_E_CONFIG when a
 * pattern matches nothing. */
mhf_status mhf_registry_train_only(mhf_registry *registry, const mhf_config *config,
                                   const char *const *patterns, int32_t n);
/** True when a stage of `units` holds the parameter. */
bool mhf_param_held(const mhf_param *param, const mhf_config *config, mhf_units units);

/* The parameters that one stage holds, their values and gradients. Registry order; a parameter not
 * held has NULL. q,k,v and gate,up of a layer lie one after another, so that each group is one
 * matrix. */
typedef struct mhf_params {
    const mhf_registry *registry; /* borrowed */
    mhf_units units;
    float **value;    /* [n] into one block */
    float **gradient; /* [n], NULL entries when not trainable or of another stage's units; NULL
                         array for inference */
    /* The embedding's head-side gradient, a buffer of its own for every grid, so that the sum of
     * both sides has one order: head + encoder. NULL where the stage has no head or the head does
     * not read the embedding. */
    float *head_gradient;
    float *value_block, *gradient_block;
    int64_t held; /* elements held */
} mhf_params;

mhf_status mhf_params_new(const mhf_registry *registry, const mhf_config *config, mhf_units units,
                          bool gradients, mhf_params *out);
void mhf_params_free(mhf_params *params);
/** Normal(0, 0.02) weights keyed by (seed, name, element), zero biases, norms of one; as released,
 * the pad row of a standard embedding is zero. */
void mhf_params_initialise(mhf_params *params, const mhf_config *config, uint64_t seed);
void mhf_params_zero_gradients(mhf_params *params);

/* ---- one micro-batch ------------------------------------------------------------------------ */

typedef struct mhf_batch {
    int64_t blocks, T;       /* rows are block-major: blocks·T tokens */
    const mhf_token *tokens; /* [blocks·T] */
    const mhf_token
        *labels; /* [blocks·T] label of each place as Hugging Face has them (shifted inside a
                    block by the head; -100 ignored); NULL: the tokens themselves */
    const int32_t *first; /* [blocks·T] first visible key, or NULL */
    double scale;         /* 1 / denominator of the loss */
    bool evaluate;        /* losses alone: the head makes no gradient, no backward follows */
} mhf_batch;

enum { MHF_MAX_HASHES = 64 };

typedef struct mhf_losses {
    double nats[MHF_MAX_HASHES]; /* Σ over targets; one a coordinate, [0] for standard and
                                    vocabulary */
    int64_t targets;
} mhf_losses;

typedef struct mhf_stage_options {
    mhf_objective objective;
    int64_t max_tokens; /* of a micro-batch */
    int64_t max_length; /* T */
    int32_t slots;      /* micro-batches in flight at most */
    bool recompute;     /* keep a layer's input only and run it again in the backward */
} mhf_stage_options;

typedef struct mhf_stage mhf_stage;

/** A stage computes with `params` (borrowed, values and gradients) and `table` (borrowed; NULL for
 * standard). Owns activations and scratch, all allocated here. */
mhf_status mhf_stage_new(const mhf_config *config, mhf_params *params, const mhf_signatures *table,
                         const mhf_stage_options *options, mhf_stage **out);
void mhf_stage_free(mhf_stage *stage);
/** Bytes of activations and scratch that mhf_stage_new would allocate. */
int64_t mhf_stage_memory(const mhf_config *config, mhf_units units,
                         const mhf_stage_options *options);
/** Forward of micro-batch `slot`. x_in [N,d]: input of a stage without the encoder, else NULL.
 * x_out [N,d]: output of a stage without the head, else NULL: the head's loss and gradient are made
 * here and `losses` filled. */
mhf_status mhf_stage_forward(mhf_stage *stage, int32_t slot, const mhf_batch *batch,
                             const float *x_in, float *x_out, mhf_losses *losses);
/** Backward of the same slot; gradients are added to params. dx_out [N,d] (NULL with the head);
 * dx_in [N,d] (NULL with the encoder). */
mhf_status mhf_stage_backward(mhf_stage *stage, int32_t slot, const mhf_batch *batch,
                              const float *dx_out, float *dx_in);
/** FLOPs a token (forward + backward) of a unit at block length T, for balancing stages and for
 * reports: multiply-add = 2, recomputation not counted. */
double mhf_unit_flops(const mhf_config *config, int32_t unit, int64_t T);

/* ---- inference: one sequence after another ------------------------------------------------------
 */

/* A whole model on one rank, ready for inference: x of every vocabulary row may be tabulated. */
typedef struct mhf_model {
    mhf_config config;
    mhf_registry registry;
    mhf_params params;
    mhf_signatures table; /* MHF */
} mhf_model;

/** Take over config, registry, params and table (moved; the sources are zeroed). */
mhf_status mhf_model_new(const mhf_config *config, mhf_registry *registry, mhf_params *params,
                         mhf_signatures *table, mhf_model **out);
void mhf_model_free(mhf_model *model);

/* Keys and values of the tokens so far. Zero-initialise. */
typedef struct mhf_cache {
    float *k, *v; /* [L, capacity, n_kv·h] */
    int64_t n, capacity;
} mhf_cache;

mhf_status mhf_cache_reserve(const mhf_model *model, mhf_cache *cache, int64_t capacity);
void mhf_cache_free(mhf_cache *cache);

/** Run n tokens at positions cache->n … (a NULL cache: positions from 0, nothing kept).
 * layers  NULL, or [L+2] pointers to [n,d] (each may be NULL): 0 the encoder's output, 1..L each
 * layer's output before the final norm, L+1 after it. out     NULL or [n,d]: the final hidden
 * states (after the norm). */
mhf_status mhf_model_forward(const mhf_model *model, const mhf_token *ids, int64_t n,
                             mhf_cache *cache, float *const *layers, float *out);
/** The cascade on n final hidden states: z[k] [n,B] logits of coordinate k (H pointers), or [n,V]
 * in z[0] for a standard head. */
mhf_status mhf_model_head(const mhf_model *model, const float *hidden, int64_t n, float *const *z);
/** log P [n,V] of every vocabulary row, normalised over the first `counted` rows (V_actl: actual;
 * V: reference); rows past `counted` get -infinity. Tiles inside: nothing of size n·H·B outlives a
 * chunk. */
mhf_status mhf_model_log_probabilities(const mhf_model *model, const float *hidden, int64_t n,
                                       int32_t counted, double temperature, float *logp);

#endif
