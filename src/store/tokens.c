/* SPDX-License-Identifier: ISC */
/* The token store: tokens of all documents one after another, and where the documents begin. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"
#include "mhf/store.h"
#include "spill.h"

static const char format_name[] = "mhf-tokens";
enum { SMALL_VOCABULARY = 65536, PIECE_TOKENS = 1 << 18 };

/* ---- writing --------------------------------------------------------------------------------- */

/* Parallel HDF5 can't grow a contiguous dataset: tokens wait in nameless files until their number
 * is known. */
struct mhf_token_writer {
    mhf_buf path;
    mhf_spill tokens, documents;
    int32_t vocab_size;
    int64_t n, n_documents, bytes;
    char tokenizer_sha256[65];
};

static mhf_h5_type token_type(int64_t vocab_size)
{
    return vocab_size <= SMALL_VOCABULARY ? MHF_H5_U16 : MHF_H5_U32;
}

mhf_status mhf_token_writer_new(const char *path, const mhf_tokenizer *tokenizer,
                                mhf_token_writer **out)
{
    mhf_token_writer *writer = NULL;
    *out = NULL;
    MHF_TRY(mhf_new(&writer, 1, sizeof *writer, "the token writer"));
    writer->tokens.fd = writer->documents.fd = -1;
    writer->vocab_size = mhf_tokenizer_size(tokenizer);
    snprintf(writer->tokenizer_sha256, sizeof writer->tokenizer_sha256, "%s",
             mhf_tokenizer_sha256(tokenizer));
    uint64_t begin = 0;
    mhf_status status = mhf_buf_add_text(&writer->path, path);
    if (status == MHF_OK)
        status = mhf_spill_open(path, &writer->tokens);
    if (status == MHF_OK)
        status = mhf_spill_open(path, &writer->documents);
    if (status == MHF_OK)
        status = mhf_spill_add(&writer->documents, &begin, sizeof begin);
    if (status != MHF_OK)
        mhf_token_writer_abandon(writer);
    else
        *out = writer;
    return status;
}

mhf_status mhf_token_writer_add(mhf_token_writer *writer, const mhf_token *ids, int64_t n,
                                int64_t bytes)
{
    bool small = token_type(writer->vocab_size) == MHF_H5_U16;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= writer->vocab_size)
            return mhf_fail(
                MHF_E_DATA, "%s: document %lld: token %d is not among the tokenizer's %d",
                writer->path.data, (long long)writer->n_documents, ids[i], writer->vocab_size);
        uint16_t narrow = (uint16_t)ids[i];
        if (small)
            MHF_TRY(mhf_spill_add(&writer->tokens, &narrow, sizeof narrow));
        else
            MHF_TRY(mhf_spill_add(&writer->tokens, &ids[i], sizeof ids[i]));
    }
    writer->n += n;
    writer->bytes += bytes;
    writer->n_documents++;
    uint64_t end = (uint64_t)writer->n;
    return mhf_spill_add(&writer->documents, &end, sizeof end);
}

/* Copy a spill into a dataset. `sums` (may be NULL) takes one checksum a MiB. */
static mhf_status copy_spill(mhf_h5 *file, const char *path, mhf_h5_type type, int64_t count,
                             mhf_spill *spill, uint64_t *sums)
{
    int64_t size = mhf_h5_type_size(type), bytes = count * size;
    char *piece = NULL;
    MHF_TRY(mhf_h5_reserve(file, path, type, &(mhf_h5_shape){1, {count}}, 0));
    mhf_status status = mhf_new(&piece, MHF_H5_SUM_BYTES, 1, "a piece");
    for (int64_t first = 0; status == MHF_OK && first < bytes; first += MHF_H5_SUM_BYTES) {
        int64_t n = bytes - first < MHF_H5_SUM_BYTES ? bytes - first : MHF_H5_SUM_BYTES;
        status = mhf_spill_read(spill, first, n, piece);
        if (status == MHF_OK)
            status = mhf_h5_write(file, path, first / size, n / size, piece);
        if (sums)
            sums[first / MHF_H5_SUM_BYTES] = mhf_hash64(piece, (size_t)n);
    }
    free(piece);
    return status;
}

static mhf_status write_store(mhf_token_writer *writer, mhf_h5 *file)
{
    mhf_h5_type type = token_type(writer->vocab_size);
    int64_t bytes = writer->n * mhf_h5_type_size(type);
    int64_t n_sums = (bytes + MHF_H5_SUM_BYTES - 1) / MHF_H5_SUM_BYTES;
    uint64_t *sums = NULL;
    MHF_TRY(mhf_new(&sums, n_sums, sizeof *sums, "checksums"));
    mhf_status status = copy_spill(file, "/tokens", type, writer->n, &writer->tokens, sums);
    if (status == MHF_OK)
        status = copy_spill(file, "/documents", MHF_H5_U64, writer->n_documents + 1,
                            &writer->documents, NULL);
    if (status == MHF_OK)
        status = mhf_h5_put_text(file, "/", "tokenizer_sha256", writer->tokenizer_sha256);
    if (status == MHF_OK)
        status = mhf_h5_put_int(file, "/", "vocab_size", writer->vocab_size);
    if (status == MHF_OK)
        status = mhf_h5_put_int(file, "/", "bytes", writer->bytes);
    if (status == MHF_OK)
        status = mhf_h5_put_uint(file, "/", "fingerprint",
                                 mhf_hash64(sums, (size_t)n_sums * sizeof *sums));
    free(sums);
    return status;
}

mhf_status mhf_token_writer_finish(mhf_token_writer *writer)
{
    mhf_h5 file = {0};
    mhf_status status = mhf_h5_create(writer->path.data, format_name, &file);
    if (status == MHF_OK)
        status = mhf_h5_finish(&file, write_store(writer, &file));
    mhf_token_writer_abandon(writer);
    return status;
}

void mhf_token_writer_abandon(mhf_token_writer *writer)
{
    if (!writer)
        return;
    mhf_spill_close(&writer->tokens);
    mhf_spill_close(&writer->documents);
    mhf_buf_free(&writer->path);
    free(writer);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct mhf_tokens {
    mhf_h5 file;
    mhf_h5_data data;
    mhf_tokens_info info;
    uint16_t *narrow; /* [PIECE_TOKENS] */
    uint64_t *documents;
};

static mhf_status read_info(mhf_tokens *tokens)
{
    mhf_h5 *file = &tokens->file;
    mhf_tokens_info *info = &tokens->info;
    MHF_TRY(mhf_h5_get_int(file, "/", "vocab_size", 1, INT32_MAX, &info->vocab_size));
    MHF_TRY(mhf_h5_get_int(file, "/", "bytes", 0, INT64_MAX, &info->bytes));
    MHF_TRY(mhf_h5_get_uint(file, "/", "fingerprint", &info->fingerprint));
    mhf_buf sha256 = {0};
    mhf_status status = mhf_h5_get_text(file, "/", "tokenizer_sha256", &sha256);
    if (status == MHF_OK && sha256.n != sizeof info->tokenizer_sha256 - 1)
        status = mhf_fail(MHF_E_DATA, "%s: attribute 'tokenizer_sha256' has %zu characters, not 64",
                          file->path.data, sha256.n);
    if (status == MHF_OK)
        memcpy(info->tokenizer_sha256, sha256.data, sizeof info->tokenizer_sha256);
    mhf_buf_free(&sha256);
    return status;
}

/* The fingerprint is of the checksums, which are of the tokens. */
static mhf_status check_fingerprint(const mhf_tokens *tokens)
{
    int64_t bytes = tokens->data.count * mhf_h5_type_size(tokens->data.type);
    int64_t n = (bytes + MHF_H5_SUM_BYTES - 1) / MHF_H5_SUM_BYTES;
    if (mhf_hash64(tokens->data.sums, (size_t)n * sizeof(uint64_t)) != tokens->info.fingerprint)
        return mhf_fail(MHF_E_DATA, "%s: its fingerprint is not that of its checksums",
                        tokens->file.path.data);
    return MHF_OK;
}

static mhf_status open_documents(mhf_tokens *tokens)
{
    mhf_h5_data documents;
    mhf_status status = mhf_h5_data_open(&tokens->file, "/documents", MHF_H5_U64, 1, &documents);
    if (status == MHF_OK && documents.count < 1)
        status = mhf_fail(MHF_E_DATA, "%s: /documents is empty, expected at least one offset",
                          tokens->file.path.data);
    if (status == MHF_OK)
        tokens->info.documents = documents.count - 1;
    mhf_h5_data_close(&documents);
    return status;
}

mhf_status mhf_tokens_open(const char *path, mhf_tokens **out)
{
    mhf_tokens *tokens = NULL;
    *out = NULL;
    MHF_TRY(mhf_new(&tokens, 1, sizeof *tokens, "the token store"));
    tokens->data.id = -1;
    mhf_status status = mhf_new(&tokens->narrow, PIECE_TOKENS, sizeof(uint16_t), "a piece");
    if (status == MHF_OK)
        status = mhf_h5_open(path, format_name, &tokens->file);
    if (status == MHF_OK)
        status = read_info(tokens);
    if (status == MHF_OK)
        status = mhf_h5_data_open(&tokens->file, "/tokens", token_type(tokens->info.vocab_size), 1,
                                  &tokens->data);
    if (status == MHF_OK)
        status = check_fingerprint(tokens);
    if (status == MHF_OK)
        status = open_documents(tokens);
    if (status != MHF_OK) {
        mhf_tokens_close(tokens);
        return status;
    }
    tokens->info.n = tokens->data.count;
    *out = tokens;
    return MHF_OK;
}

const mhf_tokens_info *mhf_tokens_info_of(const mhf_tokens *tokens)
{
    return &tokens->info;
}

static mhf_status check_ids(const mhf_tokens *tokens, int64_t first, int64_t count,
                            const mhf_token *ids)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= tokens->info.vocab_size)
            return mhf_fail(MHF_E_DATA, "%s: token %lld is %u, past the vocabulary of %lld",
                            tokens->file.path.data, (long long)(first + i), (uint32_t)ids[i],
                            (long long)tokens->info.vocab_size);
    return MHF_OK;
}

mhf_status mhf_tokens_read(mhf_tokens *tokens, int64_t first, int64_t count, mhf_token *out)
{
    if (tokens->data.type == MHF_H5_U32) {
        MHF_TRY(mhf_h5_data_read(&tokens->data, first, count, out));
        return check_ids(tokens, first, count, out);
    }
    for (int64_t done = 0; done < count; done += PIECE_TOKENS) {
        int64_t n = count - done < PIECE_TOKENS ? count - done : PIECE_TOKENS;
        MHF_TRY(mhf_h5_data_read(&tokens->data, first + done, n, tokens->narrow));
        for (int64_t i = 0; i < n; i++)
            out[done + i] = tokens->narrow[i];
        MHF_TRY(check_ids(tokens, first + done, n, out + done));
    }
    return MHF_OK;
}

mhf_status mhf_tokens_documents(mhf_tokens *tokens, const uint64_t **out)
{
    if (!tokens->documents) {
        uint64_t *offsets;
        int64_t n;
        MHF_TRY(mhf_h5_get(&tokens->file, "/documents", MHF_H5_U64, &offsets, &n));
        bool good = offsets[0] == 0 && offsets[n - 1] == (uint64_t)tokens->info.n;
        for (int64_t i = 1; good && i < n; i++)
            good = offsets[i - 1] <= offsets[i];
        if (!good) {
            free(offsets);
            return mhf_fail(MHF_E_DATA, "%s: /documents does not run from 0 to %lld upwards",
                            tokens->file.path.data, (long long)tokens->info.n);
        }
        tokens->documents = offsets;
    }
    *out = tokens->documents;
    return MHF_OK;
}

void mhf_tokens_close(mhf_tokens *tokens)
{
    if (!tokens)
        return;
    mhf_h5_data_close(&tokens->data);
    mhf_h5_free(&tokens->file);
    free(tokens->narrow);
    free(tokens->documents);
    free(tokens);
}
