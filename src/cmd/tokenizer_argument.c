/* SPDX-License-Identifier: ISC */
/* The argument TOKENIZER of the commands. */
#include "cmd.h"

#include <string.h>

#include "mhf/store.h"

static bool is_tokenizer_folder(const char *path)
{
    mhf_buf file = {0};
    bool found = mhf_dir_exists(path) && mhf_path_join(path, "tokenizer.json", &file) == MHF_OK &&
                 mhf_file_exists(file.data);
    mhf_buf_free(&file);
    return found;
}

/* The names on the command line stand above the files that the model keeps. */
static mhf_status rename_special(const char *path, const mhf_special_names *names,
                                 mhf_tokenizer **tokenizer)
{
    mhf_tokenizer *kept = *tokenizer;
    size_t n, n_config;
    const char *json = mhf_tokenizer_json(kept, &n);
    const char *config = mhf_tokenizer_config_json(kept, &n_config);
    *tokenizer = NULL;
    mhf_status status = mhf_tokenizer_parse(json, n, config, n_config, path, names, tokenizer);
    mhf_tokenizer_free(kept);
    return status;
}

static mhf_status load_from_model(const char *path, const mhf_special_names *names,
                                  mhf_tokenizer **out)
{
    mhf_source *source;
    MHF_TRY(mhf_source_open(path, &source));
    mhf_status status = mhf_source_tokenizer(source, out);
    mhf_source_close(source);
    if (status == MHF_OK && (names->bos || names->eos || names->pad))
        status = rename_special(path, names, out);
    return status;
}

mhf_status mhf_command_tokenizer(const char *path, const mhf_special_names *names,
                                 mhf_tokenizer **out)
{
    bool is_model =
        mhf_dir_exists(path) ? !is_tokenizer_folder(path) : mhf_path_ends_with(path, ".h5");
    *out = NULL;
    return is_model ? load_from_model(path, names, out) : mhf_tokenizer_load(path, names, out);
}
