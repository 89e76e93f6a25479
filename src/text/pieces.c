/* SPDX-License-Identifier: ISC */
#include "pieces.h"

#include <stdlib.h>

mhf_status mhf_pieces_add(mhf_pieces *pieces, const char *piece, size_t n, mhf_token *id)
{
    if (!pieces->ids)
        MHF_TRY(mhf_map_new(1 << 12, &pieces->ids));
    *id = mhf_pieces_find(pieces, piece, n);
    if (*id >= 0)
        return MHF_OK;
    if (pieces->n == INT32_MAX)
        return mhf_fail(MHF_E_DATA, "a vocabulary of more than %d tokens", INT32_MAX);
    MHF_TRY(mhf_grow(&pieces->ends, &pieces->capacity, (int64_t)pieces->n + 1, sizeof *pieces->ends,
                     "a vocabulary"));
    MHF_TRY(mhf_buf_add(&pieces->bytes, piece, n));
    MHF_TRY(mhf_map_put(pieces->ids, piece, n, pieces->n));
    pieces->ends[pieces->n] = pieces->bytes.n;
    *id = pieces->n++;
    return MHF_OK;
}

const char *mhf_pieces_get(const mhf_pieces *pieces, mhf_token id, size_t *n)
{
    size_t begin = id == 0 ? 0 : pieces->ends[id - 1];
    *n = pieces->ends[id] - begin;
    return pieces->bytes.data + begin;
}

mhf_token mhf_pieces_find(const mhf_pieces *pieces, const char *piece, size_t n)
{
    return pieces->ids ? (mhf_token)mhf_map_get(pieces->ids, piece, n, -1) : -1;
}

void mhf_pieces_free(mhf_pieces *pieces)
{
    mhf_buf_free(&pieces->bytes);
    free(pieces->ends);
    mhf_map_free(pieces->ids);
    *pieces = (mhf_pieces){0};
}
