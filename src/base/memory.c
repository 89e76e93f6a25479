/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

bool mhf_mul(int64_t a, int64_t b, int64_t *product)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

mhf_status mhf_new(void *pointer, int64_t n, size_t size, const char *what)
{
    int64_t bytes;
    void *memory = NULL;
    if (!mhf_mul(n, (int64_t)size, &bytes) || bytes > INT64_MAX - 64)
        return mhf_fail(MHF_E_NOMEM, "%s: %lld elements of %zu bytes are too many", what,
                        (long long)n, size);
    size_t whole = ((size_t)bytes + 63) / 64 * 64;
    if (whole == 0)
        whole = 64;
    memory = aligned_alloc(64, whole);
    if (!memory)
        return mhf_fail(MHF_E_NOMEM, "%s: no memory for %lld bytes", what, (long long)bytes);
    memset(memory, 0, whole);
    memcpy(pointer, &memory, sizeof memory);
    return MHF_OK;
}

mhf_status mhf_grow(void *pointer, int64_t *capacity, int64_t need, size_t size, const char *what)
{
    if (need <= *capacity)
        return MHF_OK;
    int64_t wanted = *capacity < INT64_MAX / 2 ? *capacity * 2 : need;
    if (wanted < need)
        wanted = need;
    if (wanted < 16)
        wanted = 16;
    int64_t bytes;
    void *old, *grown = NULL;
    memcpy(&old, pointer, sizeof old);
    if (mhf_mul(wanted, (int64_t)size, &bytes))
        grown = realloc(old, (size_t)bytes);
    if (!grown)
        return mhf_fail(MHF_E_NOMEM, "%s: no memory for %lld elements of %zu bytes", what,
                        (long long)wanted, size);
    memcpy(pointer, &grown, sizeof grown);
    *capacity = wanted;
    return MHF_OK;
}

mhf_status mhf_narrow(int64_t value, const char *what, int32_t *out)
{
    if (value < INT32_MIN || value > INT32_MAX)
        return mhf_fail(MHF_E_DATA, "%s is %lld, which does not fit 32 bits", what,
                        (long long)value);
    *out = (int32_t)value;
    return MHF_OK;
}

const char *mhf_build(void)
{
    return "mhf " MHF_VERSION ", compiler " __VERSION__;
}

double mhf_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t mhf_peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}
