/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "bench.h"
#include "mhf/tensor.h"

mhf_status bench_machine_measure(bench_machine *out)
{
    static const int64_t shapes[][3] = {
        {1024, 1024, 1024}, {2048, 2560, 768}, {2048, 768, 2560}, {512, 4096, 768}};
    enum { FLOATS = 32 << 20 };
    float *x = NULL, *y = NULL;
    *out = (bench_machine){0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double rate = mhf_gemm_rate(MHF_N, MHF_N, shapes[i][0], shapes[i][1], shapes[i][2], 0.3);
        out->gemm_peak = rate > out->gemm_peak ? rate : out->gemm_peak;
    }
    mhf_status status = mhf_new(&x, FLOATS, sizeof *x, "the bandwidth test");
    if (status == MHF_OK)
        status = mhf_new(&y, FLOATS, sizeof *y, "the bandwidth test");
    for (int run = 0; status == MHF_OK && run < 5; run++) {
        double start = mhf_seconds();
        mhf_add(x, FLOATS, y);
        double rate = 3.0 * FLOATS * sizeof *x / (mhf_seconds() - start);
        out->bandwidth = run > 0 && rate > out->bandwidth ? rate : out->bandwidth;
    }
    free(x);
    free(y);
    return status;
}

/* What a run of all kernels shares. */
typedef struct bench {
    const mhf_config *c;
    const bench_machine *machine;
    int64_t N, T;
    float *buffer[4]; /* each as large as the largest operand */
    int32_t *position;
    bench_kernel *out;
    int n;
} bench;

static void record(bench *b, const char *name, double seconds, double flop, double bytes)
{
    if (b->n == BENCH_MAX_KERNELS)
        return;
    double compute = flop / b->machine->gemm_peak, memory = bytes / b->machine->bandwidth;
    b->out[b->n++] =
        (bench_kernel){.name = name,
                       .seconds = seconds,
                       .flop = flop,
                       .bytes = bytes,
                       .fraction_of_limit = (compute > memory ? compute : memory) / seconds};
}

/* A product at its shape: rate by the best of a few runs. */
static void product(bench *b, const char *name, mhf_op a_op, mhf_op b_op, int64_t m, int64_t n,
                    int64_t k)
{
    double flop = 2.0 * (double)m * (double)n * (double)k;
    double bytes = 4.0 * ((double)m * (double)k + (double)k * (double)n + (double)m * (double)n);
    record(b, name, flop / mhf_gemm_rate(a_op, b_op, m, n, k, 0.1), flop, bytes);
}

static void products(bench *b)
{
    const mhf_config *c = b->c;
    const int64_t d = c->hidden_size, f = c->intermediate_size, h = c->head_dim, N = b->N;
    const int64_t q = c->num_attention_heads * h, qkv = q + 2 * c->num_key_value_heads * h;
    const int64_t B = c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
    const int64_t n = N < 512 ? N : 512; /* tokens of a head chunk */
    product(b, "qkv", MHF_N, MHF_T, N, qkv, d);
    product(b, "qkv dx", MHF_N, MHF_N, N, d, qkv);
    product(b, "qkv dW", MHF_T, MHF_N, qkv, d, N);
    product(b, "o", MHF_N, MHF_T, N, d, q);
    product(b, "o dx", MHF_N, MHF_N, N, q, d);
    product(b, "o dW", MHF_T, MHF_N, d, q, N);
    product(b, "gate+up", MHF_N, MHF_T, N, 2 * f, d);
    product(b, "gate+up dx", MHF_N, MHF_N, N, d, 2 * f);
    product(b, "gate+up dW", MHF_T, MHF_N, 2 * f, d, N);
    product(b, "down", MHF_N, MHF_T, N, d, f);
    product(b, "down dx", MHF_N, MHF_N, N, f, d);
    product(b, "down dW", MHF_T, MHF_N, d, f, N);
    product(b, "head logits", MHF_N, MHF_T, n, B, d);
    product(b, "head dh", MHF_N, MHF_N, n, d, B);
    product(b, "head dE", MHF_T, MHF_N, B, d, c->head == MHF_HEAD_MHF ? 2 * n : n);
}

/* Best of a few runs of a statement. */
#define TIMED(b, name, flop, bytes, call)                                                          \
    do {                                                                                           \
        double best_ = 1e300;                                                                      \
        for (int run_ = 0; run_ < 4; run_++) {                                                     \
            double start_ = mhf_seconds();                                                         \
            call;                                                                                  \
            double took_ = mhf_seconds() - start_;                                                 \
            best_ = run_ > 0 && took_ < best_ ? took_ : best_;                                     \
        }                                                                                          \
        record(b, name, best_, flop, bytes);                                                       \
    } while (0)

static mhf_status kernels(bench *b)
{
    const mhf_config *c = b->c;
    const int64_t d = c->hidden_size, f = c->intermediate_size, h = c->head_dim, N = b->N;
    const int64_t n_q = c->num_attention_heads, n_kv = c->num_key_value_heads, q = n_q * h;
    const int64_t B = c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
    const int64_t n = N < 512 ? N : 512;
    const double Nd = (double)(N * d), Nf = (double)(N * f), nB = (double)(n * B);
    float **x = b->buffer;
    const mhf_attention_shape shape = {.blocks = N / b->T,
                                       .T = b->T,
                                       .n_q = n_q,
                                       .n_kv = n_kv,
                                       .h = h,
                                       .ld_q = q,
                                       .ld_k = n_kv * h,
                                       .ld_v = n_kv * h,
                                       .ld_o = q};
    const double attention = 2.0 * (double)N * (double)q * (double)b->T; /* causal: half of T² */
    float *k = x[1], *v = x[1] + N * n_kv * h, *lse = x[1] + 2 * N * n_kv * h;
    float *o = x[2], *d_o = x[3];
    mhf_status status = MHF_OK;
    TIMED(b, "attention", attention, 8.0 * (double)(N * q),
          status = mhf_attention(&shape, x[0], k, v, o, lse));
    if (status != MHF_OK)
        return status;
    float *dq = x[3] + N * q, *dk = dq + N * q, *dv = dk + N * n_kv * h;
    TIMED(b, "attention backward", 2.5 * attention, 16.0 * (double)(N * q),
          status = mhf_attention_backward(&shape, x[0], k, v, o, lse, d_o, dq, dk, dv));
    if (status != MHF_OK)
        return status;
    TIMED(b, "rmsnorm", 0, 8 * Nd, mhf_rmsnorm(x[0], x[2], N, d, 1e-6f, x[1], x[3]));
    TIMED(b, "rmsnorm backward", 0, 16 * Nd,
          mhf_rmsnorm_backward(x[0], x[2], x[3], x[1], N, d, 1.0f, x[1], x[2]));
    TIMED(b, "swiglu", 0, 12 * Nf, mhf_swiglu(x[0], N, f, x[1]));
    TIMED(b, "swiglu backward", 0, 24 * Nf, mhf_swiglu_backward(x[0], x[1], N, f, x[2], x[3]));
    TIMED(b, "head softmax", 0, 12 * nB, mhf_softmax(x[0], n, B, B, x[3]));
    TIMED(b, "head retrieval gradient", 0, 16 * nB,
          mhf_retrieval_backward(x[0], NULL, b->position, 1.0f, n, B, x[1]));
    const mhf_adamw adamw = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .step = 1};
    const int64_t size = n * B;
    TIMED(b, "AdamW", 0, 28.0 * (double)size,
          mhf_adamw_update(&adamw, 1.0f, x[0], size, x[1], x[2], x[3]));
    return MHF_OK;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

mhf_status bench_kernels_measure(const mhf_config *c, int64_t N, int64_t T,
                                 const bench_machine *machine, bench_kernel out[BENCH_MAX_KERNELS],
                                 int *n)
{
    const int64_t B = c->head == MHF_HEAD_MHF ? c->num_buckets : c->vocab_size;
    const int64_t q = (int64_t)c->num_attention_heads * c->head_dim;
    int64_t floats = largest((N < 512 ? N : 512) * B, N * 2 * c->intermediate_size);
    floats = largest(floats, N * 5 * q + N * c->hidden_size);
    bench b = {.c = c, .machine = machine, .N = N, .T = T, .out = out};
    mhf_status status = mhf_new(&b.position, largest(N, 512), sizeof *b.position, "places");
    for (int i = 0; status == MHF_OK && i < 4; i++) {
        status = mhf_new(&b.buffer[i], floats, sizeof(float), "operands");
        if (status == MHF_OK)
            mhf_rng_normals(mhf_rng_named(1, "operands"), 0, floats, b.buffer[i]);
    }
    if (status == MHF_OK) {
        products(&b);
        status = kernels(&b);
    }
    for (int i = 0; i < 4; i++)
        free(b.buffer[i]);
    free(b.position);
    *n = b.n;
    return status;
}
