/* SPDX-License-Identifier: ISC */
/* Learning rates of the released trainer. */
#include <float.h>
#include <math.h>

#include "golden_model.h"
#include "mhf/train.h"

static void released(void)
{
    golden_model g;
    if (!golden_model_open("mhf-h3", &g))
        return;
    int64_t n;
    double *lr = golden_dataset(&g, "train/lr", &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lr);
    CU_ASSERT_EQUAL(n, 5);
    for (int64_t t = 0; t < n; t++)
        CU_ASSERT_DOUBLE_EQUAL(mhf_learning_rate(1e-3, t, 2, n), lr[t], 4 * DBL_EPSILON * 1e-3);
    free(lr);
    golden_model_close(&g);
}

static void edges(void)
{
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 0, 0, 10), 0.5); /* no warm-up: the peak at once */
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 0, 4, 10), 0.0);
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 4, 4, 10), 0.5);
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 10, 4, 10), 0.0);
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 1, 1, 1), 0.0);
    CU_ASSERT_EQUAL(mhf_learning_rate(0.5, 3, 4, 4), 0.375);
    for (int64_t t = 4; t < 10; t++)
        CU_ASSERT(mhf_learning_rate(0.5, t, 4, 10) > mhf_learning_rate(0.5, t + 1, 4, 10));
}

int main(void)
{
    static const test_case cases[] = {{"as released", released}, {"edges", edges}};
    return run_tests("train.schedule", cases, sizeof cases / sizeof *cases);
}
