/* SPDX-License-Identifier: ISC */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- values --------------------------------------------------------------------------------- */

void mhf_option_refuse(mhf_option *option, const char *expected)
{
    option->status =
        mhf_fail(MHF_E_USAGE, "--%s is '%s', expected %s", option->name, option->value, expected);
}

/* strtoll and strtod skip blanks before a number; a value has none. */
static bool is_whole(const mhf_option *option, const char *end)
{
    return end != option->value && *end == 0 && errno == 0 &&
           !isspace((unsigned char)*option->value);
}

int64_t mhf_option_int(mhf_option *option, int64_t low, int64_t high)
{
    char *end, range[64];
    errno = 0;
    long long n = strtoll(option->value, &end, 10);
    if (is_whole(option, end) && n >= low && n <= high)
        return n;
    snprintf(range, sizeof range, "%" PRId64 " to %" PRId64, low, high);
    mhf_option_refuse(option, range);
    return low;
}

double mhf_option_real(mhf_option *option)
{
    char *end;
    errno = 0;
    double x = strtod(option->value, &end);
    if (is_whole(option, end) && isfinite(x))
        return x;
    mhf_option_refuse(option, "a number");
    return NAN;
}

int mhf_option_choice(mhf_option *option, const char *const *names)
{
    char list[256] = "";
    for (int i = 0; names[i]; i++) {
        if (strcmp(option->value, names[i]) == 0)
            return i;
        size_t n = strlen(list);
        const char *separator = i == 0 ? "" : names[i + 1] ? ", " : " or ";
        snprintf(list + n, sizeof list - n, "%s%s", separator, names[i]);
    }
    mhf_option_refuse(option, list);
    return 0;
}

/* ---- one option ----------------------------------------------------------------------------- */

/* The input of argp's parsers. */
typedef struct parsing {
    const mhf_command *command;
    void *arguments;
    mhf_common *common;
    int n_children;
    uint64_t given; /* bit i: the command's option i */
    mhf_status status;
} parsing;

/* Place of the key in a table; -1: it isn't there. */
static int find(const struct argp_option *options, int key)
{
    for (int i = 0; options[i].name; i++)
        if (options[i].key == key)
            return i;
    return -1;
}

/* An error of usage ends the program in argp_error; others are told by who parses. */
static error_t answer(struct argp_state *state, mhf_status status)
{
    parsing *p = state->input;
    if (status == MHF_E_USAGE)
        argp_error(state, "%s", mhf_error());
    p->status = status;
    return status == MHF_OK ? 0 : EINVAL;
}

static error_t take_from(const struct argp_option *options, int key, const char *value,
                         struct argp_state *state, void (*take)(mhf_option *, void *),
                         void *arguments)
{
    int i = find(options, key);
    if (i < 0)
        return ARGP_ERR_UNKNOWN;
    mhf_option option = {.key = key, .name = options[i].name, .value = value};
    take(&option, arguments);
    return answer(state, option.status);
}

/* ---- options of several commands ------------------------------------------------------------ */

enum { KEY_QUIET = 0x100, KEY_LOG_LEVEL, KEY_THREADS, KEY_ENGINE, KEY_PRECISION };
enum { KEY_BOS = 0x200, KEY_EOS, KEY_PAD };

static const struct argp_option common_options[] = {
    {"quiet", KEY_QUIET, NULL, 0, "Say warnings and errors only", 0},
    {"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "error, warn, info (default) or debug", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads of this rank", 0},
    {"engine", KEY_ENGINE, "NAME", 0,
     "auto (default: measured once), reference, blis, onednn, or a string an earlier run printed",
     0},
    {0}};
static const struct argp_option precision_options[] = {
    {"precision", KEY_PRECISION, "KIND", 0, "float32 (default) or auto", 0}, {0}};
static const struct argp_option name_options[] = {
    {"bos", KEY_BOS, "TOKEN", 0, "Token that begins a text", 0},
    {"eos", KEY_EOS, "TOKEN", 0, "Token that ends a text; stands in for a missing pad", 0},
    {"pad", KEY_PAD, "TOKEN", 0, "Token that fills up; its signature is all zero", 0},
    {0}};

static void take_common(mhf_option *option, void *arguments)
{
    static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
    static const char *const precisions[] = {"float32", "auto", NULL};
    mhf_common *common = arguments;
    switch (option->key) {
    case KEY_QUIET:
        common->log_level = MHF_LOG_WARN;
        break;
    case KEY_LOG_LEVEL:
        common->log_level = (mhf_log_level)mhf_option_choice(option, levels);
        break;
    case KEY_THREADS:
        common->threads = (int)mhf_option_int(option, 1, 4096);
        break;
    case KEY_ENGINE:
        common->engine = option->value;
        break;
    case KEY_PRECISION:
        if (strcmp(option->value, "bfloat16") != 0)
            mhf_option_choice(option, precisions); /* both are float32 */
        else
            mhf_option_refuse(option, "float32 or auto: this build has no bfloat16");
        break;
    case KEY_BOS:
        common->names.bos = option->value;
        break;
    case KEY_EOS:
        common->names.eos = option->value;
        break;
    case KEY_PAD:
        common->names.pad = option->value;
        break;
    }
}

static error_t parse_shared(int key, char *value, struct argp_state *state)
{
    const struct argp_option *const tables[] = {common_options, precision_options, name_options};
    const parsing *p = state->input;
    for (int i = 0; i < 3; i++)
        if (find(tables[i], key) >= 0)
            return take_from(tables[i], key, value, state, take_common, p->common);
    return ARGP_ERR_UNKNOWN;
}

static const struct argp common_argp = {.options = common_options, .parser = parse_shared};
static const struct argp precision_argp = {.options = precision_options, .parser = parse_shared};
static const struct argp names_argp = {.options = name_options, .parser = parse_shared};

/* ---- a command ------------------------------------------------------------------------------ */

/* Each word of "TOKENIZER TEXT..." is needed, none in brackets; after "..." there may be more. */
static mhf_status check_operands(const char *expected, const mhf_common *common)
{
    const char *word = expected;
    int n = 0; /* words of `expected` */
    for (; *word; n++) {
        int length = (int)strcspn(word, " ");
        if (n >= common->n_operands && *word != '[')
            return mhf_fail(MHF_E_USAGE, "%.*s is missing", length, word);
        word += length;
        word += *word == ' ';
    }
    if (common->n_operands > n && word[-1] != '.')
        return mhf_fail(MHF_E_USAGE, "expected %s, found '%s' too", expected, common->operands[n]);
    return MHF_OK;
}

static mhf_status check_required(const parsing *p)
{
    const mhf_command *command = p->command;
    for (const int *key = command->required; key && *key; key++) {
        int i = find(command->options, *key);
        const struct argp_option *o = &command->options[i];
        if (p->given >> i & 1)
            continue;
        if (*key <= UCHAR_MAX)
            return mhf_fail(MHF_E_USAGE, "-%c %s is missing", *key, o->arg);
        return mhf_fail(MHF_E_USAGE, "--%s %s is missing", o->name, o->arg);
    }
    return MHF_OK;
}

/* After the last word: is all there, and does it go together? */
static mhf_status finish(const parsing *p)
{
    mhf_option end = {.key = ARGP_KEY_END};
    MHF_TRY(check_operands(p->command->operands, p->common));
    MHF_TRY(check_required(p));
    p->command->take(&end, p->arguments);
    return end.status;
}

static error_t parse_command(int key, char *value, struct argp_state *state)
{
    parsing *p = state->input;
    int i = find(p->command->options, key);
    switch (key) {
    case ARGP_KEY_INIT:
        for (int child = 0; child < p->n_children; child++)
            state->child_inputs[child] = p;
        return 0;
    case ARGP_KEY_ARGS:
        p->common->operands = state->argv + state->next;
        p->common->n_operands = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        return answer(state, finish(p));
    default:
        if (i >= 0)
            p->given |= UINT64_C(1) << i;
        return take_from(p->command->options, key, value, state, p->command->take, p->arguments);
    }
}

/* Every rank parses the same words and leaves alike on --help or a usage error: a rank that only
 * kept silent would go on and wait for one that has left. So the others speak into the void
 * instead. */
static void mute(int kept[2])
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        kept[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (nowhere >= 0)
            dup2(nowhere, fd);
    }
    if (nowhere >= 0)
        close(nowhere);
}

static void unmute(const int kept[2])
{
    fflush(stdout);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        if (kept[fd - 1] < 0)
            continue;
        dup2(kept[fd - 1], fd);
        close(kept[fd - 1]);
    }
}

mhf_status mhf_command_parse(const mhf_command *command, int argc, char **argv, void *arguments,
                             mhf_common *common)
{
    struct argp_child children[4] = {{&common_argp, 0, "Common options:", -1}};
    parsing p = {.command = command, .arguments = arguments, .common = common, .n_children = 1};
    if (command->precision)
        children[p.n_children++].argp = &precision_argp;
    if (command->special_names)
        children[p.n_children++].argp = &names_argp;
    const struct argp argp = {.options = command->options,
                              .parser = parse_command,
                              .args_doc = command->operands,
                              .doc = command->about,
                              .children = children};
    *common = (mhf_common){.log_level = MHF_LOG_INFO};
    MPI_Comm_rank(MPI_COMM_WORLD, &common->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &common->n_ranks);
    char *kept = argv[0];
    argv[0] = (char *)command->name;
    int streams[2] = {-1, -1};
    if (common->rank != 0)
        mute(streams);
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, &p);
    if (common->rank != 0)
        unmute(streams);
    argv[0] = kept;
    if (p.status != MHF_OK)
        return p.status;
    if (error)
        return mhf_fail(MHF_E_USAGE, "%s: wrong options: %s", command->name, strerror(error));
    mhf_log_start(common->log_level, common->rank, common->n_ranks);
    return MHF_OK;
}
