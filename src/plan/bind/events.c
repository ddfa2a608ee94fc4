/* The profiler's events of room plan. Every handle is a parent after its own stop too, so the order
 * of starts is what counts: GroupApi, CollApi or P2pApi with the call; Group and Coll or P2p before
 * the work is submitted, because its channels and network steps may begin in there. */
#include "plan/bind/events.h"

#include "base/mem.h"
#include "device/device.h"
#include "mem/mem.h"
#include "plan/bind/exchange.h"
#include "plan/plan_state.h"
#include "plugin/profiler/profiler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_captured(const struct tt_task *task)
{
    struct tt_stream_info info;
    return !tuttiHostStreamInfo(task->stream, &info) && info.capturing;
}

static void start_group(struct tt_profiler *profiler, struct tt_group_events *events, int depth,
                        const struct tt_group_call *node, bool captured)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroupApi};
    descr.groupApi.graphCaptured = captured;
    descr.groupApi.groupDepth = depth;
    events->group_api = tt_prof_start(profiler, node->mask, &descr);
    events->profiler = events->group_api ? profiler : NULL;
    tt_prof_state(profiler, events->group_api, ncclProfilerGroupStartApiStop, NULL);
}

static void fill_coll_api(const struct tt_task *task, bool captured,
                          ncclProfilerEventDescr_v7_t *descr)
{
    descr->type = ncclProfileCollApi;
    descr->collApi.func = tt_func_name(task->func);
    descr->collApi.count = task->count;
    descr->collApi.datatype = tt_prof_type_name(task->type);
    descr->collApi.root = task->root > 0 ? task->root : 0;
    descr->collApi.stream = task->stream;
    descr->collApi.graphCaptured = captured;
    descr->collApi.userTag = task->options ? task->options->profiler_tag : 0;
}

static void fill_p2p_api(const struct tt_task *task, enum tt_func func, bool captured,
                         ncclProfilerEventDescr_v7_t *descr)
{
    descr->type = ncclProfileP2pApi;
    descr->p2pApi.func = tt_func_name(func);
    descr->p2pApi.count = task->count;
    descr->p2pApi.datatype = tt_prof_type_name(task->type);
    descr->p2pApi.stream = task->stream;
    descr->p2pApi.graphCaptured = captured;
    descr->p2pApi.userTag = task->options ? task->options->profiler_tag : 0;
}

/* ---- exchanges that are made of messages: their events are those of messages ---- */

struct tt_message_events {
    int used, room;
    void **handles; /* owned; 2 * nranks per exchange: message_at(); P2pApi, then P2p */
};

static int message_at(int peer, bool sending)
{
    return 2 * peer + sending;
}

static void **message_handles(const struct tt_plan *plan, const struct tt_group_call *node)
{
    return plan->messages->handles + node->first_message - 1;
}

/* Room for the call's handles; the first call of a group has the place of the last group's. */
static bool take_handles(struct tt_plan *plan, struct tt_group_call *node)
{
    int own = 2 * plan->comm->member.nranks;
    struct tt_message_events *messages = plan->messages;
    if (!messages) messages = plan->messages = tt_calloc(1, sizeof(*messages));
    if (!messages) return false;
    if (!plan->last) messages->used = 0;
    if (messages->used > messages->room - own) {
        int room = 2 * messages->room + own;
        void **handles = room > 0 ? tt_calloc((size_t)room, sizeof(*handles)) : NULL;
        if (!handles) return false;
        if (messages->used > 0)
            memcpy(handles, messages->handles, (size_t)messages->used * sizeof(*handles));
        free(messages->handles);
        messages->handles = handles;
        messages->room = room;
    }
    node->first_message = messages->used + 1;
    messages->used += own;
    return true;
}

static void call_exchange(struct tt_plan *plan, struct tt_group_call *node, bool captured)
{
    const struct tt_block_exchange exchange = tt_exchange_of(plan, &node->task);
    if (!take_handles(plan, node)) return; /* events less */
    void **handles = message_handles(plan, node);
    for (int k = 0; k < 2 * plan->comm->member.nranks; k++) {
        bool sending = k % 2 == 0; /* its send first */
        int peer = k / 2;
        ncclProfilerEventDescr_v7_t descr;
        handles[message_at(peer, sending)] = NULL;
        if (!tt_exchange_has(&exchange, peer, sending)) continue;
        memset(&descr, 0, sizeof(descr));
        fill_p2p_api(&node->task, sending ? TT_FUNC_SEND : TT_FUNC_RECV, captured, &descr);
        descr.parentObj = node->group_api;
        void *event = tt_prof_start(plan->comm->profiler, node->mask, &descr);
        tt_prof_stop(plan->comm->profiler, event);
        handles[message_at(peer, sending)] = event;
    }
}

void tt_events_fini(struct tt_plan *plan)
{
    /* Its group goes on without it, and cannot call the plugin any more. */
    if (plan->comm->process == getpid()) tt_prof_stop(plan->comm->profiler, plan->group_api);
    plan->group_api = NULL;
    if (plan->messages) free(plan->messages->handles);
    free(plan->messages);
    plan->messages = NULL;
}

/* ---- calls ---- */

static bool made_of_messages(struct tt_plan *plan, const struct tt_task *task)
{
    return !tt_func_is_message(task->func) && plan->comm->member.nranks > 1 &&
           tt_messages_expand(plan, task);
}

void tt_events_call(struct tt_plan *plan, struct tt_group_events *events, int depth,
                    struct tt_group_call *node)
{
    struct tt_profiler *profiler = plan->comm->profiler;
    ncclProfilerEventDescr_v7_t descr;
    node->mask = tt_prof_mask(profiler);
    node->first_message = 0;
    if (!node->mask) return;
    const bool captured = is_captured(&node->task);
    if (!events->profiler) start_group(profiler, events, depth, node, captured);
    node->group_api = events->group_api;
    if (made_of_messages(plan, &node->task)) {
        call_exchange(plan, node, captured);
        return;
    }
    memset(&descr, 0, sizeof(descr));
    if (tt_func_is_message(node->task.func)) {
        fill_p2p_api(&node->task, node->task.func, captured, &descr);
    } else {
        fill_coll_api(&node->task, captured, &descr);
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

/* For profilers Broadcast and AllGather move bytes. */
static bool counts_bytes(enum tt_func func)
{
    return func == TT_FUNC_BROADCAST || func == TT_FUNC_ALLGATHER;
}

/* What NCCL calls a symmetric kernel: the ranks work on each other's windows, between two barriers.
 * Static text, or NULL. */
static const char *symmetric_variant(const struct tt_plan *plan, const struct tt_task *task,
                                     enum tt_algo algo)
{
    static const char *const variants[TT_FUNC_COUNT_] = {
        [TT_FUNC_BROADCAST] = "Broadcast_DIRECT", [TT_FUNC_REDUCE] = "Reduce_DIRECT",
        [TT_FUNC_ALLGATHER] = "AllGather_DIRECT", [TT_FUNC_REDUCESCATTER] = "ReduceScatter_DIRECT",
        [TT_FUNC_ALLREDUCE] = "AllReduce_DIRECT", [TT_FUNC_ALLTOALL] = "AlltoAll_DIRECT",
        [TT_FUNC_SCATTER] = "Scatter_DIRECT",     [TT_FUNC_GATHER] = "Gather_DIRECT",
    };
    struct tt_registry *registry = plan->comm->registry;
    size_t in_bytes, out_bytes;
    if (algo != TT_ALGO_DIRECT || !registry) return NULL;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    bool in = in_bytes == 0 || tt_registry_is_symmetric(registry, task->in, in_bytes);
    bool out = out_bytes == 0 || tt_registry_is_symmetric(registry, task->out, out_bytes);
    return in && out ? variants[task->func] : NULL;
}

static void fill_coll(const struct tt_plan *plan, const struct tt_group_call *node, int nframes,
                      ncclProfilerEventDescr_v7_t *descr)
{
    const struct tt_task *task = &node->task;
    bool bytes = counts_bytes(task->func);
    descr->type = ncclProfileColl;
    descr->parentObj = node->api_event;
    descr->coll.seqNumber = node->number;
    descr->coll.func = tt_func_name(task->func);
    descr->coll.sendBuff = task->in;
    descr->coll.recvBuff = task->out;
    descr->coll.count = bytes ? task->count * tt_type_bytes(task->type) : task->count;
    descr->coll.datatype = tt_prof_type_name(bytes ? ncclInt8 : task->type);
    descr->coll.root = task->root > 0 ? task->root : 0;
    descr->coll.nChannels = (uint8_t)nframes;
    descr->coll.nWarps = 1;
    descr->coll.algo = tt_algo_name(node->choice.algo);
    descr->coll.proto = tt_proto_name(node->choice.proto);
    descr->coll.kernelVariant = symmetric_variant(plan, task, node->choice.algo);
    descr->coll.isSymColl = descr->coll.kernelVariant != NULL;
    descr->coll.userTag = task->options ? task->options->profiler_tag : 0;
}

struct message { /* as far as a P2p says something of it */
    enum tt_func func;
    int peer;
    const void *buff;
    void *api_event;
    int first_frame, nframes;
};

static void fill_p2p(const struct tt_task *task, const struct message *message,
                     ncclProfilerEventDescr_v7_t *descr)
{
    descr->type = ncclProfileP2p;
    descr->parentObj = message->api_event;
    descr->p2p.func = tt_func_name(message->func);
    descr->p2p.buff = (void *)(uintptr_t)message->buff; /* as the ABI has it */
    descr->p2p.datatype = tt_prof_type_name(task->type);
    descr->p2p.count = task->count;
    descr->p2p.peer = message->peer;
    descr->p2p.nChannels = (uint8_t)message->nframes; /* 0: a copy that another one has */
    descr->p2p.userTag = task->options ? task->options->profiler_tag : 0;
}

/* Group around everything; what the work carries down. */
static void open_launch(const struct tt_plan *plan, uint32_t mask, struct tt_op_events *events)
{
    struct tt_profiler *profiler = plan->comm->profiler;
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
    events->plan = plan;
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

/* Room for the calls of a captured work; without it they have no events. */
static void keep_calls(struct tt_op_events *events, const struct tt_group_call *first)
{
    size_t count = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind)
        count += node->first_message ? (size_t)node->nframes + 2 : 1; /* 2: with itself */
    if (events->captured) events->kept = tt_calloc(count, sizeof(*events->kept));
    events->work.replays = events->kept;
}

/* An event of a call begins, or (captured) is kept for the runs. Takes the replay as filled but for
 * the group. Returns the handle. */
static void *begin_call(struct tt_plan *plan, const struct tt_group_call *node,
                        struct tt_op_events *events, struct tt_prof_replay *replay)
{
    ncclProfilerEventDescr_v7_t *descr = &replay->descr;
    bool coll = descr->type == ncclProfileColl;
    replay->sequence = &plan->comm->func_seq[node->task.func];
    if (!events->captured) {
        *(coll ? &descr->coll.parentGroup : &descr->p2p.parentGroup) = events->group;
        return tt_prof_start(plan->comm->profiler, node->mask, descr);
    }
    if (events->kept && tt_prof_wants(node->mask, descr->type)) {
        plan->shares_numbers = true; /* before any run of it */
        events->kept[events->work.nreplays++] = *replay;
    }
    return NULL;
}

void tt_events_collective(struct tt_plan *plan, struct tt_group_call *node,
                          const struct tt_bound *bound, struct tt_op_events *events)
{
    struct tt_prof_replay replay = {.nframes = bound->nframes};
    if (!node->mask) return;
    node->next_same_kind = NULL;
    open_launch(plan, node->mask, events);
    keep_calls(events, node);
    node->choice = bound->choice;
    fill_coll(plan, node, bound->nframes, &replay.descr);
    events->work.phases =
        replay.descr.coll.isSymColl && tt_prof_wants(node->mask, ncclProfileKernelPhase);
    node->op_event = begin_call(plan, node, events, &replay);
    events->work.parent = node->op_event;
    events->first = node;
    start_launch(node, events);
}

static struct tt_group_call *first_marked(struct tt_group_call *first)
{
    while (first && !first->mask)
        first = first->next_same_kind;
    return first;
}

void tt_events_together(struct tt_plan *plan, struct tt_group_call *first, struct tt_work *work,
                        struct tt_op_events *events)
{
    const struct tt_group_call *marked = first_marked(first);
    int frame = 0;
    if (!marked) return;
    open_launch(plan, marked->mask, events);
    for (struct tt_group_call *node = first; node; node = node->next_same_kind) {
        struct tt_prof_replay replay = {.nframes = 1};
        fill_coll(plan, node, 1, &replay.descr);
        node->op_event = begin_call(plan, node, events, &replay);
        tt_work_set_event(work, frame++, node->op_event);
    }
    tt_work_set_events(work, &events->work);
    events->first = first;
    start_launch(marked, events);
}

static void *start_p2p(struct tt_plan *plan, const struct tt_group_call *node,
                       const struct message *message, struct tt_op_events *events)
{
    struct tt_prof_replay replay = {.first_frame = message->first_frame,
                                    .nframes = message->nframes};
    fill_p2p(&node->task, message, &replay.descr);
    void *event = begin_call(plan, node, events, &replay);
    for (int k = message->first_frame; k < message->first_frame + message->nframes; k++) {
        if (events->frames_of) {
            tt_work_set_event(events->frames_of, k, event);
        } else {
            plan->batch.frames[k].event = event;
        }
    }
    return event;
}

static void start_message(struct tt_plan *plan, struct tt_group_call *node,
                          struct tt_op_events *events)
{
    const struct tt_task *task = &node->task;
    const struct message message = {.func = task->func,
                                    .peer = task->root,
                                    .buff = task->func == TT_FUNC_SEND ? task->in : task->out,
                                    .api_event = node->api_event,
                                    .first_frame = node->first_frame,
                                    .nframes = node->nframes};
    node->op_event = start_p2p(plan, node, &message, events);
}

struct frames { /* of a message: one after the other */
    int first, count;
};

/* One message of an exchange; within the rank the copy is the receive's frame. */
static void start_part(struct tt_plan *plan, const struct tt_group_call *node, int peer,
                       struct frames frames, bool sending, struct tt_op_events *events)
{
    const struct tt_block_exchange exchange = tt_exchange_of(plan, &node->task);
    void **handle = &message_handles(plan, node)[message_at(peer, sending)];
    if (!tt_exchange_has(&exchange, peer, sending)) return;
    const struct message message = {.func = sending ? TT_FUNC_SEND : TT_FUNC_RECV,
                                    .peer = peer,
                                    .buff = sending ? tt_exchange_in(&exchange, peer)
                                                    : tt_exchange_out(&exchange, peer),
                                    .api_event = *handle,
                                    .first_frame = frames.first,
                                    .nframes = frames.count};
    *handle = start_p2p(plan, node, &message, events);
}

static void start_exchange(struct tt_plan *plan, const struct tt_group_call *node,
                           struct tt_op_events *events)
{
    const struct tt_frame *all = plan->batch.frames;
    const struct frames none = {0, 0};
    int me = plan->comm->member.rank, end = node->first_frame + node->nframes;
    struct frames frames = {node->first_frame, 0}, own = none;
    for (; frames.first < end; frames.first += frames.count) {
        const struct tt_program *program = all[frames.first].program;
        frames.count = 1;
        while (frames.first + frames.count < end &&
               all[frames.first + frames.count].channel == frames.count)
            frames.count++;
        if (program->root < 0) {
            own = frames;
        } else {
            start_part(plan, node, program->root, frames, program->func == TT_FUNC_SEND, events);
        }
    }
    start_part(plan, node, me, none, true, events);
    start_part(plan, node, me, own, false, events);
}

void tt_events_messages(struct tt_plan *plan, struct tt_group_call *first,
                        struct tt_op_events *events)
{
    const struct tt_group_call *marked = first_marked(first);
    if (!marked) return;
    open_launch(plan, marked->mask, events);
    keep_calls(events, first);
    for (struct tt_group_call *node = first; node; node = node->next_same_kind) {
        if (node->first_message) {
            start_exchange(plan, node, events);
        } else if (node->mask && tt_func_is_message(node->task.func)) {
            start_message(plan, node, events);
        }
    }
    events->first = first;
    start_launch(marked, events);
}

static void stop_exchange(const struct tt_op_events *events, const struct tt_group_call *node)
{
    const struct tt_plan *plan = events->plan;
    void **handles = message_handles(plan, node);
    for (int k = 0; k < 2 * plan->comm->member.nranks; k++)
        tt_prof_stop(events->work.profiler, handles[k]);
}

void tt_events_launched(struct tt_op_events *events)
{
    struct tt_profiler *profiler = events->work.profiler;
    tt_prof_stop(profiler, events->launch);
    for (struct tt_group_call *node = events->first; node; node = node->next_same_kind) {
        tt_prof_stop(profiler, node->op_event);
        node->op_event = NULL;
        if (node->first_message) stop_exchange(events, node);
    }
    tt_prof_stop(profiler, events->group);
    free(events->kept);
    events->kept = NULL;
}
