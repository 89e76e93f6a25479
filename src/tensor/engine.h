/* SPDX-License-Identifier: ISC */
/* The GEMM engine's inside: which library, how it is called, how candidates are measured. */
#ifndef MHF_TENSOR_ENGINE_H
#define MHF_TENSOR_ENGINE_H

#include "mhf/tensor.h"

typedef enum mhf_engine_kind {
    MHF_ENGINE_REFERENCE,
    MHF_ENGINE_BLIS,
    MHF_ENGINE_ONEDNN
} mhf_engine_kind;

/* C = op(A) op(B) + beta·C, all extents at least 1. */
typedef struct mhf_gemm_call {
    mhf_op a_op, b_op;
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float beta;
    float *c;
    int64_t ldc;
} mhf_gemm_call;

/* A choice that can be measured and repeated. */
typedef struct mhf_engine_candidate {
    const char *name; /* "blis:zen3" */
    mhf_engine_kind kind;
    const char *blis_arch; /* value of BLIS_ARCH_TYPE, or NULL: leave it alone */
    bool (*runs_here)(void);
} mhf_engine_candidate;

mhf_engine_kind mhf_engine_kind_of(void);
/** True when the engine was compiled in. */
bool mhf_engine_is_built(mhf_engine_kind kind);
/** GF/s of one thread, measured in a child process; 0 when it could not be run. */
double mhf_engine_measure(const mhf_engine_candidate *candidate);
/** Make the environment right for this candidate, before its library's first call. */
void mhf_engine_prepare(const mhf_engine_candidate *candidate);

void mhf_gemm_by(mhf_engine_kind kind, const mhf_gemm_call *call, int threads);
void mhf_gemm_reference(const mhf_gemm_call *call, int threads);
/** Few enough rows that reading B is what takes the time. */
bool mhf_gemm_is_thin(const mhf_gemm_call *call);
void mhf_gemm_thin(const mhf_gemm_call *call, int threads);

#endif
