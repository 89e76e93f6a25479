/* SPDX-License-Identifier: ISC */
// ranks: 1 2 4
/* Checkpoints written on every grid of the world's size: the same bytes, and what was given is
 * read. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "mhf/store.h"
#include "store_support.h"

static int rank, n_ranks;
static const uint64_t seed = 7;

/* The embedding has 1.5 MiB and the gate's matrix 1 MiB + 1 KiB, so shards end inside and at MiB.
 */
static const mhf_config config = {.head = MHF_HEAD_MHF,
                                  .vocab_size = 1024,
                                  .hidden_size = 256,
                                  .num_hidden_layers = 3,
                                  .num_attention_heads = 4,
                                  .num_key_value_heads = 2,
                                  .head_dim = 16,
                                  .intermediate_size = 1025,
                                  .max_position_embeddings = 64,
                                  .num_hashes = 3,
                                  .num_buckets = 512,
                                  .bottle_neck_dim = 16,
                                  .tie_word_embeddings = true,
                                  .rms_norm_eps = 1e-6,
                                  .rope_theta = 1e6,
                                  .bos_token_id = 1,
                                  .eos_token_id = 2,
                                  .pad_token_id = -1};

typedef struct part {
    mhf_grid grid;
    mhf_registry registry;
    mhf_params params;
    mhf_optimizer optimizer;
} part;

static float moment(int32_t param, int64_t i, bool second)
{
    return (float)(param * 1000 + i % 997 + (second ? 1 : 0)) * 0.25f;
}

static void part_new(int stages, bool frozen, part *p)
{
    mhf_units units[8];
    CHECK_OK(mhf_grid_new(stages, &p->grid));
    CHECK_OK(mhf_registry_new(&config, &p->registry));
    for (int32_t i = 0; frozen && i < p->registry.n; i++)
        p->registry.params[i].trainable = p->registry.params[i].unit != 2;
    CHECK_OK(mhf_stages_balance(&config, 64, stages, NULL, units));
    CHECK_OK(mhf_params_new(&p->registry, &config, units[p->grid.stage], true, &p->params));
    mhf_params_initialise(&p->params, &config, seed);
    CHECK_OK(mhf_optimizer_new(&p->grid, &p->params, &p->optimizer));
    for (int32_t s = 0; s < p->optimizer.n_shards; s++) {
        const mhf_shard *shard = &p->optimizer.shards[s];
        for (int64_t i = 0; i < shard->count; i++) {
            p->optimizer.m[shard->offset + i] = moment(shard->param, shard->first + i, false);
            p->optimizer.v[shard->offset + i] = moment(shard->param, shard->first + i, true);
        }
    }
}

static void part_free(part *p)
{
    mhf_optimizer_free(&p->optimizer);
    mhf_params_free(&p->params);
    mhf_registry_free(&p->registry);
    mhf_grid_free(&p->grid);
}

static mhf_signatures table_new(void)
{
    mhf_signatures table = {0};
    mhf_bucket *ids = calloc((size_t)config.vocab_size * 3, sizeof *ids);
    for (int i = 1; i < 1000; i++)
        for (int j = 0; j < 3; j++)
            ids[3 * i + j] = (mhf_bucket)(1 + (i * (j + 3) + j) % 511);
    mhf_signature_options options = {
        .num_hashes = 3, .num_buckets = 512, .rule = MHF_RULE_REFERENCE};
    CHECK_OK(mhf_signatures_adopt(ids, config.vocab_size, 1000, 0, &options, &table));
    memset(table.tokenizer_sha256, 'a', 64);
    free(ids);
    return table;
}

static mhf_checkpoint_meta meta_of(const mhf_signatures *table)
{
    return (mhf_checkpoint_meta){.step = 12,
                                 .tokens_seen = 3456,
                                 .blocks_seen = 27,
                                 .seed = UINT64_MAX,
                                 .data_fingerprint = 1ULL << 63,
                                 .reduction_shards = 4,
                                 .threads = 1,
                                 .engine = "reference",
                                 .program_build = "test",
                                 .run = "run: runs/ü\n",
                                 .table = table};
}

/* ---- what a file holds ---------------------------------------------------------------------- */

static void check_tensors(mhf_source *source, bool moments, bool frozen)
{
    part all;
    mhf_units units = {0, config.num_hidden_layers + 1};
    CHECK_OK(mhf_registry_new(&config, &all.registry));
    CHECK_OK(mhf_params_new(&all.registry, &config, units, false, &all.params));
    mhf_params_initialise(&all.params, &config, seed);
    for (int32_t p = 0; p < all.registry.n; p++) {
        const mhf_param *param = &all.registry.params[p];
        float *found = malloc((size_t)param->count * sizeof *found);
        CHECK_OK(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, found));
        CU_ASSERT_EQUAL(memcmp(found, all.params.value[p], (size_t)param->count * sizeof *found),
                        0);
        int64_t middle = param->count / 3;
        for (int second = 0; second < 2; second++) {
            mhf_tensor_kind kind = second ? MHF_EXP_AVG_SQ : MHF_EXP_AVG;
            if (!moments || (frozen && param->unit == 2)) {
                CU_ASSERT_EQUAL(mhf_source_read(source, kind, param, 0, 1, found), MHF_E_DATA);
                continue;
            }
            CHECK_OK(mhf_source_read(source, kind, param, middle, param->count - middle, found));
            bool same = true;
            for (int64_t i = middle; i < param->count; i++)
                same = same && found[i - middle] == moment(p, i, second);
            CU_ASSERT(same);
        }
        free(found);
    }
    mhf_params_free(&all.params);
    mhf_registry_free(&all.registry);
}

static void check_file(const char *path, bool moments, bool frozen)
{
    mhf_source *source;
    CHECK_OK(mhf_source_open(path, &source));
    const mhf_source_info *info = mhf_source_info_of(source);
    CU_ASSERT(info->is_checkpoint);
    CU_ASSERT_EQUAL(info->has_optimizer, moments);
    CU_ASSERT_EQUAL(info->step, 12);
    CU_ASSERT_EQUAL(info->seed, UINT64_MAX);
    CU_ASSERT_EQUAL(info->data_fingerprint, 1ULL << 63);
    CU_ASSERT_EQUAL(info->reduction_shards, 4);
    CU_ASSERT_STRING_EQUAL(info->engine, "reference");
    CU_ASSERT_STRING_EQUAL(info->run, "run: runs/ü\n");
    CU_ASSERT_EQUAL(mhf_source_config(source)->num_buckets, 512);
    CU_ASSERT_EQUAL(mhf_source_config(source)->pad_token_id, -1);
    check_tensors(source, moments, frozen);
    mhf_signatures table, wanted = table_new();
    CHECK_OK(mhf_source_signatures(source, &table));
    CU_ASSERT_EQUAL(table.duplicates, wanted.duplicates);
    CU_ASSERT_EQUAL(table.options.rule, MHF_RULE_REFERENCE);
    CU_ASSERT_EQUAL(memcmp(table.ids, wanted.ids, 1024 * 3 * sizeof *table.ids), 0);
    mhf_signatures_free(&table);
    mhf_signatures_free(&wanted);
    CHECK_OK(mhf_source_verify(source));
    mhf_source_close(source);
}

static bool same_files(const char *a, const char *b)
{
    mhf_buf x = {0}, y = {0};
    CHECK_OK(mhf_file_read(a, SIZE_MAX, &x));
    CHECK_OK(mhf_file_read(b, SIZE_MAX, &y));
    bool same = x.n == y.n && memcmp(x.data, y.data, x.n) == 0;
    mhf_buf_free(&x);
    mhf_buf_free(&y);
    return same;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void write_on(int stages, bool moments, bool frozen, const char *path)
{
    part p = {0};
    mhf_signatures table = table_new();
    mhf_checkpoint_meta meta = meta_of(&table);
    part_new(stages, frozen, &p);
    CHECK_OK(mhf_checkpoint_write(path, &p.grid, &config, &p.params, moments ? &p.optimizer : NULL,
                                  &meta));
    mhf_signatures_free(&table);
    part_free(&p);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_grids(void)
{
    for (int kind = 0; kind < 3; kind++) {
        bool moments = kind > 0, frozen = kind == 2;
        const char *first = in_folder("first.h5"), *other = in_folder("other.h5");
        write_on(1, moments, frozen, first);
        check_file(first, moments, frozen);
        for (int stages = 2; stages <= n_ranks; stages *= 2) {
            write_on(stages, moments, frozen, other);
            CU_ASSERT(same_files(first, other));
        }
        CU_ASSERT(!mhf_file_exists(in_folder("first.h5.tmp")));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* One rank alone, piece by piece, makes the same file. */
static void test_import(void)
{
    const char *first = in_folder("weights.h5"), *copy = in_folder("copy.h5");
    write_on(n_ranks, false, false, first);
    if (rank == 0) {
        mhf_source *source;
        mhf_signatures table = table_new();
        mhf_checkpoint_meta meta = meta_of(&table);
        CHECK_OK(mhf_source_open(first, &source));
        CHECK_OK(mhf_checkpoint_import(source, copy, &meta));
        mhf_source_close(source);
        mhf_signatures_free(&table);
        CU_ASSERT(same_files(first, copy));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_nonfinite(void)
{
    const char *path = in_folder("old.h5"), *keep = in_folder("keep.h5");
    write_on(n_ranks, true, false, path);
    write_on(n_ranks, true, false, keep);
    part p = {0};
    mhf_checkpoint_meta meta = meta_of(NULL);
    part_new(n_ranks, false, &p);
    if (rank == n_ranks - 1)
        for (int32_t i = 0; i < p.registry.n; i++)
            if (strcmp(p.registry.params[i].name, "model.norm.weight") == 0)
                p.params.value[i][5] = NAN;
    CHECK_REFUSED(mhf_checkpoint_write(path, &p.grid, &config, &p.params, &p.optimizer, &meta),
                  MHF_E_NONFINITE, "model.norm.weight");
    part_free(&p);
    MPI_Barrier(MPI_COMM_WORLD);
    CU_ASSERT(same_files(path, keep));
    CU_ASSERT(!mhf_file_exists(in_folder("old.h5.tmp")));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_no_folder(void)
{
    const char *path = in_folder("no/folder.h5");
    part p = {0};
    mhf_checkpoint_meta meta = meta_of(NULL);
    part_new(n_ranks, false, &p);
    CHECK_REFUSED(mhf_checkpoint_write(path, &p.grid, &config, &p.params, &p.optimizer, &meta),
                  MHF_E_IO, path);
    part_free(&p);
}

/* A disk that fills up, as a limit of a file's size: told, nothing left behind, the old file
 * intact. */
static void test_no_room(void)
{
    const char *path = in_folder("room.h5"), *keep = in_folder("room-keep.h5");
    write_on(n_ranks, true, false, path);
    write_on(n_ranks, true, false, keep);
    struct stat info;
    CU_ASSERT_EQUAL_FATAL(stat(path, &info), 0);
    const rlim_t limits[] = {600, 5000, 40000, 1 << 20, (rlim_t)info.st_size - 1};
    struct rlimit kept;
    getrlimit(RLIMIT_FSIZE, &kept);
    signal(SIGXFSZ, SIG_IGN);
    part p = {0};
    mhf_signatures table = table_new();
    mhf_checkpoint_meta meta = meta_of(&table);
    part_new(n_ranks, false, &p);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limits[i], kept.rlim_max});
        mhf_status status =
            mhf_checkpoint_write(path, &p.grid, &config, &p.params, &p.optimizer, &meta);
        setrlimit(RLIMIT_FSIZE, &kept);
        CU_ASSERT_EQUAL(status, MHF_E_IO);
        CU_ASSERT(names_file(path));
        MPI_Barrier(MPI_COMM_WORLD); /* rank 0 removes it after the last agreement */
        CU_ASSERT(!mhf_file_exists(in_folder("room.h5.tmp")));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CU_ASSERT(same_files(path, keep));
    CHECK_OK(mhf_checkpoint_write(path, &p.grid, &config, &p.params, &p.optimizer, &meta));
    mhf_signatures_free(&table);
    part_free(&p);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A run's newest whole checkpoint; a newer one that was cut short, or whose name tells another
 * step, is passed over. What write_on writes is of step 12. */
static void test_run_folder(void)
{
    static const char *const names[] = {
        "run/checkpoints/step-00000009.h5", "run/checkpoints/step-00000012.h5",
        "run/checkpoints/step-00000099.h5", "run/checkpoints/step-00000100.h5"};
    mhf_source *source;
    if (rank == 0)
        CHECK_OK(mhf_dir_make(in_folder("run/checkpoints")));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_REFUSED(mhf_source_open(in_folder("run"), &source), MHF_E_DATA, in_folder("run"));
    for (int i = 0; i < 4; i++)
        write_on(1, false, false, in_folder(names[i]));
    if (rank == 0) {
        CU_ASSERT_EQUAL(truncate(in_folder(names[3]), 1 << 20), 0);
        write_file(in_folder("run/checkpoints/step-00000011.h5.tmp"), "torn", 4);
        write_file(in_folder("run/checkpoints/notes.txt"), "notes", 5);
        CHECK_OK(mhf_dir_make(in_folder("run/checkpoints/step-00000101.h5")));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    char **paths;
    int32_t n;
    CHECK_OK(mhf_checkpoints_list(in_folder("run"), &paths, &n));
    CU_ASSERT_EQUAL(n, 4);
    CU_ASSERT(strstr(paths[0], names[3]) && strstr(paths[3], names[0]));
    for (int32_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    mhf_log_start(MHF_LOG_ERROR, rank, n_ranks); /* the warning is expected */
    CHECK_OK(mhf_source_open(in_folder("run"), &source));
    CU_ASSERT_PTR_NOT_NULL(strstr(mhf_source_info_of(source)->path, names[1]));
    mhf_source_close(source);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"grids", test_grids},         {"import", test_import},   {"nonfinite", test_nonfinite},
        {"no folder", test_no_folder}, {"no room", test_no_room}, {"run folder", test_run_folder}};
    H5dont_atexit();
    H5open(); /* before MPI: see the program's main */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (rank == 0)
        folder_make();
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    int failed = run_tests("checkpoint", cases, sizeof cases / sizeof *cases);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        folder_remove();
    MPI_Finalize();
    return failed;
}
