/* SPDX-License-Identifier: ISC */
/* Matrix products through the chosen engine. */
#include <blis.h>
#include <omp.h>

#ifdef MHF_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
enum { ONEDNN_IS_BUILT = 1 };
#else
enum { ONEDNN_IS_BUILT = 0 };
#endif

#include "engine.h"
#include "kernel.h"

static void gemm_blis(const mhf_gemm_call *call, int threads)
{
    /* A thread setting of its own for each call: no global BLIS state is touched. */
    rntm_t runtime = BLIS_RNTM_INITIALIZER;
    bli_rntm_set_num_threads(threads, &runtime);
    float one = 1.0f, beta = call->beta;
    /* BLIS declares its inputs without const and does not write to them. */
    bli_sgemm_ex(call->a_op == MHF_T ? BLIS_TRANSPOSE : BLIS_NO_TRANSPOSE,
                 call->b_op == MHF_T ? BLIS_TRANSPOSE : BLIS_NO_TRANSPOSE, call->m, call->n,
                 call->k, &one, (float *)(uintptr_t)call->a, call->lda, 1,
                 (float *)(uintptr_t)call->b, call->ldb, 1, &beta, call->c, call->ldc, 1, NULL,
                 &runtime);
}

#ifdef MHF_HAVE_ONEDNN
static void gemm_onednn(const mhf_gemm_call *call, int threads)
{
    int before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    dnnl_sgemm(call->a_op == MHF_T ? 'T' : 'N', call->b_op == MHF_T ? 'T' : 'N', call->m, call->n,
               call->k, 1.0f, call->a, call->lda, call->b, call->ldb, call->beta, call->c,
               call->ldc);
    if (before != threads)
        omp_set_num_threads(before);
}
#endif

bool mhf_engine_is_built(mhf_engine_kind kind)
{
    return kind != MHF_ENGINE_ONEDNN || ONEDNN_IS_BUILT;
}

void mhf_gemm_by(mhf_engine_kind kind, const mhf_gemm_call *call, int threads)
{
    switch (kind) {
    case MHF_ENGINE_BLIS:
        gemm_blis(call, threads);
        return;
    case MHF_ENGINE_ONEDNN:
#ifdef MHF_HAVE_ONEDNN
        gemm_onednn(call, threads);
        return;
#endif
    case MHF_ENGINE_REFERENCE:
        mhf_gemm_reference(call, threads);
        return;
    }
}

/* No product to add: C = beta·C. */
static void scale_rows(int64_t m, int64_t n, float beta, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * ldc + j] = beta == 0.0f ? 0.0f : beta * c[i * ldc + j];
}

static void run(const mhf_gemm_call *call, int threads)
{
    if (call->m <= 0 || call->n <= 0)
        return;
    if (call->k <= 0)
        scale_rows(call->m, call->n, call->beta, call->c, call->ldc);
    else if (mhf_engine_kind_of() != MHF_ENGINE_REFERENCE && mhf_gemm_is_thin(call))
        mhf_gemm_thin(call, threads);
    else
        mhf_gemm_by(mhf_engine_kind_of(), call, threads);
}

void mhf_gemm(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, const float *a,
              int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    mhf_gemm_call call = {a_op, b_op, m, n, k, a, lda, b, ldb, beta, c, ldc};
    /* Some 16 multiplications take the time of another kernel's element: a product too small for a
     * team runs alone, as waking one can cost more than all of it. */
    run(&call, mhf_kernel_threads(m * n * k / 16));
}

void mhf_gemm_serial(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    mhf_gemm_call call = {a_op, b_op, m, n, k, a, lda, b, ldb, beta, c, ldc};
    run(&call, 1);
}
