/* SPDX-License-Identifier: ISC */
/* A small checkpoint with every byte of its metadata, every 61st of its data, flipped, and cut at
 * many lengths: refused by name, or the data are right. */
#include <hdf5.h>
#include <mpi.h>

#include "damage.h"
#include "mhf/store.h"

static const mhf_config config = {.head = MHF_HEAD_STANDARD,
                                  .vocab_size = 24,
                                  .hidden_size = 8,
                                  .num_hidden_layers = 1,
                                  .num_attention_heads = 2,
                                  .num_key_value_heads = 1,
                                  .head_dim = 4,
                                  .intermediate_size = 8,
                                  .max_position_embeddings = 16,
                                  .bottle_neck_dim = 64,
                                  .tie_word_embeddings = true,
                                  .rms_norm_eps = 1e-6,
                                  .rope_theta = 1e6,
                                  .bos_token_id = -1,
                                  .eos_token_id = 0,
                                  .pad_token_id = 0};
static mhf_registry registry;
static mhf_params params;

static void make(const char *path)
{
    mhf_grid grid;
    mhf_units units = {0, config.num_hidden_layers + 1};
    mhf_checkpoint_meta meta = {.step = 5, .seed = 6, .engine = "reference"};
    CHECK_OK(mhf_grid_new(1, &grid));
    CHECK_OK(mhf_registry_new(&config, &registry));
    CHECK_OK(mhf_params_new(&registry, &config, units, false, &params));
    mhf_params_initialise(&params, &config, 3);
    CHECK_OK(mhf_checkpoint_write(path, &grid, &config, &params, NULL, &meta));
    mhf_grid_free(&grid);
}

static mhf_status wrong(const char *path, const char *what)
{
    return mhf_fail(MHF_E_INTERNAL, "%s: wrong %s came", path, what);
}

static mhf_status read_tensors(mhf_source *source, const char *path)
{
    float found[1024];
    for (int32_t p = 0; p < registry.n; p++) {
        const mhf_param *param = &registry.params[p];
        MHF_TRY(mhf_source_read(source, MHF_PARAMETER, param, 0, param->count, found));
        if (memcmp(found, params.value[p], (size_t)param->count * sizeof *found) != 0)
            return wrong(path, param->name);
    }
    return MHF_OK;
}

static mhf_status read_checkpoint(const char *path)
{
    mhf_source *source;
    mhf_status status = mhf_source_open(path, &source);
    if (status != MHF_OK)
        return status;
    const mhf_source_info *info = mhf_source_info_of(source);
    if (info->step != 5 || info->seed != 6 || strcmp(info->engine, "reference") != 0)
        status = wrong(path, "attributes");
    if (status == MHF_OK && memcmp(mhf_source_config(source), &config, sizeof config) != 0)
        status = wrong(path, "configuration");
    if (status == MHF_OK)
        status = read_tensors(source, path);
    if (status == MHF_OK && strcmp(path, in_folder("hostile.h5")) == 0)
        status = mhf_source_verify(source);
    mhf_source_close(source);
    return status;
}

static void test_damage(void)
{
    damage d;
    make(in_folder("whole.h5"));
    damage_start(in_folder("whole.h5"), in_folder("damaged.h5"), read_checkpoint, &d);
    damage_flip(&d, 1, 61);
    damage_truncate(&d, 211);
    damage_end(&d);
}

/* ---- a table -------------------------------------------------------------------------------- */

enum { ROWS = 128, TOKENS = 100 };

static mhf_bucket bucket_at(uint32_t row, int coordinate)
{
    return row == 0 || row >= TOKENS ? 0 : 1 + (coordinate ? row / 16 : row % 16);
}

static mhf_status read_table(const char *path)
{
    mhf_signatures found;
    mhf_status status = mhf_signatures_read(path, &found);
    if (status != MHF_OK)
        return status;
    const mhf_signature_options *has = &found.options;
    bool good = found.rows == ROWS && found.size == TOKENS && found.pad == 0 &&
                has->num_hashes == 2 && has->num_buckets == 17 && has->hash_seed == 4 &&
                has->rule == MHF_RULE_UNIQUE;
    for (uint32_t i = 0; good && i < ROWS * 2; i++)
        good = found.ids[i] == bucket_at(i / 2, i % 2);
    mhf_signatures_free(&found);
    return good ? MHF_OK : wrong(path, "table");
}

static void test_damaged_table(void)
{
    damage d;
    mhf_bucket ids[ROWS * 2];
    mhf_signatures table = {0};
    mhf_signature_options options = {
        .num_hashes = 2, .num_buckets = 17, .rule = MHF_RULE_UNIQUE, .hash_seed = 4};
    for (uint32_t i = 0; i < ROWS * 2; i++)
        ids[i] = bucket_at(i / 2, i % 2);
    CHECK_OK(mhf_signatures_adopt(ids, ROWS, TOKENS, 0, &options, &table));
    CHECK_OK(mhf_signatures_write(in_folder("table.h5"), &table, NULL));
    mhf_signatures_free(&table);
    damage_start(in_folder("table.h5"), in_folder("damaged.h5"), read_table, &d);
    damage_flip(&d, 1, 7);
    damage_truncate(&d, 61);
    damage_end(&d);
}

/* ---- files that lie on purpose -------------------------------------------------------------- */

/* What a program with HDF5 could do to a checkpoint. */
static void hostile(int kind, const char *path)
{
    static const char *const kept[] = {"/config", "/parameters/model.norm.weight",
                                       "/checksums/parameters/model.norm.weight", "/parameters"};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, access);
    H5Pclose(access);
    if (kind < 4)
        H5Ldelete(file, kept[kind], H5P_DEFAULT);
    else if (kind == 4) /* a parameter too many */
        H5Lcreate_hard(file, "/config", file, "/parameters/more", H5P_DEFAULT, H5P_DEFAULT);
    else if (kind == 5) /* one for another */
        H5Ldelete(file, "/parameters/model.norm.weight", H5P_DEFAULT),
            H5Lcreate_hard(file, "/parameters/model.embed_tokens.weight", file,
                           "/parameters/model.norm.weight", H5P_DEFAULT, H5P_DEFAULT);
    else if (kind == 6) /* a group that holds itself */
        H5Lcreate_hard(file, "/", file, "/parameters/loop", H5P_DEFAULT, H5P_DEFAULT);
    else if (kind == 7)
        H5Adelete_by_name(file, "/", "step", H5P_DEFAULT);
    else if (kind == 8) { /* a group with a heap of links */
        for (int i = 0; i < 20; i++) {
            char name[16];
            snprintf(name, sizeof name, "/dense/%d", i);
            if (i == 0)
                H5Gclose(H5Gcreate2(file, "/dense", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            H5Lcreate_hard(file, "/config", file, name, H5P_DEFAULT, H5P_DEFAULT);
        }
    } else {
        hid_t attribute = H5Aopen(file, "step", H5P_DEFAULT);
        int64_t step = -3;
        H5Awrite(attribute, H5T_NATIVE_INT64, &step);
        H5Aclose(attribute);
    }
    H5Fclose(file);
}

static void test_hostile(void)
{
    mhf_buf whole = {0};
    const char *path = in_folder("hostile.h5");
    CHECK_OK(mhf_file_read(in_folder("whole.h5"), SIZE_MAX, &whole));
    for (int kind = 0; kind < 10; kind++) {
        write_file(path, whole.data, whole.n);
        hostile(kind, path);
        CHECK_REFUSED(read_checkpoint(path), MHF_E_DATA, path);
    }
    mhf_buf_free(&whole);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"checkpoint", test_damage}, {"table", test_damaged_table}, {"hostile", test_hostile}};
    H5dont_atexit();
    MPI_Init(&argc, &argv);
    folder_make();
    int failed = run_tests("damaged checkpoint", cases, sizeof cases / sizeof *cases);
    folder_remove();
    mhf_params_free(&params);
    mhf_registry_free(&registry);
    MPI_Finalize();
    return failed;
}
