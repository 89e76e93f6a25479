/* SPDX-License-Identifier: ISC */
/* Names of layers, poolings and number types on a command line. */
#include <stdlib.h>
#include <string.h>

#include "mhf/infer.h"

static const char *const pooling_names[] = {"none", "mean", "last", "first"};

mhf_status mhf_pooling_parse(const char *name, mhf_pooling *out)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, pooling_names[i]) == 0) {
            *out = (mhf_pooling)i;
            return MHF_OK;
        }
    }
    return mhf_fail(MHF_E_USAGE, "--pooling is '%s', expected none, mean, last or first", name);
}

const char *mhf_pooling_name(mhf_pooling pooling)
{
    return pooling_names[pooling];
}

mhf_status mhf_state_type_parse(const char *name, mhf_state_type *out)
{
    if (strcmp(name, "f32") == 0)
        *out = MHF_F32;
    else if (strcmp(name, "f16") == 0)
        *out = MHF_F16;
    else if (strcmp(name, "bf16") == 0)
        *out = MHF_BF16;
    else
        return mhf_fail(MHF_E_USAGE, "--dtype is '%s', expected f32, f16 or bf16", name);
    return MHF_OK;
}

/* One word of the list, n bytes. */
static mhf_status parse_layer(const char *word, size_t n, int32_t L, int32_t *layer)
{
    char *end = NULL;
    if (n == 4 && memcmp(word, "norm", 4) == 0) {
        *layer = L + 1;
        return MHF_OK;
    }
    long value = n > 0 && n < 10 && *word >= '0' && *word <= '9' ? strtol(word, &end, 10) : -1;
    if (value < 0 || end != word + n || value > L)
        return mhf_fail(MHF_E_USAGE, "--layers holds '%.*s', expected 0 to %d or norm", (int)n,
                        word, L);
    *layer = (int32_t)value;
    return MHF_OK;
}

mhf_status mhf_layers_parse(const char *text, const mhf_config *config, int32_t **layers,
                            int32_t *n)
{
    int32_t L = config->num_hidden_layers;
    bool *wanted;
    MHF_TRY(mhf_new(&wanted, L + 2, sizeof *wanted, "layers"));
    bool all = strcmp(text, "all") == 0;
    mhf_status status = MHF_OK;
    for (const char *at = text; !all && status == MHF_OK && at;) {
        size_t length = strcspn(at, ",");
        int32_t layer = 0;
        status = parse_layer(at, length, L, &layer);
        if (status == MHF_OK)
            wanted[layer] = true;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    *n = 0;
    if (status == MHF_OK)
        status = mhf_new(layers, L + 2, sizeof **layers, "layers");
    for (int32_t i = 0; status == MHF_OK && i <= L + 1; i++)
        if (all || wanted[i])
            (*layers)[(*n)++] = i;
    free(wanted);
    return status;
}
