/* SPDX-License-Identifier: ISC */
/* mhf import: a Hugging Face directory to a checkpoint. Rank 0 works, tensor by tensor. */
#include "cmd.h"

#include <inttypes.h>
#include <string.h>

#include "mhf/store.h"

typedef struct arguments {
    mhf_common common;
    const char *output;
} arguments;

static const struct argp_option options[] = {
    {"output", 'o', "MODEL.h5", 0, "The checkpoint to write (required)", 0}, {0}};

static void take(mhf_option *option, void *into)
{
    arguments *a = into;
    if (option->key == 'o')
        a->output = option->value;
}

static const mhf_command command = {
    .name = "mhf import",
    .operands = "HF_DIR",
    .about = "Make a checkpoint of a Hugging Face directory (config.json, *.safetensors, "
             "tokenizer.json). Its signature table is taken as it is and compared with what the "
             "rules give.",
    .options = options,
    .required = (const int[]){'o', 0},
    .take = take};

/* ---- the table's report ---------------------------------------------------------------------- */

static bool same_row(const mhf_signatures *a, const mhf_signatures *b, int32_t row)
{
    size_t H = (size_t)a->options.num_hashes;
    return memcmp(a->ids + (size_t)row * H, b->ids + (size_t)row * H, H * sizeof *a->ids) == 0;
}

/* Compare the table's real tokens with those that `rule` gives. */
static mhf_status report_rule(const mhf_signatures *table, const mhf_vocabulary *vocabulary,
                              mhf_signature_rule rule, mhf_buf *out)
{
    mhf_signatures built = {0};
    mhf_signature_options wanted = table->options;
    wanted.rule = rule;
    const char *name = mhf_signature_rule_name(rule);
    if (mhf_signatures_build(vocabulary, &wanted, &built) != MHF_OK)
        return mhf_buf_printf(out, "  rule %s: gives no table: %s\n", name, mhf_error());
    int32_t different = 0, first = -1;
    for (int32_t row = 0; row < table->size && row < built.size; row++) {
        if (same_row(table, &built, row))
            continue;
        first = first < 0 ? row : first;
        different++;
    }
    mhf_signatures_free(&built);
    if (different == 0)
        return mhf_buf_printf(out, "  rule %s: gives the same table\n", name);
    return mhf_buf_printf(
        out, "  rule %s: gives %" PRId32 " other rows, the first for token %" PRId32 " '%.*s'\n",
        name, different, first, (int)vocabulary->lengths[first], vocabulary->pieces[first]);
}

static int32_t padding_in_use(const mhf_signatures *table)
{
    const int64_t H = table->options.num_hashes;
    int32_t n = 0;
    for (int64_t row = table->size; row < table->rows; row++) {
        bool zero = true;
        for (int64_t j = 0; j < H; j++)
            zero = zero && table->ids[row * H + j] == 0;
        n += !zero;
    }
    return n;
}

static mhf_status report_table(const mhf_signatures *table, const mhf_tokenizer *tokenizer,
                               mhf_buf *out)
{
    mhf_vocabulary vocabulary = {0};
    int32_t used = padding_in_use(table);
    MHF_TRY(mhf_buf_printf(out, "signature table: H %d, B %d, LSH %d\n", table->options.num_hashes,
                           table->options.num_buckets, table->options.num_lsh));
    MHF_TRY(mhf_buf_printf(out, "  tokens: %d, duplicates: %d\n", table->size, table->duplicates));
    MHF_TRY(mhf_buf_printf(out, "  padding rows: %d, ", table->rows - table->size));
    MHF_TRY(used == 0 ? mhf_buf_add_text(out, "all zero\n")
                      : mhf_buf_printf(out, "%d of them not zero\n", used));
    mhf_status status;
    if (mhf_vocabulary_of(tokenizer, &vocabulary) != MHF_OK) {
        status = mhf_buf_printf(out, "  rules: not compared: %s\n", mhf_error());
        goto out;
    }
    vocabulary.pad = table->pad;
    status = report_rule(table, &vocabulary, MHF_RULE_UNIQUE, out);
    if (status == MHF_OK)
        status = report_rule(table, &vocabulary, MHF_RULE_REFERENCE, out);
out:
    mhf_vocabulary_free(&vocabulary);
    return status;
}

static mhf_status report_model(const mhf_config *config, const mhf_tokenizer *tokenizer,
                               mhf_buf *out)
{
    mhf_registry registry;
    MHF_TRY(mhf_registry_new(config, &registry));
    mhf_status status = mhf_buf_printf(
        out, "parameters: %" PRId64 ", of them embedding %" PRId64 "; tokenizer: %d tokens\n",
        registry.total, registry.embedding, mhf_tokenizer_size(tokenizer));
    mhf_registry_free(&registry);
    return status;
}

static mhf_status tell_left_behind(const mhf_source *source)
{
    mhf_buf names = {0};
    mhf_status status = mhf_source_left_behind(source, &names);
    if (status == MHF_OK && names.n > 0)
        mhf_log(MHF_LOG_INFO, "not taken from %s: %s (tokenizer.json tells all of the tokenizer)",
                mhf_source_info_of(source)->path, names.data);
    mhf_buf_free(&names);
    return status;
}

/* ---- work on rank 0 ------------------------------------------------------------------------- */

static mhf_status import(const char *output, mhf_source *source)
{
    const mhf_config *config = mhf_source_config(source);
    mhf_tokenizer *tokenizer = NULL;
    mhf_signatures table = {0};
    mhf_carried carried = {0};
    mhf_buf report = {0};
    bool hashed = config->head == MHF_HEAD_MHF;
    mhf_checkpoint_meta meta = {.program_build = "mhf " MHF_VERSION, .carried = &carried};
    mhf_status status = mhf_source_tokenizer(source, &tokenizer);
    if (status == MHF_OK && hashed)
        status = mhf_source_signatures(source, &table);
    if (status == MHF_OK)
        status = mhf_source_carried(source, &carried);
    meta.tokenizer = tokenizer;
    meta.table = hashed ? &table : NULL;
    if (status == MHF_OK)
        status = report_model(config, tokenizer, &report);
    if (status == MHF_OK && hashed)
        status = report_table(&table, tokenizer, &report);
    if (status == MHF_OK)
        status = tell_left_behind(source);
    if (status == MHF_OK)
        status = mhf_checkpoint_import(source, output, &meta);
    if (status == MHF_OK)
        status = mhf_command_print(&report);
    mhf_buf_free(&report);
    mhf_carried_free(&carried);
    mhf_signatures_free(&table);
    mhf_tokenizer_free(tokenizer);
    return status;
}

mhf_status mhf_cmd_import(int argc, char **argv)
{
    arguments a = {0};
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    MHF_TRY(mhf_command_check_output(&a.common, a.output, false, NULL, 0));
    if (a.common.rank != 0)
        return MHF_OK;
    double start = mhf_seconds();
    const char *folder = a.common.operands[0];
    mhf_source *source;
    MHF_TRY(mhf_source_open(folder, &source));
    mhf_status status = mhf_source_info_of(source)->is_checkpoint
                            ? mhf_fail(MHF_E_USAGE, "%s: is no Hugging Face directory", folder)
                            : import(a.output, source);
    mhf_source_close(source);
    if (status == MHF_OK)
        mhf_log(MHF_LOG_INFO, "wrote %s in %.1f s", a.output, mhf_seconds() - start);
    return status;
}
