/* SPDX-License-Identifier: ISC */
/* The table of configuration keys, and each key's value with its origin. */
#ifndef MHF_TRAIN_SETTINGS_H
#define MHF_TRAIN_SETTINGS_H

#include "mhf/base.h"
#include "mhf/train.h"

typedef enum key_type {
    KEY_INT,
    KEY_REAL,
    KEY_BOOL,
    KEY_TEXT,
    KEY_CHOICE,
    KEY_INT_OR_AUTO, /* a number, or "auto" */
    KEY_LIST,        /* a word, a list of words, or (data.train) of mappings */
} key_type;

typedef struct key {
    const char *name; /* "train.steps"; sectionless: "tokenizer" */
    key_type type;
    double low, high;    /* of numbers */
    const char *choices; /* "product|vocabulary" */
    const char *start;   /* default; "" where there is none */
    bool may_change;     /* on resuming */
    const char *text;    /* what it is, one line */
} key;

extern const key settings_keys[];
extern const int settings_n_keys;

/* A value as YAML gave it: a string, a list of them, or a list of {file, weight} objects. */
typedef struct setting {
    json_t *value;
    mhf_buf origin; /* "default", "quick.yaml line 7", "--set" */
} setting;

struct mhf_settings {
    setting *values; /* [settings_n_keys] */
};

/* A key that is an int32 member of mhf_config. */
typedef struct size_key {
    const char *name;
    size_t offset;
    bool hashed;   /* of an MHF model only */
    bool required; /* without a preset */
} size_key;

extern const size_key run_config_sizes[];
extern const int run_config_n_sizes;

int settings_find(const char *name);
/* Text of a scalar setting, "" where none. */
const char *settings_text(const mhf_settings *settings, const char *name);
bool settings_given(const mhf_settings *settings, const char *name);
/* "quick.yaml line 7: key train.steps" for messages. */
const char *settings_where(const mhf_settings *settings, const char *name, mhf_buf *out);

/* YAML text of nested mappings to settings; `name` stands in origins and messages. */
mhf_status settings_parse_yaml(mhf_settings *settings, const char *yaml, size_t n,
                               const char *name);
/* One "key=value"; the value is YAML. */
mhf_status settings_parse_set(mhf_settings *settings, const char *assignment);
mhf_status settings_put(mhf_settings *settings, const char *name, json_t *value,
                        const char *origin);
mhf_status settings_new(mhf_settings **out);
void settings_free(mhf_settings *settings);

#endif
