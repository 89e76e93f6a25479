/* SPDX-License-Identifier: ISC */
/* The "decoder" of a tokenizer.json: from the spellings of tokens back to text. */
#ifndef MHF_TEXT_DECODER_H
#define MHF_TEXT_DECODER_H

#include "pattern.h"
#include "pretokenizer.h"

typedef enum mhf_decoder_kind {
    MHF_DECODE_BYTE_LEVEL,
    MHF_DECODE_METASPACE,
    MHF_DECODE_REPLACE,
    MHF_DECODE_BYTE_FALLBACK,
    MHF_DECODE_FUSE,
    MHF_DECODE_STRIP,
} mhf_decoder_kind;

typedef struct mhf_decoder {
    mhf_decoder_kind kind;
    mhf_pattern pattern; /* Replace */
    char *content;       /* Replace */
    size_t n_content;
    uint32_t character;        /* Metaspace, Strip */
    mhf_prepend_scheme scheme; /* Metaspace */
    int64_t start, stop;       /* Strip */
} mhf_decoder;

/* Zero-initialise; free with mhf_decoders_free. */
typedef struct mhf_decoders {
    mhf_decoder *list;
    int64_t n, capacity;
} mhf_decoders;

/* A list of strings. Zero-initialise; free with mhf_strings_free. */
typedef struct mhf_strings {
    mhf_buf bytes;
    size_t *ends; /* [n] */
    int64_t n, capacity;
    size_t most; /* bytes that a step may make of others; 0: any number */
} mhf_strings;

mhf_status mhf_strings_end(mhf_strings *strings);
/** Append one string. */
mhf_status mhf_strings_add(mhf_strings *strings, const char *text, size_t n);
const char *mhf_strings_get(const mhf_strings *strings, int64_t i, size_t *n);
void mhf_strings_clear(mhf_strings *strings);
void mhf_strings_free(mhf_strings *strings);

/** `json` may be NULL or null: tokens are then joined by spaces. */
mhf_status mhf_decoders_parse(const json_t *json, const char *name, mhf_decoders *out);
void mhf_decoders_free(mhf_decoders *decoders);
/** Append the text of the tokens; `tokens` is used up. */
mhf_status mhf_decoders_apply(const mhf_decoders *decoders, mhf_strings *tokens, mhf_buf *out);
/** Bytes that one token adds inside a text: what depends on its place is left out. */
mhf_status mhf_decoders_count(const mhf_decoders *decoders, mhf_matcher *matcher, const char *token,
                              size_t n, int32_t *bytes);

/** One step of the chain over a list of tokens. */
mhf_status mhf_decoder_step(const mhf_decoder *step, mhf_matcher *matcher,
                            const mhf_strings *tokens, mhf_strings *out);
/** The byte of a token like "<0x0A>", or -1. */
int mhf_byte_token(const char *token, size_t n);

#endif
