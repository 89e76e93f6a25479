/* SPDX-License-Identifier: ISC */
/* What a run stands on: tokenizer, signature table, weights to start from. */
#include <stdlib.h>
#include <string.h>

#include "settings.h"

/* A model's sizes are given by their keys, or by a preset and its added layers. */
static bool size_given(const mhf_settings *settings, const size_key *size)
{
    if (settings_given(settings, size->name))
        return true;
    return size->required && strcmp(settings_text(settings, "model.preset"), "none") != 0;
}

static mhf_status check_sizes(const mhf_run_config *c, const mhf_config *source, const char *path)
{
    for (int i = 0; i < run_config_n_sizes; i++) {
        const size_key *size = &run_config_sizes[i];
        int32_t a, b;
        memcpy(&a, (const char *)&c->model + size->offset, sizeof a);
        memcpy(&b, (const char *)source + size->offset, sizeof b);
        if (size_given(c->settings, size) && a != b)
            return mhf_fail(MHF_E_MISMATCH, "%s is %d, but the model in %s has %d", size->name, a,
                            path, b);
    }
    return MHF_OK;
}

/* What is given beside a model must be what the model has. */
static mhf_status check_kind(const mhf_run_config *c, const mhf_config *source, const char *path)
{
    const mhf_config *asked = &c->model;
    const struct {
        const char *name;
        bool same;
    } keys[] = {
        {"model.head", asked->head == source->head},
        {"model.rms_norm_eps", asked->rms_norm_eps == source->rms_norm_eps},
        {"model.rope_theta", asked->rope_theta == source->rope_theta},
        {"model.tie_word_embeddings", asked->tie_word_embeddings == source->tie_word_embeddings},
        {"model.lsh_only_embed", asked->lsh_only_embed == source->lsh_only_embed}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (settings_given(c->settings, keys[i].name) && !keys[i].same)
            return mhf_fail(MHF_E_MISMATCH, "%s is %s, which is not that of the model in %s",
                            keys[i].name, settings_text(c->settings, keys[i].name), path);
    return MHF_OK;
}

mhf_status mhf_run_config_take(mhf_run_config *c, const mhf_source *base)
{
    const char *path = mhf_source_info_of(base)->path;
    const mhf_config *source = mhf_source_config(base);
    const bool mask_documents = c->model.mask_documents;
    if (c->model.num_hidden_layers == 0 &&
        strtod(settings_text(c->settings, "model.add_layers"), NULL) > 0)
        return mhf_fail(MHF_E_MISMATCH,
                        "model.add_layers is given without a preset or model.num_hidden_layers, "
                        "but the model in %s has its %d layers",
                        path, source->num_hidden_layers);
    MHF_TRY(check_sizes(c, source, path));
    MHF_TRY(check_kind(c, source, path));
    c->model = *source;
    if (settings_given(c->settings, "model.mask_documents"))
        c->model.mask_documents = mask_documents;
    if (source->use_conditional_prob && !settings_given(c->settings, "train.objective"))
        c->objective = MHF_VOCABULARY;
    return MHF_OK;
}

/* The checkpoints tell what they were trained for, to who starts from them and to an export. */
static void set_objective(mhf_run_config *c)
{
    c->model.use_conditional_prob = c->model.head == MHF_HEAD_MHF && c->objective == MHF_VOCABULARY;
    c->model.normalize_padding_rows &= c->model.use_conditional_prob;
}

/* The tokenizer given beside a model that brings its own must be the same. */
static mhf_status open_tokenizer(const mhf_run_config *c, const mhf_source *base,
                                 mhf_tokenizer **out)
{
    if (c->tokenizer)
        MHF_TRY(mhf_tokenizer_load(c->tokenizer, NULL, out));
    if (!base)
        return MHF_OK;
    mhf_tokenizer *own = NULL;
    mhf_status status = mhf_source_tokenizer(base, &own);
    if (status != MHF_OK)
        return *out ? MHF_OK : status; /* a model without one: the given one serves */
    if (*out && !mhf_tokenizer_is(*out, mhf_tokenizer_sha256(own)))
        status = mhf_fail(MHF_E_MISMATCH, "tokenizer %s is not the one of the model in %s",
                          c->tokenizer, mhf_source_info_of(base)->path);
    mhf_tokenizer_free(*out);
    *out = own;
    return status;
}

/* Of a model from elsewhere the rows are what they are, and its special tokens too. */
static mhf_status take_rows_of(const mhf_source *base, const mhf_tokenizer *tokenizer)
{
    const mhf_config *m = mhf_source_config(base);
    if (mhf_tokenizer_size(tokenizer) > m->vocab_size)
        return mhf_fail(MHF_E_MISMATCH, "the tokenizer has %d tokens, the model in %s %d rows",
                        mhf_tokenizer_size(tokenizer), mhf_source_info_of(base)->path,
                        m->vocab_size);
    return MHF_OK;
}

static mhf_status take_tokenizer(mhf_run_config *c, const mhf_tokenizer *tokenizer)
{
    int32_t rows = (mhf_tokenizer_size(tokenizer) + 127) / 128 * 128;
    if (c->model.vocab_size > 0 && c->model.vocab_size != rows)
        return mhf_fail(MHF_E_MISMATCH,
                        "model.vocab_size is %d, but the tokenizer's %d tokens make %d rows",
                        c->model.vocab_size, mhf_tokenizer_size(tokenizer), rows);
    c->model.vocab_size = rows;
    c->model.bos_token_id = mhf_tokenizer_bos(tokenizer);
    c->model.eos_token_id = mhf_tokenizer_eos(tokenizer);
    c->model.pad_token_id = mhf_tokenizer_pad(tokenizer);
    if (c->model.pad_token_id < 0)
        c->model.pad_token_id = c->model.eos_token_id;
    return MHF_OK;
}

static mhf_status check_table(const mhf_run_config *c, const mhf_signatures *table,
                              const mhf_tokenizer *tokenizer, const char *name)
{
    const mhf_config *m = &c->model;
    const mhf_signature_options *o = &table->options;
    if (o->num_hashes != m->num_hashes || o->num_buckets != m->num_buckets ||
        o->num_lsh != m->num_lsh || table->rows != m->vocab_size)
        return mhf_fail(
            MHF_E_MISMATCH,
            "%s holds a table of %d rows, H %d, B %d, LSH %d; the model has %d rows, H %d, "
            "B %d, LSH %d",
            name, table->rows, o->num_hashes, o->num_buckets, o->num_lsh, m->vocab_size,
            m->num_hashes, m->num_buckets, m->num_lsh);
    if (tokenizer && *table->tokenizer_sha256 &&
        !mhf_tokenizer_is(tokenizer, table->tokenizer_sha256))
        return mhf_fail(MHF_E_MISMATCH, "%s holds the table of another tokenizer", name);
    return MHF_OK;
}

static mhf_status build_table(const mhf_run_config *c, const mhf_tokenizer *tokenizer,
                              mhf_signatures *out)
{
    const mhf_signature_options options = {.num_hashes = c->model.num_hashes,
                                           .num_buckets = c->model.num_buckets,
                                           .num_lsh = c->model.num_lsh,
                                           .rule = c->rule,
                                           .hash_seed = c->hash_seed};
    mhf_vocabulary vocabulary = {0};
    mhf_status status = mhf_vocabulary_of(tokenizer, &vocabulary);
    if (status == MHF_OK)
        status = mhf_signatures_build(&vocabulary, &options, out);
    if (status == MHF_OK)
        snprintf(out->tokenizer_sha256, sizeof out->tokenizer_sha256, "%s",
                 mhf_tokenizer_sha256(tokenizer));
    mhf_vocabulary_free(&vocabulary);
    return status;
}

static mhf_status take_table(mhf_run_config *c, const mhf_source *base, mhf_run_inputs *in)
{
    if (c->model.head == MHF_HEAD_STANDARD && c->signatures_file)
        return mhf_fail(MHF_E_CONFIG,
                        "signatures.file is given, but a Standard model has no signatures");
    if (c->init && c->signatures_file)
        return mhf_fail(MHF_E_CONFIG,
                        "signatures.file is given beside init: a model keeps its own table");
    if (c->model.head == MHF_HEAD_STANDARD)
        return MHF_OK;
    if (base) {
        MHF_TRY(mhf_source_signatures(base, &in->table));
        c->rule = in->table.options.rule;
        c->hash_seed = in->table.options.hash_seed;
        return check_table(c, &in->table, in->tokenizer, mhf_source_info_of(base)->path);
    }
    if (c->signatures_file) {
        MHF_TRY(mhf_signatures_read(c->signatures_file, &in->table));
        if (settings_given(c->settings, "signatures.rule") && in->table.options.rule != c->rule)
            return mhf_fail(MHF_E_MISMATCH, "signatures.rule is %s, but %s was built by rule %s",
                            mhf_signature_rule_name(c->rule), c->signatures_file,
                            mhf_signature_rule_name(in->table.options.rule));
        return check_table(c, &in->table, in->tokenizer, c->signatures_file);
    }
    if (!in->tokenizer)
        return mhf_fail(MHF_E_CONFIG,
                        "tokenizer is not given: the signature table is built from it");
    return build_table(c, in->tokenizer, &in->table);
}

mhf_status mhf_run_resolve(mhf_run_config *c, const mhf_source *resumed, mhf_run_inputs *out)
{
    *out = (mhf_run_inputs){0};
    mhf_status status = MHF_OK;
    if (c->init && !resumed)
        status = mhf_source_open(c->init, &out->init);
    const mhf_source *base = resumed ? resumed : out->init;
    if (status == MHF_OK && base)
        status = mhf_run_config_take(c, base);
    if (status == MHF_OK)
        status = open_tokenizer(c, base, &out->tokenizer);
    if (status == MHF_OK && out->tokenizer)
        status = base ? take_rows_of(base, out->tokenizer) : take_tokenizer(c, out->tokenizer);
    if (status == MHF_OK && c->model.vocab_size == 0 &&
        strcmp(settings_text(c->settings, "model.preset"), "none") != 0)
        c->model.vocab_size = 32768;
    if (status == MHF_OK && c->model.vocab_size == 0)
        status = mhf_fail(MHF_E_CONFIG,
                          "tokenizer is not given, nor model.vocab_size: the model's rows are "
                          "counted from it");
    if (status == MHF_OK)
        status = mhf_run_config_check_model(c);
    if (status == MHF_OK)
        set_objective(c);
    if (status == MHF_OK)
        status = take_table(c, base, out);
    if (status == MHF_OK && base)
        status = mhf_source_carried(base, &out->carried);
    if (status != MHF_OK)
        mhf_run_inputs_free(out);
    return status;
}

void mhf_run_inputs_free(mhf_run_inputs *inputs)
{
    mhf_tokenizer_free(inputs->tokenizer);
    mhf_signatures_free(&inputs->table);
    mhf_carried_free(&inputs->carried);
    mhf_source_close(inputs->init);
    *inputs = (mhf_run_inputs){0};
}
