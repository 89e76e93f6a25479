/* SPDX-License-Identifier: ISC */
/* Opening, creating and finishing HDF5 files, and saying why HDF5 failed. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5.h"

enum { FORMAT_VERSION = 1, SUPERBLOCK = 48, REASON_MAX = 240 };

/* ---- why ------------------------------------------------------------------------------------ */

static herr_t take_innermost(unsigned n, const H5E_error2_t *error, void *reason)
{
    if (n == 0 && error->desc)
        snprintf(reason, REASON_MAX, "%s", error->desc);
    return 0;
}

/* HDF5 wraps strerror's words in a list of its own variables: keep the words. Returns whether there
 * were any. */
static bool keep_system_reason(char *reason)
{
    static const char mark[] = "error message = '";
    char *words = strstr(reason, mark);
    if (!words)
        return false;
    words += sizeof mark - 1;
    words[strcspn(words, "'")] = 0;
    memmove(reason, words, strlen(words) + 1);
    return true;
}

mhf_status mhf_h5_fail(mhf_status status, const mhf_h5 *file, const char *format, ...)
{
    char reason[REASON_MAX] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, reason);
    if (keep_system_reason(reason))
        status = MHF_E_IO;
    for (char *c = reason; *c; c++) /* a damaged file's names may stand in it */
        if ((unsigned char)*c < 32)
            *c = ' ';
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *path = file->temporary.n ? file->temporary.data : file->path.data;
    return mhf_fail(status, "%s: %s: %s", path ? path : "?", what, reason);
}

/* ---- property lists ------------------------------------------------------------------------- */

/* Format v110: every piece of metadata has a checksum of HDF5's own. No file locks: writers have a
 * name of their own until the rename, and many cluster file systems can't lock. */
static hid_t access_new(MPI_Comm comm)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0)
        return access;
    bool bad = H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
               H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
               H5Pset_file_locking(access, 0, 1) < 0;
    if (!bad && comm != MPI_COMM_NULL)
        bad = H5Pset_fapl_mpio(access, comm, MPI_INFO_NULL) < 0;
    if (bad) {
        H5Pclose(access);
        return -1;
    }
    return access;
}

/* No times: the same content is the same bytes. Links and attributes stay in their object's header,
 * however many: HDF5 1.10.8 crashes when it walks through a damaged heap of them. */
hid_t mhf_h5_creation_new(hid_t class)
{
    enum { MOST = 65535 };
    hid_t list = H5Pcreate(class);
    bool bad =
        list >= 0 &&
        (H5Pset_obj_track_times(list, 0) < 0 || H5Pset_attr_phase_change(list, MOST, 0) < 0 ||
         (class != H5P_DATASET_CREATE && H5Pset_link_phase_change(list, MOST, 0) < 0));
    if (bad) {
        H5Pclose(list);
        return -1;
    }
    return list;
}

static hid_t create_quietly(const char *path, hid_t access)
{
    hid_t creation = mhf_h5_creation_new(H5P_FILE_CREATE);
    if (creation < 0)
        return creation;
    hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    return id;
}

static mhf_status name_file(const char *path, bool writing, mhf_h5 *file)
{
    *file = (mhf_h5){0};
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    MHF_TRY(mhf_buf_add_text(&file->path, path));
    return writing ? mhf_file_temporary(path, &file->temporary) : MHF_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

mhf_status mhf_h5_create(const char *path, const char *format, mhf_h5 *file)
{
    hid_t access = -1;
    mhf_status status = name_file(path, true, file);
    if (status != MHF_OK)
        goto out;
    /* HDF5 says only "unable to open file": let the system tell why. */
    int fd = open(file->temporary.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = mhf_fail_io(file->temporary.data, "can't create");
        mhf_buf_free(&file->temporary); /* not ours to remove */
        goto out;
    }
    close(fd);
    access = access_new(MPI_COMM_NULL);
    file->id = access < 0 ? -1 : create_quietly(file->temporary.data, access);
    if (file->id < 0) {
        status = mhf_h5_fail(MHF_E_IO, file, "can't create");
        goto out;
    }
    status = mhf_h5_put_text(file, "/", "format", format);
    if (status == MHF_OK)
        status = mhf_h5_put_int(file, "/", "format_version", FORMAT_VERSION);
    if (status == MHF_OK)
        status = mhf_h5_put_text(file, "/", "creator", "mhf " MHF_VERSION);
out:
    if (access >= 0)
        H5Pclose(access);
    if (status != MHF_OK)
        mhf_h5_free(file);
    return status;
}

mhf_status mhf_h5_join(const char *path, MPI_Comm comm, mhf_h5 *file)
{
    mhf_status status = name_file(path, true, file);
    /* Even a rank without memory for a name takes part in the collective open. */
    hid_t access = access_new(comm);
    const char *name = file->temporary.data ? file->temporary.data : "";
    file->id = access < 0 ? -1 : H5Fopen(name, H5F_ACC_RDWR, access);
    file->parallel = true;
    if (status == MHF_OK && file->id < 0)
        status = mhf_h5_fail(MHF_E_IO, file, "can't open to write together");
    if (access >= 0)
        H5Pclose(access);
    return status;
}

mhf_status mhf_h5_close(mhf_h5 *file)
{
    if (file->id <= 0)
        return MHF_OK;
    hid_t id = file->id;
    file->id = 0;
    if (H5Fclose(id) < 0)
        return mhf_h5_fail(MHF_E_IO, file, "can't close");
    return MHF_OK;
}

mhf_status mhf_h5_publish(mhf_h5 *file)
{
    mhf_status status = mhf_file_publish(file->temporary.data, file->path.data);
    if (status == MHF_OK)
        mhf_buf_free(&file->temporary);
    mhf_h5_free(file);
    return status;
}

mhf_status mhf_h5_finish(mhf_h5 *file, mhf_status status)
{
    if (status == MHF_OK)
        status = mhf_h5_close(file);
    if (status == MHF_OK)
        return mhf_h5_publish(file);
    mhf_h5_free(file);
    return status;
}

void mhf_h5_free(mhf_h5 *file)
{
    if (file->id > 0)
        H5Fclose(file->id);
    if (file->temporary.n && !file->parallel)
        unlink(file->temporary.data);
    mhf_buf_free(&file->path);
    mhf_buf_free(&file->temporary);
    *file = (mhf_h5){0};
}

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t little_endian(const unsigned char *bytes, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Look at the superblock ourselves: only the newer formats have checksums in all their metadata,
 * and a file cut short is told as such. */
static mhf_status check_superblock(int fd, mhf_h5 *file)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char block[SUPERBLOCK];
    const char *path = file->path.data;
    struct stat info;
    if (fstat(fd, &info) != 0)
        return mhf_fail_io(path, "can't tell the size");
    if (S_ISDIR(info.st_mode))
        return mhf_fail(MHF_E_IO, "%s: is a folder, expected a file", path);
    if (!S_ISREG(info.st_mode))
        return mhf_fail(MHF_E_DATA, "%s: is not a regular file, which HDF5 needs", path);
    file->bytes = info.st_size;
    ssize_t n = pread(fd, block, sizeof block, 0);
    if (n < 0)
        return mhf_fail_io(path, "can't read");
    if (n < SUPERBLOCK || memcmp(block, signature, sizeof signature) != 0)
        return mhf_fail(MHF_E_DATA, "%s: is not an HDF5 file", path);
    if (block[8] < 2 || block[8] > 3)
        return mhf_fail(MHF_E_DATA,
                        "%s: HDF5 superblock of version %d, expected 2 or 3 (format v110)", path,
                        block[8]);
    uint64_t end = little_endian(block + 28, 8);
    if (block[9] != 8 || block[10] != 8 || end > (uint64_t)file->bytes)
        return mhf_fail(MHF_E_DATA, "%s: cut short or damaged: %lld bytes, its head tells %llu",
                        path, (long long)file->bytes, (unsigned long long)end);
    return MHF_OK;
}

static mhf_status check_format(const mhf_h5 *file, const char *format)
{
    mhf_buf found = {0};
    int64_t version;
    mhf_status status = mhf_h5_get_text(file, "/", "format", &found);
    if (status == MHF_OK)
        status = mhf_h5_get_int(file, "/", "format_version", 1, FORMAT_VERSION, &version);
    if (status == MHF_OK && format && strcmp(found.data, format) != 0)
        status = mhf_fail(MHF_E_DATA, "%s: its format is '%.40s', expected '%s'", file->path.data,
                          found.data, format);
    mhf_buf_free(&found);
    return status;
}

mhf_status mhf_h5_open(const char *path, const char *format, mhf_h5 *file)
{
    hid_t access = -1;
    mhf_status status = name_file(path, false, file);
    int fd = -1;
    if (status != MHF_OK)
        goto out;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    status = fd < 0 ? mhf_fail_io(path, "can't open") : check_superblock(fd, file);
    if (status != MHF_OK)
        goto out;
    access = access_new(MPI_COMM_NULL);
    file->id = access < 0 ? -1 : H5Fopen(path, H5F_ACC_RDONLY, access);
    status = file->id < 0 ? mhf_h5_fail(MHF_E_DATA, file, "can't be opened as HDF5")
                          : check_format(file, format);
out:
    if (access >= 0)
        H5Pclose(access);
    if (fd >= 0)
        close(fd);
    if (status != MHF_OK)
        mhf_h5_free(file);
    return status;
}
