/* SPDX-License-Identifier: ISC */
#include "mhf/hash.h"

#include <string.h>

static const char *const names[] = {
    [MHF_RULE_UNIQUE] = "unique",
    [MHF_RULE_REFERENCE] = "reference",
    [MHF_RULE_IMPORTED] = "imported",
};

const char *mhf_signature_rule_name(mhf_signature_rule rule)
{
    return names[rule];
}

mhf_status mhf_signature_rule_parse(const char *name, mhf_signature_rule *out)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (mhf_signature_rule)i;
            return MHF_OK;
        }
    }
    return mhf_fail(MHF_E_USAGE, "signature rule '%s', expected unique, reference or imported",
                    name);
}
