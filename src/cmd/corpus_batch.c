/* SPDX-License-Identifier: ISC */
#include "corpus_batch.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/parallel.h"

enum { TAG_TEXT = 1, TAG_TOKENS = 2, TAG_BYTES = 3 };

/* ---- batches -------------------------------------------------------------------------------- */

mhf_status mhf_document_batch_add(mhf_document_batch *batch, const char *text, size_t n)
{
    MHF_TRY(mhf_grow(&batch->ends, &batch->capacity, batch->n + 1, sizeof *batch->ends,
                     "a batch of documents"));
    MHF_TRY(mhf_buf_add(&batch->text, text, n));
    batch->ends[batch->n++] = (int64_t)batch->text.n;
    return MHF_OK;
}

void mhf_document_batch_clear(mhf_document_batch *batch)
{
    mhf_buf_clear(&batch->text);
    batch->n = 0;
}

void mhf_document_batch_free(mhf_document_batch *batch)
{
    mhf_buf_free(&batch->text);
    free(batch->ends);
    *batch = (mhf_document_batch){0};
}

void mhf_token_batch_free(mhf_token_batch *batch)
{
    free(batch->documents);
    free(batch->ids);
    *batch = (mhf_token_batch){0};
}

static mhf_status reserve(mhf_token_batch *batch, int64_t n_documents, int64_t n_ids)
{
    MHF_TRY(mhf_grow(&batch->documents, &batch->documents_capacity, n_documents,
                     sizeof *batch->documents, "a batch of documents"));
    MHF_TRY(mhf_grow(&batch->ids, &batch->ids_capacity, n_ids, sizeof *batch->ids,
                     "a batch of tokens"));
    batch->n_documents = n_documents;
    batch->n_ids = n_ids;
    return MHF_OK;
}

/* ---- tokenizing ----------------------------------------------------------------------------- */

static const char *document(const mhf_document_batch *batch, int64_t i, size_t *n)
{
    int64_t begin = i == 0 ? 0 : batch->ends[i - 1];
    *n = (size_t)(batch->ends[i] - begin);
    return batch->text.data + begin;
}

/* encodings [n]: one a document. */
static mhf_status encode_all(const mhf_tokenizer *tokenizer, const mhf_document_batch *documents,
                             int threads, mhf_encoding *encodings)
{
    mhf_status status = MHF_OK;
    char sentence[1024] = ""; /* of the first failure: errors are one a thread */
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < documents->n; i++) {
        size_t n;
        const char *text = document(documents, i, &n);
        mhf_status mine =
            mhf_tokenizer_encode(tokenizer, text, n, MHF_ENCODE_TEMPLATE, &encodings[i]);
        if (mine == MHF_OK)
            continue;
#pragma omp critical(mhf_corpus_failure)
        if (status == MHF_OK) {
            status = mine;
            snprintf(sentence, sizeof sentence, "%s", mhf_error());
        }
    }
    return status == MHF_OK ? MHF_OK : mhf_fail(status, "%s", sentence);
}

/* Lay the documents' tokens out one after another. */
static mhf_status join(const mhf_document_batch *documents, const mhf_encoding *encodings,
                       double holdout, mhf_token_batch *out)
{
    int64_t total = 0, done = 0;
    for (int64_t i = 0; i < documents->n; i++)
        total += encodings[i].n;
    MHF_TRY(reserve(out, documents->n, total));
    for (int64_t i = 0; i < documents->n; i++) {
        size_t n;
        const char *text = document(documents, i, &n);
        out->documents[i] = (mhf_document_facts){.tokens = encodings[i].n,
                                                 .bytes = (int64_t)n,
                                                 .held_out = mhf_corpus_held_out(text, n, holdout)};
        if (encodings[i].n > 0)
            memcpy(out->ids + done, encodings[i].ids, (size_t)encodings[i].n * sizeof *out->ids);
        done += encodings[i].n;
    }
    return MHF_OK;
}

mhf_status mhf_batch_tokenize(const mhf_tokenizer *tokenizer, const mhf_document_batch *documents,
                              double holdout, int threads, mhf_token_batch *out)
{
    mhf_encoding *encodings;
    MHF_TRY(mhf_new(&encodings, documents->n, sizeof *encodings, "a batch of documents"));
    mhf_status status = encode_all(tokenizer, documents, threads, encodings);
    if (status == MHF_OK)
        status = join(documents, encodings, holdout, out);
    for (int64_t i = 0; i < documents->n; i++)
        mhf_encoding_free(&encodings[i]);
    free(encodings);
    return status;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* MPI counts are int: longer messages go in pieces. */
static const int64_t piece_size = 1 << 28;

static void send_bytes(const void *bytes, int64_t n, int rank, int tag)
{
    const char *data = bytes;
    for (int64_t done = 0; done < n; done += piece_size) {
        int64_t piece = n - done < piece_size ? n - done : piece_size;
        MPI_Send(data + done, (int)piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD);
    }
}

static void receive_bytes(void *bytes, int64_t n, int rank, int tag)
{
    char *data = bytes;
    for (int64_t done = 0; done < n; done += piece_size) {
        int64_t piece = n - done < piece_size ? n - done : piece_size;
        MPI_Recv(data + done, (int)piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Two numbers go before each batch: how many documents (-1: none will come) and how many bytes of
 * text or tokens. */
static void send_header(int64_t n_documents, int64_t n, int rank, int tag)
{
    int64_t header[2] = {n_documents, n};
    send_bytes(header, sizeof header, rank, tag);
}

static void receive_text(mhf_buf *text, int64_t n, int rank, int tag)
{
    int64_t capacity = (int64_t)text->capacity;
    mhf_status status = mhf_grow(&text->data, &capacity, n + 1, 1, "a message");
    if (status != MHF_OK)
        mhf_abort(status);
    text->capacity = (size_t)capacity;
    text->n = (size_t)n;
    receive_bytes(text->data, n, rank, tag);
}

void mhf_bytes_send(const mhf_buf *bytes, int rank)
{
    send_header(1, (int64_t)bytes->n, rank, TAG_BYTES);
    send_bytes(bytes->data, (int64_t)bytes->n, rank, TAG_BYTES);
}

void mhf_bytes_receive(int rank, mhf_buf *bytes)
{
    int64_t header[2];
    receive_bytes(header, sizeof header, rank, TAG_BYTES);
    receive_text(bytes, header[1], rank, TAG_BYTES);
}

void mhf_documents_send(const mhf_document_batch *documents, int rank)
{
    if (!documents) {
        send_header(-1, 0, rank, TAG_TEXT);
        return;
    }
    int64_t n_bytes = (int64_t)documents->text.n;
    send_header(documents->n, n_bytes, rank, TAG_TEXT);
    send_bytes(documents->ends, documents->n * (int64_t)sizeof *documents->ends, rank, TAG_TEXT);
    send_bytes(documents->text.data, n_bytes, rank, TAG_TEXT);
}

bool mhf_documents_receive(mhf_document_batch *documents)
{
    int64_t header[2];
    receive_bytes(header, sizeof header, 0, TAG_TEXT);
    if (header[0] < 0)
        return false;
    mhf_status status = mhf_grow(&documents->ends, &documents->capacity, header[0],
                                 sizeof *documents->ends, "a batch of documents");
    if (status != MHF_OK)
        mhf_abort(status);
    documents->n = header[0];
    receive_bytes(documents->ends, header[0] * (int64_t)sizeof *documents->ends, 0, TAG_TEXT);
    receive_text(&documents->text, header[1], 0, TAG_TEXT);
    return true;
}

void mhf_tokens_send(const mhf_token_batch *tokens)
{
    if (!tokens) {
        send_header(-1, 0, 0, TAG_TOKENS);
        return;
    }
    send_header(tokens->n_documents, tokens->n_ids, 0, TAG_TOKENS);
    send_bytes(tokens->documents, tokens->n_documents * (int64_t)sizeof *tokens->documents, 0,
               TAG_TOKENS);
    send_bytes(tokens->ids, tokens->n_ids * (int64_t)sizeof *tokens->ids, 0, TAG_TOKENS);
}

bool mhf_tokens_receive(int rank, mhf_token_batch *tokens)
{
    int64_t header[2];
    receive_bytes(header, sizeof header, rank, TAG_TOKENS);
    if (header[0] < 0)
        return false;
    mhf_status status = reserve(tokens, header[0], header[1]);
    if (status != MHF_OK)
        mhf_abort(status);
    receive_bytes(tokens->documents, header[0] * (int64_t)sizeof *tokens->documents, rank,
                  TAG_TOKENS);
    receive_bytes(tokens->ids, header[1] * (int64_t)sizeof *tokens->ids, rank, TAG_TOKENS);
    return true;
}
