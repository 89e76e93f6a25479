/* SPDX-License-Identifier: ISC */
/* tokenizer.json around a trained vocabulary: the pipeline that training starts from, the two texts
 * that it ends with. */
#ifndef MHF_TEXT_TRAINER_FORM_H
#define MHF_TEXT_TRAINER_FORM_H

#include "trainer_merges.h"

/* Zero-initialise; free with mhf_tokenizer_form_free. */
typedef struct mhf_tokenizer_form {
    json_t *json; /* a tokenizer.json; its vocabulary and merges count for nothing */
    mhf_buf config;
    bool byte_level;   /* the alphabet holds all 256 bytes */
    bool byte_tokens;  /* <0x00> to <0xFF> come after the special tokens */
    json_t *specials;  /* list of added tokens */
    mhf_buf described; /* name in errors */
} mhf_tokenizer_form;

mhf_status mhf_tokenizer_form_of_kind(mhf_tokenizer_kind kind, mhf_tokenizer_form *form);
/** Pipeline and special tokens of a tokenizer; other added tokens are left out. */
mhf_status mhf_tokenizer_form_like(const mhf_tokenizer *like, mhf_tokenizer_form *form);
/** One more special token, unless it is one already. */
mhf_status mhf_tokenizer_form_special(mhf_tokenizer_form *form, const char *content, size_t n);
/** Text of a tokenizer.json with the special tokens as its vocabulary: good for splitting words. */
mhf_status mhf_tokenizer_form_empty(const mhf_tokenizer_form *form, mhf_buf *json);
/** Special tokens and byte tokens, the start of the vocabulary. */
mhf_status mhf_tokenizer_form_start(const mhf_tokenizer_form *form, mhf_pieces *pieces);
/** Text of the trained tokenizer.json. */
mhf_status mhf_tokenizer_form_print(const mhf_tokenizer_form *form, const mhf_pieces *pieces,
                                    const mhf_merge_list *merges, mhf_buf *json);
/** Replace the "vocab" or "merges" of a tokenizer.json's "model". */
mhf_status mhf_tokenizer_set_vocab(json_t *model, const mhf_pieces *pieces);
mhf_status mhf_tokenizer_set_merges(json_t *model, const mhf_pieces *pieces,
                                    const mhf_merge_list *merges);
/** The text of a tokenizer.json, appended. */
mhf_status mhf_tokenizer_print(const json_t *root, mhf_buf *json);
void mhf_tokenizer_form_free(mhf_tokenizer_form *form);

#endif
