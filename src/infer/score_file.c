/* SPDX-License-Identifier: ISC */
/* Requests in JSON lines to answers in JSON lines. */
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/infer.h"
#include "mhf/parallel.h"
#include "mhf/tensor.h"
#include "units.h"

/* One request of this rank, ready to be scored, and what became of it. */
typedef struct request {
    json_t *id;
    bool rolling, has_bytes;
    mhf_score_tokens tokens;
    mhf_buf answer;
    mhf_status status;
    char *error; /* the sentence of a thread's failure */
} request;

typedef struct job {
    const mhf_model *model;
    const mhf_tokenizer *tokenizer;
    const mhf_score_options *options;
    mhf_token prefix;
    int32_t size; /* token ids are below */
    mhf_lines lines;
    mhf_units_of_lines units;
    request *requests;        /* [lines.n], this rank's filled */
    mhf_score_memory *memory; /* [threads] */
    int threads;
} job;

/* ---- reading -------------------------------------------------------------------------------- */

static mhf_status read_texts(const job *j, const json_t *object, const char *where, request *out)
{
    const char *context, *continuation;
    size_t n_context, n_continuation;
    MHF_TRY(mhf_json_string(object, "context", where, &context, &n_context));
    MHF_TRY(mhf_json_string(object, "continuation", where, &continuation, &n_continuation));
    mhf_status status = mhf_score_split(j->tokenizer, j->prefix, context, n_context, continuation,
                                        n_continuation, &out->tokens);
    out->has_bytes = true;
    return status == MHF_OK ? status : mhf_fail_within(status, "%s", where);
}

static mhf_status read_ids(const job *j, const json_t *object, const char *where, request *out)
{
    mhf_token *context = NULL, *continuation = NULL;
    int64_t n_context = 0, n = 0;
    mhf_status status = mhf_lines_ids(json_object_get(object, "context_ids"), "context_ids", where,
                                      j->size, &context, &n_context);
    if (status == MHF_OK)
        status = mhf_lines_ids(json_object_get(object, "continuation_ids"), "continuation_ids",
                               where, j->size, &continuation, &n);
    if (status == MHF_OK && n_context == 0 && j->prefix < 0)
        status =
            mhf_fail(MHF_E_DATA,
                     "%s: the context is empty and the tokenizer has neither BOS nor EOS", where);
    int64_t first = n_context > 0 ? n_context : 1;
    if (status == MHF_OK)
        status = mhf_new(&out->tokens.ids, first + n, sizeof(mhf_token), "a request");
    if (status == MHF_OK) {
        out->tokens.ids[0] = j->prefix;
        for (int64_t i = 0; i < n_context; i++)
            out->tokens.ids[i] = context[i];
        for (int64_t i = 0; i < n; i++)
            out->tokens.ids[first + i] = continuation[i];
        out->tokens.n_context = first;
        out->tokens.n_continuation = n;
    }
    free(context);
    free(continuation);
    return status;
}

static mhf_status read_rolling(const job *j, const json_t *object, const char *key,
                               const char *where, request *out)
{
    const char *text;
    size_t n;
    MHF_TRY(mhf_json_string(object, key, where, &text, &n));
    out->rolling = out->has_bytes = true;
    /* An empty context gives the one token that stands before the text. */
    mhf_status status = mhf_score_split(j->tokenizer, j->prefix, "", 0, text, n, &out->tokens);
    return status == MHF_OK ? status : mhf_fail_within(status, "%s", where);
}

static mhf_status check_length(const job *j, const char *where, const request *r)
{
    int64_t n = r->tokens.n_continuation;
    if (r->rolling)
        return MHF_OK;
    if (n == 0)
        return mhf_fail(MHF_E_DATA,
                        "%s: the continuation has no token of its own after the context", where);
    if (n > j->options->max_length)
        return mhf_fail(MHF_E_DATA,
                        "%s: the continuation has %" PRId64 " tokens, expected at most %" PRId64,
                        where, n, j->options->max_length);
    return MHF_OK;
}

static mhf_status check_ids(const job *j, const char *where, const request *r)
{
    for (int64_t i = 0; i < r->tokens.n_context + r->tokens.n_continuation; i++)
        if (r->tokens.ids[i] < 0 || r->tokens.ids[i] >= j->size)
            return mhf_fail(MHF_E_DATA, "%s: token %d is past the model's vocabulary of %d", where,
                            r->tokens.ids[i], j->size);
    return MHF_OK;
}

/* A request has one of four forms: which is meant where keys of two stand would be a guess. */
static mhf_status check_form(const json_t *object, const char *where)
{
    static const char *const forms[][2] = {{"context", "continuation"},
                                           {"context_ids", "continuation_ids"},
                                           {"text", "text"},
                                           {"string", "string"}};
    const char *found = NULL, *missing = NULL;
    for (int i = 0; i < 4; i++) {
        const bool first = json_object_get(object, forms[i][0]) != NULL;
        const bool second = json_object_get(object, forms[i][1]) != NULL;
        if (!first && !second)
            continue;
        const char *here = forms[i][first ? 0 : 1];
        if (found)
            return mhf_fail(MHF_E_DATA, "%s: both '%s' and '%s', expected one form of a request",
                            where, found, here);
        found = here;
        missing = first && second ? NULL : forms[i][first ? 1 : 0];
    }
    if (!found)
        return mhf_fail(MHF_E_DATA, "%s: no 'continuation', 'continuation_ids', 'text' or 'string'",
                        where);
    return missing ? mhf_fail(MHF_E_DATA, "%s: key '%s' is missing", where, missing) : MHF_OK;
}

static mhf_status read_request(const job *j, int64_t i, request *out)
{
    json_t *object;
    mhf_buf where = {0};
    mhf_status status = mhf_lines_parse(&j->lines, i, &object, &where);
    if (status != MHF_OK)
        goto out;
    out->id = mhf_lines_id(&j->lines, i, object);
    status = check_form(object, where.data);
    if (status != MHF_OK)
        goto out;
    if (json_object_get(object, "continuation"))
        status = read_texts(j, object, where.data, out);
    else if (json_object_get(object, "continuation_ids"))
        status = read_ids(j, object, where.data, out);
    else if (json_object_get(object, "text"))
        status = read_rolling(j, object, "text", where.data, out);
    else
        status = read_rolling(j, object, "string", where.data, out);
    if (status == MHF_OK)
        status = check_ids(j, where.data, out);
    if (status == MHF_OK)
        status = check_length(j, where.data, out);
out:
    json_decref(object);
    mhf_buf_free(&where);
    return status;
}

static mhf_status read_requests(job *j)
{
    mhf_status status = mhf_units_cut(&j->lines, &j->units);
    if (status == MHF_OK)
        status = mhf_new(&j->requests, j->lines.n, sizeof *j->requests, "requests");
    if (status == MHF_OK)
        status = mhf_new(&j->memory, j->threads, sizeof *j->memory, "contexts");
    MHF_TRY(mhf_agree(status));
    int64_t i = 0;
    while (status == MHF_OK && i < j->lines.n) {
        if (j->lines.owner[i] == j->lines.rank)
            status = read_request(j, i, &j->requests[i]);
        if (status == MHF_OK)
            i++;
    }
    return mhf_lines_agree(status, i);
}

/* ---- answering ---------------------------------------------------------------------------------
 */

static mhf_status print_tokens(const request *r, const double *logp, mhf_buf *out)
{
    MHF_TRY(mhf_buf_add_text(out, ",\"token_logprobs\":["));
    for (int64_t t = 0; t < r->tokens.n_continuation; t++)
        MHF_TRY(mhf_buf_printf(out, "%s%.17g", t ? "," : "", logp[t]));
    MHF_TRY(mhf_buf_add_text(out, "],\"token_ids\":["));
    for (int64_t t = 0; t < r->tokens.n_continuation; t++)
        MHF_TRY(mhf_buf_printf(out, "%s%d", t ? "," : "", r->tokens.ids[r->tokens.n_context + t]));
    return mhf_buf_add_text(out, "]");
}

static mhf_status print_answer(const request *r, double logprob, bool greedy, const double *logp,
                               mhf_buf *out)
{
    MHF_TRY(mhf_buf_add_text(out, "{\"id\":"));
    MHF_TRY(mhf_json_print(r->id, out));
    MHF_TRY(mhf_buf_printf(
        out, ",\"logprob\":%.17g,\"greedy\":%s,\"tokens\":%" PRId64 ",\"bytes\":", logprob,
        greedy ? "true" : "false", r->tokens.n_continuation));
    MHF_TRY(r->has_bytes ? mhf_buf_printf(out, "%" PRId64, r->tokens.bytes)
                         : mhf_buf_add_text(out, "null"));
    if (logp)
        MHF_TRY(print_tokens(r, logp, out));
    return mhf_buf_add_text(out, "}\n");
}

static mhf_status answer(const job *j, request *r, mhf_score_memory *memory)
{
    const mhf_score_tokens *t = &r->tokens;
    double logprob, *logp = NULL;
    bool greedy;
    if (j->options->per_token)
        MHF_TRY(mhf_new(&logp, t->n_continuation, sizeof *logp, "log-probabilities"));
    mhf_score_request one = {t->ids, t->ids + t->n_context, t->n_context, t->n_continuation};
    mhf_status status =
        r->rolling ? mhf_score_rolling(j->model, j->prefix, one.continuation, one.n_continuation,
                                       j->options, &logprob, &greedy, logp)
                   : mhf_score_one(j->model, &one, j->options, memory, &logprob, &greedy, logp);
    if (status == MHF_OK)
        status = print_answer(r, logprob, greedy, logp, &r->answer);
    free(logp);
    return status;
}

/* The lines of a unit on the thread at hand; the error text is a thread's own, so it is kept. */
static void answer_unit(const job *j, int64_t unit)
{
    mhf_score_memory *memory = &j->memory[omp_get_thread_num()];
    for (int64_t i = j->units.begin[unit]; i < j->units.begin[unit + 1]; i++) {
        request *r = &j->requests[i];
        r->status = answer(j, r, memory);
        if (r->status != MHF_OK)
            r->error = strdup(mhf_error());
    }
}

/* This rank's answers to lines [first, last) in order; *failed is the first line that has none. */
static mhf_status take_answers(const job *j, int64_t first, int64_t last, mhf_buf *mine,
                               int64_t *failed)
{
    mhf_status status = MHF_OK;
    for (int64_t i = first; status == MHF_OK && i < last; i++) {
        request *r = &j->requests[i];
        *failed = i;
        if (j->lines.owner[i] != j->lines.rank)
            continue;
        if (r->status != MHF_OK)
            return mhf_fail(r->status, "%s line %" PRId64 ": %s", j->lines.name, j->lines.number[i],
                            r->error ? r->error : "no memory");
        status = mhf_buf_add(mine, r->answer.data, r->answer.n);
        mhf_buf_free(&r->answer);
    }
    return status;
}

/* Units [first, last): this rank's, then everybody's to rank 0. */
static mhf_status answer_round(const job *j, int64_t first, int64_t last, mhf_buf *mine,
                               mhf_buf *all)
{
    int64_t failed = 0;
#pragma omp parallel for num_threads(j->threads) schedule(dynamic)
    for (int64_t unit = first; unit < last; unit++)
        if (unit % j->lines.n_ranks == j->lines.rank)
            answer_unit(j, unit);
    first = j->units.begin[first];
    last = j->units.begin[last];
    mhf_status status = take_answers(j, first, last, mine, &failed);
    MHF_TRY(mhf_lines_agree(status, failed));
    return mhf_lines_gather(&j->lines, first, last, mine, all);
}

/* The unit past a round that begins with unit `first`: a batch of lines a rank, whole units. */
static int64_t round_end(const job *j, int64_t first)
{
    int64_t lines, last = first;
    if (!mhf_mul(j->options->batch, j->lines.n_ranks, &lines))
        return j->units.n;
    while (last < j->units.n && j->units.begin[last] - j->units.begin[first] < lines)
        last++;
    return last;
}

static mhf_status answer_all(const job *j, mhf_buf *all)
{
    mhf_buf mine = {0};
    mhf_progress progress;
    mhf_progress_start(&progress, "score", "requests", (double)j->lines.n);
    mhf_status status = MHF_OK;
    for (int64_t first = 0, last; status == MHF_OK && first < j->units.n; first = last) {
        last = round_end(j, first);
        status = answer_round(j, first, last, &mine, all);
        if (j->lines.rank == 0)
            mhf_progress_show(&progress, (double)j->units.begin[last], NULL);
    }
    if (j->lines.rank == 0)
        mhf_progress_end(&progress, (double)j->lines.n);
    mhf_buf_free(&mine);
    return status;
}

static void free_job(job *j)
{
    for (int64_t i = 0; j->requests && i < j->lines.n; i++) {
        json_decref(j->requests[i].id);
        free(j->requests[i].tokens.ids);
        mhf_buf_free(&j->requests[i].answer);
        free(j->requests[i].error);
    }
    for (int t = 0; j->memory && t < j->threads; t++)
        mhf_score_memory_free(&j->memory[t]);
    free(j->requests);
    free(j->memory);
    mhf_units_free(&j->units);
    mhf_lines_free(&j->lines);
}

mhf_status mhf_score_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                          const char *out, const mhf_score_options *options)
{
    job j = {.model = model,
             .tokenizer = tokenizer,
             .options = options,
             .prefix = mhf_prefix_token(model, tokenizer),
             .size = mhf_counted_rows(model, tokenizer, MHF_ACTUAL),
             .threads = mhf_engine_threads()};
    mhf_buf all = {0};
    mhf_status status = mhf_lines_read(in, &j.lines);
    if (status == MHF_OK)
        status = read_requests(&j);
    if (status == MHF_OK)
        status = answer_all(&j, &all);
    if (status == MHF_OK) {
        if (j.lines.rank == 0)
            status = mhf_file_write(out, all.data, all.n);
        status = mhf_agree(status);
    }
    mhf_buf_free(&all);
    free_job(&j);
    return status;
}
