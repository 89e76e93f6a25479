/* SPDX-License-Identifier: ISC */
/** base: what every room stands on: status and error text, log, memory, buffers, maps, durable
 * files, typed JSON, counter-based random numbers, a progress line. Knows nothing of tokens or
 * tensors.
 *
 * Nothing here is collective. Everything but the log is safe to call from several threads on
 * different objects; the error text is one a thread.
 */
#ifndef MHF_BASE_H
#define MHF_BASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define MHF_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define MHF_PRINTF(text, first)
#endif

/* ---- status --------------------------------------------------------------------------------- */

/* name, exit code of the program, what it means: the one list of errors. */
#define MHF_STATUS_LIST(X)                                                                         \
    X(OK, 0, "done")                                                                               \
    X(E_USAGE, 2, "wrong options or arguments")                                                    \
    X(E_CONFIG, 2, "a configuration that can't be run")                                            \
    X(E_GRID, 2, "ranks, stages and replicas that don't fit")                                      \
    X(E_MISMATCH, 2, "a run, model, tokenizer or table that doesn't match another")                \
    X(E_LOCKED, 2, "a run folder that another job holds")                                          \
    X(E_EXHAUSTED, 2, "a signature table that can't be built")                                     \
    X(E_DATA, 3, "what is in a file or request is wrong")                                          \
    X(E_IO, 4, "a file that can't be read or written")                                             \
    X(E_NONFINITE, 5, "NaN or infinity")                                                           \
    X(E_STOPPED, 75, "stopped on request, after a whole checkpoint")                               \
    X(E_NOMEM, 1, "out of memory")                                                                 \
    X(E_INTERNAL, 1, "anything else")

typedef enum mhf_status {
#define MHF_STATUS_ENUM(name, code, text) MHF_##name,
    MHF_STATUS_LIST(MHF_STATUS_ENUM)
#undef MHF_STATUS_ENUM
} mhf_status;

int mhf_status_exit_code(mhf_status status);

/** Leave one sentence (file, place, found, expected) for the user and return `status`. */
mhf_status mhf_fail(mhf_status status, const char *format, ...) MHF_PRINTF(2, 3);
/** MHF_E_IO with "PATH: WHAT: strerror(errno)". */
mhf_status mhf_fail_io(const char *path, const char *what);
/** Put "prefix: " before the sentence that the failed call left; returns `status`. */
mhf_status mhf_fail_within(mhf_status status, const char *format, ...) MHF_PRINTF(2, 3);
/** The sentence of this thread's last failure; valid until the next. */
const char *mhf_error(void);

/** The only hidden return in the tree: leave when `call` fails and nothing is to be released. */
#define MHF_TRY(call)                                                                              \
    do {                                                                                           \
        mhf_status mhf_try_status_ = (call);                                                       \
        if (mhf_try_status_ != MHF_OK)                                                             \
            return mhf_try_status_;                                                                \
    } while (0)

/* ---- log (stderr) --------------------------------------------------------------------------- */

typedef enum mhf_log_level {
    MHF_LOG_ERROR,
    MHF_LOG_WARN,
    MHF_LOG_INFO,
    MHF_LOG_DEBUG
} mhf_log_level;

/** Set once at start. Ranks other than 0 print warnings and errors only, as "rank k: …". */
void mhf_log_start(mhf_log_level level, int rank, int n_ranks);
mhf_log_level mhf_log_level_of(void);
/** One line; the newline is added. */
void mhf_log(mhf_log_level level, const char *format, ...) MHF_PRINTF(2, 3);

/* ---- memory and sizes ----------------------------------------------------------------------- */

/** *pointer = zeroed array of n elements of `size` bytes, aligned to 64; free() it. `pointer` is
 * the address of any object pointer. `what` names it in the error (MHF_E_NOMEM). n = 0 gives a
 * valid pointer. */
mhf_status mhf_new(void *pointer, int64_t n, size_t size, const char *what);
/** Make *pointer (from malloc family or NULL) hold at least `need` elements; grows by doubling,
 * *capacity in elements. */
mhf_status mhf_grow(void *pointer, int64_t *capacity, int64_t need, size_t size, const char *what);
/** False when a·b does not fit int64 or an operand is negative. */
bool mhf_mul(int64_t a, int64_t b, int64_t *product);
/** Narrow with a check; MHF_E_DATA naming `what` when it does not fit. */
mhf_status mhf_narrow(int64_t value, const char *what, int32_t *out);
/** Version and compiler of this program, as files keep it. */
const char *mhf_build(void);
/** Seconds of a monotonic clock. */
double mhf_seconds(void);
/** Largest resident set of this process so far, in bytes. */
int64_t mhf_peak_memory(void);

/* ---- growing byte string -------------------------------------------------------------------- */

/* Zero-initialise. data[n] is always 0 once something was added. */
typedef struct mhf_buf {
    char *data;
    size_t n, capacity;
} mhf_buf;

mhf_status mhf_buf_add(mhf_buf *buf, const void *bytes, size_t n);
mhf_status mhf_buf_add_text(mhf_buf *buf, const char *text);
mhf_status mhf_buf_printf(mhf_buf *buf, const char *format, ...) MHF_PRINTF(2, 3);
void mhf_buf_clear(mhf_buf *buf);
void mhf_buf_free(mhf_buf *buf);

/* ---- map from byte strings to integers ------------------------------------------------------ */

typedef struct mhf_map mhf_map;

mhf_status mhf_map_new(int64_t expected, mhf_map **out);
void mhf_map_free(mhf_map *map);
/** Value of the key or `missing`. */
int64_t mhf_map_get(const mhf_map *map, const void *key, size_t n, int64_t missing);
/** Insert or replace; copies the key. */
mhf_status mhf_map_put(mhf_map *map, const void *key, size_t n, int64_t value);
int64_t mhf_map_count(const mhf_map *map);

/* ---- UTF-8 ---------------------------------------------------------------------------------- */

/** Decode the code point at text[0..n); returns its length 1..4, or 0 when it is not valid UTF-8.
 */
int mhf_utf8_decode(const char *text, size_t n, uint32_t *code_point);
/** Encode into out[4]; returns the length. */
int mhf_utf8_encode(uint32_t code_point, char out[4]);
/** Index of the first byte that is not valid UTF-8, or n. */
size_t mhf_utf8_valid(const char *text, size_t n);

/* ---- files ---------------------------------------------------------------------------------- */

/** Read a whole file ("-" is stdin), at most `limit` bytes (MHF_E_DATA when longer). */
mhf_status mhf_file_read(const char *path, size_t limit, mhf_buf *out);
/** Write bytes so that `path`, or the file that it is a link to, is the old file or the whole new
 * one.
 * "-" is stdout; a device, a pipe or /dev/stdout is written to as it is. */
mhf_status mhf_file_write(const char *path, const void *bytes, size_t n);
/** Could mhf_file_write do its work? Asked before long work; writes nothing. Errors: MHF_E_IO, for
 * a folder that is missing or can't be written to, or a path that is a folder itself. */
mhf_status mhf_file_check_writable(const char *path);
/** Are both the same existing file, whatever their names? */
bool mhf_file_same(const char *a, const char *b);
/** out = the temporary name beside `path` to write to before mhf_file_publish. Errors: MHF_E_IO
 * where `path` is a folder, a device or a pipe: a rename would put a file in its place. */
mhf_status mhf_file_temporary(const char *path, mhf_buf *out);
/** Sync `temporary`, rename it to `path`, sync the folder. */
mhf_status mhf_file_publish(const char *temporary, const char *path);
/** mkdir -p. */
mhf_status mhf_dir_make(const char *path);
bool mhf_file_exists(const char *path);
bool mhf_dir_exists(const char *path);
bool mhf_path_ends_with(const char *path, const char *ending);
/** out = folder/name. */
mhf_status mhf_path_join(const char *folder, const char *name, mhf_buf *out);

/** XXH3-64 of bytes. */
uint64_t mhf_hash64(const void *bytes, size_t n);
/** SHA-256 as 64 hexadecimal digits and a terminator. */
void mhf_sha256_hex(const void *bytes, size_t n, char out[65]);

/* ---- JSON (jansson, duplicates rejected) ---------------------------------------------------- */

/** Parse text; `name` (a path, or "PATH line 7") stands in the error: MHF_E_DATA. */
mhf_status mhf_json_parse(const char *text, size_t n, const char *name, json_t **out);
mhf_status mhf_json_read(const char *path, json_t **out);
/** Typed members. A missing key gives MHF_E_DATA, or `*out` unchanged by the _or forms; a null
 * counts as missing; a wrong type or range is MHF_E_DATA in both: "NAME: key 'x' is …, expected …".
 */
mhf_status mhf_json_int(const json_t *object, const char *key, const char *name, int64_t low,
                        int64_t high, int64_t *out);
mhf_status mhf_json_int_or(const json_t *object, const char *key, const char *name, int64_t low,
                           int64_t high, int64_t *out);
mhf_status mhf_json_real_or(const json_t *object, const char *key, const char *name, double *out);
mhf_status mhf_json_bool_or(const json_t *object, const char *key, const char *name, bool *out);
/** Borrowed from `object`; NUL may stand inside when `n` is not NULL, else it is refused. */
mhf_status mhf_json_string(const json_t *object, const char *key, const char *name,
                           const char **out, size_t *n);
mhf_status mhf_json_string_or(const json_t *object, const char *key, const char *name,
                              const char **out, size_t *n);
/** Append the compact text of a value: UTF-8 as it is, keys as they come, reals with the fewest
 * digits that read back as the same number. */
mhf_status mhf_json_print(const json_t *value, mhf_buf *out);
/** Append the text and a newline as Python's json.dumps(value, indent=2, sort_keys=True) prints it,
 * so that a file can be compared with one that transformers wrote. */
mhf_status mhf_json_text(const json_t *value, mhf_buf *out);

/* ---- counter-based random numbers (Philox4x32-10) ------------------------------------------- */

typedef struct mhf_rng {
    uint32_t key[2];
} mhf_rng;

/** A stream of its own for each (seed, name): element i is the same on every rank and machine. */
mhf_rng mhf_rng_named(uint64_t seed, const char *name);
uint64_t mhf_rng_bits(mhf_rng rng, uint64_t i);
/** In [0, 1), 53 bits. */
double mhf_rng_uniform(mhf_rng rng, uint64_t i);
/** out[0..n) = normal(0, 1) deviates of elements first .. first+n-1; double arithmetic, rounded. */
void mhf_rng_normals(mhf_rng rng, uint64_t first, int64_t n, float *out);
/** Place of i in the keyed permutation of 0..n-1 (Feistel network, cycle-walking): no memory. */
uint64_t mhf_rng_permute(mhf_rng rng, uint64_t i, uint64_t n);

/* ---- progress ------------------------------------------------------------------------------- */

/* A line with rate and ETA that redraws itself on a terminal, a plain line now and then elsewhere.
 */
typedef struct mhf_progress {
    const char *what, *unit;
    double total, started, shown;
    double first; /* done before the start: not counted in the rate */
    bool terminal;
} mhf_progress;

/** total 0: not known. */
void mhf_progress_start(mhf_progress *progress, const char *what, const char *unit, double total);
/** `note` (may be NULL) is shown at the end of the line. */
void mhf_progress_show(mhf_progress *progress, double done, const char *note);
void mhf_progress_end(mhf_progress *progress, double done);

#endif
