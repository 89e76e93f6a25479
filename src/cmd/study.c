/* SPDX-License-Identifier: ISC */
/* mhf study rare-words: similarities of word pairs at every layer against human scores. */
#include "mhf/study.h"

#include <stdlib.h>
#include <string.h>

#include "loaded.h"
#include "mhf/infer.h"
#include "mhf/parallel.h"

typedef struct arguments {
    mhf_common common;
    const char *pairs, *output, *tokens;
    mhf_study_options options;
} arguments;

enum { KEY_PAIRS = 0x100, KEY_POOLING, KEY_TEMPLATE, KEY_SEED, KEY_DRAWS, KEY_TOKENS };

static const struct argp_option options[] = {
    {"pairs", KEY_PAIRS, "PAIRS.tsv", 0, "Word, word, human score (required)", 0},
    {"output", 'o', "DIR", 0,
     "Folder for study.h5, study.tsv, similarities.tsv, states.h5 (required)", 0},
    {"pooling", KEY_POOLING, "KIND", 0, "mean (default), last or first token of a word", 0},
    {"template", KEY_TEMPLATE, "TEXT", 0, "What a word is set into at its {}; default \"{}\"", 0},
    {"seed", KEY_SEED, "S", 0, "Seed of the bootstrap (default 42)", 0},
    {"draws", KEY_DRAWS, "N", 0, "Bootstrap draws (default 10000)", 0},
    {"tokens", KEY_TOKENS, "STORE", 0, "Add how often the words' pieces occur in this token store",
     0},
    {0}};

static void take(mhf_option *option, void *into)
{
    static const char *const poolings[] = {"mean", "last", "first", NULL};
    arguments *a = into;
    switch (option->key) {
    case KEY_PAIRS:
        a->pairs = option->value;
        break;
    case 'o':
        a->output = option->value;
        break;
    case KEY_POOLING:
        a->options.pooling = poolings[mhf_option_choice(option, poolings)];
        break;
    case KEY_TEMPLATE:
        a->options.template_text = option->value;
        break;
    case KEY_SEED:
        a->options.seed = (uint64_t)mhf_option_int(option, 0, INT64_MAX);
        break;
    case KEY_DRAWS:
        a->options.draws = mhf_option_int(option, 1, 100000000);
        break;
    case KEY_TOKENS:
        a->tokens = option->value;
        break;
    case ARGP_KEY_END:
        if (strcmp(a->common.operands[0], "rare-words") != 0)
            option->status = mhf_fail(MHF_E_USAGE, "the study is '%s', expected rare-words",
                                      a->common.operands[0]);
        break;
    }
}

static const mhf_command command = {
    .name = "mhf study",
    .operands = "rare-words (MODEL|STATES.h5)...",
    .about =
        "Layer-wise correlation of cosine similarities with human scores.\v"
        "With several inputs the layers are named LABEL/LAYER, and a pair counts when all inputs "
        "cover it.",
    .options = options,
    .required = (const int[]){KEY_PAIRS, 'o', 0},
    .precision = true,
    .take = take};

/* The operands after the study's word. */
static int count_inputs(const arguments *a)
{
    return a->common.n_operands - 1;
}

/* ---- states of each input ----------------------------------------------------------------------
 */

/* One input: its states, and the label of its layers and its folder. */
typedef struct input {
    mhf_buf label, path; /* path of the states */
    mhf_states *states;
} input;

/* Label of a path: its last part that tells something ("runs/a/checkpoints/step-1.h5" is "step-1").
 */
static mhf_status make_label(const char *path, const input *earlier, int n, mhf_buf *label)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    size_t length = end - begin;
    if (length > 3 && memcmp(path + end - 3, ".h5", 3) == 0)
        length -= 3;
    MHF_TRY(mhf_buf_add(label, path + begin, length));
    size_t kept = label->n;
    for (int k = 2, i = 0; i < n; i++) {
        if (strcmp(earlier[i].label.data, label->data) != 0)
            continue;
        label->n = kept;
        MHF_TRY(mhf_buf_printf(label, "-%d", k++));
        i = -1; /* the new label may stand earlier too */
    }
    return MHF_OK;
}

static bool is_states(const char *path)
{
    char format[32];
    return mhf_file_exists(path) && mhf_file_format(path, format) == MHF_OK &&
           strcmp(format, "mhf-states") == 0;
}

/* Where a MODEL's states go: DIR/states.h5, or DIR/LABEL/states.h5 of several. */
static mhf_status states_path(const arguments *a, input *in)
{
    mhf_buf folder = {0};
    mhf_status status = count_inputs(a) > 1 ? mhf_path_join(a->output, in->label.data, &folder)
                                            : mhf_buf_add_text(&folder, a->output);
    if (status == MHF_OK && a->common.rank == 0)
        status = mhf_dir_make(folder.data);
    if (status == MHF_OK)
        status = mhf_path_join(folder.data, "states.h5", &in->path);
    mhf_buf_free(&folder);
    return mhf_agree(status);
}

static mhf_status make_items(const mhf_prompts *prompts, mhf_dump_item **out)
{
    MHF_TRY(mhf_new(out, prompts->n, sizeof **out, "items"));
    for (int64_t i = 0; i < prompts->n; i++)
        (*out)[i] = (mhf_dump_item){.text = prompts->texts[i],
                                    .n_text = strlen(prompts->texts[i]),
                                    .span_begin = prompts->begin[i],
                                    .span_end = prompts->end[i],
                                    .line = i + 1};
    return MHF_OK;
}

/* Dump the words' states at all layers. */
static mhf_status dump_model(const arguments *a, const char *path, const mhf_prompts *prompts,
                             bool first, input *in)
{
    mhf_loaded loaded = {0};
    mhf_dump_item *items = NULL;
    int32_t *layers = NULL;
    mhf_dump_options dump = {.type = MHF_F32, .special = true, .allow_empty = true};
    mhf_status status = mhf_loaded_open(path, first ? &a->common : NULL, &loaded);
    if (status == MHF_OK) {
        status = mhf_layers_parse("all", &loaded.model->config, &layers, &dump.n_layers);
        if (status == MHF_OK)
            status = mhf_pooling_parse(a->options.pooling, &dump.pooling);
        if (status == MHF_OK)
            status = make_items(prompts, &items);
        status = mhf_agree(status);
    }
    dump.layers = layers;
    if (status == MHF_OK)
        status = mhf_dump_items(loaded.model, loaded.tokenizer, items, prompts->n, "the words,",
                                &dump, loaded.info->path, loaded.info->step, in->path.data);
    free(items);
    free(layers);
    mhf_loaded_free(&loaded);
    return status;
}

static mhf_status make_input(const arguments *a, int i, const mhf_prompts *prompts, bool *engine,
                             input *all)
{
    const char *path = a->common.operands[i + 1];
    input *in = &all[i];
    MHF_TRY(mhf_agree(make_label(path, all, i, &in->label)));
    if (is_states(path))
        return mhf_agree(mhf_buf_add_text(&in->path, path));
    MHF_TRY(states_path(a, in));
    bool first = !*engine;
    *engine = true;
    return dump_model(a, path, prompts, first, in);
}

/* ---- the study, on rank 0 ------------------------------------------------------------------- */

/* counts [n_ids]: how often each token stands in the store. */
static mhf_status count_tokens(const char *path, const char *tokenizer_sha256, int64_t **counts,
                               int64_t *n_ids)
{
    enum { PIECE = 1 << 20 };
    mhf_tokens *tokens = NULL;
    mhf_token *ids = NULL;
    mhf_status status = mhf_tokens_open(path, &tokens);
    if (status != MHF_OK)
        return status;
    const mhf_tokens_info *info = mhf_tokens_info_of(tokens);
    *n_ids = info->vocab_size;
    if (strcmp(info->tokenizer_sha256, tokenizer_sha256) != 0)
        status = mhf_fail(MHF_E_MISMATCH, "%s: made with another tokenizer than the model's", path);
    if (status == MHF_OK)
        status = mhf_new(counts, *n_ids, sizeof **counts, "counts of tokens");
    if (status == MHF_OK)
        status = mhf_new(&ids, PIECE, sizeof *ids, "tokens");
    for (int64_t first = 0; status == MHF_OK && first < info->n; first += PIECE) {
        int64_t n = info->n - first < PIECE ? info->n - first : PIECE;
        status = mhf_tokens_read(tokens, first, n, ids);
        for (int64_t i = 0; status == MHF_OK && i < n; i++)
            if (ids[i] >= 0 && ids[i] < *n_ids)
                (*counts)[ids[i]]++;
    }
    free(ids);
    mhf_tokens_close(tokens);
    return status;
}

static mhf_status write_text(const char *folder, const char *name, const mhf_buf *text)
{
    mhf_buf path = {0};
    mhf_status status = mhf_path_join(folder, name, &path);
    if (status == MHF_OK)
        status = mhf_file_write(path.data, text->data, text->n);
    mhf_buf_free(&path);
    return status;
}

static mhf_status write_result(const char *folder, const mhf_study_result *result)
{
    mhf_buf text = {0}, path = {0};
    mhf_status status = mhf_path_join(folder, "study.h5", &path);
    if (status == MHF_OK)
        status = mhf_study_write(path.data, result);
    if (status == MHF_OK)
        status = mhf_study_tsv(result, &text);
    if (status == MHF_OK)
        status = write_text(folder, "study.tsv", &text);
    mhf_buf_clear(&text);
    if (status == MHF_OK)
        status = mhf_study_similarities_tsv(result, &text);
    if (status == MHF_OK)
        status = write_text(folder, "similarities.tsv", &text);
    mhf_buf_free(&text);
    mhf_buf_free(&path);
    return status;
}

/* Where the states came from, one name after another. */
static mhf_status name_models(const input *all, int n, mhf_buf *names)
{
    for (int i = 0; i < n; i++) {
        const char *checkpoint = mhf_states_checkpoint(all[i].states);
        MHF_TRY(mhf_buf_printf(names, "%s%s", i ? "\n" : "",
                               *checkpoint ? checkpoint : all[i].path.data));
    }
    return MHF_OK;
}

static mhf_status run_study(const arguments *a, const mhf_pairs *pairs, const mhf_prompts *prompts,
                            input *all, mhf_buf *table)
{
    int n = count_inputs(a);
    mhf_study_input *inputs = NULL;
    mhf_study_result result = {0};
    mhf_buf names = {0};
    int64_t *counts = NULL, n_ids = 0;
    mhf_status status = mhf_new(&inputs, n, sizeof *inputs, "inputs");
    for (int i = 0; status == MHF_OK && i < n; i++) {
        status = mhf_states_open(all[i].path.data, &all[i].states);
        inputs[i] = (mhf_study_input){all[i].states, all[i].path.data, all[i].label.data};
        if (status == MHF_OK)
            status = mhf_study_check(&inputs[i], prompts, &a->options);
    }
    if (status == MHF_OK && a->tokens)
        status =
            count_tokens(a->tokens, mhf_states_tokenizer_sha256(all[0].states), &counts, &n_ids);
    if (status == MHF_OK)
        status = name_models(all, n, &names);
    if (status == MHF_OK)
        status = mhf_study_run(inputs, n, pairs, &a->options, counts, n_ids, &result);
    if (status == MHF_OK)
        status = mhf_dir_make(a->output);
    result.pairs_name = a->pairs;
    result.model_name = names.data;
    if (status == MHF_OK)
        status = write_result(a->output, &result);
    if (status == MHF_OK)
        status = mhf_study_table(&result, table);
    mhf_study_free(&result);
    mhf_buf_free(&names);
    free(counts);
    free(inputs);
    return status;
}

static void free_inputs(input *all, int n)
{
    for (int i = 0; all && i < n; i++) {
        mhf_buf_free(&all[i].label);
        mhf_buf_free(&all[i].path);
        mhf_states_close(all[i].states);
    }
    free(all);
}

mhf_status mhf_cmd_study(int argc, char **argv)
{
    arguments a = {
        .options = {.pooling = "mean", .template_text = "{}", .seed = 42, .draws = 10000}};
    mhf_pairs pairs = {0};
    mhf_prompts prompts = {0};
    input *all = NULL;
    mhf_buf table = {0};
    bool engine = false;
    MHF_TRY(mhf_command_parse(&command, argc, argv, &a, &a.common));
    const int n = count_inputs(&a);
    mhf_status status = a.tokens ? mhf_command_check_readable((char *const *)&a.tokens, 1) : MHF_OK;
    if (status == MHF_OK)
        status = mhf_pairs_read(a.pairs, &pairs);
    if (status == MHF_OK)
        status = mhf_prompts_fill(&pairs, a.options.template_text, &prompts);
    if (status == MHF_OK)
        status = mhf_new(&all, n, sizeof *all, "inputs");
    status = mhf_agree(status);
    for (int i = 0; status == MHF_OK && i < n; i++)
        status = make_input(&a, i, &prompts, &engine, all);
    if (status == MHF_OK)
        status =
            mhf_agree(a.common.rank == 0 ? run_study(&a, &pairs, &prompts, all, &table) : MHF_OK);
    if (status == MHF_OK)
        status = mhf_agree(mhf_command_print(&table));
    free_inputs(all, n);
    mhf_buf_free(&table);
    mhf_prompts_free(&prompts);
    mhf_pairs_free(&pairs);
    return status;
}
