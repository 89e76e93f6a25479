/* SPDX-License-Identifier: ISC */
#include "pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Byte at which code point `count` of valid UTF-8 begins; false when there are fewer. */
static bool byte_of(const char *text, size_t n, int64_t count, int64_t *byte)
{
    int64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (((unsigned char)text[i] & 0xC0) == 0x80)
            continue;
        if (seen++ == count) {
            *byte = (int64_t)i;
            return true;
        }
    }
    *byte = (int64_t)n;
    return seen == count;
}

/* The span of the item's text in bytes. */
static mhf_status span_bytes(const mhf_dump_item *item, const char *text, size_t n, int64_t *begin,
                             int64_t *end)
{
    if (item->span_end < item->span_begin || !byte_of(text, n, item->span_begin, begin) ||
        !byte_of(text, n, item->span_end, end))
        return mhf_fail(MHF_E_DATA, "span [%" PRId64 ", %" PRId64 ") does not lie in the text",
                        item->span_begin, item->span_end);
    return MHF_OK;
}

/* Does a token of bytes [begin, end) meet the span [first, last)? */
static bool meets(int64_t begin, int64_t end, int64_t first, int64_t last)
{
    return (begin > first ? begin : first) < (end < last ? end : last);
}

/* ---- which bytes of its text a token of given ids covers ------------------------------------ */

static size_t common_prefix(const mhf_buf *a, const mhf_buf *b)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->data[i] == b->data[i])
        i++;
    return i;
}

/* end [n]: bytes of the decoded text that the first t+1 tokens settle. Decoding a part can end
 * inside a character, which then differs from the whole. */
static mhf_status decoded_ends(const mhf_tokenizer *tokenizer, const mhf_token *ids, int64_t n,
                               mhf_buf *whole, int64_t *end)
{
    mhf_buf part = {0};
    mhf_status status = mhf_tokenizer_decode(tokenizer, ids, n, true, whole);
    for (int64_t t = 0; status == MHF_OK && t < n; t++) {
        mhf_buf_clear(&part);
        status = mhf_tokenizer_decode(tokenizer, ids, t + 1, true, &part);
        end[t] = (int64_t)common_prefix(&part, whole);
        if (t > 0 && end[t] < end[t - 1])
            end[t] = end[t - 1];
    }
    mhf_buf_free(&part);
    return status;
}

/* covered [n] of an item of ids with a span. */
static mhf_status cover_ids(const mhf_tokenizer *tokenizer, const mhf_dump_item *item,
                            const mhf_token *ids, int64_t n, bool *covered)
{
    mhf_buf whole = {0};
    int64_t *end = NULL, first, last;
    mhf_status status = mhf_new(&end, n, sizeof *end, "places of tokens");
    if (status == MHF_OK)
        status = decoded_ends(tokenizer, ids, n, &whole, end);
    if (status == MHF_OK)
        status = span_bytes(item, whole.n > 0 ? whole.data : "", whole.n, &first, &last);
    for (int64_t t = 0; status == MHF_OK && t < n; t++) {
        int64_t begin = t > 0 ? end[t - 1] : 0, next = t;
        /* A token that is a part of a character covers what the character's last token settles. */
        while (end[next] == begin && next + 1 < n)
            next++;
        covered[t] =
            !mhf_tokenizer_is_special(tokenizer, ids[t]) && meets(begin, end[next], first, last);
    }
    free(end);
    mhf_buf_free(&whole);
    return status;
}

/* ---- items -------------------------------------------------------------------------------------
 */

/* Append n tokens; *ids and *covered point to them. */
static mhf_status append(mhf_pool *pool, int64_t i, int64_t n, mhf_token **ids, bool **covered)
{
    int64_t first = (int64_t)pool->offsets[i];
    MHF_TRY(mhf_grow(&pool->ids, &pool->capacity, first + n, sizeof *pool->ids, "token ids"));
    MHF_TRY(mhf_grow(&pool->covered, &pool->covered_capacity, first + n, sizeof *pool->covered,
                     "token ids"));
    pool->offsets[i + 1] = (uint64_t)(first + n);
    *ids = pool->ids + first;
    *covered = pool->covered + first;
    return MHF_OK;
}

static mhf_status add_text(const mhf_tokenizer *tokenizer, const mhf_dump_item *item,
                           const mhf_dump_options *options, mhf_encoding *encoding, int64_t i,
                           mhf_pool *pool)
{
    int flags = MHF_ENCODE_RANGES | (options->special ? MHF_ENCODE_TEMPLATE : MHF_ENCODE_PLAIN);
    int64_t first = 0, last = 0;
    mhf_token *ids;
    bool *covered;
    if (item->span_begin >= 0)
        MHF_TRY(span_bytes(item, item->text, item->n_text, &first, &last));
    MHF_TRY(mhf_tokenizer_encode(tokenizer, item->text, item->n_text, flags, encoding));
    MHF_TRY(append(pool, i, encoding->n, &ids, &covered));
    for (int64_t t = 0; t < encoding->n; t++) {
        ids[t] = encoding->ids[t];
        if (encoding->begin[t] < 0) /* of the template */
            covered[t] = false;
        else if (item->span_begin >= 0)
            covered[t] = meets(encoding->begin[t], encoding->end[t], first, last);
        else
            covered[t] = !mhf_tokenizer_is_special(tokenizer, ids[t]);
    }
    return MHF_OK;
}

static mhf_status add_ids(const mhf_tokenizer *tokenizer, const mhf_dump_item *item, int64_t i,
                          mhf_pool *pool)
{
    mhf_token *ids;
    bool *covered;
    MHF_TRY(append(pool, i, item->n_ids, &ids, &covered));
    for (int64_t t = 0; t < item->n_ids; t++) {
        ids[t] = item->ids[t];
        covered[t] = !mhf_tokenizer_is_special(tokenizer, ids[t]);
    }
    if (item->span_begin < 0 || item->n_ids == 0)
        return MHF_OK;
    return cover_ids(tokenizer, item, ids, item->n_ids, covered);
}

static mhf_status check_item(const mhf_model *model, const mhf_dump_item *item,
                             const mhf_dump_options *options, int64_t i, mhf_pool *pool)
{
    int64_t first = (int64_t)pool->offsets[i], n = (int64_t)pool->offsets[i + 1] - first;
    uint64_t *pooled = &pool->pooled[2 * i];
    const mhf_config *config = &model->config;
    for (int64_t t = 0; t < n; t++) {
        if (pool->ids[first + t] < 0 || pool->ids[first + t] >= config->vocab_size)
            return mhf_fail(MHF_E_DATA, "token %d is past the model's vocabulary of %d",
                            pool->ids[first + t], config->vocab_size);
        if (!pool->covered[first + t])
            continue;
        if (pooled[1] == 0)
            pooled[0] = (uint64_t)t;
        pooled[1] = (uint64_t)t + 1;
    }
    if (n > config->max_position_embeddings)
        return mhf_fail(MHF_E_DATA, "%" PRId64 " tokens, expected at most %d", n,
                        config->max_position_embeddings);
    if (n > pool->longest)
        pool->longest = n;
    if (options->allow_empty)
        return MHF_OK;
    if (n == 0 || (item->text && item->n_text == 0))
        return mhf_fail(MHF_E_DATA, "an empty item");
    if (options->pooling != MHF_POOL_NONE && pooled[1] == 0)
        return mhf_fail(MHF_E_DATA, "no token to pool");
    return MHF_OK;
}

mhf_status mhf_pool_new(const mhf_model *model, const mhf_tokenizer *tokenizer,
                        const mhf_dump_item *items, int64_t n, const char *name,
                        const mhf_dump_options *options, mhf_pool *out)
{
    mhf_encoding encoding = {0};
    MHF_TRY(mhf_new(&out->offsets, n + 1, sizeof *out->offsets, "items"));
    MHF_TRY(mhf_new(&out->pooled, 2 * n, sizeof *out->pooled, "items"));
    out->n = n;
    mhf_status status = MHF_OK;
    for (int64_t i = 0; status == MHF_OK && i < n; i++) {
        status = items[i].text ? add_text(tokenizer, &items[i], options, &encoding, i, out)
                               : add_ids(tokenizer, &items[i], i, out);
        if (status == MHF_OK)
            status = check_item(model, &items[i], options, i, out);
        if (status != MHF_OK)
            (void)mhf_fail_within(status, "%s line %" PRId64, name, items[i].line);
    }
    mhf_encoding_free(&encoding);
    return status;
}

void mhf_pool_free(mhf_pool *pool)
{
    free(pool->offsets);
    free(pool->ids);
    free(pool->covered);
    free(pool->pooled);
    *pool = (mhf_pool){0};
}

/* row = mean of the covered states, added in double. */
static void mean_row(const mhf_pool *pool, int64_t i, const float *states, int64_t d, float *row)
{
    const bool *covered = pool->covered + pool->offsets[i];
    int64_t begin = (int64_t)pool->pooled[2 * i], end = (int64_t)pool->pooled[2 * i + 1], n = 0;
    for (int64_t t = begin; t < end; t++)
        n += covered[t];
    for (int64_t c = 0; c < d; c++) {
        double sum = 0;
        for (int64_t t = begin; t < end; t++)
            if (covered[t])
                sum += (double)states[t * d + c];
        row[c] = (float)(sum / (double)n);
    }
}

void mhf_pool_row(const mhf_pool *pool, int64_t i, mhf_pooling pooling, const float *states,
                  int64_t d, float *row)
{
    const uint64_t *pooled = &pool->pooled[2 * i];
    if (pooled[1] == 0)
        memset(row, 0, (size_t)d * sizeof *row);
    else if (pooling == MHF_POOL_MEAN)
        mean_row(pool, i, states, d, row);
    else if (pooling == MHF_POOL_FIRST)
        memcpy(row, states + (int64_t)pooled[0] * d, (size_t)d * sizeof *row);
    else
        memcpy(row, states + ((int64_t)pooled[1] - 1) * d, (size_t)d * sizeof *row);
}
