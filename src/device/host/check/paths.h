/* Which node of a graph comes behind which: by its edges, and by the collectives and messages in
 * it. Inside of the checker. */
#pragma once

#include "access.h"

#include "device/host/graph/exec.h"

/* One row of bits per node. Where members of a communicator meet inside the graph each node has two
 * rows, as they are two operations in apply.c: what it reads is over for those who wait for it in a
 * collective, what it writes is not. */
struct tt_check_paths {
    size_t words;  /* of a row */
    size_t writes; /* from the row of a node's reads to that of its writes; 0: it has one row */
    uint64_t behind[];
};

/* touches: of the graph's nodes, in the order of the nodes, before the launch is applied. The
 * caller's to free(). NULL: no nodes, too many of them (above 4096), or out of memory. Takes time
 * and memory that grow with the square of the nodes. */
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
