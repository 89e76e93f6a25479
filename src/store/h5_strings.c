/* SPDX-License-Identifier: ISC */
/* String lists. */
#include <stdlib.h>
#include <string.h>

#include "h5.h"

/* ---- string lists ---------------------------------------------------------------------------- */

static mhf_status put_list(mhf_h5 *file, const char *path, const char *bytes, int64_t n_bytes,
                           const uint64_t *offsets, int64_t n)
{
    mhf_buf name = {0};
    mhf_status status = mhf_buf_printf(&name, "%s/bytes", path);
    if (status == MHF_OK)
        status = mhf_h5_put(file, name.data, MHF_H5_U8, &(mhf_h5_shape){1, {n_bytes}}, bytes);
    mhf_buf_clear(&name);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s/offsets", path);
    if (status == MHF_OK)
        status = mhf_h5_put(file, name.data, MHF_H5_U64, &(mhf_h5_shape){1, {n + 1}}, offsets);
    mhf_buf_free(&name);
    return status;
}

mhf_status mhf_h5_put_strings(mhf_h5 *file, const char *path, int64_t n, const char *const *strings,
                              const size_t *lengths)
{
    mhf_buf bytes = {0};
    uint64_t *offsets = NULL;
    mhf_status status = mhf_new(&offsets, n + 1, sizeof *offsets, path);
    for (int64_t i = 0; status == MHF_OK && i < n; i++) {
        if (strings[i])
            status = mhf_buf_add(&bytes, strings[i], lengths[i]);
        offsets[i + 1] = bytes.n;
    }
    if (status == MHF_OK)
        status = put_list(file, path, bytes.data, (int64_t)bytes.n, offsets, n);
    free(offsets);
    mhf_buf_free(&bytes);
    return status;
}

mhf_status mhf_h5_put_bytes(mhf_h5 *file, const char *path, const void *bytes, size_t n)
{
    return mhf_h5_put(file, path, MHF_H5_U8, &(mhf_h5_shape){1, {(int64_t)n}}, bytes);
}

mhf_status mhf_h5_get_strings(const mhf_h5 *file, const char *path, mhf_h5_strings *out)
{
    mhf_buf name = {0};
    int64_t n_bytes = 0, n = 0;
    *out = (mhf_h5_strings){0};
    mhf_status status = mhf_buf_printf(&name, "%s/bytes", path);
    if (status == MHF_OK)
        status = mhf_h5_get(file, name.data, MHF_H5_U8, &out->bytes, &n_bytes);
    mhf_buf_clear(&name);
    if (status == MHF_OK)
        status = mhf_buf_printf(&name, "%s/offsets", path);
    if (status == MHF_OK)
        status = mhf_h5_get(file, name.data, MHF_H5_U64, &out->offsets, &n);
    bool good = status != MHF_OK ||
                (n > 0 && out->offsets[0] == 0 && out->offsets[n - 1] == (uint64_t)n_bytes);
    for (int64_t i = 1; status == MHF_OK && good && i < n; i++)
        good = out->offsets[i - 1] <= out->offsets[i];
    if (!good)
        status = mhf_fail(MHF_E_DATA, "%s: %s does not run from 0 to %lld upwards", file->path.data,
                          name.data, (long long)n_bytes);
    out->n = n - 1;
    mhf_buf_free(&name);
    if (status != MHF_OK)
        mhf_h5_strings_free(out);
    return status;
}

void mhf_h5_strings_free(mhf_h5_strings *strings)
{
    free(strings->bytes);
    free(strings->offsets);
    *strings = (mhf_h5_strings){0};
}
