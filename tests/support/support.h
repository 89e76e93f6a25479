/* SPDX-License-Identifier: ISC */
/* What every CUnit program of the tests shares: running a list of tests, finding golden files. */
#ifndef MHF_TEST_SUPPORT_H
#define MHF_TEST_SUPPORT_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mhf/base.h"

typedef struct test_case {
    const char *name;
    void (*run)(void);
} test_case;

/* Run the cases as one suite; the exit code of main. */
static inline int run_tests(const char *suite_name, const test_case *cases, size_t n)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        CU_add_test(suite, cases[i].name, cases[i].run);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed > 0;
}

/* Path of a golden file in the first folder of MHF_GOLDEN (colon-separated) that has it; NULL, and a
 * line that says so, when none has: the caller then returns. The buffer holds the last 8 answers. */
static inline const char *golden(const char *name)
{
    static char paths[8][1024];
    static int next;
    const char *folders = getenv("MHF_GOLDEN");
    struct stat info;
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        char *path = paths[next];
        snprintf(path, sizeof paths[0], "%.*s/%s", (int)n, folders, name);
        if (stat(path, &info) == 0) {
            next = (next + 1) % 8;
            return path;
        }
        folders += n + (folders[n] == ':');
    }
    printf("\n    skipped: no golden file %s\n", name);
    return NULL;
}

/* Fail with mhf_error() unless the status is OK. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        mhf_status check_status_ = (call);                                                         \
        if (check_status_ != MHF_OK)                                                               \
            fprintf(stderr, "\n    %s:%d: %s: %s\n", __FILE__, __LINE__, #call, mhf_error());     \
        CU_ASSERT_EQUAL_FATAL(check_status_, MHF_OK);                                              \
    } while (0)

#endif
