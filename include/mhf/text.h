/* SPDX-License-Identifier: ISC */
/** text: tokenizer.json (BPE), training a tokenizer, reading corpora. Knows nothing of buckets or
 * tensors. Nothing here is collective; a loaded tokenizer is read-only and shared by threads.
 */
#ifndef MHF_TEXT_H
#define MHF_TEXT_H

#include "mhf/base.h"

typedef int32_t mhf_token;

/* ---- a tokenizer ---------------------------------------------------------------------------- */

typedef struct mhf_tokenizer mhf_tokenizer;

/* Names of special tokens given on a command line; NULL: as tokenizer_config.json says. */
typedef struct mhf_special_names {
    const char *bos, *eos, *pad;
} mhf_special_names;

/** Load tokenizer.json, or the one in a folder; tokenizer_config.json beside it names BOS, EOS, pad
 * and unk. What a file asks for that is not built is refused by name; but its "truncation" and
 * "padding" are carried on and not applied, as the log says: texts are encoded whole.
 * Errors: MHF_E_IO (no file), MHF_E_DATA (its content, file and key named), MHF_E_USAGE (a given
 * name that is no token). */
mhf_status mhf_tokenizer_load(const char *path, const mhf_special_names *names,
                              mhf_tokenizer **out);
/** The same from memory; `config` may be NULL; `name` stands in errors. Texts are copied. */
mhf_status mhf_tokenizer_parse(const char *json, size_t n, const char *config, size_t n_config,
                               const char *name, const mhf_special_names *names,
                               mhf_tokenizer **out);
void mhf_tokenizer_free(mhf_tokenizer *tokenizer);

/** Number of real tokens: base vocabulary and added tokens, V_actl. */
int32_t mhf_tokenizer_size(const mhf_tokenizer *tokenizer);
/** Number of tokens of the base vocabulary (the model's "vocab"). */
int32_t mhf_tokenizer_base_size(const mhf_tokenizer *tokenizer);
/** The token as the tokenizer spells it ("▁the", "<0x0A>", "Ġthe"), UTF-8, *n bytes; borrowed.
 * NULL for an id in a gap. */
const char *mhf_tokenizer_piece(const mhf_tokenizer *tokenizer, mhf_token id, size_t *n);
/** Id of a spelling, or -1. */
mhf_token mhf_tokenizer_id(const mhf_tokenizer *tokenizer, const char *piece, size_t n);
bool mhf_tokenizer_is_special(const mhf_tokenizer *tokenizer, mhf_token id);
/** UTF-8 bytes that the token adds to decoded text; specials 0. */
int32_t mhf_tokenizer_bytes(const mhf_tokenizer *tokenizer, mhf_token id);
/** Ids, or -1 where the tokenizer has none. pad is -1 when not named: EOS then stands in. */
mhf_token mhf_tokenizer_bos(const mhf_tokenizer *tokenizer);
mhf_token mhf_tokenizer_eos(const mhf_tokenizer *tokenizer);
mhf_token mhf_tokenizer_pad(const mhf_tokenizer *tokenizer);
mhf_token mhf_tokenizer_unk(const mhf_tokenizer *tokenizer);
/** SHA-256, 64 hexadecimal digits, of tokenizer.json's content: compact, keys sorted, merges as
 * pairs, without truncation and padding; so a file that another program has written again, in other
 * columns, is the same tokenizer. */
const char *mhf_tokenizer_sha256(const mhf_tokenizer *tokenizer);
/** Is it the tokenizer that a file means by this sum? That of the bytes, which files of earlier
 * builds hold, serves too. */
bool mhf_tokenizer_is(const mhf_tokenizer *tokenizer, const char *sha256);
/** The files' bytes as loaded; config is NULL (n 0) where absent. Borrowed. */
const char *mhf_tokenizer_json(const mhf_tokenizer *tokenizer, size_t *n);
const char *mhf_tokenizer_config_json(const mhf_tokenizer *tokenizer, size_t *n);

/* Zero-initialise; reused between calls; free with mhf_encoding_free. */
typedef struct mhf_encoding {
    mhf_token *ids; /* [n] */
    /* [n] half-open range of bytes of the text that the token covers; both -1 for a token of the
     * template. Filled when asked for. */
    int64_t *begin, *end;
    int64_t n, capacity, begin_capacity, end_capacity;
    struct mhf_encoder *encoder; /* working memory and words met before; the library's own */
} mhf_encoding;

typedef enum mhf_encode_flags {
    MHF_ENCODE_PLAIN = 0,
    MHF_ENCODE_TEMPLATE = 1, /* add BOS, EOS as the post-processor says */
    MHF_ENCODE_RANGES = 2,   /* fill begin and end */
} mhf_encode_flags;

/** Replace `out` with the tokens of `text` (UTF-8, n bytes; invalid bytes become U+FFFD, as
 * the tokenizers library's callers do). Any thread. */
mhf_status mhf_tokenizer_encode(const mhf_tokenizer *tokenizer, const char *text, size_t n,
                                int flags, mhf_encoding *out);
void mhf_encoding_free(mhf_encoding *encoding);

/** Append the text of n ids. Errors: MHF_E_DATA for an id outside the vocabulary. */
mhf_status mhf_tokenizer_decode(const mhf_tokenizer *tokenizer, const mhf_token *ids, int64_t n,
                                bool skip_special, mhf_buf *out);

/* ---- training a tokenizer ------------------------------------------------------------------- */

typedef enum mhf_tokenizer_kind { MHF_BYTE_LEVEL, MHF_SENTENCEPIECE } mhf_tokenizer_kind;

typedef struct mhf_tokenizer_training {
    mhf_tokenizer_kind kind;
    /* NULL, or: copy this one's pipeline and specials; borrowed for the trainer's life. */
    const mhf_tokenizer *like;
    int32_t vocab_size;
    const char *const *special; /* [n_special] more special tokens */
    int32_t n_special;
} mhf_tokenizer_training;

typedef struct mhf_tokenizer_trainer mhf_tokenizer_trainer;

/** Words are counted as sequences come; the merges are learned at the end. The result does not
 * depend on threads. Highest count first, ties by the smaller (left id, right id). */
mhf_status mhf_tokenizer_trainer_new(const mhf_tokenizer_training *options,
                                     mhf_tokenizer_trainer **out);
mhf_status mhf_tokenizer_trainer_add(mhf_tokenizer_trainer *trainer, const char *text, size_t n);
/** Every line of a .txt as a sequence, as it stands; every text of a .jsonl; .gz and .zst of both.
 */
mhf_status mhf_tokenizer_trainer_add_file(mhf_tokenizer_trainer *trainer, const char *path);
/** Append words counted so far to `out`, from word *next on (0 at first, then moved): some MB at a
 * time, nothing once all were given. They are for mhf_tokenizer_trainer_add_counts of a trainer
 * with the same options, in another process of this program. Add nothing in between. */
mhf_status mhf_tokenizer_trainer_counts(mhf_tokenizer_trainer *trainer, int64_t *next,
                                        mhf_buf *out);
/** The result does not depend on which trainer counted a text. Errors: MHF_E_DATA for bytes that
 * are no counts. */
mhf_status mhf_tokenizer_trainer_add_counts(mhf_tokenizer_trainer *trainer, const char *counts,
                                            size_t n);
/** json and config: the two files' texts. */
mhf_status mhf_tokenizer_trainer_finish(mhf_tokenizer_trainer *trainer, mhf_buf *json,
                                        mhf_buf *config);
void mhf_tokenizer_trainer_free(mhf_tokenizer_trainer *trainer);

/* exact: each text adds exactly so many tokens; learning goes on from the words as the merges so
 * far leave them, and the new merges come last. reference: as the published procedure (merges
 * learned from the text alone come first; a doubled new character counts as two, the last merge may
 * overshoot; unk is no longer named). */
typedef enum mhf_extend_rule { MHF_EXTEND_EXACT, MHF_EXTEND_REFERENCE } mhf_extend_rule;

/** Extend a vocabulary: learn merges from each text (read as mhf_tokenizer_trainer_add_file does)
 * in turn and add the first new ones. Old tokens keep their ids; added tokens become part of the
 * base vocabulary. json and config: the new files' texts. Errors: MHF_E_DATA for a text that gives
 * fewer tokens (exact) or a vocabulary with gaps. */
mhf_status mhf_tokenizer_extend(const mhf_tokenizer *tokenizer, const char *const *paths,
                                int32_t n_paths, int32_t per_text, mhf_extend_rule rule,
                                mhf_buf *json, mhf_buf *config);

/** Append what could make `grown` split old texts otherwise than `old` does: parts of the file that
 * are not the same, old merges that are gone or moved, new ones before old ones; nothing where all
 * goes on as it was. */
mhf_status mhf_tokenizer_differences(const mhf_tokenizer *old, const mhf_tokenizer *grown,
                                     mhf_buf *out);

/* ---- reading a corpus ----------------------------------------------------------------------- */

typedef struct mhf_corpus mhf_corpus;

/** Open .txt (a blank line parts documents), .jsonl (member "text"), also .gz and .zst of them;
 * "-" is plain text from stdin. Streams: memory is that of one document. */
mhf_status mhf_corpus_open(const char *path, mhf_corpus **out);
/** Next document, stripped of white space at both ends (it may be empty); *text is valid until the
 * next call; *end is true, and *text NULL, after the last. Errors name the file and line. */
mhf_status mhf_corpus_next(mhf_corpus *corpus, const char **text, size_t *n, bool *end);
/** The same, but .txt gives each line as a text of its own, as it is, without its end: what
 * training a tokenizer reads. */
mhf_status mhf_corpus_next_line(mhf_corpus *corpus, const char **text, size_t *n, bool *end);
void mhf_corpus_close(mhf_corpus *corpus);
/** True when a document belongs to the held-out part: XXH3-64(text)/2^64 < fraction. */
bool mhf_corpus_held_out(const char *text, size_t n, double fraction);

#endif
