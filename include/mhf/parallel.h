/* SPDX-License-Identifier: ISC */
/** parallel: the grid of stages × replicas, the pipeline schedule, the reduction of gradients,
 * sharded optimizer state, agreeing on an error. Knows nothing of what a layer computes. Every
 * function says whether it is collective, and over which ranks.
 */
#ifndef MHF_PARALLEL_H
#define MHF_PARALLEL_H

#include <mpi.h>

#include "mhf/base.h"
#include "mhf/model.h"

/* ---- agreeing ------------------------------------------------------------------------------- */

/** Every rank gives its status, all get the same: that of the lowest rank that failed, and its
 * sentence
 * ("rank k: …" when k > 0). Collective over the world. */
mhf_status mhf_agree(mhf_status mine);
/** A failure that can't be agreed on (inside the pipeline): print it and end the job with its exit
 * code. Not collective; does not return. */
_Noreturn void mhf_abort(mhf_status status);
/** MHF_E_GRID when the launcher says N tasks and the world has 1 (srun without PMIx). Not
 * collective. */
mhf_status mhf_launch_check(void);

/* ---- grid -------------------------------------------------------------------------------------
 */

/* World rank = stage + stages · replica, so that a pipeline's ranks are neighbours. */
typedef struct mhf_grid {
    int stages, replicas; /* P, D; P·D = size of the world */
    int stage, replica;   /* this rank's place */
    MPI_Comm world;
    MPI_Comm pipeline;   /* ranks of this replica, by stage */
    MPI_Comm replicated; /* ranks of this stage, by replica */
} mhf_grid;

/** MHF_E_GRID when stages do not divide the world. Collective over the world. */
mhf_status mhf_grid_new(int stages, mhf_grid *out);
void mhf_grid_free(mhf_grid *grid);

/** Cut the units into P contiguous runs whose largest cost (mhf_unit_flops at length T) is
 * smallest; units [P]. `layers`: NULL, or [P] numbers of layers that override. MHF_E_GRID when it
 * doesn't fit. Not collective. */
mhf_status mhf_stages_balance(const mhf_config *config, int64_t T, int stages,
                              const int32_t *layers, mhf_units *units);

/* ---- pipeline ----------------------------------------------------------------------------------
 */

typedef struct mhf_phase_seconds {
    double forward, backward, wait, reduce, update, data, save;
} mhf_phase_seconds;

/** Run micro-batches batch[0..n) through the stages in the 1F1B order and add gradients; losses[m]
 * is filled on the last stage; batches that only evaluate run forward alone. All blocks·T ≤ the
 * stage's max_tokens. Collective over grid->pipeline; a failure aborts the job. */
void mhf_pipeline_run(const mhf_grid *grid, mhf_stage *stage, const mhf_config *config,
                      const mhf_batch *batch, int32_t n, mhf_losses *losses,
                      mhf_phase_seconds *seconds);
/** Slots that a stage needs: micro-batches in flight at most. */
int32_t mhf_pipeline_slots(int stages, int stage, int32_t micro_batches);

/* ---- reduction and sharded update ---------------------------------------------------------------
 */

enum {
    MHF_CHUNK = 65536, /* elements of a chunk of the norm and of a checksum quarter */
    MHF_SHARD_UNIT =
        4 * MHF_CHUNK /* a replica owns whole MiB of a parameter (the last may be short) */
};

/* A run of elements of one parameter that this replica updates and saves. */
typedef struct mhf_shard {
    int32_t param;        /* registry index */
    int64_t first, count; /* elements of the parameter */
    int64_t offset;       /* in this replica's moments */
} mhf_shard;

typedef struct mhf_optimizer {
    mhf_shard *shards; /* [n_shards] in registry order */
    int32_t n_shards;
    int64_t elements; /* owned in all */
    float *m, *v;     /* [elements] first and second moments */
    int64_t step;     /* updates done */
} mhf_optimizer;

/** Deal the stage's trainable parameters out to its replicas. Not collective. */
mhf_status mhf_optimizer_new(const mhf_grid *grid, const mhf_params *params, mhf_optimizer *out);
void mhf_optimizer_free(mhf_optimizer *optimizer);
/** Elements of moments that replica r of a stage would own (for plan). */
int64_t mhf_optimizer_elements(const mhf_registry *registry, const mhf_config *config,
                               mhf_units units, int replicas, int replica);

typedef struct mhf_update {
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* 0: none */
} mhf_update;

/** Reduce gradients over replicas (fixed tree), join the embedding's two gradients (head +
 * encoder), take the global norm (each weight once, chunks of 65,536 in double, in registry order),
 * clip, AdamW on the shards, gather the weights. *norm: before clipping. A NaN or infinity in the
 * gradients is MHF_E_NONFINITE on all ranks, nothing updated, the tensor named. Collective over the
 * world. */
mhf_status mhf_optimizer_step(const mhf_grid *grid, mhf_params *params, mhf_optimizer *optimizer,
                              const mhf_update *update, double *norm, mhf_phase_seconds *seconds);

/** Add up the losses of all micro-batches in order, the same bits on every grid and rank: losses of
 * global micro-batch m (n_global in all) known on the last stage of the replica that ran it
 * (first[0..n) = its micro-batches' global numbers). Collective over the world. */
void mhf_losses_join(const mhf_grid *grid, const mhf_losses *mine, int32_t first, int32_t n,
                     int32_t n_global, mhf_losses *total);

#endif
