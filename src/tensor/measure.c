/* SPDX-License-Identifier: ISC */
/* Speed of a GEMM engine, each in a child process, since BLIS reads BLIS_ARCH_TYPE only once. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum { M = 512, N = 512, K = 768 };

/* CPU time, so that other processes on the node disturb the comparison less. */
static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Best GF/s of at least three runs that take about 30 ms. */
static double rate_here(mhf_engine_kind kind)
{
    float *a = NULL, *b = NULL, *c = NULL;
    double best = 0.0;
    if (mhf_new(&a, M * K, sizeof *a, "a") || mhf_new(&b, N * K, sizeof *b, "b") ||
        mhf_new(&c, M * N, sizeof *c, "c"))
        goto out;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 13 - 6);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i % 11 - 5);
    mhf_gemm_call call = {MHF_N, MHF_T, M, N, K, a, K, b, K, 0.0f, c, N};
    mhf_gemm_by(kind, &call, 1); /* the first call builds code and packs buffers */
    double spent = 0.0;
    for (int run = 0; run < 3 || spent < 0.03; run++) {
        double start = cpu_seconds();
        mhf_gemm_by(kind, &call, 1);
        double took = cpu_seconds() - start;
        spent += took > 1e-6 ? took : 1e-6;
        double rate = 2e-9 * M * N * K / (took > 1e-6 ? took : 1e-6);
        best = rate > best ? rate : best;
    }
out:
    free(a);
    free(b);
    free(c);
    return best;
}

void mhf_engine_prepare(const mhf_engine_candidate *candidate)
{
    if (candidate->blis_arch)
        setenv("BLIS_ARCH_TYPE", candidate->blis_arch, 1);
}

double mhf_engine_measure(const mhf_engine_candidate *candidate)
{
    int ends[2];
    double rate = 0.0;
    if (pipe(ends) != 0)
        return 0.0;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(20); /* a child that hangs dies, and counts as not running here */
        mhf_engine_prepare(candidate);
        rate = rate_here(candidate->kind);
        ssize_t written = write(ends[1], &rate, sizeof rate);
        _exit(written == (ssize_t)sizeof rate ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0) {
        ssize_t n;
        do
            n = read(ends[0], &rate, sizeof rate);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof rate)
            rate = 0.0; /* the child died, for want of an instruction or of time */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    return rate;
}
