/* SPDX-License-Identifier: ISC */
/* JSON as Python's json.dumps(value, indent=2, sort_keys=True) prints it, so that an exported
 * file can be compared with one that transformers wrote. */
#ifndef MHF_STORE_JSON_TEXT_H
#define MHF_STORE_JSON_TEXT_H

#include "mhf/base.h"

/** Append the text and a newline. */
mhf_status mhf_json_text(const json_t *value, mhf_buf *out);

#endif
