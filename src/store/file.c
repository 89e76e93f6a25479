/* SPDX-License-Identifier: ISC */
/* What kind of file a path is. */
#include <string.h>

#include "h5.h"
#include "mhf/store.h"

mhf_status mhf_file_format(const char *path, char out[32])
{
    mhf_h5 file;
    mhf_buf format = {0};
    MHF_TRY(mhf_h5_open(path, NULL, &file));
    mhf_status status = mhf_h5_get_text(&file, "/", "format", &format);
    if (status == MHF_OK && (strncmp(format.data, "mhf-", 4) != 0 || format.n > 31))
        status =
            mhf_fail(MHF_E_DATA, "%s: its format '%.40s' is not one of ours", path, format.data);
    if (status == MHF_OK)
        snprintf(out, 32, "%s", format.data);
    mhf_buf_free(&format);
    mhf_h5_free(&file);
    return status;
}
