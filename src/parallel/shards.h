/* SPDX-License-Identifier: ISC */
/* Which replica owns which elements of a parameter, and moving them. */
#ifndef MHF_PARALLEL_SHARDS_H
#define MHF_PARALLEL_SHARDS_H

#include "mhf/parallel.h"

/* Elements [first, first+count) of parameter `param` that replica `owner` of `replicas` owns: one
 * run of whole MiB (MHF_SHARD_UNIT), the same on every stage that holds the parameter. count may be
 * 0. */
mhf_shard shard_of(const mhf_registry *registry, int32_t param, int replicas, int owner);

/* The buffer that holds the parameter's joined gradient on this stage; NULL when it does not train.
 */
float *joined_gradient(const mhf_params *params, int32_t param);

/* Each owner gets the sum over replicas of its run of `gradient` [count of param], added in a fixed
 * binary tree; the other elements keep partial values. Collective over grid->replicated. */
void shards_reduce(const mhf_grid *grid, const mhf_registry *registry, int32_t param,
                   float *gradient);
/* Each owner's run of `value` goes to all replicas. Collective over grid->replicated. */
void shards_gather(const mhf_grid *grid, const mhf_registry *registry, int32_t param, float *value);
/* Join the embedding's head and encoder gradients on the owned run: head + encoder, on the first
 * and last stage alike. Collective over grid->pipeline. */
void shards_join_embedding(const mhf_grid *grid, mhf_params *params, int32_t param);

#endif
