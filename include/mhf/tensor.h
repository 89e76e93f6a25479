/* SPDX-License-Identifier: ISC */
/** tensor: GEMM engines and every numeric kernel with its backward. Knows nothing of parameters'
 * names or MPI. Arrays are float32, row-major, plain pointers with extents; "[T,d]" is T rows of d.
 * Kernels use the threads set by mhf_engine_start, never allocate what the caller can hold, and
 * give the same bits for the same shapes, engine and thread count. Gradients are *added* to where a
 * name starts with d and says "+=", overwritten otherwise.
 */
#ifndef MHF_TENSOR_H
#define MHF_TENSOR_H

#include "mhf/base.h"

/* ---- engine --------------------------------------------------------------------------------- */

/** Choose the GEMM engine, once a process, before any kernel. `name`: "reference", "blis",
 * "onednn", "auto" (measured now), or a string that mhf_engine_name() gave before ("blis:zen3"),
 * which repeats every choice. Candidates are measured in child processes, since BLIS reads
 * BLIS_ARCH_TYPE once. Errors: MHF_E_USAGE for an unknown or unbuilt engine. */
mhf_status mhf_engine_start(const char *name, int threads);
/** The string that repeats the choice. */
const char *mhf_engine_name(void);
int mhf_engine_threads(void);

/* ---- matrix products ------------------------------------------------------------------------ */

typedef enum mhf_op { MHF_N, MHF_T } mhf_op;

/** C[m,n] = op(A)[m,k] op(B)[k,n] + beta·C; lda, ldb, ldc: elements from row to row as stored. */
void mhf_gemm(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, const float *a,
              int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
/** The same on the calling thread alone, for use inside a parallel region. */
void mhf_gemm_serial(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/** FLOP/s of mhf_gemm at a shape: the best of the runs that fit in `seconds` (three at least). */
double mhf_gemm_rate(mhf_op a_op, mhf_op b_op, int64_t m, int64_t n, int64_t k, double seconds);

/* Linear layer y = x Wᵀ + b, W [out,in] (as Hugging Face stores it). */

/** y [T,out]; bias [out] or NULL. */
void mhf_linear(const float *x, const float *w, const float *bias, int64_t T, int64_t in,
                int64_t out, float *y);
/** dx [T,in] = dy W + beta_dx·dx; dw += dyᵀ x; dbias += Σ_t dy; each skipped when NULL. */
void mhf_linear_backward(const float *x, const float *w, const float *dy, int64_t T, int64_t in,
                         int64_t out, float beta_dx, float *dx, float *dw, float *dbias);

/* ---- element-wise and rows ------------------------------------------------------------------ */

/** y += x. */
void mhf_add(const float *x, int64_t n, float *y);
/** y *= a. */
void mhf_scale(float a, int64_t n, float *y);
/** Σ x² in double, added in element order of 8 fixed lanes: the same bits on every machine. */
double mhf_sum_of_squares(const float *x, int64_t n);
/** Index of the first NaN or infinity, or -1. */
int64_t mhf_find_nonfinite(const float *x, int64_t n);

/** RMSNorm over rows (model.md §3): y = x·r·w, r = (mean x² + eps)^-½ kept in rstd [T]. */
void mhf_rmsnorm(const float *x, const float *w, int64_t T, int64_t d, float eps, float *y,
                 float *rstd);
/** dx = … + beta_dx·dx; dw += … (fixed order; skipped when NULL). */
void mhf_rmsnorm_backward(const float *x, const float *w, const float *rstd, const float *dy,
                          int64_t T, int64_t d, float beta_dx, float *dx, float *dw);

/** y = silu(x). */
void mhf_silu(const float *x, int64_t n, float *y);
/** dx = dy·silu'(x); dx may be dy. */
void mhf_silu_backward(const float *x, const float *dy, int64_t n, float *dx);
/** gu [T,2f] holds gate then up in each row; y [T,f] = silu(gate)·up. */
void mhf_swiglu(const float *gu, int64_t T, int64_t f, float *y);
/** dgu [T,2f] from dy [T,f]; also recomputes y [T,f] (dy may be y's buffer: no). */
void mhf_swiglu_backward(const float *gu, const float *dy, int64_t T, int64_t f, float *dgu,
                         float *y);

/** Row-wise softmax in place; z [T,n] with row stride ld; max and logsumexp in float32 kept as
 * lse [T] (may be NULL). */
void mhf_softmax(float *z, int64_t T, int64_t n, int64_t ld, float *lse);

/* ---- per-head norm and rotary --------------------------------------------------------------- */

/** Angles cos and sin [positions, h/2] of places first, first+1, …, in float32: p·theta^(-2i/h). */
void mhf_rotary_table(int64_t first, int64_t positions, int64_t h, double theta, float *cos_table,
                      float *sin_table);

/** Normalise each head (weight [h], eps) and rotate it, half-split form: for rows t and heads a,
 * in [T, ld_in] at a·h → out [T, ld_out] at a·h; rstd [T, heads] kept. position [T]: rows of the
 * tables. */
void mhf_head_norm_rotary(const float *in, int64_t ld_in, const float *w, const int32_t *position,
                          const float *cos_table, const float *sin_table, int64_t T, int64_t heads,
                          int64_t h, float eps, float *out, int64_t ld_out, float *rstd);
/** din = gradient of in; dw += … (fixed order; skipped when NULL). */
void mhf_head_norm_rotary_backward(const float *in, int64_t ld_in, const float *w,
                                   const int32_t *position, const float *cos_table,
                                   const float *sin_table, const float *rstd, const float *dout,
                                   int64_t ld_dout, int64_t T, int64_t heads, int64_t h, float *din,
                                   int64_t ld_din, float *dw);

/* ---- causal grouped-query attention, in tiles of queries ------------------------------------ */

typedef struct mhf_attention_shape {
    int64_t blocks, T;              /* independent sequences of T positions; rows are block-major */
    int64_t n_q, n_kv, h;           /* heads; n_q is a multiple of n_kv */
    int64_t ld_q, ld_k, ld_v, ld_o; /* elements from row to row */
    const int32_t *first; /* [blocks·T] first key a query may see within its block; NULL: 0 */
} mhf_attention_shape;

/** o[t,a] = Σ_u≤t softmax_u(q·k h^-½) v; lse [blocks·T, n_q] kept for the backward. */
mhf_status mhf_attention(const mhf_attention_shape *shape, const float *q, const float *k,
                         const float *v, float *o, float *lse);
/** dq, dk, dv overwritten (same strides as q, k, v). */
mhf_status mhf_attention_backward(const mhf_attention_shape *shape, const float *q, const float *k,
                                  const float *v, const float *o, const float *lse,
                                  const float *d_o, float *dq, float *dk, float *dv);
/** Queries at positions past..past+n-1 of one sequence over keys 0..past+n-1 (KV cache);
 * q [n, n_q·h], k and v [past+n, n_kv·h] contiguous rows, o [n, n_q·h]. */
mhf_status mhf_attention_cached(int64_t n, int64_t past, int64_t n_q, int64_t n_kv, int64_t h,
                                const float *q, const float *k, const float *v, float *o);

/* ---- hash encoder: gather, gate, mix (model.md §2) ------------------------------------------ */

/** e [T,N,d]: e[t,j] = E[jB + ids[t·ld_ids + j]]. */
void mhf_gather(const float *E, const uint32_t *ids, int64_t ld_ids, int64_t T, int64_t N,
                int64_t B, int64_t d, float *e);
/** dE[jB + id] += de[t,j], rows t in order: fixed bits. */
void mhf_gather_backward(const float *de, const uint32_t *ids, int64_t ld_ids, int64_t T, int64_t N,
                         int64_t B, int64_t d, float *dE);
/** a [T,N] = softmax over N of scores (in place); mix [T,d] = Σ_j a_j e_j. */
void mhf_gate_mix(const float *e, int64_t T, int64_t N, int64_t d, float *a, float *mix);
/** de = a_j dmix; dscore [T,N] of the softmax. */
void mhf_gate_mix_backward(const float *e, const float *a, const float *dmix, int64_t T, int64_t N,
                           int64_t d, float *de, float *dscore);

/* ---- losses --------------------------------------------------------------------------------- */

/** Cross-entropy of probabilities p [T,n] (softmaxed, lse known): for target[t] ≥ 0 returns
 * Σ_t (lse[t] - z_target[t]); z_target [T] are the targets' logits, read before the softmax.
 * Double. */
double mhf_cross_entropy(const float *z_target, const float *lse, const int32_t *target, int64_t T);
/** out [T,n] = scale·(p - onehot(target)); rows with target < 0 become 0. out may be p. */
void mhf_cross_entropy_backward(const float *p, const int32_t *target, float scale, int64_t T,
                                int64_t n, float *out);
/** The soft retrieval's softmax (model.md §4), merged with the logits' own gradient:
 * r [T,n] (= G E'ᵀ on entry) becomes g + p⊙(r - <p,r>), g = scale·(p - onehot(target)) or, when
 * `base` is not NULL, base [T,n]. */
void mhf_retrieval_backward(const float *p, const float *base, const int32_t *target, float scale,
                            int64_t T, int64_t n, float *r);

/** The `vocabulary` objective (model.md §5, §6) over rows 0..V-1: L_v = Σ_k z_k[sig_k(v)].
 * z [H] pointers to [T,B]; sig [V,H]; target [T] token ids or < 0. dz [H] pointers to [T,B]
 * overwritten with scale·(scattered softmax - onehot); returns Σ_t nats; correct gets the number of
 * targets that are the arg-max. dz NULL: loss only. */
mhf_status mhf_vocabulary_loss(const float *const *z, const uint32_t *sig, const int32_t *target,
                               int64_t T, int64_t H, int64_t B, int64_t V, float scale,
                               float *const *dz, double *nats, int64_t *correct);
/** For inference: logits [T,V] = Σ_k z_k[sig_k(v)] / temperature. */
void mhf_vocabulary_logits(const float *const *z, const uint32_t *sig, int64_t T, int64_t H,
                           int64_t B, int64_t V, float inverse_temperature, float *logits);

/* ---- optimizer ------------------------------------------------------------------------------ */

typedef struct mhf_adamw {
    double lr, beta1, beta2, eps, weight_decay; /* weight_decay 0 for biases and norms */
    int64_t step;                               /* 1 at the first update */
} mhf_adamw;

/** p, m, v [n] in place; g [n] is multiplied by `scale` (clip) first. Decoupled decay first, then
 * the moments, then p -= lr/(1-b1^t) · m / (sqrt(v/(1-b2^t)) + eps). */
void mhf_adamw_update(const mhf_adamw *adamw, float scale, const float *g, int64_t n, float *p,
                      float *m, float *v);

#endif
