/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <unistd.h>

static const double redraw_seconds = 0.2, plain_seconds = 15.0;

void mhf_progress_start(mhf_progress *progress, const char *what, const char *unit, double total)
{
    double now = mhf_seconds();
    *progress = (mhf_progress){.what = what,
                               .unit = unit,
                               .total = total,
                               .started = now,
                               .shown = now,
                               .terminal = isatty(STDERR_FILENO) == 1};
}

/* Never an exponent: 1228800, 41.5, 0.25. */
static const char *amount(double x, char out[32])
{
    if (x >= 1000)
        snprintf(out, 32, "%.0f", x);
    else
        snprintf(out, 32, "%.4g", x);
    return out;
}

static void print_line(const mhf_progress *progress, double done, const char *note, double now)
{
    double elapsed = now - progress->started;
    double rate = elapsed > 0 ? (done - progress->first) / elapsed : 0;
    char line[256], number[32];
    int n = snprintf(line, sizeof line, "%s: %s", progress->what, amount(done, number));
    if (progress->total > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, " of %s %s (%.0f %%)",
                      amount(progress->total, number), progress->unit,
                      100.0 * done / progress->total);
    else
        n += snprintf(line + n, sizeof line - (size_t)n, " %s", progress->unit);
    n += snprintf(line + n, sizeof line - (size_t)n, ", %s %s/s", amount(rate, number),
                  progress->unit);
    if (progress->total > done && rate > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %.0f s left",
                      (progress->total - done) / rate);
    if (note && n < (int)sizeof line)
        snprintf(line + n, sizeof line - (size_t)n, ", %s", note);
    if (progress->terminal)
        fprintf(stderr, "\r\033[K%s", line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
}

void mhf_progress_show(mhf_progress *progress, double done, const char *note)
{
    double now = mhf_seconds();
    if (mhf_log_level_of() < MHF_LOG_INFO ||
        now - progress->shown < (progress->terminal ? redraw_seconds : plain_seconds))
        return;
    progress->shown = now;
    print_line(progress, done, note, now);
}

void mhf_progress_end(mhf_progress *progress, double done)
{
    if (mhf_log_level_of() < MHF_LOG_INFO)
        return;
    print_line(progress, done, NULL, mhf_seconds());
    if (progress->terminal)
        fputc('\n', stderr);
}
