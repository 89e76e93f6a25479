/* SPDX-License-Identifier: ISC */
#include "lines.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/parallel.h"

/* MPI counts are int: long texts go in pieces of this many bytes. */
enum { PIECE = 1 << 26 };

static int piece_of(size_t left)
{
    return left < PIECE ? (int)left : PIECE;
}

static mhf_status share_text(const char *path, int rank, mhf_buf *text)
{
    mhf_status status = MHF_OK;
    if (rank == 0)
        status = mhf_file_read(path, SIZE_MAX / 4, text);
    MHF_TRY(mhf_agree(status));
    int64_t n = (int64_t)text->n;
    MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        status = mhf_new(&text->data, n + 1, 1, "the input");
        text->capacity = (size_t)n + 1;
        text->n = (size_t)n;
    }
    MHF_TRY(mhf_agree(status));
    for (size_t at = 0; at < text->n; at += PIECE)
        MPI_Bcast(text->data + at, piece_of(text->n - at), MPI_BYTE, 0, MPI_COMM_WORLD);
    return MHF_OK;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

static mhf_status find_lines(mhf_lines *lines)
{
    const char *at = lines->text.data, *end = at + lines->text.n;
    int64_t most = 1;
    for (const char *p = at; p < end; p++)
        most += *p == '\n';
    MHF_TRY(mhf_new(&lines->begin, most, sizeof *lines->begin, "lines"));
    MHF_TRY(mhf_new(&lines->length, most, sizeof *lines->length, "lines"));
    MHF_TRY(mhf_new(&lines->number, most, sizeof *lines->number, "lines"));
    MHF_TRY(mhf_new(&lines->owner, most, sizeof *lines->owner, "lines"));
    for (int64_t number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        if (!is_blank(at, n)) {
            lines->begin[lines->n] = at;
            lines->length[lines->n] = n;
            lines->owner[lines->n] = (int32_t)(lines->n % lines->n_ranks);
            lines->number[lines->n++] = number;
        }
        at = newline ? newline + 1 : end;
    }
    return MHF_OK;
}

mhf_status mhf_lines_read(const char *path, mhf_lines *out)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->n_ranks);
    out->name = strcmp(path, "-") == 0 ? "standard input" : path;
    MHF_TRY(share_text(path, out->rank, &out->text));
    return mhf_agree(find_lines(out));
}

void mhf_lines_free(mhf_lines *lines)
{
    mhf_buf_free(&lines->text);
    free(lines->begin);
    free(lines->length);
    free(lines->number);
    free(lines->owner);
    *lines = (mhf_lines){0};
}

mhf_status mhf_lines_parse(const mhf_lines *lines, int64_t i, json_t **object, mhf_buf *where)
{
    *object = NULL;
    mhf_buf_clear(where);
    MHF_TRY(mhf_buf_printf(where, "%s line %" PRId64, lines->name, lines->number[i]));
    MHF_TRY(mhf_json_parse(lines->begin[i], lines->length[i], where->data, object));
    if (json_is_object(*object))
        return MHF_OK;
    json_decref(*object);
    *object = NULL;
    return mhf_fail(MHF_E_DATA, "%s: expected a JSON object", where->data);
}

mhf_status mhf_lines_agree(mhf_status mine, int64_t line)
{
    int64_t at = mine == MHF_OK ? INT64_MAX : line, first;
    MPI_Allreduce(&at, &first, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    return mhf_agree(at == first ? mine : MHF_OK);
}

/* Copy one line of *at to all. */
static mhf_status take_line(const char **at, const char *end, mhf_buf *all)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    const char *next = newline ? newline + 1 : end;
    mhf_status status = mhf_buf_add(all, *at, (size_t)(next - *at));
    *at = next;
    return status;
}

/* Interleave the ranks' answers, rank r's at text[begin[r]..begin[r+1]). */
static mhf_status interleave(const mhf_lines *lines, int64_t first, int64_t last, const char *text,
                             const int64_t *begin, mhf_buf *all)
{
    const char **at;
    MHF_TRY(mhf_new(&at, lines->n_ranks, sizeof *at, "answers"));
    for (int r = 0; r < lines->n_ranks; r++)
        at[r] = text + begin[r];
    mhf_status status = MHF_OK;
    for (int64_t i = first; status == MHF_OK && i < last; i++) {
        int32_t r = lines->owner[i];
        status = take_line(&at[r], text + begin[r + 1], all);
    }
    free(at);
    return status;
}

static void receive_all(const mhf_lines *lines, const mhf_buf *mine, const int64_t *begin,
                        char *text)
{
    if (mine->n > 0)
        memcpy(text, mine->data, mine->n);
    for (int r = 1; r < lines->n_ranks; r++)
        for (int64_t at = begin[r]; at < begin[r + 1]; at += PIECE)
            MPI_Recv(text + at, piece_of((size_t)(begin[r + 1] - at)), MPI_BYTE, r, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

mhf_status mhf_lines_gather(const mhf_lines *lines, int64_t first, int64_t last, mhf_buf *mine,
                            mhf_buf *all)
{
    int64_t *begin = NULL, n = (int64_t)mine->n;
    char *text = NULL;
    mhf_status status =
        mhf_agree(mhf_new(&begin, lines->n_ranks + 1, sizeof *begin, "sizes of answers"));
    if (status != MHF_OK)
        goto out;
    MPI_Gather(&n, 1, MPI_INT64_T, begin + 1, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (lines->rank == 0) {
        for (int r = 0; r < lines->n_ranks; r++)
            begin[r + 1] += begin[r];
        status = mhf_new(&text, begin[lines->n_ranks], 1, "answers");
    }
    if ((status = mhf_agree(status)) != MHF_OK)
        goto out;
    if (lines->rank == 0) {
        receive_all(lines, mine, begin, text);
        status = interleave(lines, first, last, text, begin, all);
    } else {
        for (size_t at = 0; at < mine->n; at += PIECE)
            MPI_Send(mine->data + at, piece_of(mine->n - at), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    status = mhf_agree(status);
out:
    mhf_buf_clear(mine);
    free(begin);
    free(text);
    return status;
}

json_t *mhf_lines_id(const mhf_lines *lines, int64_t i, const json_t *object)
{
    json_t *id = json_object_get(object, "id");
    return id ? json_incref(id) : json_integer(lines->number[i]);
}

mhf_status mhf_lines_ids(const json_t *list, const char *key, const char *where, int32_t size,
                         int32_t **ids, int64_t *n)
{
    if (!json_is_array(list))
        return mhf_fail(MHF_E_DATA, "%s: key '%s' is not a list of token ids", where, key);
    *n = (int64_t)json_array_size(list);
    MHF_TRY(mhf_new(ids, *n, sizeof **ids, "token ids"));
    for (int64_t i = 0; i < *n; i++) {
        const json_t *id = json_array_get(list, (size_t)i);
        if (!json_is_integer(id))
            return mhf_fail(MHF_E_DATA, "%s: key '%s' holds something else than integers", where,
                            key);
        if (json_integer_value(id) < 0 || json_integer_value(id) >= size)
            return mhf_fail(MHF_E_DATA,
                            "%s: key '%s' holds token %" JSON_INTEGER_FORMAT
                            ", expected 0 to %" PRId32,
                            where, key, json_integer_value(id), size - 1);
        (*ids)[i] = (int32_t)json_integer_value(id);
    }
    return MHF_OK;
}
