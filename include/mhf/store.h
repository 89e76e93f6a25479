/* SPDX-License-Identifier: ISC */
/** store: HDF5 files (checkpoint, token store, signature table, hidden states) and safetensors.
 * Knows nothing of schedules. Every file is written to a temporary name, closed, synced, renamed;
 * every dataset has XXH3-64 checksums of each MiB, checked on reading. Readers are not collective:
 * each rank opens the file by itself and reads what it needs.
 */
#ifndef MHF_STORE_H
#define MHF_STORE_H

#include "mhf/base.h"
#include "mhf/hash.h"
#include "mhf/model.h"
#include "mhf/parallel.h"
#include "mhf/text.h"

/* ---- token store ----------------------------------------------------------------------------- */

typedef struct mhf_token_writer mhf_token_writer;

/** One rank writes. uint16 where vocab_size ≤ 65536, else uint32. */
mhf_status mhf_token_writer_new(const char *path, const mhf_tokenizer *tokenizer,
                                mhf_token_writer **out);
/** Append a document of n tokens whose text had `bytes` UTF-8 bytes. */
mhf_status mhf_token_writer_add(mhf_token_writer *writer, const mhf_token *ids, int64_t n,
                                int64_t bytes);
/** Finish and rename; frees the writer in any case. */
mhf_status mhf_token_writer_finish(mhf_token_writer *writer);
/** Give up: remove the temporary file. */
void mhf_token_writer_abandon(mhf_token_writer *writer);

typedef struct mhf_tokens mhf_tokens;

typedef struct mhf_tokens_info {
    int64_t n, documents, bytes;
    int64_t vocab_size;
    uint64_t fingerprint;
    char tokenizer_sha256[65];
} mhf_tokens_info;

mhf_status mhf_tokens_open(const char *path, mhf_tokens **out);
const mhf_tokens_info *mhf_tokens_info_of(const mhf_tokens *tokens);
/** out[0..count) = tokens first … ; ids past the vocabulary are MHF_E_DATA (file and place named).
 */
mhf_status mhf_tokens_read(mhf_tokens *tokens, int64_t first, int64_t count, mhf_token *out);
/** Offsets of the documents, [documents + 1]; owned by the store, read at the first call. */
mhf_status mhf_tokens_documents(mhf_tokens *tokens, const uint64_t **out);
void mhf_tokens_close(mhf_tokens *tokens);

/* ---- signature table ------------------------------------------------------------------------- */

/** `tokenizer` gives the pieces of /tokens (NULL: left out). One rank writes. */
mhf_status mhf_signatures_write(const char *path, const mhf_signatures *table,
                                const mhf_tokenizer *tokenizer);
mhf_status mhf_signatures_read(const char *path, mhf_signatures *out);
/** The tokens of a tokenizer as the table builder wants them; arrays owned by `out`, pieces
 * borrowed from the tokenizer; free with mhf_vocabulary_free. pad is EOS where the tokenizer has no
 * pad. */
mhf_status mhf_vocabulary_of(const mhf_tokenizer *tokenizer, mhf_vocabulary *out);
void mhf_vocabulary_free(mhf_vocabulary *vocabulary);

/* ---- checkpoint ----------------------------------------------------------------------------- */

/* Files of a model's folder that are kept as they are (generation_config.json, …). Owned arrays. */
typedef struct mhf_carried {
    char **names;   /* [n] */
    mhf_buf *texts; /* [n] */
    int32_t n;
} mhf_carried;

void mhf_carried_free(mhf_carried *carried);

/* All that a checkpoint holds beside the tensors. Texts are owned by whoever made the struct. */
typedef struct mhf_checkpoint_meta {
    int64_t step, tokens_seen, blocks_seen;
    uint64_t seed, data_fingerprint;
    int32_t reduction_shards, threads;
    const char *engine, *program_build;
    const char *run;                /* the resolved run configuration, or NULL */
    const mhf_tokenizer *tokenizer; /* or NULL */
    const mhf_signatures *table;    /* or NULL */
    const mhf_carried *carried;     /* or NULL */
} mhf_checkpoint_meta;

/** Write parameters (each stage its own; replica r the shards it owns), moments when `optimizer` is
 * not NULL, and meta. Collective over the world; agrees on errors; the file gets its name only when
 * whole. */
mhf_status mhf_checkpoint_write(const char *path, const mhf_grid *grid, const mhf_config *config,
                                const mhf_params *params, const mhf_optimizer *optimizer,
                                const mhf_checkpoint_meta *meta);

/* A model to read: a checkpoint, a run folder (its newest whole checkpoint), or a Hugging Face
 * directory. */
typedef struct mhf_source mhf_source;

typedef enum mhf_tensor_kind { MHF_PARAMETER, MHF_EXP_AVG, MHF_EXP_AVG_SQ } mhf_tensor_kind;

typedef struct mhf_source_info {
    const char *path; /* of the file or directory really opened */
    bool is_checkpoint, has_optimizer;
    int64_t step, tokens_seen, blocks_seen;
    uint64_t seed, data_fingerprint;
    int32_t reduction_shards, threads;
    const char *engine, *program_build, *run; /* "" where absent */
} mhf_source_info;

mhf_status mhf_source_open(const char *path, mhf_source **out);
void mhf_source_close(mhf_source *source);
const mhf_source_info *mhf_source_info_of(const mhf_source *source);
const mhf_config *mhf_source_config(const mhf_source *source);
/** A new tokenizer from the files kept; MHF_E_DATA when there is none. */
mhf_status mhf_source_tokenizer(const mhf_source *source, mhf_tokenizer **out);
/** The table (MHF); MHF_E_DATA when there is none. */
mhf_status mhf_source_signatures(const mhf_source *source, mhf_signatures *out);
/** The files of the model's folder beside the tokenizer's two; config.json is among them where the
 * model was imported, for what our configuration has no field for. */
mhf_status mhf_source_carried(const mhf_source *source, mhf_carried *out);
/** Append the names of a Hugging Face folder's entries that are neither read nor carried: an older
 * form of the tokenizer, texts about the model, code. */
mhf_status mhf_source_left_behind(const mhf_source *source, mhf_buf *out);
/** out[0..count) = elements first … of the flattened tensor, as float32; shape and checksums are
 * checked. */
mhf_status mhf_source_read(mhf_source *source, mhf_tensor_kind kind, const mhf_param *param,
                           int64_t first, int64_t count, float *out);
/** Read every checksum of the file: MHF_OK when it is whole. */
mhf_status mhf_source_verify(mhf_source *source);

/** Copy a model to a checkpoint of weights alone, piece by piece: memory is that of one piece. One
 * rank. */
mhf_status mhf_checkpoint_import(mhf_source *source, const char *path,
                                 const mhf_checkpoint_meta *meta);

/* out[0..count) = elements first … of the flattened tensor. */
typedef mhf_status (*mhf_tensor_reader)(void *context, const mhf_param *param, int64_t first,
                                        int64_t count, float *out);

/** The same with the tensors of `config` from a function, called for each piece in order. One rank.
 */
mhf_status mhf_checkpoint_compose(const char *path, const mhf_config *config,
                                  mhf_tensor_reader read, void *context,
                                  const mhf_checkpoint_meta *meta);

/** The whole model on this rank, for inference. Tokenizer and table as above; `tokenizer` may be
 * NULL when not wanted. */
mhf_status mhf_model_load(mhf_source *source, mhf_model **model, mhf_tokenizer **tokenizer);

/** Paths of RUN/checkpoints/step-%08d.h5, newest first; owned by the caller: free each and the
 * array. */
mhf_status mhf_checkpoints_list(const char *run, char ***paths, int32_t *n);
/** The step that a checkpoint's name tells, or -1. */
int64_t mhf_checkpoint_step(const char *path);
/** The newest of them that verifies, *out NULL where none does. Newer ones that don't are named by
 * warnings and counted. Not collective. */
mhf_status mhf_run_newest(const char *run, mhf_source **out, int32_t *refused);

/* ---- a Hugging Face directory, written ------------------------------------------------------ */

typedef enum mhf_state_type { MHF_F32, MHF_F16, MHF_BF16 } mhf_state_type;

typedef struct mhf_export_options {
    mhf_state_type type;     /* MHF_F32 or MHF_BF16 */
    int64_t max_shard_bytes; /* of tensors in a file, but that a tensor is never cut */
} mhf_export_options;

/** Write config.json, tensors, tokenizer and kept files of a model, as the released code's
 * save_pretrained does; files of the same name are replaced, other weights in the folder removed.
 * MHF_E_NONFINITE for a value that bfloat16 can't tell. Memory is that of a piece and the table.
 * One rank. */
mhf_status mhf_export(mhf_source *source, const char *folder, const mhf_export_options *options);

/* ---- hidden states -------------------------------------------------------------------------- */

typedef struct mhf_states_meta {
    const int32_t *layers; /* [n_layers]: 0..L, or L+1 for the final norm ("norm"), ascending */
    int32_t n_layers, num_hidden_layers;
    int64_t rows, d;
    mhf_state_type type;
    const char *pooling; /* none, mean, last, first */
    int64_t items;
    const char *const *texts;      /* [items], NULL where an item had ids only (stored empty) */
    const size_t *text_lengths;    /* [items] */
    const uint64_t *token_offsets; /* [items+1] */
    const mhf_token *token_ids;    /* [token_offsets[items]] */
    const char *checkpoint, *tokenizer_sha256;
    int64_t step;
    /* What a study needs to tell whether a word is covered: /items/pooled [items, 2], the half-open
     * range of the item's tokens that pooling covered, counted from the item's first token (empty:
     * none), NULL: left out; attribute unknown_id (-1: none). */
    const uint64_t *pooled;
    mhf_token unknown_id;
} mhf_states_meta;

typedef struct mhf_states_writer mhf_states_writer;

/** The same meta on every rank. Collective over the world, and agreed. */
mhf_status mhf_states_writer_new(const char *path, const mhf_states_meta *meta,
                                 mhf_states_writer **out);
/** Write rows [first, first+n) of the i-th of meta->layers; data [n,d]. Not collective. */
mhf_status mhf_states_writer_put(mhf_states_writer *writer, int32_t i, int64_t first, int64_t n,
                                 const float *data);
/** Checksums, close, rename; `mine` is this rank's status so far: when any rank failed the
 * temporary file is removed. Frees the writer. Collective over the world, and agreed. */
mhf_status mhf_states_writer_finish(mhf_states_writer *writer, mhf_status mine);

typedef struct mhf_states mhf_states;

mhf_status mhf_states_open(const char *path, mhf_states **out);
void mhf_states_close(mhf_states *states);
int32_t mhf_states_layers(const mhf_states *states);
/** "00" … or "norm". Borrowed. */
const char *mhf_states_layer_name(const mhf_states *states, int32_t i);
int64_t mhf_states_rows(const mhf_states *states);
int64_t mhf_states_width(const mhf_states *states);
const char *mhf_states_pooling(const mhf_states *states);
int64_t mhf_states_items(const mhf_states *states);
/** Text of item i, borrowed. */
const char *mhf_states_text(const mhf_states *states, int64_t i, size_t *n);
/** Tokens of item i that pooling covered (all of them where the file has no /items/pooled),
 * borrowed. */
const uint32_t *mhf_states_pooled(const mhf_states *states, int64_t i, int64_t *n);
/** Id of the unknown token, or -1. */
int64_t mhf_states_unknown_id(const mhf_states *states);
/** Attributes; "" where absent. Borrowed. */
const char *mhf_states_checkpoint(const mhf_states *states);
const char *mhf_states_tokenizer_sha256(const mhf_states *states);
mhf_status mhf_states_read(mhf_states *states, int32_t i, int64_t first, int64_t n, float *out);

/* ---- study ---------------------------------------------------------------------------------- */

typedef struct mhf_study_result {
    int64_t pairs;
    char **word1, **word2; /* [pairs] */
    double *human;         /* [pairs] */
    uint8_t *covered;      /* [pairs] */
    int32_t layers;
    char **layer_names;                  /* [layers] */
    double *similarity;                  /* [layers, pairs], NaN where not covered */
    double *pearson, *spearman;          /* [layers] */
    double *interval;                    /* [layers, 2 (pearson, spearman), 2 (low, high)] */
    const char *pairs_name, *model_name; /* where they came from, stored as attributes */
    const char *pooling;
    uint64_t seed;
    int64_t draws;
    const char *template_text; /* stored as attribute "template" */
    /* Pieces of each pair's words: /pairs/pieces1, /pairs/pieces2 int32 [pairs] how many tokens,
     * and (NULL: not asked for) /pairs/rarest1, /pairs/rarest2 int64 [pairs] how often the rarest
     * of them occurs in training. */
    int32_t *pieces1, *pieces2;
    int64_t *rarest1, *rarest2;
} mhf_study_result;

/** One rank writes. */
mhf_status mhf_study_write(const char *path, const mhf_study_result *result);

/* ---- what is in a file ---------------------------------------------------------------------- */

/** The root attribute "format" of an mhf HDF5 file, e.g. "mhf-tokens"; out[32]. MHF_E_DATA for
 * others. */
mhf_status mhf_file_format(const char *path, char out[32]);
/** Add the root's attributes, and a list "datasets" of {name, type, shape} (checksums left out), to
 * a JSON object. Unsigned numbers past 2^63 become text. */
mhf_status mhf_file_describe(const char *path, json_t *object);
/** Read every dataset of an mhf HDF5 file against its checksums. */
mhf_status mhf_file_verify(const char *path);

#endif
