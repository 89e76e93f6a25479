/* SPDX-License-Identifier: ISC */
/* mhf tokenizer: train (all ranks count), extend, encode, decode (one rank works). */
#include "tokenizer.h"

#include <mpi.h>
#include <string.h>

#include "cmd.h"

static const struct subcommand {
    const char *name;
    mhf_status (*run)(int argc, char **argv);
    const char *text;
} subcommands[] = {
    {"train", mhf_tokenizer_train_command, "learn a tokenizer from texts"},
    {"extend", mhf_tokenizer_extend_command, "add tokens learned from more texts"},
    {"encode", mhf_tokenizer_encode_command, "lines of text to token ids"},
    {"decode", mhf_tokenizer_decode_command, "token ids to text"},
};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void print_usage(FILE *out)
{
    fprintf(out, "Usage: mhf tokenizer SUBCOMMAND [OPTION...] [ARGUMENT...]\n\n");
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        fprintf(out, "  %-8s %s\n", subcommands[i].name, subcommands[i].text);
    fprintf(out, "\n'mhf tokenizer SUBCOMMAND --help' tells the options of a subcommand.\n");
}

mhf_status mhf_cmd_tokenizer(int argc, char **argv)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; argc > 1 && i < N_SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    bool asked = argc > 1 && strcmp(argv[1], "--help") == 0;
    if (rank == 0 && asked)
        print_usage(stdout);
    if (asked)
        return MHF_OK;
    return mhf_fail(MHF_E_USAGE, "mhf tokenizer: %s%s%s, expected train, extend, encode or decode",
                    argc > 1 ? "the subcommand is '" : "no subcommand", argc > 1 ? argv[1] : "",
                    argc > 1 ? "'" : "");
}
