/* SPDX-License-Identifier: ISC */
/* mhf: one MPI program; its subcommands are the steps of the work. */
#include <hdf5.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "mhf/parallel.h"
#include "mhf/train.h"

static const struct command {
    const char *name;
    mhf_status (*run)(int argc, char **argv);
    const char *text;
} commands[] = {
    {"tokenizer", mhf_cmd_tokenizer, "train, extend, encode or decode with a tokenizer.json"},
    {"corpus", mhf_cmd_corpus, "texts to a token store"},
    {"signatures", mhf_cmd_signatures, "build and report the signature table"},
    {"train", mhf_cmd_train, "train a model, or go on with one"},
    {"expand", mhf_cmd_expand, "a model for a tokenizer that has grown"},
    {"evaluate", mhf_cmd_evaluate, "likelihood and accuracy on a token store"},
    {"score", mhf_cmd_score, "log-probabilities of continuations"},
    {"generate", mhf_cmd_generate, "continue a prompt"},
    {"dump", mhf_cmd_dump, "hidden states of every layer"},
    {"study", mhf_cmd_study, "layer-wise correlation with human similarity scores"},
    {"import", mhf_cmd_import, "a Hugging Face directory to a checkpoint"},
    {"export", mhf_cmd_export, "a model to a Hugging Face directory"},
    {"info", mhf_cmd_info, "what is in a file"},
    {"plan", mhf_cmd_plan, "parameters, memory and stages of a configuration"},
    {"bench", mhf_cmd_bench, "rates of this machine and of a training step"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *out)
{
    fprintf(out,
            "Usage: mhf COMMAND [OPTION...] [ARGUMENT...]\n\n"
            "Trains, evaluates and analyses MultiHashFormer language models; runs alone or under "
            "mpirun or srun.\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].text);
    fprintf(out, "\n'mhf COMMAND --help' tells the options of a command.\n\nExit codes:\n");
    static const int codes[] = {0, 1, 2, 3, 4, 5, 75};
    static const char *const texts[] = {
#define STATUS_TEXT(name, code, text) text,
        MHF_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    };
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        fprintf(out, "  %2d ", codes[c]);
        const char *separator = " ";
        for (size_t s = 0; s < sizeof texts / sizeof *texts; s++) {
            if (mhf_status_exit_code((mhf_status)s) != codes[c])
                continue;
            fprintf(out, "%s%s", separator, texts[s]);
            separator = "; ";
        }
        fputc('\n', out);
    }
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

/* argp leaves through exit() after --help or a usage error on rank 0. */
static void finalize(void)
{
    int done;
    MPI_Finalized(&done);
    if (done)
        return;
    const bool unsaid = fflush(stdout) != 0 || ferror(stdout);
    MPI_Finalize();
    if (unsaid) { /* a help that nobody could read is no success */
        fputs("error: standard output: can't write\n", stderr);
        _exit(mhf_status_exit_code(MHF_E_IO));
    }
}

static int run(int rank, int argc, char **argv)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (!command) {
        if (rank == 0 && argc > 1)
            fprintf(stderr, "mhf: there is no command '%s'\nTry `mhf --help'.\n", argv[1]);
        else if (rank == 0)
            print_usage(stderr);
        return mhf_status_exit_code(MHF_E_USAGE);
    }
    mhf_status status = mhf_launch_check();
    if (status == MHF_OK)
        status = command->run(argc - 1, argv + 1);
    status = mhf_agree(status);
    if (status != MHF_OK && rank == 0)
        mhf_log(status == MHF_E_STOPPED ? MHF_LOG_INFO : MHF_LOG_ERROR, "%s", mhf_error());
    return mhf_status_exit_code(status);
}

static bool asks(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    /* After a full disk HDF5 can crash when it tidies up at exit, or inside MPI_Finalize, which it
     * asks to be told of when it starts after MPI: no handler, and a start before MPI. */
    H5dont_atexit();
    H5open();
    if (argc > 1 && strcmp(argv[1], "train") == 0)
        mhf_train_hold_signals();
    signal(SIGXFSZ, SIG_IGN);             /* a file's size limit is an error like a full disk */
    setenv("OMPI_MCA_io", "romio321", 0); /* ompio can hang in writes to HDF5 */
    argp_err_exit_status = mhf_status_exit_code(MHF_E_USAGE);
    int provided, rank, n_ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    atexit(finalize);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    mhf_log_start(MHF_LOG_INFO, rank, n_ranks);
    int code = 0;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        if (rank == 0)
            print_usage(stdout);
    } else if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        if (rank == 0)
            puts("mhf " MHF_VERSION);
    } else if (rank == 0 || !(asks(argc, argv, "--help") || asks(argc, argv, "--usage")))
        code = run(rank, argc, argv);
    finalize();
    return code;
}
