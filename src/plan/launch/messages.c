/* Sends, receives, and the exchanges that are made of them (when the ranks cannot address each
 * other): all of one group become one work with a frame per message. Messages to one peer follow
 * each other, messages to different peers go on independently.
 *
 * Where the network has several devices, a large message goes in a part over each: a channel and a
 * frame per part. Both ends compute the same parts. */
#include "plan/launch/messages.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/bind/events.h"
#include "plan/bind/exchange.h"
#include "plan/launch/batch.h"
#include "plan/launch/launch_cache.h"
#include "plan/plan_state.h"
#include "transport/transport.h"

#include <string.h>

struct message {
    const struct tt_task *task; /* the call that it belongs to; borrowed */
    bool sending;
    int peer;
    const char *in; /* of a send or a copy */
    char *out;      /* of a receive or a copy */
    size_t bytes;
};

/* ---- parts ---- */

#define PART_BYTES ((size_t)512 << 10) /* at least: as many as one message of a network edge */
enum { PART_GRAIN = 4096, FEW_CALLS = 32, RUNS = 32 };

/* Devices that one message may use, equal on all ranks. */
static int device_count(const struct tt_plan *plan)
{
    const struct tt_comm *comm = plan->comm;
    int ndevs = comm->tune.ndevs, nchannels = comm->edge_channels;
    return ndevs < 2 || nchannels < 2 ? 1 : ndevs < nchannels ? ndevs : nchannels;
}

static int part_count(const struct tt_plan *plan, int peer, size_t bytes)
{
    int most = device_count(plan);
    if (most == 1 || bytes < 2 * PART_BYTES || peer == plan->comm->member.rank) return 1;
    if (!tt_transport_over_net(plan->comm->transport, peer)) return 1;
    return (int)tt_min_size(bytes / PART_BYTES, (size_t)most);
}

static struct tt_extent part_at(size_t bytes, int nparts, int k)
{
    size_t share = tt_round_up(bytes / (size_t)nparts, PART_GRAIN);
    size_t first = tt_min_size((size_t)k * share, bytes);
    return (struct tt_extent){first,
                              k + 1 < nparts ? tt_min_size(share, bytes - first) : bytes - first};
}

/* ---- frames ---- */

static ncclResult_t frame_begin(struct tt_plan *plan, struct tt_bound *batch, size_t bytes,
                                struct tt_frame **frame_out)
{
    if (batch->nframes >= batch->capacity) {
        return tt_fail(ncclInternalError, "messages: more frames than counted");
    }
    struct tt_frame *frame = &batch->frames[batch->nframes];
    *frame = (struct tt_frame){.reduction = {.type = ncclInt8, .op = ncclSum},
                               .elem_bytes = 1,
                               .channel = 0,
                               .conn = TT_CONN_P2P};
    const uint64_t words[] = {TT_FUNC_SEND, bytes};
    frame->fingerprint = tt_call_fingerprint(plan, words, (int)TT_LEN(words));
    *frame_out = frame;
    return ncclSuccess;
}

/* A frame of `batch` for a part of the message, not yet counted. */
static ncclResult_t bind_part(struct tt_plan *plan, struct tt_bound *batch,
                              const struct message *message, int channel, struct tt_extent part)
{
    struct tt_frame *frame = NULL;
    ncclResult_t rc = frame_begin(plan, batch, message->bytes, &frame);
    if (rc) return rc;
    const struct tt_tune_choice choice = {.algo = TT_ALGO_P2P, .proto = TT_PROTO_SIMPLE};
    rc = tt_program_get(plan, &choice, message->sending ? TT_FUNC_SEND : TT_FUNC_RECV,
                        message->peer, 0, frame);
    if (rc) return rc;
    frame->channel = channel;
    frame->in = message->in;
    frame->out = message->out;
    frame->call = tt_call_of(message->task, &choice);
    frame->in_bytes = message->sending ? message->bytes : 0;
    frame->out_bytes = message->sending ? 0 : message->bytes;
    tt_geometry_init(&frame->geometry, frame->program, message->bytes, part, SIZE_MAX, 64);
    return tt_bind_edges(plan, frame);
}

static ncclResult_t add_message(struct tt_plan *plan, const struct message *message)
{
    struct tt_bound *batch = &plan->batch;
    const int nparts = part_count(plan, message->peer, message->bytes);
    int *last =
        &plan->chain[(2 * message->peer + message->sending) * device_count(plan)]; /* by channel */
    for (int k = 0; k < nparts; k++) {
        ncclResult_t rc = bind_part(plan, batch, message, k, part_at(message->bytes, nparts, k));
        if (rc) return rc;
        batch->frames[batch->nframes].after = last[k];
        last[k] = ++batch->nframes;
    }
    return ncclSuccess;
}

static ncclResult_t add_copy(struct tt_plan *plan, const struct message *message)
{
    if (message->in == message->out || message->bytes == 0) return ncclSuccess;
    struct tt_frame *frame = NULL;
    ncclResult_t rc = frame_begin(plan, &plan->batch, message->bytes, &frame);
    if (rc) return rc;
    frame->program = plan->local;
    frame->call.func = TT_FUNC_SEND;
    frame->in = message->in;
    frame->out = message->out;
    frame->in_bytes = frame->out_bytes = message->bytes;
    tt_geometry_init(&frame->geometry, frame->program, message->bytes,
                     (struct tt_extent){0, message->bytes}, SIZE_MAX, 64);
    plan->batch.nframes++;
    return ncclSuccess;
}

/* ---- in turn ---- */

/* Equal at both ends of a message; exchanges have an order of their own. */
static int turn_of(const struct tt_plan *plan, const struct tt_group_call *node)
{
    const struct tt_task *task = &node->task;
    int n = plan->comm->member.nranks, rank = plan->comm->member.rank;
    if (!tt_func_is_message(task->func)) return 0;
    return (task->func == TT_FUNC_SEND ? task->root - rank + n : rank - task->root + n) % n;
}

/* What has one turn keeps its order: such messages to one peer must. */
static struct tt_group_call *merge(const struct tt_plan *plan, struct tt_group_call *a,
                                   struct tt_group_call *b)
{
    struct tt_group_call *first = NULL, **tail = &first;
    while (a && b) {
        struct tt_group_call **least = turn_of(plan, b) < turn_of(plan, a) ? &b : &a;
        *tail = *least;
        tail = &(*least)->next_same_kind;
        *least = *tail;
    }
    *tail = a ? a : b;
    return first;
}

/* runs[k] has 2^k calls, or none; those of the higher ones came earlier. */
struct tt_group_call *tt_messages_in_turn(const struct tt_plan *plan, struct tt_group_call *first)
{
    struct tt_group_call *runs[RUNS] = {NULL}, *sorted = NULL;
    int ncalls = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind)
        ncalls++;
    if (ncalls < FEW_CALLS || !tt_transport_expects(plan->comm->transport)) return first;
    while (first) {
        struct tt_group_call *run = first;
        first = first->next_same_kind;
        run->next_same_kind = NULL;
        int k = 0;
        for (; k < RUNS - 1 && runs[k]; k++) {
            run = merge(plan, runs[k], run);
            runs[k] = NULL;
        }
        runs[k] = runs[k] ? merge(plan, runs[k], run) : run;
    }
    for (int k = 0; k < RUNS; k++)
        sorted = merge(plan, runs[k], sorted);
    return sorted;
}

/* ---- messages to oneself ---- */

static ncclResult_t too_large(const struct tt_own_pair *pair, int rank)
{
    const struct tt_tune_choice none = {0};
    const struct tt_call send = tt_call_of(&pair->send->task, &none),
                         recv = tt_call_of(&pair->recv->task, &none);
    char texts[2][TT_CALL_BYTES];
    tt_call_text(&send, false, texts[0]);
    tt_call_text(&recv, false, texts[1]);
    return tt_fail(ncclInvalidUsage, "rank %d: %s is larger than %s, which receives it", rank,
                   texts[0], texts[1]);
}

/* The k-th send to oneself goes to the k-th receive from oneself of the same group. */
ncclResult_t tt_messages_check(const struct tt_plan *plan, struct tt_group_call *first)
{
    int rank = plan->comm->member.rank;
    struct tt_own_pair pair = tt_own_pair_first(first, rank);
    for (; pair.send && pair.recv; pair = tt_own_pair_next(&pair, rank)) {
        size_t bytes, room, none;
        tt_buffer_bytes(&pair.send->task, &bytes, &none);
        tt_buffer_bytes(&pair.recv->task, &none, &room);
        if (bytes > room) return too_large(&pair, rank);
    }
    if (!pair.send && !pair.recv) return ncclSuccess;
    return tt_fail(ncclInvalidUsage, "rank %d: a %s itself needs the %s itself in the same group",
                   rank, pair.send ? "send to" : "receive from",
                   pair.send ? "receive from" : "send to");
}

/* The copy of each pair is the receive's frame. */
static ncclResult_t add_own(struct tt_plan *plan, struct tt_group_call *first)
{
    int rank = plan->comm->member.rank;
    struct tt_own_pair pair = tt_own_pair_first(first, rank);
    ncclResult_t rc = ncclSuccess;
    for (; pair.send && !rc; pair = tt_own_pair_next(&pair, rank)) {
        struct message message = {
            .peer = rank, .in = pair.send->task.in, .out = pair.recv->task.out};
        size_t none;
        tt_buffer_bytes(&pair.send->task, &message.bytes, &none);
        pair.recv->first_frame = plan->batch.nframes;
        rc = add_copy(plan, &message);
        pair.recv->nframes = plan->batch.nframes - pair.recv->first_frame;
    }
    return rc;
}

/* ---- exchanges ---- */

/* All ranks count an exchange as one operation, as they do what is one program, so that they learn
 * of other calls. */
static void count_exchange(struct tt_plan *plan, const struct tt_task *task, int first)
{
    const uint64_t words[] = {(uint64_t)task->func, task->count, (uint64_t)task->type,
                              (uint64_t)(unsigned)task->root};
    struct tt_frame *frame = &plan->batch.frames[first];
    if (plan->batch.nframes == first) return;
    const struct tt_tune_choice choice = {.algo = TT_ALGO_P2P, .proto = TT_PROTO_SIMPLE};
    frame->fingerprint = tt_call_fingerprint(plan, words, (int)TT_LEN(words));
    frame->call = tt_call_of(task, &choice);
    frame->begins = true;
}

/* Own block first, then towards the next ranks and from the previous ones, so that no rank is
 * the first of all. */
static ncclResult_t add_exchange(struct tt_plan *plan, const struct tt_task *task)
{
    const int n = plan->comm->member.nranks;
    const int me = plan->comm->member.rank;
    const int first = plan->batch.nframes;
    const struct tt_block_exchange exchange = tt_exchange_of(plan, task);
    ncclResult_t rc = ncclSuccess;
    if (exchange.to_all || exchange.from_all) {
        const struct message own = {.task = task,
                                    .peer = me,
                                    .in = tt_exchange_in(&exchange, me),
                                    .out = tt_exchange_out(&exchange, me),
                                    .bytes = exchange.bytes};
        rc = add_copy(plan, &own);
    }
    for (int k = 1; k < n && !rc; k++) {
        const int to = (me + k) % n;
        const int from = (me - k + n) % n;
        const struct message out = {.task = task,
                                    .sending = true,
                                    .peer = to,
                                    .in = tt_exchange_in(&exchange, to),
                                    .bytes = exchange.bytes};
        const struct message in = {.task = task,
                                   .peer = from,
                                   .out = tt_exchange_out(&exchange, from),
                                   .bytes = exchange.bytes};
        if (tt_exchange_has(&exchange, to, true)) rc = add_message(plan, &out);
        if (!rc && tt_exchange_has(&exchange, from, false)) rc = add_message(plan, &in);
    }
    if (!rc) count_exchange(plan, task, first);
    return rc;
}

static struct message message_of(const struct tt_task *task)
{
    return (struct message){.task = task,
                            .sending = task->func == TT_FUNC_SEND,
                            .peer = task->root,
                            .in = task->in,
                            .out = task->out,
                            .bytes = task->count * tt_type_bytes(task->type)};
}

static ncclResult_t add_call(struct tt_plan *plan, const struct tt_group_call *node)
{
    const struct tt_task *task = &node->task;
    if (!tt_func_is_message(task->func)) return add_exchange(plan, task);
    if (task->root == plan->comm->member.rank) return ncclSuccess; /* add_own() */
    const struct message message = message_of(task);
    return add_message(plan, &message);
}

bool tt_messages_single(const struct tt_plan *plan, const struct tt_task *task)
{
    return tt_func_is_message(task->func) && task->root != plan->comm->member.rank;
}

ncclResult_t tt_messages_bind(struct tt_plan *plan, const struct tt_task *task,
                              struct tt_bound *bound)
{
    const struct message message = message_of(task);
    const int nparts = part_count(plan, message.peer, message.bytes);
    bound->nframes = 0;
    ncclResult_t rc = tt_bound_reserve(bound, nparts);
    for (int k = 0; k < nparts && !rc; k++) {
        rc = bind_part(plan, bound, &message, k, part_at(message.bytes, nparts, k));
        if (!rc) bound->nframes++;
    }
    return rc;
}

/* ---- the batch ---- */

static ncclResult_t batch_begin(struct tt_plan *plan, const struct tt_group_call *first)
{
    size_t n = (size_t)plan->comm->member.nranks, ndevs = (size_t)device_count(plan), frames = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind) {
        frames += ndevs * (tt_func_is_message(node->task.func) ? 1 : 2 * n);
    }
    plan->batch.nframes = 0;
    if (!plan->chain) plan->chain = tt_calloc(2 * n * ndevs, sizeof(int));
    if (!plan->chain) return tt_fail(ncclSystemError, "messages: out of memory");
    memset(plan->chain, 0, 2 * n * ndevs * sizeof(int));
    if (frames > INT32_MAX) {
        return tt_fail(ncclInvalidUsage, "messages: %zu in one group are too many", frames);
    }
    return tt_bound_reserve(&plan->batch, (int)frames);
}

/* Each call is one frame, so that the work can be kept for the same group. */
static bool is_whole(const struct tt_plan *plan, const struct tt_group_call *first)
{
    bool whole = true;
    if (device_count(plan) == 1) return true;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind) {
        const struct message message = message_of(&node->task);
        if (tt_func_is_message(node->task.func))
            whole = whole && part_count(plan, message.peer, message.bytes) == 1;
    }
    return whole;
}

/* A group whose work is kept, with the events of these calls. */
static ncclResult_t launch_kept(struct tt_plan *plan, struct tt_group_call *first,
                                struct tt_work *kept, const struct tt_group_launch *launch)
{
    struct tt_op_events events = {.frames_of = kept};
    int frame = 0, rank = plan->comm->member.rank;
    for (struct tt_group_call *node = first; node; node = node->next_same_kind) {
        tt_count_calls(plan, node->task.func, 1);
        node->nframes = node->task.root != rank;
        node->first_frame = frame;
        frame += node->nframes;
    }
    struct tt_own_pair pair = tt_own_pair_first(first, rank); /* as add_own() made them */
    for (; pair.send; pair = tt_own_pair_next(&pair, rank)) {
        size_t bytes, none;
        tt_buffer_bytes(&pair.send->task, &bytes, &none);
        pair.recv->first_frame = frame;
        pair.recv->nframes = bytes > 0;
        frame += pair.recv->nframes;
    }
    tt_events_messages(plan, first, &events);
    if (events.work.profiler) tt_work_set_events(kept, &events.work);
    ncclResult_t rc = tt_launch_work(plan, kept, launch->stream, launch->allow_inline);
    if (events.work.profiler) tt_events_launched(&events);
    return rc;
}

static ncclResult_t add_calls(struct tt_plan *plan, struct tt_group_call *first,
                              const struct tt_group_launch *launch)
{
    ncclResult_t rc = batch_begin(plan, first);
    for (struct tt_group_call *node = first; node && !rc; node = node->next_same_kind) {
        node->first_frame = plan->batch.nframes;
        rc = add_call(plan, node);
        node->nframes = plan->batch.nframes - node->first_frame;
        if (!launch->captured || !plan->comm->profiler)
            node->number = tt_count_calls(plan, node->task.func, 1);
    }
    return rc ? rc : add_own(plan, first);
}

ncclResult_t tt_messages_launch(struct tt_plan *plan, struct tt_group_call *first,
                                const struct tt_group_launch *launch)
{
    const bool keeps = !launch->captured && is_whole(plan, first);
    struct tt_work *kept = keeps ? tt_batch_find(plan, first, TT_CONN_P2P) : NULL;
    if (kept && plan->used->watched) return launch_kept(plan, first, kept, launch);
    if (kept) {
        for (const struct tt_group_call *node = first; node; node = node->next_same_kind)
            tt_count_calls(plan, node->task.func, 1);
        return tt_launch_work(plan, kept, launch->stream, launch->allow_inline);
    }
    ncclResult_t rc = add_calls(plan, first, launch);
    if (rc || plan->batch.nframes == 0) return rc;
    struct tt_work_spec spec;
    tt_launch_spec(plan, &spec);
    spec.frames = plan->batch.frames;
    spec.nframes = plan->batch.nframes;
    spec.captured = launch->captured;
    if (launch->captured) spec.graph_refs = &plan->comm->graph_refs;
    struct tt_op_events events = {.captured = launch->captured};
    if (plan->comm->profiler) tt_events_messages(plan, first, &events);
    spec.events = events.work;
    if (keeps) rc = tt_batch_keep(plan, first, &spec, &kept);
    if (kept) rc = tt_launch_work(plan, kept, launch->stream, launch->allow_inline);
    if (!rc && !kept) rc = tt_launch_submit(plan, &spec, launch->stream, launch->allow_inline);
    if (plan->comm->profiler) tt_events_launched(&events);
    return rc;
}
