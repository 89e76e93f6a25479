/* SPDX-License-Identifier: ISC */
/* mhf tokenizer encode and decode: standard input to standard output, a line for a line. */
#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

typedef struct arguments {
    mhf_common common;
    bool jsonl, special, skip_special;
} arguments;

enum { KEY_JSONL = 0x100, KEY_SPECIAL, KEY_SKIP_SPECIAL };

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case KEY_JSONL:
        a->jsonl = true;
        break;
    case KEY_SPECIAL:
        a->special = true;
        break;
    case KEY_SKIP_SPECIAL:
        a->skip_special = true;
        break;
    }
}

static const struct argp_option encode_options[] = {
    {"jsonl", KEY_JSONL, NULL, 0,
     "Lines are {\"text\"}, answers {\"ids\", \"tokens\": as the vocabulary spells them}", 0},
    {"special", KEY_SPECIAL, NULL, 0, "Apply the template (BOS, EOS)", 0},
    {0}};
static const mhf_command encode_command = {
    .name = "mhf tokenizer encode",
    .operands = "TOKENIZER",
    .about = "Encode each line of standard input to token ids, a line for a line.",
    .options = encode_options,
    .special_names = true,
    .take = take};

static const struct argp_option decode_options[] = {
    {"skip-special", KEY_SKIP_SPECIAL, NULL, 0, "Leave special tokens out", 0}, {0}};
static const mhf_command decode_command = {
    .name = "mhf tokenizer decode",
    .operands = "TOKENIZER",
    .about = "Decode each line of standard input, {\"ids\"}, to {\"text\"}.",
    .options = decode_options,
    .special_names = true,
    .take = take};

typedef struct work {
    const arguments *arguments;
    const mhf_tokenizer *tokenizer;
    mhf_encoding encoding;
    mhf_buf text, out;
    char place[64]; /* "standard input line 7" */
} work;

/* Take ownership of the pieces of a line's answer as they come: jansson does, on failure too. */
static mhf_status print_answer(work *w, json_t *answer, bool whole)
{
    mhf_status status = whole && answer
                            ? mhf_json_print(answer, &w->out)
                            : mhf_fail(MHF_E_NOMEM, "%s: no memory for the answer", w->place);
    json_decref(answer);
    return status == MHF_OK ? mhf_buf_add(&w->out, "\n", 1) : status;
}

static mhf_status print_encoding(work *w)
{
    json_t *answer = json_object(), *ids = json_array(), *tokens = json_array();
    bool whole = json_object_set_new(answer, "ids", ids) == 0;
    whole = json_object_set_new(answer, "tokens", tokens) == 0 && whole;
    for (int64_t i = 0; i < w->encoding.n && whole; i++) {
        size_t n;
        const char *piece = mhf_tokenizer_piece(w->tokenizer, w->encoding.ids[i], &n);
        whole = json_array_append_new(ids, json_integer(w->encoding.ids[i])) == 0 &&
                json_array_append_new(tokens, json_stringn(piece, n)) == 0;
    }
    return print_answer(w, answer, whole);
}

static mhf_status encode_text(work *w, const char *text, size_t n)
{
    int flags = w->arguments->special ? MHF_ENCODE_TEMPLATE : MHF_ENCODE_PLAIN;
    mhf_status status = mhf_tokenizer_encode(w->tokenizer, text, n, flags, &w->encoding);
    if (status != MHF_OK)
        return mhf_fail_within(status, "%s", w->place);
    if (w->arguments->jsonl)
        return print_encoding(w);
    for (int64_t i = 0; i < w->encoding.n; i++)
        MHF_TRY(mhf_buf_printf(&w->out, i > 0 ? " %d" : "%d", w->encoding.ids[i]));
    return mhf_buf_add(&w->out, "\n", 1);
}

/* Lines of JSON may be parted by empty ones. */
static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!memchr(" \t\r\n", line[i], 4))
            return false;
    return true;
}

static mhf_status encode_line(work *w, const char *line, size_t n)
{
    if (!w->arguments->jsonl)
        return encode_text(w, line, n);
    json_t *json;
    const char *text;
    size_t n_text;
    if (is_blank(line, n))
        return MHF_OK;
    MHF_TRY(mhf_json_parse(line, n, w->place, &json));
    mhf_status status = mhf_json_string(json, "text", w->place, &text, &n_text);
    if (status == MHF_OK)
        status = encode_text(w, text, n_text);
    json_decref(json);
    return status;
}

static mhf_status take_ids(work *w, const json_t *ids)
{
    mhf_encoding *encoding = &w->encoding;
    int64_t n = (int64_t)json_array_size(ids);
    if (!json_is_array(ids))
        return mhf_fail(MHF_E_DATA, "%s: key 'ids' is not a list", w->place);
    MHF_TRY(mhf_grow(&encoding->ids, &encoding->capacity, n, sizeof *encoding->ids, "ids"));
    for (int64_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(ids, (size_t)i);
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id > INT32_MAX)
            return mhf_fail(MHF_E_DATA, "%s: ids[%lld] is not a token id", w->place, (long long)i);
        encoding->ids[i] = (mhf_token)id;
    }
    encoding->n = n;
    return MHF_OK;
}

static mhf_status decode_line(work *w, const char *line, size_t n)
{
    json_t *json;
    if (is_blank(line, n))
        return MHF_OK;
    MHF_TRY(mhf_json_parse(line, n, w->place, &json));
    mhf_status status = take_ids(w, json_object_get(json, "ids"));
    json_decref(json);
    MHF_TRY(status);
    mhf_buf_clear(&w->text);
    status = mhf_tokenizer_decode(w->tokenizer, w->encoding.ids, w->encoding.n,
                                  w->arguments->skip_special, &w->text);
    if (status != MHF_OK)
        return mhf_fail_within(status, "%s", w->place);
    json_t *answer = json_object();
    json_t *text = json_stringn(w->text.data ? w->text.data : "", w->text.n);
    return print_answer(w, answer, json_object_set_new(answer, "text", text) == 0);
}

static mhf_status flush(work *w, size_t limit)
{
    if (w->out.n < limit || w->out.n == 0)
        return MHF_OK;
    mhf_status status = mhf_command_print(&w->out);
    mhf_buf_clear(&w->out);
    return status;
}

static mhf_status each_line(work *w, mhf_status (*run)(work *w, const char *line, size_t n))
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    mhf_status status = MHF_OK;
    for (long long i = 1; status == MHF_OK && (n = getline(&line, &capacity, stdin)) >= 0; i++) {
        snprintf(w->place, sizeof w->place, "standard input line %lld", i);
        if (n > 0 && line[n - 1] == '\n')
            n--;
        status = run(w, line, (size_t)n);
        if (status == MHF_OK)
            status = flush(w, 1 << 16);
    }
    if (status == MHF_OK && ferror(stdin))
        status = mhf_fail_io("standard input", "can't read");
    free(line);
    mhf_status flushed = flush(w, 0); /* what is answered is said, also before an error */
    return status != MHF_OK ? status : flushed;
}

static mhf_status run(const mhf_command *command, int argc, char **argv,
                      mhf_status (*run_line)(work *w, const char *line, size_t n))
{
    arguments a = {0};
    MHF_TRY(mhf_command_parse(command, argc, argv, &a, &a.common));
    if (a.common.rank != 0)
        return MHF_OK;
    mhf_tokenizer *tokenizer = NULL;
    MHF_TRY(mhf_command_tokenizer(a.common.operands[0], &a.common.names, &tokenizer));
    work w = {.arguments = &a, .tokenizer = tokenizer};
    mhf_status status = each_line(&w, run_line);
    mhf_encoding_free(&w.encoding);
    mhf_buf_free(&w.text);
    mhf_buf_free(&w.out);
    mhf_tokenizer_free(tokenizer);
    return status;
}

mhf_status mhf_tokenizer_encode_command(int argc, char **argv)
{
    return run(&encode_command, argc, argv, encode_line);
}

mhf_status mhf_tokenizer_decode_command(int argc, char **argv)
{
    return run(&decode_command, argc, argv, decode_line);
}
