/* SPDX-License-Identifier: ISC */
#include "trainer_form.h"

#include <stdlib.h>
#include <string.h>

#define END_OF_TEXT "<|endoftext|>"

static const char byte_level_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
    "\"normalizer\":{\"type\":\"NFC\"},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":"
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}"
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
    "\"behavior\":\"Isolated\",\"invert\":false},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,"
    "\"use_regex\":false}]},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\","
    "\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
    "{\"SpecialToken\":{\"id\":\"" END_OF_TEXT "\",\"type_id\":0}}],"
    "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
    "{\"SpecialToken\":{\"id\":\"" END_OF_TEXT "\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},"
    "{\"SpecialToken\":{\"id\":\"" END_OF_TEXT "\",\"type_id\":1}}],"
    "\"special_tokens\":{\"" END_OF_TEXT "\":{\"id\":\"" END_OF_TEXT "\",\"ids\":[0],"
    "\"tokens\":[\"" END_OF_TEXT "\"]}}},"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
    "\"use_regex\":true},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
    "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\",\"fuse_unk\":false,"
    "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{},\"merges\":[]}}";

static const char byte_level_config[] = "{\n"
                                        "  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
                                        "  \"add_bos_token\": false,\n"
                                        "  \"add_eos_token\": true,\n"
                                        "  \"bos_token\": null,\n"
                                        "  \"eos_token\": \"" END_OF_TEXT "\",\n"
                                        "  \"pad_token\": \"" END_OF_TEXT "\",\n"
                                        "  \"unk_token\": null,\n"
                                        "  \"add_prefix_space\": false,\n"
                                        "  \"clean_up_tokenization_spaces\": false\n"
                                        "}\n";

static const char sentencepiece_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
    "\"normalizer\":null,"
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
    "\"prepend_scheme\":\"first\",\"split\":true},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\","
    "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
    "\"pair\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
    "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":1}},"
    "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
    "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]}}},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\","
    "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
    "\"byte_fallback\":true,\"ignore_merges\":false,\"vocab\":{},\"merges\":[]}}";

static const char sentencepiece_config[] = "{\n"
                                           "  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
                                           "  \"add_bos_token\": true,\n"
                                           "  \"add_eos_token\": false,\n"
                                           "  \"bos_token\": \"<s>\",\n"
                                           "  \"eos_token\": \"</s>\",\n"
                                           "  \"pad_token\": null,\n"
                                           "  \"unk_token\": \"<unk>\",\n"
                                           "  \"add_prefix_space\": true,\n"
                                           "  \"clean_up_tokenization_spaces\": false\n"
                                           "}\n";

static const char no_memory[] = "no memory for a tokenizer";

/* ---- the start ------------------------------------------------------------------------------ */

static mhf_status parse(mhf_tokenizer_form *form, const char *text, size_t n, const char *name)
{
    MHF_TRY(mhf_buf_add_text(&form->described, name));
    MHF_TRY(mhf_json_parse(text, n, name, &form->json));
    form->specials = json_array();
    return form->specials ? MHF_OK : mhf_fail(MHF_E_NOMEM, no_memory);
}

mhf_status mhf_tokenizer_form_of_kind(mhf_tokenizer_kind kind, mhf_tokenizer_form *form)
{
    static const char *const byte_level_specials[] = {END_OF_TEXT, NULL};
    static const char *const sentencepiece_specials[] = {"<unk>", "<s>", "</s>", NULL};
    bool byte_level = kind == MHF_BYTE_LEVEL;
    const char *text = byte_level ? byte_level_json : sentencepiece_json;
    MHF_TRY(parse(form, text, strlen(text), "the new tokenizer"));
    MHF_TRY(mhf_buf_add_text(&form->config, byte_level ? byte_level_config : sentencepiece_config));
    form->byte_level = byte_level;
    form->byte_tokens = !byte_level;
    const char *const *special = byte_level ? byte_level_specials : sentencepiece_specials;
    for (; *special; special++)
        MHF_TRY(mhf_tokenizer_form_special(form, *special, strlen(*special)));
    return MHF_OK;
}

static bool has_type(const json_t *object, const char *type)
{
    const char *found = json_string_value(json_object_get(object, "type"));
    return found && strcmp(found, type) == 0;
}

static bool is_byte_level(const json_t *pre_tokenizer)
{
    if (has_type(pre_tokenizer, "ByteLevel"))
        return true;
    const json_t *list = json_object_get(pre_tokenizer, "pretokenizers");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_byte_level(json_array_get(list, i)))
            return true;
    return false;
}

/* The library's trained merges are of plain pieces; a prefix or suffix would change their spelling.
 */
static mhf_status check_affixes(const json_t *model, const char *name)
{
    static const char *const keys[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const char *affix = "";
        MHF_TRY(mhf_json_string_or(model, keys[i], name, &affix, NULL));
        if (*affix)
            return mhf_fail(MHF_E_DATA, "%s: training with %s '%s' is not built", name, keys[i],
                            affix);
    }
    return MHF_OK;
}

static mhf_status add_config_name(mhf_buf *config, const mhf_tokenizer *like, const char *key,
                                  mhf_token id)
{
    size_t n = 0;
    const char *piece = id >= 0 ? mhf_tokenizer_piece(like, id, &n) : NULL;
    json_t *value = piece ? json_stringn(piece, n) : json_null();
    mhf_status status = value ? MHF_OK : mhf_fail(MHF_E_NOMEM, no_memory);
    if (status == MHF_OK)
        status = mhf_buf_printf(config, ",\n  \"%s\": ", key);
    if (status == MHF_OK)
        status = mhf_json_print(value, config);
    json_decref(value);
    return status;
}

/* The other's file as it is; where it has none, the names of its special tokens. */
static mhf_status copy_config(const mhf_tokenizer *like, mhf_buf *config)
{
    size_t n = 0;
    const char *text = mhf_tokenizer_config_json(like, &n);
    if (text)
        return mhf_buf_add(config, text, n);
    MHF_TRY(mhf_buf_add_text(config, "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\""));
    MHF_TRY(add_config_name(config, like, "bos_token", mhf_tokenizer_bos(like)));
    MHF_TRY(add_config_name(config, like, "eos_token", mhf_tokenizer_eos(like)));
    MHF_TRY(add_config_name(config, like, "pad_token", mhf_tokenizer_pad(like)));
    MHF_TRY(add_config_name(config, like, "unk_token", mhf_tokenizer_unk(like)));
    return mhf_buf_add_text(config, "\n}\n");
}

mhf_status mhf_tokenizer_form_like(const mhf_tokenizer *like, mhf_tokenizer_form *form)
{
    size_t n;
    const char *text = mhf_tokenizer_json(like, &n);
    MHF_TRY(parse(form, text, n, "the tokenizer to be like"));
    const char *name = form->described.data;
    MHF_TRY(check_affixes(json_object_get(form->json, "model"), name));
    form->byte_level = is_byte_level(json_object_get(form->json, "pre_tokenizer"));
    json_t *added = json_object_get(form->json, "added_tokens");
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_t *token = json_array_get(added, i);
        bool special = false;
        MHF_TRY(mhf_json_bool_or(token, "special", name, &special));
        if (special && json_array_append(form->specials, token) != 0)
            return mhf_fail(MHF_E_NOMEM, no_memory);
    }
    return copy_config(like, &form->config);
}

mhf_status mhf_tokenizer_form_special(mhf_tokenizer_form *form, const char *content, size_t n)
{
    for (size_t i = 0; i < json_array_size(form->specials); i++) {
        const json_t *other = json_object_get(json_array_get(form->specials, i), "content");
        if (json_string_length(other) == n && memcmp(json_string_value(other), content, n) == 0)
            return MHF_OK;
    }
    if (n == 0 || mhf_utf8_valid(content, n) != n)
        return mhf_fail(MHF_E_USAGE, "a special token is empty or not UTF-8");
    json_t *token =
        json_pack("{s:i, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", 0, "content", content, n,
                  "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
    if (json_array_append_new(form->specials, token) != 0)
        return mhf_fail(MHF_E_NOMEM, no_memory);
    return MHF_OK;
}

mhf_status mhf_tokenizer_form_start(const mhf_tokenizer_form *form, mhf_pieces *pieces)
{
    mhf_token id;
    for (size_t i = 0; i < json_array_size(form->specials); i++) {
        const char *content;
        size_t n;
        MHF_TRY(mhf_json_string(json_array_get(form->specials, i), "content", form->described.data,
                                &content, &n));
        MHF_TRY(mhf_pieces_add(pieces, content, n, &id));
    }
    for (unsigned byte = 0; form->byte_tokens && byte < 256; byte++) {
        char piece[8];
        int n = snprintf(piece, sizeof piece, "<0x%02X>", byte);
        MHF_TRY(mhf_pieces_add(pieces, piece, (size_t)n, &id));
    }
    return MHF_OK;
}

/* ---- the end -------------------------------------------------------------------------------- */

static json_t *piece_json(const mhf_pieces *pieces, mhf_token id)
{
    size_t n;
    const char *piece = mhf_pieces_get(pieces, id, &n);
    return json_stringn(piece, n);
}

mhf_status mhf_tokenizer_set_vocab(json_t *model, const mhf_pieces *pieces)
{
    json_t *vocab = json_object();
    int failed = json_object_set_new(model, "vocab", vocab);
    for (mhf_token id = 0; id < pieces->n && !failed; id++) {
        size_t n;
        const char *piece = mhf_pieces_get(pieces, id, &n);
        failed = json_object_setn_new(vocab, piece, n, json_integer(id));
    }
    return failed ? mhf_fail(MHF_E_NOMEM, no_memory) : MHF_OK;
}

mhf_status mhf_tokenizer_set_merges(json_t *model, const mhf_pieces *pieces,
                                    const mhf_merge_list *merges)
{
    json_t *list = json_array();
    int failed = json_object_set_new(model, "merges", list);
    for (int64_t i = 0; i < merges->n && !failed; i++) {
        json_t *pair = json_array();
        failed = json_array_append_new(list, pair) != 0 ||
                 json_array_append_new(pair, piece_json(pieces, merges->merges[i].left)) != 0 ||
                 json_array_append_new(pair, piece_json(pieces, merges->merges[i].right)) != 0;
    }
    return failed ? mhf_fail(MHF_E_NOMEM, no_memory) : MHF_OK;
}

static mhf_status set_added_tokens(json_t *root, const mhf_tokenizer_form *form,
                                   const mhf_pieces *pieces)
{
    json_t *added = json_deep_copy(form->specials);
    if (json_object_set_new(root, "added_tokens", added) != 0)
        return mhf_fail(MHF_E_NOMEM, no_memory);
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_t *token = json_array_get(added, i);
        const json_t *content = json_object_get(token, "content");
        mhf_token id =
            mhf_pieces_find(pieces, json_string_value(content), json_string_length(content));
        if (json_object_set_new(token, "id", json_integer(id)) != 0)
            return mhf_fail(MHF_E_NOMEM, no_memory);
    }
    return MHF_OK;
}

/* New ids of the special tokens that a template adds. */
static mhf_status set_template_ids(json_t *processor, const mhf_pieces *pieces, const char *name)
{
    const char *key;
    json_t *special;
    json_object_foreach(json_object_get(processor, "special_tokens"), key, special)
    {
        const json_t *tokens = json_object_get(special, "tokens");
        json_t *ids = json_array();
        if (json_object_set_new(special, "ids", ids) != 0)
            return mhf_fail(MHF_E_NOMEM, no_memory);
        for (size_t i = 0; i < json_array_size(tokens); i++) {
            const json_t *token = json_array_get(tokens, i);
            mhf_token id = json_is_string(token) ? mhf_pieces_find(pieces, json_string_value(token),
                                                                   json_string_length(token))
                                                 : -1;
            if (id < 0)
                return mhf_fail(MHF_E_DATA, "%s: the template's token '%s' is not special", name,
                                key);
            if (json_array_append_new(ids, json_integer(id)) != 0)
                return mhf_fail(MHF_E_NOMEM, no_memory);
        }
    }
    const json_t *list = json_object_get(processor, "processors");
    for (size_t i = 0; i < json_array_size(list); i++)
        MHF_TRY(set_template_ids(json_array_get(list, i), pieces, name));
    return MHF_OK;
}

mhf_status mhf_tokenizer_print(const json_t *root, mhf_buf *json)
{
    char *text = json_dumps(root, JSON_INDENT(1));
    if (!text)
        return mhf_fail(MHF_E_NOMEM, no_memory);
    mhf_status status = mhf_buf_add_text(json, text);
    free(text);
    return status == MHF_OK ? mhf_buf_add(json, "\n", 1) : status;
}

mhf_status mhf_tokenizer_form_print(const mhf_tokenizer_form *form, const mhf_pieces *pieces,
                                    const mhf_merge_list *merges, mhf_buf *json)
{
    json_t *root = json_deep_copy(form->json);
    json_t *model = json_object_get(root, "model");
    mhf_status status = model ? MHF_OK : mhf_fail(MHF_E_NOMEM, no_memory);
    if (status == MHF_OK)
        status = mhf_tokenizer_set_vocab(model, pieces);
    if (status == MHF_OK)
        status = mhf_tokenizer_set_merges(model, pieces, merges);
    if (status == MHF_OK)
        status = set_added_tokens(root, form, pieces);
    if (status == MHF_OK)
        status =
            set_template_ids(json_object_get(root, "post_processor"), pieces, form->described.data);
    if (status == MHF_OK)
        status = mhf_tokenizer_print(root, json);
    json_decref(root);
    return status;
}

mhf_status mhf_tokenizer_form_empty(const mhf_tokenizer_form *form, mhf_buf *json)
{
    mhf_pieces pieces = {0};
    mhf_merge_list merges = {0};
    mhf_status status = mhf_tokenizer_form_start(form, &pieces);
    if (status == MHF_OK)
        status = mhf_tokenizer_form_print(form, &pieces, &merges, json);
    mhf_pieces_free(&pieces);
    return status;
}

void mhf_tokenizer_form_free(mhf_tokenizer_form *form)
{
    json_decref(form->json);
    json_decref(form->specials);
    mhf_buf_free(&form->config);
    mhf_buf_free(&form->described);
    *form = (mhf_tokenizer_form){0};
}
