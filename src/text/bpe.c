/* SPDX-License-Identifier: ISC */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "unicode.h"

static mhf_status parse_vocab(const json_t *model, const char *name, mhf_pieces *vocab)
{
    json_t *object = json_object_get(model, "vocab");
    if (!json_is_object(object))
        return mhf_fail(MHF_E_DATA, "%s: model.vocab is not an object", name);
    int64_t n = (int64_t)json_object_size(object);
    mhf_spelling *spellings;
    MHF_TRY(mhf_new(&spellings, n, sizeof *spellings, "a vocabulary"));
    mhf_status status = MHF_OK;
    for (void *i = json_object_iter(object); i && status == MHF_OK;
         i = json_object_iter_next(object, i)) {
        const char *text = json_object_iter_key(i);
        const json_t *value = json_object_iter_value(i);
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= n)
            status = mhf_fail(MHF_E_DATA,
                              "%s: model.vocab: the id of '%s' is not one of 0 to %lld, though the "
                              "%lld tokens must leave no gap",
                              name, text, (long long)n - 1, (long long)n);
        else if (spellings[id].text)
            status = mhf_fail(MHF_E_DATA, "%s: model.vocab: '%s' and '%s' both have id %lld", name,
                              spellings[id].text, text, (long long)id);
        else
            spellings[id] = (mhf_spelling){text, json_object_iter_key_len(i)};
    }
    mhf_token id;
    for (int64_t i = 0; i < n && status == MHF_OK; i++)
        status = mhf_pieces_add(vocab, spellings[i].text, spellings[i].n, &id);
    free(spellings);
    return status;
}

/* Index the pieces that are single characters by code point. */
static mhf_status index_chars(mhf_bpe *bpe)
{
    int64_t capacity = 0;
    MHF_TRY(mhf_new(&bpe->page_of, 0x1100, sizeof *bpe->page_of, "a vocabulary"));
    MHF_TRY(mhf_grow(&bpe->pages, &capacity, 256, sizeof *bpe->pages, "a vocabulary"));
    memset(bpe->pages, -1, 256 * sizeof *bpe->pages);
    bpe->n_pages = 1;
    for (mhf_token id = 0; id < bpe->n; id++) {
        size_t n;
        uint32_t c;
        const char *piece = mhf_pieces_get(bpe->vocab, id, &n);
        if (n == 0 || n > 4 || mhf_utf8_decode(piece, n, &c) != (int)n)
            continue;
        uint16_t *page = &bpe->page_of[c >> 8];
        if (*page == 0) {
            *page = (uint16_t)bpe->n_pages++;
            MHF_TRY(mhf_grow(&bpe->pages, &capacity, (int64_t)bpe->n_pages * 256,
                             sizeof *bpe->pages, "a vocabulary"));
            memset(bpe->pages + (size_t)*page * 256, -1, 256 * sizeof *bpe->pages);
        }
        bpe->pages[(size_t)*page * 256 + (c & 255)] = id;
    }
    return MHF_OK;
}

static void index_bytes(mhf_bpe *bpe)
{
    bpe->all_fallback = bpe->byte_fallback;
    for (unsigned b = 0; b < 256; b++) {
        char code[8];
        snprintf(code, sizeof code, "<0x%02X>", b);
        bpe->bytes[b] = mhf_bpe_char(bpe, mhf_byte_char(b));
        bpe->fallback[b] = mhf_pieces_find(bpe->vocab, code, 6);
        bpe->all_fallback = bpe->all_fallback && bpe->fallback[b] >= 0;
    }
}

/* Raw bytes of every piece that is spelled in the byte-level alphabet. */
static mhf_status index_raw(mhf_bpe *bpe)
{
    mhf_buf raw = {0};
    mhf_status status = mhf_map_new(bpe->n, &bpe->raw);
    for (mhf_token id = 0; id < bpe->n && status == MHF_OK; id++) {
        size_t n, at = 0;
        const char *piece = mhf_pieces_get(bpe->vocab, id, &n);
        int byte = 0;
        mhf_buf_clear(&raw);
        while (at < n && byte >= 0 && status == MHF_OK) {
            uint32_t c;
            at += (size_t)mhf_utf8_next(piece + at, &c);
            byte = mhf_char_byte(c);
            char as_char = (char)byte;
            status = mhf_buf_add(&raw, &as_char, 1);
        }
        if (status == MHF_OK && n > 0 && byte >= 0)
            status = mhf_map_put(bpe->raw, raw.data, raw.n, id);
    }
    mhf_buf_free(&raw);
    return status;
}

static bool is_char_free(const mhf_bpe *bpe, mhf_token id)
{
    size_t n;
    const char *piece = mhf_pieces_get(bpe->vocab, id, &n);
    return id == bpe->unk || (bpe->byte_fallback && n == 6 && memcmp(piece, "<0x", 3) == 0);
}

/* Note that text which ends as `left` does may be joined to text that begins as `right` does. A
 * part that does not come from characters (unknown, byte) has no such ends: then words stay whole.
 */
static void note_join(mhf_bpe *bpe, mhf_token left, mhf_token right)
{
    size_t n_left, n_right;
    uint32_t before, behind;
    const char *l = mhf_pieces_get(bpe->vocab, left, &n_left);
    const char *r = mhf_pieces_get(bpe->vocab, right, &n_right);
    if (n_left == 0 || n_right == 0)
        return;
    mhf_utf8_previous(l, (int64_t)n_left, &before);
    mhf_utf8_next(r, &behind);
    mhf_token last = mhf_bpe_char(bpe, before), first = mhf_bpe_char(bpe, behind);
    if (last < 0 || first < 0)
        return; /* no text begins with these characters as symbols: the merge is out of reach */
    uint32_t bit = mhf_bpe_join_bit(last, first);
    bpe->joins[bit / 64] |= (uint64_t)1 << bit % 64;
}

bool mhf_merge_split(const json_t *merge, mhf_spelling *left, mhf_spelling *right)
{
    const json_t *a = json_array_get(merge, 0), *b = json_array_get(merge, 1);
    if (json_is_array(merge) && json_array_size(merge) == 2 && json_is_string(a) &&
        json_is_string(b)) {
        *left = (mhf_spelling){json_string_value(a), json_string_length(a)};
        *right = (mhf_spelling){json_string_value(b), json_string_length(b)};
        return true;
    }
    if (!json_is_string(merge))
        return false;
    const char *text = json_string_value(merge);
    size_t n = json_string_length(merge);
    const char *space = memchr(text, ' ', n);
    if (!space || memchr(space + 1, ' ', n - (size_t)(space + 1 - text)))
        return false;
    *left = (mhf_spelling){text, (size_t)(space - text)};
    *right = (mhf_spelling){space + 1, n - (size_t)(space + 1 - text)};
    return true;
}

static mhf_status find_part(const mhf_bpe *bpe, const char *name, size_t i, const char *what,
                            mhf_spelling part, mhf_token *id)
{
    *id = mhf_pieces_find(bpe->vocab, part.text, part.n);
    if (*id < 0)
        return mhf_fail(MHF_E_DATA, "%s: model.merges[%zu]: %s '%.*s' is not in the vocabulary",
                        name, i, what, (int)part.n, part.text);
    return MHF_OK;
}

static void put_merge(mhf_bpe *bpe, mhf_token left, mhf_token right, int32_t rank, mhf_token id)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t i = pair * 0x9E3779B97F4A7C15u >> bpe->shift, mask = (uint64_t)bpe->n_merges - 1;
    while (bpe->merges[i].pair != UINT64_MAX && bpe->merges[i].pair != pair)
        i = (i + 1) & mask;
    bpe->merges[i] = (mhf_ranked_merge){pair, rank, id}; /* given twice, the later counts */
}

static mhf_status parse_merge(mhf_bpe *bpe, const char *name, const json_t *merge, size_t i,
                              mhf_buf *joined)
{
    mhf_spelling l, r;
    mhf_token left, right, id;
    if (!mhf_merge_split(merge, &l, &r))
        return mhf_fail(MHF_E_DATA, "%s: model.merges[%zu] is not a pair of pieces", name, i);
    MHF_TRY(find_part(bpe, name, i, "part", l, &left));
    MHF_TRY(find_part(bpe, name, i, "part", r, &right));
    mhf_buf_clear(joined);
    MHF_TRY(mhf_buf_add(joined, l.text, l.n));
    MHF_TRY(mhf_buf_add(joined, r.text, r.n));
    MHF_TRY(find_part(bpe, name, i, "result", (mhf_spelling){joined->data, joined->n}, &id));
    put_merge(bpe, left, right, (int32_t)i, id);
    if (is_char_free(bpe, left) || is_char_free(bpe, right))
        bpe->may_cut = false;
    note_join(bpe, left, right);
    return MHF_OK;
}

static mhf_status parse_merges(mhf_bpe *bpe, const json_t *model, const char *name)
{
    const json_t *merges = json_object_get(model, "merges");
    if (!json_is_array(merges))
        return mhf_fail(MHF_E_DATA, "%s: model.merges is not a list", name);
    size_t n = json_array_size(merges);
    if (n > INT32_MAX)
        return mhf_fail(MHF_E_DATA, "%s: %zu merges are too many", name, n);
    int bits = 4;
    while ((size_t)1 << bits < n * 2)
        bits++;
    bpe->n_merges = (int64_t)1 << bits;
    bpe->shift = 64 - bits;
    MHF_TRY(mhf_new(&bpe->merges, bpe->n_merges, sizeof *bpe->merges, "merges"));
    for (int64_t i = 0; i < bpe->n_merges; i++)
        bpe->merges[i].pair = UINT64_MAX;
    MHF_TRY(mhf_new(&bpe->joins, (1 << MHF_BPE_JOIN_BITS) / 64, sizeof *bpe->joins, "merges"));
    bpe->may_cut = true;
    mhf_buf joined = {0};
    mhf_status status = MHF_OK;
    for (size_t i = 0; i < n && status == MHF_OK; i++)
        status = parse_merge(bpe, name, json_array_get(merges, i), i, &joined);
    mhf_buf_free(&joined);
    return status;
}

/* What this model does not do must not be asked for. */
static mhf_status refuse_unbuilt(const json_t *model, const char *name)
{
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = "BPE", *text;
    MHF_TRY(mhf_json_string_or(model, "type", name, &type, NULL));
    if (strcmp(type, "BPE") != 0)
        return mhf_fail(MHF_E_DATA, "%s: model '%s' is not built", name, type);
    double dropout = 0;
    MHF_TRY(mhf_json_real_or(model, "dropout", name, &dropout));
    if (dropout != 0)
        return mhf_fail(MHF_E_DATA, "%s: model.dropout %g is not built", name, dropout);
    for (size_t i = 0; i < 2; i++) {
        text = "";
        MHF_TRY(mhf_json_string_or(model, texts[i], name, &text, NULL));
        if (*text)
            return mhf_fail(MHF_E_DATA, "%s: model.%s '%s' is not built", name, texts[i], text);
    }
    return MHF_OK;
}

static mhf_status parse_unk(mhf_bpe *bpe, const json_t *model, const char *name)
{
    const char *unk = NULL;
    size_t n = 0;
    MHF_TRY(mhf_json_string_or(model, "unk_token", name, &unk, &n));
    bpe->unk = unk ? mhf_pieces_find(bpe->vocab, unk, n) : -1;
    if (unk && bpe->unk < 0)
        bpe->unk = -2;
    return MHF_OK;
}

mhf_status mhf_bpe_parse(const json_t *model, const char *name, bool takes_bytes, mhf_pieces *vocab,
                         mhf_bpe *out)
{
    if (!json_is_object(model))
        return mhf_fail(MHF_E_DATA, "%s: key 'model' is not an object", name);
    out->vocab = vocab;
    out->takes_bytes = takes_bytes;
    MHF_TRY(refuse_unbuilt(model, name));
    MHF_TRY(mhf_json_bool_or(model, "fuse_unk", name, &out->fuse_unk));
    MHF_TRY(mhf_json_bool_or(model, "byte_fallback", name, &out->byte_fallback));
    MHF_TRY(mhf_json_bool_or(model, "ignore_merges", name, &out->ignore_merges));
    MHF_TRY(parse_vocab(model, name, vocab));
    out->n = vocab->n;
    MHF_TRY(parse_unk(out, model, name));
    MHF_TRY(index_chars(out));
    index_bytes(out);
    if (takes_bytes && out->ignore_merges)
        MHF_TRY(index_raw(out));
    return parse_merges(out, model, name);
}

void mhf_bpe_free(mhf_bpe *bpe)
{
    free(bpe->merges);
    free(bpe->page_of);
    free(bpe->pages);
    free(bpe->joins);
    mhf_map_free(bpe->raw);
    *bpe = (mhf_bpe){0};
}
