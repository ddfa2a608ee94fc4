/* Nodes of one graph of which a kernel reports nothing: what it is seen to do while it runs is
 * compared with what other nodes of the same launch report, and were seen to do. Inside of the
 * checker. */
#pragma once

#include "paths.h"

enum { TT_CHECK_NODE_NAME_BYTES = 32 };

struct tt_check_level {
    size_t outer, node;           /* which node of which level it is; of itself: the outermost */
    struct tt_check_paths *paths; /* owned; NULL: nothing is compared */
    char (*names)[TT_CHECK_NODE_NAME_BYTES]; /* owned */
    struct tt_check_touches known;           /* what was reported, then what was seen */
    bool reported;                           /* one finding is enough */
};

struct tt_check_place {
    size_t level, node;
};

struct tt_check_inside {
    unsigned refs;
    const void *site;
    struct tt_check_level *levels; /* owned */
    size_t nlevels;
    struct tt_check_place *places; /* owned; by number of the node among all, from 1 on */
    size_t nplaces;
};

/* What is wrong with two accesses to the same bytes; false: nothing. */
bool tt_check_clashes(const struct tt_check_touch *one, const struct tt_check_touch *other,
                      const struct tt_check_paths *paths, enum tt_check_kind *kind_out);
/* sides: of `one` and of `other`. */
void tt_check_report_nodes(struct tt_host_check *check, const struct tt_check_op *sides,
                           const struct tt_check_touch *one, const struct tt_check_touch *other,
                           enum tt_check_kind kind);

struct tt_check_inside *tt_check_inside_hold(struct tt_check_inside *inside);
void tt_check_inside_drop(struct tt_check_inside *inside);
/* A kernel that reports nothing was seen to do that, in a graph or not. */
void tt_check_launch_see(struct tt_host_check *check, struct tt_check_op *op,
                         const struct tt_check_touch *touch);
