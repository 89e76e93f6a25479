/* SPDX-License-Identifier: ISC */
#include "shards.h"

#include <stdlib.h>
#include <string.h>

#include "wait.h"

/* Floats of a message: about 16 MB, which moves faster than one large message and stays below 2^31.
 */
enum { PIECE = 4 << 20, TAG_REDUCE = 11, TAG_JOIN = 12 };

mhf_shard shard_of(const mhf_registry *registry, int32_t param, int replicas, int owner)
{
    const int64_t count = registry->params[param].count;
    const int64_t units = (count + MHF_SHARD_UNIT - 1) / MHF_SHARD_UNIT;
    /* Owners take equal runs; which owner comes first turns with the parameter, so that small ones
     * spread. */
    const int64_t place = (owner + replicas - param % replicas) % replicas;
    int64_t begin = units * place / replicas * MHF_SHARD_UNIT;
    int64_t end = units * (place + 1) / replicas * MHF_SHARD_UNIT;
    if (end > count)
        end = count;
    return (mhf_shard){.param = param, .first = begin, .count = end > begin ? end - begin : 0};
}

float *joined_gradient(const mhf_params *params, int32_t param)
{
    if (params->gradient[param])
        return params->gradient[param];
    return params->registry->params[param].also_head ? params->head_gradient : NULL;
}

/* parts[0] = fixed binary tree over parts[0..n): neighbours first. */
static void tree_sum(float *const *parts, int n, int64_t count)
{
    for (int step = 1; step < n; step *= 2) {
        for (int i = 0; i + step < n; i += 2 * step) {
            float *a = parts[i];
            const float *b = parts[i + step];
            for (int64_t e = 0; e < count; e++)
                a[e] += b[e];
        }
    }
}

static int64_t piece_at(const mhf_shard *shard, int64_t offset)
{
    int64_t left = shard->count - offset;
    return left < 0 ? 0 : left < PIECE ? left : PIECE;
}

typedef struct exchange {
    float *buffer;        /* [replicas, PIECE] what came */
    float **parts;        /* [replicas] */
    MPI_Request *request; /* [2·replicas] */
} exchange;

static void exchange_new(int replicas, int64_t piece, exchange *out)
{
    mhf_status status = mhf_new(&out->buffer, replicas * piece, sizeof(float), "a message");
    if (status == MHF_OK)
        status = mhf_new(&out->parts, replicas, sizeof *out->parts, "a message");
    if (status == MHF_OK)
        status = mhf_new(&out->request, 2 * replicas, sizeof(MPI_Request), "a message");
    if (status != MHF_OK)
        mhf_abort(status);
}

static void exchange_free(exchange *x)
{
    free(x->buffer);
    free(x->parts);
    free(x->request);
}

void shards_reduce(const mhf_grid *grid, const mhf_registry *registry, int32_t param,
                   float *gradient)
{
    const int D = grid->replicas, me = grid->replica;
    if (D == 1)
        return;
    const mhf_shard mine = shard_of(registry, param, D, me);
    int64_t longest = 0;
    for (int r = 0; r < D; r++) {
        mhf_shard theirs = shard_of(registry, param, D, r);
        longest = theirs.count > longest ? theirs.count : longest;
    }
    const int64_t piece = longest < PIECE ? longest : PIECE;
    exchange x = {0};
    exchange_new(D, piece, &x);
    for (int64_t offset = 0; offset < longest; offset += PIECE) {
        const int64_t n = piece_at(&mine, offset);
        int requests = 0;
        for (int r = 0; r < D; r++) {
            x.parts[r] = r == me ? gradient + mine.first + offset : x.buffer + r * piece;
            if (r != me && n > 0)
                MPI_Irecv(x.parts[r], (int)n, MPI_FLOAT, r, TAG_REDUCE, grid->replicated,
                          &x.request[requests++]);
        }
        for (int r = 0; r < D; r++) {
            mhf_shard theirs = shard_of(registry, param, D, r);
            int64_t m = piece_at(&theirs, offset);
            if (r != me && m > 0)
                MPI_Isend(gradient + theirs.first + offset, (int)m, MPI_FLOAT, r, TAG_REDUCE,
                          grid->replicated, &x.request[requests++]);
        }
        wait_politely(requests, x.request);
        if (n > 0) {
            tree_sum(x.parts, D, n);
            if (me != 0) /* the tree's root is replica 0's part */
                memcpy(gradient + mine.first + offset, x.parts[0], (size_t)n * sizeof(float));
        }
    }
    exchange_free(&x);
}

void shards_gather(const mhf_grid *grid, const mhf_registry *registry, int32_t param, float *value)
{
    if (grid->replicas == 1)
        return;
    for (int r = 0; r < grid->replicas; r++) {
        mhf_shard theirs = shard_of(registry, param, grid->replicas, r);
        for (int64_t offset = 0; offset < theirs.count; offset += PIECE)
            MPI_Bcast(value + theirs.first + offset, (int)piece_at(&theirs, offset), MPI_FLOAT, r,
                      grid->replicated);
    }
}

void shards_join_embedding(const mhf_grid *grid, mhf_params *params, int32_t param)
{
    const bool first = grid->stage == 0, last = grid->stage == grid->stages - 1;
    float *encoder = params->gradient[param], *head = params->head_gradient;
    const mhf_shard mine = shard_of(params->registry, param, grid->replicas, grid->replica);
    if (first && last) {
        for (int64_t e = mine.first; e < mine.first + mine.count; e++)
            encoder[e] = head[e] + encoder[e];
        return;
    }
    if (!first && !last)
        return;
    float *own = (first ? encoder : head) + mine.first, *came;
    const int64_t piece = mine.count < PIECE ? mine.count : PIECE;
    mhf_status status = mhf_new(&came, piece, sizeof *came, "a message");
    if (status != MHF_OK)
        mhf_abort(status);
    for (int64_t offset = 0; offset < mine.count; offset += PIECE) {
        const int64_t n = piece_at(&mine, offset);
        MPI_Sendrecv(own + offset, (int)n, MPI_FLOAT, first ? grid->stages - 1 : 0, TAG_JOIN, came,
                     (int)n, MPI_FLOAT, first ? grid->stages - 1 : 0, TAG_JOIN, grid->pipeline,
                     MPI_STATUS_IGNORE);
        /* The sum of two floats has the same bits in either order. */
        for (int64_t e = 0; e < n; e++)
            own[offset + e] += came[e];
    }
    free(came);
}
