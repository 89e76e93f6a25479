/* SPDX-License-Identifier: ISC */
/* The log-probability of a continuation, and of a whole text in rolling windows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/infer.h"
#include "targets.h"

/* Score the last n_targets of n tokens; the model reads all but the last token. */
static mhf_status score_window(const mhf_model *model, const mhf_token *ids, int64_t n,
                               int64_t n_targets, const mhf_score_options *options, double *logp,
                               bool *greedy)
{
    int64_t d = model->config.hidden_size, read = n - 1;
    float *hidden;
    MHF_TRY(mhf_new(&hidden, read * d, sizeof *hidden, "hidden states"));
    mhf_status status = mhf_model_forward(model, ids, read, NULL, NULL, hidden);
    if (status == MHF_OK)
        status = mhf_target_log_probabilities(model, hidden + (read - n_targets) * d,
                                              ids + n - n_targets, n_targets, options->counted,
                                              options->temperature, logp, greedy);
    free(hidden);
    return status;
}

static double sum(const double *values, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += values[i];
    return total;
}

mhf_status mhf_score_one(const mhf_model *model, const mhf_score_request *request,
                         const mhf_score_options *options, double *logprob, bool *greedy,
                         double *token_logprobs)
{
    int64_t n_context = request->n_context, n = request->n_continuation;
    if (n < 1)
        return mhf_fail(MHF_E_DATA, "the continuation has no token of its own");
    if (n_context < 1)
        return mhf_fail(MHF_E_DATA, "the context has no token");
    if (n > options->max_length)
        return mhf_fail(MHF_E_DATA,
                        "the continuation has %" PRId64 " tokens, expected at most %" PRId64, n,
                        options->max_length);
    /* Too long: tokens fall away on the left. */
    int64_t kept =
        options->max_length + 1 - n < n_context ? options->max_length + 1 - n : n_context;
    mhf_token *ids = NULL;
    double *logp = NULL;
    *greedy = true;
    mhf_status status = mhf_new(&ids, kept + n, sizeof *ids, "the tokens of a request");
    if (status == MHF_OK)
        status = mhf_new(&logp, n, sizeof *logp, "log-probabilities");
    if (status != MHF_OK)
        goto out;
    memcpy(ids, request->context + n_context - kept, (size_t)kept * sizeof *ids);
    memcpy(ids + kept, request->continuation, (size_t)n * sizeof *ids);
    status = score_window(model, ids, kept + n, n, options, logp, greedy);
    if (status != MHF_OK)
        goto out;
    *logprob = sum(logp, n);
    if (token_logprobs)
        memcpy(token_logprobs, logp, (size_t)n * sizeof *logp);
out:
    free(ids);
    free(logp);
    return status;
}

mhf_status mhf_score_rolling(const mhf_model *model, mhf_token prefix, const mhf_token *ids,
                             int64_t n, const mhf_score_options *options, double *logprob,
                             bool *greedy, double *token_logprobs)
{
    int64_t L = options->max_length;
    mhf_token *all = NULL; /* prefix, then ids */
    double *logp = NULL;
    *logprob = 0;
    *greedy = true;
    mhf_status status = mhf_new(&all, n + 1, sizeof *all, "the tokens of a text");
    if (status == MHF_OK)
        status = mhf_new(&logp, n, sizeof *logp, "log-probabilities");
    if (status != MHF_OK)
        goto out;
    all[0] = prefix;
    if (n > 0)
        memcpy(all + 1, ids, (size_t)n * sizeof *all);
    /* A window asks for the next L tokens after one of context; the last, shorter one takes more
     * context on the left, up to L tokens read. */
    for (int64_t done = 0; status == MHF_OK && done < n;) {
        int64_t targets = n - done < L ? n - done : L;
        int64_t end = done + targets; /* in ids; all[end] is the last target */
        int64_t begin = done == 0 || end < L ? 0 : end - L;
        status = score_window(model, all + begin, end + 1 - begin, targets, options, logp + done,
                              greedy);
        *logprob += status == MHF_OK ? sum(logp + done, targets) : 0;
        done = end;
    }
    if (status == MHF_OK && token_logprobs && n > 0)
        memcpy(token_logprobs, logp, (size_t)n * sizeof *logp);
out:
    free(all);
    free(logp);
    return status;
}
