/* SPDX-License-Identifier: ISC */
/* What the subcommands share. A subcommand is one file: options in, library calls, words out. It
 * runs on every rank, after MPI_Init; results go to stdout on rank 0, log and progress to stderr.
 * It returns the same status on every rank (mhf_agree), or one that main agrees on at the end, when
 * no collective call comes after the failure.
 */
#ifndef MHF_CMD_H
#define MHF_CMD_H

#include "mhf/base.h"
#include "mhf/text.h"
#include "options.h"

/** Rank 0 chooses the GEMM engine, every rank takes its choice. Collective. `stored`: the string of
 * a checkpoint to use when none is given on the command line, or NULL. */
mhf_status mhf_command_engine(const mhf_common *common, const char *stored);
/** Threads of this rank: as asked for, or its share of the cores. Collective. */
int mhf_command_threads(const mhf_common *common);
/** Load the argument TOKENIZER: a tokenizer.json, a folder that has one, a checkpoint or a run. Not
 * collective. */
mhf_status mhf_command_tokenizer(const char *path, const mhf_special_names *names,
                                 mhf_tokenizer **out);
/** Write text to stdout on rank 0 (MHF_E_IO when that fails). */
mhf_status mhf_command_print(const mhf_buf *text);
/** A text that can't be opened (MHF_E_IO) is better known before the hours that the others take. */
mhf_status mhf_command_check_readable(char *const *paths, int n);
/** So is an output that can't be written (MHF_E_IO), or that would replace an input (MHF_E_USAGE).
 * stream: a device or a pipe will do. Rank 0 looks. Collective, agreed. */
mhf_status mhf_command_check_output(const mhf_common *common, const char *output, bool stream,
                                    const char *const *inputs, int n_inputs);

/* argv[0] is the last word of the command ("corpus"). */
mhf_status mhf_cmd_tokenizer(int argc, char **argv);
mhf_status mhf_cmd_corpus(int argc, char **argv);
mhf_status mhf_cmd_signatures(int argc, char **argv);
mhf_status mhf_cmd_train(int argc, char **argv);
mhf_status mhf_cmd_expand(int argc, char **argv);
mhf_status mhf_cmd_evaluate(int argc, char **argv);
mhf_status mhf_cmd_score(int argc, char **argv);
mhf_status mhf_cmd_generate(int argc, char **argv);
mhf_status mhf_cmd_dump(int argc, char **argv);
mhf_status mhf_cmd_study(int argc, char **argv);
mhf_status mhf_cmd_import(int argc, char **argv);
mhf_status mhf_cmd_export(int argc, char **argv);
mhf_status mhf_cmd_info(int argc, char **argv);
mhf_status mhf_cmd_plan(int argc, char **argv);
mhf_status mhf_cmd_bench(int argc, char **argv);

#endif
