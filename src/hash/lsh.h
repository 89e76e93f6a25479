/* SPDX-License-Identifier: ISC */
/* Locality-sensitive coordinates: tokens with alike spellings get alike ids. */
#ifndef MHF_HASH_LSH_H
#define MHF_HASH_LSH_H

#include "mhf/hash.h"

/** Fill columns 0..num_lsh-1 of `ids` [rows, H] for `count` tokens, given by id in `tokens`.
 *
 * ids     row of token t at t·H; other columns and rows are left alone.
 * Errors  MHF_E_DATA for a piece that is not UTF-8; MHF_E_NOMEM.
 * Cost    count·num_lsh²·512·(B-1)/4 additions over the OpenMP threads; memory of one slice of
 *         matrix 2: 512·num_lsh·(B-1) floats (134 MB at B = 16384, num_lsh = 4).
 * Source: the released code, as the goldens record it. */
mhf_status mhf_lsh_fill(const mhf_vocabulary *vocabulary, const mhf_signature_options *options,
                        const int32_t *tokens, int32_t count, mhf_bucket *ids);

#endif
