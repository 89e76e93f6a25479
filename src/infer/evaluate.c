/* SPDX-License-Identifier: ISC */
/* Likelihood, accuracy and losses over a token store, block by block. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
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
    /* Scratch of a chunk. */
    mhf_token *ids;               /* [block] */
    float *hidden;                /* [block, d] */
    float *z_block;               /* [H, CHUNK, B] */
    float *s;                     /* [CHUNK, width] logits of tokens */
    float *p;                     /* [CHUNK, width] their softmax */
    float *lse, *at;              /* [CHUNK] */
    mhf_calibration *calibration; /* [CHUNK] */
} job;

static bool is_mhf(const job *j)
{
    return j->model->config.head == MHF_HEAD_MHF;
}

static mhf_status make_scratch(job *j)
{
    int64_t d = j->model->config.hidden_size, block = j->options->block;
    MHF_TRY(mhf_new(&j->ids, block, sizeof *j->ids, "a block"));
    MHF_TRY(mhf_new(&j->hidden, block * d, sizeof *j->hidden, "hidden states"));
    MHF_TRY(mhf_new(&j->z_block, j->H * CHUNK * j->B, sizeof *j->z_block, "logits"));
    MHF_TRY(mhf_new(&j->s, CHUNK * j->width, sizeof *j->s, "logits of tokens"));
    MHF_TRY(mhf_new(&j->p, CHUNK * j->width, sizeof *j->p, "probabilities"));
    MHF_TRY(mhf_new(&j->lse, CHUNK, sizeof *j->lse, "normalisers"));
    MHF_TRY(mhf_new(&j->at, CHUNK, sizeof *j->at, "logits of targets"));
    return mhf_new(&j->calibration, CHUNK, sizeof *j->calibration, "calibration");
}

static void free_scratch(job *j)
{
    free(j->ids);
    free(j->hidden);
    free(j->z_block);
    free(j->s);
    free(j->p);
    free(j->lse);
    free(j->at);
    free(j->calibration);
}

/* ---- a chunk of positions
 * ------------------------------------------------------------------------ */

/* s [n, width] from the coordinates' logits z. */
static void fill_logits(const job *j, float *const *z, int64_t n)
{
    if (is_mhf(j)) {
        mhf_vocabulary_logits((const float *const *)z, j->model->table.ids, n, j->H, j->B, j->width,
                              1.0f, j->s);
        return;
    }
    for (int64_t t = 0; t < n; t++)
        memcpy(j->s + t * j->width, z[0] + t * j->B, (size_t)j->width * sizeof *j->s);
}

/* Per-coordinate losses of the training; the logits z become probabilities. */
static void add_losses(const job *j, float *const *z, const mhf_token *target, int64_t n, sums *out)
{
    for (int64_t k = 0; k < j->H; k++) {
        for (int64_t t = 0; t < n; t++) {
            int64_t label = target[t];
            if (is_mhf(j))
                label = j->model->table.ids[label * j->H + k];
            j->at[t] = z[k][t * j->B + label];
        }
        mhf_softmax(z[k], n, j->B, j->B, j->lse);
        for (int64_t t = 0; t < n; t++)
            out->losses[k] += (double)j->lse[t] - (double)j->at[t];
    }
}

/* Sums for every temperature of the grid; p becomes exp(s/16) up to a factor. */
static void add_calibration(const job *j, const mhf_token *target, int64_t n, sums *out)
{
    for (int64_t i = 0; i < n * j->width; i++)
        j->p[i] = j->s[i] / 16.0f;
    mhf_softmax(j->p, n, j->width, j->width, NULL);
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < n; t++) {
        j->calibration[t] = (mhf_calibration){0};
        mhf_calibration_add(j->s + t * j->width, j->p + t * j->width, j->width,
                            j->s[t * j->width + target[t]], &j->calibration[t]);
    }
    for (int64_t t = 0; t < n; t++)
        for (int i = 0; i < MHF_GRID; i++) {
            out->calibration.f[i] += j->calibration[t].f[i];
            out->calibration.slope[i] += j->calibration[t].slope[i];
        }
}

static mhf_status add_chunk(const job *j, const float *hidden, const mhf_token *target, int64_t n,
                            sums *out)
{
    float *z[MHF_MAX_HASHES];
    for (int64_t k = 0; k < j->H; k++)
        z[k] = j->z_block + k * CHUNK * j->B;
    MHF_TRY(mhf_model_head(j->model, hidden, n, z));
    fill_logits(j, z, n);
    add_losses(j, z, target, n, out);
    memcpy(j->p, j->s, (size_t)(n * j->width) * sizeof *j->p);
    mhf_softmax(j->p, n, j->width, j->width, j->lse);
    for (int64_t t = 0; t < n; t++) {
        const float *row = j->s + t * j->width;
        out->nats += (double)j->lse[t] - (double)row[target[t]];
        out->correct += mhf_arg_max(row, (int32_t)j->width) == target[t];
        out->bytes += mhf_tokenizer_bytes(j->tokenizer, target[t]);
    }
    out->targets += (double)n;
    if (j->options->calibrate)
        add_calibration(j, target, n, out);
    return MHF_OK;
}

/* ---- a block ----------------------------------------------------------------------------------
 */

static mhf_status add_block(const job *j, int64_t block, sums *out)
{
    int64_t first = block * j->options->block, d = j->model->config.hidden_size;
    int64_t n = j->n_tokens - first < j->options->block ? j->n_tokens - first : j->options->block;
    MHF_TRY(mhf_tokens_read(j->tokens, first, n, j->ids));
    for (int64_t i = 0; i < n; i++)
        if (j->ids[i] < 0 || j->ids[i] >= j->width)
            return mhf_fail(MHF_E_DATA,
                            "token %d at place %" PRId64 " is past the vocabulary of %" PRId64,
                            j->ids[i], first + i, j->width);
    if (n < 2)
        return MHF_OK;
    MHF_TRY(mhf_model_forward(j->model, j->ids, n - 1, NULL, NULL, j->hidden));
    for (int64_t t = 0; t < n - 1; t += CHUNK)
        MHF_TRY(add_chunk(j, j->hidden + t * d, j->ids + t + 1,
                          n - 1 - t < CHUNK ? n - 1 - t : CHUNK, out));
    if (!isfinite(out->nats))
        return mhf_fail(MHF_E_NONFINITE, "the loss of the block at token %" PRId64 " is %g", first,
                        out->nats);
    return MHF_OK;
}

/* ---- all blocks, dealt to ranks, added in order
 * --------------------------------------------------- */

static void add_sums(sums *total, const sums *part)
{
    double values[N_SUMS], more[N_SUMS];
    memcpy(values, total, sizeof values);
    memcpy(more, part, sizeof more);
    for (int i = 0; i < N_SUMS; i++)
        values[i] += more[i];
    memcpy(total, values, sizeof values);
}

/* ROUND blocks a rank: block first + i·n_ranks + rank is the rank's i-th. Rank 0 adds them up in
 * order. */
static mhf_status run_round(const job *j, int64_t first, int rank, int n_ranks, sums *mine,
                            sums *all, sums *total)
{
    mhf_status status = MHF_OK;
    memset(mine, 0, ROUND * sizeof *mine);
    for (int64_t i = 0; status == MHF_OK && i < ROUND; i++) {
        int64_t block = first + i * n_ranks + rank;
        if (block < j->n_blocks)
            status = add_block(j, block, &mine[i]);
    }
    MHF_TRY(mhf_agree(status));
    MPI_Gather(mine, ROUND * N_SUMS, MPI_DOUBLE, all, ROUND * N_SUMS, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    for (int64_t i = 0; rank == 0 && i < ROUND; i++)
        for (int r = 0; r < n_ranks; r++)
            add_sums(total, &all[r * ROUND + i]);
    return MHF_OK;
}

static mhf_status run_blocks(const job *j, sums *total)
{
    int rank, n_ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    sums *mine = NULL, *all = NULL;
    mhf_status status = mhf_new(&mine, ROUND, sizeof *mine, "sums");
    if (status == MHF_OK)
        status = mhf_new(&all, rank == 0 ? (int64_t)ROUND * n_ranks : 0, sizeof *all, "sums");
    status = mhf_agree(status);
    mhf_progress progress;
    mhf_progress_start(&progress, "evaluate", "tokens", (double)j->n_tokens);
    int64_t step = (int64_t)ROUND * n_ranks;
    for (int64_t first = 0; status == MHF_OK && first < j->n_blocks; first += step) {
        status = run_round(j, first, rank, n_ranks, mine, all, total);
        if (rank == 0)
            mhf_progress_show(
                &progress, fmin((double)j->n_tokens, (double)((first + step) * j->options->block)),
                NULL);
    }
    if (rank == 0)
        mhf_progress_end(&progress, (double)j->n_tokens);
    MPI_Bcast(total, N_SUMS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(mine);
    free(all);
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
    if (strcmp(info->tokenizer_sha256, mhf_tokenizer_sha256(j->tokenizer)) != 0)
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
        status = make_scratch(&j);
    }
    if (status == MHF_OK)
        status = mhf_new(&total, 1, sizeof *total, "sums");
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = run_blocks(&j, total);
    if (status == MHF_OK)
        finish(&j, total, out);
    free_scratch(&j);
    free(total);
    return status;
}
