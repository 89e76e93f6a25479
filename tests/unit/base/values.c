/* SPDX-License-Identifier: ISC */
/* Sizes, buffers, maps, UTF-8, typed JSON, checksums. */
#include "support.h"

static void test_sizes(void)
{
    int64_t product;
    int32_t narrow;
    CU_ASSERT_TRUE(mhf_mul(INT64_MAX, 1, &product) && product == INT64_MAX);
    CU_ASSERT_TRUE(mhf_mul(0, INT64_MAX, &product) && product == 0);
    CU_ASSERT_FALSE(mhf_mul((int64_t)1 << 32, (int64_t)1 << 31, &product));
    CU_ASSERT_FALSE(mhf_mul(-1, 2, &product));
    CHECK_OK(mhf_narrow(INT32_MAX, "a size", &narrow));
    CU_ASSERT_EQUAL(mhf_narrow((int64_t)INT32_MAX + 1, "a size", &narrow), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "a size"));

    char *bytes = NULL;
    CU_ASSERT_EQUAL(mhf_new(&bytes, INT64_MAX, 8, "a wish"), MHF_E_NOMEM);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "a wish"));
    CHECK_OK(mhf_new(&bytes, 0, 8, "nothing"));
    CU_ASSERT_PTR_NOT_NULL(bytes);
    free(bytes);
    double *values;
    CHECK_OK(mhf_new(&values, 1000, sizeof *values, "values"));
    CU_ASSERT_EQUAL((uintptr_t)values % 64, 0);
    for (int i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(values[i], 0);
    free(values);

    int32_t *list = NULL;
    int64_t capacity = 0;
    for (int32_t i = 0; i < 1000; i++) {
        CHECK_OK(mhf_grow(&list, &capacity, i + 1, sizeof *list, "a list"));
        list[i] = i;
    }
    CU_ASSERT_TRUE(capacity >= 1000 && list[999] == 999);
    CU_ASSERT_EQUAL(mhf_grow(&list, &capacity, INT64_MAX, sizeof *list, "a list"), MHF_E_NOMEM);
    CU_ASSERT_EQUAL(list[999], 999); /* what was there stays */
    free(list);
}

static void test_errors(void)
{
    CU_ASSERT_EQUAL(mhf_fail(MHF_E_DATA, "found %d", 3), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_fail_within(MHF_E_DATA, "file %s", "x"), MHF_E_DATA);
    CU_ASSERT_STRING_EQUAL(mhf_error(), "file x: found 3");
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_OK), 0);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_GRID), 2);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_DATA), 3);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_IO), 4);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_NONFINITE), 5);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_STOPPED), 75);
    CU_ASSERT_EQUAL(mhf_status_exit_code(MHF_E_NOMEM), 1);
}

static void test_buf(void)
{
    mhf_buf buf = {0};
    for (int i = 0; i < 500; i++)
        CHECK_OK(mhf_buf_printf(&buf, "%d,", i));
    CU_ASSERT_EQUAL(buf.n, 10 * 2 + 90 * 3 + 400 * 4);
    CU_ASSERT_EQUAL(buf.data[buf.n], 0);
    mhf_buf_clear(&buf);
    CU_ASSERT_EQUAL(buf.n, 0);
    CHECK_OK(mhf_buf_add(&buf, "a\0b", 3));
    CHECK_OK(mhf_buf_add_text(&buf, "c"));
    CU_ASSERT_EQUAL(memcmp(buf.data, "a\0bc", 5), 0);
    mhf_buf_free(&buf);
}

static void test_map(void)
{
    mhf_map *map;
    CHECK_OK(mhf_map_new(2, &map));
    for (int64_t i = 0; i < 5000; i++)
        CHECK_OK(mhf_map_put(map, &i, sizeof i, i * 3));
    int64_t key = 77;
    CHECK_OK(mhf_map_put(map, &key, sizeof key, -5));
    CHECK_OK(mhf_map_put(map, "", 0, 9));
    CU_ASSERT_EQUAL(mhf_map_count(map), 5001);
    for (int64_t i = 0; i < 5000; i++)
        CU_ASSERT_EQUAL(mhf_map_get(map, &i, sizeof i, -1), i == 77 ? -5 : i * 3);
    CU_ASSERT_EQUAL(mhf_map_get(map, "", 0, -1), 9);
    CU_ASSERT_EQUAL(mhf_map_get(map, "absent", 6, -1), -1);
    mhf_map_free(map);
}

static void test_utf8(void)
{
    char bytes[4];
    uint32_t found;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c < 0xE000)
            continue;
        int n = mhf_utf8_encode(c, bytes);
        if (mhf_utf8_decode(bytes, (size_t)n, &found) != n || found != c ||
            (n > 1 && mhf_utf8_decode(bytes, (size_t)n - 1, &found) != 0))
            CU_FAIL("a code point does not come back");
    }
    /* Too long, surrogates, past the last, continuation alone, cut short. */
    static const char *const wrong[] = {
        "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xE2\x82", "\xFF"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CU_ASSERT_EQUAL(mhf_utf8_decode(wrong[i], strlen(wrong[i]), &found), 0);
        CU_ASSERT_EQUAL(mhf_utf8_valid(wrong[i], strlen(wrong[i])), 0);
    }
    CU_ASSERT_EQUAL(mhf_utf8_valid("ab\xC3\xA9\xFF", 5), 4);
}

static void test_json(void)
{
    static const char text[] =
        "{\"i\": 7, \"r\": 0.5, \"s\": \"a\\u0000b\", \"n\": null, \"b\": true}";
    json_t *o;
    int64_t i = 0;
    double r = 0;
    bool b = false;
    const char *s;
    size_t n;
    CHECK_OK(mhf_json_parse(text, sizeof text - 1, "x.json", &o));
    CHECK_OK(mhf_json_int(o, "i", "x.json", 0, 7, &i));
    CU_ASSERT_EQUAL(i, 7);
    CU_ASSERT_EQUAL(mhf_json_int(o, "i", "x.json", 0, 6, &i), MHF_E_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_error(), "x.json: key 'i'"));
    CU_ASSERT_EQUAL(mhf_json_int(o, "r", "x.json", 0, 6, &i), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_json_int(o, "n", "x.json", 0, 6, &i), MHF_E_DATA);
    i = -1;
    CHECK_OK(mhf_json_int_or(o, "n", "x.json", 0, 6, &i));
    CU_ASSERT_EQUAL(i, -1);
    CHECK_OK(mhf_json_real_or(o, "r", "x.json", &r));
    CHECK_OK(mhf_json_bool_or(o, "b", "x.json", &b));
    CU_ASSERT_TRUE(r == 0.5 && b);
    CHECK_OK(mhf_json_string(o, "s", "x.json", &s, &n));
    CU_ASSERT_EQUAL(n, 3);
    CU_ASSERT_EQUAL(mhf_json_string(o, "s", "x.json", &s, NULL), MHF_E_DATA);
    json_decref(o);
    CU_ASSERT_EQUAL(mhf_json_parse("{\"a\":1,\"a\":2}", 13, "x.json", &o), MHF_E_DATA);
    CU_ASSERT_EQUAL(mhf_json_parse("{} {}", 5, "x.json", &o), MHF_E_DATA);
    char *deep = calloc(200001, 1);
    memset(deep, '[', 200000);
    CU_ASSERT_EQUAL(mhf_json_parse(deep, 200000, "x.json", &o), MHF_E_DATA);
    free(deep);

    mhf_buf printed = {0};
    json_t *value = json_pack("{s:f}", "x", 0.1);
    CHECK_OK(mhf_json_print(value, &printed));
    CU_ASSERT_STRING_EQUAL(printed.data, "{\"x\":0.1}");
    json_decref(value);
    mhf_buf_free(&printed);
}

/* Python's own texts of these numbers. */
static void test_json_text(void)
{
    static const char text[] =
        "{\n  \"a\": [\n    1e-06,\n    0.0001,\n    0.1,\n    1000000.0,\n    1e+16,\n"
        "    123456789.25,\n    -0.0,\n    5e-324,\n    1234567890123456.8\n  ],\n"
        "  \"b\": {},\n  \"c\": [],\n  \"d\": \"\\u00fc\\n\\\"\"\n}\n";
    json_t *o;
    mhf_buf out = {0}, lower = {0};
    CHECK_OK(mhf_json_parse(text, strlen(text), "text", &o));
    CHECK_OK(mhf_json_text(o, &out));
    for (size_t i = 0; i < out.n; i++) {
        char c = out.data[i] == 'F' ? 'f' : out.data[i] == 'C' ? 'c' : out.data[i];
        CHECK_OK(mhf_buf_add(&lower, &c, 1));
    }
    CU_ASSERT_STRING_EQUAL(lower.data, text);
    json_decref(o);
    mhf_buf_free(&out);
    mhf_buf_free(&lower);
}

/* The examples of FIPS 180-4, and lengths around a block of 64 bytes against one another. */
static void test_sha256(void)
{
    char hex[65];
    mhf_sha256_hex("abc", 3, hex);
    CU_ASSERT_STRING_EQUAL(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    mhf_sha256_hex("", 0, hex);
    CU_ASSERT_STRING_EQUAL(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    mhf_sha256_hex(two, strlen(two), hex);
    CU_ASSERT_STRING_EQUAL(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void)
{
    static const test_case cases[] = {
        {"sizes and memory", test_sizes},
        {"errors", test_errors},
        {"buffers", test_buf},
        {"maps", test_map},
        {"UTF-8", test_utf8},
        {"typed JSON", test_json},
        {"JSON as Python prints it", test_json_text},
        {"SHA-256", test_sha256},
    };
    return run_tests("base.values", cases, sizeof cases / sizeof *cases);
}
