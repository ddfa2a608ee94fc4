/* Order of the nodes of a graph: by its edges, and by the collectives and messages in it. Private
 * to check/. */
#pragma once

#include "access.h"

struct tt_host_exec;

/* One row of bits per node: the nodes that are ordered before it. Where the graph has collectives
 * of several ranks, each node has two rows, one for its reads and one for its writes, as apply.c
 * makes two operations of it: members that wait in a collective come after its reads, not its
 * writes. */
struct tt_check_paths {
    size_t words;  /* of a row */
    size_t writes; /* from the row of a node's reads to that of its writes; 0: it has one row */
    uint64_t behind[];
};

/* touches: accesses of all nodes, in the order of the nodes, before the launch is applied. The
 * caller frees the result with free(). NULL: no nodes, more than 4096, or out of memory. Time and
 * memory grow with the square of the number of nodes. */
struct tt_check_paths *tt_check_paths(struct tt_host_check *check, const struct tt_host_exec *exec,
                                      const struct tt_check_touches *touches);

static inline size_t tt_check_row_of(const struct tt_check_paths *paths,
                                     const struct tt_check_touch *touch)
{
    return touch->node + (touch->kind == TT_CHECK_TOUCH_READ ? 0 : paths->writes);
}

static inline bool tt_check_is_behind(const struct tt_check_paths *paths,
                                      const struct tt_check_touch *one,
                                      const struct tt_check_touch *other)
{
    size_t first = tt_check_row_of(paths, other);
    return paths->behind[tt_check_row_of(paths, one) * paths->words + first / 64] >> first % 64 & 1;
}
