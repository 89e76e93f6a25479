/* SPDX-License-Identifier: ISC */
/* A run's state on one rank, shared by the parts of the training loop: setting up (trainer.c), one
 * step (trainer_step.c), its line of metrics (trainer_report.c), and the loop itself (loop.c). */
#ifndef MHF_TRAIN_TRAINER_H
#define MHF_TRAIN_TRAINER_H

#include "feed.h"
#include "run_folder.h"
#include "watchdog.h"

typedef struct trainer {
    const mhf_run_config *config;
    const mhf_run_inputs *inputs;
    const mhf_train_options *options;
    mhf_grid grid;
    mhf_registry registry;
    mhf_params params;
    mhf_optimizer optimizer;
    mhf_stage *stage;
    mhf_cursor *cursor;
    mhf_tokens *holdout;
    micro_share share, holdout_share;
    batch_feed feed, holdout_feed;
    int32_t *token_bytes; /* [V] */
    run_folder folder;
    watchdog *dog;
    mhf_progress progress;
    int64_t step;                 /* updates done */
    double started, saved;        /* seconds of the clock */
    double saving;                /* seconds spent on checkpoints since the last line of metrics */
    double flops_per_token, peak; /* peak: FLOP/s of all ranks' GEMM at once */
    bool root;                    /* rank 0 */
} trainer;

/* Losses of all micro-batches as reported: each coordinate's mean, their sum, bits per byte. */
typedef struct report {
    int32_t n;
    double losses[MHF_MAX_HASHES], loss, bits_per_byte;
} report;

typedef struct step_result {
    report train, holdout;
    bool evaluated, skipped;
    double lr, norm, took;
    mhf_phase_seconds seconds;
} step_result;

/* Everything of a run, read from `resumed` where that is not NULL. The grid is there already. The
 * status may differ between ranks; nothing after a failure is collective. */
mhf_status trainer_set_up(trainer *t, mhf_source *resumed);
/* Also frees the grid; good after a set-up that failed. */
void trainer_tear_down(trainer *t);
/* One update, or a skipped one, and the held-out loss where it is due. Collective, agreed. */
mhf_status trainer_step(trainer *t, step_result *r);
/* Write the step's line of metrics and show progress on rank 0. Collective; the status is rank
 * 0's. */
mhf_status trainer_report(trainer *t, const step_result *r);

#endif
