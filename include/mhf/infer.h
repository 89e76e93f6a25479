/* SPDX-License-Identifier: ISC */
/** infer: scoring, evaluation, generation and hidden states with a whole model on each rank; items
 * are dealt to ranks, answers come back in order. Knows nothing of training. An answer never
 * depends on the other items, the batch or the number of ranks, to the bit: each item runs through
 * the model alone, so that the shapes of its products are its own.
 *
 * Every token given to a function that is not collective must be a row of the model's table.
 */
#ifndef MHF_INFER_H
#define MHF_INFER_H

#include "mhf/base.h"
#include "mhf/model.h"
#include "mhf/store.h"
#include "mhf/text.h"

/* Which rows of the table the probabilities are normalised over (model.md §6). */
typedef enum mhf_normalize {
    MHF_ACTUAL,   /* the tokenizer's real tokens */
    MHF_REFERENCE /* all V rows, padding included, as released */
} mhf_normalize;

mhf_status mhf_normalize_parse(const char *name, mhf_normalize *out);
/** Rows 0..n-1 that count. */
int32_t mhf_counted_rows(const mhf_model *model, const mhf_tokenizer *tokenizer,
                         mhf_normalize normalize);
/** What stands before an empty context: BOS, else EOS, -1 where there is neither. */
mhf_token mhf_prefix_token(const mhf_model *model, const mhf_tokenizer *tokenizer);

/* ---- score --------------------------------------------------------------------------------------
 */

typedef struct mhf_score_options {
    int32_t counted;    /* rows normalised over: mhf_counted_rows */
    double temperature; /* > 0; 1: as trained */
    int64_t max_length; /* tokens the model reads at most, ≤ max_position_embeddings */
    bool per_token;     /* files only: token_logprobs and token_ids in the answers */
    int64_t batch; /* files only: requests a rank takes between two exchanges; changes no answer */
} mhf_score_options;

/* One request in tokens: the model reads context ++ continuation and is asked for the latter. */
typedef struct mhf_score_request {
    const mhf_token *context, *continuation;
    int64_t n_context, n_continuation;
} mhf_score_request;

/* A context that was run: its keys, values and last state, which the next request with the same
 * context takes over. The context is always run by itself, then the continuation after it, so that
 * the bits are the same with and without. Zero-initialise. */
typedef struct mhf_score_memory {
    mhf_cache cache;
    mhf_token *context; /* [n] */
    int64_t n, capacity;
    float *last; /* [d] */
} mhf_score_memory;

void mhf_score_memory_free(mhf_score_memory *memory);

/** Sum of log P of the continuation, the whole cut on the left to max_length + 1 tokens as
 * lm-evaluation-harness does; token_logprobs [n_continuation] or NULL; *greedy: every token is the
 * arg-max of what counts, lowest id on ties. memory: of the requests before, or NULL.
 * Errors  MHF_E_DATA for an empty context or continuation, or a continuation past max_length;
 *         MHF_E_NONFINITE. Not collective. */
mhf_status mhf_score_one(const mhf_model *model, const mhf_score_request *request,
                         const mhf_score_options *options, mhf_score_memory *memory,
                         double *logprob, bool *greedy, double *token_logprobs);
/** Rolling log-likelihood of n tokens in disjoint windows of max_length, `prefix` before the first.
 * n = 0 gives 0. Not collective. */
mhf_status mhf_score_rolling(const mhf_model *model, mhf_token prefix, const mhf_token *ids,
                             int64_t n, const mhf_score_options *options, double *logprob,
                             bool *greedy, double *token_logprobs);
/* The tokens of a request, context then continuation in one owned array; free(ids). */
typedef struct mhf_score_tokens {
    mhf_token *ids;
    int64_t n_context, n_continuation;
    int64_t bytes; /* of the continuation's text, moved white space included */
} mhf_score_tokens;

/** Cut a request in texts into tokens: the context's trailing white space moves to the
 * continuation, both are encoded together and cut at the number of tokens the context has by
 * itself; an empty context is `prefix` (MHF_E_DATA when that is -1). Not collective. Source:
 * lm-evaluation-harness 0.4.8. */
mhf_status mhf_score_split(const mhf_tokenizer *tokenizer, mhf_token prefix, const char *context,
                           size_t n_context, const char *continuation, size_t n_continuation,
                           mhf_score_tokens *out);
/** JSONL requests to JSONL answers in order ("-": stdin, stdout). Collective over the world,
 * agreed. */
mhf_status mhf_score_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                          const char *out, const mhf_score_options *options);

/* ---- evaluate ------------------------------------------------------------------------------- */

typedef struct mhf_evaluation {
    int64_t tokens, bytes; /* targets, and the UTF-8 bytes they add */
    double nats_per_token, bits_per_byte, accuracy;
    int32_t n_losses;
    double losses[MHF_MAX_HASHES]; /* nats a target and coordinate of the training loss */
    bool calibrated;
    double temperature; /* that gives the lowest nats, within 0.5 .. 64 */
    double calibrated_nats_per_token, calibrated_bits_per_byte;
} mhf_evaluation;

typedef struct mhf_evaluate_options {
    int64_t block;   /* tokens of a block: the training's cut */
    int32_t counted; /* mhf_counted_rows */
    bool calibrate;
} mhf_evaluate_options;

/** Likelihood of a token store in blocks (the tail is a short block), targets shifted by one inside
 * a block. Calibration needs no second pass: the sums that give the nats and their slope at a grid
 * of temperatures are taken with the rest, and the lowest point is found between them. Collective
 * over the world, agreed; the same bits on any number of ranks. */
mhf_status mhf_evaluate(const mhf_model *model, const mhf_tokenizer *tokenizer, mhf_tokens *tokens,
                        const mhf_evaluate_options *options, mhf_evaluation *out);

/* ---- generate ------------------------------------------------------------------------------- */

typedef struct mhf_generate_options {
    int64_t max_tokens;
    double temperature; /* 0: arg-max */
    int32_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
    bool ignore_eos;
    int32_t counted;
    bool token_ids; /* files only: token_ids in the answers */
} mhf_generate_options;

typedef enum mhf_stop { MHF_STOP_EOS, MHF_STOP_UNTIL, MHF_STOP_LENGTH } mhf_stop;

const char *mhf_stop_name(mhf_stop stop);

typedef struct mhf_text_piece {
    const char *text;
    size_t n;
} mhf_text_piece;

/* One prompt in tokens. */
typedef struct mhf_generate_request {
    const mhf_token *prompt;
    int64_t n;                   /* ≥ 1 */
    const char *key;             /* with the position, the key of the random numbers */
    const mhf_text_piece *until; /* texts that end the answer and are cut off */
    int32_t n_until;
    int64_t max_tokens;
} mhf_generate_request;

/** The prompt's tokens (ids [n_ids] allocated): the template's BOS as in training, but no EOS after
 * the text; an empty prompt is BOS, else EOS. Not collective. */
mhf_status mhf_prompt_encode(const mhf_model *model, const mhf_tokenizer *tokenizer,
                             const char *text, size_t n, mhf_token **ids, int64_t *n_ids);
/** Continue a prompt. ids [max_tokens] get the *n_ids tokens generated (an EOS that ends them is
 * not among them), text is replaced by what they add to the decoded prompt. Stops with
 * MHF_STOP_LENGTH when the model's positions are used up. MHF_E_DATA for a prompt longer than
 * those. Not collective. */
mhf_status mhf_generate_one(const mhf_model *model, const mhf_tokenizer *tokenizer,
                            const mhf_generate_request *request,
                            const mhf_generate_options *options, mhf_token *ids, int64_t *n_ids,
                            mhf_buf *text, mhf_stop *stop);
/** JSONL prompts to JSONL answers in order; `out` is filled on rank 0. Collective over the world,
 * agreed. */
mhf_status mhf_generate_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                             const mhf_generate_options *options, mhf_buf *out);

/* ---- dump ----------------------------------------------------------------------------------- */

typedef enum mhf_pooling {
    MHF_POOL_NONE,
    MHF_POOL_MEAN,
    MHF_POOL_LAST,
    MHF_POOL_FIRST
} mhf_pooling;

mhf_status mhf_pooling_parse(const char *name, mhf_pooling *out);
const char *mhf_pooling_name(mhf_pooling pooling);
mhf_status mhf_state_type_parse(const char *name, mhf_state_type *out);

typedef struct mhf_dump_options {
    const int32_t *layers; /* [n_layers] 0..L, L+1 = norm, ascending */
    int32_t n_layers;
    mhf_pooling pooling;
    mhf_state_type type;
    bool special;     /* texts get the template's special tokens */
    bool allow_empty; /* an item without a token to pool gives a row of zeros, not an error */
} mhf_dump_options;

/* One item: a text, or ids; span in code points of the (decoded) text, begin -1: none. */
typedef struct mhf_dump_item {
    const char *text; /* NULL: ids */
    size_t n_text;
    const mhf_token *ids;
    int64_t n_ids;
    int64_t span_begin, span_end;
    int64_t line; /* for messages: "NAME line 7" */
} mhf_dump_item;

/** "all", or a list "0,2,norm"; layers [n] is allocated, ascending. MHF_E_USAGE names a bad one. */
mhf_status mhf_layers_parse(const char *text, const mhf_config *config, int32_t **layers,
                            int32_t *n);
/** Run the items (the same on every rank) and write the file. `name` stands in messages,
 * `checkpoint` and `step` are stored. Collective over the world, agreed. */
mhf_status mhf_dump_items(const mhf_model *model, const mhf_tokenizer *tokenizer,
                          const mhf_dump_item *items, int64_t n, const char *name,
                          const mhf_dump_options *options, const char *checkpoint, int64_t step,
                          const char *out);
/** The same from a JSONL file. Collective over the world, agreed. */
mhf_status mhf_dump_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                         const mhf_dump_options *options, const char *checkpoint, int64_t step,
                         const char *out);

#endif
