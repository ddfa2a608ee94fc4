/* What room plan tells a profiler. Every handle is a parent after its own stop too, so the order
 * of starts is what counts: GroupApi, CollApi or P2pApi with the call; Group and Coll or P2p before
 * the work is submitted, because its channels and network steps may begin in there. */
#include "plan/events.h"

#include "base/mem.h"
#include "device/device.h"
#include "plan/plan_state.h"
#include "plugin/profiler.h"

#include <stdlib.h>
#include <string.h>

static bool is_captured(const struct tt_task *task)
{
    struct tt_stream_card card;
    return !tuttiHostStreamCard(task->stream, &card) && card.capturing;
}

/* ---- calls ---- */

static void start_group(struct tt_profiler *profiler, struct tt_group_events *events, int depth,
                        const struct tt_group_call *node)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroupApi};
    descr.groupApi.graphCaptured = is_captured(&node->task);
    descr.groupApi.groupDepth = depth;
    events->group_api = tt_prof_start(profiler, node->mask, &descr);
    events->profiler = events->group_api ? profiler : NULL;
    tt_prof_state(profiler, events->group_api, ncclProfilerGroupStartApiStop, NULL);
}

static void fill_coll_api(const struct tt_task *task, ncclProfilerEventDescr_v7_t *descr)
{
    descr->type = ncclProfileCollApi;
    descr->collApi.func = tt_func_name(task->func);
    descr->collApi.count = task->count;
    descr->collApi.datatype = tt_prof_type_name(task->type);
    descr->collApi.root = task->root > 0 ? task->root : 0;
    descr->collApi.stream = task->stream;
    descr->collApi.graphCaptured = is_captured(task);
    descr->collApi.userTag = task->options ? task->options->profiler_tag : 0;
}

static void fill_p2p_api(const struct tt_task *task, ncclProfilerEventDescr_v7_t *descr)
{
    descr->type = ncclProfileP2pApi;
    descr->p2pApi.func = tt_func_name(task->func);
    descr->p2pApi.count = task->count;
    descr->p2pApi.datatype = tt_prof_type_name(task->type);
    descr->p2pApi.stream = task->stream;
    descr->p2pApi.graphCaptured = is_captured(task);
}

void tt_events_call(struct tt_plan *plan, struct tt_group_events *events, int depth,
                    struct tt_group_call *node)
{
    struct tt_profiler *profiler = plan->comm->profiler;
    ncclProfilerEventDescr_v7_t descr;
    node->mask = tt_prof_mask(profiler);
    if (!node->mask) return;
    if (!events->profiler) start_group(profiler, events, depth, node);
    node->group_api = events->group_api;
    memset(&descr, 0, sizeof(descr));
    if (tt_func_is_message(node->task.func)) {
        fill_p2p_api(&node->task, &descr);
    } else {
        fill_coll_api(&node->task, &descr);
    }
    descr.parentObj = node->group_api;
    node->api_event = tt_prof_start(profiler, node->mask, &descr);
    tt_prof_stop(profiler, node->api_event);
}

void tt_events_group_ends(struct tt_group_events *events)
{
    tt_prof_state(events->profiler, events->group_api, ncclProfilerGroupEndApiStart, NULL);
}

void tt_events_group_over(struct tt_group_events *events)
{
    tt_prof_stop(events->profiler, events->group_api);
    *events = (struct tt_group_events){0};
}

/* ---- launches ---- */

/* Broadcast and AllGather move bytes, as far as a profiler is told. */
static bool counts_bytes(enum tt_func func)
{
    return func == TT_FUNC_BROADCAST || func == TT_FUNC_ALLGATHER;
}

static void fill_coll(const struct tt_plan *plan, const struct tt_group_call *node,
                      const struct tt_bound *bound, ncclProfilerEventDescr_v7_t *descr)
{
    const struct tt_task *task = &node->task;
    bool bytes = counts_bytes(task->func);
    descr->type = ncclProfileColl;
    descr->parentObj = node->api_event;
    descr->rank = plan->comm->member.rank;
    descr->coll.seqNumber = node->number;
    descr->coll.func = tt_func_name(task->func);
    descr->coll.sendBuff = task->in;
    descr->coll.recvBuff = task->out;
    descr->coll.count = bytes ? task->count * tt_type_bytes(task->type) : task->count;
    descr->coll.datatype = tt_prof_type_name(bytes ? ncclInt8 : task->type);
    descr->coll.root = task->root > 0 ? task->root : 0;
    descr->coll.nChannels = (uint8_t)bound->nframes;
    descr->coll.nWarps = 1;
    descr->coll.algo = tt_algo_name(bound->choice.algo);
    descr->coll.proto = tt_proto_name(bound->choice.proto);
    descr->coll.userTag = task->options ? task->options->profiler_tag : 0;
}

static void fill_p2p(const struct tt_plan *plan, const struct tt_group_call *node,
                     ncclProfilerEventDescr_v7_t *descr)
{
    const struct tt_task *task = &node->task;
    descr->type = ncclProfileP2p;
    descr->parentObj = node->api_event;
    descr->rank = plan->comm->member.rank;
    descr->p2p.func = tt_func_name(task->func);
    descr->p2p.buff = task->func == TT_FUNC_SEND ? (void *)(uintptr_t)task->in
                                                 : task->out; /* as the ABI has it */
    descr->p2p.datatype = tt_prof_type_name(task->type);
    descr->p2p.count = task->count;
    descr->p2p.peer = task->root;
    descr->p2p.nChannels = 1;
}

/* Group around everything; what the work carries down. */
static void open_launch(const struct tt_plan *plan, uint32_t mask, struct tt_op_events *events)
{
    struct tt_profiler *profiler = plan->comm->profiler;
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
    if (!events->captured) events->group = tt_prof_start(profiler, mask, &descr);
    events->work =
        (struct tt_work_events){.profiler = profiler,
                                .mask = mask,
                                .channel_times = tt_prof_wants(mask, ncclProfileKernelCh)};
}

static void start_launch(const struct tt_group_call *node, struct tt_op_events *events)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelLaunch,
                                         .parentObj = node->group_api};
    descr.kernelLaunch.stream = node->task.stream;
    events->launch = tt_prof_start(events->work.profiler, node->mask, &descr);
}

/* Room for the calls of a captured work; without it they are not told of. */
static void keep_calls(struct tt_op_events *events, const struct tt_group_call *first)
{
    size_t count = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_alike)
        count++;
    if (events->captured) events->kept = tt_calloc(count, sizeof(*events->kept));
    events->work.replays = events->kept;
}

/* The event of a call begins, or (captured) is kept for the runs. Takes `descr` as filled. */
static void begin_call(struct tt_plan *plan, struct tt_group_call *node, int nframes,
                       struct tt_op_events *events, ncclProfilerEventDescr_v7_t *descr)
{
    bool coll = descr->type == ncclProfileColl;
    node->op_event = NULL;
    if (!events->captured) {
        *(coll ? &descr->coll.parentGroup : &descr->p2p.parentGroup) = events->group;
        node->op_event = tt_prof_start(plan->comm->profiler, node->mask, descr);
    } else if (events->kept && tt_prof_wants(node->mask, descr->type)) {
        events->kept[events->work.nreplays++] =
            (struct tt_prof_replay){.descr = *descr,
                                    .first_frame = node->first_frame,
                                    .nframes = nframes,
                                    .sequence = &plan->comm->func_seq[node->task.func]};
    }
}

void tt_events_collective(struct tt_plan *plan, struct tt_group_call *node,
                          const struct tt_bound *bound, struct tt_op_events *events)
{
    ncclProfilerEventDescr_v7_t descr;
    if (!node->mask) return;
    memset(&descr, 0, sizeof(descr));
    node->next_alike = NULL;
    node->first_frame = 0;
    open_launch(plan, node->mask, events);
    keep_calls(events, node);
    fill_coll(plan, node, bound, &descr);
    begin_call(plan, node, bound->nframes, events, &descr);
    events->work.parent = node->op_event;
    events->first = node;
    start_launch(node, events);
}

/* An exchange that is made of messages keeps its name: its messages are one Coll's. */
static void start_message(struct tt_plan *plan, struct tt_group_call *node,
                          struct tt_op_events *events)
{
    static const struct tt_tune_choice by_messages = {.algo = TT_ALGO_P2P,
                                                      .proto = TT_PROTO_SIMPLE};
    struct tt_bound bound = {.nframes = node->nframes < UINT8_MAX ? node->nframes : UINT8_MAX};
    ncclProfilerEventDescr_v7_t descr;
    memset(&descr, 0, sizeof(descr));
    bound.choice = by_messages;
    if (tt_func_is_message(node->task.func)) {
        fill_p2p(plan, node, &descr);
    } else {
        fill_coll(plan, node, &bound, &descr);
    }
    begin_call(plan, node, node->nframes, events, &descr);
    for (int k = 0; k < node->nframes; k++)
        plan->batch.frames[node->first_frame + k].event = node->op_event;
}

void tt_events_messages(struct tt_plan *plan, struct tt_group_call *first,
                        struct tt_op_events *events)
{
    struct tt_group_call *marked = first;
    while (marked && !marked->mask)
        marked = marked->next_alike;
    if (!marked) return;
    open_launch(plan, marked->mask, events);
    keep_calls(events, first);
    for (struct tt_group_call *node = first; node; node = node->next_alike)
        start_message(plan, node, events);
    events->first = first;
    start_launch(marked, events);
}

void tt_events_launched(struct tt_op_events *events)
{
    struct tt_profiler *profiler = events->work.profiler;
    tt_prof_stop(profiler, events->launch);
    for (struct tt_group_call *node = events->first; node; node = node->next_alike) {
        tt_prof_stop(profiler, node->op_event);
        node->op_event = NULL;
    }
    tt_prof_stop(profiler, events->group);
    free(events->kept);
    events->kept = NULL;
}
