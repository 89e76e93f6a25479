/* SPDX-License-Identifier: ISC */
/* Training a byte-pair encoding: texts are gathered, split and counted in parallel, the merges
 * learned at the end. */
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer.h"
#include "trainer.h"
#include "trainer_form.h"
#include "words.h"

/* Bytes of text gathered before they are counted: enough for every thread to have work. */
static const size_t batch_size = (size_t)8 << 20;

struct mhf_tokenizer_trainer {
    int32_t vocab_size;
    mhf_tokenizer_form form;
    mhf_tokenizer *own;            /* splits words where there is no other tokenizer */
    const mhf_tokenizer *splitter; /* own, or the one to be like */
    mhf_buf text;                  /* gathered texts, one after another */
    size_t *ends;                  /* [n_texts] */
    int64_t n_texts, ends_capacity;
    mhf_word_table *tables; /* [n_threads]: each thread counts for itself */
    int n_threads;
};

static mhf_status start(mhf_tokenizer_trainer *trainer, const mhf_tokenizer_training *options)
{
    mhf_tokenizer_form *form = &trainer->form;
    trainer->vocab_size = options->vocab_size;
    trainer->n_threads = omp_get_max_threads();
    MHF_TRY(mhf_new(&trainer->tables, trainer->n_threads, sizeof *trainer->tables,
                    "the words of a text"));
    if (options->like)
        MHF_TRY(mhf_tokenizer_form_like(options->like, form));
    else
        MHF_TRY(mhf_tokenizer_form_of_kind(options->kind, form));
    for (int32_t i = 0; i < options->n_special; i++)
        MHF_TRY(mhf_tokenizer_form_special(form, options->special[i], strlen(options->special[i])));
    trainer->splitter = options->like;
    if (options->like)
        return MHF_OK;
    mhf_buf json = {0};
    mhf_status status = mhf_tokenizer_form_empty(form, &json);
    if (status == MHF_OK)
        status = mhf_tokenizer_parse(json.data, json.n, form->config.data, form->config.n,
                                     "the new tokenizer", NULL, &trainer->own);
    trainer->splitter = trainer->own;
    mhf_buf_free(&json);
    return status;
}

mhf_status mhf_tokenizer_trainer_new(const mhf_tokenizer_training *options,
                                     mhf_tokenizer_trainer **out)
{
    mhf_tokenizer_trainer *trainer;
    if (options->vocab_size < 1)
        return mhf_fail(MHF_E_USAGE, "a vocabulary of %" PRId32 " tokens, expected 1 or more",
                        options->vocab_size);
    MHF_TRY(mhf_new(&trainer, 1, sizeof *trainer, "training a tokenizer"));
    mhf_status status = start(trainer, options);
    if (status != MHF_OK)
        mhf_tokenizer_trainer_free(trainer);
    else
        *out = trainer;
    return status;
}

void mhf_tokenizer_trainer_free(mhf_tokenizer_trainer *trainer)
{
    if (!trainer)
        return;
    for (int i = 0; trainer->tables && i < trainer->n_threads; i++)
        mhf_word_table_free(&trainer->tables[i]);
    free(trainer->tables);
    free(trainer->ends);
    mhf_buf_free(&trainer->text);
    mhf_tokenizer_free(trainer->own);
    mhf_tokenizer_form_free(&trainer->form);
    free(trainer);
}

/* ---- counting words ------------------------------------------------------------------------- */

static mhf_status count_word(void *table, const char *word, size_t n)
{
    return mhf_word_table_add(table, word, n, 1);
}

/* Count the gathered texts' words. */
static mhf_status count_batch(mhf_tokenizer_trainer *trainer)
{
    mhf_status status = MHF_OK;
    char sentence[1024] = ""; /* of the first failure: errors are one a thread */
#pragma omp parallel for schedule(dynamic, 8) num_threads(trainer->n_threads)
    for (int64_t i = 0; i < trainer->n_texts; i++) {
        size_t begin = i == 0 ? 0 : trainer->ends[i - 1];
        mhf_status here = mhf_tokenizer_words(trainer->splitter, trainer->text.data + begin,
                                              trainer->ends[i] - begin, count_word,
                                              &trainer->tables[omp_get_thread_num()]);
        if (here == MHF_OK)
            continue;
#pragma omp critical(mhf_trainer_failure)
        if (status == MHF_OK) {
            status = here;
            snprintf(sentence, sizeof sentence, "%s", mhf_error());
        }
    }
    trainer->n_texts = 0;
    mhf_buf_clear(&trainer->text);
    return status == MHF_OK ? MHF_OK : mhf_fail(status, "%s", sentence);
}

mhf_status mhf_tokenizer_trainer_add(mhf_tokenizer_trainer *trainer, const char *text, size_t n)
{
    if (n == 0)
        return MHF_OK;
    MHF_TRY(mhf_grow(&trainer->ends, &trainer->ends_capacity, trainer->n_texts + 1,
                     sizeof *trainer->ends, "a training text"));
    MHF_TRY(mhf_buf_add(&trainer->text, text, n));
    trainer->ends[trainer->n_texts++] = trainer->text.n;
    return trainer->text.n < batch_size ? MHF_OK : count_batch(trainer);
}

mhf_status mhf_tokenizer_trainer_add_file(mhf_tokenizer_trainer *trainer, const char *path)
{
    mhf_corpus *corpus;
    MHF_TRY(mhf_corpus_open(path, &corpus));
    mhf_progress progress;
    mhf_progress_start(&progress, path, "MB", 0);
    size_t done = 0;
    mhf_status status = MHF_OK;
    for (bool end = false; status == MHF_OK && !end;) {
        const char *text;
        size_t n;
        status = mhf_corpus_next_line(corpus, &text, &n, &end);
        if (status == MHF_OK && !end)
            status = mhf_tokenizer_trainer_add(trainer, text, n);
        done += n;
        mhf_progress_show(&progress, (double)done * 1e-6, NULL);
    }
    mhf_corpus_close(corpus);
    return status;
}

/* ---- counts for and from other processes ---------------------------------------------------- */

static mhf_status join_tables(mhf_tokenizer_trainer *trainer)
{
    for (int i = 1; i < trainer->n_threads; i++) {
        MHF_TRY(mhf_word_table_join(&trainer->tables[0], &trainer->tables[i]));
        mhf_word_table_free(&trainer->tables[i]);
    }
    return MHF_OK;
}

mhf_status mhf_tokenizer_trainer_counts(mhf_tokenizer_trainer *trainer, int64_t *next, mhf_buf *out)
{
    MHF_TRY(count_batch(trainer));
    MHF_TRY(join_tables(trainer));
    return mhf_word_table_print(&trainer->tables[0], next, batch_size, out);
}

mhf_status mhf_tokenizer_trainer_add_counts(mhf_tokenizer_trainer *trainer, const char *counts,
                                            size_t n)
{
    return mhf_word_table_parse(&trainer->tables[0], counts, n);
}

/* ---- the vocabulary ------------------------------------------------------------------------- */

enum { MAX_CODE_POINT = 0x10FFFF };

/* The characters of byte-level words stand for bytes: printable ones for themselves, the others for
 * the places from U+0100 on. */
static void mark_byte_characters(bool *seen)
{
    uint32_t other = 0x100;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        seen[printable ? byte : other++] = true;
    }
}

static void mark_characters(const mhf_word_table *words, bool *seen)
{
    uint32_t c;
    int length;
    for (size_t i = 0; i < words->bytes.n; i += (size_t)length) {
        length = mhf_utf8_decode(words->bytes.data + i, words->bytes.n - i, &c);
        if (length == 0)
            length = 1; /* learning the merges refuses it */
        else
            seen[c] = true;
    }
}

/* Add the alphabet in code-point order. */
static mhf_status add_alphabet(const mhf_tokenizer_trainer *trainer, mhf_pieces *pieces)
{
    bool *seen;
    MHF_TRY(mhf_new(&seen, MAX_CODE_POINT + 1, sizeof *seen, "an alphabet"));
    if (trainer->form.byte_level)
        mark_byte_characters(seen);
    mark_characters(&trainer->tables[0], seen);
    mhf_status status = MHF_OK;
    for (uint32_t c = 0; c <= MAX_CODE_POINT && status == MHF_OK; c++) {
        char character[4];
        mhf_token id;
        if (seen[c])
            status = mhf_pieces_add(pieces, character, (size_t)mhf_utf8_encode(c, character), &id);
    }
    free(seen);
    return status;
}

mhf_status mhf_tokenizer_trainer_learn(mhf_tokenizer_trainer *trainer, int32_t vocab_size,
                                       mhf_pieces *pieces, int32_t *n_start, mhf_merge_list *merges)
{
    MHF_TRY(count_batch(trainer));
    MHF_TRY(join_tables(trainer));
    MHF_TRY(mhf_tokenizer_form_start(&trainer->form, pieces));
    MHF_TRY(add_alphabet(trainer, pieces));
    *n_start = pieces->n;
    return mhf_merges_learn(&trainer->tables[0], NULL, vocab_size, pieces, merges);
}

static mhf_status copy_vocabulary(const mhf_tokenizer *tokenizer, mhf_pieces *pieces)
{
    for (mhf_token id = 0; id < mhf_tokenizer_size(tokenizer); id++) {
        size_t n = 0;
        const char *piece = mhf_tokenizer_piece(tokenizer, id, &n);
        mhf_token added;
        MHF_TRY(mhf_pieces_add(pieces, piece ? piece : "", n, &added));
    }
    return MHF_OK;
}

mhf_status mhf_tokenizer_trainer_continue(mhf_tokenizer_trainer *trainer, int32_t n_new,
                                          mhf_pieces *pieces, int32_t *n_start,
                                          mhf_merge_list *merges)
{
    MHF_TRY(count_batch(trainer));
    MHF_TRY(join_tables(trainer));
    MHF_TRY(copy_vocabulary(trainer->splitter, pieces));
    MHF_TRY(add_alphabet(trainer, pieces));
    *n_start = pieces->n;
    int32_t vocab_size = n_new < INT32_MAX - pieces->n ? pieces->n + n_new : INT32_MAX;
    return mhf_merges_learn(&trainer->tables[0], &trainer->splitter->bpe, vocab_size, pieces,
                            merges);
}

static mhf_status check_size(const mhf_tokenizer_trainer *trainer, int32_t n_start, int32_t n)
{
    if (n_start > trainer->vocab_size)
        return mhf_fail(MHF_E_CONFIG,
                        "a vocabulary of %" PRId32 " tokens can't hold the %" PRId32
                        " special tokens and characters of the texts",
                        trainer->vocab_size, n_start);
    if (n < trainer->vocab_size)
        mhf_log(MHF_LOG_WARN, "the texts give %" PRId32 " tokens only, %" PRId32 " were asked for",
                n, trainer->vocab_size);
    return MHF_OK;
}

mhf_status mhf_tokenizer_trainer_finish(mhf_tokenizer_trainer *trainer, mhf_buf *json,
                                        mhf_buf *config)
{
    mhf_pieces pieces = {0};
    mhf_merge_list merges = {0};
    int32_t n_start = 0;
    mhf_buf_clear(json);
    mhf_buf_clear(config);
    mhf_status status =
        mhf_tokenizer_trainer_learn(trainer, trainer->vocab_size, &pieces, &n_start, &merges);
    if (status == MHF_OK)
        status = check_size(trainer, n_start, pieces.n);
    if (status == MHF_OK)
        status = mhf_tokenizer_form_print(&trainer->form, &pieces, &merges, json);
    if (status == MHF_OK)
        status = mhf_buf_add(config, trainer->form.config.data, trainer->form.config.n);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "%" PRId32 " tokens from %" PRId64 " distinct words", pieces.n,
                trainer->tables[0].n);
    mhf_pieces_free(&pieces);
    mhf_merge_list_free(&merges);
    return status;
}
