/* SPDX-License-Identifier: ISC */
/* The private layer over HDF5: files of format v110 with XXH3-64 checksums of each MiB of every
 * dataset, text attributes of fixed length, string lists as bytes and offsets. A file is written
 * under a temporary name and gets its own when it is closed and synced. What is read is untrusted:
 * types, ranks and extents are checked, extents against the file's size too, before anything is
 * allocated. HDF5 is not thread-safe: one thread of a process calls it.
 */
#ifndef MHF_STORE_H5_H
#define MHF_STORE_H5_H

#include <hdf5.h>
#include <mpi.h>

#include "mhf/base.h"

enum {
    MHF_H5_SUM_BYTES = 1 << 20,   /* bytes that one checksum covers */
    MHF_H5_PIECE_BYTES = 64 << 20 /* at most this much passes in one transfer */
};

typedef enum mhf_h5_type {
    MHF_H5_U8,
    MHF_H5_U16,
    MHF_H5_U32,
    MHF_H5_U64,
    MHF_H5_I32,
    MHF_H5_I64,
    MHF_H5_F16,
    MHF_H5_BF16,
    MHF_H5_F32,
    MHF_H5_F64
} mhf_h5_type;

int64_t mhf_h5_type_size(mhf_h5_type type);

typedef struct mhf_h5_shape {
    int n;
    int64_t dims[3];
} mhf_h5_shape;

/* A file, opened for reading or being written. Zero-initialise. */
typedef struct mhf_h5 {
    hid_t id;          /* 0 or less: not open */
    mhf_buf path;      /* as errors name it, and as the finished file is called */
    mhf_buf temporary; /* its name while it is written; empty when reading */
    int64_t bytes;     /* size, when reading */
    bool parallel;     /* opened by several ranks together */
} mhf_h5;

/** Leave "PATH: WHAT: HDF5's reason"; MHF_E_IO instead of `status` when the system refused. Call it
 * before any other HDF5 call. */
mhf_status mhf_h5_fail(mhf_status status, const mhf_h5 *file, const char *format, ...)
    MHF_PRINTF(3, 4);

/* ---- files ---------------------------------------------------------------------------------- */

/** Start to write `path`; root attributes format, format_version and creator are set. */
mhf_status mhf_h5_create(const char *path, const char *format, mhf_h5 *file);
/** Open the temporary file that mhf_h5_create made and mhf_h5_close closed, for all ranks of `comm`
 * to write. Collective; not agreed. */
mhf_status mhf_h5_join(const char *path, MPI_Comm comm, mhf_h5 *file);
/** Close the file, keep the names. Collective where the file is parallel. */
mhf_status mhf_h5_close(mhf_h5 *file);
/** Sync and rename a closed file (remove it when that fails); `file` is then empty. One rank. */
mhf_status mhf_h5_publish(mhf_h5 *file);
/** End the writing by one rank: close and publish when `status` is MHF_OK, else remove. */
mhf_status mhf_h5_finish(mhf_h5 *file, mhf_status status);
/** Open for reading; `format` is what the root attribute must say (NULL: anything). MHF_E_IO when
 * there is no file, MHF_E_DATA when it isn't ours. */
mhf_status mhf_h5_open(const char *path, const char *format, mhf_h5 *file);
/** Close without complaint, remove the temporary file where there is one, free. */
void mhf_h5_free(mhf_h5 *file);

/* ---- attributes; `object` is "/" or the path of a dataset ------------------------------------ */

mhf_status mhf_h5_put_text(mhf_h5 *file, const char *object, const char *name, const char *text);
mhf_status mhf_h5_put_int(mhf_h5 *file, const char *object, const char *name, int64_t value);
mhf_status mhf_h5_put_uint(mhf_h5 *file, const char *object, const char *name, uint64_t value);
bool mhf_h5_has_attribute(const mhf_h5 *file, const char *object, const char *name);
mhf_status mhf_h5_get_text(const mhf_h5 *file, const char *object, const char *name, mhf_buf *out);
mhf_status mhf_h5_get_int(const mhf_h5 *file, const char *object, const char *name, int64_t low,
                          int64_t high, int64_t *out);
mhf_status mhf_h5_get_uint(const mhf_h5 *file, const char *object, const char *name, uint64_t *out);

/* ---- writing datasets ----------------------------------------------------------------------- */

/** Create a dataset and that of its checksums, and the groups above. chunk_rows > 0: chunked by so
 * many rows, else contiguous. One rank. */
mhf_status mhf_h5_reserve(mhf_h5 *file, const char *path, mhf_h5_type type,
                          const mhf_h5_shape *shape, int64_t chunk_rows);
/** Write elements first … of the flattened contiguous dataset and their checksums. `first` stands
 * at a whole MiB and the range ends at one or at the end. Any rank by itself. */
mhf_status mhf_h5_write(mhf_h5 *file, const char *path, int64_t first, int64_t count,
                        const void *data);
/** Write elements first …, checksums left for mhf_h5_sum_written. Any rank by itself. */
mhf_status mhf_h5_write_plain(mhf_h5 *file, const char *path, int64_t first, int64_t count,
                              const void *data);
/** Read back what a dataset holds and write the checksums of its part'th of `parts` equal runs of
 * MiB. The file was closed and joined again since it was written. Any rank by itself. */
mhf_status mhf_h5_sum_written(mhf_h5 *file, const char *path, int part, int parts);
/** Reserve and write all. */
mhf_status mhf_h5_put(mhf_h5 *file, const char *path, mhf_h5_type type, const mhf_h5_shape *shape,
                      const void *data);
/** Text as uint8 [n]. */
mhf_status mhf_h5_put_bytes(mhf_h5 *file, const char *path, const void *bytes, size_t n);
/** String list: PATH/bytes and PATH/offsets; a NULL string is stored empty. */
mhf_status mhf_h5_put_strings(mhf_h5 *file, const char *path, int64_t n, const char *const *strings,
                              const size_t *lengths);

/* ---- reading datasets ----------------------------------------------------------------------- */

/* A dataset opened for reading. Zero-initialise. */
typedef struct mhf_h5_data {
    const mhf_h5 *file; /* borrowed */
    hid_t id;
    mhf_buf path;
    mhf_h5_type type;
    mhf_h5_shape shape;
    int64_t count, row; /* elements: in all, and in a row */
    uint64_t *sums;
    uint8_t *verified; /* one a MiB: its checksum was right once */
    char *piece;       /* one MiB */
} mhf_h5_data;

/** "uint8" … "float64". */
const char *mhf_h5_type_name(mhf_h5_type type);
bool mhf_h5_exists(const mhf_h5 *file, const char *path);
/** Which of our types a dataset has. */
mhf_status mhf_h5_type_of(const mhf_h5 *file, const char *path, mhf_h5_type *out);
/** Open; n_dims 0: any of 1 to 3. */
mhf_status mhf_h5_data_open(const mhf_h5 *file, const char *path, mhf_h5_type type, int n_dims,
                            mhf_h5_data *data);
/** out[0..count) = elements first … of the flattened dataset, checksums checked. */
mhf_status mhf_h5_data_read(mhf_h5_data *data, int64_t first, int64_t count, void *out);
void mhf_h5_data_close(mhf_h5_data *data);
/** A whole dataset of one dimension in a new array. */
mhf_status mhf_h5_get(const mhf_h5 *file, const char *path, mhf_h5_type type, void *array,
                      int64_t *count);
mhf_status mhf_h5_get_bytes(const mhf_h5 *file, const char *path, mhf_buf *out);

/* A string list: string i is bytes[offsets[i] .. offsets[i+1]). Zero-initialise. */
typedef struct mhf_h5_strings {
    char *bytes;
    uint64_t *offsets; /* [n+1], ascending */
    int64_t n;
} mhf_h5_strings;

mhf_status mhf_h5_get_strings(const mhf_h5 *file, const char *path, mhf_h5_strings *out);
void mhf_h5_strings_free(mhf_h5_strings *strings);

/* Names, for walking a file. Zero-initialise. */
typedef struct mhf_h5_names {
    char **names;
    int64_t n, capacity;
} mhf_h5_names;

/** Names of the members of a group, in order. */
mhf_status mhf_h5_list(const mhf_h5 *file, const char *group, mhf_h5_names *out);
void mhf_h5_names_free(mhf_h5_names *names);
/** Paths of all datasets but those of checksums. */
mhf_status mhf_h5_datasets(const mhf_h5 *file, mhf_h5_names *out);
/** Names of an object's attributes. */
mhf_status mhf_h5_attributes(const mhf_h5 *file, const char *object, mhf_h5_names *out);
/** Read every dataset and check its checksums. */
mhf_status mhf_h5_verify(const mhf_h5 *file);

/* ---- shared by the sources of this layer ---------------------------------------------------- */

/** Properties of a file, group or dataset that is made. */
hid_t mhf_h5_creation_new(hid_t class);
/** A type of HDF5's; H5Tclose it. */
hid_t mhf_h5_type_new(mhf_h5_type type);
/** PATH of the checksums of a dataset. */
mhf_status mhf_h5_sums_path(const char *path, mhf_buf *out);
/** Transfer elements first … of a dataset whose rows have `row` elements; one transfer. */
herr_t mhf_h5_transfer(hid_t data, hid_t type, int n_dims, int64_t row, int64_t first,
                       int64_t count, void *read, const void *write);
/** Refuse a group, or an object, that keeps its links, or attributes, elsewhere than in its header.
 */
mhf_status mhf_h5_check_group(const mhf_h5 *file, const char *path);
mhf_status mhf_h5_check_attributes(const mhf_h5 *file, const char *object);
/** Follow only hard links: a file may not send us to another. */
mhf_status mhf_h5_check_links(const mhf_h5 *file, const char *path);

#endif
