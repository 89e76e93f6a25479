/* SPDX-License-Identifier: ISC */
/* The subcommands of mhf tokenizer; argv[0] is the subcommand's word. */
#ifndef MHF_CMD_TOKENIZER_H
#define MHF_CMD_TOKENIZER_H

#include "mhf/base.h"

mhf_status mhf_tokenizer_train_command(int argc, char **argv);
mhf_status mhf_tokenizer_extend_command(int argc, char **argv);
mhf_status mhf_tokenizer_encode_command(int argc, char **argv);
mhf_status mhf_tokenizer_decode_command(int argc, char **argv);

/** Parse a whole number from 1 to `high`; false when it isn't one. */
bool mhf_option_count(const char *value, int32_t high, int32_t *out);

#endif
