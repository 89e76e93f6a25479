/* SPDX-License-Identifier: ISC */
/* The run configuration: every key's type and range, where values come from, that the resolved text
 * is itself a configuration, and what may not change on resuming. */
#include <limits.h>
#include <math.h>

#include "mhf/train.h"
#include "support.h"
#include "train/settings.h"

static const char base[] =
    "model: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4,\n"
    "        num_key_value_heads: 2, head_dim: 8, intermediate_size: 64}\n"
    "data: {train: tokens.h5, block: 32}\n"
    "train: {steps: 100, warmup: 10}\n"
    "run: there\n";

static mhf_status parse(const char *yaml, mhf_run_config *out)
{
    return mhf_run_config_parse(yaml, strlen(yaml), "t.yaml", out);
}

static mhf_status parse_set(const char *const *set, int32_t n, mhf_run_config *out)
{
    const char *path = "settings-test.yaml";
    CHECK_OK(mhf_file_write(path, base, strlen(base)));
    mhf_status status = mhf_run_config_load(path, set, n, out);
    remove(path);
    return status;
}

/* One sentence that holds both words. */
static bool says(const char *a, const char *b)
{
    const char *text = mhf_error();
    bool good = strstr(text, a) && strstr(text, b) && !strchr(text, '\n');
    if (!good)
        fprintf(stderr, "\n    expected '%s' and '%s' in: %s\n", a, b, text);
    return good;
}

static void check_refused(const char *yaml, const char *a, const char *b)
{
    mhf_run_config c;
    mhf_status status = parse(yaml, &c);
    if (status != MHF_E_CONFIG)
        fprintf(stderr, "\n    not refused: %s\n", yaml);
    CU_ASSERT_EQUAL(status, MHF_E_CONFIG);
    CU_ASSERT(says(a, b));
    if (status == MHF_OK)
        mhf_run_config_free(&c);
}

static void defaults(void)
{
    mhf_run_config c;
    CHECK_OK(mhf_run_config_load(NULL, NULL, 0, &c));
    CU_ASSERT_EQUAL(c.steps, 20000);
    CU_ASSERT_EQUAL(c.batch, 1024);
    CU_ASSERT_EQUAL(c.micro_batch, 8);
    CU_ASSERT_EQUAL(c.warmup, 200);
    CU_ASSERT_EQUAL(c.lr, 1e-3);
    CU_ASSERT_EQUAL(c.weight_decay, 0.1);
    CU_ASSERT_EQUAL(c.clip, 1.0);
    CU_ASSERT_EQUAL(c.seed, 42);
    CU_ASSERT_EQUAL(c.block, 512);
    CU_ASSERT_EQUAL(c.objective, MHF_PRODUCT);
    CU_ASSERT_EQUAL(c.rule, MHF_RULE_UNIQUE);
    CU_ASSERT_EQUAL(c.model.head, MHF_HEAD_MHF);
    CU_ASSERT_EQUAL(c.model.num_hashes, 4);
    CU_ASSERT_EQUAL(c.model.num_buckets, 16384);
    CU_ASSERT_EQUAL(c.model.bottle_neck_dim, 64);
    CU_ASSERT(c.model.tie_word_embeddings);
    CU_ASSERT_EQUAL(c.model.rope_theta, 1e6);
    CU_ASSERT_EQUAL(c.model.max_position_embeddings, 32768);
    CU_ASSERT_PTR_NULL(c.init);
    CU_ASSERT_PTR_NULL(c.run);
    CU_ASSERT_EQUAL(c.n_train_files, 0);
    CU_ASSERT_EQUAL(c.n_trainable, 1);
    CU_ASSERT_STRING_EQUAL(c.trainable[0], "all");
    mhf_run_config_free(&c);
}

/* A text outside of what each key takes, and the key and line in the refusal. */
static void every_key_refuses(void)
{
    for (int i = 0; i < settings_n_keys; i++) {
        const key *k = &settings_keys[i];
        const char *dot = strchr(k->name, '.');
        char yaml[512], number[64];
        const char *bad[8];
        int n = 0;
        if (k->type == KEY_INT || k->type == KEY_REAL || k->type == KEY_INT_OR_AUTO) {
            snprintf(number, sizeof number, "%.17g", k->high < 1e300 ? k->high * 2 + 1 : HUGE_VAL);
            const char *texts[] = {"many", "1x", "nan", "inf", "-1", number};
            for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
                bad[n++] = texts[t];
            if (k->type != KEY_REAL)
                bad[n++] = "1.5";
        } else if (k->type == KEY_BOOL) {
            bad[n++] = "yes";
            bad[n++] = "1";
        } else if (k->type == KEY_CHOICE) {
            bad[n++] = "no-such";
            bad[n++] = "\"\"";
        }
        bad[n++] = k->type == KEY_LIST ? "{a: b, c: d, e: f}" : "[1, 2]";
        for (int t = 0; t < n; t++) {
            if (dot)
                snprintf(yaml, sizeof yaml, "%.*s:\n  %s: %s\n", (int)(dot - k->name), k->name,
                         dot + 1, bad[t]);
            else
                snprintf(yaml, sizeof yaml, "# first\n%s: %s\n", k->name, bad[t]);
            check_refused(yaml, "t.yaml line 2", k->type == KEY_LIST ? "" : k->name);
        }
    }
}

/* Brackets cost libyaml's loader the square of their depth. */
static void deep(void)
{
    static char yaml[100001];
    memset(yaml, '[', sizeof yaml - 1);
    check_refused(yaml, "t.yaml line 1", "nested more than 16 deep");
    memset(yaml, '{', sizeof yaml - 1);
    check_refused(yaml, "t.yaml line 1", "");
}

static void unknown_and_twice(void)
{
    check_refused("model: {}\ntrain:\n  stepz: 3\n", "t.yaml line 3", "train.stepz");
    check_refused("trian: {steps: 3}\n", "t.yaml line 1", "trian");
    check_refused("train: {steps: 3,\n  steps: 4}\n", "t.yaml line 2", "steps is given twice");
    check_refused("train: {steps: 3}\ndata: {block: 8}\ntrain: {steps: 4}\n", "t.yaml line 3",
                  "train is given twice");
    check_refused("data:\n  train: [{file: a, file: b}]\n", "t.yaml line 2", "file is given twice");
    check_refused("train: 7\n", "t.yaml line 1", "mapping");
    check_refused("train: [1]\n", "t.yaml line 1", "mapping");
    check_refused("- a\n", "t.yaml line 1", "mapping");
    check_refused("train: {steps: 3}\n---\ntrain: {steps: 4}\n", "t.yaml line 2",
                  "second document");
    check_refused("{[a]: b}\n", "t.yaml line 1", "key");
    check_refused("train: {steps: 3\n", "t.yaml line", "YAML");
    check_refused("a: \"\\x00\"\n", "t.yaml line 1", "a");
    check_refused("run: \"a\\0b\"\n", "t.yaml line 1", "");
    check_refused("a: &x [*x, *x]\n", "t.yaml line 1", "alias");
    check_refused("data: {train: &x [*x, *x]}\n", "t.yaml line 1", "");
    check_refused("\xff\xfe\n", "t.yaml", "YAML");
}

static void values_together(void)
{
    check_refused("train: {steps: 3, warmup: 4}\n", "train.warmup", "train.steps");
    check_refused("train: {steps: 3, warmup: 1, precision: bfloat16}\n", "train.precision",
                  "bfloat16");
    check_refused("data: {block: 65}\nmodel: {max_position_embeddings: 64}\n", "data.block", "64");
    check_refused("parallel: {stages: 2, layers: [1]}\n", "parallel.layers", "line 1");
    check_refused("parallel: {stages: 2, layers: [1, x]}\n", "parallel.layers", "line 1");
    check_refused("parallel: {stages: 2, layers: [1, \"\"]}\n", "parallel.layers", "line 1");
    check_refused("parallel: {layers: two}\n", "parallel.layers", "line 1");
    check_refused("train: {trainable: []}\n", "train.trainable", "line 1");
    check_refused("train: {trainable: \"\"}\n", "train.trainable", "line 1");
    check_refused("train: {trainable: [{a: b}]}\n", "train.trainable", "line 1");
    static const char *const files[] = {"[{file: a, weight: 0}]",
                                        "[{file: a, weight: -1}]",
                                        "[{file: a, weight: x}]",
                                        "[{file: a, weight: nan}]",
                                        "[{file: a, heavy: 2}]",
                                        "[{weight: 2}]",
                                        "[{file: [a], weight: 1}]",
                                        "[[a]]",
                                        "[{}]",
                                        "[{file: a, weight: \"\"}]",
                                        "[\"\"]"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char yaml[128];
        snprintf(yaml, sizeof yaml, "data: {train: %s}\n", files[i]);
        check_refused(yaml, "line 1", "{file:, weight:}");
    }
}

static void data_files(void)
{
    mhf_run_config c;
    CHECK_OK(parse("data: {train: a.h5}\n", &c));
    CU_ASSERT_EQUAL_FATAL(c.n_train_files, 1);
    CU_ASSERT_STRING_EQUAL(c.train_files[0].file, "a.h5");
    CU_ASSERT_EQUAL(c.train_files[0].weight, 1.0);
    mhf_run_config_free(&c);
    CHECK_OK(parse(
        "data:\n  train:\n    - {file: a.h5, weight: 2.5}\n    - file: b.h5\n    - c.h5\n", &c));
    CU_ASSERT_EQUAL_FATAL(c.n_train_files, 3);
    CU_ASSERT_STRING_EQUAL(c.train_files[0].file, "a.h5");
    CU_ASSERT_EQUAL(c.train_files[0].weight, 2.5);
    CU_ASSERT_STRING_EQUAL(c.train_files[1].file, "b.h5");
    CU_ASSERT_EQUAL(c.train_files[1].weight, 1.0);
    CU_ASSERT_STRING_EQUAL(c.train_files[2].file, "c.h5");
    mhf_run_config_free(&c);
}

static void set_forms(void)
{
    mhf_run_config c;
    static const char *const set[] = {"train.steps=50",
                                      "train.steps=60",
                                      "train.lr=5.0e-4",
                                      "data.train=[{file: a=b.h5, weight: 2}, {file: c.h5}]",
                                      "run=",
                                      "tokenizer='a b: c #d'",
                                      "parallel.stages=2",
                                      "parallel.layers=[1, 1]",
                                      "train.trainable=[model.norm.*, \"*bias\"]",
                                      "model.mask_documents=true"};
    CHECK_OK(parse_set(set, sizeof set / sizeof *set, &c));
    CU_ASSERT_EQUAL(c.steps, 60);
    CU_ASSERT_EQUAL(c.lr, 5e-4);
    CU_ASSERT_EQUAL(c.warmup, 10); /* of the file */
    CU_ASSERT_EQUAL_FATAL(c.n_train_files, 2);
    CU_ASSERT_STRING_EQUAL(c.train_files[0].file, "a=b.h5");
    CU_ASSERT_PTR_NULL(c.run);
    CU_ASSERT_STRING_EQUAL(c.tokenizer, "a b: c #d");
    CU_ASSERT_EQUAL_FATAL(c.n_layers, 2);
    CU_ASSERT_EQUAL(c.layers[1], 1);
    CU_ASSERT_EQUAL_FATAL(c.n_trainable, 2);
    CU_ASSERT_STRING_EQUAL(c.trainable[1], "*bias");
    CU_ASSERT(c.model.mask_documents);
    mhf_buf text = {0};
    CHECK_OK(mhf_run_config_print(&c, true, &text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.data, "steps: 60"));
    const char *line = strstr(text.data, "  steps: 60");
    CU_ASSERT(line && strstr(line, "--set") && strstr(line, "--set") < strchr(line, '\n'));
    line = strstr(text.data, "  warmup: 10");
    CU_ASSERT(line && strstr(line, "settings-test.yaml line 4"));
    line = strstr(text.data, "  seed: 42");
    CU_ASSERT(line && strstr(line, "default"));
    mhf_buf_free(&text);
    mhf_run_config_free(&c);

    static const struct {
        const char *set, *words;
        mhf_status status;
    } bad[] = {{"train.steps", "key=value", MHF_E_USAGE},
               {"=3", "no key", MHF_E_CONFIG},
               {"train=3", "no key train", MHF_E_CONFIG},
               {"train.stepz=3", "train.stepz", MHF_E_CONFIG},
               {"train.steps=x", "train.steps", MHF_E_CONFIG},
               {"train.steps=", "train.steps", MHF_E_CONFIG},
               {"train.steps=[", "YAML", MHF_E_CONFIG},
               {"train.steps={a: b}", "train.steps", MHF_E_CONFIG}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_EQUAL(parse_set(&bad[i].set, 1, &c), bad[i].status);
        CU_ASSERT(says("--set", bad[i].words));
    }
    CU_ASSERT_EQUAL(mhf_run_config_load("no-such.yaml", NULL, 0, &c), MHF_E_IO);
    CU_ASSERT(says("no-such.yaml", ""));
}

/* Printed, read and printed again: the same text and the same values. */
static void check_round_trip(const char *yaml, bool origins)
{
    mhf_run_config first, again;
    mhf_buf text = {0}, second = {0};
    CHECK_OK(parse(yaml, &first));
    CHECK_OK(mhf_run_config_print(&first, origins, &text));
    CHECK_OK(mhf_run_config_parse(text.data, text.n, "printed", &again));
    CHECK_OK(mhf_run_config_print(&again, false, &second));
    mhf_buf_clear(&text);
    CHECK_OK(mhf_run_config_print(&first, false, &text));
    CU_ASSERT_STRING_EQUAL(text.data, second.data);
    CHECK_OK(mhf_run_config_same(&first, &again));
    CU_ASSERT(memcmp(&first.model, &again.model, sizeof first.model) == 0);
    mhf_buf_free(&text);
    mhf_buf_free(&second);
    mhf_run_config_free(&first);
    mhf_run_config_free(&again);
}

static void printed_is_valid(void)
{
    static const char *const yamls[] = {
        "",
        base,
        "model: {preset: 1b, add_layers: 2, head: standard}\n",
        "parallel: {stages: 2, layers: [5, 7], reduction_shards: 4}\n",
        "data: {train: [{file: 'a b', weight: 0.1}, c]}\ntrain: {trainable: ['*.bias', x]}\n",
        "run: \"quote \\\" back \\\\ tab \\t nl \\n del \\x7f nel \\N sep \\L \\P bom \\uFEFF nbsp "
        "\\_\"\n",
        "run: 'a: b # c'\n",
        "run: '- x'\ntokenizer: '&a'\n",
        "run: '*a'\ntokenizer: '!t'\n",
        "run: 'ünï/你好/𐍈'\n",
        "run: '-'\ntokenizer: '{'\ninit: '%'\n",
        "run: ' leading'\ntokenizer: 'trailing '\n",
        "init: a model\nmodel: {num_hashes: 3}\ntrain: # all left\n",
    };
    for (size_t i = 0; i < sizeof yamls / sizeof *yamls; i++) {
        check_round_trip(yamls[i], false);
        check_round_trip(yamls[i], true);
    }
}

/* A value of the key other than in `base`, or NULL. */
static const char *other_value(const key *k)
{
    static const struct {
        const char *name, *value;
    } others[] = {{"model.preset", "100m"},
                  {"model.head", "standard"},
                  {"signatures.rule", "reference"},
                  {"train.precision", "float32"},
                  {"train.objective", "vocabulary"},
                  {"train.loss_denominator", "reference"},
                  {"train.recompute", "layer"},
                  {"train.on_nonfinite", "skip"},
                  {"train.trainable", "expansion"},
                  {"train.warmup", "11"},
                  {"train.steps", "101"},
                  {"data.block", "16"},
                  {"data.train", "other.h5"},
                  {"parallel.layers", "[2]"},
                  {"parallel.reduction_shards", "3"},
                  {"model.tie_word_embeddings", "false"},
                  {"model.max_position_embeddings", "64"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, k->name) == 0)
            return others[i].value;
    switch (k->type) {
    case KEY_INT:
        return "7";
    case KEY_REAL:
        return k->low >= 1 ? "77.5" : "0.75";
    case KEY_BOOL:
        return "true";
    case KEY_TEXT:
        return "elsewhere";
    default:
        return NULL; /* one choice alone */
    }
}

static void what_may_change(void)
{
    /* The last two are not in `base`: resolving compares them with the checkpoint's model. */
    static const char *const allowed[] = {
        "parallel.",   "checkpoint.",      "run",
        "train.steps", "model.vocab_size", "model.max_position_embeddings"};
    int changed = 0;
    for (int i = 0; i < settings_n_keys; i++) {
        const char *value = other_value(&settings_keys[i]);
        if (!value)
            continue;
        const char *name = settings_keys[i].name;
        bool may = false;
        for (size_t a = 0; a < sizeof allowed / sizeof *allowed; a++)
            may = may || strncmp(name, allowed[a], strlen(allowed[a])) == 0;
        char set[128];
        const char *sets[] = {set};
        snprintf(set, sizeof set, "%s=%s", name, value);
        mhf_run_config before, after;
        CHECK_OK(parse(base, &before));
        CHECK_OK(parse_set(sets, 1, &after));
        mhf_status status = mhf_run_config_same(&before, &after);
        if ((status == MHF_OK) != may)
            fprintf(stderr, "\n    changing %s gives %d\n", name, (int)status);
        CU_ASSERT_EQUAL(status, may ? MHF_OK : MHF_E_MISMATCH);
        if (status != MHF_OK)
            CU_ASSERT(says(name, value));
        mhf_run_config_free(&before);
        mhf_run_config_free(&after);
        changed++;
    }
    CU_ASSERT(changed > 40);
}

static void same_numbers(void)
{
    mhf_run_config before, after;
    static const char *const same[] = {"train.lr=0.001", "train.weight_decay=1e-1",
                                       "train.seed=42.0"};
    CHECK_OK(parse(base, &before));
    CHECK_OK(parse_set(same, 3, &after));
    CHECK_OK(mhf_run_config_same(&before, &after));
    mhf_run_config_free(&after);
    static const char *const fewer[] = {"train.steps=99"};
    CHECK_OK(parse_set(fewer, 1, &after));
    CU_ASSERT_EQUAL(mhf_run_config_same(&before, &after), MHF_E_MISMATCH);
    CU_ASSERT(says("train.steps", "99"));
    mhf_run_config_free(&after);
    mhf_run_config_free(&before);
}

int main(void)
{
    static const test_case cases[] = {
        {"defaults", defaults},
        {"every key refuses what it can't take", every_key_refuses},
        {"unknown keys and keys given twice", unknown_and_twice},
        {"nested deep", deep},
        {"values that don't fit together", values_together},
        {"lists of token stores", data_files},
        {"--set", set_forms},
        {"the printed configuration is a configuration", printed_is_valid},
        {"what may change on resuming", what_may_change},
        {"equal numbers are equal", same_numbers},
    };
    return run_tests("train.settings", cases, sizeof cases / sizeof *cases);
}
