/* SPDX-License-Identifier: ISC */
/* Counting the words that a tokenizer is learned from, on all ranks. Rank 0 reads and deals batches
 * of texts out in turn; the counts come back along a tree, since adding them up is work too. */
#include <mpi.h>

#include "corpus_batch.h"
#include "mhf/parallel.h"
#include "tokenizer.h"

/* Enough for a rank's threads. */
enum { BATCH_BYTES = 1 << 20 };

typedef struct counting {
    mhf_tokenizer_trainer *trainer;
    int rank, n_ranks;
    int turn; /* rank that gets the next batch */
    mhf_document_batch batch;
} counting;

/* ---- texts --------------------------------------------------------------------------------- */

static mhf_status count_batch(counting *c)
{
    for (int64_t i = 0; i < c->batch.n; i++) {
        int64_t begin = i == 0 ? 0 : c->batch.ends[i - 1];
        MHF_TRY(mhf_tokenizer_trainer_add(c->trainer, c->batch.text.data + begin,
                                          (size_t)(c->batch.ends[i] - begin)));
    }
    return MHF_OK;
}

/* To the rank whose turn it is: the others first, so that they work while rank 0 counts its own. */
static mhf_status deal_batch(counting *c)
{
    mhf_status status = MHF_OK;
    c->turn = (c->turn + 1) % c->n_ranks;
    if (c->turn == 0)
        status = count_batch(c);
    else
        mhf_documents_send(&c->batch, c->turn);
    mhf_document_batch_clear(&c->batch);
    return status;
}

static mhf_status deal_text(counting *c, const char *path)
{
    mhf_corpus *corpus;
    mhf_progress progress;
    double done = 0;
    mhf_status status = MHF_OK;
    MHF_TRY(mhf_corpus_open(path, &corpus));
    mhf_progress_start(&progress, path, "MB", 0);
    for (bool end = false; status == MHF_OK && !end;) {
        const char *text;
        size_t n;
        status = mhf_corpus_next_line(corpus, &text, &n, &end);
        if (status == MHF_OK && n > 0)
            status = mhf_document_batch_add(&c->batch, text, n);
        if (status == MHF_OK && c->batch.text.n >= BATCH_BYTES)
            status = deal_batch(c);
        done += (double)n * 1e-6;
        mhf_progress_show(&progress, done, NULL);
    }
    mhf_corpus_close(corpus);
    return status;
}

static mhf_status lead(counting *c, char *const *paths, int n_paths)
{
    mhf_status status = MHF_OK;
    for (int i = 0; i < n_paths && status == MHF_OK; i++)
        status = deal_text(c, paths[i]);
    if (status == MHF_OK)
        status = deal_batch(c);
    for (int rank = 1; rank < c->n_ranks; rank++)
        mhf_documents_send(NULL, rank);
    return status;
}

/* Whatever is sent is taken, after a failure too: rank 0 would wait for ever. */
static mhf_status follow(counting *c)
{
    mhf_status status = MHF_OK;
    while (mhf_documents_receive(&c->batch))
        if (status == MHF_OK)
            status = count_batch(c);
    return status;
}

/* ---- counts -------------------------------------------------------------------------------- */

/* Some at a time; no bytes are the end. */
static mhf_status send_counts(const counting *c, int rank)
{
    mhf_buf counts = {0};
    int64_t next = 0;
    mhf_status status;
    do {
        mhf_buf_clear(&counts);
        status = mhf_tokenizer_trainer_counts(c->trainer, &next, &counts);
        if (status != MHF_OK)
            mhf_buf_clear(&counts);
        mhf_bytes_send(&counts, rank);
    } while (counts.n > 0);
    mhf_buf_free(&counts);
    return status;
}

static mhf_status receive_counts(const counting *c, int rank)
{
    mhf_buf counts = {0};
    mhf_status status = MHF_OK;
    do {
        mhf_bytes_receive(rank, &counts);
        if (status == MHF_OK)
            status = mhf_tokenizer_trainer_add_counts(c->trainer, counts.data, counts.n);
    } while (counts.n > 0);
    mhf_buf_free(&counts);
    return status;
}

static mhf_status gather_counts(const counting *c)
{
    mhf_status status = MHF_OK;
    for (int step = 1; step < c->n_ranks; step *= 2) {
        if (c->rank % (2 * step) != 0) {
            mhf_status sent = send_counts(c, c->rank - step);
            return status == MHF_OK ? sent : status;
        }
        if (c->rank + step < c->n_ranks) {
            mhf_status received = receive_counts(c, c->rank + step);
            status = status == MHF_OK ? received : status;
        }
    }
    return status;
}

mhf_status mhf_tokenizer_count(mhf_tokenizer_trainer *trainer, char *const *paths, int n_paths)
{
    counting c = {.trainer = trainer};
    MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c.n_ranks);
    mhf_status status = mhf_agree(c.rank == 0 ? lead(&c, paths, n_paths) : follow(&c));
    if (status == MHF_OK)
        status = mhf_agree(gather_counts(&c));
    mhf_document_batch_free(&c.batch);
    return status;
}
