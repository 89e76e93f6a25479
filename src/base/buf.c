/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static mhf_status reserve(mhf_buf *buf, size_t more)
{
    if (more > SIZE_MAX / 4 || buf->n > SIZE_MAX / 4)
        return mhf_fail(MHF_E_NOMEM, "a text of %zu bytes is too long", more);
    size_t need = buf->n + more + 1;
    if (need <= buf->capacity)
        return MHF_OK;
    size_t capacity = buf->capacity * 2 > need ? buf->capacity * 2 : need;
    if (capacity < 64)
        capacity = 64;
    char *data = realloc(buf->data, capacity);
    if (!data)
        return mhf_fail(MHF_E_NOMEM, "no memory for a text of %zu bytes", capacity);
    buf->data = data;
    buf->capacity = capacity;
    return MHF_OK;
}

mhf_status mhf_buf_add(mhf_buf *buf, const void *bytes, size_t n)
{
    MHF_TRY(reserve(buf, n));
    if (n > 0)
        memcpy(buf->data + buf->n, bytes, n);
    buf->n += n;
    buf->data[buf->n] = 0;
    return MHF_OK;
}

mhf_status mhf_buf_add_text(mhf_buf *buf, const char *text)
{
    return mhf_buf_add(buf, text, strlen(text));
}

mhf_status mhf_buf_printf(mhf_buf *buf, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    mhf_status status = n < 0 ? mhf_fail(MHF_E_INTERNAL, "a text can't be formatted: '%s'", format)
                              : reserve(buf, (size_t)n);
    if (status == MHF_OK) {
        vsnprintf(buf->data + buf->n, (size_t)n + 1, format, again);
        buf->n += (size_t)n;
    }
    va_end(again);
    return status;
}

void mhf_buf_clear(mhf_buf *buf)
{
    buf->n = 0;
    if (buf->data)
        buf->data[0] = 0;
}

void mhf_buf_free(mhf_buf *buf)
{
    free(buf->data);
    *buf = (mhf_buf){0};
}
