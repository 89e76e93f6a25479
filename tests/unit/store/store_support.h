/* SPDX-License-Identifier: ISC */
/* What the tests of files share: a folder that goes away, reading and damaging files. */
#ifndef MHF_STORE_SUPPORT_H
#define MHF_STORE_SUPPORT_H

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "support.h"

static char folder[256];

/* Path of a name in the test's folder; the buffer holds the last 8 answers. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next];
    next = (next + 1) % 8;
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void folder_make(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/mhf-store-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        abort();
}

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static inline void folder_remove(void)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* Whether mhf_error() is one sentence that names the file. */
static inline bool names_file(const char *path)
{
    return strstr(mhf_error(), path) && !strchr(mhf_error(), '\n');
}

#define CHECK_REFUSED(call, status, path)                                                          \
    do {                                                                                           \
        mhf_status refused_ = (call);                                                              \
        if (refused_ != (status) || !names_file(path))                                             \
            fprintf(stderr, "\n    %s:%d: %s gives %d: %s\n", __FILE__, __LINE__, #call,           \
                    (int)refused_, mhf_error());                                                   \
        CU_ASSERT_EQUAL(refused_, (status));                                                       \
        CU_ASSERT(names_file(path));                                                               \
    } while (0)

#endif
