/* SPDX-License-Identifier: ISC */
/* Writing hidden states: rank 0 lays the file out, all ranks write their rows in any order, and
 * when all is written it is read back once for its checksums. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"
#include "halves.h"
#include "mhf/store.h"
#include "states.h"

struct mhf_states_writer {
    mhf_h5 held; /* rank 0's hold on the temporary file */
    mhf_h5 file; /* opened together */
    mhf_buf path;
    int32_t *layers; /* [n_layers] */
    int32_t n_layers, num_hidden_layers;
    int64_t d;
    mhf_h5_type type;
    uint16_t *halves; /* [STATES_PIECE] */
};

enum { STATES_PIECE = 1 << 20 }; /* elements converted at once */

mhf_status mhf_states_path(const char *layer, mhf_buf *out)
{
    mhf_buf_clear(out);
    return mhf_buf_printf(out, "/layers/%s/states", layer);
}

static void layer_name(int32_t layer, int32_t num_hidden_layers, char out[16])
{
    if (layer > num_hidden_layers)
        snprintf(out, 16, "norm");
    else
        snprintf(out, 16, "%02d", layer);
}

static mhf_h5_type stored_type(mhf_state_type type)
{
    static const mhf_h5_type types[] = {MHF_H5_F32, MHF_H5_F16, MHF_H5_BF16};
    return types[type];
}

/* ---- laying out ----------------------------------------------------------------------------- */

static mhf_status put_layer_names(mhf_h5 *file, const mhf_states_meta *meta)
{
    char(*names)[16] = NULL;
    const char **pointers = NULL;
    size_t *lengths = NULL;
    mhf_status status = mhf_new(&names, meta->n_layers, sizeof *names, "layer names");
    if (status == MHF_OK)
        status = mhf_new(&pointers, meta->n_layers, sizeof *pointers, "layer names");
    if (status == MHF_OK)
        status = mhf_new(&lengths, meta->n_layers, sizeof *lengths, "layer names");
    for (int32_t i = 0; status == MHF_OK && i < meta->n_layers; i++) {
        layer_name(meta->layers[i], meta->num_hidden_layers, names[i]);
        pointers[i] = names[i];
        lengths[i] = strlen(names[i]);
    }
    if (status == MHF_OK)
        status = mhf_h5_put_strings(file, "/layer_names", meta->n_layers, pointers, lengths);
    free(names);
    free(pointers);
    free(lengths);
    return status;
}

static mhf_status put_items(mhf_h5 *file, const mhf_states_meta *meta)
{
    mhf_h5_shape offsets = {1, {meta->items + 1}};
    mhf_h5_shape ids = {1, {(int64_t)meta->token_offsets[meta->items]}};
    mhf_h5_shape pooled = {2, {meta->items, 2}};
    MHF_TRY(mhf_h5_put_strings(file, "/items/text", meta->items, meta->texts, meta->text_lengths));
    MHF_TRY(mhf_h5_put(file, "/items/token_offsets", MHF_H5_U64, &offsets, meta->token_offsets));
    MHF_TRY(mhf_h5_put(file, "/items/token_ids", MHF_H5_U32, &ids, meta->token_ids));
    if (meta->pooled) {
        MHF_TRY(mhf_h5_put(file, "/items/pooled", MHF_H5_U64, &pooled, meta->pooled));
        MHF_TRY(mhf_h5_put_int(file, "/", "unknown_id", meta->unknown_id));
    }
    return MHF_OK;
}

static int64_t rows_of_chunk(const mhf_states_meta *meta, mhf_h5_type type)
{
    int64_t rows = MHF_H5_SUM_BYTES / (meta->d * mhf_h5_type_size(type));
    rows = rows < meta->rows ? rows : meta->rows;
    return rows > 0 || meta->rows == 0 ? rows : 1;
}

static mhf_status lay_out(mhf_h5 *file, const mhf_states_meta *meta)
{
    mhf_h5_type type = stored_type(meta->type);
    mhf_h5_shape shape = {2, {meta->rows, meta->d}};
    mhf_buf path = {0};
    char name[16];
    MHF_TRY(mhf_h5_put_text(file, "/", "pooling", meta->pooling));
    MHF_TRY(mhf_h5_put_text(file, "/", "checkpoint", meta->checkpoint ? meta->checkpoint : ""));
    MHF_TRY(mhf_h5_put_text(file, "/", "tokenizer_sha256",
                            meta->tokenizer_sha256 ? meta->tokenizer_sha256 : ""));
    MHF_TRY(mhf_h5_put_int(file, "/", "step", meta->step));
    MHF_TRY(put_layer_names(file, meta));
    MHF_TRY(put_items(file, meta));
    mhf_status status = MHF_OK;
    for (int32_t i = 0; status == MHF_OK && i < meta->n_layers; i++) {
        layer_name(meta->layers[i], meta->num_hidden_layers, name);
        status = mhf_states_path(name, &path);
        if (status == MHF_OK)
            status = mhf_h5_reserve(file, path.data, type, &shape, rows_of_chunk(meta, type));
    }
    mhf_buf_free(&path);
    return status;
}

/* ---- the writer ----------------------------------------------------------------------------- */

static void free_writer(mhf_states_writer *writer)
{
    if (!writer)
        return;
    mhf_h5_free(&writer->file);
    mhf_h5_free(&writer->held);
    mhf_buf_free(&writer->path);
    free(writer->layers);
    free(writer->halves);
    free(writer);
}

static mhf_status new_writer(const char *path, const mhf_states_meta *meta, mhf_states_writer **out)
{
    mhf_states_writer *writer = NULL;
    MHF_TRY(mhf_new(&writer, 1, sizeof *writer, "the writer of states"));
    *out = writer;
    writer->n_layers = meta->n_layers;
    writer->num_hidden_layers = meta->num_hidden_layers;
    writer->d = meta->d;
    writer->type = stored_type(meta->type);
    MHF_TRY(mhf_buf_add_text(&writer->path, path));
    MHF_TRY(mhf_new(&writer->layers, meta->n_layers, sizeof *writer->layers, "layers"));
    memcpy(writer->layers, meta->layers, (size_t)meta->n_layers * sizeof *writer->layers);
    return mhf_new(&writer->halves, STATES_PIECE, sizeof *writer->halves, "a piece");
}

mhf_status mhf_states_writer_new(const char *path, const mhf_states_meta *meta,
                                 mhf_states_writer **out)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mhf_states_writer *writer = NULL;
    *out = NULL;
    mhf_status status = new_writer(path, meta, &writer);
    if (status == MHF_OK && rank == 0) {
        status = mhf_h5_create(path, mhf_states_format, &writer->held);
        if (status == MHF_OK)
            status = lay_out(&writer->held, meta);
        if (status == MHF_OK)
            status = mhf_h5_close(&writer->held);
    }
    status = mhf_agree(status);
    if (status == MHF_OK)
        status = mhf_agree(mhf_h5_join(path, MPI_COMM_WORLD, &writer->file));
    if (status != MHF_OK)
        free_writer(writer);
    else
        *out = writer;
    return status;
}

static mhf_status put_converted(mhf_states_writer *writer, const char *path, int64_t first,
                                int64_t count, const float *data)
{
    if (writer->type == MHF_H5_F32)
        return mhf_h5_write_plain(&writer->file, path, first, count, data);
    for (int64_t done = 0; done < count; done += STATES_PIECE) {
        int64_t n = count - done < STATES_PIECE ? count - done : STATES_PIECE;
        if (writer->type == MHF_H5_F16)
            mhf_floats_to_f16(data + done, n, writer->halves);
        else
            mhf_floats_to_bf16(data + done, n, writer->halves);
        MHF_TRY(mhf_h5_write_plain(&writer->file, path, first + done, n, writer->halves));
    }
    return MHF_OK;
}

mhf_status mhf_states_writer_put(mhf_states_writer *writer, int32_t i, int64_t first, int64_t n,
                                 const float *data)
{
    char name[16];
    mhf_buf path = {0};
    layer_name(writer->layers[i], writer->num_hidden_layers, name);
    mhf_status status = mhf_states_path(name, &path);
    if (status == MHF_OK)
        status = put_converted(writer, path.data, first * writer->d, n * writer->d, data);
    mhf_buf_free(&path);
    return status;
}

static mhf_status sum_layers(mhf_states_writer *writer)
{
    int rank, n_ranks;
    char name[16];
    mhf_buf path = {0};
    mhf_status status = MHF_OK;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (int32_t i = 0; status == MHF_OK && i < writer->n_layers; i++) {
        layer_name(writer->layers[i], writer->num_hidden_layers, name);
        status = mhf_states_path(name, &path);
        if (status == MHF_OK)
            status = mhf_h5_sum_written(&writer->file, path.data, rank, n_ranks);
    }
    mhf_buf_free(&path);
    return status;
}

mhf_status mhf_states_writer_finish(mhf_states_writer *writer, mhf_status mine)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mhf_status closed = mhf_h5_close(&writer->file); /* collective, whatever failed before */
    mhf_h5_free(&writer->file);
    mhf_status status = mhf_agree(mine != MHF_OK ? mine : closed);
    if (status == MHF_OK)
        status = mhf_agree(mhf_h5_join(writer->path.data, MPI_COMM_WORLD, &writer->file));
    if (status == MHF_OK) {
        status = sum_layers(writer);
        closed = mhf_h5_close(&writer->file);
        status = mhf_agree(status != MHF_OK ? status : closed);
    }
    if (status == MHF_OK)
        status = mhf_agree(rank == 0 ? mhf_h5_publish(&writer->held) : MHF_OK);
    free_writer(writer);
    return status;
}
