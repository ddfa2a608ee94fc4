/* A list of ranks for a sentence: "3, 5", and "3, 5, 6, ... (12 in all)" where it is cut. */
#pragma once

#include <stddef.h>

enum { TT_RANK_LIST_NAMED = 8, TT_RANK_LIST_BYTES = 160 };

struct tt_rank_list { /* {.count = 0} is the empty one */
    char text[TT_RANK_LIST_BYTES];
    size_t named_bytes; /* of `text` without the end of a cut list */
    int count;
    int first; /* the first that was added */
};

/* Append a rank. The text is whole after each one. */
void tt_rank_list_add(struct tt_rank_list *list, int rank);
