/* SPDX-License-Identifier: ISC */
/* The subcommands of mhf tokenizer; argv[0] is the subcommand's word. */
#ifndef MHF_CMD_TOKENIZER_H
#define MHF_CMD_TOKENIZER_H

#include "mhf/text.h"

mhf_status mhf_tokenizer_train_command(int argc, char **argv);
mhf_status mhf_tokenizer_extend_command(int argc, char **argv);
mhf_status mhf_tokenizer_encode_command(int argc, char **argv);
mhf_status mhf_tokenizer_decode_command(int argc, char **argv);

/** Count the words of texts, dealt out to all ranks by rank 0, which reads them, in rank 0's
 * trainer. Every rank has a trainer with the same options; the result does not depend on how many
 * ranks there are. Collective; the same status on every rank. */
mhf_status mhf_tokenizer_count(mhf_tokenizer_trainer *trainer, char *const *paths, int n_paths);

#endif
