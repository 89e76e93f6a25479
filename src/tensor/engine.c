/* SPDX-License-Identifier: ISC */
/* Choice of the GEMM engine: the one piece of state of this room. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "kernel.h"

static struct {
    const mhf_engine_candidate *chosen;
    int threads;
} engine;

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

/* BLIS 0.9 picks its kernels by CPU model and takes slow ones on models younger than itself; so its
 * own choice is only one of the candidates. The numbers are its arch_t. */
static const mhf_engine_candidate candidates[] = {
    {"onednn", MHF_ENGINE_ONEDNN, NULL, always},
    {"blis:default", MHF_ENGINE_BLIS, NULL, always},
#if defined(__x86_64__)
    {"blis:skx", MHF_ENGINE_BLIS, "0", has_avx512},
    {"blis:haswell", MHF_ENGINE_BLIS, "3", has_avx2},
    {"blis:zen3", MHF_ENGINE_BLIS, "6", has_avx2},
#endif
    {"reference", MHF_ENGINE_REFERENCE, NULL, always},
};
enum { N_CANDIDATES = sizeof candidates / sizeof candidates[0] };

static const mhf_engine_candidate *chosen(void)
{
    return engine.chosen ? engine.chosen : &candidates[N_CANDIDATES - 1];
}

/* Is the candidate among those that `name` leaves open ("auto", "blis")? */
static bool is_open(const mhf_engine_candidate *c, const char *name)
{
    if (!mhf_engine_is_built(c->kind) || !c->runs_here())
        return false;
    if (strcmp(name, "blis") == 0)
        return c->kind == MHF_ENGINE_BLIS;
    return c->kind != MHF_ENGINE_REFERENCE;
}

static const mhf_engine_candidate *fastest(const char *name)
{
    /* A later one must be clearly faster, or noise would choose between equals. */
    const double margin = 1.03;
    const mhf_engine_candidate *best = NULL;
    double best_rate = 0.0;
    for (int i = 0; i < N_CANDIDATES; i++) {
        const mhf_engine_candidate *c = &candidates[i];
        if (!is_open(c, name))
            continue;
        double rate = mhf_engine_measure(c);
        mhf_log(MHF_LOG_DEBUG, "engine %s: %.1f GF/s on one thread", c->name, rate);
        if (rate > margin * best_rate) {
            best = c;
            best_rate = rate;
        }
    }
    return best;
}

mhf_status mhf_engine_start(const char *name, int threads)
{
    if (threads < 1)
        return mhf_fail(MHF_E_USAGE, "engine: %d threads, expected at least 1", threads);
    const mhf_engine_candidate *found = NULL;
    if (strcmp(name, "auto") == 0 || strcmp(name, "blis") == 0) {
        found = fastest(name);
        if (!found)
            return mhf_fail(MHF_E_USAGE, "engine '%s': nothing could be measured here", name);
    }
    for (int i = 0; i < N_CANDIDATES && !found; i++)
        if (strcmp(candidates[i].name, name) == 0)
            found = &candidates[i];
    if (!found)
        return mhf_fail(MHF_E_USAGE,
                        "engine '%s' is unknown, expected auto, blis, onednn or reference", name);
    if (!mhf_engine_is_built(found->kind))
        return mhf_fail(MHF_E_USAGE, "engine '%s' is not in this build", name);
    if (!found->runs_here())
        return mhf_fail(MHF_E_USAGE, "engine '%s' needs a CPU with other instructions", name);
    mhf_engine_prepare(found);
    engine.chosen = found;
    engine.threads = threads;
    return MHF_OK;
}

const char *mhf_engine_name(void)
{
    return chosen()->name;
}

mhf_engine_kind mhf_engine_kind_of(void)
{
    return chosen()->kind;
}

int mhf_engine_threads(void)
{
    return engine.threads > 0 ? engine.threads : 1;
}

int mhf_kernel_threads(int64_t work)
{
    /* Waking a team costs a few microseconds: some ten thousand operations. */
    return work < 1 << 15 || omp_in_parallel() ? 1 : mhf_engine_threads();
}
