/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "mhf/parallel.h"

mhf_status mhf_grid_new(int stages, mhf_grid *out)
{
    int rank, n;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (stages < 1 || n % stages != 0)
        return mhf_fail(
            MHF_E_GRID,
            "parallel.stages is %d and there are %d ranks, expected a number of stages that "
            "divides the ranks",
            stages, n);
    *out = (mhf_grid){.stages = stages,
                      .replicas = n / stages,
                      .stage = rank % stages,
                      .replica = rank / stages,
                      .world = MPI_COMM_WORLD};
    MPI_Comm_split(MPI_COMM_WORLD, out->replica, out->stage, &out->pipeline);
    MPI_Comm_split(MPI_COMM_WORLD, out->stage, out->replica, &out->replicated);
    return MHF_OK;
}

void mhf_grid_free(mhf_grid *grid)
{
    MPI_Comm_free(&grid->pipeline);
    MPI_Comm_free(&grid->replicated);
    *grid = (mhf_grid){0};
}

/* Number of layers of each stage as given: their sum is L. */
static mhf_status use_layers(const mhf_config *config, int stages, const int32_t *layers,
                             mhf_units *units)
{
    int32_t next = 0;
    for (int s = 0; s < stages; s++) {
        if (layers[s] < 0 || layers[s] > config->num_hidden_layers)
            return mhf_fail(MHF_E_GRID, "parallel.layers holds %d, expected 0 to %d", layers[s],
                            config->num_hidden_layers);
        int32_t first = s == 0 ? 0 : next;
        next = (s == 0 ? 1 : next) + layers[s];
        units[s] = (mhf_units){first, s == stages - 1 ? next : next - 1};
    }
    if (next != config->num_hidden_layers + 1)
        return mhf_fail(MHF_E_GRID, "parallel.layers adds up to %d, expected the model's %d layers",
                        next - 1, config->num_hidden_layers);
    for (int s = 0; s < stages; s++)
        if (units[s].last < units[s].first)
            return mhf_fail(MHF_E_GRID, "parallel.layers leaves stage %d empty", s);
    return MHF_OK;
}

mhf_status mhf_stages_balance(const mhf_config *config, int64_t T, int stages,
                              const int32_t *layers, mhf_units *units)
{
    const int32_t n = config->num_hidden_layers + 2; /* encoder, layers, head */
    if (stages > n)
        return mhf_fail(MHF_E_GRID,
                        "parallel.stages is %d, expected at most %d (encoder, %d layers, head)",
                        stages, n, config->num_hidden_layers);
    if (layers)
        return use_layers(config, stages, layers, units);
    /* best[s][u]: smallest largest cost of units 0..u-1 in s+1 stages; cut[s][u]: where its last
     * begins. */
    double *best, *before;
    int32_t *cut;
    MHF_TRY(mhf_new(&before, n + 1, sizeof *before, "costs"));
    mhf_status status = mhf_new(&best, (int64_t)stages * (n + 1), sizeof *best, "costs");
    if (status != MHF_OK) {
        free(before);
        return status;
    }
    status = mhf_new(&cut, (int64_t)stages * (n + 1), sizeof *cut, "costs");
    for (int32_t u = 0; status == MHF_OK && u < n; u++)
        before[u + 1] = before[u] + mhf_unit_flops(config, u, T);
    for (int s = 0; status == MHF_OK && s < stages; s++) {
        for (int32_t u = s + 1; u <= n; u++) {
            double *b = &best[s * (n + 1) + u];
            *b = s == 0 ? before[u] : 1e300;
            for (int32_t w = s; s > 0 && w < u; w++) {
                double left = best[(s - 1) * (n + 1) + w], right = before[u] - before[w];
                double larger = left > right ? left : right;
                if (larger < *b) {
                    *b = larger;
                    cut[s * (n + 1) + u] = w;
                }
            }
        }
    }
    int32_t end = n;
    for (int s = stages - 1; status == MHF_OK && s >= 0; s--) {
        units[s] = (mhf_units){s > 0 ? cut[s * (n + 1) + end] : 0, end - 1};
        end = units[s].first;
    }
    if (status == MHF_OK)
        free(cut);
    free(best);
    free(before);
    return status;
}
