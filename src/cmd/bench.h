/* SPDX-License-Identifier: ISC */
/* What `mhf bench` measures: products and kernels at a model's shapes, and a whole step. */
#ifndef MHF_CMD_BENCH_H
#define MHF_CMD_BENCH_H

#include "mhf/train.h"

typedef struct bench_machine {
    double gemm_peak; /* FLOP/s of the best shape */
    double bandwidth; /* bytes a second of y += x on arrays past the caches */
} bench_machine;

typedef struct bench_kernel {
    const char *name;
    double seconds, flop, bytes;
    double fraction_of_limit; /* of the larger of FLOPs over the GEMM peak, bytes over bandwidth */
} bench_kernel;

typedef struct bench_step {
    int64_t tokens;
    double seconds, tokens_per_s, flops_per_token, fraction_of_gemm;
    int64_t peak_memory, planned_memory; /* bytes */
} bench_step;

enum { BENCH_MAX_KERNELS = 32 };

mhf_status bench_machine_measure(bench_machine *out);
/* Every product of the model at N tokens, and the kernels around them; *n used of out. */
mhf_status bench_kernels_measure(const mhf_config *config, int64_t N, int64_t T,
                                 const bench_machine *machine, bench_kernel out[BENCH_MAX_KERNELS],
                                 int *n);
/* A training step of N tokens on one rank with random tokens and weights: forward, backward,
 * update. */
mhf_status bench_step_measure(const mhf_run_config *config, int64_t N, const bench_machine *machine,
                              bench_step *out);

#endif
