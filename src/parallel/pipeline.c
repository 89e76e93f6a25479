/* SPDX-License-Identifier: ISC */
/* One forward, one backward (1F1B): stage s runs P-s-1 micro-batches ahead, then alternates, then
 * drains. Gradients of a stage are therefore added in micro-batch order on every grid. */
#include <stdlib.h>

#include "mhf/parallel.h"
#include "wait.h"

enum { TAG_FORWARD = 1, TAG_BACKWARD = 2 };

typedef struct run {
    const mhf_grid *grid;
    mhf_stage *stage;
    int64_t d;
    const mhf_batch *batch;
    int32_t n_slots;
    float *x_in, *dx_out;       /* [N,d] received */
    float *x_out[2], *dx_in[2]; /* [N,d] being sent: one may travel while the next is made */
    MPI_Request sent_x[2], sent_dx[2];
    mhf_losses *losses;
    mhf_phase_seconds *seconds;
} run;

int32_t mhf_pipeline_slots(int stages, int stage, int32_t micro_batches)
{
    int32_t ahead = (int32_t)(stages - stage);
    return ahead < micro_batches ? ahead : (micro_batches > 0 ? micro_batches : 1);
}

static int64_t elements(const run *r, int32_t m)
{
    return r->batch[m].blocks * r->batch[m].T * r->d;
}

/* Messages above 2^31 elements can't be: N·d of a micro-batch is checked when the run is planned.
 */
static void receive(run *r, float *x, int64_t n, int from, int tag)
{
    double start = mhf_seconds();
    MPI_Request request;
    MPI_Irecv(x, (int)n, MPI_FLOAT, from, tag, r->grid->pipeline, &request);
    wait_politely(1, &request);
    r->seconds->wait += mhf_seconds() - start;
}

static void wait_sent(run *r, MPI_Request *request)
{
    double start = mhf_seconds();
    wait_politely(1, request);
    r->seconds->wait += mhf_seconds() - start;
}

static void forward(run *r, int32_t m)
{
    const mhf_grid *g = r->grid;
    const bool first = g->stage == 0, last = g->stage == g->stages - 1;
    float *out = last ? NULL : r->x_out[m % 2];
    if (!first)
        receive(r, r->x_in, elements(r, m), g->stage - 1, TAG_FORWARD);
    if (!last)
        wait_sent(r, &r->sent_x[m % 2]);
    double start = mhf_seconds();
    mhf_status status = mhf_stage_forward(r->stage, m % r->n_slots, &r->batch[m],
                                          first ? NULL : r->x_in, out, last ? &r->losses[m] : NULL);
    r->seconds->forward += mhf_seconds() - start;
    if (status != MHF_OK)
        mhf_abort(status);
    if (!last)
        MPI_Isend(out, (int)elements(r, m), MPI_FLOAT, g->stage + 1, TAG_FORWARD, g->pipeline,
                  &r->sent_x[m % 2]);
}

static void backward(run *r, int32_t m)
{
    const mhf_grid *g = r->grid;
    const bool first = g->stage == 0, last = g->stage == g->stages - 1;
    float *in = first ? NULL : r->dx_in[m % 2];
    if (!last)
        receive(r, r->dx_out, elements(r, m), g->stage + 1, TAG_BACKWARD);
    if (!first)
        wait_sent(r, &r->sent_dx[m % 2]);
    double start = mhf_seconds();
    mhf_status status =
        mhf_stage_backward(r->stage, m % r->n_slots, &r->batch[m], last ? NULL : r->dx_out, in);
    r->seconds->backward += mhf_seconds() - start;
    if (status != MHF_OK)
        mhf_abort(status);
    if (!first)
        MPI_Isend(in, (int)elements(r, m), MPI_FLOAT, g->stage - 1, TAG_BACKWARD, g->pipeline,
                  &r->sent_dx[m % 2]);
}

static mhf_status allocate(run *r, int32_t n)
{
    const mhf_grid *g = r->grid;
    int64_t largest = 0;
    for (int32_t m = 0; m < n; m++)
        largest = elements(r, m) > largest ? elements(r, m) : largest;
    if (largest > INT32_MAX)
        return mhf_fail(MHF_E_GRID,
                        "a micro-batch of %lld values is too long for a message: take a "
                        "smaller train.micro_batch",
                        (long long)largest);
    for (int i = 0; i < 2; i++) {
        r->sent_x[i] = r->sent_dx[i] = MPI_REQUEST_NULL;
        if (g->stage < g->stages - 1)
            MHF_TRY(mhf_new(&r->x_out[i], largest, sizeof(float), "a message"));
        if (g->stage > 0)
            MHF_TRY(mhf_new(&r->dx_in[i], largest, sizeof(float), "a message"));
    }
    if (g->stage > 0)
        MHF_TRY(mhf_new(&r->x_in, largest, sizeof(float), "a message"));
    if (g->stage < g->stages - 1)
        MHF_TRY(mhf_new(&r->dx_out, largest, sizeof(float), "a message"));
    return MHF_OK;
}

void mhf_pipeline_run(const mhf_grid *grid, mhf_stage *stage, const mhf_config *config,
                      const mhf_batch *batch, int32_t n, mhf_losses *losses,
                      mhf_phase_seconds *seconds)
{
    run r = {.grid = grid,
             .stage = stage,
             .d = config->hidden_size,
             .batch = batch,
             .n_slots = mhf_pipeline_slots(grid->stages, grid->stage, n),
             .losses = losses,
             .seconds = seconds};
    mhf_status status = allocate(&r, n);
    if (status != MHF_OK)
        mhf_abort(status);
    const bool evaluate = n > 0 && batch[0].evaluate;
    const int32_t warm_up = evaluate ? n : r.n_slots - 1;
    for (int32_t m = 0; m < warm_up && m < n; m++)
        forward(&r, m);
    for (int32_t m = warm_up; m < n; m++) {
        forward(&r, m);
        backward(&r, m - warm_up);
    }
    for (int32_t m = n - warm_up < 0 ? 0 : n - warm_up; m < n && !evaluate; m++)
        backward(&r, m);
    for (int i = 0; i < 2; i++) {
        wait_sent(&r, &r.sent_x[i]);
        wait_sent(&r, &r.sent_dx[i]);
        free(r.x_out[i]);
        free(r.dx_in[i]);
    }
    free(r.x_in);
    free(r.dx_out);
}
