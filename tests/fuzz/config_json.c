/* SPDX-License-Identifier: ISC */
/* A config.json of any bytes is refused with a sentence; what is read can be written, and reads
 * back as the same. */
#include <string.h>

#include "fuzz.h"
#include "mhf/model.h"

static void check_again(const mhf_config *config)
{
    mhf_buf first = {0}, second = {0};
    mhf_config again;
    require(mhf_config_to_json(config, &first) == MHF_OK, "writing");
    require(mhf_config_from_json(first.data, first.n, "config.json", &again) == MHF_OK,
            "reading back");
    require(mhf_config_to_json(&again, &second) == MHF_OK, "writing again");
    require(first.n == second.n && memcmp(first.data, second.data, first.n) == 0, "another text");
    mhf_buf_free(&first);
    mhf_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    mhf_config config;
    mhf_status status = mhf_config_from_json((const char *)data, n, "config.json", &config);
    require(status == MHF_OK || status == MHF_E_DATA || status == MHF_E_CONFIG, "parsing");
    if (status == MHF_OK)
        check_again(&config);
    return 0;
}
