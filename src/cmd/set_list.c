/* SPDX-License-Identifier: ISC */
#include "set_list.h"

#include <errno.h>
#include <stdlib.h>

int set_list_add(set_list *list, const char *assignment)
{
    if (mhf_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items, "options") !=
        MHF_OK)
        return ENOMEM;
    list->items[list->n++] = assignment;
    return 0;
}

void set_list_free(set_list *list)
{
    free(list->items);
    *list = (set_list){0};
}
