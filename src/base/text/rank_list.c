/* Ranks of a large job do not fit a sentence: the first ones stand for all, with their number. */
#include "base/text/rank_list.h"

#include <stdio.h>

void tt_rank_list_add(struct tt_rank_list *list, int rank)
{
    char *end = list->text + list->named_bytes;
    const size_t room = sizeof(list->text) - list->named_bytes;
    if (!list->count) list->first = rank;
    if (++list->count > TT_RANK_LIST_NAMED) {
        snprintf(end, room, ", ... (%d in all)", list->count);
        return;
    }
    list->named_bytes += (size_t)snprintf(end, room, "%s%d", list->count > 1 ? ", " : "", rank);
}
