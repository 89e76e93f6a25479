/* SPDX-License-Identifier: ISC */
/* The small files of an exported model: config.json made, the others as they came. */
#include <string.h>

#include "checkpoint.h"
#include "export.h"
#include "source.h"

static const char config_name[] = "config.json", tokenizer_name[] = "tokenizer.json";
static const char tokenizer_config_name[] = "tokenizer_config.json";

static mhf_status write_to(const char *folder, const char *name, const char *bytes, size_t n)
{
    mhf_buf path = {0};
    mhf_status status = mhf_path_join(folder, name, &path);
    if (status == MHF_OK)
        status = mhf_file_write(path.data, bytes, n);
    mhf_buf_free(&path);
    return status;
}

/* Names in a checkpoint come from nobody we know: none may leave the folder or stand for weights.
 */
static mhf_status check_name(const mhf_source *source, const char *name)
{
    if (*name && *name != '.' && !strpbrk(name, "/\\") && strncmp(name, "model", 5) != 0)
        return MHF_OK;
    return mhf_fail(MHF_E_DATA, "%s: a kept file is called '%.100s', which no export writes",
                    source->info.path, name);
}

static mhf_status write_config(const mhf_source *source, const char *folder,
                               const mhf_export_options *options, const mhf_buf *kept)
{
    const char *dtype = options->type == MHF_BF16 ? "bfloat16" : "float32";
    mhf_buf text = {0}, name = {0};
    mhf_status status = mhf_path_join(source->info.path, config_name, &name);
    if (status == MHF_OK)
        status = mhf_export_config(&source->config, dtype, kept, name.data, &text);
    if (status == MHF_OK)
        status = write_to(folder, config_name, text.data, text.n);
    mhf_buf_free(&text);
    mhf_buf_free(&name);
    return status;
}

/* ---- the tokenizer -------------------------------------------------------------------------- */

static bool has_tokenizer(const mhf_source *source)
{
    mhf_buf path = {0};
    bool found = source->info.is_checkpoint
                     ? mhf_kept_path(tokenizer_name, &path) == MHF_OK &&
                           mhf_h5_exists(&source->file, path.data)
                     : mhf_path_join(source->info.path, tokenizer_name, &path) == MHF_OK &&
                           mhf_file_exists(path.data);
    mhf_buf_free(&path);
    return found;
}

static int set_token(json_t *object, const char *key, const mhf_tokenizer *tokenizer, mhf_token id)
{
    size_t n = 0;
    const char *piece = id < 0 ? NULL : mhf_tokenizer_piece(tokenizer, id, &n);
    return json_object_set_new(object, key, piece ? json_stringn(piece, n) : json_null());
}

/* Special tokens that were named on a command line stand in no file yet. */
static mhf_status make_tokenizer_config(const mhf_tokenizer *tokenizer, mhf_buf *out)
{
    json_t *o = json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
    mhf_status status = MHF_OK;
    if (!o || set_token(o, "bos_token", tokenizer, mhf_tokenizer_bos(tokenizer)) ||
        set_token(o, "eos_token", tokenizer, mhf_tokenizer_eos(tokenizer)) ||
        set_token(o, "pad_token", tokenizer, mhf_tokenizer_pad(tokenizer)) ||
        set_token(o, "unk_token", tokenizer, mhf_tokenizer_unk(tokenizer)))
        status = mhf_fail(MHF_E_NOMEM, "no memory for %s", tokenizer_config_name);
    else
        status = mhf_json_text(o, out);
    json_decref(o);
    return status;
}

/* Without a class transformers takes that of the model type, whose splitting may be another: name
 * the one that does what tokenizer.json says. What else the file says stays as it is. */
static mhf_status add_class(const char *config, size_t n, mhf_buf *out)
{
    json_t *o = json_loadb(config, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    const char *brace = memchr(config, '{', n);
    mhf_status status = MHF_OK;
    if (brace && json_is_object(o) && !json_object_get(o, "tokenizer_class")) {
        const size_t head = (size_t)(brace - config) + 1;
        status = mhf_buf_add(out, config, head);
        if (status == MHF_OK)
            status = mhf_buf_printf(out, "\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"%s",
                                    json_object_size(o) > 0 ? "," : "\n");
        if (status == MHF_OK)
            status = mhf_buf_add(out, config + head, n - head);
    }
    json_decref(o);
    return status;
}

/* Files that were imported stay as they came. */
static mhf_status write_tokenizer(const mhf_source *source, const char *folder, bool imported)
{
    mhf_tokenizer *tokenizer = NULL;
    mhf_buf made = {0};
    size_t n;
    if (!has_tokenizer(source))
        return MHF_OK;
    mhf_status status = mhf_source_tokenizer(source, &tokenizer);
    if (status == MHF_OK) {
        const char *json = mhf_tokenizer_json(tokenizer, &n);
        status = write_to(folder, tokenizer_name, json, n);
    }
    const char *config = status == MHF_OK ? mhf_tokenizer_config_json(tokenizer, &n) : NULL;
    if (status == MHF_OK && !config)
        status = make_tokenizer_config(tokenizer, &made);
    else if (status == MHF_OK && !imported)
        status = add_class(config, n, &made);
    if (made.n > 0) {
        config = made.data;
        n = made.n;
    }
    if (status == MHF_OK)
        status = write_to(folder, tokenizer_config_name, config, n);
    mhf_buf_free(&made);
    mhf_tokenizer_free(tokenizer);
    return status;
}

mhf_status mhf_export_files(const mhf_source *source, const char *folder,
                            const mhf_export_options *options)
{
    mhf_carried carried = {0};
    const mhf_buf *config = NULL;
    mhf_status status = mhf_source_carried(source, &carried);
    for (int32_t i = 0; status == MHF_OK && i < carried.n; i++) {
        const mhf_buf *text = &carried.texts[i];
        if (strcmp(carried.names[i], config_name) == 0) {
            config = text;
            continue;
        }
        status = check_name(source, carried.names[i]);
        if (status == MHF_OK)
            status = write_to(folder, carried.names[i], text->data, text->n);
    }
    if (status == MHF_OK)
        status = write_tokenizer(source, folder, config != NULL);
    if (status == MHF_OK)
        status = write_config(source, folder, options, config);
    mhf_carried_free(&carried);
    return status;
}
