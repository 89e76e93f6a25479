/* SPDX-License-Identifier: ISC */
#include "set_list.h"

#include <stdlib.h>

mhf_status set_list_add(set_list *list, const char *assignment)
{
    MHF_TRY(mhf_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items, "options"));
    list->items[list->n++] = assignment;
    return MHF_OK;
}

void set_list_free(set_list *list)
{
    free(list->items);
    *list = (set_list){0};
}
