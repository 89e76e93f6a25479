/* SPDX-License-Identifier: ISC */
#include "loaded.h"

#include "mhf/parallel.h"

static mhf_status start_engine(const mhf_common *common, const char *stored)
{
    if (*stored == 0 || common->engine)
        return mhf_agree(mhf_command_engine(common, NULL));
    mhf_status status = mhf_agree(mhf_command_engine(common, stored));
    if (status != MHF_E_USAGE)
        return status;
    mhf_log(MHF_LOG_INFO, "the model's own engine can't run here (%s): another is chosen",
            mhf_error());
    return mhf_agree(mhf_command_engine(common, NULL));
}

static mhf_status check(const char *path, const mhf_loaded *loaded)
{
    int32_t rows = loaded->model->config.vocab_size, size = mhf_tokenizer_size(loaded->tokenizer);
    if (size > rows)
        return mhf_fail(MHF_E_MISMATCH,
                        "%s: the tokenizer has %d tokens, but the model's vocabulary %d rows", path,
                        size, rows);
    return MHF_OK;
}

mhf_status mhf_loaded_open(const char *path, const mhf_common *common, mhf_loaded *out)
{
    MHF_TRY(mhf_agree(mhf_source_open(path, &out->source)));
    out->info = mhf_source_info_of(out->source);
    if (common)
        MHF_TRY(start_engine(common, out->info->engine ? out->info->engine : ""));
    mhf_status status = mhf_model_load(out->source, &out->model, &out->tokenizer);
    if (status == MHF_OK)
        status = check(path, out);
    return mhf_agree(status);
}

void mhf_loaded_free(mhf_loaded *loaded)
{
    mhf_model_free(loaded->model);
    mhf_tokenizer_free(loaded->tokenizer);
    mhf_source_close(loaded->source);
    *loaded = (mhf_loaded){0};
}
