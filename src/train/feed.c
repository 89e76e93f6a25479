/* SPDX-License-Identifier: ISC */
#include "feed.h"

#include <stdlib.h>

micro_share share_of(int64_t blocks, int64_t micro_batch, int replicas, int replica)
{
    const int64_t M = (blocks + micro_batch - 1) / micro_batch;
    const int64_t begin = (replica * M + replicas - 1) / replicas;
    const int64_t end = ((replica + 1) * M + replicas - 1) / replicas;
    return (micro_share){(int32_t)begin, (int32_t)(end - begin), (int32_t)M};
}

mhf_status feed_new(int32_t capacity, int64_t micro_batch, int64_t block, bool documents,
                    batch_feed *out)
{
    const int64_t tokens = capacity * micro_batch * block;
    *out = (batch_feed){.capacity = capacity, .micro_batch = micro_batch, .block = block};
    MHF_TRY(mhf_new(&out->batches, capacity, sizeof *out->batches, "micro-batches"));
    mhf_status status = mhf_new(&out->losses, capacity, sizeof *out->losses, "micro-batches");
    if (status == MHF_OK)
        status = mhf_new(&out->tokens, tokens, sizeof *out->tokens, "micro-batches");
    if (status == MHF_OK && documents)
        status = mhf_new(&out->documents, tokens, sizeof *out->documents, "micro-batches");
    if (status != MHF_OK)
        feed_free(out);
    return status;
}

void feed_free(batch_feed *feed)
{
    free(feed->batches);
    free(feed->losses);
    free(feed->tokens);
    free(feed->documents);
    *feed = (batch_feed){0};
}

/* Micro-batch i of the share: which of the blocks it takes, and where its tokens go. */
static int64_t lay_out(batch_feed *f, int32_t i, int64_t blocks, micro_share share, double scale,
                       bool evaluate)
{
    const int64_t begin = (share.first + i) * f->micro_batch;
    const int64_t n = blocks - begin < f->micro_batch ? blocks - begin : f->micro_batch;
    const int64_t place = i * f->micro_batch * f->block;
    f->batches[i] = (mhf_batch){.blocks = n,
                                .T = f->block,
                                .tokens = f->tokens + place,
                                .first = f->documents ? f->documents + place : NULL,
                                .scale = scale,
                                .evaluate = evaluate};
    return begin;
}

mhf_status feed_fill(batch_feed *f, mhf_cursor *cursor, int64_t first_block, int64_t blocks,
                     micro_share share, double scale)
{
    for (int32_t i = 0; i < share.n; i++) {
        int64_t begin = lay_out(f, i, blocks, share, scale, false);
        for (int64_t b = 0; b < f->batches[i].blocks; b++) {
            int64_t place = (i * f->micro_batch + b) * f->block;
            MHF_TRY(mhf_cursor_read(cursor, first_block + begin + b, f->tokens + place,
                                    f->documents ? f->documents + place : NULL));
        }
    }
    return MHF_OK;
}

mhf_status feed_fill_store(batch_feed *f, mhf_tokens *store, int64_t blocks, micro_share share)
{
    for (int32_t i = 0; i < share.n; i++) {
        int64_t begin = lay_out(f, i, blocks, share, 1.0, true);
        f->batches[i].first = NULL;
        MHF_TRY(mhf_tokens_read(store, begin * f->block, f->batches[i].blocks * f->block,
                                f->tokens + i * f->micro_batch * f->block));
    }
    return MHF_OK;
}

int64_t feed_bytes(const batch_feed *f, int32_t n, const int32_t *token_bytes)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        const mhf_batch *b = &f->batches[i];
        for (int64_t t = 0; t < b->blocks * b->T; t++)
            if (t % b->T != 0)
                bytes += token_bytes[b->tokens[t]];
    }
    return bytes;
}
