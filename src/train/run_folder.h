/* SPDX-License-Identifier: ISC */
/* The run folder: lock, config.yaml, metrics.jsonl, checkpoints. Rank 0 alone writes here, but for
 * the checkpoints. */
#ifndef MHF_TRAIN_RUN_FOLDER_H
#define MHF_TRAIN_RUN_FOLDER_H

#include "mhf/train.h"

typedef struct run_folder {
    const char *path;
    int lock;      /* descriptor, -1 where none */
    FILE *metrics; /* open for appending, or NULL */
} run_folder;

/* Make the folder, take its lock (MHF_E_LOCKED names the holder), write config.yaml, cut
 * metrics.jsonl to lines up to `step` and open it. */
mhf_status run_folder_open(const char *path, const mhf_run_config *config, int64_t step,
                           run_folder *out);
void run_folder_close(run_folder *folder);
/* Append one line and flush. */
mhf_status run_folder_metrics(run_folder *folder, const json_t *line);
/* Make the lines so far outlive the machine: before the checkpoint that comes after them. */
mhf_status run_folder_sync(const run_folder *folder);
/* out = path of the checkpoint of a step. */
mhf_status run_folder_checkpoint(const char *path, int64_t step, mhf_buf *out);
/* Of the checkpoints up to that of `step`, which is whole, remove all but the newest `keep`; remove
 * what an interrupted save left. Later ones stay: they were refused, and count for nothing. */
mhf_status run_folder_prune(const char *path, int64_t step, int64_t keep);
/* True once when RUN/STOP exists; it is removed. */
bool run_folder_stop_asked(const char *path);

#endif
