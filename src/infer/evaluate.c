/* SPDX-License-Identifier: ISC */
/* Likelihood, accuracy and losses over a token store, block by block. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"
#include "mhf/tensor.h"
#include "targets.h"

/* Positions whose logits are held at once; a block's products have this many rows whatever runs
 * them. */
enum { CHUNK = 64, ROUND = 16 };

/* What a block adds. Doubles only: it travels as an array of them. */
typedef struct sums {
    double targets, bytes, correct, nats;
    double losses[MHF_MAX_HASHES];
    mhf_calibration calibration;
} sums;
enum { N_SUMS = sizeof(sums) / sizeof(double) };

typedef struct job {
    const mhf_model *model;
    const mhf_tokenizer *tokenizer;
    mhf_tokens *tokens;
    const mhf_evaluate_options *options;
    int64_t n_blocks, n_tokens;
    int64_t H, B, width; /* coordinates; logits of one; logits that count */
} job;

/* What a thread works with. */
typedef struct scratch {
    float *hidden;   /* [block, d] */
    float *z_block;  /* [H, CHUNK, B] */
    float *s;        /* [CHUNK, width] logits of tokens */
    float *p;        /* [CHUNK, width] their softmax */
    float *lse, *at; /* [CHUNK] */
} scratch;

/* A block at hand and what it adds. */
typedef struct work {
    int64_t first, n;
    mhf_token *ids; /* [block] */
    sums sums;
    mhf_status status;
    char *error; /* the sentence of a thread's failure */
} work;

static bool is_mhf(const job *j)
{
    return j->model->config.head == MHF_HEAD_MHF;
}

static mhf_status make_scratch(const job *j, scratch *out)
{
    int64_t d = j->model->config.hidden_size, block = j->options->block;
    MHF_TRY(mhf_new(&out->hidden, block * d, sizeof *out->hidden, "hidden states"));
    MHF_TRY(mhf_new(&out->z_block, j->H * CHUNK * j->B, sizeof *out->z_block, "logits"));
    MHF_TRY(mhf_new(&out->s, CHUNK * j->width, sizeof *out->s, "logits of tokens"));
    MHF_TRY(mhf_new(&out->p, CHUNK * j->width, sizeof *out->p, "probabilities"));
    MHF_TRY(mhf_new(&out->lse, CHUNK, sizeof *out->lse, "normalisers"));
    return mhf_new(&out->at, CHUNK, sizeof *out->at, "logits of targets");
}

static void free_scratch(scratch *s)
{
    free(s->hidden);
    free(s->z_block);
    free(s->s);
    free(s->p);
    free(s->lse);
    free(s->at);
}

/* ---- a chunk of positions ------------------------------------------------------------------- */

/* s [n, width] from the coordinates' logits z. */
static void fill_logits(const job *j, const scratch *c, float *const *z, int64_t n)
{
    if (is_mhf(j)) {
        mhf_vocabulary_logits((const float *const *)z, j->model->table.ids, n, j->H, j->B, j->width,
                              1.0f, c->s);
        return;
    }
    for (int64_t t = 0; t < n; t++)
        memcpy(c->s + t * j->width, z[0] + t * j->B, (size_t)j->width * sizeof *c->s);
}

/* Per-coordinate losses of the training; the logits z become probabilities. */
static void add_losses(const job *j, const scratch *c, float *const *z, const mhf_token *target,
                       int64_t n, sums *out)
{
    for (int64_t k = 0; k < j->H; k++) {
        for (int64_t t = 0; t < n; t++) {
            int64_t label = target[t];
            if (is_mhf(j))
                label = j->model->table.ids[label * j->H + k];
            c->at[t] = z[k][t * j->B + label];
        }
        mhf_softmax(z[k], n, j->B, j->B, c->lse);
        for (int64_t t = 0; t < n; t++)
            out->losses[k] += (double)c->lse[t] - (double)c->at[t];
    }
}

/* Sums for every temperature of the grid; p becomes exp(s/64) up to a factor. */
static void add_calibration(const job *j, const scratch *c, const mhf_token *target, int64_t n,
                            sums *out)
{
    for (int64_t i = 0; i < n * j->width; i++)
        c->p[i] = c->s[i] * (1.0f / MHF_GRID_UNIT);
    mhf_softmax(c->p, n, j->width, j->width, NULL);
    for (int64_t t = 0; t < n; t++)
        mhf_calibration_add(c->s + t * j->width, c->p + t * j->width, j->width,
                            c->s[t * j->width + target[t]], &out->calibration);
}

static mhf_status add_chunk(const job *j, const scratch *c, const float *hidden,
                            const mhf_token *target, int64_t n, sums *out)
{
    float *z[MHF_MAX_HASHES];
    for (int64_t k = 0; k < j->H; k++)
        z[k] = c->z_block + k * CHUNK * j->B;
    MHF_TRY(mhf_model_head(j->model, hidden, n, z));
    fill_logits(j, c, z, n);
    add_losses(j, c, z, target, n, out);
    memcpy(c->p, c->s, (size_t)(n * j->width) * sizeof *c->p);
    mhf_softmax(c->p, n, j->width, j->width, c->lse);
    for (int64_t t = 0; t < n; t++) {
        const float *row = c->s + t * j->width;
        out->nats += (double)c->lse[t] - (double)row[target[t]];
        out->correct += mhf_arg_max(row, (int32_t)j->width) == target[t];
        out->bytes += mhf_tokenizer_bytes(j->tokenizer, target[t]);
    }
    out->targets += (double)n;
    if (j->options->calibrate)
        add_calibration(j, c, target, n, out);
    return MHF_OK;
}

/* ---- a block ----------------------------------------------------------------------------------
 */

static mhf_status read_block(const job *j, int64_t block, work *out)
{
    out->first = block * j->options->block;
    out->n = j->n_tokens - out->first;
    if (out->n > j->options->block)
        out->n = j->options->block;
    MHF_TRY(mhf_tokens_read(j->tokens, out->first, out->n, out->ids));
    for (int64_t i = 0; i < out->n; i++)
        if (out->ids[i] < 0 || out->ids[i] >= j->width)
            return mhf_fail(MHF_E_DATA,
                            "token %d at place %" PRId64 " is past the vocabulary of %" PRId64,
                            out->ids[i], out->first + i, j->width);
    return MHF_OK;
}

static mhf_status run_block(const job *j, const scratch *c, work *w)
{
    int64_t d = j->model->config.hidden_size, n = w->n - 1; /* the last position has no target */
    if (n < 1)
        return MHF_OK;
    MHF_TRY(mhf_model_forward(j->model, w->ids, n, NULL, NULL, c->hidden));
    for (int64_t t = 0; t < n; t += CHUNK)
        MHF_TRY(add_chunk(j, c, c->hidden + t * d, w->ids + t + 1, n - t < CHUNK ? n - t : CHUNK,
                          &w->sums));
    if (!isfinite(w->sums.nats))
        return mhf_fail(MHF_E_NONFINITE, "the loss of the block at token %" PRId64 " is %g",
                        w->first, w->sums.nats);
    return MHF_OK;
}

/* The error text is a thread's own, so it is kept. */
static void run_block_here(const job *j, const scratch *threads, work *w)
{
    w->status = run_block(j, &threads[omp_get_thread_num()], w);
    if (w->status != MHF_OK)
        w->error = strdup(mhf_error());
}

/* ---- all blocks, dealt to ranks, added in order --------------------------------------------- */

static void add_sums(sums *total, const sums *part)
{
    double values[N_SUMS], more[N_SUMS];
    memcpy(values, total, sizeof values);
    memcpy(more, part, sizeof more);
    for (int i = 0; i < N_SUMS; i++)
        values[i] += more[i];
    memcpy(total, values, sizeof values);
}

/* This rank's part of the rounds. */
typedef struct share {
    int rank, n_ranks, threads;
    scratch *scratch; /* [threads] */
    work *work;       /* [ROUND] */
    sums *mine, *all; /* [ROUND], rank 0: [n_ranks, ROUND] */
} share;

static mhf_status share_new(const job *j, share *out)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->n_ranks);
    out->threads = mhf_engine_threads() < ROUND ? mhf_engine_threads() : ROUND;
    int64_t gathered = out->rank == 0 ? (int64_t)ROUND * out->n_ranks : 0;
    MHF_TRY(mhf_new(&out->scratch, out->threads, sizeof *out->scratch, "scratch"));
    MHF_TRY(mhf_new(&out->work, ROUND, sizeof *out->work, "blocks"));
    MHF_TRY(mhf_new(&out->mine, ROUND, sizeof *out->mine, "sums"));
    MHF_TRY(mhf_new(&out->all, gathered, sizeof *out->all, "sums"));
    for (int t = 0; t < out->threads; t++)
        MHF_TRY(make_scratch(j, &out->scratch[t]));
    for (int i = 0; i < ROUND; i++)
        MHF_TRY(mhf_new(&out->work[i].ids, j->options->block, sizeof(mhf_token), "a block"));
    return MHF_OK;
}

static void share_free(share *s)
{
    for (int t = 0; s->scratch && t < s->threads; t++)
        free_scratch(&s->scratch[t]);
    for (int i = 0; s->work && i < ROUND; i++) {
        free(s->work[i].ids);
        free(s->work[i].error);
    }
    free(s->scratch);
    free(s->work);
    free(s->mine);
    free(s->all);
}

/* ROUND blocks a rank: first + i·n_ranks + rank is the rank's i-th. Rank 0 adds them up in order.
 */
static mhf_status run_round(const job *j, int64_t first, const share *s, sums *total)
{
    mhf_status status = MHF_OK;
    int n = 0;
    memset(s->mine, 0, ROUND * sizeof *s->mine);
    for (; status == MHF_OK && n < ROUND && first + n * s->n_ranks + s->rank < j->n_blocks; n++) {
        s->work[n].sums = (sums){0};
        status = read_block(j, first + n * s->n_ranks + s->rank, &s->work[n]);
    }
    if (status == MHF_OK) {
#pragma omp parallel for num_threads(s->threads) schedule(dynamic)
        for (int i = 0; i < n; i++)
            run_block_here(j, s->scratch, &s->work[i]);
    }
    for (int i = 0; status == MHF_OK && i < n; i++) {
        s->mine[i] = s->work[i].sums;
        if (s->work[i].status != MHF_OK)
            status = mhf_fail(s->work[i].status, "%s",
                              s->work[i].error ? s->work[i].error : "no memory");
    }
    MHF_TRY(mhf_agree(status));
    MPI_Gather(s->mine, ROUND * N_SUMS, MPI_DOUBLE, s->all, ROUND * N_SUMS, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    for (int i = 0; s->rank == 0 && i < ROUND; i++)
        for (int r = 0; r < s->n_ranks; r++)
            add_sums(total, &s->all[r * ROUND + i]);
    return MHF_OK;
}

static mhf_status run_blocks(const job *j, sums *total)
{
    share s = {0};
    mhf_status status = mhf_agree(share_new(j, &s));
    mhf_progress progress;
    mhf_progress_start(&progress, "evaluate", "tokens", (double)j->n_tokens);
    int64_t step = (int64_t)ROUND * s.n_ranks;
    for (int64_t first = 0; status == MHF_OK && first < j->n_blocks; first += step) {
        status = run_round(j, first, &s, total);
        if (s.rank == 0)
            mhf_progress_show(
                &progress, fmin((double)j->n_tokens, (double)((first + step) * j->options->block)),
                NULL);
    }
    if (s.rank == 0)
        mhf_progress_end(&progress, (double)j->n_tokens);
    MPI_Bcast(total, N_SUMS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    share_free(&s);
    return status;
}

static void finish(const job *j, const sums *total, mhf_evaluation *out)
{
    double n = total->targets, bits = log(2) * total->bytes;
    *out = (mhf_evaluation){.tokens = (int64_t)n,
                            .bytes = (int64_t)total->bytes,
                            .nats_per_token = total->nats / n,
                            .bits_per_byte = total->nats / bits,
                            .accuracy = total->correct / n,
                            .n_losses = (int32_t)j->H,
                            .calibrated = j->options->calibrate};
    for (int64_t k = 0; k < j->H; k++)
        out->losses[k] = total->losses[k] / n;
    if (j->options->calibrate) {
        double nats;
        mhf_calibration_solve(&total->calibration, &out->temperature, &nats);
        out->calibrated_nats_per_token = nats / n;
        out->calibrated_bits_per_byte = nats / bits;
    }
}

static mhf_status check(const job *j)
{
    const mhf_tokens_info *info = mhf_tokens_info_of(j->tokens);
    if (!mhf_tokenizer_is(j->tokenizer, info->tokenizer_sha256))
        return mhf_fail(MHF_E_MISMATCH,
                        "the token store was made with tokenizer %.12s…, the model's is %.12s…",
                        info->tokenizer_sha256, mhf_tokenizer_sha256(j->tokenizer));
    if (j->options->block < 2 || j->options->block > j->model->config.max_position_embeddings)
        return mhf_fail(MHF_E_USAGE, "the block is %" PRId64 " tokens, expected 2 to %d",
                        j->options->block, j->model->config.max_position_embeddings);
    if (info->n < 2)
        return mhf_fail(MHF_E_DATA, "the token store has %" PRId64 " tokens, expected 2 at least",
                        info->n);
    return MHF_OK;
}

mhf_status mhf_evaluate(const mhf_model *model, const mhf_tokenizer *tokenizer, mhf_tokens *tokens,
                        const mhf_evaluate_options *options, mhf_evaluation *out)
{
    job j = {.model = model, .tokenizer = tokenizer, .tokens = tokens, .options = options};
    sums *total = NULL;
    mhf_status status = check(&j);
    j.n_tokens = mhf_tokens_info_of(tokens)->n;
    j.H = is_mhf(&j) ? model->config.num_hashes : 1;
    j.B = is_mhf(&j) ? model->config.num_buckets : model->config.vocab_size;
    j.width = options->counted;
    if (status == MHF_OK) {
        j.n_blocks = (j.n_tokens + options->block - 1) / options->block;
    }
    if (status == MHF_OK)
        status = mhf_new(&total, 1, sizeof *total, "sums");
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = run_blocks(&j, total);
    if (status == MHF_OK)
        finish(&j, total, out);
    free(total);
    return status;
}
