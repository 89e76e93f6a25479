/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "mhf/tensor.h"

double mhf_gemm_rate(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, double seconds)
{
    float *a = NULL, *b = NULL, *c = NULL;
    double best = 0;
    if (mhf_new(&a, m * k, sizeof *a, "a matrix") != MHF_OK ||
        mhf_new(&b, k * n, sizeof *b, "a matrix") != MHF_OK ||
        mhf_new(&c, m * n, sizeof *c, "a matrix") != MHF_OK)
        goto out;
    const mhf_rng rng = mhf_rng_named(1, "rate");
    mhf_rng_normals(rng, 0, m * k, a);
    mhf_rng_normals(rng, 0, k * n, b);
    const double start = mhf_seconds();
    /* The first run warms up; the best of the others is the machine's, the rest its neighbours'. */
    for (int run = 0; run < 3 || mhf_seconds() - start < seconds; run++) {
        const double before = mhf_seconds();
        mhf_gemm(a_op, b_op, m, n, k, a, a_op == MHF_N ? k : m, b, b_op == MHF_N ? n : k, 0.0f, c,
                 n);
        const double rate = 2.0 * (double)m * (double)n * (double)k / (mhf_seconds() - before);
        best = run > 0 && rate > best ? rate : best;
    }
out:
    free(a);
    free(b);
    free(c);
    return best;
}
