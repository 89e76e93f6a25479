/* SPDX-License-Identifier: ISC */
/* Files are whole or absent, devices stay devices, and what can't be written is known early. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "support.h"

static char folder[] = "/tmp/mhf-file-XXXXXX";

/* Path in the test's folder; the last 4 answers stay. */
static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next = (next + 1) % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void check_content(const char *path, const char *expected)
{
    mhf_buf found = {0};
    CHECK_OK(mhf_file_read(path, 1 << 20, &found));
    CU_ASSERT_STRING_EQUAL(found.data, expected);
    mhf_buf_free(&found);
}

static void test_write(void)
{
    const char *path = in_folder("a");
    CHECK_OK(mhf_file_write(path, "one", 3));
    check_content(path, "one");
    CHECK_OK(mhf_file_write(path, "", 0));
    check_content(path, "");
    CHECK_OK(mhf_file_write(path, "second", 6));
    check_content(path, "second");
    CU_ASSERT_FALSE(mhf_file_exists(in_folder("a.tmp")));
    CU_ASSERT_EQUAL(mhf_file_write(in_folder("none/a"), "x", 1), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "none/a"));
    CHECK_OK(mhf_dir_make(in_folder("deep/er")));
    CU_ASSERT_EQUAL(mhf_file_write(in_folder("deep/er"), "x", 1), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "folder"));
    CU_ASSERT_FALSE(mhf_file_exists(in_folder("deep/er.tmp")));
    CU_ASSERT_EQUAL(mhf_dir_make(in_folder("a/b")), MHF_E_IO); /* a is a file */
}

/* A link stays a link; /dev/stdout is one, and its target is somebody's open file. */
static void test_links(void)
{
    struct stat info;
    CHECK_OK(mhf_file_write(in_folder("target"), "old", 3));
    CU_ASSERT_EQUAL_FATAL(symlink("target", in_folder("link")), 0);
    CHECK_OK(mhf_file_check_writable(in_folder("link")));
    CHECK_OK(mhf_file_write(in_folder("link"), "new", 3));
    CU_ASSERT_TRUE(lstat(in_folder("link"), &info) == 0 && S_ISLNK(info.st_mode));
    check_content(in_folder("target"), "new");
    CU_ASSERT_EQUAL_FATAL(symlink("absent", in_folder("dangling")), 0);
    CHECK_OK(mhf_file_write(in_folder("dangling"), "new", 3));
    check_content(in_folder("dangling"), "new");

    char path[64];
    int fd = open(in_folder("open"), O_RDWR | O_CREAT, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, "first ", 6), 6);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    CHECK_OK(mhf_file_write(path, "second", 6));
    close(fd);
    check_content(in_folder("open"), "first second");
}

static void test_read(void)
{
    mhf_buf found = {0};
    CHECK_OK(mhf_file_write(in_folder("r"), "abcdef", 6));
    CHECK_OK(mhf_file_read(in_folder("r"), 6, &found));
    CU_ASSERT_EQUAL(found.n, 6);
    CU_ASSERT_EQUAL(mhf_file_read(in_folder("r"), 5, &found), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_file_read(in_folder("absent"), 5, &found), MHF_E_IO);
    CU_ASSERT_EQUAL(mhf_file_read(folder, 5, &found), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "folder"));
    mhf_buf_free(&found);
}

static void *read_pipe(void *text)
{
    int fd = open(in_folder("pipe"), O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, 15);
    if (fd >= 0)
        close(fd);
    return n > 0 ? text : NULL;
}

static bool is_device(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISCHR(info.st_mode);
}

/* A rename onto /dev/null would put a file in its place: as root on the whole machine. */
static void test_streams(void)
{
    CHECK_OK(mhf_file_check_writable("/dev/null"));
    CHECK_OK(mhf_file_write("/dev/null", "text", 4));
    CU_ASSERT_TRUE(is_device("/dev/null"));
    CU_ASSERT_EQUAL(mhf_file_write("/dev/full", "text", 4), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "/dev/full"));
    CU_ASSERT_TRUE(is_device("/dev/full"));
    mhf_buf temporary = {0};
    CU_ASSERT_EQUAL(mhf_file_temporary("/dev/null", &temporary), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "device"));
    mhf_buf_free(&temporary);

    static char text[16];
    pthread_t reader;
    CU_ASSERT_EQUAL_FATAL(mkfifo(in_folder("pipe"), 0600), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&reader, NULL, read_pipe, text), 0);
    CHECK_OK(mhf_file_write(in_folder("pipe"), "through", 7));
    pthread_join(reader, NULL);
    CU_ASSERT_STRING_EQUAL(text, "through");
}

static void test_check_writable(void)
{
    CHECK_OK(mhf_file_check_writable("-"));
    CHECK_OK(mhf_file_check_writable(in_folder("new")));
    CU_ASSERT_FALSE(mhf_file_exists(in_folder("new")));
    CU_ASSERT_EQUAL(mhf_file_check_writable(in_folder("none/new")), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), strerror(ENOENT)));
    CU_ASSERT_EQUAL(mhf_file_check_writable(folder), MHF_E_IO);
}

static void test_paths(void)
{
    mhf_buf path = {0};
    CHECK_OK(mhf_path_join("a", "b", &path));
    CU_ASSERT_STRING_EQUAL(path.data, "a/b");
    CU_ASSERT_TRUE(mhf_file_same("/dev/null", "/dev/../dev/null"));
    CU_ASSERT_FALSE(mhf_file_same("/dev/null", "/dev/zero"));
    CU_ASSERT_FALSE(mhf_file_same(in_folder("absent"), in_folder("absent")));
    CHECK_OK(mhf_path_join("/", "b", &path));
    CU_ASSERT_STRING_EQUAL(path.data, "/b");
    mhf_buf_free(&path);
}

int main(void)
{
    static const test_case cases[] = {
        {"write", test_write},
        {"read", test_read},
        {"links", test_links},
        {"devices and pipes", test_streams},
        {"asked before", test_check_writable},
        {"paths", test_paths},
    };
    if (!mkdtemp(folder))
        return 1;
    int failed = run_tests("base.file", cases, sizeof cases / sizeof *cases);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
