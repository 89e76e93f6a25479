/* SPDX-License-Identifier: ISC */
/* Continuing a prompt, token by token, with a key-value cache. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

const char *mhf_stop_name(mhf_stop stop)
{
    static const char *const names[] = {"eos", "until", "length"};
    return names[stop];
}

mhf_status mhf_prompt_encode(const mhf_model *model, const mhf_tokenizer *tokenizer,
                             const char *text, size_t n, mhf_token **ids, int64_t *n_ids)
{
    mhf_encoding encoding = {0};
    mhf_token prefix = mhf_prefix_token(model, tokenizer);
    int64_t kept = 0;
    *ids = NULL;
    mhf_status status = mhf_tokenizer_encode(tokenizer, text, n,
                                             MHF_ENCODE_TEMPLATE | MHF_ENCODE_RANGES, &encoding);
    if (status != MHF_OK)
        goto out;
    /* Without the EOS that a template may put at the end: the prompt is to be continued. Tokens of
     * the template have no range of the text. */
    for (kept = n > 0 ? encoding.n : 0; kept > 0 && encoding.begin[kept - 1] < 0;)
        kept--;
    *n_ids = kept > 0 ? kept : 1;
    if (kept == 0 && prefix < 0)
        status =
            mhf_fail(MHF_E_DATA, "the prompt is empty and the tokenizer has neither BOS nor EOS");
    else
        status = mhf_new(ids, *n_ids, sizeof **ids, "the tokens of a prompt");
    if (status != MHF_OK)
        goto out;
    (*ids)[0] = prefix;
    if (kept > 0)
        memcpy(*ids, encoding.ids, (size_t)kept * sizeof **ids);
out:
    mhf_encoding_free(&encoding);
    return status;
}

/* ---- text of an answer ---------------------------------------------------------------------- */

/* text = what the generated ids add to the decoded prompt. Decoding both together keeps the space
 * between them, which some decoders drop at the start of a text. */
static mhf_status added_text(const mhf_tokenizer *tokenizer, const mhf_token *ids, int64_t n_prompt,
                             int64_t n, mhf_buf *text)
{
    mhf_buf before = {0}, whole = {0};
    mhf_status status = mhf_tokenizer_decode(tokenizer, ids, n_prompt, true, &before);
    if (status == MHF_OK)
        status = mhf_tokenizer_decode(tokenizer, ids, n, true, &whole);
    mhf_buf_clear(text);
    if (status != MHF_OK)
        goto out;
    if (whole.n >= before.n && (before.n == 0 || memcmp(whole.data, before.data, before.n) == 0))
        status = mhf_buf_add(text, whole.n > 0 ? whole.data + before.n : "", whole.n - before.n);
    else
        status = mhf_tokenizer_decode(tokenizer, ids + n_prompt, n - n_prompt, true, text);
out:
    mhf_buf_free(&before);
    mhf_buf_free(&whole);
    return status;
}

/* Cut the text before the earliest of the ending texts; true when there is one. */
static bool cut_at_ending(const mhf_generate_request *request, mhf_buf *text)
{
    size_t at = text->n;
    bool found = false;
    for (int32_t i = 0; i < request->n_until; i++) {
        const mhf_text_piece *ending = &request->until[i];
        const char *place = ending->n > 0 && text->n > 0
                                ? memmem(text->data, text->n, ending->text, ending->n)
                                : NULL;
        if (place && (size_t)(place - text->data) <= at) {
            at = (size_t)(place - text->data);
            found = true;
        }
    }
    if (found) {
        text->n = at;
        text->data[at] = 0;
    }
    return found;
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

/* What one request works with. */
typedef struct run {
    mhf_cache cache;
    float *hidden;    /* [n_prompt, d] */
    float *logp;      /* [V] */
    mhf_token *ids;   /* prompt, then the answer */
    mhf_token *words; /* the same without padding rows, which have no text */
    int64_t n_words;
    mhf_sampler sampler;
    mhf_rng rng;
    int64_t limit; /* tokens that ids may reach */
} run;

static mhf_status run_new(const mhf_model *model, const mhf_generate_request *request,
                          const mhf_generate_options *options, run *out)
{
    const mhf_config *config = &model->config;
    int64_t room = config->max_position_embeddings - request->n;
    out->limit = request->n + (request->max_tokens < room ? request->max_tokens : room);
    mhf_buf name = {0};
    mhf_status status = mhf_buf_printf(&name, "generate/%s", request->key);
    if (status == MHF_OK)
        out->rng = mhf_rng_named(options->seed, name.data);
    mhf_buf_free(&name);
    MHF_TRY(status);
    MHF_TRY(mhf_new(&out->hidden, request->n * config->hidden_size, sizeof *out->hidden,
                    "hidden states"));
    MHF_TRY(mhf_new(&out->logp, config->vocab_size, sizeof *out->logp, "log-probabilities"));
    MHF_TRY(mhf_new(&out->ids, out->limit, sizeof *out->ids, "token ids"));
    MHF_TRY(mhf_sampler_new(options->counted, &out->sampler));
    MHF_TRY(mhf_new(&out->words, out->limit, sizeof *out->words, "token ids"));
    memcpy(out->ids, request->prompt, (size_t)request->n * sizeof *out->ids);
    memcpy(out->words, request->prompt, (size_t)request->n * sizeof *out->words);
    out->n_words = request->n;
    return mhf_cache_reserve(model, &out->cache, out->limit);
}

static void run_free(run *r)
{
    mhf_cache_free(&r->cache);
    free(r->hidden);
    free(r->logp);
    free(r->ids);
    free(r->words);
    mhf_sampler_free(&r->sampler);
}

/* Feed the tokens that the cache lacks of the first n; *next is drawn after them. */
static mhf_status next_token(const mhf_model *model, const mhf_generate_options *options, run *r,
                             int64_t n, mhf_token *next)
{
    int64_t fresh = n - r->cache.n, d = model->config.hidden_size;
    MHF_TRY(mhf_model_forward(model, r->ids + r->cache.n, fresh, &r->cache, NULL, r->hidden));
    MHF_TRY(mhf_model_log_probabilities(model, r->hidden + (fresh - 1) * d, 1, options->counted, 1,
                                        r->logp));
    *next = mhf_sample(&r->sampler, r->logp, options, mhf_rng_uniform(r->rng, (uint64_t)n));
    if (!isfinite(r->logp[*next]))
        return mhf_fail(MHF_E_NONFINITE,
                        "the log-probability of token %d at position %" PRId64 " is %g", *next, n,
                        (double)r->logp[*next]);
    return MHF_OK;
}

mhf_status mhf_generate_one(const mhf_model *model, const mhf_tokenizer *tokenizer,
                            const mhf_generate_request *request,
                            const mhf_generate_options *options, mhf_token *ids, int64_t *n_ids,
                            mhf_buf *text, mhf_stop *stop)
{
    if (request->n < 1)
        return mhf_fail(MHF_E_DATA, "the prompt has no token");
    if (request->n > model->config.max_position_embeddings)
        return mhf_fail(MHF_E_DATA, "the prompt has %" PRId64 " tokens, expected at most %d",
                        request->n, model->config.max_position_embeddings);
    run r = {0};
    mhf_token eos = mhf_tokenizer_eos(tokenizer) >= 0 ? mhf_tokenizer_eos(tokenizer)
                                                      : model->config.eos_token_id;
    int64_t n = request->n;
    *stop = MHF_STOP_LENGTH;
    mhf_status status = run_new(model, request, options, &r);
    while (status == MHF_OK && n < r.limit) {
        mhf_token next;
        status = next_token(model, options, &r, n, &next);
        if (status != MHF_OK)
            break;
        if (next == eos && !options->ignore_eos) {
            *stop = MHF_STOP_EOS;
            break;
        }
        r.ids[n++] = next;
        if (next < mhf_tokenizer_size(tokenizer))
            r.words[r.n_words++] = next;
        if (request->n_until == 0)
            continue;
        status = added_text(tokenizer, r.words, request->n, r.n_words, text);
        if (status == MHF_OK && cut_at_ending(request, text)) {
            *stop = MHF_STOP_UNTIL;
            break;
        }
    }
    if (status == MHF_OK && *stop != MHF_STOP_UNTIL)
        status = added_text(tokenizer, r.words, request->n, r.n_words, text);
    *n_ids = n - request->n;
    if (status == MHF_OK && *n_ids > 0)
        memcpy(ids, r.ids + request->n, (size_t)*n_ids * sizeof *ids);
    run_free(&r);
    return status;
}
