/* SPDX-License-Identifier: ISC */
#include "cmd.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mhf/parallel.h"
#include "mhf/tensor.h"

/* A rank's share of the cores of its host, so that ranks don't crowd each other out. */
static int default_threads(void)
{
    const char *given = getenv("OMP_NUM_THREADS");
    if (given && atoi(given) > 0)
        return atoi(given);
    MPI_Comm host;
    int here = 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > here ? (int)(cores / here) : 1;
}

int mhf_command_threads(const mhf_common *common)
{
    int threads = default_threads(); /* collective: before any rank may leave */
    return common->threads > 0 ? common->threads : threads;
}

mhf_status mhf_command_engine(const mhf_common *common, const char *stored)
{
    char name[128] = "auto";
    int rank, threads = mhf_command_threads(common);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (common->engine || stored)
        snprintf(name, sizeof name, "%s", common->engine ? common->engine : stored);
    mhf_status status = MHF_OK;
    if (rank == 0) {
        status = mhf_engine_start(name, threads);
        if (status == MHF_OK)
            snprintf(name, sizeof name, "%s", mhf_engine_name());
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        status = mhf_engine_start(name, threads);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_DEBUG, "engine %s, %d threads a rank", name, threads);
    return status;
}

mhf_status mhf_command_print(const mhf_buf *text)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
        return MHF_OK;
    if (fwrite(text->data, 1, text->n, stdout) != text->n || fflush(stdout) != 0)
        return mhf_fail_io("standard output", "can't write");
    return MHF_OK;
}

mhf_status mhf_command_check_readable(char *const *paths, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(paths[i], "-") != 0 && access(paths[i], R_OK) != 0)
            return mhf_fail_io(paths[i], "can't open");
    return MHF_OK;
}

static mhf_status check_output(const char *output, bool stream, const char *const *inputs,
                               int n_inputs)
{
    mhf_buf temporary = {0};
    if (!*output)
        return mhf_fail(MHF_E_USAGE, "-o is '', expected the name of a file");
    MHF_TRY(mhf_file_check_writable(output));
    mhf_status status = mhf_file_temporary(output, &temporary);
    mhf_buf_free(&temporary);
    if (status != MHF_OK)
        return stream ? MHF_OK : status;
    for (int i = 0; i < n_inputs; i++)
        if (mhf_file_same(output, inputs[i]))
            return mhf_fail(MHF_E_USAGE, "%s: is read from, expected another output", output);
    return MHF_OK;
}

mhf_status mhf_command_check_output(const mhf_common *common, const char *output, bool stream,
                                    const char *const *inputs, int n_inputs)
{
    return mhf_agree(common->rank == 0 ? check_output(output, stream, inputs, n_inputs) : MHF_OK);
}
