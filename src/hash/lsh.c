/* SPDX-License-Identifier: ISC */
#include "lsh.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sign_product.h"
#include "torch_normals.h"

enum {
    TRIGRAM_ROWS = 16000,
    WIDTH = 512, /* sums, and then signs, of one coordinate */
    SEED_1 = 3407,
    SEED_2 = 3408,
    GROUPS = WIDTH / MHF_SIGN_BITS, /* codes of one coordinate */
};

/* What passes through the stages. */
typedef struct projection {
    const mhf_vocabulary *vocabulary;
    const mhf_signature_options *options;
    const int32_t *tokens; /* [count] */
    int64_t count;
    int64_t groups;          /* num_lsh·GROUPS: codes of a token */
    int64_t columns, stride; /* B-1, and that rounded up */
    uint8_t *codes;          /* [count, groups] */
} projection;

/* ---- stage 1: trigrams to signs ---------------------------------------------------------------
 */

/* sums [WIDTH] += row of the trigram. Doubles: the sign of a sum must not hang on its order. */
static void add_trigram(const float *matrix, const char *trigram, size_t n, uint32_t seed,
                        double *sums)
{
    uint64_t row = mhf_hash128_mod(mhf_murmur3(trigram, n, seed), TRIGRAM_ROWS);
    const float *values = matrix + row * WIDTH;
    for (int i = 0; i < WIDTH; i++)
        sums[i] += (double)values[i];
}

/* Add every three code points of the piece in a row, or the piece when it has fewer than three. */
static mhf_status add_piece(const float *matrix, const char *piece, size_t n, uint32_t seed,
                            double *sums)
{
    size_t start[3] = {0}, end = 0; /* where the latest three code points start */
    int64_t count = 0;
    for (; end < n; count++) {
        uint32_t code_point;
        int length = mhf_utf8_decode(piece + end, n - end, &code_point);
        if (length == 0)
            return mhf_fail(MHF_E_DATA, "byte %zu is not UTF-8, which trigrams need", end);
        start[count % 3] = end;
        end += (size_t)length;
        if (count >= 2) {
            size_t from = start[(count + 1) % 3];
            add_trigram(matrix, piece + from, end - from, seed, sums);
        }
    }
    if (count < 3)
        add_trigram(matrix, piece, n, seed, sums);
    return MHF_OK;
}

/* Four signs a code: set where the sum is ≥ 0. */
static void encode_signs(const double *sums, uint8_t *codes)
{
    memset(codes, 0, GROUPS);
    for (int i = 0; i < WIDTH; i++)
        codes[i / MHF_SIGN_BITS] |= (uint8_t)((sums[i] >= 0) << i % MHF_SIGN_BITS);
}

/* matrix [TRIGRAM_ROWS, WIDTH] = slice j of matrix 1 [TRIGRAM_ROWS, num_lsh, WIDTH]. */
static void read_slice_1(int32_t num_lsh, int32_t j, float *matrix)
{
    mhf_normal_stream stream;
    mhf_normal_stream_start(&stream, SEED_1);
    mhf_normal_stream_skip(&stream, (int64_t)j * WIDTH);
    for (int64_t row = 0; row < TRIGRAM_ROWS; row++) {
        mhf_normal_stream_read(&stream, WIDTH, matrix + row * WIDTH);
        mhf_normal_stream_skip(&stream, (int64_t)(num_lsh - 1) * WIDTH);
    }
}

/* Signs of coordinate j for every token. */
static mhf_status encode_coordinate(const projection *p, int32_t j, float *matrix)
{
    read_slice_1(p->options->num_lsh, j, matrix);
    uint32_t seed = p->options->hash_seed + (uint32_t)j;
    for (int64_t t = 0; t < p->count; t++) {
        int32_t id = p->tokens[t];
        double sums[WIDTH] = {0};
        mhf_status status =
            add_piece(matrix, p->vocabulary->pieces[id], p->vocabulary->lengths[id], seed, sums);
        if (status != MHF_OK)
            return mhf_fail_within(status, "token %d", id);
        encode_signs(sums, p->codes + t * p->groups + (int64_t)j * GROUPS);
    }
    return MHF_OK;
}

static mhf_status encode_tokens(const projection *p)
{
    float *matrix = NULL;
    MHF_TRY(mhf_new(&matrix, (int64_t)TRIGRAM_ROWS * WIDTH, sizeof *matrix,
                    "a slice of the first LSH matrix"));
    mhf_status status = MHF_OK;
    for (int32_t j = 0; status == MHF_OK && j < p->options->num_lsh; j++)
        status = encode_coordinate(p, j, matrix);
    free(matrix);
    return status;
}

/* ---- stage 2: signs to the nearest column ------------------------------------------------------
 */

/* row [n] /= max(its l2 norm, 1e-12). */
static void normalize(float *row, int64_t n)
{
    double squares = 0;
    for (int64_t c = 0; c < n; c++)
        squares += (double)row[c] * (double)row[c];
    float norm = fmaxf((float)sqrt(squares), 1e-12f);
    for (int64_t c = 0; c < n; c++)
        row[c] /= norm;
}

/* matrix [WIDTH·num_lsh, stride] = slice j of matrix 2 [WIDTH·num_lsh, num_lsh, B-1], its rows
 * normalised. The factor WIDTH^-½ of the signs is left out: it moves no maximum. */
static void read_slice_2(const projection *p, int32_t j, float *matrix)
{
    int32_t num_lsh = p->options->num_lsh;
    mhf_normal_stream stream;
    mhf_normal_stream_start(&stream, SEED_2);
    mhf_normal_stream_skip(&stream, j * p->columns);
    for (int64_t i = 0; i < (int64_t)WIDTH * num_lsh; i++) {
        float *row = matrix + i * p->stride;
        mhf_normal_stream_read(&stream, p->columns, row);
        normalize(row, p->columns);
        mhf_normal_stream_skip(&stream, (num_lsh - 1) * p->columns);
    }
}

static mhf_status assign_columns(const projection *p, mhf_bucket *ids)
{
    float *matrix = NULL;
    int32_t *best = NULL;
    int64_t H = p->options->num_hashes, n = 0;
    mhf_status status = MHF_OK;
    if (!mhf_mul((int64_t)WIDTH * p->options->num_lsh, p->stride, &n))
        return mhf_fail(MHF_E_NOMEM, "a slice of the second LSH matrix is too large");
    if ((status = mhf_new(&matrix, n, sizeof *matrix, "a slice of the second LSH matrix")) ||
        (status = mhf_new(&best, p->count, sizeof *best, "LSH ids")))
        goto out;
    for (int32_t j = 0; j < p->options->num_lsh; j++) {
        read_slice_2(p, j, matrix);
        status = mhf_sign_product_argmax(p->codes, p->count, p->groups, matrix, p->stride,
                                         p->columns, best);
        if (status != MHF_OK)
            goto out;
        for (int64_t t = 0; t < p->count; t++)
            ids[p->tokens[t] * H + j] = (mhf_bucket)best[t] + 1;
    }
out:
    free(matrix);
    free(best);
    return status;
}

mhf_status mhf_lsh_fill(const mhf_vocabulary *vocabulary, const mhf_signature_options *options,
                        const int32_t *tokens, int32_t count, mhf_bucket *ids)
{
    int64_t columns = options->num_buckets - 1;
    projection p = {
        .vocabulary = vocabulary,
        .options = options,
        .tokens = tokens,
        .count = count,
        .groups = (int64_t)options->num_lsh * GROUPS,
        .columns = columns,
        .stride = (columns + MHF_SIGN_COLUMNS - 1) / MHF_SIGN_COLUMNS * MHF_SIGN_COLUMNS,
    };
    MHF_TRY(mhf_new(&p.codes, p.count * p.groups, sizeof *p.codes, "LSH signs"));
    mhf_status status = encode_tokens(&p);
    if (status == MHF_OK)
        status = assign_columns(&p, ids);
    free(p.codes);
    return status;
}
