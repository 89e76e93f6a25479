/* SPDX-License-Identifier: ISC */
/* The order of blocks: a function of (seed, global block number) alone, so that it is the same on
 * any grid and after any number of resumes. Epoch e of a store reads its blocks in a keyed
 * permutation of (seed, e); which store a block comes from is drawn by its global number. */
#include <stdlib.h>

#include "mhf/train.h"

typedef struct source {
    mhf_tokens *tokens;
    int64_t blocks;
    double up_to;  /* cumulative share of the weights */
    int64_t drawn; /* blocks of this store among global blocks [0, next) */
    char name[32]; /* keys its permutations */
} source;

struct mhf_cursor {
    source *sources;
    int32_t n;
    int64_t block, next;
    uint64_t seed, fingerprint;
    mhf_rng choice;
};

mhf_status mhf_cursor_new(const mhf_data_file *files, int32_t n, int64_t block, uint64_t seed,
                          mhf_cursor **out)
{
    mhf_cursor *c;
    if (n == 0)
        return mhf_fail(MHF_E_CONFIG, "data.train is not given: there is nothing to train on");
    MHF_TRY(mhf_new(&c, 1, sizeof *c, "the data order"));
    c->block = block;
    c->seed = seed;
    c->choice = mhf_rng_named(seed, "store of a block");
    mhf_status status = mhf_new(&c->sources, n, sizeof *c->sources, "the data order");
    double total = 0, sum = 0;
    for (int32_t i = 0; i < n; i++)
        total += files[i].weight;
    uint64_t prints[2] = {0};
    for (int32_t i = 0; status == MHF_OK && i < n; i++) {
        source *s = &c->sources[i];
        status = mhf_tokens_open(files[i].file, &s->tokens);
        if (status != MHF_OK)
            break;
        c->n++;
        const mhf_tokens_info *info = mhf_tokens_info_of(s->tokens);
        s->blocks = info->n / block;
        sum += files[i].weight;
        s->up_to = i == n - 1 ? 2.0 : sum / total;
        snprintf(s->name, sizeof s->name, "blocks of store %d", i);
        prints[1] = info->fingerprint;
        prints[0] = mhf_hash64(prints, sizeof prints);
        if (s->blocks == 0)
            status =
                mhf_fail(MHF_E_DATA, "%s: holds %lld tokens, expected a block of %lld at least",
                         files[i].file, (long long)info->n, (long long)block);
    }
    c->fingerprint = prints[0];
    if (status != MHF_OK)
        mhf_cursor_free(c);
    else
        *out = c;
    return status;
}

void mhf_cursor_free(mhf_cursor *c)
{
    if (!c)
        return;
    for (int32_t i = 0; i < c->n; i++)
        mhf_tokens_close(c->sources[i].tokens);
    free(c->sources);
    free(c);
}

static int32_t store_of(const mhf_cursor *c, int64_t g)
{
    double u = mhf_rng_uniform(c->choice, (uint64_t)g);
    int32_t i = 0;
    while (u >= c->sources[i].up_to)
        i++;
    return i;
}

mhf_status mhf_cursor_place(mhf_cursor *c, int64_t g, int32_t *store, int64_t *index)
{
    int64_t draw = g;
    *store = 0;
    if (c->n > 1) {
        /* How many blocks of each store came before: counted forwards, from the start if need be.
         */
        if (g < c->next) {
            c->next = 0;
            for (int32_t i = 0; i < c->n; i++)
                c->sources[i].drawn = 0;
        }
        for (; c->next < g; c->next++)
            c->sources[store_of(c, c->next)].drawn++;
        *store = store_of(c, g);
        draw = c->sources[*store].drawn;
    }
    const source *s = &c->sources[*store];
    char name[64];
    snprintf(name, sizeof name, "%s, epoch %lld", s->name, (long long)(draw / s->blocks));
    *index = (int64_t)mhf_rng_permute(mhf_rng_named(c->seed, name), (uint64_t)(draw % s->blocks),
                                      (uint64_t)s->blocks);
    return MHF_OK;
}

/* first[i] = place within the block where the document of token i begins. */
static mhf_status fill_first(source *s, int64_t begin, int64_t block, int32_t *first)
{
    const uint64_t *documents;
    MHF_TRY(mhf_tokens_documents(s->tokens, &documents));
    int64_t low = 0, high = mhf_tokens_info_of(s->tokens)->documents; /* the document of `begin` */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (documents[middle] <= (uint64_t)begin)
            low = middle;
        else
            high = middle;
    }
    for (int64_t i = 0, start = 0, document = low; i < block; i++) {
        while (documents[document + 1] <= (uint64_t)(begin + i)) {
            document++;
            start = i;
        }
        first[i] = (int32_t)start;
    }
    return MHF_OK;
}

mhf_status mhf_cursor_read(mhf_cursor *c, int64_t g, mhf_token *tokens, int32_t *first)
{
    int32_t store;
    int64_t index;
    MHF_TRY(mhf_cursor_place(c, g, &store, &index));
    source *s = &c->sources[store];
    MHF_TRY(mhf_tokens_read(s->tokens, index * c->block, c->block, tokens));
    return first ? fill_first(s, index * c->block, c->block, first) : MHF_OK;
}

uint64_t mhf_cursor_fingerprint(const mhf_cursor *c)
{
    return c->fingerprint;
}

const mhf_tokens_info *mhf_cursor_store_info(const mhf_cursor *c, int32_t store)
{
    return store < c->n ? mhf_tokens_info_of(c->sources[store].tokens) : NULL;
}
