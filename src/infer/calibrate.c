/* SPDX-License-Identifier: ISC */
#include "calibrate.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_poly.h>
#include <gsl/gsl_roots.h>
#include <math.h>

/* Betas are multiples[i] / 64: temperatures 64 … 0.5. The step from one to the next is a power of 2
 * that never shrinks: it is made by squaring the one before. */
static const int multiples[MHF_GRID] = {1,  2,  3,  4,  5,  6,  7,  8,  10, 12, 14, 16,
                                        20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128};
enum { BLOCK = 256 };

/* Smaller powers add nothing to a sum that is 1 at least; denormal ones would be slow. */
static const float tiny = 1e-30f;

double mhf_calibration_beta(int i)
{
    return (double)multiples[i] / MHF_GRID_UNIT;
}

/* Binaries move between machines: these loops are compiled once for each width of vectors. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(MHF_SANITIZE)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#else
#define WIDE
#endif

/* total[i] += Σ u^multiples[i], moment[i] += Σ s u^multiples[i] over a block of n ≤ BLOCK values.
 */
WIDE static void add_block(const float *s, const float *u, float factor, int64_t n,
                           double total[MHF_GRID], double moment[MHF_GRID])
{
    float step[BLOCK], power[BLOCK];
    for (int64_t v = 0; v < n; v++)
        step[v] = power[v] = u[v] * factor;
    int exponent = 1; /* step is u^exponent */
    for (int i = 0; i < MHF_GRID; i++) {
        for (; i > 0 && exponent < multiples[i] - multiples[i - 1]; exponent *= 2)
            for (int64_t v = 0; v < n; v++)
                step[v] *= step[v];
        float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
        for (int64_t v = 0; v < n; v++) {
            float p = i > 0 ? power[v] * step[v] : power[v];
            p = p < tiny ? 0 : p;
            power[v] = p;
            sum += p;
            weighted += p * s[v];
        }
        total[i] += (double)sum;
        moment[i] += (double)weighted;
    }
}

/* Lane by lane: a compiler that minds NaN can't turn one running maximum into several. */
WIDE static float find_top(const float *x, int64_t n)
{
    enum { LANES = 16 };
    float top[LANES];
    int64_t v = 0;
    for (int lane = 0; lane < LANES; lane++)
        top[lane] = -INFINITY;
    for (; v + LANES <= n; v += LANES)
        for (int lane = 0; lane < LANES; lane++)
            top[lane] = x[v + lane] > top[lane] ? x[v + lane] : top[lane];
    for (; v < n; v++)
        top[0] = x[v] > top[0] ? x[v] : top[0];
    for (int lane = 1; lane < LANES; lane++)
        top[0] = top[lane] > top[0] ? top[lane] : top[0];
    return top[0];
}

void mhf_calibration_add(const float *s, const float *u, int64_t n, float s_target,
                         mhf_calibration *sums)
{
    double total[MHF_GRID] = {0}, moment[MHF_GRID] = {0};
    const float top_s = find_top(s, n), top_u = find_top(u, n);
    float shifted[BLOCK];
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t m = n - first < BLOCK ? n - first : BLOCK;
        for (int64_t v = 0; v < m; v++)
            shifted[v] = s[first + v] - top_s;
        add_block(shifted, u + first, 1 / top_u, m, total, moment);
    }
    double at_target = (double)s_target - (double)top_s;
    for (int i = 0; i < MHF_GRID; i++) {
        sums->f[i] += log(total[i]) - mhf_calibration_beta(i) * at_target;
        sums->slope[i] += moment[i] / total[i] - at_target;
    }
}

/* ---- the lowest point ---------------------------------------------------------------------------
 */

enum { NEAR = 4, DEGREES = 2 * NEAR };

/* f as a polynomial near the lowest point, in Newton's form with doubled nodes. */
typedef struct hermite {
    double coefficient[DEGREES], node[DEGREES];
} hermite;

static void hermite_fit(const mhf_calibration *sums, int first, hermite *out)
{
    double x[NEAR], y[NEAR], slope[NEAR];
    for (int i = 0; i < NEAR; i++) {
        x[i] = mhf_calibration_beta(first + i);
        y[i] = sums->f[first + i];
        slope[i] = sums->slope[first + i];
    }
    gsl_poly_dd_hermite_init(out->coefficient, out->node, x, y, slope, NEAR);
}

static double hermite_slope(double beta, void *polynomial)
{
    const hermite *h = polynomial;
    double taylor[DEGREES], work[DEGREES];
    gsl_poly_dd_taylor(taylor, beta, h->coefficient, h->node, DEGREES, work);
    return taylor[1];
}

/* Where the slope vanishes in [low, high]; its signs at the ends differ. */
static double find_root(hermite *h, double low, double high)
{
    gsl_function slope = {hermite_slope, h};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    double root = (low + high) / 2;
    if (!solver)
        return root;
    if (hermite_slope(low, h) < 0 && hermite_slope(high, h) > 0 &&
        gsl_root_fsolver_set(solver, &slope, low, high) == GSL_SUCCESS) {
        for (int i = 0; i < 100; i++) {
            if (gsl_root_fsolver_iterate(solver) != GSL_SUCCESS)
                break;
            root = gsl_root_fsolver_root(solver);
            if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                       gsl_root_fsolver_x_upper(solver), 0, 1e-10) == GSL_SUCCESS)
                break;
        }
    }
    gsl_root_fsolver_free(solver);
    return root;
}

void mhf_calibration_solve(const mhf_calibration *sums, double *temperature, double *nats)
{
    int i = 0; /* the first grid point past the lowest point: slopes rise */
    while (i < MHF_GRID && sums->slope[i] < 0)
        i++;
    if (i == 0 || i == MHF_GRID || sums->slope[i] == 0) {
        i = i == MHF_GRID ? i - 1 : i;
        *temperature = 1 / mhf_calibration_beta(i);
        *nats = sums->f[i];
        return;
    }
    int first = i - NEAR / 2;
    first = first < 0 ? 0 : first > MHF_GRID - NEAR ? MHF_GRID - NEAR : first;
    hermite h;
    hermite_fit(sums, first, &h);
    double beta = find_root(&h, mhf_calibration_beta(i - 1), mhf_calibration_beta(i));
    *temperature = 1 / beta;
    *nats = gsl_poly_dd_eval(h.coefficient, h.node, DEGREES, beta);
}
