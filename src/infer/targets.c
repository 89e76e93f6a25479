/* SPDX-License-Identifier: ISC */
#include "targets.h"

#include <math.h>
#include <stdlib.h>

/* Elements of log-probabilities that are held at once, and most rows of them. */
enum { CHUNK_ELEMENTS = 1 << 22, CHUNK_ROWS = 64 };

int32_t mhf_arg_max(const float *values, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

mhf_status mhf_target_log_probabilities(const mhf_model *model, const float *hidden,
                                        const mhf_token *target, int64_t n, int32_t counted,
                                        double temperature, double *logp, bool *greedy)
{
    int64_t V = model->config.vocab_size, d = model->config.hidden_size;
    int64_t rows = CHUNK_ELEMENTS / V;
    rows = rows < 1 ? 1 : rows > CHUNK_ROWS ? CHUNK_ROWS : rows;
    float *all;
    MHF_TRY(mhf_new(&all, (n < rows ? n : rows) * V, sizeof *all, "log-probabilities"));
    mhf_status status = MHF_OK;
    for (int64_t first = 0; status == MHF_OK && first < n; first += rows) {
        int64_t m = n - first < rows ? n - first : rows;
        status =
            mhf_model_log_probabilities(model, hidden + first * d, m, counted, temperature, all);
        for (int64_t t = 0; status == MHF_OK && t < m; t++) {
            const float *row = all + t * V;
            mhf_token w = target[first + t];
            logp[first + t] = (double)row[w];
            if (mhf_arg_max(row, counted) != w)
                *greedy = false;
            if (!isfinite(row[w]))
                status = mhf_fail(MHF_E_NONFINITE, "the log-probability of token %d is %g", w,
                                  (double)row[w]);
        }
    }
    free(all);
    return status;
}
