/* SPDX-License-Identifier: ISC */
/* mhf corpus: texts to a token store. Rank 0 reads, deals batches of documents to the ranks in
 * turn, and writes their tokens in the order of the texts: the files are the same for any number of
 * ranks and threads. */
#include "cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "corpus_batch.h"
#include "mhf/parallel.h"
#include "mhf/store.h"

/* A batch is full with so much text or so many documents: enough for a rank's threads. */
enum { BATCH_BYTES = 2 << 20, BATCH_DOCUMENTS = 1 << 14 };

typedef struct arguments {
    mhf_common common;
    const char *output;
    double holdout;
} arguments;

/* ---- options -------------------------------------------------------------------------------- */

enum { KEY_HOLDOUT = 0x100 };

static const struct argp_option options[] = {
    {"output", 'o', "TOKENS.h5", 0, "The token store to write (required)", 0},
    {"holdout", KEY_HOLDOUT, "FRACTION", 0,
     "Part of the documents to keep out, by their hash, in TOKENS.holdout.h5", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case 'o':
        a->output = option->value;
        break;
    case KEY_HOLDOUT:
        a->holdout = mhf_option_real(option);
        if (!(a->holdout >= 0 && a->holdout < 1))
            mhf_option_refuse(option, "0 or more, below 1");
        break;
    }
}

static const mhf_command command = {
    .name = "mhf corpus",
    .operands = "TOKENIZER TEXT...",
    .about =
        "Tokenize texts into a token store: .txt (a blank line parts documents), .jsonl (member "
        "\"text\"), .gz and .zst of them, - for standard input.",
    .options = options,
    .required = (const int[]){'o', 0},
    .special_names = true,
    .take = take};

/* ---- reading on rank 0 ---------------------------------------------------------------------- */

typedef struct corpus_reader {
    char **paths; /* [n_paths] */
    int n_paths, next;
    mhf_corpus *corpus; /* the open one */
    int64_t documents, empty, bytes;
} corpus_reader;

/* Fill a batch; it stays empty at the end of the last text. */
static mhf_status read_batch(corpus_reader *reader, mhf_document_batch *batch)
{
    mhf_document_batch_clear(batch);
    while (batch->text.n < BATCH_BYTES && batch->n < BATCH_DOCUMENTS) {
        if (!reader->corpus && reader->next == reader->n_paths)
            break;
        if (!reader->corpus)
            MHF_TRY(mhf_corpus_open(reader->paths[reader->next++], &reader->corpus));
        const char *text;
        size_t n;
        bool end;
        MHF_TRY(mhf_corpus_next(reader->corpus, &text, &n, &end));
        if (end) {
            mhf_corpus_close(reader->corpus);
            reader->corpus = NULL;
            continue;
        }
        reader->documents++;
        reader->empty += n == 0;
        reader->bytes += (int64_t)n;
        if (n > 0)
            MHF_TRY(mhf_document_batch_add(batch, text, n));
    }
    return MHF_OK;
}

/* ---- writing on rank 0 ---------------------------------------------------------------------- */

typedef struct store {
    mhf_token_writer *writer;
    mhf_buf path;
    int64_t documents, tokens;
} store;

enum { TRAIN, HOLDOUT, N_STORES };

/* X.h5 -> X.holdout.h5 */
static mhf_status name_holdout(const char *output, mhf_buf *path)
{
    size_t n = strlen(output);
    bool ending = n >= 3 && strcmp(output + n - 3, ".h5") == 0;
    return mhf_buf_printf(path, "%.*s.holdout.h5", (int)(ending ? n - 3 : n), output);
}

static mhf_status open_stores(const arguments *a, const mhf_tokenizer *tokenizer,
                              store stores[N_STORES])
{
    MHF_TRY(mhf_buf_add_text(&stores[TRAIN].path, a->output));
    MHF_TRY(mhf_token_writer_new(a->output, tokenizer, &stores[TRAIN].writer));
    if (a->holdout == 0)
        return MHF_OK;
    MHF_TRY(name_holdout(a->output, &stores[HOLDOUT].path));
    return mhf_token_writer_new(stores[HOLDOUT].path.data, tokenizer, &stores[HOLDOUT].writer);
}

static mhf_status write_batch(const mhf_token_batch *batch, store stores[N_STORES])
{
    const mhf_token *ids = batch->ids;
    for (int64_t i = 0; i < batch->n_documents; i++) {
        const mhf_document_facts *d = &batch->documents[i];
        store *s = &stores[d->held_out ? HOLDOUT : TRAIN];
        MHF_TRY(mhf_token_writer_add(s->writer, ids, d->tokens, d->bytes));
        s->documents++;
        s->tokens += d->tokens;
        ids += d->tokens;
    }
    return MHF_OK;
}

static mhf_status finish_stores(store stores[N_STORES])
{
    for (int i = 0; i < N_STORES; i++) {
        mhf_token_writer *writer = stores[i].writer;
        stores[i].writer = NULL; /* finishing frees it in any case */
        if (writer)
            MHF_TRY(mhf_token_writer_finish(writer));
    }
    return MHF_OK;
}

static void report(const corpus_reader *reader, const store stores[N_STORES], double seconds)
{
    for (int i = 0; i < N_STORES; i++)
        if (stores[i].path.n > 0)
            mhf_log(stores[i].documents > 0 ? MHF_LOG_INFO : MHF_LOG_WARN,
                    "%s: %" PRId64 " documents, %" PRId64 " tokens", stores[i].path.data,
                    stores[i].documents, stores[i].tokens);
    mhf_log(MHF_LOG_INFO,
            "%" PRId64 " documents read, %" PRId64 " empty ones dropped; %.1f MB in %.1f s",
            reader->documents, reader->empty, (double)reader->bytes * 1e-6, seconds);
}

/* ---- the work ------------------------------------------------------------------------------- */

typedef struct corpus_job {
    const mhf_tokenizer *tokenizer;
    double holdout;
    int threads, n_ranks;
    mhf_document_batch documents, sent;
    mhf_token_batch tokens;
} corpus_job;

/* A batch for each rank, its own first; then their tokens in the same order. Whatever was sent is
 * waited for, so that no rank hangs when another fails. */
static mhf_status run_round(corpus_job *job, corpus_reader *reader, store stores[N_STORES])
{
    mhf_status status = read_batch(reader, &job->documents);
    int n_sent = 1;
    for (; status == MHF_OK && n_sent < job->n_ranks; n_sent++) {
        status = read_batch(reader, &job->sent);
        if (status != MHF_OK || job->sent.n == 0)
            break;
        mhf_documents_send(&job->sent, n_sent);
    }
    if (status == MHF_OK)
        status = mhf_batch_tokenize(job->tokenizer, &job->documents, job->holdout, job->threads,
                                    &job->tokens);
    if (status == MHF_OK)
        status = write_batch(&job->tokens, stores);
    bool others_failed = false;
    for (int rank = 1; rank < n_sent; rank++) {
        others_failed |= !mhf_tokens_receive(rank, &job->tokens);
        if (status == MHF_OK && !others_failed)
            status = write_batch(&job->tokens, stores);
    }
    if (status == MHF_OK && others_failed)
        job->documents.n = 0; /* to end; the rank that failed tells why */
    return status;
}

static mhf_status lead(corpus_job *job, const arguments *a)
{
    corpus_reader reader = {.paths = a->common.operands + 1, .n_paths = a->common.n_operands - 1};
    store stores[N_STORES] = {0};
    double started = mhf_seconds();
    mhf_progress progress;
    mhf_progress_start(&progress, "corpus", "MB", 0);
    mhf_status status = mhf_command_check_readable(reader.paths, reader.n_paths);
    if (status == MHF_OK)
        status = open_stores(a, job->tokenizer, stores);
    bool more = status == MHF_OK;
    while (more) {
        status = run_round(job, &reader, stores);
        more = status == MHF_OK && job->documents.n > 0;
        mhf_progress_show(&progress, (double)reader.bytes * 1e-6, NULL);
    }
    for (int rank = 1; rank < job->n_ranks; rank++)
        mhf_documents_send(NULL, rank);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = finish_stores(stores);
    if (status == MHF_OK)
        report(&reader, stores, mhf_seconds() - started);
    mhf_corpus_close(reader.corpus);
    for (int i = 0; i < N_STORES; i++) {
        mhf_token_writer_abandon(stores[i].writer);
        mhf_buf_free(&stores[i].path);
    }
    return status;
}

static mhf_status follow(corpus_job *job)
{
    mhf_status status = MHF_OK;
    while (mhf_documents_receive(&job->documents)) {
        if (status == MHF_OK)
            status = mhf_batch_tokenize(job->tokenizer, &job->documents, job->holdout, job->threads,
                                        &job->tokens);
        mhf_tokens_send(status == MHF_OK ? &job->tokens : NULL);
    }
    return mhf_agree(status);
}

mhf_status mhf_cmd_corpus(int argc, char **argv)
{
    arguments a = {0};
    mhf_tokenizer *tokenizer = NULL;
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    MHF_TRY(mhf_command_check_output(&a.common, a.output, false,
                                     (const char *const *)a.common.operands, a.common.n_operands));
    corpus_job job = {.holdout = a.holdout,
                      .threads = mhf_command_threads(&a.common),
                      .n_ranks = a.common.n_ranks};
    mhf_status status =
        mhf_agree(mhf_command_tokenizer(a.common.operands[0], &a.common.names, &tokenizer));
    job.tokenizer = tokenizer;
    if (status == MHF_OK)
        status = a.common.rank == 0 ? lead(&job, &a) : follow(&job);
    mhf_document_batch_free(&job.documents);
    mhf_document_batch_free(&job.sent);
    mhf_token_batch_free(&job.tokens);
    mhf_tokenizer_free(tokenizer);
    return status;
}
