/* SPDX-License-Identifier: ISC */
/* Cutting parts at the matches of a pattern or of a class of characters, in every behaviour. A part
 * is a chain of segments, each a match or not, that covers it; the behaviour says which segments go
 * together. */
#include "pretokenizer.h"
#include "unicode.h"

typedef struct cutter {
    mhf_passage *passage;
    mhf_part whole;
    mhf_cut_behavior behavior;
    bool invert, was_match;
    bool waits; /* MERGED_WITH_NEXT: a match that waits for what follows */
    int64_t waiting;
    /* The last part of the chain, which may grow; empty parts take part in the chain and are left
     * out of the list. */
    bool open;
    int64_t begin, end;
} cutter;

static mhf_status close_last(cutter *cut)
{
    if (!cut->open)
        return MHF_OK;
    return mhf_passage_add_part(cut->passage,
                                (mhf_part){.begin = cut->begin, .end = cut->end, .id = -1});
}

static mhf_status push(cutter *cut, int64_t begin, int64_t end)
{
    MHF_TRY(close_last(cut));
    cut->open = true;
    cut->begin = begin;
    cut->end = end;
    return MHF_OK;
}

/* Make the last part of this chain end at `end`; start one when there is none. */
static mhf_status extend(cutter *cut, int64_t begin, int64_t end)
{
    if (!cut->open)
        return push(cut, begin, end);
    cut->end = end;
    return MHF_OK;
}

static mhf_status merge_with_next(cutter *cut, int64_t begin, int64_t end, bool match)
{
    bool waited = cut->waits;
    if (waited && match)
        MHF_TRY(push(cut, cut->waiting, begin));
    cut->waits = match;
    if (match) {
        cut->waiting = begin;
        return MHF_OK;
    }
    return push(cut, waited ? cut->waiting : begin, end);
}

static mhf_status segment(cutter *cut, int64_t begin, int64_t end, bool match)
{
    bool was_match = cut->was_match;
    match = match != cut->invert;
    cut->was_match = match;
    switch (cut->behavior) {
    case MHF_CUT_REMOVED:
        return match ? MHF_OK : push(cut, begin, end);
    case MHF_CUT_ISOLATED:
        return push(cut, begin, end);
    case MHF_CUT_CONTIGUOUS:
        return match == was_match ? extend(cut, begin, end) : push(cut, begin, end);
    case MHF_CUT_MERGED_WITH_PREVIOUS:
        return match && !was_match ? extend(cut, begin, end) : push(cut, begin, end);
    case MHF_CUT_MERGED_WITH_NEXT:
        return merge_with_next(cut, begin, end, match);
    }
    return MHF_OK;
}

static mhf_status finish(cutter *cut)
{
    if (cut->waits)
        MHF_TRY(push(cut, cut->waiting, cut->whole.end));
    return close_last(cut);
}

static mhf_status cut_by_pattern(cutter *cut, const mhf_pattern *pattern, mhf_matcher *matcher)
{
    int64_t base = cut->whole.begin, last = base, begin, end;
    mhf_matches matches = {.pattern = pattern,
                           .matcher = matcher,
                           .text = cut->passage->text + base,
                           .n = cut->whole.end - base,
                           .last = -1};
    for (;;) {
        MHF_TRY(mhf_matches_next(&matches, &begin, &end));
        if (begin < 0)
            break;
        if (last != base + begin)
            MHF_TRY(segment(cut, last, base + begin, false));
        MHF_TRY(segment(cut, base + begin, base + end, true));
        last = base + end;
    }
    return last != cut->whole.end ? segment(cut, last, cut->whole.end, false) : MHF_OK;
}

static mhf_status cut_by_chars(cutter *cut, const mhf_pretokenizer *step)
{
    int64_t last = cut->whole.begin;
    for (int64_t at = last; at < cut->whole.end;) {
        uint32_t c;
        int length = mhf_utf8_next(cut->passage->text + at, &c);
        if (step->is_match ? step->is_match(c) : c == step->replacement) {
            if (last != at)
                MHF_TRY(segment(cut, last, at, false));
            MHF_TRY(segment(cut, at, at + length, true));
            last = at + length;
        }
        at += length;
    }
    return last != cut->whole.end ? segment(cut, last, cut->whole.end, false) : MHF_OK;
}

mhf_status mhf_pretokenizer_cut(const mhf_pretokenizer *step, mhf_matcher *matcher,
                                mhf_passage *passage)
{
    mhf_passage_cut(passage);
    for (int64_t i = 0; i < passage->n_parts; i++) {
        const mhf_part *part = &passage->parts[i];
        if (part->id >= 0) {
            MHF_TRY(mhf_passage_add_part(passage, *part));
            continue;
        }
        cutter cut = {
            .passage = passage, .whole = *part, .behavior = step->behavior, .invert = step->invert};
        if (step->kind == MHF_PRETOKENIZE_PATTERN)
            MHF_TRY(cut_by_pattern(&cut, &step->pattern, matcher));
        else
            MHF_TRY(cut_by_chars(&cut, step));
        MHF_TRY(finish(&cut));
    }
    mhf_passage_cut_done(passage);
    return MHF_OK;
}
