/* Where the events of a run are drawn: groups (one for each rank of a process) of lanes, and on a
 * lane events that lie inside or behind each other, never across. */
#pragma once

#include "../model.h"

enum { LANE_DEEPEST = 8 }; /* events that lie inside each other */

enum lane_kind {
    LANE_API,     /* GroupApi, CollApi, P2pApi of a thread */
    LANE_LAUNCH,  /* KernelLaunch, Group, Coll, P2p of a thread */
    LANE_KERNEL,  /* KernelCh, KernelPhase of a channel */
    LANE_COPY,    /* copy engines */
    LANE_CONTROL, /* ProxyCtrl of a thread */
    LANE_OP,      /* ProxyOp of a channel and direction */
    LANE_STEP,    /* ProxyStep likewise */
    LANE_NET,     /* NetPlugin likewise */
    LANE_KIND_COUNT_
};

struct lane_group {
    uint32_t process;
    int rank; /* -1: not known */
};

struct lane {
    uint32_t group;
    uint32_t thread; /* API, LAUNCH, CONTROL */
    uint16_t channel;
    uint8_t kind; /* enum lane_kind */
    bool send;    /* OP, STEP, NET */
    uint8_t row;  /* of several whose events overlap */
};

struct lanes {
    struct lane_group *groups; /* owned; in the order of ranks */
    struct lane *lanes;        /* owned; in the order of groups, kinds, channels, rows */
    uint32_t *of_event;        /* owned; lane of each event */
    uint32_t *order;           /* owned; events in order of begin, parents before children */
    uint32_t ngroups, nlanes;
    int64_t end_nsec; /* the last moment of the run: the end of events that have none */
};

/* False: memory is short, and said. */
bool lanes_make(const struct timeline *run, struct lanes *lanes);
void lanes_fini(struct lanes *lanes);
/* The group of a rank of timeline_ranks(). */
uint32_t lanes_group(const struct lanes *lanes, uint32_t process, int rank);
/* "rank 3 node1 pid 4711", "channel 2 sends". */
void lanes_group_name(const struct timeline *run, const struct lanes *lanes, uint32_t group,
                      char *text, size_t bytes);
void lanes_name(const struct timeline *run, const struct lane *lane, char *text, size_t bytes);
/* When an event ends; that of the run where it does not. */
int64_t lanes_end(const struct lanes *lanes, const struct timeline_event *event);
