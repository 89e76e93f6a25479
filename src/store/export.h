/* SPDX-License-Identifier: ISC */
/* The parts of an export beside the tensors. */
#ifndef MHF_STORE_EXPORT_H
#define MHF_STORE_EXPORT_H

#include "mhf/store.h"

/** Append config.json of the model: the released code's keys, over whatever else the config.json
 * that was imported says (`kept`, NULL where none was). */
mhf_status mhf_export_config(const mhf_config *config, const char *dtype, const mhf_buf *kept,
                             const char *name, mhf_buf *out);
/** Write config.json and all kept files to the folder. */
mhf_status mhf_export_files(const mhf_source *source, const char *folder,
                            const mhf_export_options *options);

#endif
