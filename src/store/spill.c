/* SPDX-License-Identifier: ISC */
#include "spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

mhf_status mhf_spill_open(const char *path, mhf_spill *spill)
{
    *spill = (mhf_spill){.fd = -1};
    mhf_status status = mhf_buf_printf(&spill->name, "%s.spill.XXXXXX", path);
    if (status == MHF_OK)
        status = mhf_new(&spill->buffer, BUFFER, 1, "a buffer");
    if (status == MHF_OK) {
        spill->fd = mkstemp(spill->name.data);
        if (spill->fd < 0)
            status = mhf_fail_io(path, "can't make a temporary file beside it");
        else
            unlink(spill->name.data);
    }
    if (status != MHF_OK)
        mhf_spill_close(spill);
    return status;
}

static mhf_status flush(mhf_spill *spill)
{
    int64_t done = 0;
    while (done < spill->held) {
        ssize_t n = pwrite(spill->fd, spill->buffer + done, (size_t)(spill->held - done),
                           spill->bytes + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mhf_fail(MHF_E_IO, "%s: can't write %lld bytes after %lld: %s", spill->name.data,
                            (long long)(spill->held - done), (long long)(spill->bytes + done),
                            strerror(n < 0 ? errno : ENOSPC));
        done += n;
    }
    spill->bytes += spill->held;
    spill->held = 0;
    return MHF_OK;
}

mhf_status mhf_spill_add(mhf_spill *spill, const void *bytes, int64_t n)
{
    const char *from = bytes;
    while (n > 0) {
        int64_t k = BUFFER - spill->held < n ? BUFFER - spill->held : n;
        memcpy(spill->buffer + spill->held, from, (size_t)k);
        spill->held += k;
        from += k;
        n -= k;
        if (spill->held == BUFFER)
            MHF_TRY(flush(spill));
    }
    return MHF_OK;
}

mhf_status mhf_spill_read(mhf_spill *spill, int64_t first, int64_t n, void *out)
{
    MHF_TRY(flush(spill));
    char *to = out;
    while (n > 0) {
        ssize_t k = pread(spill->fd, to, (size_t)n, first);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return mhf_fail(MHF_E_IO, "%s: can't read back: %s", spill->name.data,
                            k < 0 ? strerror(errno) : "it is shorter than what was written");
        first += k;
        to += k;
        n -= k;
    }
    return MHF_OK;
}

void mhf_spill_close(mhf_spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    free(spill->buffer);
    mhf_buf_free(&spill->name);
    *spill = (mhf_spill){.fd = -1};
}
