/* SPDX-License-Identifier: ISC */
/* Extending a vocabulary with merges that are learned from other texts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"
#include "trainer_form.h"
#include "trainer_pairs.h"

static const char source_name[] = "the tokenizer to extend";

typedef struct extension {
    const mhf_tokenizer *tokenizer;
    mhf_extend_rule rule;
    int32_t per_text;
    mhf_pieces pieces; /* the old tokens, then the new in the order in which they came */
    int32_t *numbers;  /* [pieces.n] id wanted: differs from the order under the reference rule */
    int64_t numbers_capacity;
    mhf_merge_list merges;
} extension;

/* State of one text's walk through the merges learned from it. */
typedef struct walk {
    int32_t first;   /* number of the first new token */
    int32_t counter; /* tokens added as the rule counts */
    int64_t done;    /* merges walked */
    mhf_merge_list merges;
} walk;

/* ---- the old tokenizer ---------------------------------------------------------------------- */

static mhf_status set_number(extension *e, mhf_token id, int32_t number)
{
    MHF_TRY(mhf_grow(&e->numbers, &e->numbers_capacity, (int64_t)id + 1, sizeof *e->numbers,
                     "a vocabulary"));
    e->numbers[id] = number;
    return MHF_OK;
}

static mhf_status take_pieces(extension *e)
{
    for (mhf_token id = 0; id < mhf_tokenizer_size(e->tokenizer); id++) {
        size_t n = 0;
        const char *piece = mhf_tokenizer_piece(e->tokenizer, id, &n);
        mhf_token added = -1;
        if (piece)
            MHF_TRY(mhf_pieces_add(&e->pieces, piece, n, &added));
        if (added != id)
            return mhf_fail(MHF_E_DATA,
                            "%s: the vocabulary has no token %" PRId32
                            ", or one twice: such can't be extended",
                            source_name, id);
        MHF_TRY(set_number(e, id, id));
    }
    return MHF_OK;
}

static mhf_status take_merges(extension *e, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        mhf_spelling l, r;
        mhf_token left = -1, right = -1;
        if (mhf_merge_split(json_array_get(list, i), &l, &r)) {
            left = mhf_pieces_find(&e->pieces, l.text, l.n);
            right = mhf_pieces_find(&e->pieces, r.text, r.n);
        }
        if (left < 0 || right < 0)
            return mhf_fail(MHF_E_DATA, "%s: merge %zu is not of two tokens", source_name, i);
        MHF_TRY(mhf_merge_list_add(&e->merges, left, right));
    }
    return MHF_OK;
}

/* ---- one text ------------------------------------------------------------------------------- */

/* *id = the token, which is added when it is new and there is room; else -1. */
static mhf_status add_token(extension *e, walk *w, const char *piece, size_t n, mhf_token *id)
{
    *id = mhf_pieces_find(&e->pieces, piece, n);
    if (*id >= 0 || (e->rule == MHF_EXTEND_EXACT && w->counter == e->per_text))
        return MHF_OK;
    MHF_TRY(mhf_pieces_add(&e->pieces, piece, n, id));
    return set_number(e, *id, w->first + w->counter++);
}

/* A merge that learning found: its parts, then the whole, become tokens. */
static mhf_status take_merge(extension *e, walk *w, const mhf_pieces *learned, mhf_merge merge,
                             mhf_buf *spelling)
{
    size_t n[2];
    const char *parts[] = {mhf_pieces_get(learned, merge.left, &n[0]),
                           mhf_pieces_get(learned, merge.right, &n[1])};
    bool doubled = merge.left == merge.right && mhf_pieces_find(&e->pieces, parts[0], n[0]) < 0;
    mhf_token left, right, whole;
    MHF_TRY(add_token(e, w, parts[0], n[0], &left));
    MHF_TRY(add_token(e, w, parts[1], n[1], &right));
    if (doubled && e->rule == MHF_EXTEND_REFERENCE)
        MHF_TRY(set_number(e, left, w->first + w->counter++));
    mhf_buf_clear(spelling);
    MHF_TRY(mhf_buf_add(spelling, parts[0], n[0]));
    MHF_TRY(mhf_buf_add(spelling, parts[1], n[1]));
    if (left < 0 || right < 0)
        return MHF_OK;
    MHF_TRY(add_token(e, w, spelling->data, spelling->n, &whole));
    return whole < 0 ? MHF_OK : mhf_merge_list_add(&w->merges, left, right);
}

static mhf_status walk_merges(extension *e, walk *w, const mhf_pieces *learned,
                              const mhf_merge_list *merges)
{
    mhf_buf spelling = {0};
    mhf_status status = MHF_OK;
    for (; w->done < merges->n && w->counter < e->per_text && status == MHF_OK; w->done++)
        status = take_merge(e, w, learned, merges->merges[w->done], &spelling);
    mhf_buf_free(&spelling);
    return status;
}

/* Characters that no merge brought in, where the merges don't suffice. */
static mhf_status walk_alphabet(extension *e, walk *w, const mhf_pieces *learned, int32_t n_old,
                                int32_t n_start)
{
    for (mhf_token id = n_old; id < n_start && w->counter < e->per_text; id++) {
        size_t n;
        const char *piece = mhf_pieces_get(learned, id, &n);
        mhf_token added;
        MHF_TRY(add_token(e, w, piece, n, &added));
    }
    return MHF_OK;
}

/* Go on with the text where the old merges end, so that every new merge can come to its turn. */
static mhf_status learn_exactly(extension *e, walk *w, mhf_tokenizer_trainer *trainer,
                                const char *path)
{
    mhf_pieces learned = {0};
    mhf_merge_list merges = {0};
    int32_t n_old = e->pieces.n, n_start = 0;
    mhf_status status =
        mhf_tokenizer_trainer_continue(trainer, e->per_text, &learned, &n_start, &merges);
    if (status == MHF_OK)
        status = walk_merges(e, w, &learned, &merges);
    if (status == MHF_OK)
        status = walk_alphabet(e, w, &learned, n_old, n_start);
    if (status == MHF_OK && w->counter < e->per_text)
        status =
            mhf_fail(MHF_E_DATA, "%s: gives %" PRId32 " new tokens, %" PRId32 " were asked for",
                     path, w->counter, e->per_text);
    mhf_pieces_free(&learned);
    mhf_merge_list_free(&merges);
    return status;
}

/* The published procedure: a tokenizer of the text's own, as large as `size`. */
static mhf_status learn_anew(extension *e, walk *w, mhf_tokenizer_trainer *trainer, int64_t size)
{
    mhf_pieces learned = {0};
    mhf_merge_list merges = {0};
    int32_t n_start = 0;
    int32_t limit = size < INT32_MAX ? (int32_t)size : INT32_MAX;
    mhf_status status = mhf_tokenizer_trainer_learn(trainer, limit, &learned, &n_start, &merges);
    if (status == MHF_OK)
        status = walk_merges(e, w, &learned, &merges);
    mhf_pieces_free(&learned);
    mhf_merge_list_free(&merges);
    return status;
}

/* Append to `list` the merges of `more` that it lacks. */
static mhf_status append_merges(mhf_merge_list *list, const mhf_merge_list *more)
{
    mhf_pair_map present = {0};
    mhf_status status = MHF_OK;
    int64_t *value;
    for (int64_t i = 0; i < list->n && status == MHF_OK; i++) {
        mhf_merge m = list->merges[i];
        status = mhf_pair_map_at(&present, mhf_pair_of(m.left, m.right), &value);
        if (status == MHF_OK)
            *value = 1;
    }
    for (int64_t i = 0; i < more->n && status == MHF_OK; i++) {
        mhf_merge m = more->merges[i];
        if (mhf_pair_map_get(&present, mhf_pair_of(m.left, m.right)) == 0)
            status = mhf_merge_list_add(list, m.left, m.right);
    }
    mhf_pair_map_free(&present);
    return status;
}

/* The published procedure puts a text's merges before the others; behind them they leave old texts
 * in their old tokens but for what the new merges join. */
static mhf_status join_merges(extension *e, walk *w)
{
    if (e->rule == MHF_EXTEND_EXACT)
        return append_merges(&e->merges, &w->merges);
    MHF_TRY(append_merges(&w->merges, &e->merges));
    mhf_merge_list joined = w->merges;
    w->merges = e->merges;
    e->merges = joined;
    return MHF_OK;
}

static mhf_status add_text(extension *e, const char *path, int32_t k)
{
    walk w = {.first = e->pieces.n};
    mhf_tokenizer_trainer *trainer = NULL;
    mhf_tokenizer_training options = {.like = e->tokenizer, .vocab_size = 1};
    mhf_status status = mhf_tokenizer_trainer_new(&options, &trainer);
    if (status == MHF_OK)
        status = mhf_tokenizer_trainer_add_file(trainer, path);
    if (status == MHF_OK && e->rule == MHF_EXTEND_EXACT)
        status = learn_exactly(e, &w, trainer, path);
    else if (status == MHF_OK)
        status = learn_anew(e, &w, trainer,
                            (int64_t)mhf_tokenizer_base_size(e->tokenizer) +
                                (int64_t)(k + 1) * e->per_text + 500);
    if (status == MHF_OK)
        status = join_merges(e, &w);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "%s: %" PRId32 " new tokens", path, e->pieces.n - w.first);
    mhf_tokenizer_trainer_free(trainer);
    mhf_merge_list_free(&w.merges);
    return status;
}

/* ---- the new files -------------------------------------------------------------------------- */

typedef struct numbered {
    int32_t number;
    mhf_token id;
} numbered;

static int compare_numbered(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Number the tokens without holes in the order of the numbers wanted; where two want the same (the
 * reference rule starts a text's numbers at the number of tokens, below numbers already given) the
 * earlier one is first. */
static mhf_status renumber(extension *e)
{
    mhf_pieces sorted = {0};
    numbered *order = NULL;
    mhf_token *ids = NULL;
    int32_t n = e->pieces.n;
    mhf_status status = mhf_new(&order, n, sizeof *order, "a vocabulary");
    if (status == MHF_OK)
        status = mhf_new(&ids, n, sizeof *ids, "a vocabulary");
    if (status != MHF_OK)
        goto out;
    for (mhf_token id = 0; id < n; id++)
        order[id] = (numbered){e->numbers[id], id};
    qsort(order, (size_t)n, sizeof *order, compare_numbered);
    for (int32_t i = 0; i < n && status == MHF_OK; i++) {
        size_t length;
        const char *piece = mhf_pieces_get(&e->pieces, order[i].id, &length);
        status = mhf_pieces_add(&sorted, piece, length, &ids[order[i].id]);
    }
    if (status != MHF_OK)
        goto out;
    for (int64_t i = 0; i < e->merges.n; i++) {
        mhf_merge *m = &e->merges.merges[i];
        *m = (mhf_merge){ids[m->left], ids[m->right]};
    }
    mhf_pieces_free(&e->pieces);
    e->pieces = sorted;
    sorted = (mhf_pieces){0};
out:
    mhf_pieces_free(&sorted);
    free(order);
    free(ids);
    return status;
}

/* The published procedure makes a new model of the vocabulary and merges and hands over two keys.
 */
static mhf_status forget_model_keys(json_t *model)
{
    static const char *const null_keys[] = {"dropout", "unk_token", "continuing_subword_prefix",
                                            "end_of_word_suffix"};
    int failed = json_object_set_new(model, "ignore_merges", json_false());
    for (size_t i = 0; i < sizeof null_keys / sizeof *null_keys; i++)
        failed |= json_object_set_new(model, null_keys[i], json_null());
    return failed ? mhf_fail(MHF_E_NOMEM, "no memory for a tokenizer") : MHF_OK;
}

static mhf_status print(extension *e, json_t *root, mhf_buf *json)
{
    json_t *model = json_object_get(root, "model");
    MHF_TRY(renumber(e));
    if (e->rule == MHF_EXTEND_REFERENCE)
        MHF_TRY(forget_model_keys(model));
    MHF_TRY(mhf_tokenizer_set_vocab(model, &e->pieces));
    MHF_TRY(mhf_tokenizer_set_merges(model, &e->pieces, &e->merges));
    return mhf_tokenizer_print(root, json);
}

/* Extend by the texts, all with regard to the same old tokenizer. */
static mhf_status extend_by(const mhf_tokenizer *tokenizer, const char *const *paths,
                            int32_t n_paths, int32_t per_text, mhf_extend_rule rule, mhf_buf *json,
                            mhf_buf *config)
{
    extension e = {.tokenizer = tokenizer, .rule = rule, .per_text = per_text};
    mhf_tokenizer_form form = {0}; /* for the configuration's text */
    mhf_buf_clear(json);
    mhf_buf_clear(config);
    mhf_status status = mhf_tokenizer_form_like(tokenizer, &form);
    if (status == MHF_OK)
        status = take_pieces(&e);
    if (status == MHF_OK)
        status = take_merges(&e, json_object_get(json_object_get(form.json, "model"), "merges"));
    for (int32_t k = 0; k < n_paths && status == MHF_OK; k++)
        status = add_text(&e, paths[k], k);
    if (status == MHF_OK)
        status = print(&e, form.json, json);
    if (status == MHF_OK)
        status = mhf_buf_add(config, form.config.data, form.config.n);
    mhf_tokenizer_form_free(&form);
    mhf_pieces_free(&e.pieces);
    mhf_merge_list_free(&e.merges);
    free(e.numbers);
    return status;
}

mhf_status mhf_tokenizer_extend(const mhf_tokenizer *tokenizer, const char *const *paths,
                                int32_t n_paths, int32_t per_text, mhf_extend_rule rule,
                                mhf_buf *json, mhf_buf *config)
{
    if (per_text < 1)
        return mhf_fail(MHF_E_USAGE, "%" PRId32 " new tokens a text, expected 1 or more", per_text);
    if (rule == MHF_EXTEND_REFERENCE)
        return extend_by(tokenizer, paths, n_paths, per_text, rule, json, config);
    mhf_tokenizer *longer = NULL; /* by the texts so far */
    mhf_status status = MHF_OK;
    for (int32_t k = 0; k < n_paths && status == MHF_OK; k++) {
        status = extend_by(longer ? longer : tokenizer, &paths[k], 1, per_text, rule, json, config);
        mhf_tokenizer_free(longer);
        longer = NULL;
        if (status == MHF_OK && k + 1 < n_paths)
            status = mhf_tokenizer_parse(json->data, json->n, config->data, config->n, source_name,
                                         NULL, &longer);
    }
    mhf_tokenizer_free(longer);
    return status;
}
