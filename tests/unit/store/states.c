/* SPDX-License-Identifier: ISC */
// ranks: 1 2 4
/* Hidden states written by several ranks in any order; studies; both as h5py reads them. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>

#include "damage.h"
#include "mhf/store.h"

enum { ITEMS = 40, FEW = 2, LAYERS = 3, WIDTH = 96 };
static int rank, n_ranks;
static const int32_t layers[LAYERS] = {0, 2, 5}; /* of 4 layers: 5 is the final norm */

static const char *const names[LAYERS] = {"00", "02", "norm"};
static const char *texts[ITEMS];
static size_t lengths[ITEMS];
static uint64_t offsets[ITEMS + 1], pooled[2 * ITEMS];
static mhf_token *ids;

static void items_make(void)
{
    for (int i = 0; i < ITEMS; i++) {
        texts[i] = i % 3 == 0 ? NULL : i % 3 == 1 ? "wörd" : "two words";
        lengths[i] = texts[i] ? strlen(texts[i]) : 0;
        offsets[i + 1] = offsets[i] + (uint64_t)(400 + i);
        pooled[2 * i] = 1;
        pooled[2 * i + 1] = (uint64_t)i + 1;
    }
    ids = calloc(offsets[ITEMS], sizeof *ids);
    for (uint64_t i = 0; i < offsets[ITEMS]; i++)
        ids[i] = (mhf_token)i;
}

static mhf_states_meta meta_of(bool tokens, mhf_state_type type)
{
    return (mhf_states_meta){.layers = layers,
                             .n_layers = LAYERS,
                             .num_hidden_layers = 4,
                             .rows = tokens ? (int64_t)offsets[ITEMS] : ITEMS,
                             .d = WIDTH,
                             .type = type,
                             .pooling = tokens ? "none" : "mean",
                             .items = ITEMS,
                             .texts = texts,
                             .text_lengths = lengths,
                             .token_offsets = offsets,
                             .token_ids = ids,
                             .checkpoint = "model.h5",
                             .tokenizer_sha256 = "abc",
                             .step = 9,
                             .pooled = tokens ? NULL : pooled,
                             .unknown_id = 3};
}

/* Exact in 8 bits of mantissa. */
static float state_at(int32_t layer, int64_t row, int64_t column)
{
    return (float)((layer * 31 + row * 7 + column) % 128) * 0.5f - 16;
}

static mhf_status put_rows(mhf_states_writer *writer, int32_t layer, int64_t first, int64_t n)
{
    float *data = malloc((size_t)(n * WIDTH) * sizeof *data);
    for (int64_t i = 0; i < n * WIDTH; i++)
        data[i] = state_at(layer, first + i / WIDTH, i % WIDTH);
    mhf_status status = mhf_states_writer_put(writer, layer, first, n, data);
    free(data);
    return status;
}

/* Ranks take runs of rows in turn, so that their borders lie inside chunks and MiB. */
static void write_states(const char *path, const mhf_states_meta *meta)
{
    enum { RUN = 333 };
    mhf_states_writer *writer;
    CHECK_OK(mhf_states_writer_new(path, meta, &writer));
    for (int64_t first = 0, k = 0; first < meta->rows; first += RUN, k++)
        for (int32_t layer = 0; layer < LAYERS; layer++) {
            int64_t n = meta->rows - first < RUN ? meta->rows - first : RUN;
            if ((k + layer) % n_ranks == rank)
                CHECK_OK(put_rows(writer, layer, first, n));
        }
    CHECK_OK(mhf_states_writer_finish(writer, MHF_OK));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_items(const mhf_states *states, bool tokens)
{
    CU_ASSERT_EQUAL(mhf_states_items(states), ITEMS);
    CU_ASSERT_EQUAL(mhf_states_unknown_id(states), tokens ? -1 : 3);
    CU_ASSERT_STRING_EQUAL(mhf_states_checkpoint(states), "model.h5");
    CU_ASSERT_STRING_EQUAL(mhf_states_tokenizer_sha256(states), "abc");
    for (int64_t i = 0; i < ITEMS; i++) {
        size_t n;
        int64_t count;
        const char *text = mhf_states_text(states, i, &n);
        CU_ASSERT(n == lengths[i] && memcmp(text, texts[i] ? texts[i] : "", n) == 0);
        const uint32_t *found = mhf_states_pooled(states, i, &count);
        CU_ASSERT_EQUAL(count, tokens ? 400 + i : i);
        CU_ASSERT(count == 0 || found[0] == offsets[i] + (tokens ? 0 : 1));
    }
}

static void check_states(const char *path, const mhf_states_meta *meta)
{
    mhf_states *states;
    bool tokens = strcmp(meta->pooling, "none") == 0;
    CHECK_OK(mhf_states_open(path, &states));
    CU_ASSERT_EQUAL(mhf_states_layers(states), LAYERS);
    CU_ASSERT_EQUAL(mhf_states_rows(states), meta->rows);
    CU_ASSERT_EQUAL(mhf_states_width(states), WIDTH);
    check_items(states, tokens);
    float *found = malloc((size_t)(meta->rows * WIDTH) * sizeof *found);
    for (int32_t layer = 0; layer < LAYERS; layer++) {
        CU_ASSERT_STRING_EQUAL(mhf_states_layer_name(states, layer), names[layer]);
        int64_t first = meta->rows / 3, n = meta->rows - first;
        CHECK_OK(mhf_states_read(states, layer, first, n, found));
        bool same = true;
        for (int64_t i = 0; i < n * WIDTH; i++)
            same = same && found[i] == state_at(layer, first + i / WIDTH, i % WIDTH);
        CU_ASSERT(same);
        CHECK_REFUSED(mhf_states_read(states, layer, meta->rows, 1, found), MHF_E_DATA, path);
    }
    free(found);
    mhf_states_close(states);
    CHECK_OK(mhf_file_verify(path));
}

static void test_types(void)
{
    for (int type = 0; type < 3; type++)
        for (int tokens = 0; tokens < 2; tokens++) {
            const char *path = in_folder("states.h5");
            mhf_states_meta meta = meta_of(tokens, (mhf_state_type)type);
            write_states(path, &meta);
            check_states(path, &meta);
            CU_ASSERT(!mhf_file_exists(in_folder("states.h5.tmp")));
            MPI_Barrier(MPI_COMM_WORLD);
        }
}

static void test_no_rows(void)
{
    const char *path = in_folder("empty.h5");
    mhf_states_meta meta = meta_of(false, MHF_F32);
    meta.items = meta.rows = 0;
    mhf_states *states;
    write_states(path, &meta);
    CHECK_OK(mhf_states_open(path, &states));
    CU_ASSERT_EQUAL(mhf_states_rows(states), 0);
    mhf_states_close(states);
}

/* A rank that failed takes the others with it, and no file stays. */
static void test_failed_rank(void)
{
    const char *path = in_folder("failed.h5");
    mhf_states_meta meta = meta_of(true, MHF_F32);
    mhf_states_writer *writer;
    CHECK_OK(mhf_states_writer_new(path, &meta, &writer));
    mhf_status mine = rank == n_ranks - 1 ? mhf_fail(MHF_E_DATA, "items.jsonl line 3") : MHF_OK;
    CHECK_REFUSED(mhf_states_writer_finish(writer, mine), MHF_E_DATA, "items.jsonl line 3");
    MPI_Barrier(MPI_COMM_WORLD);
    CU_ASSERT(!mhf_file_exists(path));
    CU_ASSERT(!mhf_file_exists(in_folder("failed.h5.tmp")));
    path = in_folder("no/folder.h5");
    CHECK_REFUSED(mhf_states_writer_new(path, &meta, &writer), MHF_E_IO, path);
}

/* ---- damage --------------------------------------------------------------------------------- */

static mhf_status read_small(const char *path)
{
    mhf_states *states;
    float found[FEW * WIDTH];
    mhf_status status = mhf_states_open(path, &states);
    if (status != MHF_OK)
        return status;
    bool good = mhf_states_rows(states) == FEW && mhf_states_layers(states) == LAYERS;
    for (int32_t layer = 0; good && status == MHF_OK && layer < LAYERS; layer++) {
        good = strcmp(mhf_states_layer_name(states, layer), names[layer]) == 0;
        status = mhf_states_read(states, layer, 0, FEW, found);
        for (int64_t i = 0; status == MHF_OK && i < FEW * WIDTH; i++)
            good = good && found[i] == state_at(layer, i / WIDTH, i % WIDTH);
    }
    mhf_states_close(states);
    return good ? status : mhf_fail(MHF_E_INTERNAL, "%s: wrong states came", path);
}

static void test_damage(void)
{
    damage d;
    mhf_states_meta meta = meta_of(false, MHF_BF16);
    meta.items = meta.rows = FEW;
    write_states(in_folder("whole.h5"), &meta);
    if (n_ranks > 1)
        return;
    damage_start(in_folder("whole.h5"), in_folder("damaged.h5"), read_small, &d);
    damage_flip(&d, 7, 61);
    damage_truncate(&d, 211);
    damage_end(&d);
}

/* ---- a study, and h5py ---------------------------------------------------------------------- */

static void write_study(const char *path)
{
    char *a[] = {"cat", "ice cream"}, *b[] = {"dög", "x"}, *layer_names[] = {"00", "norm"};
    double human[] = {1.5, 2.5}, similarity[] = {0.25, NAN, 0.5, NAN}, r[] = {0.1, 0.2};
    double interval[] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t covered[] = {1, 0};
    int32_t pieces[] = {1, 3};
    int64_t rarest[] = {1LL << 40, 0};
    mhf_study_result result = {.pairs = 2,
                               .word1 = a,
                               .word2 = b,
                               .human = human,
                               .covered = covered,
                               .layers = 2,
                               .layer_names = layer_names,
                               .similarity = similarity,
                               .pearson = r,
                               .spearman = r,
                               .interval = interval,
                               .pairs_name = "pairs.tsv",
                               .model_name = "model.h5",
                               .pooling = "mean",
                               .seed = 1,
                               .draws = 10,
                               .template_text = " {}",
                               .pieces1 = pieces,
                               .pieces2 = pieces,
                               .rarest1 = rarest};
    CHECK_OK(mhf_study_write(path, &result));
    CHECK_OK(mhf_file_verify(path));
}

static const char script[] =
    "import sys\n"
    "try:\n"
    "    import h5py, numpy as np\n"
    "except ImportError:\n"
    "    sys.exit(77)\n"
    "f = h5py.File(sys.argv[1] + '/py.h5')\n"
    "o, b = f['items/text/offsets'][:], f['items/text/bytes'][:].tobytes()\n"
    "assert b[o[1]:o[2]].decode() == 'w\\u00f6rd'\n"
    "assert f.attrs['format'] == b'mhf-states', f.attrs['format']\n"
    "for k, layer in enumerate(['00', '02', 'norm']):\n"
    "    x = f['layers/%s/states' % layer][:]\n"
    "    assert x.shape == (40, 96)\n"
    "    i, j = np.indices(x.shape)\n"
    "    assert (x == ((k * 31 + i * 7 + j) % 128) * 0.5 - 16).all()\n"
    "s = h5py.File(sys.argv[1] + '/study.h5')\n"
    "assert s['similarity'].shape == (2, 2) and np.isnan(s['similarity'][1, 1])\n"
    "assert s['interval'][1, 1, 0] == 7 and s['pairs/rarest1'][0] == 1 << 40\n"
    "assert s.attrs['draws'] == 10 and s['pairs/pieces2'].dtype == np.int32\n";

static void test_h5py(void)
{
    for (int type = 0; type < 3; type++) {
        mhf_states_meta meta = meta_of(false, (mhf_state_type)type);
        write_states(in_folder("py.h5"), &meta);
        if (rank == 0) {
            char command[1024];
            write_study(in_folder("study.h5"));
            write_file(in_folder("check.py"), script, sizeof script - 1);
            snprintf(command, sizeof command, "/usr/bin/python3 %s %s", in_folder("check.py"),
                     folder);
            int code = system(command);
            if (WIFEXITED(code) && WEXITSTATUS(code) == 77)
                printf("\n    skipped: /usr/bin/python3 has no h5py");
            else
                CU_ASSERT_EQUAL(code, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {{"types", test_types},
                                      {"no rows", test_no_rows},
                                      {"failed rank", test_failed_rank},
                                      {"damage", test_damage},
                                      {"h5py", test_h5py}};
    H5dont_atexit();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    items_make();
    if (rank == 0)
        folder_make();
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    int failed = run_tests("states", cases, sizeof cases / sizeof *cases);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        folder_remove();
    free(ids);
    MPI_Finalize();
    return failed;
}
