/* SPDX-License-Identifier: ISC */
/* From a signature back to its token. */
#include "mhf/hash.h"

#include <stdlib.h>

struct mhf_signature_index {
    mhf_map *tokens;
    size_t width; /* bytes of a signature */
};

mhf_status mhf_signature_index_new(const mhf_signatures *table, mhf_signature_index **out)
{
    mhf_signature_index *index = NULL;
    MHF_TRY(mhf_new(&index, 1, sizeof *index, "a signature index"));
    int64_t H = table->options.num_hashes;
    index->width = (size_t)H * sizeof *table->ids;
    mhf_status status = mhf_map_new(table->size, &index->tokens);
    /* Downwards, so that the lowest token keeps a shared signature. */
    for (int64_t t = table->size - 1; status == MHF_OK && t >= 0; t--)
        status = mhf_map_put(index->tokens, table->ids + t * H, index->width, t);
    if (status == MHF_OK)
        *out = index;
    else
        mhf_signature_index_free(index);
    return status;
}

int32_t mhf_signature_index_find(const mhf_signature_index *index, const mhf_bucket *signature)
{
    return (int32_t)mhf_map_get(index->tokens, signature, index->width, -1);
}

void mhf_signature_index_free(mhf_signature_index *index)
{
    if (!index)
        return;
    mhf_map_free(index->tokens);
    free(index);
}
