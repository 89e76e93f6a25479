/* SPDX-License-Identifier: ISC */
#ifndef MHF_TEXT_TOKENIZER_H
#define MHF_TEXT_TOKENIZER_H

#include "added.h"
#include "bpe.h"
#include "decoder.h"
#include "normalizer.h"
#include "pieces.h"
#include "pretokenizer.h"
#include "template.h"

struct mhf_tokenizer {
    mhf_pieces pieces; /* the model's, then the added tokens past them */
    mhf_normalizers normalizers;
    mhf_pretokenizers pretokenizers;
    mhf_bpe bpe;
    mhf_added added;
    mhf_template around;
    mhf_decoders decoders;
    bool *special;  /* [pieces.n] */
    int32_t *bytes; /* [pieces.n] that each adds to a text */
    mhf_token bos, eos, pad, unk;
    mhf_buf json, config;
    bool has_config;
    bool truncates, pads; /* the file asks for that; not applied */
    char sha256[65];      /* of the content */
};

/* Fill the sum of a file that was parsed to `json`. */
mhf_status mhf_tokenizer_identify(mhf_tokenizer *t, const json_t *json);

#endif
