/* SPDX-License-Identifier: ISC */
/* The private layer over HDF5: what is written is read, what is damaged or lies is refused. */
#include "../../../src/store/h5.h"

#include "mhf/store.h"
#include "store_support.h"

enum { ROWS = 700, COLUMNS = 768 }; /* a row does not divide a MiB */

static float *matrix(void)
{
    float *values = malloc(sizeof(float) * ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)i;
    return values;
}

static void write_matrix(const char *path)
{
    mhf_h5 file;
    float *values = matrix();
    CHECK_OK(mhf_h5_create(path, "mhf-test", &file));
    CHECK_OK(
        mhf_h5_put(&file, "/a/b/matrix", MHF_H5_F32, &(mhf_h5_shape){2, {ROWS, COLUMNS}}, values));
    CHECK_OK(mhf_h5_put(&file, "/empty", MHF_H5_U16, &(mhf_h5_shape){1, {0}}, values));
    CHECK_OK(mhf_h5_put_bytes(&file, "/text", "grüße", 7));
    CHECK_OK(mhf_h5_put_text(&file, "/text", "note", "ä\xe2\x82\xac"));
    CHECK_OK(mhf_h5_put_text(&file, "/text", "nothing", ""));
    CHECK_OK(mhf_h5_put_int(&file, "/", "number", -5));
    CHECK_OK(mhf_h5_put_uint(&file, "/", "large", UINT64_MAX));
    const char *strings[] = {"one", NULL, "three"};
    CHECK_OK(mhf_h5_put_strings(&file, "/list", 3, strings, (const size_t[]){3, 0, 5}));
    CHECK_OK(mhf_h5_finish(&file, MHF_OK));
    free(values);
}

static void test_attributes(void)
{
    const char *path = in_folder("attributes.h5");
    write_matrix(path);
    mhf_h5 file;
    mhf_buf text = {0};
    int64_t number;
    uint64_t large;
    CHECK_OK(mhf_h5_open(path, "mhf-test", &file));
    CHECK_OK(mhf_h5_get_text(&file, "/text", "note", &text));
    CU_ASSERT_STRING_EQUAL(text.data, "ä\xe2\x82\xac");
    CHECK_OK(mhf_h5_get_text(&file, "/text", "nothing", &text));
    CU_ASSERT_STRING_EQUAL(text.data, "");
    CHECK_OK(mhf_h5_get_int(&file, "/", "number", -5, 5, &number));
    CU_ASSERT_EQUAL(number, -5);
    CHECK_OK(mhf_h5_get_uint(&file, "/", "large", &large));
    CU_ASSERT_EQUAL(large, UINT64_MAX);
    CHECK_REFUSED(mhf_h5_get_int(&file, "/", "number", 0, 5, &number), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_get_int(&file, "/", "absent", 0, 5, &number), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_get_int(&file, "/text", "note", 0, 5, &number), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_get_text(&file, "/", "number", &text), MHF_E_DATA, path);
    CHECK_OK(mhf_h5_get_bytes(&file, "/text", &text));
    CU_ASSERT_STRING_EQUAL(text.data, "grüße");
    mhf_h5_strings list;
    CHECK_OK(mhf_h5_get_strings(&file, "/list", &list));
    CU_ASSERT_EQUAL(list.n, 3);
    CU_ASSERT_EQUAL(list.offsets[1], list.offsets[2]);
    CU_ASSERT_EQUAL(memcmp(list.bytes, "onethree", 8), 0);
    mhf_h5_strings_free(&list);
    mhf_buf_free(&text);
    mhf_h5_free(&file);
    CHECK_REFUSED(mhf_h5_open(path, "mhf-tokens", &file), MHF_E_DATA, path);
}

static void test_ranges(void)
{
    const char *path = in_folder("ranges.h5");
    write_matrix(path);
    float *values = matrix(), *found = malloc(sizeof(float) * ROWS * COLUMNS);
    static const int64_t ranges[][2] = {{0, ROWS * COLUMNS},
                                        {0, 1},
                                        {262143, 2},
                                        {262144, 262144},
                                        {100, 300000},
                                        {524287, 13313},
                                        {ROWS * COLUMNS, 0},
                                        {ROWS * COLUMNS - 1, 1},
                                        {768, 768},
                                        {769, 1},
                                        {262144, 13312 + 262144}};
    mhf_h5 file;
    mhf_h5_data data;
    CHECK_OK(mhf_h5_open(path, NULL, &file));
    CHECK_OK(mhf_h5_data_open(&file, "/a/b/matrix", MHF_H5_F32, 2, &data));
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            int64_t first = ranges[i][0], n = ranges[i][1];
            memset(found, 0xff, sizeof(float) * ROWS * COLUMNS);
            CHECK_OK(mhf_h5_data_read(&data, first, n, found));
            CU_ASSERT_EQUAL(memcmp(found, values + first, (size_t)n * sizeof(float)), 0);
        }
    CHECK_REFUSED(mhf_h5_data_read(&data, 0, ROWS * COLUMNS + 1, found), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_read(&data, INT64_MAX, INT64_MAX, found), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_read(&data, -1, 2, found), MHF_E_DATA, path);
    mhf_h5_data_close(&data);
    CHECK_OK(mhf_h5_verify(&file));
    mhf_h5_free(&file);
    free(values);
    free(found);
}

/* Types that are taken for another, ranks, groups for datasets. */
static void test_wrong_kinds(void)
{
    const char *path = in_folder("kinds.h5");
    write_matrix(path);
    mhf_h5 file;
    mhf_h5_data data;
    CHECK_OK(mhf_h5_open(path, NULL, &file));
    CHECK_REFUSED(mhf_h5_data_open(&file, "/a/b/matrix", MHF_H5_U32, 2, &data), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_open(&file, "/a/b/matrix", MHF_H5_F32, 1, &data), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_open(&file, "/a/b", MHF_H5_F32, 1, &data), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_open(&file, "/a/c", MHF_H5_F32, 1, &data), MHF_E_DATA, path);
    CHECK_REFUSED(mhf_h5_data_open(&file, "/text/x", MHF_H5_F32, 1, &data), MHF_E_DATA, path);
    mhf_h5_free(&file);
}

static void test_absent(void)
{
    mhf_h5 file;
    const char *path = in_folder("absent.h5");
    CHECK_REFUSED(mhf_h5_open(path, NULL, &file), MHF_E_IO, path);
    CHECK_REFUSED(mhf_h5_open(folder, NULL, &file), MHF_E_IO, folder);
    path = in_folder("empty.h5");
    write_file(path, "", 0);
    CHECK_REFUSED(mhf_h5_open(path, NULL, &file), MHF_E_DATA, path);
    path = in_folder("text.h5");
    write_file(path, "no HDF5 file at all, whatever its name says, but long enough for a head", 72);
    CHECK_REFUSED(mhf_h5_open(path, NULL, &file), MHF_E_DATA, path);
    path = in_folder("no/such/folder.h5");
    CHECK_REFUSED(mhf_h5_create(path, "mhf-test", &file), MHF_E_IO, path);
}

/* What HDF5 itself would follow or inflate without a word. */
static void hostile(const char *path, const char *what)
{
    hid_t id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t large = (hsize_t)1 << 62, chunk = 1 << 20, dims[1] = {large};
    H5Ldelete(id, "/text", H5P_DEFAULT);
    if (strcmp(what, "external link") == 0)
        H5Lcreate_external("ranges.h5", "/text", id, "/text", H5P_DEFAULT, H5P_DEFAULT);
    else if (strcmp(what, "soft link") == 0)
        H5Lcreate_soft("/list/bytes", id, "/text", H5P_DEFAULT, H5P_DEFAULT);
    else {
        if (strcmp(what, "external storage") == 0) {
            dims[0] = 16;
            H5Pset_external(list, "/etc/passwd", 0, 16);
        } else if (strcmp(what, "compact") == 0) {
            dims[0] = 16;
            H5Pset_layout(list, H5D_COMPACT);
        } else if (strcmp(what, "deflated") == 0) {
            dims[0] = chunk;
            H5Pset_chunk(list, 1, &chunk);
            H5Pset_deflate(list, 9);
        } else { /* claims far more than the file has */
            H5Pset_chunk(list, 1, &chunk);
        }
        hid_t space = H5Screate_simple(1, dims, NULL);
        hid_t data = H5Dcreate2(id, "/text", H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
        H5Dclose(data);
        H5Sclose(space);
    }
    H5Pclose(list);
    H5Fclose(id);
}

static void test_hostile(void)
{
    static const char *const kinds[] = {"external link", "soft link", "external storage",
                                        "compact",       "deflated",  "claims 2^62"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *path = in_folder("hostile.h5");
        mhf_h5 file;
        mhf_buf text = {0};
        write_matrix(path);
        hostile(path, kinds[i]);
        CHECK_OK(mhf_h5_open(path, NULL, &file));
        CHECK_REFUSED(mhf_h5_get_bytes(&file, "/text", &text), MHF_E_DATA, path);
        mhf_h5_free(&file);
        mhf_buf_free(&text);
    }
}

/* A full disk: one sentence with the path, and nothing left behind. */
static void test_no_room(void)
{
    mhf_h5 file;
    CHECK_REFUSED(mhf_h5_create("/dev/full/x.h5", "mhf-test", &file), MHF_E_IO, "/dev/full/x.h5");
    const char *path = in_folder("given-up.h5");
    CHECK_OK(mhf_h5_create(path, "mhf-test", &file));
    CU_ASSERT_EQUAL(mhf_h5_finish(&file, MHF_E_NOMEM), MHF_E_NOMEM);
    CU_ASSERT(!mhf_file_exists(path));
    CU_ASSERT(!mhf_file_exists(in_folder("given-up.h5.tmp")));
}

static void test_same_bytes(void)
{
    mhf_buf a = {0}, b = {0};
    write_matrix(in_folder("a.h5"));
    sleep(1);
    write_matrix(in_folder("b.h5"));
    CHECK_OK(mhf_file_read(in_folder("a.h5"), SIZE_MAX, &a));
    CHECK_OK(mhf_file_read(in_folder("b.h5"), SIZE_MAX, &b));
    CU_ASSERT_EQUAL(a.n, b.n);
    CU_ASSERT(a.n == b.n && memcmp(a.data, b.data, a.n) == 0);
    mhf_buf_free(&a);
    mhf_buf_free(&b);
}

int main(void)
{
    static const test_case cases[] = {{"attributes", test_attributes},   {"ranges", test_ranges},
                                      {"wrong kinds", test_wrong_kinds}, {"absent", test_absent},
                                      {"hostile", test_hostile},         {"no room", test_no_room},
                                      {"same bytes", test_same_bytes}};
    H5dont_atexit();
    folder_make();
    int failed = run_tests("h5", cases, sizeof cases / sizeof *cases);
    folder_remove();
    return failed;
}
