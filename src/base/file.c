/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t mhf_hash64(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

bool mhf_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

bool mhf_dir_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool mhf_file_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool mhf_path_ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n >= k && strcmp(path + n - k, ending) == 0;
}

mhf_status mhf_path_join(const char *folder, const char *name, mhf_buf *out)
{
    mhf_buf_clear(out);
    size_t n = strlen(folder);
    return mhf_buf_printf(out, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name);
}

mhf_status mhf_file_read(const char *path, size_t limit, mhf_buf *out)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mhf_fail_io(path, "can't open");
    mhf_status status = MHF_OK;
    mhf_buf_clear(out);
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode))
        status = mhf_fail(MHF_E_IO, "%s: is a folder, expected a file", path);
    char *piece = NULL;
    enum { PIECE = 1 << 18 };
    if (status == MHF_OK)
        status = mhf_new(&piece, PIECE, 1, path);
    while (status == MHF_OK) {
        ssize_t n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = mhf_fail_io(path, "can't read");
        if (n <= 0)
            break;
        if ((size_t)n > limit - out->n)
            status = mhf_fail(MHF_E_DATA, "%s: longer than %zu bytes", path, limit);
        else
            status = mhf_buf_add(out, piece, (size_t)n);
    }
    if (status == MHF_OK)
        status = mhf_buf_add(out, "", 0); /* an empty file is an empty string */
    free(piece);
    if (fd != STDIN_FILENO)
        close(fd);
    return status;
}

static mhf_status write_all(int fd, const char *path, const char *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t k = write(fd, bytes + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            int error = errno;
            return mhf_fail(MHF_E_IO, "%s: %zu of %zu bytes written: %s", path, done, n,
                            strerror(error));
        }
        done += (size_t)k;
    }
    return MHF_OK;
}

/* Is the path a way to an open descriptor? What is at its end, be it a file, is written to as it
 * is. */
static bool is_descriptor(const char *path)
{
    static const char *const ways[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strncmp(path, ways[i], strlen(ways[i])) == 0)
            return true;
    return false;
}

/* Is something at the path that is neither a file of its own nor a folder? */
static bool is_stream(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode) &&
           (is_descriptor(path) || !S_ISREG(info.st_mode));
}

/* out = the file that a link leads to, so that the link stays; any other path as it is. */
static mhf_status follow_link(const char *path, mhf_buf *out)
{
    struct stat info;
    const bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    char *target = link ? realpath(path, NULL) : NULL;
    mhf_buf_clear(out);
    mhf_status status = mhf_buf_add_text(out, target ? target : path);
    free(target);
    return status;
}

mhf_status mhf_file_temporary(const char *path, mhf_buf *out)
{
    if (mhf_dir_exists(path))
        return mhf_fail(MHF_E_IO, "%s: is a folder, expected the name of a file", path);
    if (is_stream(path))
        return mhf_fail(MHF_E_IO, "%s: is a device or a pipe, expected the name of a file", path);
    MHF_TRY(follow_link(path, out));
    return mhf_buf_add_text(out, ".tmp");
}

static mhf_status folder_of(const char *path, mhf_buf *out)
{
    const char *slash = strrchr(path, '/');
    mhf_buf_clear(out);
    return slash ? mhf_buf_add(out, path, (size_t)(slash - path) + 1) : mhf_buf_add_text(out, ".");
}

mhf_status mhf_file_check_writable(const char *path)
{
    if (strcmp(path, "-") == 0)
        return MHF_OK;
    if (is_stream(path))
        return access(path, W_OK) == 0 ? MHF_OK : mhf_fail_io(path, "can't write");
    mhf_buf name = {0}, target = {0};
    mhf_status status = mhf_file_temporary(path, &name);
    if (status == MHF_OK)
        status = follow_link(path, &target);
    if (status == MHF_OK)
        status = folder_of(target.data, &name);
    if (status == MHF_OK && access(name.data, W_OK | X_OK) != 0)
        status = mhf_fail_io(path, "can't create");
    mhf_buf_free(&target);
    mhf_buf_free(&name);
    return status;
}

static mhf_status sync_folder_of(const char *path)
{
    mhf_buf folder = {0};
    mhf_status status = folder_of(path, &folder);
    if (status == MHF_OK) {
        int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            status = mhf_fail_io(folder.data, "can't open the folder");
        /* Some file systems can't sync a folder and say EINVAL: nothing more can be done there. */
        else if (fsync(fd) != 0 && errno != EINVAL)
            status = mhf_fail_io(folder.data, "can't sync the folder");
        if (fd >= 0)
            close(fd);
    }
    mhf_buf_free(&folder);
    return status;
}

mhf_status mhf_file_publish(const char *temporary, const char *path)
{
    int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mhf_fail_io(temporary, "can't open");
    int bad = fsync(fd);
    if (bad)
        (void)mhf_fail_io(temporary, "can't sync");
    if (close(fd) != 0 && !bad)
        bad = 1, (void)mhf_fail_io(temporary, "can't close");
    if (bad)
        return MHF_E_IO;
    mhf_buf target = {0};
    mhf_status status = follow_link(path, &target);
    if (status == MHF_OK && rename(temporary, target.data) != 0)
        status = mhf_fail_io(path, "can't rename the finished file to this name");
    if (status == MHF_OK)
        status = sync_folder_of(target.data);
    mhf_buf_free(&target);
    return status;
}

static mhf_status write_stream(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return mhf_fail_io(path, "can't open");
    mhf_status status = write_all(fd, path, bytes, n);
    if (close(fd) != 0 && status == MHF_OK)
        status = mhf_fail_io(path, "can't close");
    return status;
}

mhf_status mhf_file_write(const char *path, const void *bytes, size_t n)
{
    if (strcmp(path, "-") == 0) {
        fflush(stdout);
        return write_all(STDOUT_FILENO, "standard output", bytes, n);
    }
    if (is_stream(path))
        return write_stream(path, bytes, n);
    mhf_buf temporary = {0};
    mhf_status status = mhf_file_temporary(path, &temporary);
    int fd = -1;
    if (status == MHF_OK) {
        fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
            status = mhf_fail_io(temporary.data, "can't create");
    }
    if (fd >= 0) {
        status = write_all(fd, temporary.data, bytes, n);
        if (close(fd) != 0 && status == MHF_OK)
            status = mhf_fail_io(temporary.data, "can't close");
        if (status == MHF_OK)
            status = mhf_file_publish(temporary.data, path);
        if (status != MHF_OK)
            unlink(temporary.data);
    }
    mhf_buf_free(&temporary);
    return status;
}

mhf_status mhf_dir_make(const char *path)
{
    mhf_buf part = {0};
    mhf_status status = mhf_buf_add_text(&part, path);
    for (size_t i = 1; status == MHF_OK && i <= part.n; i++) {
        if (part.data[i] != '/' && part.data[i] != 0)
            continue;
        char kept = part.data[i];
        part.data[i] = 0;
        if (mkdir(part.data, 0777) != 0 && errno != EEXIST)
            status = mhf_fail_io(part.data, "can't make the folder");
        part.data[i] = kept;
    }
    if (status == MHF_OK && !mhf_dir_exists(path))
        status = mhf_fail(MHF_E_IO, "%s: exists and is not a folder", path);
    mhf_buf_free(&part);
    return status;
}
