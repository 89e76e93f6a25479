/* SPDX-License-Identifier: ISC */
/* The signature table as a dataset with attributes on it, in a file of its own or in a checkpoint.
 */
#include "signatures.h"

#include <stdlib.h>
#include <string.h>

static const char format_name[] = "mhf-signatures";
static const char dataset[] = "/signatures";

/* ---- writing --------------------------------------------------------------------------------- */

mhf_status mhf_signatures_put(mhf_h5 *file, const mhf_signatures *table)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"num_buckets", table->options.num_buckets}, {"num_lsh", table->options.num_lsh},
        {"hash_seed", table->options.hash_seed},     {"pad_id", table->pad},
        {"vocab_size_actual", table->size},          {"vocab_size_base", table->base_size},
        {"duplicates", table->duplicates},
    };
    mhf_h5_shape shape = {2, {table->rows, table->options.num_hashes}};
    MHF_TRY(mhf_h5_put(file, dataset, MHF_H5_U32, &shape, table->ids));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        MHF_TRY(mhf_h5_put_int(file, dataset, numbers[i].name, numbers[i].value));
    MHF_TRY(mhf_h5_put_text(file, dataset, "rule", mhf_signature_rule_name(table->options.rule)));
    return mhf_h5_put_text(file, dataset, "tokenizer_sha256", table->tokenizer_sha256);
}

mhf_status mhf_signatures_write(const char *path, const mhf_signatures *table,
                                const mhf_tokenizer *tokenizer)
{
    mhf_h5 file;
    mhf_vocabulary vocabulary = {0};
    MHF_TRY(mhf_h5_create(path, format_name, &file));
    mhf_status status = mhf_signatures_put(&file, table);
    if (status == MHF_OK && tokenizer)
        status = mhf_vocabulary_of(tokenizer, &vocabulary);
    if (status == MHF_OK && tokenizer)
        status = mhf_h5_put_strings(&file, "/tokens", vocabulary.size, vocabulary.pieces,
                                    vocabulary.lengths);
    mhf_vocabulary_free(&vocabulary);
    return mhf_h5_finish(&file, status);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What the attributes say, untrusted but in range. */
typedef struct claims {
    int64_t buckets, lsh, seed, pad, size, base_size, duplicates;
    mhf_signature_rule rule;
    char sha256[65];
} claims;

static mhf_status read_texts(const mhf_h5 *file, claims *out)
{
    mhf_buf text = {0};
    mhf_status status = mhf_h5_get_text(file, dataset, "rule", &text);
    if (status == MHF_OK && mhf_signature_rule_parse(text.data, &out->rule) != MHF_OK)
        status = mhf_fail(MHF_E_DATA, "%s: /signatures names the rule '%.40s'", file->path.data,
                          text.data);
    if (status == MHF_OK)
        status = mhf_h5_get_text(file, dataset, "tokenizer_sha256", &text);
    if (status == MHF_OK && text.n != 0 && text.n != 64)
        status = mhf_fail(MHF_E_DATA, "%s: 'tokenizer_sha256' of /signatures has %zu characters",
                          file->path.data, text.n);
    if (status == MHF_OK)
        snprintf(out->sha256, sizeof out->sha256, "%s", text.data);
    mhf_buf_free(&text);
    return status;
}

static mhf_status read_claims(const mhf_h5 *file, int64_t rows, int64_t hashes, claims *out)
{
    *out = (claims){0};
    MHF_TRY(mhf_h5_get_int(file, dataset, "num_buckets", 2, INT32_MAX, &out->buckets));
    MHF_TRY(mhf_h5_get_int(file, dataset, "num_lsh", 0, hashes, &out->lsh));
    MHF_TRY(mhf_h5_get_int(file, dataset, "hash_seed", 0, UINT32_MAX, &out->seed));
    MHF_TRY(mhf_h5_get_int(file, dataset, "vocab_size_actual", 1, rows, &out->size));
    MHF_TRY(mhf_h5_get_int(file, dataset, "pad_id", 0, out->size - 1, &out->pad));
    MHF_TRY(mhf_h5_get_int(file, dataset, "duplicates", 0, out->size, &out->duplicates));
    out->base_size = out->size;
    if (mhf_h5_has_attribute(file, dataset, "vocab_size_base"))
        MHF_TRY(mhf_h5_get_int(file, dataset, "vocab_size_base", 0, out->size, &out->base_size));
    return read_texts(file, out);
}

static mhf_status adopt(const mhf_h5 *file, const mhf_h5_data *data, const mhf_bucket *ids,
                        mhf_signatures *out)
{
    claims said;
    MHF_TRY(read_claims(file, data->shape.dims[0], data->shape.dims[1], &said));
    mhf_signature_options options = {.num_hashes = (int32_t)data->shape.dims[1],
                                     .num_buckets = (int32_t)said.buckets,
                                     .num_lsh = (int32_t)said.lsh,
                                     .rule = said.rule,
                                     .hash_seed = (uint32_t)said.seed};
    mhf_status status = mhf_signatures_adopt(ids, (int32_t)data->shape.dims[0], (int32_t)said.size,
                                             (int32_t)said.pad, &options, out);
    if (status != MHF_OK)
        return mhf_fail_within(MHF_E_DATA, "%s: /signatures", file->path.data);
    if (out->duplicates != said.duplicates) {
        int32_t found = out->duplicates;
        mhf_signatures_free(out);
        return mhf_fail(MHF_E_DATA, "%s: /signatures tells of %lld duplicates and has %d",
                        file->path.data, (long long)said.duplicates, found);
    }
    out->base_size = (int32_t)said.base_size;
    out->options.rule = said.rule;
    memcpy(out->tokenizer_sha256, said.sha256, sizeof out->tokenizer_sha256);
    return MHF_OK;
}

mhf_status mhf_signatures_get(const mhf_h5 *file, mhf_signatures *out)
{
    mhf_h5_data data;
    mhf_bucket *ids = NULL;
    *out = (mhf_signatures){0};
    mhf_status status = mhf_h5_data_open(file, dataset, MHF_H5_U32, 2, &data);
    if (status == MHF_OK && (data.shape.dims[0] < 1 || data.shape.dims[0] > INT32_MAX ||
                             data.shape.dims[1] < 1 || data.shape.dims[1] > MHF_MAX_HASHES))
        status =
            mhf_fail(MHF_E_DATA, "%s: /signatures has shape [%lld, %lld], expected [V, H ≤ %d]",
                     file->path.data, (long long)data.shape.dims[0], (long long)data.shape.dims[1],
                     MHF_MAX_HASHES);
    if (status == MHF_OK)
        status = mhf_new(&ids, data.count, sizeof *ids, "the signature table");
    if (status == MHF_OK)
        status = mhf_h5_data_read(&data, 0, data.count, ids);
    if (status == MHF_OK)
        status = adopt(file, &data, ids, out);
    free(ids);
    mhf_h5_data_close(&data);
    return status;
}

mhf_status mhf_signatures_read(const char *path, mhf_signatures *out)
{
    mhf_h5 file;
    *out = (mhf_signatures){0};
    MHF_TRY(mhf_h5_open(path, NULL, &file));
    mhf_status status = mhf_signatures_get(&file, out);
    mhf_h5_free(&file);
    return status;
}

/* ---- the tokens that get signatures --------------------------------------------------------- */

mhf_status mhf_vocabulary_of(const mhf_tokenizer *tokenizer, mhf_vocabulary *out)
{
    int32_t size = mhf_tokenizer_size(tokenizer);
    const char **pieces = NULL;
    size_t *lengths = NULL;
    *out = (mhf_vocabulary){0};
    mhf_status status = mhf_new(&pieces, size, sizeof *pieces, "the vocabulary");
    if (status == MHF_OK)
        status = mhf_new(&lengths, size, sizeof *lengths, "the vocabulary");
    for (int32_t id = 0; status == MHF_OK && id < size; id++) {
        pieces[id] = mhf_tokenizer_piece(tokenizer, id, &lengths[id]);
        if (!pieces[id])
            status = mhf_fail(MHF_E_DATA, "the tokenizer has no token %d, but has later ones", id);
    }
    out->pieces = pieces;
    out->lengths = lengths;
    out->size = size;
    out->base_size = mhf_tokenizer_base_size(tokenizer);
    out->pad = mhf_tokenizer_pad(tokenizer);
    if (out->pad < 0)
        out->pad = mhf_tokenizer_eos(tokenizer);
    if (status == MHF_OK && out->pad < 0)
        status = mhf_fail(MHF_E_DATA, "the tokenizer names neither a pad nor an end-of-sequence "
                                      "token; one must have the signature of zeros (--eos, --pad)");
    if (status != MHF_OK)
        mhf_vocabulary_free(out);
    return status;
}

void mhf_vocabulary_free(mhf_vocabulary *vocabulary)
{
    free((void *)vocabulary->pieces);
    free((void *)vocabulary->lengths);
    *vocabulary = (mhf_vocabulary){0};
}
