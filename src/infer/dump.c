/* SPDX-License-Identifier: ISC */
/* Hidden states of items at chosen layers, to a file. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/parallel.h"
#include "mhf/tensor.h"
#include "pool.h"

/* Pooled rows that are written together; elements of states that are held at once, unless one item
 * alone has more. */
enum { ROWS = 256, MOST_STATES = 1 << 28 };

/* An item at hand. */
typedef struct slot {
    float **layers; /* [L+2] states of the item, NULL where not wanted */
    float *states;  /* [n_layers, longest, d] */
    mhf_status status;
    char *error; /* the sentence of a thread's failure */
} slot;

typedef struct job {
    const mhf_model *model;
    const mhf_dump_options *options;
    const mhf_dump_item *items;
    const char *name;
    mhf_pool pool;
    mhf_states_writer *writer;
    int64_t d;
    slot *slots; /* [n_slots] items that run at once */
    int threads, n_slots;
    float *rows; /* [n_layers, ROWS, d] */
} job;

static mhf_status make_slot(const job *j, int64_t each, slot *out)
{
    MHF_TRY(mhf_new(&out->layers, j->model->config.num_hidden_layers + 2, sizeof *out->layers,
                    "layers"));
    MHF_TRY(
        mhf_new(&out->states, j->options->n_layers * each, sizeof *out->states, "hidden states"));
    for (int32_t i = 0; i < j->options->n_layers; i++)
        out->layers[j->options->layers[i]] = out->states + i * each;
    return MHF_OK;
}

static mhf_status make_scratch(job *j)
{
    int64_t each, all;
    j->d = j->model->config.hidden_size;
    j->threads = mhf_engine_threads();
    if (!mhf_mul(j->pool.longest, j->d, &each) || !mhf_mul(each, j->options->n_layers, &all))
        return mhf_fail(MHF_E_NOMEM, "the states of an item don't fit in memory");
    j->n_slots = j->threads;
    while (j->n_slots > 1 && all > MOST_STATES / j->n_slots)
        j->n_slots--;
    MHF_TRY(mhf_new(&j->slots, j->n_slots, sizeof *j->slots, "items"));
    for (int t = 0; t < j->n_slots; t++)
        MHF_TRY(make_slot(j, each, &j->slots[t]));
    return mhf_new(&j->rows, j->options->n_layers * ROWS * j->d, sizeof *j->rows, "pooled states");
}

static void free_job(job *j)
{
    for (int t = 0; j->slots && t < j->n_slots; t++) {
        free(j->slots[t].layers);
        free(j->slots[t].states);
        free(j->slots[t].error);
    }
    free(j->slots);
    free(j->rows);
    mhf_pool_free(&j->pool);
}

/* What goes to the file must be a number there. */
static mhf_status check_states(const job *j, int64_t item, int32_t layer, const float *x, int64_t n)
{
    const float largest = j->options->type == MHF_F16 ? 65504.0f : INFINITY;
    int64_t bad = mhf_find_nonfinite(x, n);
    for (int64_t i = 0; bad < 0 && j->options->type == MHF_F16 && i < n; i++)
        if (fabsf(x[i]) > largest)
            bad = i;
    if (bad < 0)
        return MHF_OK;
    return mhf_fail(MHF_E_NONFINITE, "%s line %" PRId64 ": layer %d holds %g%s", j->name,
                    j->items[item].line, layer, (double)x[bad],
                    isfinite(x[bad]) ? ", which float16 can't hold" : "");
}

/* Rows [first, first + n) of every layer from `rows`, `stride` rows a layer. */
static mhf_status put(const job *j, const float *rows, int64_t stride, int64_t first, int64_t n)
{
    for (int32_t i = 0; n > 0 && i < j->options->n_layers; i++)
        MHF_TRY(mhf_states_writer_put(j->writer, i, first, n, rows + i * stride * j->d));
    return MHF_OK;
}

/* Runs on any thread: the file is not touched. */
static mhf_status run_item(const job *j, int64_t item, const slot *s)
{
    int64_t first = (int64_t)j->pool.offsets[item];
    int64_t n = (int64_t)j->pool.offsets[item + 1] - first;
    if (n > 0)
        MHF_TRY(mhf_model_forward(j->model, j->pool.ids + first, n, NULL, s->layers, NULL));
    for (int32_t i = 0; i < j->options->n_layers; i++) {
        int32_t layer = j->options->layers[i];
        MHF_TRY(check_states(j, item, layer, s->layers[layer], n * j->d));
    }
    return MHF_OK;
}

static void run_item_here(const job *j, int64_t item, slot *s)
{
    s->status = run_item(j, item, s);
    if (s->status != MHF_OK)
        s->error = strdup(mhf_error());
}

/* Take an item that has run; its pooled row becomes row `held` of those to be written. */
static mhf_status take_item(const job *j, int64_t item, const slot *s, int64_t held)
{
    const mhf_pool *pool = &j->pool;
    int64_t first = (int64_t)pool->offsets[item], n = (int64_t)pool->offsets[item + 1] - first;
    if (s->status != MHF_OK)
        return mhf_fail(s->status, "%s", s->error ? s->error : "no memory");
    if (j->options->pooling == MHF_POOL_NONE)
        return put(j, s->states, pool->longest, first, n);
    for (int32_t i = 0; i < j->options->n_layers; i++)
        mhf_pool_row(pool, item, j->options->pooling, s->layers[j->options->layers[i]], j->d,
                     j->rows + (i * ROWS + held) * j->d);
    return MHF_OK;
}

/* Items [begin, end), which are this rank's: as many at once as there are slots. The team is as
 * large as it can be even for one item, so that products stay within a thread. */
static mhf_status run_items(const job *j, int64_t begin, int64_t end)
{
    int64_t held = 0;
    for (int64_t item = begin; item < end; item += j->n_slots) {
        int n = end - item < j->n_slots ? (int)(end - item) : j->n_slots;
#pragma omp parallel for num_threads(j->threads) schedule(dynamic)
        for (int i = 0; i < n; i++)
            run_item_here(j, item + i, &j->slots[i]);
        for (int i = 0; i < n; i++) {
            MHF_TRY(take_item(j, item + i, &j->slots[i], held));
            held++;
            if (held < ROWS && item + i + 1 < end)
                continue;
            if (j->options->pooling != MHF_POOL_NONE)
                MHF_TRY(put(j, j->rows, ROWS, item + i + 1 - held, held));
            held = 0;
        }
    }
    return MHF_OK;
}

/* First item of rank r: items are dealt in runs of about equal numbers of tokens. */
static int64_t first_item(const mhf_pool *pool, int r, int n_ranks)
{
    double total = (double)pool->offsets[pool->n];
    int64_t i = 0;
    if (r == n_ranks)
        return pool->n;
    while (r > 0 && i < pool->n && (double)pool->offsets[i] < total * r / n_ranks)
        i++;
    return i;
}

static mhf_status new_writer(job *j, const mhf_tokenizer *tokenizer, const char *checkpoint,
                             int64_t step, const char *out)
{
    const char **texts = NULL;
    size_t *lengths = NULL;
    int64_t n = j->pool.n;
    mhf_status status = mhf_new(&texts, n, sizeof *texts, "texts of items");
    if (status == MHF_OK)
        status = mhf_new(&lengths, n, sizeof *lengths, "texts of items");
    status = mhf_agree(status);
    if (status != MHF_OK)
        goto out;
    for (int64_t i = 0; i < n; i++) {
        texts[i] = j->items[i].text;
        lengths[i] = j->items[i].text ? j->items[i].n_text : 0;
    }
    bool pooled = j->options->pooling != MHF_POOL_NONE;
    mhf_states_meta meta = {.layers = j->options->layers,
                            .n_layers = j->options->n_layers,
                            .num_hidden_layers = j->model->config.num_hidden_layers,
                            .rows = pooled ? n : (int64_t)j->pool.offsets[n],
                            .d = j->d,
                            .type = j->options->type,
                            .pooling = mhf_pooling_name(j->options->pooling),
                            .items = n,
                            .texts = texts,
                            .text_lengths = lengths,
                            .token_offsets = j->pool.offsets,
                            .token_ids = j->pool.ids,
                            .checkpoint = checkpoint,
                            .tokenizer_sha256 = mhf_tokenizer_sha256(tokenizer),
                            .step = step,
                            .pooled = j->pool.pooled,
                            .unknown_id = mhf_tokenizer_unk(tokenizer)};
    status = mhf_states_writer_new(out, &meta, &j->writer);
out:
    free(texts);
    free(lengths);
    return status;
}

mhf_status mhf_dump_items(const mhf_model *model, const mhf_tokenizer *tokenizer,
                          const mhf_dump_item *items, int64_t n, const char *name,
                          const mhf_dump_options *options, const char *checkpoint, int64_t step,
                          const char *out)
{
    job j = {.model = model, .options = options, .items = items, .name = name};
    int rank, n_ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    mhf_status status = mhf_pool_new(model, tokenizer, items, n, name, options, &j.pool);
    if (status == MHF_OK && n == 0)
        status = mhf_fail(MHF_E_DATA, "%s: no items", name);
    if (status == MHF_OK)
        status = make_scratch(&j);
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = new_writer(&j, tokenizer, checkpoint, step, out);
    if (status == MHF_OK) {
        status = run_items(&j, first_item(&j.pool, rank, n_ranks),
                           first_item(&j.pool, rank + 1, n_ranks));
        status = mhf_states_writer_finish(j.writer, status);
    }
    free_job(&j);
    return status;
}
