/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <stdarg.h>

static struct {
    mhf_log_level level;
    int rank, n_ranks;
} log_state = {MHF_LOG_INFO, 0, 1};

void mhf_log_start(mhf_log_level level, int rank, int n_ranks)
{
    log_state.level = level;
    log_state.rank = rank;
    log_state.n_ranks = n_ranks;
}

mhf_log_level mhf_log_level_of(void)
{
    return log_state.level;
}

void mhf_log(mhf_log_level level, const char *format, ...)
{
    if (level > log_state.level || (log_state.rank > 0 && level > MHF_LOG_WARN))
        return;
    /* One write a line, so that ranks' lines don't mix. */
    char line[4608];
    int n = 0;
    if (log_state.rank > 0)
        n = snprintf(line, sizeof line, "rank %d: ", log_state.rank);
    if (level <= MHF_LOG_WARN)
        n += snprintf(line + n, sizeof line - (size_t)n,
                      "%s: ", level == MHF_LOG_ERROR ? "error" : "warning");
    va_list arguments;
    va_start(arguments, format);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, arguments);
    va_end(arguments);
    size_t length = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length] = '\n';
    fwrite(line, 1, length + 1, stderr);
    fflush(stderr);
}
