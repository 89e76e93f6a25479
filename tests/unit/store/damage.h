/* SPDX-License-Identifier: ISC */
/* Damaging a file in every way that a disk can, and asking after each whether it is refused or
 * harmless. */
#ifndef MHF_STORE_DAMAGE_H
#define MHF_STORE_DAMAGE_H

#include <hdf5.h>

#include "store_support.h"

/* Reads everything that a user of the file would, and compares it with what was written: MHF_OK
 * when the data are right, MHF_E_INTERNAL when wrong data came without an error, else the refusal.
 */
typedef mhf_status (*damage_reader)(const char *path);

typedef struct damage {
    const char *path;           /* of the damaged copy */
    unsigned char *bytes, *raw; /* the whole file; 1 where a dataset's bytes lie */
    size_t n;
    damage_reader read;
    long refused, harmless;
} damage;

static inline herr_t mark_raw(hid_t file, const char *name, const H5O_info_t *info, void *context)
{
    damage *d = context;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    haddr_t offset = H5Dget_offset(data);
    if (offset != HADDR_UNDEF)
        memset(d->raw + offset, 1, H5Dget_storage_size(data));
    H5Dclose(data);
    return 0;
}

static inline void damage_start(const char *whole, const char *copy, damage_reader read, damage *d)
{
    mhf_buf bytes = {0};
    CHECK_OK(mhf_file_read(whole, SIZE_MAX, &bytes));
    *d = (damage){.path = copy, .bytes = (unsigned char *)bytes.data, .n = bytes.n, .read = read};
    d->raw = calloc(bytes.n, 1);
    hid_t file = H5Fopen(whole, H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, mark_raw, d, H5O_INFO_BASIC);
    H5Fclose(file);
    CU_ASSERT_EQUAL(read(whole), MHF_OK);
}

static inline void damage_try(damage *d, size_t n, const char *what, size_t place)
{
    write_file(d->path, d->bytes, n);
    mhf_status status = d->read(d->path);
    d->refused += status != MHF_OK;
    d->harmless += status == MHF_OK;
    bool good = status == MHF_OK || (status == MHF_E_DATA && names_file(d->path));
    if (!good)
        fprintf(stderr, "\n    %s at %zu: %d, %s\n", what, place, (int)status, mhf_error());
    CU_ASSERT(good);
}

/* Flip a bit of every step-th metadata byte and of every raw_step-th raw one. */
static inline void damage_flip(damage *d, size_t step, size_t raw_step)
{
    for (size_t i = 0; i < d->n; i++) {
        if (i % (d->raw[i] ? raw_step : step) != 0)
            continue;
        unsigned char bit = (unsigned char)(1u << i % 8);
        d->bytes[i] ^= bit;
        damage_try(d, d->n, "a flip", i);
        d->bytes[i] ^= bit;
    }
}

static inline void damage_truncate(damage *d, size_t step)
{
    for (size_t n = 0; n < d->n; n += n < 128 ? 1 : step)
        damage_try(d, n, "a cut", n);
}

static inline void damage_end(damage *d)
{
    printf("\n    %zu bytes: %ld times refused, %ld harmless ", d->n, d->refused, d->harmless);
    free(d->bytes);
    free(d->raw);
}

#endif
