/* SPDX-License-Identifier: ISC */
/* The --set options of a command line. */
#ifndef MHF_CMD_SET_LIST_H
#define MHF_CMD_SET_LIST_H

#include "mhf/base.h"

typedef struct set_list {
    const char **items; /* borrowed texts */
    int32_t n;
    int64_t capacity;
} set_list;

mhf_status set_list_add(set_list *list, const char *assignment);
void set_list_free(set_list *list);

#endif
