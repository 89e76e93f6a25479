/* SPDX-License-Identifier: ISC */
#include "mhf/base.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { ERROR_MAX = 4096 };
static _Thread_local char error_text[ERROR_MAX] = "no error";

static const int exit_codes[] = {
#define STATUS_CODE(name, code, text) code,
    MHF_STATUS_LIST(STATUS_CODE)
#undef STATUS_CODE
};

int mhf_status_exit_code(mhf_status status)
{
    return exit_codes[status];
}

const char *mhf_error(void)
{
    return error_text;
}

mhf_status mhf_fail(mhf_status status, const char *format, ...)
{
    char text[ERROR_MAX]; /* the arguments may hold mhf_error() itself */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(error_text, text, sizeof text);
    return status;
}

mhf_status mhf_fail_io(const char *path, const char *what)
{
    int error = errno;
    return mhf_fail(MHF_E_IO, "%s: %s: %s", path, what, strerror(error));
}

mhf_status mhf_fail_within(mhf_status status, const char *format, ...)
{
    char prefix[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    return mhf_fail(status, "%s: %s", prefix, error_text);
}
