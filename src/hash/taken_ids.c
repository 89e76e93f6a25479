/* SPDX-License-Identifier: ISC */
#include "taken_ids.h"

#include <stdlib.h>

static size_t bytes_of(int32_t ids)
{
    return (size_t)ids * sizeof(mhf_bucket);
}

mhf_status mhf_taken_ids_start(const mhf_signature_options *options, int32_t tokens,
                               mhf_taken_ids *out)
{
    out->rule = options->rule;
    out->num_hashes = options->num_hashes;
    MHF_TRY(mhf_map_new(tokens, &out->prefixes));
    if (out->rule == MHF_RULE_UNIQUE)
        MHF_TRY(mhf_map_new(tokens, &out->signatures));
    MHF_TRY(mhf_new(&out->latest, tokens, sizeof *out->latest, "last ids"));
    return mhf_new(&out->counts, tokens, sizeof *out->counts, "counts of last ids");
}

void mhf_taken_ids_free(mhf_taken_ids *taken)
{
    mhf_map_free(taken->prefixes);
    mhf_map_free(taken->signatures);
    free(taken->latest);
    free(taken->counts);
}

mhf_status mhf_taken_ids_prefix(mhf_taken_ids *taken, const mhf_bucket *signature, int32_t *prefix)
{
    size_t n = bytes_of(taken->num_hashes - 1);
    *prefix = (int32_t)mhf_map_get(taken->prefixes, signature, n, -1);
    if (*prefix >= 0)
        return MHF_OK;
    *prefix = taken->n;
    MHF_TRY(mhf_map_put(taken->prefixes, signature, n, taken->n));
    taken->n++;
    return MHF_OK;
}

/* An id of 0, the pad's or none yet, equals none that a token can get. */
bool mhf_taken_ids_has(const mhf_taken_ids *taken, int32_t prefix, const mhf_bucket *signature)
{
    if (taken->rule == MHF_RULE_UNIQUE)
        return mhf_map_get(taken->signatures, signature, bytes_of(taken->num_hashes), -1) >= 0;
    return taken->latest[prefix] == signature[taken->num_hashes - 1];
}

int32_t mhf_taken_ids_count(const mhf_taken_ids *taken, int32_t prefix)
{
    return taken->rule == MHF_RULE_UNIQUE ? taken->counts[prefix] : taken->latest[prefix] != 0;
}

mhf_status mhf_taken_ids_add(mhf_taken_ids *taken, int32_t prefix, const mhf_bucket *signature)
{
    taken->latest[prefix] = signature[taken->num_hashes - 1];
    if (taken->rule != MHF_RULE_UNIQUE)
        return MHF_OK;
    taken->counts[prefix] += signature[taken->num_hashes - 1] != 0;
    return mhf_map_put(taken->signatures, signature, bytes_of(taken->num_hashes), 0);
}
