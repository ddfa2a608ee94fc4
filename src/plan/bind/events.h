/* Profiler events of calls and launches: GroupApi, CollApi, P2pApi, KernelLaunch, Group, Coll, P2p.
 * Nothing happens on a communicator without profiler. */
#pragma once

#include "exec/exec.h"
#include "nccl.h"

#include <stdbool.h>

struct tt_plan;
struct tt_profiler;
struct tt_group_call;
struct tt_bound;

struct tt_group_events {          /* GroupApi of the open group */
    struct tt_profiler *profiler; /* borrowed: of the first call's communicator; NULL: none */
    void *group_api;
};

struct tt_op_events { /* of one work, from before its launch until after it */
    struct tt_work_events work;
    bool captured; /* Group, Coll and P2p begin whenever the work runs */
    void *launch, *group;
    const struct tt_plan *plan;  /* borrowed: that of the launch */
    struct tt_group_call *first; /* calls whose Coll or P2p is open, by next_same_kind */
    struct tt_work *frames_of;   /* borrowed: kept, and runs again; NULL: plan->batch has them */
    struct tt_prof_replay *kept; /* owned: of a captured work */
};

/* Note that a call was appended: begins GroupApi at the first of the group; begins and ends CollApi
 * or P2pApi around the call. */
void tt_events_call(struct tt_plan *plan, struct tt_group_events *events, int depth,
                    struct tt_group_call *node);
/* Note that GroupEnd was entered, and left. */
void tt_events_group_ends(struct tt_group_events *events);
void tt_events_group_over(struct tt_group_events *events);

/* Before a launch: KernelLaunch, Group, Coll or P2p begin; the work gets their handle as parent. */
void tt_events_collective(struct tt_plan *plan, struct tt_group_call *node,
                          const struct tt_bound *bound, struct tt_op_events *events);
void tt_events_messages(struct tt_plan *plan, struct tt_group_call *first,
                        struct tt_op_events *events);
/* The same for collectives of a group that are one kept work, which has a frame for each and runs
 * after that. Their `number` and `choice` are set. */
void tt_events_together(struct tt_plan *plan, struct tt_group_call *first, struct tt_work *work,
                        struct tt_op_events *events);
/* The communicator ends: the GroupApi of a group that is still open ends here. */
void tt_events_fini(struct tt_plan *plan);
/* After the launch: all of them end. */
void tt_events_launched(struct tt_op_events *events);
