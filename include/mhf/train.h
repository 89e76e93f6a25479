/* SPDX-License-Identifier: ISC */
/** train: the run configuration, data order, learning-rate schedule, the loop, when to save and
 * stop. Knows nothing of a file's layout.
 */
#ifndef MHF_TRAIN_H
#define MHF_TRAIN_H

#include "mhf/base.h"
#include "mhf/model.h"
#include "mhf/parallel.h"
#include "mhf/store.h"

/* ---- run configuration ---------------------------------------------------------------------- */

typedef struct mhf_settings mhf_settings; /* every key with its value and origin */

typedef struct mhf_data_file {
    const char *file;
    double weight;
} mhf_data_file;

/* What the settings say, typed. Strings and lists are owned by `settings`. */
typedef struct mhf_run_config {
    mhf_settings *settings;
    mhf_config model; /* vocab_size 0 until a tokenizer or init is read (mhf_run_resolve) */
    mhf_signature_rule rule;
    uint32_t hash_seed;
    const char *signatures_file, *tokenizer, *init, *run; /* NULL where none */

    mhf_data_file *train_files;
    int32_t n_train_files;
    const char *holdout;
    int64_t evaluate_every, block;

    int64_t steps, batch, micro_batch, warmup;
    double lr, weight_decay, clip;
    uint64_t seed;
    mhf_objective objective;
    bool reference_denominator, recompute, skip_nonfinite;
    const char **trainable; /* [n_trainable] "all", "expansion", or patterns */
    int32_t n_trainable;

    int stages;
    int32_t *layers; /* [n_layers] or NULL: auto */
    int32_t n_layers;
    int32_t reduction_shards; /* 0: auto */

    int64_t checkpoint_every, checkpoint_keep;
    double checkpoint_minutes;
} mhf_run_config;

/** Read a YAML file (NULL: defaults only) and `key=value` settings over it. Unknown keys, wrong
 * types and ranges are MHF_E_CONFIG with file and line. Not collective. */
mhf_status mhf_run_config_load(const char *path, const char *const *set, int32_t n_set,
                               mhf_run_config *out);
/** The same from a text kept in a checkpoint. */
mhf_status mhf_run_config_parse(const char *yaml, size_t n, const char *name, mhf_run_config *out);
void mhf_run_config_free(mhf_run_config *config);
/** Append the resolved configuration as YAML, itself a valid configuration; `origins` adds a
 * comment to each key that tells where its value came from. */
mhf_status mhf_run_config_print(const mhf_run_config *config, bool origins, mhf_buf *out);
/** Take the geometry of a model to go on or start from. MHF_E_MISMATCH where a key given beside it
 * tells another. */
mhf_status mhf_run_config_take(mhf_run_config *config, const mhf_source *base);
/** Is the model's geometry given, by itself, a preset or `init`, and one that can be built? */
mhf_status mhf_run_config_check_model(const mhf_run_config *config);
/** MHF_E_MISMATCH naming the first key that may not change on resuming and does. */
mhf_status mhf_run_config_same(const mhf_run_config *stored, const mhf_run_config *now);

/* What a run stands on, beside the configuration. */
typedef struct mhf_run_inputs {
    mhf_tokenizer *tokenizer; /* NULL where none is given */
    mhf_signatures table;     /* MHF */
    mhf_source *init;         /* weights to start from, or NULL */
    mhf_carried carried;      /* files that came with the model that `init` or `resumed` is */
} mhf_run_inputs;

/** Open tokenizer, init and table, and complete config->model (vocab_size, bos, eos, pad). With
 * `resumed` all comes from that checkpoint and init is not opened. A preset without a tokenizer has
 * V = 32768. Not collective: each rank by itself. */
mhf_status mhf_run_resolve(mhf_run_config *config, const mhf_source *resumed, mhf_run_inputs *out);
void mhf_run_inputs_free(mhf_run_inputs *inputs);

/* ---- vocabulary expansion ------------------------------------------------------------------- */

/* What becomes of a model when its tokenizer grows. Owned arrays; free with mhf_expansion_free. */
typedef struct mhf_expansion {
    mhf_config config;          /* of the expanded model: vocab_size is the new one */
    int32_t from_size, to_size; /* tokens before and after */
    const mhf_tokenizer *to;    /* borrowed */
    mhf_signatures table;       /* MHF: rows of old tokens as they were */
    int64_t *piece_offsets;     /* Standard: [to_size - from_size + 1] */
    mhf_token *pieces;          /* old tokens that spell each new one */
} mhf_expansion;

/** Plan the expansion of a model to a tokenizer that goes on from its own. MHF: new tokens get
 * signatures, no parameter is added. Standard: a new token's rows of embedding and head are the
 * mean of those of its pieces, which the old tokenizer makes of its spelling taken as text; rows
 * past the vocabulary are zero.
 *
 * rule    NULL: the table's own (imported: unique). `unique` keeps all rows and makes the new ones
 *         unlike any; `reference` builds the table as the released code does.
 * Errors  MHF_E_MISMATCH for a tokenizer with fewer tokens, another token at an old id or other
 *         special tokens, and where an old token's signature would change (the rows are named);
 *         those of mhf_signatures_build.
 * Source  arXiv 2606.28057, vocabulary expansion. Not collective. */
mhf_status mhf_expansion_new(const mhf_source *source, const mhf_tokenizer *to,
                             const mhf_signature_rule *rule, mhf_expansion *out);
void mhf_expansion_free(mhf_expansion *expansion);
/** Write the expanded model as a checkpoint of weights alone. Memory is that of the embedding
 * matrix (Standard) or of one piece (MHF). One rank. */
mhf_status mhf_expand(mhf_source *source, const mhf_expansion *expansion, const char *path);

/* ---- plan ----------------------------------------------------------------------------------- */

typedef struct mhf_rank_plan {
    mhf_units units;
    double flops_share; /* of a token's FLOPs */
    int64_t parameters, weights, gradients, moments, activations,
        messages; /* elements, then bytes */
    int64_t memory_bytes;
} mhf_rank_plan;

typedef struct mhf_plan {
    int stages, replicas;
    int64_t total, embedding;       /* parameters */
    double flops_per_token, bubble; /* bubble: share of a step in which a stage idles */
    int32_t micro_batches;          /* a replica and step */
    mhf_rank_plan *ranks;           /* [stages], the same for each replica (the largest) */
} mhf_plan;

/** What a grid would need, from the configuration alone: nothing of the model is allocated. */
mhf_status mhf_plan_new(const mhf_run_config *config, int stages, int replicas, mhf_plan *out);
void mhf_plan_free(mhf_plan *plan);

/* ---- data order ----------------------------------------------------------------------------- */

typedef struct mhf_cursor mhf_cursor;

/** Blocks of the stores in the order that (seed, global block number) gives: nothing else. */
mhf_status mhf_cursor_new(const mhf_data_file *files, int32_t n, int64_t block, uint64_t seed,
                          mhf_cursor **out);
void mhf_cursor_free(mhf_cursor *cursor);
/** Store and block number within it of global block g; g must not fall below an earlier call's by
 * more than the caller's batch (it may be any for one store). */
mhf_status mhf_cursor_place(mhf_cursor *cursor, int64_t g, int32_t *store, int64_t *index);
/** tokens [block] of global block g; first [block] (NULL: not wanted) the place where each token's
 * document begins within the block. */
mhf_status mhf_cursor_read(mhf_cursor *cursor, int64_t g, mhf_token *tokens, int32_t *first);
/** Of all stores' tokens, in order. */
uint64_t mhf_cursor_fingerprint(const mhf_cursor *cursor);
const mhf_tokens_info *mhf_cursor_store_info(const mhf_cursor *cursor, int32_t store);

/** Learning rate of step t = 0, 1, … of N: linear warm-up over w, then cosine to 0 (model.md §8).
 */
double mhf_learning_rate(double lr, int64_t t, int64_t warmup, int64_t steps);

/* ---- the loop ------------------------------------------------------------------------------- */

typedef enum mhf_resume { MHF_RESUME_AUTO, MHF_RESUME_EXACT, MHF_RESUME_NONE } mhf_resume;

typedef struct mhf_train_options {
    mhf_resume resume;
    int64_t stop_after;   /* 0: no */
    double max_hours;     /* 0: no limit */
    double stall_seconds; /* 0: no watchdog */
} mhf_train_options;

/** Hold SIGUSR1 and SIGTERM back in this thread and in those that it starts from now on: mhf_train
 * takes them as requests to stop. To be called before any other thread is there, MPI's too. */
void mhf_train_hold_signals(void);
/** Train. `resumed`: checkpoint to go on from, or NULL. MHF_E_STOPPED after a whole checkpoint on
 * request. Collective over the world, agreed. */
mhf_status mhf_train(mhf_run_config *config, mhf_run_inputs *inputs, mhf_source *resumed,
                     const mhf_train_options *options);

#endif
