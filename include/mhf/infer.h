/* SPDX-License-Identifier: ISC */
/** infer: scoring, evaluation, generation and hidden states with a whole model on each rank; items
 * are dealt to ranks, answers come back in order. Knows nothing of training. An answer never
 * depends on the other items, the batch or the number of ranks, to the bit.
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

/* ---- score --------------------------------------------------------------------------------------
 */

typedef struct mhf_score_options {
    mhf_normalize normalize;
    double temperature; /* 1: as trained */
    bool per_token;
    int64_t max_length; /* 0: max_position_embeddings */
    int64_t batch;      /* requests read ahead at once; changes no answer */
} mhf_score_options;

/* One request in tokens: the model reads context ++ continuation and is asked for the latter. */
typedef struct mhf_score_request {
    const mhf_token *context, *continuation;
    int64_t n_context, n_continuation;
} mhf_score_request;

/** Sum of log P of the continuation, left-truncated to max_length + 1 tokens as
 * lm-evaluation-harness does; token_logprobs [n_continuation] or NULL; *greedy: every token is the
 * arg-max, lowest id on ties. An empty context is the caller's to fill (BOS, else EOS). Not
 * collective. */
mhf_status mhf_score_one(const mhf_model *model, const mhf_score_request *request,
                         const mhf_score_options *options, double *logprob, bool *greedy,
                         double *token_logprobs);
/** Rolling log-likelihood of n tokens in disjoint windows of max_length, `prefix` before the first.
 * Not collective. */
mhf_status mhf_score_rolling(const mhf_model *model, mhf_token prefix, const mhf_token *ids,
                             int64_t n, const mhf_score_options *options, double *logprob,
                             bool *greedy, double *token_logprobs);
/** JSONL requests to JSONL answers in order ("-" as commands.md). Collective over the world,
 * agreed. */
mhf_status mhf_score_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                          const char *out, const mhf_score_options *options);

/* ---- evaluate
 * ------------------------------------------------------------------------------------- */

typedef struct mhf_evaluation {
    int64_t tokens, bytes; /* targets, and the UTF-8 bytes they add */
    double nats_per_token, bits_per_byte, accuracy;
    int32_t n_losses;
    double losses[MHF_MAX_HASHES]; /* nats a target and coordinate of the training loss */
    bool calibrated;
    double temperature; /* that gives the lowest nats */
    double calibrated_nats_per_token, calibrated_bits_per_byte;
} mhf_evaluation;

/** Likelihood of a token store in blocks of `block` tokens (the training's cut, tail included as a
 * short block), targets shifted by one inside a block. Collective over the world, agreed. */
mhf_status mhf_evaluate(const mhf_model *model, const mhf_tokenizer *tokenizer, mhf_tokens *tokens,
                        int64_t block, mhf_normalize normalize, bool calibrate,
                        mhf_evaluation *out);

/* ---- generate
 * --------------------------------------------------------------------------------------- */

typedef struct mhf_generate_options {
    int64_t max_tokens;
    double temperature; /* 0: arg-max */
    int32_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
    bool ignore_eos;
    mhf_normalize normalize;
} mhf_generate_options;

typedef enum mhf_stop { MHF_STOP_EOS, MHF_STOP_UNTIL, MHF_STOP_LENGTH } mhf_stop;

/** Continue n prompt tokens; `key` (the item's id or number) and the position key the random
 * numbers. `until` [n_until] texts end the answer and are cut off. out: ids [capacity ≥
 * max_tokens]. text gets the decoded continuation. Not collective. */
mhf_status mhf_generate_one(const mhf_model *model, const mhf_tokenizer *tokenizer,
                            const mhf_token *prompt, int64_t n, const char *key,
                            const char *const *until, int32_t n_until,
                            const mhf_generate_options *options, mhf_token *out, int64_t *n_out,
                            mhf_buf *text, mhf_stop *stop);
/** JSONL prompts to JSONL answers on stdout in order. Collective over the world, agreed. */
mhf_status mhf_generate_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                             const mhf_generate_options *options, mhf_buf *out);

/* ---- dump
 * -------------------------------------------------------------------------------------------- */

typedef enum mhf_pooling {
    MHF_POOL_NONE,
    MHF_POOL_MEAN,
    MHF_POOL_LAST,
    MHF_POOL_FIRST
} mhf_pooling;

mhf_status mhf_pooling_parse(const char *name, mhf_pooling *out);
const char *mhf_pooling_name(mhf_pooling pooling);

typedef struct mhf_dump_options {
    const int32_t *layers; /* [n_layers] 0..L, L+1 = norm, ascending */
    int32_t n_layers;
    mhf_pooling pooling;
    mhf_state_type type;
    bool special; /* texts get the template's special tokens */
} mhf_dump_options;

/* One item: a text, or ids; span in code points of the text (end -1: none). */
typedef struct mhf_dump_item {
    const char *text; /* NULL: ids */
    size_t n_text;
    const mhf_token *ids;
    int64_t n_ids;
    int64_t span_begin, span_end;
    int64_t line; /* for messages: "PATH line 7" */
} mhf_dump_item;

/** "all", or a comma list "0,2,norm"; layers [n] is allocated. MHF_E_USAGE names a bad one. */
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
