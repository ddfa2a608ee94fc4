/* The profiler's events of network edges: a ProxyOp per operation and edge, a ProxyStep per
 * slot. Without a profiler no operation is ever made and nothing here is called. */
#include "base/mem.h"
#include "base/member.h"
#include "transport/net/net.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An operation comes to the network's side; NCCL's proxy reports so around the events it brings. */
static void *append_start(struct tt_profiler *profiler)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyCtrl};
    void *event = tt_prof_start(profiler, tt_prof_mask(profiler), &descr);
    tt_prof_state(profiler, event, ncclProfilerProxyCtrlAppend, NULL);
    return event;
}

static void append_stop(struct tt_profiler *profiler, void *event)
{
    ncclProfilerEventStateArgs_v7_t args;
    memset(&args, 0, sizeof(args));
    args.proxyCtrl.appendedProxyOps = 1;
    tt_prof_state(profiler, event, ncclProfilerProxyCtrlAppendEnd, &args);
    tt_prof_stop(profiler, event);
}

struct net_op *tt_net_op_create(const struct net_edge *edge, const struct tt_edge_track *track)
{
    const struct tt_transport_config *config = edge->edge.config;
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyOp, .parentObj = track->parent};
    struct net_op *op =
        tt_prof_wants(track->mask, ncclProfileProxyOp) ? tt_calloc(1, sizeof(*op)) : NULL;
    if (!op) return NULL; /* an event less */
    descr.proxyOp.pid = getpid();
    descr.proxyOp.channelId = (uint8_t)edge->edge.key.channel;
    descr.proxyOp.peer = edge->edge.key.peer;
    descr.proxyOp.nSteps = track->nsteps;
    descr.proxyOp.chunkSize = (int)config->slice_bytes;
    descr.proxyOp.isSend = edge->edge.key.sending;
    op->most = track->nsteps;
    op->profiler = track->profiler;
    op->mask = track->mask;
    atomic_store_explicit(&op->uses, 1, memory_order_relaxed);
    void *append = append_start(op->profiler);
    op->event = tt_prof_start(op->profiler, op->mask, &descr);
    append_stop(op->profiler, append);
    return op;
}

void tt_net_op_release(struct net_op *op)
{
    if (!op || atomic_fetch_sub_explicit(&op->uses, 1, memory_order_acq_rel) > 1) return;
    tt_prof_stop(op->profiler, op->event);
    free(op);
}

void tt_net_watch_start(struct net_op *first, struct net_edge *edge, uint64_t number,
                        ncclProfilerEventState_v7_t state)
{
    struct net_op *op = first; /* that whose turn it is: operations of a flat list begin together */
    while (op->next && op->most > 0 &&
           atomic_load_explicit(&op->nsteps, memory_order_relaxed) >= op->most)
        op = op->next;
    struct net_step *step = net_step_at(edge, number);
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyStep, .parentObj = op->event};
    atomic_fetch_add_explicit(&op->uses, 1, memory_order_relaxed);
    if (!atomic_exchange_explicit(&op->begun, true, memory_order_relaxed))
        tt_prof_state(op->profiler, op->event, ncclProfilerProxyOpInProgress_v4, NULL);
    descr.proxyStep.step = atomic_fetch_add_explicit(&op->nsteps, 1, memory_order_relaxed);
    step->op = op;
    step->seen = (struct tt_prof_step){.profiler = op->profiler, .mask = op->mask};
    step->seen.event = tt_prof_start(op->profiler, op->mask, &descr);
    tt_prof_state(op->profiler, step->seen.event, state, NULL);
}

void tt_net_watch_state(const struct net_step *step, ncclProfilerEventState_v7_t state,
                        size_t bytes)
{
    ncclProfilerEventStateArgs_v7_t args;
    memset(&args, 0, sizeof(args));
    args.proxyStep.transSize = bytes;
    tt_prof_state(step->op->profiler, step->seen.event, state, &args);
}

void tt_net_watch_stop(struct net_step *step)
{
    tt_prof_stop(step->op->profiler, step->seen.event);
    step->seen = (struct tt_prof_step){0};
    tt_net_op_release(step->op);
    step->op = NULL;
}
