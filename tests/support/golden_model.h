/* SPDX-License-Identifier: ISC */
/* The golden models for tests: config.json, model.safetensors and expect.h5 of models/NAME, read
 * with as little code as possible and none of the product's readers. */
#ifndef MHF_TEST_GOLDEN_MODEL_H
#define MHF_TEST_GOLDEN_MODEL_H

#include <hdf5.h>
#include <math.h>

#include "mhf/model.h"
#include "support.h"

typedef struct golden_model {
    mhf_config config;
    mhf_registry registry;
    mhf_signatures table;
    mhf_buf weights; /* the safetensors file */
    json_t *header;
    hid_t expect;
    bool hashed;
    bool compact; /* expect.h5 is the subset that the repository keeps: datasets may be absent */
} golden_model;

static const char *const golden_model_names[] = {
    "mhf-h3", "mhf-h4", "mhf-h4-lsh2", "mhf-lsh-only-embed", "std", "mhf-h1"};
enum { N_GOLDEN_MODELS = 6 };

/* Bytes of a tensor, NULL when the file has none. */
static inline const char *golden_tensor(const golden_model *g, const char *name)
{
    json_t *entry = json_object_get(g->header, name);
    if (!entry)
        return NULL;
    uint64_t n = 0;
    memcpy(&n, g->weights.data, 8);
    return g->weights.data + 8 + n +
           json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
}

static inline bool golden_model_open(const char *name, golden_model *g)
{
    char path[256];
    mhf_buf json = {0};
    memset(g, 0, sizeof *g);
    snprintf(path, sizeof path, "models/%s/expect.h5", name);
    const char *expect = golden(path);
    if (!expect)
        return false;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    g->expect = H5Fopen(expect, H5F_ACC_RDONLY, H5P_DEFAULT);
    g->compact = H5Aexists(g->expect, "compact") > 0;
    snprintf(path, sizeof path, "models/%s/config.json", name);
    CHECK_OK(mhf_file_read(golden(path), 1 << 20, &json));
    CHECK_OK(mhf_config_from_json(json.data, json.n, path, &g->config));
    CHECK_OK(mhf_registry_new(&g->config, &g->registry));
    snprintf(path, sizeof path, "models/%s/model.safetensors", name);
    CHECK_OK(mhf_file_read(golden(path), 1 << 26, &g->weights));
    uint64_t n = 0;
    memcpy(&n, g->weights.data, 8);
    CHECK_OK(mhf_json_parse(g->weights.data + 8, (size_t)n, path, &g->header));
    g->hashed = g->config.head == MHF_HEAD_MHF;
    if (g->hashed) {
        int64_t cells = (int64_t)g->config.vocab_size * g->config.num_hashes;
        mhf_bucket *ids;
        CHECK_OK(mhf_new(&ids, cells, sizeof *ids, "table"));
        const char *map = golden_tensor(g, "model.hash_map");
        for (int64_t i = 0; i < cells; i++) {
            int64_t id;
            memcpy(&id, map + 8 * i, 8);
            ids[i] = (mhf_bucket)id;
        }
        mhf_signature_options options = {.num_hashes = g->config.num_hashes,
                                         .num_buckets = g->config.num_buckets,
                                         .num_lsh = g->config.num_lsh,
                                         .rule = MHF_RULE_IMPORTED};
        CHECK_OK(mhf_signatures_adopt(ids, g->config.vocab_size, 1000, 2, &options, &g->table));
        free(ids);
    }
    mhf_buf_free(&json);
    return true;
}

static inline void golden_model_close(golden_model *g)
{
    mhf_registry_free(&g->registry);
    mhf_signatures_free(&g->table);
    mhf_buf_free(&g->weights);
    json_decref(g->header);
    H5Fclose(g->expect);
}

/* Fill the values that `params` holds. */
static inline void golden_model_fill(const golden_model *g, mhf_params *params)
{
    for (int32_t i = 0; i < g->registry.n; i++) {
        const char *bytes = golden_tensor(g, g->registry.params[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
        if (params->value[i])
            memcpy(params->value[i], bytes, (size_t)g->registry.params[i].count * sizeof(float));
    }
}

/* A whole dataset as doubles; *n its elements. NULL when absent. free() it. */
static inline double *golden_dataset(const golden_model *g, const char *name, int64_t *n)
{
    hid_t set = H5Dopen2(g->expect, name, H5P_DEFAULT);
    if (set < 0)
        return NULL;
    hid_t space = H5Dget_space(set);
    *n = H5Sget_simple_extent_npoints(space);
    double *values = malloc((size_t)(*n > 0 ? *n : 1) * sizeof *values);
    H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

/* Integers of a dataset as tokens. */
static inline mhf_token *golden_tokens(const golden_model *g, const char *name, int64_t *n)
{
    double *values = golden_dataset(g, name, n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    mhf_token *tokens = malloc((size_t)*n * sizeof *tokens);
    for (int64_t i = 0; i < *n; i++)
        tokens[i] = (mhf_token)values[i];
    free(values);
    return tokens;
}

static inline double golden_scalar(const golden_model *g, const char *name)
{
    int64_t n = 0;
    double *value = golden_dataset(g, name, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    double scalar = value[0];
    free(value);
    return scalar;
}

/* Largest absolute difference between x [n] and a dataset of n elements. */
static inline double golden_difference(const golden_model *g, const char *name, const float *x,
                                       int64_t n)
{
    int64_t m = 0;
    double *values = golden_dataset(g, name, &m), largest = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_EQUAL_FATAL(m, n);
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs(values[i] - (double)x[i]);
        if (!(difference <= largest))
            largest = difference;
    }
    free(values);
    return largest;
}

/* The difference must be within `limit`; says it when it is not. What the compact subset leaves out
 * is skipped, and said. */
static inline void golden_close(const golden_model *g, const char *model, const char *name,
                                const float *x, int64_t n, double limit)
{
    if (g->compact && H5Lexists(g->expect, name, H5P_DEFAULT) <= 0) {
        const char *last = strrchr(name, '/');
        printf("\n    skipped: the compact golden %s has no %.*s\n", model,
               (int)(last ? last - name : (ptrdiff_t)strlen(name)), name);
        return;
    }
    double difference = golden_difference(g, name, x, n);
    if (!(difference <= limit))
        fprintf(stderr, "\n    %s: %s differs by %.3g, expected at most %.3g\n", model, name,
                difference, limit);
    CU_ASSERT_TRUE(difference <= limit);
}

#endif
