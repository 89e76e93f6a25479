/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "mhf/infer.h"

mhf_status mhf_normalize_parse(const char *name, mhf_normalize *out)
{
    if (strcmp(name, "actual") == 0)
        *out = MHF_ACTUAL;
    else if (strcmp(name, "reference") == 0)
        *out = MHF_REFERENCE;
    else
        return mhf_fail(MHF_E_USAGE, "--normalize is '%s', expected actual or reference", name);
    return MHF_OK;
}

int32_t mhf_counted_rows(const mhf_model *model, const mhf_tokenizer *tokenizer,
                         mhf_normalize normalize)
{
    int32_t rows = model->config.vocab_size, real = mhf_tokenizer_size(tokenizer);
    return normalize == MHF_REFERENCE || real > rows ? rows : real;
}

mhf_token mhf_prefix_token(const mhf_model *model, const mhf_tokenizer *tokenizer)
{
    const mhf_token candidates[] = {mhf_tokenizer_bos(tokenizer), mhf_tokenizer_eos(tokenizer),
                                    model->config.bos_token_id, model->config.eos_token_id};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] >= 0 && candidates[i] < model->config.vocab_size)
            return candidates[i];
    return -1;
}
