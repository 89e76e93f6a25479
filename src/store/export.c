/* SPDX-License-Identifier: ISC */
/* A model to a Hugging Face directory. Tensors pass in pieces, so memory is that of one piece and
 * of the signature table. Weights come first: a model that can't be written leaves the small files
 * of an older export as they were. */
#include "export.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "halves.h"
#include "safetensors_write.h"
#include "source.h"

enum { PIECE = 4 * MHF_SHARD_UNIT, FILE_NAME = 64 };
static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

typedef struct export
{
    mhf_source *source;
    const char *folder;
    const mhf_export_options *options;
    mhf_tensor *tensors; /* [n] in the order of the state_dict; `file` is the shard */
    mhf_tensor **order;  /* [n] those of one shard, as they lie in its file */
    int64_t n;
    int32_t n_shards;
    mhf_signatures table; /* MHF */
    float *values;        /* [PIECE] */
    uint16_t *halves;     /* [PIECE] */
}
export;

/* ---- which tensor goes where ---------------------------------------------------------------- */

static void list_table(export *e)
{
    const mhf_config *c = &e->source->config;
    static char name[] = "model.hash_map";
    const int64_t count = (int64_t)c->vocab_size * c->num_hashes;
    e->tensors[e->n++] = (mhf_tensor){.name = name,
                                      .type = MHF_TENSOR_I64,
                                      .n_dims = 2,
                                      .dims = {c->vocab_size, c->num_hashes},
                                      .count = count,
                                      .bytes = count * (int64_t)sizeof(int64_t)};
}

static void list_parameters(export *e)
{
    const mhf_registry *registry = &e->source->registry;
    bool half = e->options->type == MHF_BF16;
    for (int32_t i = 0; i < registry->n; i++) {
        mhf_param *param = &registry->params[i];
        e->tensors[e->n++] = (mhf_tensor){.name = param->name,
                                          .type = half ? MHF_TENSOR_BF16 : MHF_TENSOR_F32,
                                          .n_dims = param->n_dims,
                                          .dims = {param->shape[0], param->shape[1]},
                                          .count = param->count,
                                          .bytes = param->count * (half ? 2 : 4)};
    }
}

/* Fill one file after another; a tensor that no file can hold has one of its own. */
static void deal_shards(export *e)
{
    int64_t in_shard = 0;
    int32_t shard = 0;
    for (int64_t i = 0; i < e->n; i++) {
        if (in_shard > 0 && in_shard > e->options->max_shard_bytes - e->tensors[i].bytes) {
            shard++;
            in_shard = 0;
        }
        e->tensors[i].file = shard;
        in_shard += e->tensors[i].bytes;
    }
    e->n_shards = shard + 1;
}

static mhf_status plan(export *e)
{
    int64_t n = e->source->registry.n + 1;
    MHF_TRY(mhf_new(&e->tensors, n, sizeof *e->tensors, "tensors"));
    MHF_TRY(mhf_new(&e->order, n, sizeof *e->order, "tensors"));
    MHF_TRY(mhf_new(&e->values, PIECE, sizeof *e->values, "a piece"));
    MHF_TRY(mhf_new(&e->halves, PIECE, sizeof *e->halves, "a piece"));
    if (e->source->config.head == MHF_HEAD_MHF) {
        MHF_TRY(mhf_source_signatures(e->source, &e->table));
        list_table(e);
    }
    list_parameters(e);
    deal_shards(e);
    return MHF_OK;
}

static void shard_name(const export *e, int32_t shard, char name[FILE_NAME])
{
    if (e->n_shards == 1)
        snprintf(name, FILE_NAME, "%s", single_name);
    else
        snprintf(name, FILE_NAME, "model-%05d-of-%05d.safetensors", shard + 1, e->n_shards);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static mhf_status append_table(const export *e, mhf_safetensors_writer *writer)
{
    const mhf_signatures *table = &e->table;
    const int64_t H = table->options.num_hashes;
    int64_t row[MHF_MAX_HASHES];
    for (int64_t t = 0; t < table->rows; t++) {
        for (int64_t j = 0; j < H; j++)
            row[j] = table->ids[t * H + j];
        MHF_TRY(mhf_safetensors_append(writer, row, H * (int64_t)sizeof *row));
    }
    return MHF_OK;
}

static mhf_status append_halves(const export *e, const mhf_param *param, int64_t first, int64_t n,
                                mhf_safetensors_writer *writer)
{
    mhf_floats_to_bf16(e->values, n, e->halves);
    for (int64_t i = 0; i < n; i++)
        if ((e->halves[i] & 0x7f80) == 0x7f80)
            return mhf_fail(
                MHF_E_NONFINITE, "%s: %s: element %lld is %g, more than bfloat16 can tell",
                e->source->info.path, param->name, (long long)(first + i), (double)e->values[i]);
    return mhf_safetensors_append(writer, e->halves, n * 2);
}

static mhf_status append_parameter(const export *e, const char *name,
                                   mhf_safetensors_writer *writer)
{
    const mhf_registry *registry = &e->source->registry;
    const mhf_param *param = &registry->params[mhf_registry_find(registry, name)];
    for (int64_t first = 0; first < param->count; first += PIECE) {
        int64_t n = param->count - first < PIECE ? param->count - first : PIECE;
        MHF_TRY(mhf_source_read(e->source, MHF_PARAMETER, param, first, n, e->values));
        MHF_TRY(e->options->type == MHF_BF16
                    ? append_halves(e, param, first, n, writer)
                    : mhf_safetensors_append(writer, e->values, n * (int64_t)sizeof *e->values));
    }
    return MHF_OK;
}

static mhf_status write_shard(const export *e, int32_t shard)
{
    char name[FILE_NAME];
    mhf_buf path = {0};
    mhf_safetensors_writer writer;
    int64_t n = 0;
    for (int64_t i = 0; i < e->n; i++)
        if (e->tensors[i].file == shard)
            e->order[n++] = &e->tensors[i];
    mhf_safetensors_sort(e->order, n);
    shard_name(e, shard, name);
    mhf_status status = mhf_path_join(e->folder, name, &path);
    if (status == MHF_OK)
        status = mhf_safetensors_create(path.data, e->order, n, &writer);
    mhf_buf_free(&path);
    MHF_TRY(status);
    for (int64_t i = 0; status == MHF_OK && i < n; i++)
        status = e->order[i]->type == MHF_TENSOR_I64
                     ? append_table(e, &writer)
                     : append_parameter(e, e->order[i]->name, &writer);
    return mhf_safetensors_finish(&writer, status);
}

/* ---- the index of a model in several files -------------------------------------------------- */

static mhf_status make_index(const export *e, mhf_buf *out)
{
    json_int_t total = 0;
    json_t *map = json_object();
    int failed = map ? 0 : -1;
    for (int64_t i = 0; i < e->n; i++) {
        char name[FILE_NAME];
        shard_name(e, e->tensors[i].file, name);
        failed |= json_object_set_new(map, e->tensors[i].name, json_string(name));
        total += e->tensors[i].bytes;
    }
    json_t *index =
        json_pack("{s:{s:I,s:I},s:O}", "metadata", "total_parameters",
                  (json_int_t)e->source->registry.total, "total_size", total, "weight_map", map);
    mhf_status status = failed || !index ? mhf_fail(MHF_E_NOMEM, "no memory for the index")
                                         : mhf_json_text(index, out);
    json_decref(index);
    json_decref(map);
    return status;
}

static mhf_status write_index(const export *e)
{
    mhf_buf path = {0}, text = {0};
    mhf_status status = mhf_path_join(e->folder, index_name, &path);
    if (status == MHF_OK)
        status = make_index(e, &text);
    if (status == MHF_OK)
        status = mhf_file_write(path.data, text.data, text.n);
    mhf_buf_free(&path);
    mhf_buf_free(&text);
    return status;
}

/* ---- weights of an older export in the same folder ------------------------------------------ */

static bool is_weights(const char *name)
{
    static const char digits[] = "0123456789";
    if (strcmp(name, single_name) == 0 || strcmp(name, index_name) == 0)
        return true;
    return strlen(name) == strlen("model-00001-of-00001.safetensors") &&
           strncmp(name, "model-", 6) == 0 && strspn(name + 6, digits) == 5 &&
           strncmp(name + 11, "-of-", 4) == 0 && strspn(name + 15, digits) == 5 &&
           strcmp(name + 20, ".safetensors") == 0;
}

static bool is_new(const export *e, const char *name)
{
    char mine[FILE_NAME];
    if (strcmp(name, index_name) == 0)
        return e->n_shards > 1;
    for (int32_t shard = 0; shard < e->n_shards; shard++) {
        shard_name(e, shard, mine);
        if (strcmp(name, mine) == 0)
            return true;
    }
    return false;
}

/* Readers prefer model.safetensors to an index: old weights must not stand in for the new. */
static mhf_status remove_old_weights(const export *e)
{
    mhf_status status = MHF_OK;
    mhf_buf path = {0};
    int removed = 0;
    DIR *dir = opendir(e->folder);
    if (!dir)
        return mhf_fail_io(e->folder, "can't open the folder");
    const struct dirent *entry;
    while (status == MHF_OK && (entry = readdir(dir)) != NULL) {
        if (!is_weights(entry->d_name) || is_new(e, entry->d_name))
            continue;
        status = mhf_path_join(e->folder, entry->d_name, &path);
        if (status == MHF_OK && unlink(path.data) != 0)
            status = mhf_fail_io(path.data, "can't remove the older weights");
        removed++;
    }
    if (status == MHF_OK && removed > 0)
        mhf_log(MHF_LOG_INFO, "%s: %d files of older weights removed", e->folder, removed);
    closedir(dir);
    mhf_buf_free(&path);
    return status;
}

mhf_status mhf_export(mhf_source *source, const char *folder, const mhf_export_options *options)
{
    export e = {.source = source, .folder = folder, .options = options};
    if ((options->type != MHF_F32 && options->type != MHF_BF16) || options->max_shard_bytes < 1)
        return mhf_fail(MHF_E_USAGE, "an export is of float32 or bfloat16, in files of some bytes");
    mhf_status status = plan(&e);
    if (status == MHF_OK)
        status = mhf_dir_make(folder);
    for (int32_t shard = 0; status == MHF_OK && shard < e.n_shards; shard++)
        status = write_shard(&e, shard);
    if (status == MHF_OK && e.n_shards > 1)
        status = write_index(&e);
    if (status == MHF_OK)
        status = mhf_export_files(source, folder, options);
    if (status == MHF_OK)
        status = remove_old_weights(&e);
    mhf_signatures_free(&e.table);
    free(e.tensors);
    free(e.order);
    free(e.values);
    free(e.halves);
    return status;
}
