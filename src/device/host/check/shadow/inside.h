/* Races between nodes of one graph where a kernel reports nothing: its observed accesses are
 * compared with reported and observed accesses of the other nodes of the launch. Private to check/;
 * called under the checker's lock. */
#pragma once

#include "device/host/check/paths.h"

enum { TT_CHECK_NODE_NAME_BYTES = 32 };

struct tt_check_level {
    size_t outer, node; /* where this child graph is a node; level 0 is the outermost graph */
    struct tt_check_paths *paths;            /* owned; NULL: nothing is compared */
    char (*names)[TT_CHECK_NODE_NAME_BYTES]; /* owned */
    struct tt_check_touches known;           /* reported accesses, then observed ones */
    bool reported;                           /* a race was reported; no second one is */
};

struct tt_check_place {
    size_t level, node;
};

struct tt_check_inside {
    unsigned refs;
    const void *site;
    struct tt_check_level *levels; /* owned */
    size_t nlevels;
    struct tt_check_place *places; /* owned; by number of the node among all nodes, from 1 */
    size_t nplaces;
};

/* Whether two accesses to the same bytes are wrong; *kind_out: how. */
bool tt_check_clashes(const struct tt_check_touch *one, const struct tt_check_touch *other,
                      const struct tt_check_paths *paths, enum tt_check_kind *kind_out);
/* sides: the operations of `one` and of `other`. */
void tt_check_report_nodes(struct tt_host_check *check, const struct tt_check_op *sides,
                           const struct tt_check_touch *one, const struct tt_check_touch *other,
                           enum tt_check_kind kind);

struct tt_check_inside *tt_check_inside_hold(struct tt_check_inside *inside);
void tt_check_inside_drop(struct tt_check_inside *inside);
/* An access of a kernel that reports nothing was observed, in a graph or not. */
void tt_check_launch_see(struct tt_host_check *check, struct tt_check_op *op,
                         const struct tt_check_touch *touch);
