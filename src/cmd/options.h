/* SPDX-License-Identifier: ISC */
/* The command line of a subcommand. A subcommand describes itself in an mhf_command: a table of its
 * options and a function that takes one of them; the common options, the operands, what is required
 * and how errors of usage are said are the same for all, and here. */
#ifndef MHF_CMD_OPTIONS_H
#define MHF_CMD_OPTIONS_H

#include <argp.h>

#include "mhf/base.h"
#include "mhf/text.h"

/* What every command line may hold. */
typedef struct mhf_common {
    mhf_log_level log_level;
    int threads;             /* 0: as OMP_NUM_THREADS or the rank's share of the cores says */
    const char *engine;      /* NULL: not given */
    mhf_special_names names; /* --bos, --eos, --pad, of commands that have special_names */
    char **operands;         /* [n_operands] words that belong to no option */
    int n_operands;
    int rank, n_ranks; /* this process, of how many */
} mhf_common;

/* An option of a command line on its way to the command. */
typedef struct mhf_option {
    int key; /* as in the table; ARGP_KEY_END after the last one */
    const char *name;
    const char *value; /* NULL where the option has none */
    mhf_status status; /* to set when it can't be taken: MHF_E_USAGE ends with its sentence */
} mhf_option;

typedef struct mhf_command {
    const char *name;     /* "mhf corpus" */
    const char *operands; /* as --help says: "A B" two, "[A]" none or one, "A B..." two or more */
    const char *about;
    const struct argp_option *options; /* keys above 255, or a letter */
    const int *required;               /* keys, 0 ends; or NULL */
    bool precision;                    /* has --precision */
    bool special_names;                /* has --bos, --eos and --pad */
    void (*take)(mhf_option *option, void *arguments);
} mhf_command;

/** Parse on every rank into the command's own arguments and those common to all; after help or a
 * usage error all leave, as argp does, and rank 0 alone prints. Starts the log. */
mhf_status mhf_command_parse(const mhf_command *command, int argc, char **argv, void *arguments,
                             mhf_common *common);

/* Readers of an option's value. What they can't read they refuse, and return what does no harm. */

/** Refuse: "--NAME is 'VALUE', expected EXPECTED". */
void mhf_option_refuse(mhf_option *option, const char *expected);
/** A whole number in [low, high]. */
int64_t mhf_option_int(mhf_option *option, int64_t low, int64_t high);
/** A finite number, else NaN; the caller checks the range. */
double mhf_option_real(mhf_option *option);
/** The place in `names`, NULL at its end. */
int mhf_option_choice(mhf_option *option, const char *const *names);

#endif
