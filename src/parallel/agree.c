/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mhf/parallel.h"
#include "wait.h"

enum { SENTENCE = 4096 };

mhf_status mhf_agree(mhf_status mine)
{
    int rank, n;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int first = mine == MHF_OK ? n : rank;
    allreduce_politely(&first, 1, MPI_INT, MPI_MIN);
    if (first == n)
        return MHF_OK;
    struct {
        mhf_status status;
        char sentence[SENTENCE];
    } word = {.status = mine};
    if (first == 0)
        snprintf(word.sentence, sizeof word.sentence, "%s", mhf_error());
    else
        snprintf(word.sentence, sizeof word.sentence, "rank %d: %s", rank, mhf_error());
    MPI_Bcast(&word, (int)sizeof word, MPI_BYTE, first, MPI_COMM_WORLD);
    return mhf_fail(word.status, "%s", word.sentence);
}

void mhf_abort(mhf_status status)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Not through the log: whatever its level, the reason for the end of a job is said, by any
     * rank. */
    fprintf(stderr, "error: rank %d: %s\n", rank, mhf_error());
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, mhf_status_exit_code(status));
    _exit(mhf_status_exit_code(status));
}

mhf_status mhf_launch_check(void)
{
    static const char *const variables[] = {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE",
                                            "PMI_SIZE"};
    int n;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (size_t i = 0; n == 1 && i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && atoi(value) > 1)
            return mhf_fail(
                MHF_E_GRID,
                "the launcher started %s tasks (%s), but each is a world of its own: start "
                "with mpirun, or srun --mpi=pmix",
                value, variables[i]);
    }
    return MHF_OK;
}
