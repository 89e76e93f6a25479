/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "mhf/parallel.h"
#include "wait.h"

/* Doubles of one micro-batch's losses as they travel. */
enum { WIDTH = MHF_MAX_HASHES + 1 };

void mhf_losses_join(const mhf_grid *grid, const mhf_losses *mine, int32_t first, int32_t n,
                     int32_t n_global, mhf_losses *total)
{
    double *all;
    mhf_status status = mhf_new(&all, (int64_t)n_global * WIDTH, sizeof *all, "losses");
    if (status != MHF_OK)
        mhf_abort(status);
    for (int32_t m = 0; grid->stage == grid->stages - 1 && m < n; m++) {
        double *row = all + (int64_t)(first + m) * WIDTH;
        for (int k = 0; k < MHF_MAX_HASHES; k++)
            row[k] = mine[m].nats[k];
        row[MHF_MAX_HASHES] = (double)mine[m].targets;
    }
    /* One rank alone has a number other than 0 in any place, so the sum is exact in any order. */
    allreduce_politely(all, n_global * WIDTH, MPI_DOUBLE, MPI_SUM);
    *total = (mhf_losses){0};
    for (int32_t m = 0; m < n_global; m++) {
        const double *row = all + (int64_t)m * WIDTH;
        for (int k = 0; k < MHF_MAX_HASHES; k++)
            total->nats[k] += row[k];
        total->targets += (int64_t)row[MHF_MAX_HASHES];
    }
    free(all);
}
