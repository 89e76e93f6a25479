/* SPDX-License-Identifier: ISC */
/** hash: MurmurHash3, the signature rules, the table of all tokens' signatures and its inverse.
 * Knows nothing of parameters or of a file's layout. Nothing here is collective; every result is
 * the same on every rank and machine.
 */
#ifndef MHF_HASH_H
#define MHF_HASH_H

#include "mhf/base.h"

typedef uint32_t mhf_bucket;

typedef struct mhf_hash128 {
    uint64_t low, high; /* h1, h2: the 128-bit integer is high·2^64 + low */
} mhf_hash128;

/** MurmurHash3_x64_128 with both halves started at `seed`. Reads bytes, so alignment and byte order
 * don't matter. Source: A. Appleby, MurmurHash3 (public domain). */
mhf_hash128 mhf_murmur3(const void *bytes, size_t n, uint32_t seed);
/** (high·2^64 + low) mod m, m ≥ 1. */
uint64_t mhf_hash128_mod(mhf_hash128 hash, uint64_t m);

typedef enum mhf_signature_rule {
    MHF_RULE_UNIQUE,    /* every earlier token of the prefix counts: one-to-one */
    MHF_RULE_REFERENCE, /* the released code: only the prefix's latest token counts */
    MHF_RULE_IMPORTED,  /* taken from a checkpoint as it is */
} mhf_signature_rule;

const char *mhf_signature_rule_name(mhf_signature_rule rule);
mhf_status mhf_signature_rule_parse(const char *name, mhf_signature_rule *out);

/* The tokens that get signatures, in id order. */
typedef struct mhf_vocabulary {
    const char *const *pieces; /* [size] spelling of each, UTF-8 */
    const size_t *lengths;     /* [size] bytes of each */
    int32_t size;              /* V_actl: real tokens */
    int32_t base_size;         /* tokens of the base vocabulary, ≤ size */
    int32_t pad;               /* id whose signature is all zero */
} mhf_vocabulary;

typedef struct mhf_signature_options {
    int32_t num_hashes;  /* H, 1..64 */
    int32_t num_buckets; /* B ≥ 2 */
    int32_t num_lsh;     /* the first num_lsh coordinates are LSH, 0..H */
    mhf_signature_rule rule;
    uint32_t hash_seed; /* added to every murmur seed */
} mhf_signature_options;

/* The table. Owned arrays; free with mhf_signatures_free. */
typedef struct mhf_signatures {
    mhf_bucket *ids; /* [V, H] row-major; rows ≥ size are zero and are not tokens */
    int32_t rows;    /* V: size rounded up to a multiple of 128 */
    int32_t size;    /* V_actl */
    int32_t base_size;
    int32_t pad;
    mhf_signature_options options;
    int32_t duplicates; /* real tokens minus distinct signatures among them */
    char tokenizer_sha256[65];
} mhf_signatures;

/** Give every token its H bucket ids.
 *
 * Coordinate j < H-1 is murmur3(piece, j + hash_seed) mod (B-1) + 1; the last is re-hashed with
 * seeds H-1+r, r = 0, 1, …, until free in the rule's sense. The first num_lsh coordinates are LSH
 * instead. The pad is all zero. Tokens are visited in id order; added tokens past the base
 * vocabulary get a signature under `unique` and stay all zero under `reference`.
 *
 * vocabulary  borrowed during the call.
 * out         zero-initialised; owns its arrays; untouched on error. tokenizer_sha256 stays empty.
 * Errors      MHF_E_EXHAUSTED when a token finds no free last id (the token is named), or when no
 *             unique table exists (H = 1 and too few buckets, or all coordinates LSH);
 *             MHF_E_CONFIG for options out of range; MHF_E_DATA for a vocabulary with gaps, a pad
 *             outside it, or, with LSH, a piece that is not UTF-8; MHF_E_NOMEM.
 * Cost        O(H·bytes) hashes expected. LSH: size·num_lsh²·128·(B-1) additions over the OpenMP
 *             threads and 512·num_lsh·(B-1) floats (half a minute on two cores and 134 MB for
 *             32,768 tokens, B = 16384, num_lsh = 4).
 * Source      arXiv 2606.28057, multi-hash indexing. */
mhf_status mhf_signatures_build(const mhf_vocabulary *vocabulary,
                                const mhf_signature_options *options, mhf_signatures *out);
/** Take a table as it is and count its duplicates.
 *
 * ids     [rows, H], copied; rows from `size` on are kept as they are. base_size becomes size.
 * Errors  MHF_E_DATA for an id ≥ B (token and coordinate named), rows < size, or a pad that is no
 *         token; MHF_E_CONFIG for options out of range; MHF_E_NOMEM. `out` untouched on error. */
mhf_status mhf_signatures_adopt(const mhf_bucket *ids, int32_t rows, int32_t size, int32_t pad,
                                const mhf_signature_options *options, mhf_signatures *out);
/** Add tokens to a table whose rows stay as they are, whatever rule made them: each new token gets
 * a signature that no token has, found as `unique` finds it.
 *
 * kept        the table so far: its tokens are the first kept->size of the vocabulary.
 * vocabulary  of all tokens, its pad the table's; borrowed during the call.
 * out         as mhf_signatures_build; its rule is imported.
 * Errors      as mhf_signatures_build under `unique`; MHF_E_DATA for another pad, or fewer tokens.
 */
mhf_status mhf_signatures_extend(const mhf_signatures *kept, const mhf_vocabulary *vocabulary,
                                 mhf_signatures *out);
/** Release the arrays and zero the table; a zero table is allowed. */
void mhf_signatures_free(mhf_signatures *table);

/* ---- the inverse ---------------------------------------------------------------------------- */

typedef struct mhf_signature_index mhf_signature_index;

/** From signatures to tokens; needs the table no longer afterwards. MHF_E_NOMEM. */
mhf_status mhf_signature_index_new(const mhf_signatures *table, mhf_signature_index **out);
/** Lowest token id with this signature ([H]), or -1. */
int32_t mhf_signature_index_find(const mhf_signature_index *index, const mhf_bucket *signature);
void mhf_signature_index_free(mhf_signature_index *index);

/* ---- report --------------------------------------------------------------------------------- */

/** Append a report in words: duplicates, capacity (B-1)^H, bucket loads of each coordinate (mean,
 * smallest, largest, empty), and for each pair of coordinates the tokens on which they coincide,
 * the number expected and its Poisson 95 % interval, with a warning only outside it. Chance is
 * n/(B-1) between murmur coordinates, and follows the loads where one is LSH. A factor that B-1
 * shares with 2^65+1, by which MurmurHash3's halves are correlated, is named. MHF_E_NOMEM. */
mhf_status mhf_signatures_report(const mhf_signatures *table, mhf_buf *out);

/* ---- normal deviates of PyTorch's CPU generator -----------------------------------------------
 */

/** out[0..n) = torch.randn(n) after torch.manual_seed(seed), float32, n ≥ 16 (MT19937, Box-Muller
 * in blocks of 16, Cephes log and sincos with fused multiply-adds). */
mhf_status mhf_torch_normals(uint32_t seed, int64_t n, float *out);

#endif
