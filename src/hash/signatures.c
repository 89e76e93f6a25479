/* SPDX-License-Identifier: ISC */
/* Building the signature table, adding tokens to one, and taking one as it is. */
#include "mhf/hash.h"

#include <stdlib.h>
#include <string.h>

#include "lsh.h"
#include "taken_ids.h"

enum {
    ROW_MULTIPLE = 128, /* rows are padded to it, as the models' matrices are */
    MAX_HASHES = 64,    /* of the model too; bounds what a wrong option can ask for */
    NAME_BYTES = 64,    /* of a token, in an error */
};

static mhf_status check_options(const mhf_signature_options *o)
{
    if (o->num_hashes < 1 || o->num_hashes > MAX_HASHES)
        return mhf_fail(MHF_E_CONFIG, "%d hash functions, expected 1..%d", o->num_hashes,
                        MAX_HASHES);
    if (o->num_buckets < 2)
        return mhf_fail(MHF_E_CONFIG,
                        "%d buckets, expected at least 2: bucket 0 belongs to the pad token",
                        o->num_buckets);
    if (o->num_lsh < 0 || o->num_lsh > o->num_hashes)
        return mhf_fail(MHF_E_CONFIG, "%d LSH coordinates, expected 0..%d, the hash functions",
                        o->num_lsh, o->num_hashes);
    return MHF_OK;
}

static mhf_status check_vocabulary(const mhf_vocabulary *v)
{
    if (v->size < 1 || v->base_size < 0 || v->base_size > v->size)
        return mhf_fail(MHF_E_DATA, "a vocabulary of %d tokens, %d of them in its base", v->size,
                        v->base_size);
    if (v->pad < 0 || v->pad >= v->size)
        return mhf_fail(MHF_E_DATA, "pad token %d, expected one of the %d tokens", v->pad, v->size);
    for (int32_t id = 0; id < v->size; id++)
        if (!v->pieces[id])
            return mhf_fail(MHF_E_DATA, "no token has id %d, expected one for each of 0..%d", id,
                            v->size - 1);
    return MHF_OK;
}

/* What can be told before any hash: a unique table that no search can find. */
static mhf_status check_possible(const mhf_vocabulary *v, const mhf_signature_options *o)
{
    if (o->rule != MHF_RULE_UNIQUE)
        return MHF_OK;
    if (o->num_lsh == o->num_hashes)
        return mhf_fail(MHF_E_EXHAUSTED,
                        "all %d coordinates are LSH, so nothing can be re-hashed and tokens may "
                        "share a signature; use --rule reference",
                        o->num_hashes);
    if (o->num_hashes == 1 && v->size - 1 > o->num_buckets - 1)
        return mhf_fail(MHF_E_EXHAUSTED,
                        "%d tokens besides the pad can't have an id each of the %d that one hash "
                        "function has; use more buckets, or --rule reference",
                        v->size - 1, o->num_buckets - 1);
    return MHF_OK;
}

static mhf_status allocate(int32_t size, const mhf_signature_options *options, mhf_signatures *out)
{
    int64_t rows = ((int64_t)size + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
    MHF_TRY(mhf_narrow(rows, "rows of the signature table", &out->rows));
    out->size = size;
    out->options = *options;
    return mhf_new(&out->ids, rows * options->num_hashes, sizeof *out->ids, "the signature table");
}

/* ---- murmur coordinates ------------------------------------------------------------------------
 */

static mhf_bucket murmur_id(const mhf_vocabulary *v, const mhf_signature_options *o, int32_t id,
                            uint32_t seed)
{
    mhf_hash128 hash = mhf_murmur3(v->pieces[id], v->lengths[id], o->hash_seed + seed);
    return (mhf_bucket)mhf_hash128_mod(hash, (uint64_t)o->num_buckets - 1) + 1;
}

/* Re-hash the last id until it is free. One free id among m escapes 64·m tries once in e^64, so the
 * search ends there rather than after all 2^32 seeds. */
static mhf_status find_free(const mhf_vocabulary *v, const mhf_signature_options *o, int32_t id,
                            const mhf_taken_ids *taken, int32_t prefix, mhf_bucket *signature)
{
    uint32_t last = (uint32_t)o->num_hashes - 1;
    int64_t ids = o->num_buckets - 1, tries = 64 * ids;
    if (tries > UINT32_MAX)
        tries = UINT32_MAX;
    if (mhf_taken_ids_count(taken, prefix) < ids) {
        for (int64_t r = 0; r < tries; r++) {
            signature[last] = murmur_id(v, o, id, last + (uint32_t)r);
            if (!mhf_taken_ids_has(taken, prefix, signature))
                return MHF_OK;
        }
    }
    size_t n = v->lengths[id] < NAME_BYTES ? v->lengths[id] : NAME_BYTES;
    return mhf_fail(MHF_E_EXHAUSTED,
                    "token %d '%.*s' finds no free id in the last coordinate: %d of %lld are taken "
                    "by tokens that share its other ids; use more buckets or hash functions%s",
                    id, (int)n, v->pieces[id], mhf_taken_ids_count(taken, prefix), (long long)ids,
                    o->rule == MHF_RULE_UNIQUE ? ", or --rule reference" : "");
}

static mhf_status give_signature(const mhf_vocabulary *v, const mhf_signature_options *o,
                                 int32_t id, mhf_taken_ids *taken, mhf_bucket *signature)
{
    int32_t prefix;
    if (id != v->pad)
        for (int32_t j = o->num_lsh; j < o->num_hashes - 1; j++)
            signature[j] = murmur_id(v, o, id, (uint32_t)j);
    MHF_TRY(mhf_taken_ids_prefix(taken, signature, &prefix));
    if (id != v->pad)
        MHF_TRY(find_free(v, o, id, taken, prefix, signature));
    /* The pad is remembered too: with one hash function the released code then forgets the token
     * before it. */
    return mhf_taken_ids_add(taken, prefix, signature);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

static mhf_status count_duplicates(mhf_signatures *table)
{
    size_t width = (size_t)table->options.num_hashes * sizeof *table->ids;
    mhf_map *seen = NULL;
    mhf_status status = mhf_map_new(table->size, &seen);
    for (int64_t t = 0; status == MHF_OK && t < table->size; t++)
        status = mhf_map_put(seen, table->ids + t * table->options.num_hashes, width, t);
    if (status == MHF_OK)
        table->duplicates = table->size - (int32_t)mhf_map_count(seen);
    mhf_map_free(seen);
    return status;
}

/* Of the tokens first .. last-1. */
static mhf_status fill_lsh(const mhf_vocabulary *v, int32_t first, int32_t last,
                           mhf_signatures *table)
{
    int32_t *tokens = NULL, count = 0;
    MHF_TRY(mhf_new(&tokens, last - first, sizeof *tokens, "token ids"));
    for (int32_t id = first; id < last; id++)
        if (id != v->pad)
            tokens[count++] = id;
    mhf_status status = mhf_lsh_fill(v, &table->options, tokens, count, table->ids);
    free(tokens);
    return status;
}

mhf_status mhf_signatures_build(const mhf_vocabulary *vocabulary,
                                const mhf_signature_options *options, mhf_signatures *out)
{
    if (options->rule == MHF_RULE_IMPORTED)
        return mhf_fail(MHF_E_CONFIG, "a table of rule imported is read, not built; expected "
                                      "unique or reference");
    MHF_TRY(check_options(options));
    MHF_TRY(check_vocabulary(vocabulary));
    MHF_TRY(check_possible(vocabulary, options));

    /* Added tokens past the base vocabulary stay all zero in the released code. */
    int32_t visited = options->rule == MHF_RULE_UNIQUE ? vocabulary->size : vocabulary->base_size;
    mhf_signatures table = {.base_size = vocabulary->base_size, .pad = vocabulary->pad};
    mhf_taken_ids taken = {0};
    mhf_status status = allocate(vocabulary->size, options, &table);
    if (status == MHF_OK && options->num_lsh > 0)
        status = fill_lsh(vocabulary, 0, visited, &table);
    if (status == MHF_OK && options->num_lsh < options->num_hashes) {
        status = mhf_taken_ids_start(options, visited, &taken);
        for (int32_t id = 0; status == MHF_OK && id < visited; id++)
            status = give_signature(vocabulary, options, id, &taken,
                                    table.ids + (int64_t)id * options->num_hashes);
    }
    if (status == MHF_OK)
        status = count_duplicates(&table);
    mhf_taken_ids_free(&taken);
    if (status == MHF_OK)
        *out = table;
    else
        mhf_signatures_free(&table);
    return status;
}

/* Rows that share a signature stand once among the taken ids. */
static mhf_status take_row(mhf_taken_ids *taken, const mhf_bucket *signature)
{
    int32_t prefix;
    MHF_TRY(mhf_taken_ids_prefix(taken, signature, &prefix));
    return mhf_taken_ids_has(taken, prefix, signature)
               ? MHF_OK
               : mhf_taken_ids_add(taken, prefix, signature);
}

static mhf_status give_new(const mhf_signatures *kept, const mhf_vocabulary *v,
                           const mhf_signature_options *o, mhf_signatures *table)
{
    const int64_t H = o->num_hashes;
    mhf_taken_ids taken = {0};
    mhf_status status = mhf_taken_ids_start(o, v->size, &taken);
    for (int64_t id = 0; status == MHF_OK && id < kept->size; id++)
        status = take_row(&taken, table->ids + id * H);
    for (int32_t id = kept->size; status == MHF_OK && id < v->size; id++)
        status = give_signature(v, o, id, &taken, table->ids + id * H);
    mhf_taken_ids_free(&taken);
    return status;
}

mhf_status mhf_signatures_extend(const mhf_signatures *kept, const mhf_vocabulary *vocabulary,
                                 mhf_signatures *out)
{
    mhf_signature_options options = kept->options;
    options.rule = MHF_RULE_UNIQUE;
    MHF_TRY(check_options(&options));
    MHF_TRY(check_vocabulary(vocabulary));
    if (vocabulary->size < kept->size || vocabulary->pad != kept->pad)
        return mhf_fail(MHF_E_DATA,
                        "a vocabulary of %d tokens with pad %d, expected one that goes on from %d "
                        "tokens with pad %d",
                        vocabulary->size, vocabulary->pad, kept->size, kept->pad);
    if (vocabulary->size > kept->size)
        MHF_TRY(check_possible(vocabulary, &options));
    mhf_signatures table = {.base_size = vocabulary->base_size, .pad = kept->pad};
    mhf_status status = allocate(vocabulary->size, &options, &table);
    table.options.rule = MHF_RULE_IMPORTED;
    if (status == MHF_OK)
        memcpy(table.ids, kept->ids,
               (size_t)kept->size * (size_t)options.num_hashes * sizeof *table.ids);
    if (status == MHF_OK && options.num_lsh > 0 && vocabulary->size > kept->size)
        status = fill_lsh(vocabulary, kept->size, vocabulary->size, &table);
    if (status == MHF_OK)
        status = give_new(kept, vocabulary, &options, &table);
    if (status == MHF_OK)
        status = count_duplicates(&table);
    if (status == MHF_OK)
        *out = table;
    else
        mhf_signatures_free(&table);
    return status;
}

mhf_status mhf_signatures_adopt(const mhf_bucket *ids, int32_t rows, int32_t size, int32_t pad,
                                const mhf_signature_options *options, mhf_signatures *out)
{
    MHF_TRY(check_options(options));
    if (size < 1 || rows < size)
        return mhf_fail(MHF_E_DATA,
                        "a signature table of %d rows for %d tokens, expected a row "
                        "for each",
                        rows, size);
    if (pad < 0 || pad >= size)
        return mhf_fail(MHF_E_DATA, "pad token %d, expected one of the %d tokens", pad, size);
    int64_t H = options->num_hashes, n = (int64_t)rows * H;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] >= (uint32_t)options->num_buckets)
            return mhf_fail(MHF_E_DATA,
                            "signature of token %lld, coordinate %lld: bucket %u, expected below "
                            "%d",
                            (long long)(i / H), (long long)(i % H), ids[i], options->num_buckets);
    mhf_signatures table = {
        .rows = rows, .size = size, .base_size = size, .pad = pad, .options = *options};
    MHF_TRY(mhf_new(&table.ids, n, sizeof *table.ids, "the signature table"));
    memcpy(table.ids, ids, (size_t)n * sizeof *ids);
    mhf_status status = count_duplicates(&table);
    if (status == MHF_OK)
        *out = table;
    else
        mhf_signatures_free(&table);
    return status;
}

void mhf_signatures_free(mhf_signatures *table)
{
    free(table->ids);
    *table = (mhf_signatures){0};
}
