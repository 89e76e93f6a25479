/* SPDX-License-Identifier: ISC */
#include <math.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "mhf/text.h"
#include "support.h"

/* Path of a file of this process's own in the working folder. */
static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "corpus-test-%d-%s", (int)getpid(), name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(path_of(name), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, n, file), n);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Read the file to its end and remove it. */
static mhf_status read_all(const char *name, mhf_buf *out)
{
    mhf_corpus *corpus;
    mhf_buf_clear(out);
    mhf_status status = mhf_corpus_open(path_of(name), &corpus);
    for (bool end = false; status == MHF_OK && !end;) {
        const char *text;
        size_t n;
        status = mhf_corpus_next(corpus, &text, &n, &end);
        if (status == MHF_OK && end) {
            CU_ASSERT_PTR_NULL(text);
            mhf_corpus_close(corpus);
        } else if (status == MHF_OK) {
            CHECK_OK(mhf_buf_add_text(out, "["));
            CHECK_OK(mhf_buf_add(out, text, n));
            CHECK_OK(mhf_buf_add_text(out, "]"));
        } else {
            mhf_corpus_close(corpus);
        }
    }
    CU_ASSERT_EQUAL(unlink(path_of(name)), 0);
    return status;
}

static void expect(const char *name, const void *bytes, size_t n, const char *expected)
{
    mhf_buf found = {0};
    write_file(name, bytes, n);
    CHECK_OK(read_all(name, &found));
    CU_ASSERT_STRING_EQUAL(found.data ? found.data : "", expected);
    mhf_buf_free(&found);
}

static void expect_failure(const char *name, const void *bytes, size_t n, const char *place)
{
    mhf_buf found = {0};
    write_file(name, bytes, n);
    CU_ASSERT_EQUAL(read_all(name, &found), MHF_E_DATA);
    if (!strstr(mhf_error(), place))
        fprintf(stderr, "\n    found '%s', expected '%s' in it\n", mhf_error(), place);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), place));
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), path_of(name)));
    mhf_buf_free(&found);
}

#define EXPECT(name, text, expected)      expect(name, text, sizeof text - 1, expected)
#define EXPECT_FAILURE(name, text, place) expect_failure(name, text, sizeof text - 1, place)

static void test_paragraphs(void)
{
    EXPECT("a.txt", "", "");
    EXPECT("a.txt", "\n \n\n", "");
    EXPECT("a.txt", "one", "[one]");
    EXPECT("a.txt", "one\ntwo\n\nthree\n", "[one\ntwo][three]");
    EXPECT("a.txt", "\n\n  one \n two \n \t\n\n\nthree", "[one \n two][three]");
    EXPECT("a.txt", "one\r\n\r\ntwo\r\n", "[one][two]");
    EXPECT("a.txt", "\xEF\xBB\xBFone", "[one]");
    EXPECT("a", "no ending\n\nis text", "[no ending][is text]");
}

static void test_unicode_space(void)
{
    /* All of Python's str.strip; not U+200B and U+FEFF. */
    EXPECT("a.txt", "\xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\x80x\xE2\x80\x8A\xE2\x80\xA8\xE2\x80\xA9",
           "[x]");
    EXPECT("a.txt", "\x1C\x1F\x0B\x0Cx\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80", "[x]");
    EXPECT("a.txt", "\xE2\x80\x8Bx\xE2\x80\x8B", "[\xE2\x80\x8Bx\xE2\x80\x8B]");
    EXPECT("a.txt", "one\n\xE3\x80\x80\ntwo", "[one][two]");
}

static void test_invalid_text(void)
{
    /* One U+FFFD for each longest start of a code point, as Python's errors="replace". */
    EXPECT("a.txt", "a\xFFz", "[a\xEF\xBF\xBDz]");
    EXPECT("a.txt", "a\xE2\x82z", "[a\xEF\xBF\xBDz]");
    EXPECT("a.txt", "a\xED\xA0\x80z", "[a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz]");
    EXPECT("a.txt", "\xF0\x90\x80", "[\xEF\xBF\xBD]");
    EXPECT("a.txt", "\xC0\x80", "[\xEF\xBF\xBD\xEF\xBF\xBD]");
    EXPECT("a.txt", "\xA0\n\nb", "[\xEF\xBF\xBD][b]");
}

static void test_json_lines(void)
{
    EXPECT("a.jsonl", "", "");
    EXPECT("a.jsonl", "{\"text\": \" one\\n\\ntwo \", \"id\": 3}\n\n{\"text\":\"\"}\n",
           "[one\n\ntwo][]");
    EXPECT("a.jsonl", "{\"text\":\"\\u00e9\\ud83d\\ude00\"}", "[\xC3\xA9\xF0\x9F\x98\x80]");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\n", "line 2");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"a\"}\n\n{\"txt\":\"a\"}\n", "line 3");
    EXPECT_FAILURE("a.jsonl", "{\"text\":7}", "line 1");
    EXPECT_FAILURE("a.jsonl", "{\"text\":null}", "line 1");
    EXPECT_FAILURE("a.jsonl", "[\"text\"]", "line 1");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"a\"} x", "line 1");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"a\",\"text\":\"b\"}", "line 1");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"\xFF\"}", "line 1");
    EXPECT_FAILURE("a.jsonl", "{\"text\":\"\\ud800\"}", "line 1");
}

static void test_nul(void)
{
    mhf_corpus *corpus;
    const char *text;
    size_t n;
    bool end;
    static const char json[] = "{\"text\":\"a\\u0000b\"}\n";
    write_file("n.jsonl", json, sizeof json - 1);
    CHECK_OK(mhf_corpus_open(path_of("n.jsonl"), &corpus));
    CHECK_OK(mhf_corpus_next(corpus, &text, &n, &end));
    CU_ASSERT_EQUAL_FATAL(n, 3);
    CU_ASSERT_EQUAL(memcmp(text, "a\0b", 3), 0);
    mhf_corpus_close(corpus);
    unlink(path_of("n.jsonl"));
}

/* A text of several read pieces with lines of all lengths, and what its documents are. */
static void make_long_text(mhf_buf *text, mhf_buf *documents)
{
    for (int i = 0; i < 400; i++) {
        int length = i == 200 ? 700000 : i * 7 % 2000 + 1;
        CHECK_OK(mhf_buf_add_text(documents, "["));
        for (int j = 0; j < length; j++) {
            char c = (char)('a' + (i + j) % 26);
            CHECK_OK(mhf_buf_add(text, &c, 1));
            CHECK_OK(mhf_buf_add(documents, &c, 1));
        }
        CHECK_OK(mhf_buf_add_text(text, "\n\n"));
        CHECK_OK(mhf_buf_add_text(documents, "]"));
    }
}

static void gzip(const mhf_buf *text, mhf_buf *out)
{
    z_stream z = {0};
    CU_ASSERT_EQUAL_FATAL(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t limit = deflateBound(&z, text->n);
    char *bytes = malloc(limit);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    z.next_in = (Bytef *)text->data;
    z.avail_in = (uInt)text->n;
    z.next_out = (Bytef *)bytes;
    z.avail_out = (uInt)limit;
    CU_ASSERT_EQUAL_FATAL(deflate(&z, Z_FINISH), Z_STREAM_END);
    CHECK_OK(mhf_buf_add(out, bytes, limit - z.avail_out));
    deflateEnd(&z);
    free(bytes);
}

static void zstd(const mhf_buf *text, mhf_buf *out)
{
    size_t limit = ZSTD_compressBound(text->n);
    char *bytes = malloc(limit);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    size_t n = ZSTD_compress(bytes, limit, text->data, text->n, 3);
    CU_ASSERT_FALSE_FATAL(ZSTD_isError(n));
    CHECK_OK(mhf_buf_add(out, bytes, n));
    free(bytes);
}

static void check_compressed(void (*compress)(const mhf_buf *, mhf_buf *), const char *name)
{
    mhf_buf text = {0}, documents = {0}, packed = {0};
    make_long_text(&text, &documents);
    compress(&text, &packed);
    expect(name, packed.data, packed.n, documents.data);
    expect_failure(name, packed.data, packed.n - 1, "end early");
    expect_failure(name, packed.data, packed.n / 2, "end early");
    expect_failure(name, packed.data, 5, "end early");
    expect(name, "", 0, "");
    packed.data[packed.n / 2] = (char)(packed.data[packed.n / 2] ^ 0x55);
    write_file(name, packed.data, packed.n);
    CU_ASSERT_EQUAL(read_all(name, &documents), MHF_E_DATA);
    /* Several members or frames make one text. */
    mhf_buf_clear(&packed);
    mhf_buf_clear(&documents);
    compress(&(mhf_buf){.data = "one\ntw", .n = 6}, &packed);
    compress(&(mhf_buf){.data = "o\n\nthree", .n = 8}, &packed);
    expect(name, packed.data, packed.n, "[one\ntwo][three]");
    EXPECT_FAILURE(name, "this is not compressed", "line 1");
    mhf_buf_free(&text);
    mhf_buf_free(&documents);
    mhf_buf_free(&packed);
}

static void test_gzip(void)
{
    check_compressed(gzip, "a.txt.gz");
    mhf_buf packed = {0};
    static char json[] = "{\"text\":\"a\"}\n{}";
    gzip(&(mhf_buf){.data = json, .n = 13}, &packed);
    expect("a.jsonl.gz", packed.data, packed.n, "[a]");
    mhf_buf_clear(&packed);
    gzip(&(mhf_buf){.data = json, .n = 15}, &packed);
    expect_failure("a.jsonl.gz", packed.data, packed.n, "line 2");
    mhf_buf_free(&packed);
}

static void test_zstd(void)
{
    check_compressed(zstd, "a.txt.zst");
}

static void test_plain_long(void)
{
    mhf_buf text = {0}, documents = {0};
    make_long_text(&text, &documents);
    expect("a.txt", text.data, text.n, documents.data);
    mhf_buf_free(&text);
    mhf_buf_free(&documents);
}

static void test_missing(void)
{
    mhf_corpus *corpus;
    CU_ASSERT_EQUAL(mhf_corpus_open("no/such/file.txt", &corpus), MHF_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "no/such/file.txt"));
    CU_ASSERT_EQUAL(mhf_corpus_open(".", &corpus), MHF_E_IO);
}

static void test_held_out(void)
{
    int n = 0;
    for (int i = 0; i < 20000; i++) {
        char text[32];
        size_t length = (size_t)snprintf(text, sizeof text, "document %d", i);
        CU_ASSERT_FALSE(mhf_corpus_held_out(text, length, 0));
        bool held_out = mhf_corpus_held_out(text, length, 0.05);
        double place = ldexp((double)mhf_hash64(text, length), -64);
        CU_ASSERT_EQUAL(held_out, place < 0.05);
        n += held_out;
    }
    CU_ASSERT_TRUE(n > 900 && n < 1100);
}

int main(void)
{
    static const test_case cases[] = {
        {"paragraphs", test_paragraphs},
        {"Unicode white space", test_unicode_space},
        {"invalid UTF-8 in text", test_invalid_text},
        {"JSON lines", test_json_lines},
        {"NUL in a text", test_nul},
        {"gzip", test_gzip},
        {"zstd", test_zstd},
        {"long lines", test_plain_long},
        {"missing files", test_missing},
        {"held-out documents", test_held_out},
    };
    return run_tests("corpus", cases, sizeof cases / sizeof *cases);
}
