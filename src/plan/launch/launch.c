/* From calls to works on streams: launch cache, choice, binding, order. One communicator at a time;
 * never waits for a peer. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/device.h"
#include "plan/bind/choice.h"
#include "plan/bind/events.h"
#include "plan/bind/exchange.h"
#include "plan/launch/batch.h"
#include "plan/launch/launch_cache.h"
#include "plan/launch/messages.h"
#include "plan/plan_state.h"
#include "plugin/profiler/nvtx.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

enum { OVERLAP_BYTES = 8 << 10 }; /* of a collective that is a flat list: exec/host/eager.c */

static ncclResult_t stream_info(struct tt_plan *plan, struct CUstream_st *stream,
                                struct tt_stream_info *info)
{
    int device = tuttiHostGetDevice();
    int own = plan->comm->member.device;
    bool move = tt_stream_is_default(stream) && device != own;
    if (move) tuttiHostSetDevice(own);
    int err = tuttiHostStreamInfo(stream, info);
    if (move) tuttiHostSetDevice(device);
    if (err == 0) return ncclSuccess;
    return tt_fail(ncclUnhandledCudaError, "rank %d: stream %p is no valid stream (CUDA error %d)",
                   plan->comm->member.rank, (void *)stream, err);
}

/* A GPU refuses to run the operation there. */
static ncclResult_t check_stream(const struct tt_plan *plan, const struct tt_task *task,
                                 const struct tt_stream_info *info)
{
    const struct tt_member *member = &plan->comm->member;
    if (!plan->checks_pointers || info->device == member->device) return ncclSuccess;
    return tt_fail(ncclInvalidArgument,
                   "nccl%s: stream %p is one of device %d, the communicator is on %d",
                   tt_func_name(task->func), (void *)task->stream, info->device, member->device);
}

/* ---- the long way ---- */

static void log_choice(const struct tt_plan *plan, const struct tt_task *task,
                       const struct tt_bound *bound)
{
    const struct tt_tune_program *imported = bound->choice.program;
    if (plan->comm->member.rank != 0 || plan->comm->member.nranks == 1) return;
    if (imported) {
        const char *why = bound->choice.time_usec > 0 ? ", predicted to be fastest" : "";
        if (bound->choice.measured) why = ", measured to be faster";
        tt_info(TT_LOG_TUNING | TT_LOG_COLL,
                "%s: %zu Bytes -> program %s (%016llx) on %d channels%s", tt_func_name(task->func),
                tt_operation_bytes(task), imported->name, (unsigned long long)imported->hash,
                (int)imported->program->nchannels, why);
        return;
    }
    tt_info(TT_LOG_TUNING, "%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}",
            tt_func_name(task->func), tt_operation_bytes(task), tt_algo_name(bound->choice.algo),
            tt_proto_name(bound->choice.proto), bound->nframes - 1);
}

/* Seen by a profiler: the cache's work for that when it is idle, with events of this call; else
 * another. */
static ncclResult_t launch_seen(struct tt_plan *plan, struct tt_bound *bound,
                                const struct tt_task *task, const struct tt_work_events *events,
                                const struct tt_group_launch *launch)
{
    struct tt_work_spec spec = bound->spec;
    if (bound->watched && tt_work_rebind(bound->watched, task->in, task->out)) {
        tt_work_set_events(bound->watched, events);
        return tt_launch_work(plan, bound->watched, launch->stream, launch->allow_inline);
    }
    tt_bound_set_buffers(bound, task);
    spec.events = *events;
    if (bound->watched || !bound->valid)
        return tt_launch_submit(plan, &spec, launch->stream, launch->allow_inline);
    spec.kept = true;
    ncclResult_t rc = tt_work_create(&spec, &bound->watched);
    return rc ? rc : tt_launch_work(plan, bound->watched, launch->stream, launch->allow_inline);
}

/* Captured, or seen by a profiler: a work of its own. */
static ncclResult_t launch_watched(struct tt_plan *plan, struct tt_group_call *node,
                                   struct tt_bound *bound, const struct tt_group_launch *launch)
{
    struct tt_op_events events = {.captured = launch->captured};
    ncclResult_t rc;
    tt_events_collective(plan, node, bound, &events);
    if (launch->captured) {
        struct tt_work_spec spec = bound->spec;
        tt_bound_set_buffers(bound, &node->task);
        spec.captured = true;
        spec.graph_refs = &plan->comm->graph_refs;
        spec.events = events.work;
        rc = tt_launch_submit(plan, &spec, launch->stream, launch->allow_inline);
    } else {
        rc = launch_seen(plan, bound, &node->task, &events.work, launch);
    }
    tt_events_launched(&events);
    return rc;
}

static bool choice_equal(const struct tt_tune_choice *a, const struct tt_tune_choice *b)
{
    return a->algo == b->algo && a->proto == b->proto && a->nchannels == b->nchannels &&
           a->chunk_bytes == b->chunk_bytes && a->program == b->program;
}

/* What all ranks choose in the same way, and this rank's part of it. A message has nothing to
 * choose. */
static ncclResult_t bind_call(struct tt_plan *plan, const struct tt_group_call *node,
                              struct tt_bound *bound)
{
    if (tt_messages_single(plan, &node->task)) return tt_messages_bind(plan, &node->task, bound);
    if (plan->comm->member.nranks == 1) return tt_bind_alone(plan, node, bound);
    return tt_bind_collective(plan, node, bound);
}

/* Bind a call into its cache entry, or into a spare one while the entry's work still runs. */
static ncclResult_t bind_anew(struct tt_plan *plan, const struct tt_group_call *node,
                              const struct tt_cache_key *key, struct tt_bound **bound_out)
{
    struct tt_bound *bound = *bound_out;
    plan->misses++;
    if ((bound->work && !tt_work_idle(bound->work)) ||
        (bound->watched && !tt_work_idle(bound->watched)))
        bound = &plan->overflow;
    tt_work_destroy(bound->work);
    tt_work_destroy(bound->watched);
    bound->work = bound->watched = NULL;
    bound->valid = bound->plain = false;
    bound->looked =
        (struct tt_looked){.frees = atomic_load_explicit(plan->frees, memory_order_relaxed)};
    bound->choice = node->choice;
    ncclResult_t rc = bind_call(plan, node, bound);
    if (rc) return rc;
    tt_launch_spec(plan, &bound->spec);
    bound->spec.frames = bound->frames;
    bound->spec.nframes = bound->nframes;
    bound->key = *key;
    bound->valid = bound != &plan->overflow && key->op < ncclNumOps;
    bound->plain = bound->valid && !key->bundle_bytes && !key->nops && !key->request;
    *bound_out = bound;
    plan->looks_every_time =
        plan->comm->tuner || plan->checks_pointers || tt_nvtx_on() || tt_in_place_copies(plan, -1);
    if (!bound->valid) return ncclSuccess;
    struct tt_work_spec kept = bound->spec;
    kept.kept = true;
    return tt_work_create(&kept, &bound->work);
}

/* Whatever may refuse a call: its buffers, unless it is known, and its choice. */
static ncclResult_t make_ready(struct tt_plan *plan, struct tt_group_call *node,
                               const struct tt_group_launch *launch, bool known)
{
    const struct tt_task *task = &node->task;
    bool chooses = plan->comm->member.nranks > 1 && !tt_func_is_message(task->func);
    ncclResult_t rc = ncclSuccess;
    if (!known && !tt_messages_single(plan, task)) rc = tt_extent_check(task);
    if (!rc && chooses) rc = tt_choice_call(plan, node, launch, &node->choice);
    node->ready = !rc;
    return rc;
}

/* Choose and bind a call, or find it bound. A tuner is asked each time; what was bound for the same
 * answer is kept. */
static ncclResult_t bind(struct tt_plan *plan, struct tt_group_call *node,
                         const struct tt_group_launch *launch, struct tt_bound **bound_out)
{
    const struct tt_task *task = &node->task;
    struct tt_cache_key key = tt_cache_key(task);
    bool known = false, chooses = plan->comm->member.nranks > 1 && !tt_func_is_message(task->func);
    ncclResult_t rc = ncclSuccess;
    key.bundle_bytes = node->bundle_bytes;
    key.nops = node->nops;
    *bound_out = tt_cache_entry(plan, &key, &known);
    const uint64_t frees = atomic_load_explicit(plan->frees, memory_order_relaxed);
    if (known && (*bound_out)->looked.frees != frees)
        rc = tt_looked_again(&(*bound_out)->looked, frees, task);
    if (rc || (known && !(chooses && plan->comm->tuner))) return rc;
    if (!node->ready) rc = make_ready(plan, node, launch, known);
    if (rc || (known && choice_equal(&node->choice, &(*bound_out)->choice))) return rc;
    return bind_anew(plan, node, &key, bound_out);
}

static ncclResult_t launch_bound_call(struct tt_plan *plan, struct tt_group_call *node,
                                      const struct tt_group_launch *launch)
{
    const struct tt_task *task = &node->task;
    struct tt_bound *bound = NULL;
    ncclResult_t rc = bind(plan, node, launch, &bound);
    if (rc) return rc;
    if (node->logged && !tt_messages_single(plan, task)) log_choice(plan, task, bound);
    if (!launch->captured || !plan->comm->profiler)
        node->number = tt_count_calls(plan, task->func, 1);
    if (launch->captured || node->mask) return launch_watched(plan, node, bound, launch);
    return tt_launch_bound(plan, bound, task, launch->stream, launch->allow_inline);
}

/* ---- several streams ---- */

/* Visit each stream of the calls that differs from the launch stream once per run of calls. */
static ncclResult_t join_streams(struct tt_plan *plan, const struct tt_group_call *first,
                                 struct CUstream_st *stream, bool before)
{
    struct CUstream_st *seen = stream;
    for (const struct tt_group_call *node = first; node; node = node->next) {
        struct CUstream_st *other = node->task.stream;
        if (other == seen || other == stream) continue;
        seen = other;
        int device = tuttiHostGetDevice();
        tuttiHostSetDevice(plan->comm->member.device);
        int err = before ? tuttiHostStreamJoin(stream, other) : tuttiHostStreamJoin(other, stream);
        tuttiHostSetDevice(device);
        if (err) {
            return tt_fail(ncclUnhandledCudaError,
                           "rank %d: stream %p cannot wait for stream %p (CUDA error %d)",
                           plan->comm->member.rank, (void *)(before ? stream : other),
                           (void *)(before ? other : stream), err);
        }
    }
    return ncclSuccess;
}

/* The one event that a call of the group wants recorded. */
static ncclResult_t take_event(const struct tt_plan *plan, const struct tt_group_call *node,
                               struct tt_group_launch *launch)
{
    struct CUevent_st *event = node->task.options ? node->task.options->launch_event : NULL;
    if (!event) return ncclSuccess;
    if (launch->event) {
        return tt_fail(ncclInvalidUsage,
                       "rank %d: two calls of a group on one communicator have a "
                       "launchCompletionEvent; one may",
                       plan->comm->member.rank);
    }
    launch->event = event;
    return ncclSuccess;
}

/* Completes when what was on the stream before is done: the operation may begin then. */
static ncclResult_t record_event(const struct tt_plan *plan, struct CUevent_st *event,
                                 struct CUstream_st *stream)
{
    int device = tuttiHostGetDevice();
    tuttiHostSetDevice(plan->comm->member.device);
    int err = tuttiHostEventRecord(event, stream);
    tuttiHostSetDevice(device);
    if (!err) return ncclSuccess;
    return tt_fail(ncclUnhandledCudaError,
                   "rank %d: launchCompletionEvent %p cannot be recorded on stream %p (CUDA error "
                   "%d)",
                   plan->comm->member.rank, (void *)event, (void *)stream, err);
}

/* Launch stream, and whether all streams of the calls are captured by one graph or none is. */
static ncclResult_t survey_streams(struct tt_plan *plan, const struct tt_group_call *first,
                                   struct tt_group_launch *launch)
{
    const struct tt_group_call *seen = NULL;
    for (const struct tt_group_call *node = first; node; node = node->next) {
        launch->stream = node->task.stream;
        if (node->task.func <= TT_FUNC_ALLREDUCE) launch->ncollectives++;
        ncclResult_t rc = take_event(plan, node, launch);
        if (rc) return rc;
        if (seen && seen->task.stream == node->task.stream) continue;
        struct tt_stream_info own;
        rc = stream_info(plan, node->task.stream, &own);
        if (!rc) rc = check_stream(plan, &node->task, &own);
        if (rc) return rc;
        uint64_t capture = own.capturing ? own.capture_id : 0;
        if (seen && capture != launch->capture_id) {
            return tt_fail(ncclInvalidUsage,
                           "rank %d: the streams of a group must all be captured by the same graph "
                           "or all be uncaptured; %p and %p differ",
                           plan->comm->member.rank, (void *)seen->task.stream,
                           (void *)node->task.stream);
        }
        launch->several_streams |= seen != NULL;
        launch->capture_id = capture;
        launch->captured = own.capturing;
        launch->registers = own.capturing && tt_param_bool("NCCL_GRAPH_REGISTER");
        seen = node;
    }
    return ncclSuccess;
}

/* The cache serves a message that no profiler watches and that shares its work with no other. */
static bool is_single_message(const struct tt_plan *plan, const struct tt_group_call *first,
                              const struct tt_group_launch *launch)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): nothing is launched without a call */
    return !first->next && tt_messages_single(plan, &first->task) && !launch->captured &&
           !first->mask;
}

/* The calls that are made of sends and receives and those that are not, by next_same_kind. */
static void list_calls(struct tt_plan *plan, struct tt_group_call *first,
                       struct tt_group_launch *launch)
{
    struct tt_group_call **message = &launch->messages, **collective = &launch->collectives;
    for (struct tt_group_call *node = first; node; node = node->next) {
        struct tt_group_call ***tail =
            tt_messages_expand(plan, &node->task) ? &message : &collective;
        **tail = node;
        *tail = &node->next_same_kind;
    }
    *message = *collective = NULL;
    launch->messages = tt_messages_in_turn(plan, launch->messages);
}

ncclResult_t tt_launch_prepare(struct tt_plan *plan, struct tt_group_call *first,
                               struct tt_group_launch *launch)
{
    ncclResult_t rc = survey_streams(plan, first, launch);
    list_calls(plan, first, launch);
    if (!rc && launch->messages) rc = tt_messages_check(plan, launch->messages);
    if (!rc) rc = tt_choice_group(plan, first, launch);
    if (rc) return rc;
    struct tt_group_call *node = launch->single ? NULL : launch->collectives;
    for (; node && !rc; node = node->next_same_kind) {
        if (!node->known || plan->comm->tuner) rc = make_ready(plan, node, launch, node->known);
    }
    return rc;
}

/* Several small ones: none is chosen together with others, or reads from where its input is copied
 * to first. */
static bool may_overlap(const struct tt_plan *plan, const struct tt_group_launch *launch)
{
    const struct tt_group_call *node = launch->collectives;
    if (!node || !node->next_same_kind || launch->captured || plan->comm->tuner ||
        plan->comm->gpu || plan->comm->member.nranks == 1 || tt_in_place_copies(plan, -1))
        return false;
    while (node && !node->staged &&
           node->task.count * tt_type_bytes(node->task.type) <= OVERLAP_BYTES)
        node = node->next_same_kind;
    return !node;
}

/* Bind them all as one work that is kept; *work_out NULL when they cannot be one. */
static ncclResult_t bind_together(struct tt_plan *plan, const struct tt_group_launch *launch,
                                  struct tt_work **work_out)
{
    struct tt_group_call *first = launch->collectives, *node = first;
    struct tt_work_spec spec;
    ncclResult_t rc = ncclSuccess;
    tt_launch_spec(plan, &spec);
    if (tt_batch_refuses(plan, first)) return ncclSuccess;
    for (; node; node = node->next_same_kind)
        spec.nframes++;
    struct tt_frame *frames = tt_calloc((size_t)spec.nframes, sizeof(*frames));
    if (!frames) return tt_fail(ncclSystemError, "group: out of memory for %d calls", spec.nframes);
    spec.frames = frames;
    for (node = first; node; node = node->next_same_kind, frames++) {
        struct tt_bound *bound = NULL;
        rc = bind(plan, node, launch, &bound);
        if (rc || bound->nframes != 1) break;
        tt_bound_set_buffers(bound, &node->task);
        *frames = bound->frames[0];
        frames->begins = node != first;
        node->choice = bound->choice;
        if (node->mask) spec.events.profiler = plan->comm->profiler;
    }
    if (!node) {
        rc = tt_batch_keep(plan, first, &spec, work_out);
    } else if (!rc) {
        tt_batch_refuse(plan, first);
    }
    free(spec.frames);
    return rc;
}

/* As one work, which has their buffers. */
static ncclResult_t launch_together(struct tt_plan *plan, struct tt_work *work,
                                    const struct tt_group_launch *launch)
{
    struct tt_op_events events = {.captured = false};
    for (struct tt_group_call *node = launch->collectives; node; node = node->next_same_kind)
        node->number = tt_count_calls(plan, node->task.func, 1);
    if (plan->comm->profiler) tt_events_together(plan, launch->collectives, work, &events);
    ncclResult_t rc = tt_launch_work(plan, work, launch->stream, launch->allow_inline);
    if (events.work.profiler) tt_events_launched(&events);
    return rc;
}

/* The collectives of a group: small ones as one work, in which they overlap; others one by one. */
static ncclResult_t launch_collectives(struct tt_plan *plan, const struct tt_group_launch *launch)
{
    struct tt_group_call *node = launch->collectives;
    struct tt_work *work = NULL;
    ncclResult_t rc = ncclSuccess;
    if (may_overlap(plan, launch)) {
        work = tt_batch_find(plan, node, TT_CONN_COLL);
        if (!work) rc = bind_together(plan, launch, &work);
    }
    if (work && !rc) return launch_together(plan, work, launch);
    for (struct tt_group_call *next; node && !rc; node = next) {
        next = node->next_same_kind; /* a watched launch makes a list of its own */
        rc = tt_in_place_stage(plan, node, launch);
        if (!rc) rc = launch_bound_call(plan, node, launch);
    }
    return rc;
}

/* One batch that was found, and nothing else: such a group may come again. */
static bool is_one_batch(const struct tt_plan *plan, const struct tt_group_launch *launch)
{
    return plan->used && !(launch->messages && launch->collectives) && !launch->captured &&
           !launch->several_streams && !launch->event;
}

ncclResult_t tt_launch_prepared(struct tt_plan *plan, struct tt_group_call *first,
                                const struct tt_group_launch *launch)
{
    ncclResult_t rc = ncclSuccess;
    plan->used = NULL;
    if (launch->several_streams) rc = join_streams(plan, first, launch->stream, true);
    if (!rc && launch->event) rc = record_event(plan, launch->event, launch->stream);
    if (!rc) rc = tt_in_place_reserve(plan, first);
    if (rc) return rc;
    if (tuttiHostChecks()) tt_group_look(plan, first, launch->stream);
    rc = launch_collectives(plan, launch);
    for (struct tt_group_call *node = launch->messages; node && !rc; node = node->next_same_kind)
        rc = tt_in_place_stage(plan, node, launch);
    if (rc) return rc;
    if (is_single_message(plan, first, launch)) return launch_bound_call(plan, first, launch);
    if (launch->messages) rc = tt_messages_launch(plan, launch->messages, launch);
    if (is_one_batch(plan, launch)) tt_batch_follow(plan);
    return !rc && launch->several_streams ? join_streams(plan, first, launch->stream, false) : rc;
}

ncclResult_t tt_launch_single(struct tt_plan *plan, struct tt_group_call *node)
{
    struct tt_group_launch launch = {.allow_inline = true, .single = true};
    ncclResult_t rc = tt_launch_prepare(plan, node, &launch);
    return rc ? rc : tt_launch_prepared(plan, node, &launch);
}

/* ---- one rank ---- */

ncclResult_t tt_launch_alone(struct tt_plan *plan, struct tt_group_call *node)
{
    struct tt_group_launch launch = {.allow_inline = true};
    bool nothing = node->task.in == node->task.out && !node->reduction.pre_mul;
    if (nothing && !node->task.options) return ncclSuccess;
    ncclResult_t rc = survey_streams(plan, node, &launch);
    if (!rc && launch.event) rc = record_event(plan, launch.event, launch.stream);
    return rc || nothing ? rc : launch_bound_call(plan, node, &launch);
}

/* ---- what it would take ---- */

ncclResult_t tt_launch_estimate(struct tt_plan *plan, struct tt_group_call *first, double *usec_out)
{
    double total = 0;
    bool known = false;
    for (struct tt_group_call *node = first; node; node = node->next) {
        if (node->task.count == 0 || tt_messages_expand(plan, &node->task)) continue;
        struct tt_tune_choice choice;
        ncclResult_t rc = tt_choice_estimate(plan, &node->task, &choice);
        if (rc) return rc;
        if (choice.time_usec < 0) continue;
        total += choice.time_usec;
        known = true;
    }
    *usec_out = known ? total : -1;
    return ncclSuccess;
}
