/* SPDX-License-Identifier: ISC */
/* Prompts in JSON lines to answers in JSON lines. */
#include <inttypes.h>
#include <stdlib.h>

#include "lines.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

/* One prompt of this rank. */
typedef struct prompt {
    json_t *object; /* owns the ending texts */
    mhf_buf id;     /* as JSON */
    mhf_token *ids;
    mhf_text_piece *until;
    mhf_generate_request request;
} prompt;

typedef struct job {
    const mhf_model *model;
    const mhf_tokenizer *tokenizer;
    const mhf_generate_options *options;
    mhf_lines lines;
    prompt *prompts; /* [lines.n], this rank's filled */
} job;

/* ---- reading -------------------------------------------------------------------------------- */

static mhf_status read_until(const char *where, prompt *out)
{
    const json_t *list = json_object_get(out->object, "until");
    if (!list || json_is_null(list))
        return MHF_OK;
    if (!json_is_array(list) || json_array_size(list) > INT32_MAX)
        return mhf_fail(MHF_E_DATA, "%s: key 'until' is not a list of strings", where);
    int32_t n = (int32_t)json_array_size(list);
    MHF_TRY(mhf_new(&out->until, n, sizeof *out->until, "ending texts"));
    for (int32_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(list, (size_t)i);
        if (!json_is_string(text) || json_string_length(text) == 0)
            return mhf_fail(MHF_E_DATA, "%s: key 'until' is not a list of non-empty strings",
                            where);
        out->until[i] = (mhf_text_piece){json_string_value(text), json_string_length(text)};
    }
    out->request.until = out->until;
    out->request.n_until = n;
    return MHF_OK;
}

static mhf_status read_fields(const job *j, const char *where, prompt *out)
{
    const char *text;
    size_t n;
    mhf_generate_request *r = &out->request;
    r->max_tokens = j->options->max_tokens;
    MHF_TRY(mhf_json_string(out->object, "prompt", where, &text, &n));
    MHF_TRY(mhf_json_int_or(out->object, "max_tokens", where, 0, INT32_MAX, &r->max_tokens));
    MHF_TRY(read_until(where, out));
    mhf_status status = mhf_prompt_encode(j->model, j->tokenizer, text, n, &out->ids, &r->n);
    if (status != MHF_OK)
        return mhf_fail_within(status, "%s", where);
    r->prompt = out->ids;
    r->key = out->id.data;
    for (int64_t i = 0; i < r->n; i++)
        if (r->prompt[i] >= j->model->config.vocab_size)
            return mhf_fail(MHF_E_DATA, "%s: token %d is past the model's vocabulary of %d", where,
                            r->prompt[i], j->model->config.vocab_size);
    if (r->n > j->model->config.max_position_embeddings)
        return mhf_fail(MHF_E_DATA, "%s: the prompt has %" PRId64 " tokens, expected at most %d",
                        where, r->n, j->model->config.max_position_embeddings);
    return MHF_OK;
}

static mhf_status read_prompt(const job *j, int64_t i, prompt *out)
{
    mhf_buf where = {0};
    mhf_status status = mhf_lines_parse(&j->lines, i, &out->object, &where);
    if (status == MHF_OK) {
        json_t *id = mhf_lines_id(&j->lines, i, out->object);
        status = mhf_json_print(id, &out->id);
        json_decref(id);
    }
    if (status == MHF_OK)
        status = read_fields(j, where.data, out);
    mhf_buf_free(&where);
    return status;
}

static mhf_status read_prompts(job *j)
{
    mhf_status status = mhf_new(&j->prompts, j->lines.n, sizeof *j->prompts, "prompts");
    int64_t i = j->lines.rank;
    while (status == MHF_OK && i < j->lines.n) {
        status = read_prompt(j, i, &j->prompts[i]);
        if (status == MHF_OK)
            i += j->lines.n_ranks;
    }
    return mhf_lines_agree(status, i);
}

/* ---- answering ---------------------------------------------------------------------------------
 */

static mhf_status print_answer(const job *j, const prompt *p, const mhf_token *ids, int64_t n,
                               const mhf_buf *text, mhf_stop stop, mhf_buf *out)
{
    json_t *string = json_stringn(text->n > 0 ? text->data : "", text->n);
    if (!string)
        return mhf_fail(MHF_E_INTERNAL, "the generated text is not UTF-8");
    mhf_status status = mhf_buf_printf(out, "{\"id\":%s,\"text\":", p->id.data);
    if (status == MHF_OK)
        status = mhf_json_print(string, out);
    json_decref(string);
    MHF_TRY(status);
    MHF_TRY(mhf_buf_printf(out, ",\"tokens\":%" PRId64 ",\"stop\":\"%s\"", n, mhf_stop_name(stop)));
    if (j->options->token_ids) {
        MHF_TRY(mhf_buf_add_text(out, ",\"token_ids\":["));
        for (int64_t t = 0; t < n; t++)
            MHF_TRY(mhf_buf_printf(out, "%s%d", t ? "," : "", ids[t]));
        MHF_TRY(mhf_buf_add_text(out, "]"));
    }
    return mhf_buf_add_text(out, "}\n");
}

static mhf_status answer(const job *j, int64_t i, mhf_buf *out)
{
    const prompt *p = &j->prompts[i];
    int64_t n = 0, most = p->request.max_tokens;
    mhf_token *ids = NULL;
    mhf_buf text = {0};
    mhf_stop stop;
    if (most > j->model->config.max_position_embeddings)
        most = j->model->config.max_position_embeddings;
    mhf_status status = mhf_new(&ids, most, sizeof *ids, "token ids");
    if (status == MHF_OK)
        status = mhf_generate_one(j->model, j->tokenizer, &p->request, j->options, ids, &n, &text,
                                  &stop);
    if (status == MHF_OK)
        status = print_answer(j, p, ids, n, &text, stop, out);
    else
        (void)mhf_fail_within(status, "%s line %" PRId64, j->lines.name, j->lines.number[i]);
    free(ids);
    mhf_buf_free(&text);
    return status;
}

static mhf_status answer_all(const job *j, mhf_buf *all)
{
    mhf_buf mine = {0};
    mhf_progress progress;
    mhf_progress_start(&progress, "generate", "prompts", (double)j->lines.n);
    mhf_status status = MHF_OK;
    int64_t n = j->lines.n, step = j->lines.n_ranks;
    for (int64_t first = 0; status == MHF_OK && first < n; first += step) {
        int64_t last = n - first < step ? n : first + step, i = first + j->lines.rank;
        if (i < last)
            status = answer(j, i, &mine);
        status = mhf_lines_agree(status, i);
        if (status == MHF_OK)
            status = mhf_lines_gather(&j->lines, first, last, &mine, all);
        if (j->lines.rank == 0)
            mhf_progress_show(&progress, (double)last, NULL);
    }
    if (j->lines.rank == 0)
        mhf_progress_end(&progress, (double)n);
    mhf_buf_free(&mine);
    return status;
}

static void free_job(job *j)
{
    for (int64_t i = 0; j->prompts && i < j->lines.n; i++) {
        json_decref(j->prompts[i].object);
        mhf_buf_free(&j->prompts[i].id);
        free(j->prompts[i].ids);
        free(j->prompts[i].until);
    }
    free(j->prompts);
    mhf_lines_free(&j->lines);
}

mhf_status mhf_generate_file(const mhf_model *model, const mhf_tokenizer *tokenizer, const char *in,
                             const mhf_generate_options *options, mhf_buf *out)
{
    job j = {.model = model, .tokenizer = tokenizer, .options = options};
    mhf_status status = mhf_lines_read(in, &j.lines);
    if (status == MHF_OK)
        status = read_prompts(&j);
    if (status == MHF_OK)
        status = answer_all(&j, out);
    free_job(&j);
    return status;
}
