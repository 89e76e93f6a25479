/* SPDX-License-Identifier: ISC */
/* Which last ids are taken under which prefix (the first H-1 ids), while a table is built. */
#ifndef MHF_HASH_TAKEN_IDS_H
#define MHF_HASH_TAKEN_IDS_H

#include "mhf/hash.h"

typedef struct mhf_taken_ids {
    mhf_signature_rule rule;
    int32_t num_hashes;
    mhf_map *prefixes;   /* first H-1 ids → number of the prefix */
    mhf_map *signatures; /* all H ids, where the rule is unique */
    mhf_bucket *latest;  /* [prefixes] last id that came last */
    int32_t *counts;     /* [prefixes] different last ids but 0, where the rule is unique */
    int32_t n;
} mhf_taken_ids;

/** Room for `tokens` tokens. Zero-initialise `out`; free it on error too. */
mhf_status mhf_taken_ids_start(const mhf_signature_options *options, int32_t tokens,
                               mhf_taken_ids *out);
void mhf_taken_ids_free(mhf_taken_ids *taken);
/** Number of the prefix of `signature` [H]; a new one is opened when it is unknown. */
mhf_status mhf_taken_ids_prefix(mhf_taken_ids *taken, const mhf_bucket *signature, int32_t *prefix);
/** Is the last id of `signature` taken, in the rule's sense? */
bool mhf_taken_ids_has(const mhf_taken_ids *taken, int32_t prefix, const mhf_bucket *signature);
/** How many of the ids 1..B-1 are taken under the prefix, in the rule's sense. */
int32_t mhf_taken_ids_count(const mhf_taken_ids *taken, int32_t prefix);
mhf_status mhf_taken_ids_add(mhf_taken_ids *taken, int32_t prefix, const mhf_bucket *signature);

#endif
