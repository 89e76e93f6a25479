/* SPDX-License-Identifier: ISC */
/* mhf info: what is in a file. The answer is one JSON object; in words it is the same, indented. */
#include "cmd.h"

#include <inttypes.h>
#include <string.h>

#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    bool json, verify;
} arguments;

/* ---- options --------------------------------------------------------------------------------- */

enum { KEY_JSON = 0x100, KEY_VERIFY };

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {"verify", KEY_VERIFY, NULL, 0, "Read all of it against its checksums too", 0},
    {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    switch (option->key) {
    case KEY_JSON:
        a->json = true;
        break;
    case KEY_VERIFY:
        a->verify = true;
        break;
    }
}

static const mhf_command command = {
    .name = "mhf info",
    .operands = "FILE",
    .about =
        "Tell what is in a checkpoint, run folder, Hugging Face directory, token store, signature "
        "table, file of hidden states, study or tokenizer.json.",
    .options = options,
    .take = take};

/* ---- a tokenizer ---------------------------------------------------------------------------- */

static mhf_status set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        return mhf_fail(MHF_E_NOMEM, "no memory for '%s'", key);
    return MHF_OK;
}

static mhf_status set_special(json_t *object, const char *key, const mhf_tokenizer *tokenizer,
                              mhf_token id)
{
    size_t n = 0;
    const char *piece = id < 0 ? NULL : mhf_tokenizer_piece(tokenizer, id, &n);
    return set(object, key,
               piece ? json_pack("{s:i,s:s%}", "id", id, "token", piece, n) : json_null());
}

static mhf_status describe_tokenizer(const mhf_tokenizer *tokenizer, json_t *o)
{
    MHF_TRY(set(o, "tokens", json_integer(mhf_tokenizer_size(tokenizer))));
    MHF_TRY(set(o, "base_tokens", json_integer(mhf_tokenizer_base_size(tokenizer))));
    MHF_TRY(set_special(o, "bos", tokenizer, mhf_tokenizer_bos(tokenizer)));
    MHF_TRY(set_special(o, "eos", tokenizer, mhf_tokenizer_eos(tokenizer)));
    MHF_TRY(set_special(o, "pad", tokenizer, mhf_tokenizer_pad(tokenizer)));
    MHF_TRY(set_special(o, "unk", tokenizer, mhf_tokenizer_unk(tokenizer)));
    return set(o, "sha256", json_string(mhf_tokenizer_sha256(tokenizer)));
}

static mhf_status info_tokenizer(const char *path, json_t *o)
{
    mhf_tokenizer *tokenizer;
    MHF_TRY(mhf_tokenizer_load(path, NULL, &tokenizer));
    mhf_status status = set(o, "format", json_string("tokenizer"));
    if (status == MHF_OK)
        status = describe_tokenizer(tokenizer, o);
    mhf_tokenizer_free(tokenizer);
    return status;
}

/* ---- a model -------------------------------------------------------------------------------- */

static json_t *unsigned_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_sprintf("%" PRIu64, value);
}

static mhf_status describe_table(const mhf_signatures *table, json_t *o)
{
    const mhf_signature_options *has = &table->options;
    MHF_TRY(set(o, "rule", json_string(mhf_signature_rule_name(has->rule))));
    MHF_TRY(set(o, "num_hashes", json_integer(has->num_hashes)));
    MHF_TRY(set(o, "num_buckets", json_integer(has->num_buckets)));
    MHF_TRY(set(o, "num_lsh", json_integer(has->num_lsh)));
    MHF_TRY(set(o, "hash_seed", json_integer(has->hash_seed)));
    MHF_TRY(set(o, "rows", json_integer(table->rows)));
    MHF_TRY(set(o, "tokens", json_integer(table->size)));
    MHF_TRY(set(o, "pad_id", json_integer(table->pad)));
    MHF_TRY(set(o, "duplicates", json_integer(table->duplicates)));
    return set(o, "tokenizer_sha256", json_string(table->tokenizer_sha256));
}

static mhf_status describe_state(const mhf_source_info *info, json_t *o)
{
    MHF_TRY(set(o, "step", json_integer(info->step)));
    MHF_TRY(set(o, "tokens_seen", json_integer(info->tokens_seen)));
    MHF_TRY(set(o, "blocks_seen", json_integer(info->blocks_seen)));
    MHF_TRY(set(o, "optimizer", json_boolean(info->has_optimizer)));
    MHF_TRY(set(o, "seed", unsigned_number(info->seed)));
    MHF_TRY(set(o, "data_fingerprint", unsigned_number(info->data_fingerprint)));
    MHF_TRY(set(o, "reduction_shards", json_integer(info->reduction_shards)));
    MHF_TRY(set(o, "threads", json_integer(info->threads)));
    MHF_TRY(set(o, "engine", json_string(info->engine)));
    return set(o, "program_build", json_string(info->program_build));
}

static mhf_status describe_config(const mhf_config *config, json_t *o)
{
    mhf_registry registry;
    mhf_buf text = {0};
    json_t *json = NULL;
    MHF_TRY(mhf_registry_new(config, &registry));
    json_int_t total = registry.total, embedding = registry.embedding;
    mhf_registry_free(&registry);
    MHF_TRY(set(o, "head", json_string(config->head == MHF_HEAD_MHF ? "mhf" : "standard")));
    MHF_TRY(set(o, "parameters",
                json_pack("{s:I,s:I,s:I}", "total", total, "embedding", embedding, "non_embedding",
                          total - embedding)));
    mhf_status status = mhf_config_to_json(config, &text);
    if (status == MHF_OK)
        status = mhf_json_parse(text.data, text.n, "config", &json);
    if (status == MHF_OK)
        status = set(o, "config", json);
    mhf_buf_free(&text);
    return status;
}

/* A model may have no tokenizer yet: it is told all the same. */
static mhf_status describe_parts(const mhf_source *source, json_t *o)
{
    mhf_tokenizer *tokenizer = NULL;
    mhf_signatures table = {0};
    mhf_status status = mhf_source_tokenizer(source, &tokenizer);
    if (status == MHF_E_IO || (status != MHF_OK && mhf_source_info_of(source)->is_checkpoint))
        return set(o, "tokenizer", json_null());
    MHF_TRY(status);
    if (mhf_source_config(source)->head == MHF_HEAD_MHF)
        status = mhf_source_signatures(source, &table);
    if (status == MHF_OK && table.ids) {
        status = set(o, "signatures", json_object());
        if (status == MHF_OK)
            status = describe_table(&table, json_object_get(o, "signatures"));
    }
    if (status == MHF_OK)
        status = set(o, "tokenizer", json_object());
    if (status == MHF_OK)
        status = describe_tokenizer(tokenizer, json_object_get(o, "tokenizer"));
    mhf_signatures_free(&table);
    mhf_tokenizer_free(tokenizer);
    return status;
}

static mhf_status info_model(const char *path, bool verify, json_t *o)
{
    mhf_source *source;
    MHF_TRY(mhf_source_open(path, &source));
    const mhf_source_info *info = mhf_source_info_of(source);
    const char *format = info->is_checkpoint ? "mhf-checkpoint" : "huggingface";
    mhf_status status = set(o, "format", json_string(format));
    if (status == MHF_OK)
        status = set(o, "path", json_string(info->path));
    if (status == MHF_OK && info->is_checkpoint)
        status = describe_state(info, o);
    if (status == MHF_OK)
        status = describe_config(mhf_source_config(source), o);
    if (status == MHF_OK)
        status = describe_parts(source, o);
    if (status == MHF_OK && verify)
        status = mhf_source_verify(source);
    mhf_source_close(source);
    return status;
}

/* ---- other HDF5 files ----------------------------------------------------------------------- */

static mhf_status info_tokens(const char *path, json_t *o)
{
    mhf_tokens *tokens;
    MHF_TRY(mhf_tokens_open(path, &tokens));
    const mhf_tokens_info *info = mhf_tokens_info_of(tokens);
    mhf_status status = set(o, "tokens", json_integer(info->n));
    if (status == MHF_OK)
        status = set(o, "documents", json_integer(info->documents));
    mhf_tokens_close(tokens);
    return status;
}

static mhf_status info_table(const char *path, json_t *o)
{
    mhf_signatures table;
    MHF_TRY(mhf_signatures_read(path, &table));
    mhf_status status = describe_table(&table, o);
    mhf_signatures_free(&table);
    return status;
}

static mhf_status info_states(const char *path, json_t *o)
{
    mhf_states *states;
    MHF_TRY(mhf_states_open(path, &states));
    json_t *names = json_array();
    for (int32_t i = 0; i < mhf_states_layers(states); i++)
        json_array_append_new(names, json_string(mhf_states_layer_name(states, i)));
    mhf_status status = set(o, "layers", names);
    if (status == MHF_OK)
        status = set(o, "items", json_integer(mhf_states_items(states)));
    if (status == MHF_OK)
        status = set(o, "rows", json_integer(mhf_states_rows(states)));
    if (status == MHF_OK)
        status = set(o, "width", json_integer(mhf_states_width(states)));
    mhf_states_close(states);
    return status;
}

static mhf_status info_hdf5(const char *path, bool verify, json_t *o)
{
    char format[32];
    MHF_TRY(mhf_file_format(path, format));
    if (strcmp(format, "mhf-checkpoint") == 0)
        return info_model(path, verify, o);
    MHF_TRY(mhf_file_describe(path, o));
    if (strcmp(format, "mhf-tokens") == 0)
        MHF_TRY(info_tokens(path, o));
    else if (strcmp(format, "mhf-signatures") == 0)
        MHF_TRY(info_table(path, o));
    else if (strcmp(format, "mhf-states") == 0)
        MHF_TRY(info_states(path, o));
    return verify ? mhf_file_verify(path) : MHF_OK;
}

/* ---- in words ------------------------------------------------------------------------------- */

static mhf_status print_words(const json_t *object, int indent, mhf_buf *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        MHF_TRY(mhf_buf_printf(out, "%*s%s:", indent, "", key));
        if (json_is_object(value)) {
            MHF_TRY(mhf_buf_add_text(out, "\n"));
            MHF_TRY(print_words(value, indent + 2, out));
            continue;
        }
        MHF_TRY(mhf_buf_add_text(out, " "));
        if (json_is_string(value))
            MHF_TRY(mhf_buf_add(out, json_string_value(value), json_string_length(value)));
        else
            MHF_TRY(mhf_json_print(value, out));
        MHF_TRY(mhf_buf_add_text(out, "\n"));
    }
    return MHF_OK;
}

/* A folder with a tokenizer and no model is a tokenizer. */
static bool is_tokenizer_folder(const char *path)
{
    mhf_buf file = {0};
    bool model = mhf_path_join(path, "config.json", &file) != MHF_OK || mhf_file_exists(file.data);
    bool tokenizer = !model && mhf_path_join(path, "tokenizer.json", &file) == MHF_OK &&
                     mhf_file_exists(file.data);
    mhf_buf_free(&file);
    return tokenizer;
}

static mhf_status run(const arguments *a)
{
    const char *path = a->common.operands[0];
    json_t *o = json_object();
    mhf_buf text = {0};
    mhf_status status;
    if (mhf_dir_exists(path))
        status =
            is_tokenizer_folder(path) ? info_tokenizer(path, o) : info_model(path, a->verify, o);
    else if (mhf_path_ends_with(path, ".json"))
        status = info_tokenizer(path, o);
    else
        status = info_hdf5(path, a->verify, o);
    if (status == MHF_OK && a->json) {
        status = mhf_json_print(o, &text);
        if (status == MHF_OK)
            status = mhf_buf_add_text(&text, "\n");
    } else if (status == MHF_OK) {
        status = print_words(o, 0, &text);
    }
    if (status == MHF_OK)
        status = mhf_command_print(&text);
    mhf_buf_free(&text);
    json_decref(o);
    return status;
}

mhf_status mhf_cmd_info(int argc, char **argv)
{
    arguments a = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    return a.common.rank == 0 ? run(&a) : MHF_OK;
}
