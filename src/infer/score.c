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

void mhf_score_memory_free(mhf_score_memory *memory)
{
    mhf_cache_free(&memory->cache);
    free(memory->context);
    free(memory->last);
    *memory = (mhf_score_memory){0};
}

/* Run the context, unless it is the one in memory; the cache then holds it alone. */
static mhf_status run_context(const mhf_model *model, const mhf_token *ids, int64_t n, int64_t room,
                              mhf_score_memory *memory)
{
    int64_t d = model->config.hidden_size;
    float *hidden = NULL;
    if (memory->n == n && memcmp(memory->context, ids, (size_t)n * sizeof *ids) == 0) {
        memory->cache.n = n;
        return mhf_cache_reserve(model, &memory->cache, n + room);
    }
    memory->n = 0; /* nothing to take over until all of it has been run */
    memory->cache.n = 0;
    MHF_TRY(mhf_cache_reserve(model, &memory->cache, n + room));
    MHF_TRY(mhf_grow(&memory->context, &memory->capacity, n, sizeof *ids, "a context"));
    if (!memory->last)
        MHF_TRY(mhf_new(&memory->last, d, sizeof *memory->last, "a state"));
    MHF_TRY(mhf_new(&hidden, n * d, sizeof *hidden, "hidden states"));
    mhf_status status = mhf_model_forward(model, ids, n, &memory->cache, NULL, hidden);
    if (status == MHF_OK) {
        memcpy(memory->last, hidden + (n - 1) * d, (size_t)d * sizeof *hidden);
        memcpy(memory->context, ids, (size_t)n * sizeof *ids);
        memory->n = n;
    }
    free(hidden);
    return status;
}

/* logp [n] of a continuation of n tokens after the context in memory. */
static mhf_status run_continuation(const mhf_model *model, const mhf_token *ids, int64_t n,
                                   const mhf_score_options *options, mhf_score_memory *memory,
                                   double *logp, bool *greedy)
{
    int64_t d = model->config.hidden_size;
    float *hidden; /* before each of the n tokens */
    MHF_TRY(mhf_new(&hidden, n * d, sizeof *hidden, "hidden states"));
    memcpy(hidden, memory->last, (size_t)d * sizeof *hidden);
    mhf_status status = MHF_OK;
    if (n > 1)
        status = mhf_model_forward(model, ids, n - 1, &memory->cache, NULL, hidden + d);
    if (status == MHF_OK)
        status = mhf_target_log_probabilities(model, hidden, ids, n, options->counted,
                                              options->temperature, logp, greedy);
    free(hidden);
    return status;
}

mhf_status mhf_score_one(const mhf_model *model, const mhf_score_request *request,
                         const mhf_score_options *options, mhf_score_memory *memory,
                         double *logprob, bool *greedy, double *token_logprobs)
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
    int64_t room = options->max_length + 1 - n, kept = room < n_context ? room : n_context;
    mhf_score_memory own = {0};
    double *logp;
    MHF_TRY(mhf_new(&logp, n, sizeof *logp, "log-probabilities"));
    if (!memory)
        memory = &own;
    *greedy = true;
    mhf_status status =
        run_context(model, request->context + n_context - kept, kept, n - 1, memory);
    if (status == MHF_OK)
        status = run_continuation(model, request->continuation, n, options, memory, logp, greedy);
    if (status == MHF_OK) {
        *logprob = sum(logp, n);
        if (token_logprobs)
            memcpy(token_logprobs, logp, (size_t)n * sizeof *logp);
    }
    mhf_score_memory_free(&own);
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
