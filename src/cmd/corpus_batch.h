/* SPDX-License-Identifier: ISC */
/* Batches of documents on their way from rank 0, which reads, to the ranks, which tokenize or
 * count, and what they make of them on the way back. */
#ifndef MHF_CMD_CORPUS_BATCH_H
#define MHF_CMD_CORPUS_BATCH_H

#include "mhf/text.h"

/* Texts, one after another. Zero-initialise. */
typedef struct mhf_document_batch {
    mhf_buf text;
    int64_t *ends; /* [n] */
    int64_t n, capacity;
} mhf_document_batch;

typedef struct mhf_document_facts {
    int64_t tokens, bytes, held_out;
} mhf_document_facts;

/* What became of a batch. Zero-initialise. */
typedef struct mhf_token_batch {
    mhf_document_facts *documents; /* [n_documents] */
    mhf_token *ids;                /* [n_ids], the documents one after another */
    int64_t n_documents, documents_capacity, n_ids, ids_capacity;
} mhf_token_batch;

mhf_status mhf_document_batch_add(mhf_document_batch *batch, const char *text, size_t n);
void mhf_document_batch_clear(mhf_document_batch *batch);
void mhf_document_batch_free(mhf_document_batch *batch);
void mhf_token_batch_free(mhf_token_batch *batch);

/** Tokenize with the template, on `threads` threads; the result does not depend on them. */
mhf_status mhf_batch_tokenize(const mhf_tokenizer *tokenizer, const mhf_document_batch *documents,
                              double holdout, int threads, mhf_token_batch *out);

/* Messages. Each send ends when received; a rank that has no memory to receive ends the job. */

/** To `rank`; documents NULL: there are no more. */
void mhf_documents_send(const mhf_document_batch *documents, int rank);
/** From rank 0; false when there are no more. */
bool mhf_documents_receive(mhf_document_batch *documents);
/** To and from any rank: bytes, to replace those of `bytes`. */
void mhf_bytes_send(const mhf_buf *bytes, int rank);
void mhf_bytes_receive(int rank, mhf_buf *bytes);
/** To rank 0; tokens NULL: they could not be made, and this rank keeps the sentence. */
void mhf_tokens_send(const mhf_token_batch *tokens);
/** From `rank`; false when it could not make them. */
bool mhf_tokens_receive(int rank, mhf_token_batch *tokens);

#endif
