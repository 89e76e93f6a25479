/* SPDX-License-Identifier: ISC */
/* YAML by libyaml, which keeps the line of every value: an origin that a struct binding would lose.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "settings.h"

typedef struct reader {
    mhf_settings *settings;
    yaml_document_t document;
    const char *name; /* of the file, or "--set" */
    bool lines;       /* origins carry a line */
} reader;

static void origin_of(const reader *r, const yaml_node_t *node, char out[512])
{
    if (r->lines)
        snprintf(out, 512, "%s line %zu", r->name, node->start_mark.line + 1);
    else
        snprintf(out, 512, "%s", r->name);
}

static mhf_status fail_at(const reader *r, const yaml_node_t *node, const char *what)
{
    char origin[512];
    origin_of(r, node, origin);
    return mhf_fail(MHF_E_CONFIG, "%s: %s", origin, what);
}

/* Every key of a mapping once: a key given twice is a mistake that YAML readers let pass. */
static mhf_status check_twice(reader *r, const yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
    const yaml_node_t *left = yaml_document_get_node(&r->document, pair->key);
    if (left->type != YAML_SCALAR_NODE)
        return fail_at(r, left, "expected a key");
    for (const yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < pair; p++) {
        const yaml_node_t *other = yaml_document_get_node(&r->document, p->key);
        if (strcmp((const char *)other->data.scalar.value, (const char *)left->data.scalar.value) ==
            0) {
            char text[256];
            snprintf(text, sizeof text, "key %.200s is given twice",
                     (const char *)left->data.scalar.value);
            return fail_at(r, left, text);
        }
    }
    return MHF_OK;
}

/* A scalar, a list of scalars, or a list of {file, weight} mappings. */
static mhf_status value_of(reader *r, yaml_node_t *node, int depth, json_t **out)
{
    *out = NULL;
    /* The deepest value is [{file:, weight:}]; an alias can't make more of it than the file holds.
     */
    if (depth > 2 || (node->type == YAML_MAPPING_NODE &&
                      node->data.mapping.pairs.top - node->data.mapping.pairs.start > 2))
        return fail_at(r, node, "expected a value, a list, or a list of {file:, weight:}");
    if (node->type == YAML_SCALAR_NODE) {
        *out = json_stringn((const char *)node->data.scalar.value, node->data.scalar.length);
        if (!*out || strlen(json_string_value(*out)) != node->data.scalar.length) {
            json_decref(*out);
            return fail_at(r, node, "not a text in UTF-8");
        }
        return MHF_OK;
    }
    bool list = node->type == YAML_SEQUENCE_NODE;
    json_t *value = list ? json_array() : json_object();
    mhf_status status = MHF_OK;
    if (list) {
        yaml_node_item_t *item = node->data.sequence.items.start;
        for (; status == MHF_OK && item < node->data.sequence.items.top; item++) {
            json_t *part;
            status = value_of(r, yaml_document_get_node(&r->document, *item), depth + 1, &part);
            if (status == MHF_OK)
                json_array_append_new(value, part);
        }
    } else {
        yaml_node_pair_t *pair = node->data.mapping.pairs.start;
        for (; status == MHF_OK && pair < node->data.mapping.pairs.top; pair++) {
            yaml_node_t *left = yaml_document_get_node(&r->document, pair->key);
            json_t *part;
            status = check_twice(r, node, pair);
            if (status == MHF_OK)
                status = value_of(r, yaml_document_get_node(&r->document, pair->value), depth + 1,
                                  &part);
            if (status == MHF_OK &&
                json_object_set_new(value, (const char *)left->data.scalar.value, part) != 0)
                status = fail_at(r, left, "not a key in UTF-8");
        }
    }
    if (status == MHF_OK)
        *out = value;
    else
        json_decref(value);
    return status;
}

static mhf_status put(reader *r, const char *name, yaml_node_t *node)
{
    char origin[512];
    json_t *value;
    MHF_TRY(value_of(r, node, 0, &value));
    origin_of(r, node, origin);
    return settings_put(r->settings, name, value, origin);
}

static bool is_section(const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < settings_n_keys; i++)
        if (strncmp(settings_keys[i].name, name, n) == 0 && settings_keys[i].name[n] == '.')
            return true;
    return false;
}

/* A section whose keys are all comments. */
static bool is_nothing(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0 &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static mhf_status read_mapping(reader *r, const char *section, yaml_node_t *mapping)
{
    if (*section && is_nothing(mapping))
        return MHF_OK;
    if (mapping->type != YAML_MAPPING_NODE)
        return fail_at(r, mapping, "expected a mapping of keys");
    yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        MHF_TRY(check_twice(r, mapping, pair));
        const yaml_node_t *left = yaml_document_get_node(&r->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);
        char name[256], origin[512];
        snprintf(name, sizeof name, "%s%s%.200s", section, *section ? "." : "",
                 (const char *)left->data.scalar.value);
        if (!*section && is_section(name)) {
            MHF_TRY(read_mapping(r, name, value));
            continue;
        }
        origin_of(r, left, origin);
        if (settings_find(name) < 0)
            return mhf_fail(MHF_E_CONFIG, "%s: there is no key %s", origin, name);
        MHF_TRY(put(r, name, value));
    }
    return MHF_OK;
}

static mhf_status start_parser(yaml_parser_t *parser, const char *yaml, size_t n)
{
    if (!yaml_parser_initialize(parser))
        return mhf_fail(MHF_E_NOMEM, "no memory for a YAML parser");
    yaml_parser_set_input_string(parser, (const unsigned char *)yaml, n);
    return MHF_OK;
}

static mhf_status fail_parse(const reader *r, const yaml_parser_t *parser)
{
    return mhf_fail(MHF_E_CONFIG, "%s line %zu: not valid YAML: %s", r->name,
                    parser->problem_mark.line + 1, parser->problem ? parser->problem : "?");
}

/* What the loader would take without a word: a second document, which it leaves unread, aliases,
 * and brackets nested so deep that they cost it hours. */
static mhf_status check_shape(const reader *r, const char *yaml, size_t n)
{
    enum { DEEPEST = 16 };
    int depth = 0, documents = 0;
    yaml_parser_t parser;
    MHF_TRY(start_parser(&parser, yaml, n));
    mhf_status status = MHF_OK;
    for (bool end = false; !end && status == MHF_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            status = fail_parse(r, &parser);
            break;
        }
        yaml_event_type_t type = event.type;
        size_t line = event.start_mark.line + 1;
        yaml_event_delete(&event);
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        documents += type == YAML_DOCUMENT_START_EVENT;
        end = type == YAML_STREAM_END_EVENT;
        if (type == YAML_ALIAS_EVENT)
            status = mhf_fail(MHF_E_CONFIG, "%s line %zu: an alias, expected the value itself",
                              r->name, line);
        else if (depth > DEEPEST)
            status = mhf_fail(MHF_E_CONFIG, "%s line %zu: nested more than %d deep", r->name, line,
                              DEEPEST);
        else if (documents > 1)
            status = mhf_fail(MHF_E_CONFIG, "%s line %zu: a second document, expected one", r->name,
                              line);
    }
    yaml_parser_delete(&parser);
    return status;
}

static mhf_status load(reader *r, const char *yaml, size_t n)
{
    yaml_parser_t parser;
    MHF_TRY(check_shape(r, yaml, n));
    MHF_TRY(start_parser(&parser, yaml, n));
    mhf_status status = yaml_parser_load(&parser, &r->document) ? MHF_OK : fail_parse(r, &parser);
    yaml_parser_delete(&parser);
    return status;
}

mhf_status settings_parse_yaml(mhf_settings *settings, const char *yaml, size_t n, const char *name)
{
    reader r = {.settings = settings, .name = name, .lines = true};
    MHF_TRY(load(&r, yaml, n));
    yaml_node_t *root = yaml_document_get_root_node(&r.document);
    mhf_status status = root ? read_mapping(&r, "", root) : MHF_OK;
    yaml_document_delete(&r.document);
    return status;
}

mhf_status settings_parse_set(mhf_settings *settings, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return mhf_fail(MHF_E_USAGE, "--set is '%s', expected key=value", assignment);
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
    reader r = {.settings = settings, .name = "--set"};
    if (settings_find(name) < 0)
        return mhf_fail(MHF_E_CONFIG, "--set: there is no key %s", name);
    if (equals[1] == 0)
        return settings_put(settings, name, json_string(""), "--set");
    MHF_TRY(load(&r, equals + 1, strlen(equals + 1)));
    yaml_node_t *root = yaml_document_get_root_node(&r.document);
    mhf_status status =
        root ? put(&r, name, root) : settings_put(settings, name, json_string(""), "--set");
    yaml_document_delete(&r.document);
    return status;
}
