/* SPDX-License-Identifier: ISC */
#include "passage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"

static mhf_status reserve(mhf_passage *passage, int64_t n)
{
    mhf_passage_side *side = &passage->sides[passage->side];
    int64_t need = side->n + n + 1;
    if (need > passage->most)
        return mhf_fail(MHF_E_DATA,
                        "the tokenizer's normalizers make more than %" PRId64 " bytes of a text",
                        passage->most);
    MHF_TRY(mhf_grow(&side->text, &side->text_capacity, need, 1, "a text"));
    if (!passage->aligned)
        return MHF_OK;
    MHF_TRY(mhf_grow(&side->begin, &side->begin_capacity, need, sizeof *side->begin, "a text"));
    return mhf_grow(&side->end, &side->end_capacity, need, sizeof *side->end, "a text");
}

void mhf_passage_origin(const mhf_passage *passage, int64_t at, int64_t n, int64_t *begin,
                        int64_t *end)
{
    if (!passage->begin) {
        *begin = at;
        *end = at + n;
    } else if (n > 0) {
        *begin = passage->begin[at];
        *end = passage->end[at + n - 1];
    } else {
        *begin = at < passage->n ? passage->begin[at] : at > 0 ? passage->end[at - 1] : 0;
        *end = *begin;
    }
}

void mhf_passage_rewrite(mhf_passage *passage)
{
    passage->sides[passage->side].n = passage->sides[passage->side].lead = 0;
}

mhf_status mhf_passage_copy(mhf_passage *passage, int64_t from, int64_t n)
{
    if (n == 0)
        return MHF_OK;
    MHF_TRY(reserve(passage, n));
    mhf_passage_side *side = &passage->sides[passage->side];
    memcpy(side->text + side->n, passage->text + from, (size_t)n);
    if (passage->aligned && passage->begin) {
        memcpy(side->begin + side->n, passage->begin + from, (size_t)n * sizeof *side->begin);
        memcpy(side->end + side->n, passage->end + from, (size_t)n * sizeof *side->end);
    } else if (passage->aligned) {
        for (int64_t i = 0; i < n; i++) {
            side->begin[side->n + i] = from + i;
            side->end[side->n + i] = from + i + 1;
        }
    }
    if (side->lead == side->n && from < passage->lead)
        side->lead += n < passage->lead - from ? n : passage->lead - from;
    side->n += n;
    return MHF_OK;
}

static mhf_status put(mhf_passage *passage, const char *bytes, int64_t n, int64_t from,
                      int64_t n_from, bool leads)
{
    if (n == 0)
        return MHF_OK;
    MHF_TRY(reserve(passage, n));
    mhf_passage_side *side = &passage->sides[passage->side];
    memcpy(side->text + side->n, bytes, (size_t)n);
    if (passage->aligned) {
        int64_t begin, end;
        mhf_passage_origin(passage, from, n_from, &begin, &end);
        for (int64_t i = 0; i < n; i++) {
            side->begin[side->n + i] = begin;
            side->end[side->n + i] = end;
        }
    }
    if (leads && side->lead == side->n)
        side->lead += n;
    side->n += n;
    return MHF_OK;
}

mhf_status mhf_passage_put(mhf_passage *passage, const char *bytes, int64_t n, int64_t from,
                           int64_t n_from)
{
    return put(passage, bytes, n, from, n_from, from < passage->lead);
}

mhf_status mhf_passage_replace(mhf_passage *passage, const char *bytes, int64_t n, int64_t from,
                               int64_t n_from)
{
    const int64_t last = from + n_from - 1;
    const bool leads = last < 0 ? passage->parts[0].id < 0 : last < passage->lead;
    return put(passage, bytes, n, from, n_from, leads);
}

void mhf_passage_close_part(mhf_passage *passage, mhf_part *part, int64_t begin)
{
    part->begin = begin;
    part->end = mhf_passage_written(passage);
}

void mhf_passage_rewritten(mhf_passage *passage)
{
    mhf_passage_side *side = &passage->sides[passage->side];
    passage->text = side->n ? side->text : "";
    passage->n = side->n;
    passage->lead = side->lead;
    passage->begin = passage->aligned ? side->begin : NULL;
    passage->end = passage->aligned ? side->end : NULL;
    passage->side = !passage->side;
}

void mhf_passage_cut(mhf_passage *passage)
{
    passage->n_spare = 0;
}

mhf_status mhf_passage_add_part(mhf_passage *passage, mhf_part part)
{
    if (part.id < 0 && part.begin == part.end)
        return MHF_OK;
    MHF_TRY(mhf_grow(&passage->spare, &passage->spare_capacity, passage->n_spare + 1, sizeof part,
                     "a text's parts"));
    passage->spare[passage->n_spare++] = part;
    return MHF_OK;
}

void mhf_passage_cut_done(mhf_passage *passage)
{
    mhf_part *parts = passage->parts;
    int64_t capacity = passage->parts_capacity;
    passage->parts = passage->spare;
    passage->n_parts = passage->n_spare;
    passage->parts_capacity = passage->spare_capacity;
    passage->spare = parts;
    passage->spare_capacity = capacity;
}

/* Replace what is not valid UTF-8, from byte `good` on. */
static mhf_status mend(mhf_passage *passage, int64_t good)
{
    const char *text = passage->text;
    int64_t from = 0;
    mhf_passage_rewrite(passage);
    for (;;) {
        MHF_TRY(mhf_passage_copy(passage, from, good));
        from += good;
        if (from == passage->n)
            break;
        size_t bad = mhf_utf8_invalid_length(text + from, (size_t)(passage->n - from));
        MHF_TRY(mhf_passage_put(passage, "\xEF\xBF\xBD", 3, from, (int64_t)bad));
        from += (int64_t)bad;
        good = (int64_t)mhf_utf8_valid(text + from, (size_t)(passage->n - from));
    }
    mhf_passage_rewritten(passage);
    return MHF_OK;
}

mhf_status mhf_passage_start(mhf_passage *passage, const char *text, size_t n, bool aligned)
{
    if (n > INT32_MAX)
        return mhf_fail(MHF_E_DATA, "a text of %zu bytes is too long, expected at most %d", n,
                        INT32_MAX);
    passage->text = n ? text : "";
    passage->n = (int64_t)n;
    passage->begin = passage->end = NULL;
    passage->aligned = aligned;
    passage->most = (int64_t)mhf_text_limit(n);
    size_t good = mhf_utf8_valid(passage->text, n);
    if (good < n)
        MHF_TRY(mend(passage, (int64_t)good));
    uint32_t c;
    passage->lead = passage->n > 0 ? mhf_utf8_next(passage->text, &c) : 0;
    mhf_passage_cut(passage);
    MHF_TRY(mhf_passage_add_part(passage, (mhf_part){.begin = 0, .end = passage->n, .id = -1}));
    mhf_passage_cut_done(passage);
    return MHF_OK;
}

void mhf_passage_free(mhf_passage *passage)
{
    for (int i = 0; i < 2; i++) {
        free(passage->sides[i].text);
        free(passage->sides[i].begin);
        free(passage->sides[i].end);
    }
    free(passage->parts);
    free(passage->spare);
    *passage = (mhf_passage){0};
}
