/* SPDX-License-Identifier: ISC */
/* A model for a tokenizer that has grown: signatures or mean rows for the new tokens. */
#include <stdlib.h>
#include <string.h>

#include "mhf/train.h"

enum { ROW_MULTIPLE = 128, NAMED_ROWS = 8 };

static int shown(size_t n)
{
    return n < 64 ? (int)n : 64;
}

/* ---- does the tokenizer go on from the model's? --------------------------------------------- */

static mhf_status check_pieces(const mhf_tokenizer *from, const mhf_tokenizer *to)
{
    for (mhf_token id = 0; id < mhf_tokenizer_size(from); id++) {
        size_t n = 0, m = 0;
        const char *a = mhf_tokenizer_piece(from, id, &n), *b = mhf_tokenizer_piece(to, id, &m);
        if (a && b ? n == m && memcmp(a, b, n) == 0 : a == b)
            continue;
        return mhf_fail(MHF_E_MISMATCH,
                        "token %d is '%.*s', but '%.*s' in the model's tokenizer: old tokens must "
                        "keep their ids",
                        id, b ? shown(m) : 0, b ? b : "", a ? shown(n) : 0, a ? a : "");
    }
    return MHF_OK;
}

static mhf_token pad_of(const mhf_tokenizer *tokenizer)
{
    mhf_token pad = mhf_tokenizer_pad(tokenizer);
    return pad >= 0 ? pad : mhf_tokenizer_eos(tokenizer);
}

/* One that a tokenizer doesn't name can't contradict the other's. */
static mhf_status check_special(const char *name, mhf_token from, mhf_token to)
{
    if (from < 0 || to < 0 || from == to)
        return MHF_OK;
    return mhf_fail(MHF_E_MISMATCH, "its %s token is %d, but %d in the model's tokenizer", name, to,
                    from);
}

static mhf_status check_tokenizers(const mhf_tokenizer *from, const mhf_tokenizer *to)
{
    int32_t n = mhf_tokenizer_size(from), m = mhf_tokenizer_size(to);
    if (m < n)
        return mhf_fail(MHF_E_MISMATCH, "has %d tokens, fewer than the %d of the model's tokenizer",
                        m, n);
    MHF_TRY(check_pieces(from, to));
    MHF_TRY(check_special("BOS", mhf_tokenizer_bos(from), mhf_tokenizer_bos(to)));
    MHF_TRY(check_special("EOS", mhf_tokenizer_eos(from), mhf_tokenizer_eos(to)));
    return check_special("pad", pad_of(from), pad_of(to));
}

/* ---- signatures
 * ------------------------------------------------------------------------------------------------
 */

static bool same_row(const mhf_signatures *a, const mhf_signatures *b, int64_t row)
{
    int64_t H = a->options.num_hashes;
    return memcmp(a->ids + row * H, b->ids + row * H, (size_t)H * sizeof *a->ids) == 0;
}

static mhf_status name_changed(const mhf_signatures *old, const mhf_signatures *new,
                               const mhf_vocabulary *vocabulary, mhf_buf *out)
{
    int32_t named = 0;
    for (int32_t id = 0; id < old->size && named <= NAMED_ROWS; id++) {
        if (same_row(old, new, id))
            continue;
        MHF_TRY(named == NAMED_ROWS
                    ? mhf_buf_add_text(out, ", …")
                    : mhf_buf_printf(out, "%s%d '%.*s'", named ? ", " : "", id,
                                     shown(vocabulary->lengths[id]), vocabulary->pieces[id]));
        named++;
    }
    return MHF_OK;
}

/* A model knows a token by its signature: one that changes would make another token of it. */
static mhf_status check_kept(const mhf_signatures *old, const mhf_signatures *new,
                             const mhf_vocabulary *vocabulary)
{
    int32_t changed = 0;
    for (int32_t id = 0; id < old->size; id++)
        changed += !same_row(old, new, id);
    if (changed == 0)
        return MHF_OK;
    mhf_buf rows = {0};
    mhf_status status = name_changed(old, new, vocabulary, &rows);
    if (status == MHF_OK)
        status = mhf_fail(
            MHF_E_MISMATCH, "under the rule %s %d old token%s would get another signature: %s%s",
            mhf_signature_rule_name(new->options.rule), changed, changed == 1 ? "" : "s", rows.data,
            new->options.rule == MHF_RULE_REFERENCE ? "; --rule unique keeps them" : "");
    mhf_buf_free(&rows);
    return status;
}

static mhf_status build_table(const mhf_signatures *old, const mhf_vocabulary *vocabulary,
                              mhf_signature_rule rule, mhf_signatures *out)
{
    mhf_signature_options options = old->options;
    options.rule = rule;
    /* A table of another origin than `unique` can only be gone on with. */
    if (rule == MHF_RULE_UNIQUE && old->options.rule != MHF_RULE_UNIQUE)
        MHF_TRY(mhf_signatures_extend(old, vocabulary, out));
    else
        MHF_TRY(mhf_signatures_build(vocabulary, &options, out));
    return check_kept(old, out, vocabulary);
}

static mhf_status expand_table(const mhf_source *source, const mhf_signature_rule *rule,
                               mhf_expansion *e)
{
    mhf_signatures old = {0};
    mhf_vocabulary vocabulary = {0};
    mhf_status status = mhf_source_signatures(source, &old);
    if (status == MHF_OK && old.size != e->from_size)
        status = mhf_fail(MHF_E_DATA, "%s: its table is for %d tokens, its tokenizer has %d",
                          mhf_source_info_of(source)->path, old.size, e->from_size);
    if (status == MHF_OK)
        status = mhf_vocabulary_of(e->to, &vocabulary);
    if (status == MHF_OK) {
        mhf_signature_rule own =
            old.options.rule == MHF_RULE_IMPORTED ? MHF_RULE_UNIQUE : old.options.rule;
        vocabulary.pad = old.pad;
        status = build_table(&old, &vocabulary, rule ? *rule : own, &e->table);
    }
    if (status == MHF_OK)
        snprintf(e->table.tokenizer_sha256, sizeof e->table.tokenizer_sha256, "%s",
                 mhf_tokenizer_sha256(e->to));
    mhf_vocabulary_free(&vocabulary);
    mhf_signatures_free(&old);
    return status;
}

/* ---- pieces
 * ------------------------------------------------------------------------------------------------
 */

static mhf_status add_pieces(const mhf_tokenizer *from, const char *piece, size_t n,
                             mhf_encoding *encoding, mhf_expansion *e, int64_t *capacity,
                             int64_t *at)
{
    MHF_TRY(mhf_tokenizer_encode(from, piece, n, MHF_ENCODE_PLAIN, encoding));
    MHF_TRY(mhf_grow(&e->pieces, capacity, *at + encoding->n, sizeof *e->pieces, "pieces"));
    if (encoding->n > 0)
        memcpy(e->pieces + *at, encoding->ids, (size_t)encoding->n * sizeof *e->pieces);
    *at += encoding->n;
    return MHF_OK;
}

static mhf_status spell_new_tokens(const mhf_tokenizer *from, mhf_expansion *e)
{
    int32_t n = e->to_size - e->from_size;
    int64_t capacity = 0, at = 0;
    mhf_encoding encoding = {0};
    mhf_status status =
        mhf_new(&e->piece_offsets, n + 1, sizeof *e->piece_offsets, "offsets of pieces");
    for (int32_t i = 0; status == MHF_OK && i < n; i++) {
        size_t length = 0;
        const char *piece = mhf_tokenizer_piece(e->to, e->from_size + i, &length);
        if (piece)
            status = add_pieces(from, piece, length, &encoding, e, &capacity, &at);
        e->piece_offsets[i + 1] = at;
    }
    mhf_encoding_free(&encoding);
    return status;
}

/* ---- the plan
 * ------------------------------------------------------------------------------------------------
 */

/* The model keeps its numbers, but may meet its old words in other tokens. */
static mhf_status warn_of_differences(const mhf_tokenizer *from, const mhf_tokenizer *to)
{
    mhf_buf names = {0};
    mhf_status status = mhf_tokenizer_differences(from, to, &names);
    if (status == MHF_OK && names.n > 0)
        mhf_log(MHF_LOG_WARN,
                "the tokenizer is not as the model's: %s: texts may be split otherwise than the "
                "model has learned",
                names.data);
    mhf_buf_free(&names);
    return status;
}

static mhf_status plan(const mhf_source *source, const mhf_tokenizer *from,
                       const mhf_signature_rule *rule, mhf_expansion *e)
{
    int64_t rows = ((int64_t)e->to_size + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
    MHF_TRY(check_tokenizers(from, e->to));
    MHF_TRY(warn_of_differences(from, e->to));
    MHF_TRY(mhf_narrow(rows, "rows of the vocabulary", &e->config.vocab_size));
    MHF_TRY(mhf_config_check(&e->config));
    return e->config.head == MHF_HEAD_MHF ? expand_table(source, rule, e)
                                          : spell_new_tokens(from, e);
}

mhf_status mhf_expansion_new(const mhf_source *source, const mhf_tokenizer *to,
                             const mhf_signature_rule *rule, mhf_expansion *out)
{
    mhf_tokenizer *from = NULL;
    *out = (mhf_expansion){0};
    MHF_TRY(mhf_source_tokenizer(source, &from));
    mhf_expansion e = {.config = *mhf_source_config(source),
                       .from_size = mhf_tokenizer_size(from),
                       .to_size = mhf_tokenizer_size(to),
                       .to = to};
    mhf_status status = plan(source, from, rule, &e);
    mhf_tokenizer_free(from);
    if (status != MHF_OK)
        mhf_expansion_free(&e);
    else
        *out = e;
    return status;
}

void mhf_expansion_free(mhf_expansion *expansion)
{
    mhf_signatures_free(&expansion->table);
    free(expansion->piece_offsets);
    free(expansion->pieces);
    *expansion = (mhf_expansion){0};
}

/* ---- rows of a standard model --------------------------------------------------------------- */

typedef struct row_reader {
    mhf_source *source;
    const mhf_expansion *e;
    const mhf_registry *registry; /* of the model before */
    int32_t loaded;               /* whose rows are in `old`; -1: none */
    float *old;                   /* [from_size, d] */
    double *sum;                  /* [d] */
    float *row;                   /* [d] */
} row_reader;

static mhf_status load_matrix(row_reader *r, int32_t param)
{
    if (r->loaded == param)
        return MHF_OK;
    r->loaded = -1;
    MHF_TRY(mhf_source_read(r->source, MHF_PARAMETER, &r->registry->params[param], 0,
                            (int64_t)r->e->from_size * r->e->config.hidden_size, r->old));
    r->loaded = param;
    return MHF_OK;
}

/* Mean of old rows; a token of no piece at all stands in their middle. */
static void mean_row(const row_reader *r, int64_t token)
{
    const int64_t d = r->e->config.hidden_size, i = token - r->e->from_size;
    const int64_t first = r->e->piece_offsets[i];
    const int64_t given = r->e->piece_offsets[i + 1] - first;
    const int64_t n = given > 0 ? given : r->e->from_size;
    memset(r->sum, 0, (size_t)d * sizeof *r->sum);
    for (int64_t k = 0; k < n; k++) {
        const float *row = r->old + (given > 0 ? r->e->pieces[first + k] : k) * d;
        for (int64_t c = 0; c < d; c++)
            r->sum[c] += (double)row[c];
    }
    for (int64_t c = 0; c < d; c++)
        r->row[c] = (float)(r->sum[c] / (double)n);
}

/* Elements first … of the grown matrix: old rows, means, zeros. */
static void fill_rows(const row_reader *r, int64_t first, int64_t count, float *out)
{
    const int64_t d = r->e->config.hidden_size;
    for (int64_t done = 0; done < count;) {
        const int64_t token = (first + done) / d, column = (first + done) % d;
        const int64_t n = d - column < count - done ? d - column : count - done;
        const float *row = r->row;
        if (token < r->e->from_size)
            row = r->old + token * d;
        else if (token < r->e->to_size)
            mean_row(r, token);
        else
            memset(r->row, 0, (size_t)d * sizeof *r->row);
        memcpy(out + done, row + column, (size_t)n * sizeof *out);
        done += n;
    }
}

static mhf_status read_expanded(void *context, const mhf_param *param, int64_t first, int64_t count,
                                float *out)
{
    row_reader *r = context;
    int32_t old = mhf_registry_find(r->registry, param->name);
    bool grown = r->e->config.head == MHF_HEAD_STANDARD &&
                 (strcmp(param->name, "model.embed_tokens.weight") == 0 ||
                  strcmp(param->name, "lm_head.weight") == 0);
    if (!grown)
        return mhf_source_read(r->source, MHF_PARAMETER, &r->registry->params[old], first, count,
                               out);
    MHF_TRY(load_matrix(r, old));
    fill_rows(r, first, count, out);
    return MHF_OK;
}

static mhf_status make_room(row_reader *r)
{
    const int64_t d = r->e->config.hidden_size;
    if (r->e->config.head == MHF_HEAD_MHF)
        return MHF_OK;
    MHF_TRY(mhf_new(&r->old, r->e->from_size * d, sizeof *r->old, "the embedding matrix"));
    MHF_TRY(mhf_new(&r->sum, d, sizeof *r->sum, "a row"));
    return mhf_new(&r->row, d, sizeof *r->row, "a row");
}

mhf_status mhf_expand(mhf_source *source, const mhf_expansion *expansion, const char *path)
{
    mhf_registry registry = {0};
    mhf_carried carried = {0};
    row_reader reader = {.source = source, .e = expansion, .registry = &registry, .loaded = -1};
    const mhf_checkpoint_meta meta = {.program_build = mhf_build(),
                                      .tokenizer = expansion->to,
                                      .table = expansion->table.ids ? &expansion->table : NULL,
                                      .carried = &carried};
    mhf_status status = mhf_registry_new(mhf_source_config(source), &registry);
    if (status == MHF_OK)
        status = mhf_source_carried(source, &carried);
    if (status == MHF_OK)
        status = make_room(&reader);
    if (status == MHF_OK)
        status = mhf_checkpoint_compose(path, &expansion->config, read_expanded, &reader, &meta);
    free(reader.old);
    free(reader.sum);
    free(reader.row);
    mhf_carried_free(&carried);
    mhf_registry_free(&registry);
    return status;
}
