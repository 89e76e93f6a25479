/* SPDX-License-Identifier: ISC */
/* What the tests of signature tables share: a tokenizer's pieces, and comparing with a golden
 * table. */
#ifndef MHF_TEST_TABLES_H
#define MHF_TEST_TABLES_H

#include "mhf/hash.h"
#include "npy.h"

/* ---- the tokens of a tokenizer.json, read without the text room --------------------------------
 */

typedef struct pieces {
    mhf_vocabulary vocabulary;
    const char **text;
    size_t *length;
    json_t *json; /* owns the texts */
} pieces;

static inline void pieces_put(pieces *p, int64_t id, const char *text, size_t n)
{
    CU_ASSERT_FATAL(id >= 0 && id < p->vocabulary.size);
    p->text[id] = text;
    p->length[id] = n;
}

static inline bool pieces_read(const char *path, int32_t pad, pieces *out)
{
    *out = (pieces){0};
    if (!path)
        return false;
    CHECK_OK(mhf_json_read(path, &out->json));
    json_t *vocab = json_object_get(json_object_get(out->json, "model"), "vocab");
    json_t *added = json_object_get(out->json, "added_tokens"), *token;
    int64_t base = (int64_t)json_object_size(vocab), size = base;
    size_t i;
    json_array_foreach(added, i, token)
    {
        int64_t id = json_integer_value(json_object_get(token, "id"));
        size = id >= size ? id + 1 : size;
    }
    out->vocabulary.size = (int32_t)size;
    out->vocabulary.base_size = (int32_t)base;
    out->vocabulary.pad = pad;
    CHECK_OK(mhf_new(&out->text, size, sizeof *out->text, "pieces"));
    CHECK_OK(mhf_new(&out->length, size, sizeof *out->length, "pieces"));
    json_array_foreach(added, i, token)
    {
        json_t *content = json_object_get(token, "content");
        pieces_put(out, json_integer_value(json_object_get(token, "id")),
                   json_string_value(content), json_string_length(content));
    }
    for (void *at = json_object_iter(vocab); at; at = json_object_iter_next(vocab, at))
        pieces_put(out, json_integer_value(json_object_iter_value(at)), json_object_iter_key(at),
                   json_object_iter_key_len(at));
    out->vocabulary.pieces = out->text;
    out->vocabulary.lengths = out->length;
    return true;
}

static inline void pieces_free(pieces *p)
{
    json_decref(p->json);
    free(p->text);
    free(p->length);
}

/* ---- golden tables -----------------------------------------------------------------------------
 */

/* The tokens and coordinates of an LSH table whose two best columns lie too close to call. */
typedef struct near_ties {
    npy token_coord, second; /* [n, 2], [n] */
    int64_t n;
} near_ties;

static inline void near_ties_read(const char *path, near_ties *out)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    CU_ASSERT_FATAL(npz_read(path, "near_token_coord", &out->token_coord));
    CU_ASSERT_FATAL(npz_read(path, "near_second", &out->second));
    out->n = out->token_coord.shape[0];
}

static inline void near_ties_free(near_ties *ties)
{
    npy_free(&ties->token_coord);
    npy_free(&ties->second);
}

/* May coordinate j of the token be `id`? The re-hashed last one may when an earlier one is a tie.
 */
static inline bool near_ties_allow(const near_ties *ties, int64_t token, int32_t j, bool rehashed,
                                   int32_t id)
{
    for (int64_t i = 0; i < ties->n; i++) {
        if (npy_int_at(&ties->token_coord, i, 0) != token)
            continue;
        if (rehashed ||
            (npy_int_at(&ties->token_coord, i, 1) == j && npy_int(&ties->second, i) == id))
            return true;
    }
    return false;
}

/* Rows [0, rows) of the table equal the golden's but at near-ties; says the first difference. */
static inline void check_table(const char *name, const mhf_signatures *table, const npy *golden_ids,
                               int32_t rows, const near_ties *ties)
{
    int32_t H = table->options.num_hashes, differences = 0, decided_otherwise = 0;
    CU_ASSERT_EQUAL_FATAL(golden_ids->shape[0], table->rows);
    CU_ASSERT_EQUAL_FATAL(golden_ids->shape[1], H);
    for (int64_t t = 0; t < rows; t++) {
        for (int32_t j = 0; j < H; j++) {
            int32_t expected = npy_int(golden_ids, t * H + j), id = (int32_t)table->ids[t * H + j];
            if (id == expected)
                continue;
            bool rehashed = j == H - 1 && table->options.num_lsh < H;
            if (near_ties_allow(ties, t, j, rehashed, id))
                decided_otherwise++;
            else if (differences++ == 0)
                fprintf(stderr, "\n    %s: token %d coordinate %d is %d, expected %d\n", name,
                        (int)t, j, id, expected);
        }
    }
    if (ties->n > 0)
        printf("\n    %s: %d of %d near-ties decided otherwise\n", name, decided_otherwise,
               (int)ties->n);
    CU_ASSERT_EQUAL(differences, 0);
}

/* A row of signatures/index.tsv. */
typedef struct table_row {
    char name[64], tokenizer[64];
    int tokens, rows, pad, num_hashes, num_buckets, num_lsh, dup_official, dup_corrected;
} table_row;

/* Call `check` for every row whose name starts with `prefix` and that has LSH or has not. */
static inline int each_table_row(const char *prefix, bool lsh, void (*check)(const table_row *row))
{
    const char *path = golden("signatures/index.tsv");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024];
    int n = 0;
    while (file && fgets(line, sizeof line, file)) {
        table_row r;
        if (sscanf(line, "%63s %63s %d %d %d %d %d %d %d %d", r.name, r.tokenizer, &r.tokens,
                   &r.rows, &r.pad, &r.num_hashes, &r.num_buckets, &r.num_lsh, &r.dup_official,
                   &r.dup_corrected) != 10)
            continue; /* the header */
        if (strncmp(r.name, prefix, strlen(prefix)) != 0 || (r.num_lsh > 0) != lsh)
            continue;
        n++;
        check(&r);
    }
    if (file)
        fclose(file);
    return n;
}

/* The table of a row under one rule against the golden. */
static inline void check_table_rule(const table_row *row, mhf_signature_rule rule)
{
    bool unique = rule == MHF_RULE_UNIQUE;
    char name[256];
    pieces p;
    snprintf(name, sizeof name, "tokenizers/%s/tokenizer.json", row->tokenizer);
    if (!pieces_read(golden(name), row->pad, &p))
        return;
    CU_ASSERT_EQUAL(p.vocabulary.base_size, row->tokens);
    near_ties ties = {0};
    snprintf(name, sizeof name, "signatures/%s.proj.npz", row->name);
    if (row->num_lsh > 0)
        near_ties_read(golden(name), &ties);

    mhf_signature_options options = {.num_hashes = row->num_hashes,
                                     .num_buckets = row->num_buckets,
                                     .num_lsh = row->num_lsh,
                                     .rule = rule};
    mhf_signatures table = {0};
    npy ids = {0};
    snprintf(name, sizeof name, "signatures/%s.%s.npy", row->name,
             unique ? "corrected" : "official");
    const char *path;
    if (unique && row->dup_corrected < 0) {
        /* No unique table exists: it is refused, and the way out is named. */
        CU_ASSERT_EQUAL(mhf_signatures_build(&p.vocabulary, &options, &table), MHF_E_EXHAUSTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "--rule reference"));
    } else if ((path = golden(name))) {
        CU_ASSERT_FATAL(npy_read(path, &ids));
        CHECK_OK(mhf_signatures_build(&p.vocabulary, &options, &table));
        /* Under `unique` added tokens past the base have signatures too, which the golden lacks;
         * under `reference` they share the pad's zeros. */
        check_table(name, &table, &ids, unique ? row->tokens : row->rows, &ties);
        int32_t past_base = p.vocabulary.size - row->tokens;
        int32_t zero_rows = past_base > 0 ? past_base - 1 : 0;
        CU_ASSERT_EQUAL(table.duplicates, unique ? 0 : row->dup_official + zero_rows);
    }
    mhf_signatures_free(&table);
    npy_free(&ids);
    near_ties_free(&ties);
    pieces_free(&p);
}

static inline void check_table_row(const table_row *row)
{
    check_table_rule(row, MHF_RULE_REFERENCE);
    check_table_rule(row, MHF_RULE_UNIQUE);
}

#endif
