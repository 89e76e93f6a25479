/* SPDX-License-Identifier: ISC */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { INPUT_SIZE = 1 << 17 };

struct mhf_stream {
    char *path;
    int fd;
    bool at_end;  /* the file has no more bytes */
    bool partial; /* a member or frame is open */
    mhf_status (*read)(mhf_stream *stream, char *out, size_t capacity, size_t *n);
    unsigned char *input; /* [INPUT_SIZE] compressed bytes, begin..end not used yet */
    size_t begin, end;
    z_stream gzip;
    bool gzip_ready;
    ZSTD_DStream *zstd;
};

static mhf_status read_file(mhf_stream *stream, void *out, size_t capacity, size_t *n)
{
    ssize_t k;
    do
        k = read(stream->fd, out, capacity);
    while (k < 0 && errno == EINTR);
    if (k < 0)
        return mhf_fail_io(stream->path, "can't read");
    *n = (size_t)k;
    stream->at_end = k == 0;
    return MHF_OK;
}

static mhf_status read_plain(mhf_stream *stream, char *out, size_t capacity, size_t *n)
{
    return read_file(stream, out, capacity, n);
}

/* Make some compressed bytes available unless the file is at its end. */
static mhf_status fill(mhf_stream *stream)
{
    if (stream->begin < stream->end || stream->at_end)
        return MHF_OK;
    stream->begin = 0;
    return read_file(stream, stream->input, INPUT_SIZE, &stream->end);
}

/* A gzip file may hold several members, one after another. */
static mhf_status read_gzip(mhf_stream *stream, char *out, size_t capacity, size_t *n)
{
    z_stream *z = &stream->gzip;
    *n = 0;
    while (*n == 0) {
        MHF_TRY(fill(stream));
        if (stream->begin == stream->end) {
            if (stream->partial)
                return mhf_fail(MHF_E_DATA, "the gzip data end early");
            return MHF_OK;
        }
        stream->partial = true;
        z->next_in = stream->input + stream->begin;
        z->avail_in = (uInt)(stream->end - stream->begin);
        z->next_out = (Bytef *)out;
        z->avail_out = (uInt)(capacity < INPUT_SIZE ? capacity : INPUT_SIZE);
        uInt room = z->avail_out;
        int code = inflate(z, Z_NO_FLUSH);
        stream->begin = stream->end - z->avail_in;
        *n = room - z->avail_out;
        if (code == Z_STREAM_END) {
            stream->partial = false;
            inflateReset(z);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return mhf_fail(MHF_E_DATA, "the gzip data are damaged: %s",
                            z->msg ? z->msg : zError(code));
        }
    }
    return MHF_OK;
}

static mhf_status read_zstd(mhf_stream *stream, char *out, size_t capacity, size_t *n)
{
    *n = 0;
    while (*n == 0) {
        MHF_TRY(fill(stream));
        /* At the end of the file what the library still holds comes out first. */
        ZSTD_inBuffer input = {stream->input, stream->end, stream->begin};
        ZSTD_outBuffer output = {out, capacity, 0};
        bool no_input = input.pos == input.size;
        if (no_input && !stream->partial)
            return MHF_OK;
        size_t code = ZSTD_decompressStream(stream->zstd, &output, &input);
        if (ZSTD_isError(code))
            return mhf_fail(MHF_E_DATA, "the zstd data are damaged: %s", ZSTD_getErrorName(code));
        stream->partial = code != 0;
        stream->begin = input.pos;
        *n = output.pos;
        if (no_input && *n == 0 && stream->partial)
            return mhf_fail(MHF_E_DATA, "the zstd data end early");
    }
    return MHF_OK;
}

static mhf_status prepare(mhf_stream *stream)
{
    stream->read = read_plain;
    bool gzip = mhf_path_ends_with(stream->path, ".gz");
    bool zstd = mhf_path_ends_with(stream->path, ".zst");
    if (!gzip && !zstd)
        return MHF_OK;
    MHF_TRY(mhf_new(&stream->input, INPUT_SIZE, 1, "reading a file"));
    if (gzip) {
        enum { GZIP_WINDOW = 15 + 16 };
        stream->read = read_gzip;
        stream->gzip_ready = inflateInit2(&stream->gzip, GZIP_WINDOW) == Z_OK;
    } else {
        stream->read = read_zstd;
        stream->zstd = ZSTD_createDStream();
    }
    if (!stream->gzip_ready && !stream->zstd)
        return mhf_fail(MHF_E_NOMEM, "no memory to decompress %s", stream->path);
    return MHF_OK;
}

mhf_status mhf_stream_open(const char *path, mhf_stream **out)
{
    mhf_stream *stream;
    MHF_TRY(mhf_new(&stream, 1, sizeof *stream, "reading a file"));
    struct stat info;
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    mhf_status status = MHF_OK;
    if (stream->fd < 0)
        status = mhf_fail_io(path, "can't open");
    else if (fstat(stream->fd, &info) == 0 && S_ISDIR(info.st_mode))
        status = mhf_fail(MHF_E_IO, "%s: is a folder, expected a file", path);
    else if (!(stream->path = strdup(path)))
        status = mhf_fail(MHF_E_NOMEM, "no memory for the name %s", path);
    if (status == MHF_OK)
        status = prepare(stream);
    if (status != MHF_OK)
        mhf_stream_close(stream);
    else
        *out = stream;
    return status;
}

mhf_status mhf_stream_read(mhf_stream *stream, char *out, size_t capacity, size_t *n)
{
    return stream->read(stream, out, capacity, n);
}

void mhf_stream_close(mhf_stream *stream)
{
    if (!stream)
        return;
    if (stream->gzip_ready)
        inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    free(stream->input);
    free(stream->path);
    free(stream);
}
