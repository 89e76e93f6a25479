/* SPDX-License-Identifier: ISC */
/* Reading hidden states. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"
#include "halves.h"
#include "mhf/store.h"
#include "states.h"

const char mhf_states_format[] = "mhf-states";

enum { PIECE = 1 << 20, NAME_MAX_BYTES = 15 };

struct mhf_states {
    mhf_h5 file;
    char (*names)[NAME_MAX_BYTES + 1]; /* [layers] */
    mhf_h5_data *layers;               /* [layers] */
    int32_t n_layers;
    int64_t items;
    mhf_buf pooling, checkpoint, tokenizer_sha256;
    mhf_h5_strings texts;
    uint64_t *offsets, *pooled; /* [items + 1]; [items, 2] or NULL */
    uint32_t *ids;
    int64_t unknown_id;
    uint16_t *halves; /* [PIECE] */
};

/* ---- opening -------------------------------------------------------------------------------- */

static mhf_status take_names(mhf_states *states, const mhf_h5_strings *names)
{
    MHF_TRY(mhf_narrow(names->n, "the number of layers", &states->n_layers));
    MHF_TRY(mhf_new(&states->names, names->n, sizeof *states->names, "layer names"));
    MHF_TRY(mhf_new(&states->layers, names->n, sizeof *states->layers, "layers"));
    for (int32_t i = 0; i < states->n_layers; i++)
        states->layers[i].id = -1;
    for (int32_t i = 0; i < states->n_layers; i++) {
        const char *name = names->bytes + names->offsets[i];
        size_t n = names->offsets[i + 1] - names->offsets[i];
        if (n == 0 || n > NAME_MAX_BYTES || memchr(name, '/', n) || memchr(name, 0, n) ||
            mhf_utf8_valid(name, n) != n)
            return mhf_fail(MHF_E_DATA, "%s: layer name %d is empty, too long or not a name",
                            states->file.path.data, i);
        memcpy(states->names[i], name, n);
    }
    return MHF_OK;
}

static mhf_status open_layer(mhf_states *states, int32_t i)
{
    mhf_buf path = {0};
    mhf_h5_type type = MHF_H5_F32;
    mhf_h5_data *layer = &states->layers[i];
    mhf_status status = mhf_states_path(states->names[i], &path);
    if (status == MHF_OK)
        status = mhf_h5_type_of(&states->file, path.data, &type);
    if (status == MHF_OK && type != MHF_H5_F32 && type != MHF_H5_F16 && type != MHF_H5_BF16)
        status = mhf_fail(MHF_E_DATA, "%s: the type of %s is not float32, float16 or bfloat16",
                          states->file.path.data, path.data);
    if (status == MHF_OK)
        status = mhf_h5_data_open(&states->file, path.data, type, 2, layer);
    const mhf_h5_shape *first = &states->layers[0].shape;
    if (status == MHF_OK &&
        (layer->shape.dims[0] != first->dims[0] || layer->shape.dims[1] != first->dims[1]))
        status = mhf_fail(MHF_E_DATA, "%s: %s is [%lld, %lld], the first layer [%lld, %lld]",
                          states->file.path.data, path.data, (long long)layer->shape.dims[0],
                          (long long)layer->shape.dims[1], (long long)first->dims[0],
                          (long long)first->dims[1]);
    mhf_buf_free(&path);
    return status;
}

static mhf_status open_layers(mhf_states *states)
{
    mhf_h5_strings names = {0};
    mhf_status status = mhf_h5_get_strings(&states->file, "/layer_names", &names);
    if (status == MHF_OK && names.n < 1)
        status = mhf_fail(MHF_E_DATA, "%s: has no layers", states->file.path.data);
    if (status == MHF_OK)
        status = take_names(states, &names);
    for (int32_t i = 0; status == MHF_OK && i < states->n_layers; i++)
        status = open_layer(states, i);
    mhf_h5_strings_free(&names);
    return status;
}

static mhf_status check_offsets(const mhf_states *states, int64_t n, int64_t n_ids)
{
    bool good = n == states->items + 1 && states->offsets[0] == 0 &&
                states->offsets[states->items] == (uint64_t)n_ids;
    for (int64_t i = 0; good && i < states->items; i++)
        good = states->offsets[i] <= states->offsets[i + 1];
    if (!good)
        return mhf_fail(MHF_E_DATA, "%s: /items/token_offsets does not run from 0 to %lld upwards",
                        states->file.path.data, (long long)n_ids);
    return MHF_OK;
}

static mhf_status read_pooled(mhf_states *states)
{
    static const char path[] = "/items/pooled";
    mhf_h5_data data;
    mhf_status status = mhf_h5_data_open(&states->file, path, MHF_H5_U64, 2, &data);
    if (status == MHF_OK && (data.shape.dims[0] != states->items || data.shape.dims[1] != 2))
        status = mhf_fail(MHF_E_DATA, "%s: %s is not [%lld, 2]", states->file.path.data, path,
                          (long long)states->items);
    if (status == MHF_OK)
        status = mhf_new(&states->pooled, data.count, sizeof *states->pooled, path);
    if (status == MHF_OK)
        status = mhf_h5_data_read(&data, 0, data.count, states->pooled);
    for (int64_t i = 0; status == MHF_OK && i < states->items; i++) {
        const uint64_t *range = &states->pooled[2 * i];
        if (range[0] > range[1] || range[1] > states->offsets[i + 1] - states->offsets[i])
            status = mhf_fail(MHF_E_DATA, "%s: %s of item %lld is no range of its tokens",
                              states->file.path.data, path, (long long)i);
    }
    mhf_h5_data_close(&data);
    return status;
}

static mhf_status read_items(mhf_states *states)
{
    const mhf_h5 *file = &states->file;
    int64_t n, n_ids;
    MHF_TRY(mhf_h5_get_strings(file, "/items/text", &states->texts));
    states->items = states->texts.n;
    MHF_TRY(mhf_h5_get(file, "/items/token_offsets", MHF_H5_U64, &states->offsets, &n));
    MHF_TRY(mhf_h5_get(file, "/items/token_ids", MHF_H5_U32, &states->ids, &n_ids));
    MHF_TRY(check_offsets(states, n, n_ids));
    states->unknown_id = -1;
    if (mhf_h5_has_attribute(file, "/", "unknown_id"))
        MHF_TRY(mhf_h5_get_int(file, "/", "unknown_id", -1, INT32_MAX, &states->unknown_id));
    if (mhf_h5_exists(file, "/items/pooled"))
        MHF_TRY(read_pooled(states));
    bool tokens = strcmp(states->pooling.data, "none") == 0;
    int64_t rows = mhf_states_rows(states);
    if (rows != (tokens ? n_ids : states->items))
        return mhf_fail(MHF_E_DATA, "%s: %lld rows for %lld items of %lld tokens, pooling '%.20s'",
                        file->path.data, (long long)rows, (long long)states->items,
                        (long long)n_ids, states->pooling.data);
    return MHF_OK;
}

static mhf_status open_states(const char *path, mhf_states *states)
{
    const mhf_h5 *file = &states->file;
    MHF_TRY(mhf_new(&states->halves, PIECE, sizeof *states->halves, "a piece"));
    MHF_TRY(mhf_h5_open(path, mhf_states_format, &states->file));
    MHF_TRY(mhf_h5_get_text(file, "/", "pooling", &states->pooling));
    if (mhf_h5_has_attribute(file, "/", "checkpoint"))
        MHF_TRY(mhf_h5_get_text(file, "/", "checkpoint", &states->checkpoint));
    if (mhf_h5_has_attribute(file, "/", "tokenizer_sha256"))
        MHF_TRY(mhf_h5_get_text(file, "/", "tokenizer_sha256", &states->tokenizer_sha256));
    MHF_TRY(open_layers(states));
    return read_items(states);
}

mhf_status mhf_states_open(const char *path, mhf_states **out)
{
    mhf_states *states = NULL;
    *out = NULL;
    MHF_TRY(mhf_new(&states, 1, sizeof *states, "hidden states"));
    mhf_status status = open_states(path, states);
    if (status != MHF_OK)
        mhf_states_close(states);
    else
        *out = states;
    return status;
}

void mhf_states_close(mhf_states *states)
{
    if (!states)
        return;
    for (int32_t i = 0; states->layers && i < states->n_layers; i++)
        mhf_h5_data_close(&states->layers[i]);
    mhf_h5_free(&states->file);
    mhf_h5_strings_free(&states->texts);
    mhf_buf_free(&states->pooling);
    mhf_buf_free(&states->checkpoint);
    mhf_buf_free(&states->tokenizer_sha256);
    free(states->names);
    free(states->layers);
    free(states->offsets);
    free(states->pooled);
    free(states->ids);
    free(states->halves);
    free(states);
}

/* ---- what is in it -------------------------------------------------------------------------- */

int32_t mhf_states_layers(const mhf_states *states)
{
    return states->n_layers;
}

const char *mhf_states_layer_name(const mhf_states *states, int32_t i)
{
    return states->names[i];
}

int64_t mhf_states_rows(const mhf_states *states)
{
    return states->layers[0].shape.dims[0];
}

int64_t mhf_states_width(const mhf_states *states)
{
    return states->layers[0].shape.dims[1];
}

const char *mhf_states_pooling(const mhf_states *states)
{
    return states->pooling.data;
}

int64_t mhf_states_items(const mhf_states *states)
{
    return states->items;
}

const char *mhf_states_text(const mhf_states *states, int64_t i, size_t *n)
{
    *n = states->texts.offsets[i + 1] - states->texts.offsets[i];
    return states->texts.bytes + states->texts.offsets[i];
}

const uint32_t *mhf_states_pooled(const mhf_states *states, int64_t i, int64_t *n)
{
    uint64_t begin = states->offsets[i], end = states->offsets[i + 1];
    if (states->pooled) {
        end = begin + states->pooled[2 * i + 1];
        begin += states->pooled[2 * i];
    }
    *n = (int64_t)(end - begin);
    return states->ids + begin;
}

int64_t mhf_states_unknown_id(const mhf_states *states)
{
    return states->unknown_id;
}

const char *mhf_states_checkpoint(const mhf_states *states)
{
    return states->checkpoint.data ? states->checkpoint.data : "";
}

const char *mhf_states_tokenizer_sha256(const mhf_states *states)
{
    return states->tokenizer_sha256.data ? states->tokenizer_sha256.data : "";
}

mhf_status mhf_states_read(mhf_states *states, int32_t i, int64_t first, int64_t n, float *out)
{
    mhf_h5_data *layer = &states->layers[i];
    int64_t at, count;
    if (!mhf_mul(first, layer->row, &at) || !mhf_mul(n, layer->row, &count))
        return mhf_fail(MHF_E_DATA, "%s: rows %lld … were wanted, it has %lld",
                        states->file.path.data, (long long)first, (long long)layer->shape.dims[0]);
    if (layer->type == MHF_H5_F32)
        return mhf_h5_data_read(layer, at, count, out);
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t some = count - done < PIECE ? count - done : PIECE;
        MHF_TRY(mhf_h5_data_read(layer, at + done, some, states->halves));
        if (layer->type == MHF_H5_F16)
            mhf_f16_to_floats(states->halves, some, out + done);
        else
            mhf_bf16_to_floats(states->halves, some, out + done);
    }
    return MHF_OK;
}
