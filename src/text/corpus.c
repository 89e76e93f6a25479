/* SPDX-License-Identifier: ISC */
/* Reading corpora as streams of documents. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/text.h"
#include "stream.h"

enum { READ_SIZE = 1 << 18 };
/* A longer line or document is taken for damage: memory must not follow a decompression bomb. */
static const size_t document_limit = (size_t)1 << 30;

struct mhf_corpus {
    char *path;
    bool json_lines;
    mhf_stream *stream;
    char *input; /* [capacity], begin..end not given out yet */
    size_t begin, end;
    int64_t capacity;
    bool at_end;
    int64_t line;          /* number of the line given out last */
    mhf_buf document;      /* text of a .txt document */
    mhf_buf repaired;      /* the same with U+FFFD for invalid bytes */
    json_t *object;        /* the .jsonl line whose text is given out */
    int64_t n_repaired;    /* runs of invalid bytes replaced */
    int64_t repaired_line; /* where the first was */
};

/* ---- lines ---------------------------------------------------------------------------------- */

static mhf_status read_more(mhf_corpus *corpus)
{
    if (corpus->begin > 0) {
        memmove(corpus->input, corpus->input + corpus->begin, corpus->end - corpus->begin);
        corpus->end -= corpus->begin;
        corpus->begin = 0;
    }
    if (corpus->end > document_limit)
        return mhf_fail(MHF_E_DATA, "%s line %" PRId64 ": longer than %zu bytes", corpus->path,
                        corpus->line + 1, document_limit);
    MHF_TRY(mhf_grow(&corpus->input, &corpus->capacity, (int64_t)corpus->end + READ_SIZE, 1,
                     "a line of text"));
    size_t n = 0;
    mhf_status status = mhf_stream_read(corpus->stream, corpus->input + corpus->end, READ_SIZE, &n);
    if (status == MHF_E_DATA)
        return mhf_fail_within(status, "%s line %" PRId64, corpus->path, corpus->line + 1);
    corpus->end += n;
    corpus->at_end = n == 0;
    return status;
}

/* *text = the next line without its newline, borrowed until the next call; NULL after the last. */
static mhf_status next_line(mhf_corpus *corpus, const char **text, size_t *n)
{
    size_t searched = 0;
    const char *newline = NULL;
    for (;;) {
        size_t here = corpus->end - corpus->begin;
        if (here > searched)
            newline = memchr(corpus->input + corpus->begin + searched, '\n', here - searched);
        if (newline || corpus->at_end)
            break;
        searched = here;
        MHF_TRY(read_more(corpus));
    }
    *text = NULL;
    *n = 0;
    if (corpus->begin == corpus->end)
        return MHF_OK;
    const char *start = corpus->input + corpus->begin;
    *n = newline ? (size_t)(newline - start) : corpus->end - corpus->begin;
    corpus->begin += *n + (newline != NULL);
    if (corpus->line == 0 && *n >= 3 && memcmp(start, "\xEF\xBB\xBF", 3) == 0) {
        start += 3; /* a byte order mark is no text */
        *n -= 3;
    }
    *text = start;
    corpus->line++;
    return MHF_OK;
}

/* ---- white space and invalid bytes ---------------------------------------------------------- */

/* What Python's str.strip takes away. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

static void strip(const char **text, size_t *n)
{
    uint32_t c;
    int length;
    while ((length = mhf_utf8_decode(*text, *n, &c)) > 0 && is_space(c)) {
        *text += length;
        *n -= (size_t)length;
    }
    while (*n > 0) {
        size_t start = *n - 1;
        while (start > 0 && *n - start < 4 && ((*text)[start] & 0xC0) == 0x80)
            start--;
        length = mhf_utf8_decode(*text + start, *n - start, &c);
        if (length == 0 || start + (size_t)length != *n || !is_space(c))
            return;
        *n = start;
    }
}

/* Length of the longest start of a code point at the invalid text[0..n): what one U+FFFD replaces.
 */
static size_t invalid_length(const char *text, size_t n)
{
    unsigned char lead = (unsigned char)text[0];
    size_t whole = lead >= 0xF0 && lead <= 0xF4   ? 4
                   : lead >= 0xE0 && lead <= 0xEF ? 3
                   : lead >= 0xC2 && lead <= 0xDF ? 2
                                                  : 1;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    size_t i = 1;
    for (; i < whole && i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < low || byte > high)
            break;
        low = 0x80;
        high = 0xBF;
    }
    return i;
}

static mhf_status repair(mhf_corpus *corpus, const char **text, size_t *n)
{
    size_t valid = mhf_utf8_valid(*text, *n);
    if (valid == *n)
        return MHF_OK;
    if (corpus->n_repaired == 0)
        corpus->repaired_line = corpus->line;
    mhf_buf_clear(&corpus->repaired);
    for (size_t i = 0; i < *n;) {
        MHF_TRY(mhf_buf_add(&corpus->repaired, *text + i, valid));
        i += valid;
        if (i < *n) {
            MHF_TRY(mhf_buf_add(&corpus->repaired, "\xEF\xBF\xBD", 3));
            corpus->n_repaired++;
            i += invalid_length(*text + i, *n - i);
        }
        valid = mhf_utf8_valid(*text + i, *n - i);
    }
    *text = corpus->repaired.data;
    *n = corpus->repaired.n;
    return MHF_OK;
}

static void report_repairs(mhf_corpus *corpus)
{
    if (corpus->n_repaired > 0)
        mhf_log(MHF_LOG_WARN,
                "%s: %" PRId64
                " invalid UTF-8 sequences became U+FFFD, the first near line %" PRId64,
                corpus->path, corpus->n_repaired, corpus->repaired_line);
    corpus->n_repaired = 0;
}

/* ---- documents ------------------------------------------------------------------------------ */

static bool is_blank(const char *text, size_t n)
{
    strip(&text, &n);
    return n == 0;
}

static mhf_status next_paragraph(mhf_corpus *corpus, const char **text, size_t *n, bool *end)
{
    mhf_buf *document = &corpus->document;
    mhf_buf_clear(document);
    for (;;) {
        const char *line;
        size_t length;
        MHF_TRY(next_line(corpus, &line, &length));
        if (line && !is_blank(line, length)) {
            if (document->n > 0)
                MHF_TRY(mhf_buf_add(document, "\n", 1));
            MHF_TRY(mhf_buf_add(document, line, length));
            if (document->n > document_limit)
                return mhf_fail(MHF_E_DATA, "%s line %" PRId64 ": document longer than %zu bytes",
                                corpus->path, corpus->line, document_limit);
        } else if (!line || document->n > 0) {
            break;
        }
    }
    *end = document->n == 0;
    *text = document->data;
    *n = document->n;
    strip(text, n);
    return repair(corpus, text, n);
}

static mhf_status next_object(mhf_corpus *corpus, const char **text, size_t *n, bool *end)
{
    json_decref(corpus->object);
    corpus->object = NULL;
    const char *line;
    size_t length;
    do
        MHF_TRY(next_line(corpus, &line, &length));
    while (line && is_blank(line, length));
    *end = line == NULL;
    if (!line)
        return MHF_OK;
    mhf_buf name = {0};
    mhf_status status = mhf_buf_printf(&name, "%s line %" PRId64, corpus->path, corpus->line);
    if (status == MHF_OK)
        status = mhf_json_parse(line, length, name.data, &corpus->object);
    if (status == MHF_OK && !json_is_object(corpus->object))
        status = mhf_fail(MHF_E_DATA, "%s: not a JSON object", name.data);
    if (status == MHF_OK)
        status = mhf_json_string(corpus->object, "text", name.data, text, n);
    if (status == MHF_OK)
        strip(text, n);
    mhf_buf_free(&name);
    return status;
}

mhf_status mhf_corpus_next(mhf_corpus *corpus, const char **text, size_t *n, bool *end)
{
    *text = NULL;
    *n = 0;
    MHF_TRY((corpus->json_lines ? next_object : next_paragraph)(corpus, text, n, end));
    if (*end) {
        *text = NULL;
        report_repairs(corpus);
    }
    return MHF_OK;
}

mhf_status mhf_corpus_next_line(mhf_corpus *corpus, const char **text, size_t *n, bool *end)
{
    if (corpus->json_lines)
        return mhf_corpus_next(corpus, text, n, end);
    MHF_TRY(next_line(corpus, text, n));
    *end = *text == NULL;
    if (*end)
        report_repairs(corpus);
    if (*n > 0 && (*text)[*n - 1] == '\r')
        --*n;
    return repair(corpus, text, n);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* Name without a compressor's ending says the form: *.jsonl, *.jsonl.gz, *.jsonl.zst. */
static bool names_json_lines(const char *path)
{
    size_t n = strlen(path);
    if (n > 3 && strcmp(path + n - 3, ".gz") == 0)
        n -= 3;
    else if (n > 4 && strcmp(path + n - 4, ".zst") == 0)
        n -= 4;
    return n >= 6 && memcmp(path + n - 6, ".jsonl", 6) == 0;
}

mhf_status mhf_corpus_open(const char *path, mhf_corpus **out)
{
    mhf_corpus *corpus;
    MHF_TRY(mhf_new(&corpus, 1, sizeof *corpus, "reading a corpus"));
    corpus->json_lines = names_json_lines(path);
    corpus->path = strdup(path);
    mhf_status status = corpus->path ? mhf_stream_open(path, &corpus->stream)
                                     : mhf_fail(MHF_E_NOMEM, "no memory for the name %s", path);
    if (status != MHF_OK)
        mhf_corpus_close(corpus);
    else
        *out = corpus;
    return status;
}

void mhf_corpus_close(mhf_corpus *corpus)
{
    if (!corpus)
        return;
    mhf_stream_close(corpus->stream);
    json_decref(corpus->object);
    mhf_buf_free(&corpus->document);
    mhf_buf_free(&corpus->repaired);
    free(corpus->input);
    free(corpus->path);
    free(corpus);
}

bool mhf_corpus_held_out(const char *text, size_t n, double fraction)
{
    return (double)mhf_hash64(text, n) * 0x1p-64 < fraction;
}
