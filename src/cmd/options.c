/* SPDX-License-Identifier: ISC */
#include "cmd.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mhf/tensor.h"

enum { KEY_QUIET = 0x1000, KEY_LOG_LEVEL, KEY_THREADS, KEY_ENGINE };

static const struct argp_option options[] = {
    {"quiet", KEY_QUIET, NULL, 0, "Say warnings and errors only", 0},
    {"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "error, warn, info (default) or debug", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads of this rank", 0},
    {"engine", KEY_ENGINE, "NAME", 0,
     "auto (default: measured once), reference, blis, onednn, or a string an earlier run printed",
     0},
    {0}};

static error_t parse_level(const char *name, mhf_log_level *level)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            *level = (mhf_log_level)i;
            return 0;
        }
    }
    return EINVAL;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    mhf_common *common = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        *common = (mhf_common){.log_level = MHF_LOG_INFO};
        return 0;
    case KEY_QUIET:
        common->log_level = MHF_LOG_WARN;
        return 0;
    case KEY_LOG_LEVEL:
        if (parse_level(value, &common->log_level) != 0)
            argp_error(state, "--log-level is '%s', expected error, warn, info or debug", value);
        return 0;
    case KEY_THREADS: {
        char *end;
        long n = strtol(value, &end, 10);
        if (*value == 0 || *end != 0 || n < 1 || n > 4096)
            argp_error(state, "--threads is '%s', expected 1 to 4096", value);
        common->threads = (int)n;
        return 0;
    }
    case KEY_ENGINE:
        common->engine = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp mhf_common_argp = {options, parse_option, NULL, NULL, NULL, NULL, NULL};

/* Every rank parses the same words and leaves alike on --help or a usage error: a rank that only
 * kept silent would go on and wait for one that has left. So the others speak into the void
 * instead. */
static void mute(int kept[2])
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        kept[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (nowhere >= 0)
            dup2(nowhere, fd);
    }
    if (nowhere >= 0)
        close(nowhere);
}

static void unmute(const int kept[2])
{
    fflush(stdout);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (kept[fd - 1] < 0)
            continue;
        dup2(kept[fd - 1], fd);
        close(kept[fd - 1]);
    }
}

mhf_status mhf_command_parse(const struct argp *argp, const char *name, int argc, char **argv,
                             void *input, const mhf_common *common)
{
    int rank, n_ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    char *program = NULL;
    if (asprintf(&program, "%s", name) < 0)
        return mhf_fail(MHF_E_NOMEM, "no memory for the options");
    char *kept = argv[0];
    argv[0] = program;
    int streams[2] = {-1, -1};
    if (rank != 0)
        mute(streams);
    error_t error = argp_parse(argp, argc, argv, 0, NULL, input);
    if (rank != 0)
        unmute(streams);
    argv[0] = kept;
    free(program);
    if (error)
        return mhf_fail(MHF_E_USAGE, "%s: wrong options: %s", name, strerror(error));
    mhf_log_start(common->log_level, rank, n_ranks);
    return MHF_OK;
}

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
