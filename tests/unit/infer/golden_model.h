/* SPDX-License-Identifier: ISC */
/* The golden models and what is expected of them. */
#ifndef MHF_TEST_GOLDEN_MODEL_H
#define MHF_TEST_GOLDEN_MODEL_H

#include <hdf5.h>
#include <math.h>
#include <mpi.h>

#include "mhf/infer.h"
#include "mhf/tensor.h"
#include "support.h"

enum { ROWS = 2, COLUMNS = 24, VOCABULARY = 1024, REAL = 1000 };

static const char *const golden_models[] = {"mhf-h3", "mhf-h4", "mhf-h4-lsh2", "mhf-lsh-only-embed",
                                            "std",    "mhf-h1"};
enum { N_GOLDEN_MODELS = sizeof golden_models / sizeof *golden_models };

typedef struct golden_model {
    mhf_model *model;
    mhf_tokenizer *tokenizer;
    hid_t file;
} golden_model;

/* False when the golden files are not here. */
static inline bool golden_open(const char *name, golden_model *out)
{
    char text[128];
    snprintf(text, sizeof text, "models/%s", name);
    const char *folder = golden(text);
    snprintf(text, sizeof text, "models/%s/expect.h5", name);
    const char *expect = folder ? golden(text) : NULL;
    if (!expect)
        return false;
    mhf_source *source;
    CHECK_OK(mhf_source_open(folder, &source));
    CHECK_OK(mhf_model_load(source, &out->model, &out->tokenizer));
    mhf_source_close(source);
    out->file = H5Fopen(expect, H5F_ACC_RDONLY, H5P_DEFAULT);
    CU_ASSERT_FATAL(out->file >= 0);
    return true;
}

static inline void golden_close(golden_model *g)
{
    H5Fclose(g->file);
    mhf_model_free(g->model);
    mhf_tokenizer_free(g->tokenizer);
}

/* A compact set of goldens leaves large datasets out: false, and a line that says so. */
static inline bool golden_has(const golden_model *g, const char *name)
{
    bool has = H5Lexists(g->file, name, H5P_DEFAULT) > 0;
    if (!has)
        printf("\n    skipped: the golden file has no %s\n", name);
    return has;
}

/* Dataset `name` of exactly n elements. */
static inline void golden_read(const golden_model *g, const char *name, hid_t type, int64_t n,
                               void *out)
{
    hid_t set = H5Dopen2(g->file, name, H5P_DEFAULT);
    CU_ASSERT_FATAL(set >= 0);
    hid_t space = H5Dget_space(set);
    CU_ASSERT_EQUAL_FATAL(H5Sget_simple_extent_npoints(space), n);
    CU_ASSERT_FATAL(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Sclose(space);
    H5Dclose(set);
}

/* Set up MPI, HDF5 and the engine, run, take down. */
static inline int run_infer_tests(int argc, char **argv, const char *name, const test_case *cases,
                                  size_t n)
{
    int provided;
    H5dont_atexit();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int code = mhf_engine_start("blis:default", 1) == MHF_OK ? run_tests(name, cases, n) : 1;
    MPI_Finalize();
    return code;
}

#endif
