/* The way in for operations. A call like one that was bound before is launched again; any other is
 * checked, logged, counted, and launched or appended to the thread's group. */
#include "base/error.h"
#include "base/log.h"
#include "device/device.h"
#include "plan/bind/events.h"
#include "plan/bind/operator.h"
#include "plan/group/group.h"
#include "plan/launch/batch.h"
#include "plan/launch/launch_cache.h"
#include "plugin/profiler/nvtx.h"
#include "plugin/profiler/profiler.h"

/* ---- known calls ---- */

static bool is_known(struct tt_plan *plan, const struct tt_task *task)
{
    const struct tt_cache_key key = tt_cache_key(task);
    bool known = false;
    const struct tt_frame *frame = &tt_cache_entry(plan, &key, &known)->frames[0];
    return known && !plan->checks_pointers && (task->in || !frame->in_bytes) &&
           (task->out || !frame->out_bytes);
}

/* What a call with options is bound to. NULL: nothing, or the call has no options. */
static __attribute__((noinline)) struct tt_bound *find_with_request(struct tt_plan *plan,
                                                                    const struct tt_task *task)
{
    bool known = false;
    if (!task->options) return NULL;
    const struct tt_cache_key key = tt_cache_key(task);
    struct tt_bound *bound = tt_cache_entry(plan, &key, &known);
    return known && !task->options->launch_event ? bound : NULL;
}

/* What is bound has no work, or its work runs: another one from the same frames. */
static __attribute__((noinline)) ncclResult_t
create_another(struct tt_bound *bound, const struct tt_task *task, struct tt_work **work_out)
{
    tt_bound_set_buffers(bound, task);
    return tt_work_create(&bound->spec, work_out);
}

/* The same for a known call that a profiler sees: its own work, with the events of this call. */
static __attribute__((noinline)) bool launch_seen_again(struct tt_plan *plan,
                                                        struct tt_bound *bound,
                                                        const struct tt_task *task,
                                                        ncclResult_t *rc_out)
{
    struct tt_stream_info info;
    struct tt_group_events group = {0};
    struct tt_op_events events = {.captured = false};
    if (!bound->watched ||
        bound->looked.frees != atomic_load_explicit(plan->frees, memory_order_relaxed) ||
        tuttiHostStreamInfo(task->stream, &info) || info.capturing ||
        !tt_work_rebind(bound->watched, task->in, task->out))
        return false;
    struct tt_group_call node = {.task = *task};
    plan->issued++;
    tt_events_call(plan, &group, 1, &node);
    tt_events_group_ends(&group);
    node.number = tt_count_calls(plan, task->func, 1);
    tt_events_collective(plan, &node, bound, &events);
    tt_work_set_events(bound->watched, &events.work);
    *rc_out = tt_launch_work(plan, bound->watched, task->stream, true);
    tt_events_launched(&events);
    tt_events_group_over(&group);
    return true;
}

/* Put a known call on its stream again. False when it has to be looked at: nothing was done. hot */
/* NOLINTNEXTLINE(readability-function-cognitive-complexity): questions, one after the other */
static bool launch_again(struct tt_plan *plan, const struct tt_task *task, ncclResult_t *rc_out)
{
    if (tt_log_on(TT_LOG_INFO, TT_LOG_COLL | TT_LOG_CALL | TT_LOG_TUNING)) return false;
    struct tt_bound *bound =
        &plan->cache[tt_cache_index(task->count, (uint32_t)task->func, (uint32_t)task->type,
                                    (uint32_t)task->op, (uint32_t)task->root)];
    const struct tt_cache_key *key = &bound->key;
    bool same = bound->plain && task->count == key->count && (int32_t)task->func == key->func &&
                (int32_t)task->type == key->type && (int32_t)task->op == key->op &&
                task->root == key->root && !task->options;
    if (!same) bound = find_with_request(plan, task);
    if (!bound || plan->looks_every_time) return false;
    if (task->in == task->out && task->func == TT_FUNC_ALLTOALL) return false; /* in_place.c */
    const struct tt_frame *frame = &bound->frames[0];
    if ((!task->in && frame->in_bytes) || (!task->out && frame->out_bytes)) return false;
    if (tt_stream_is_default(task->stream) && tuttiHostGetDevice() != plan->comm->member.device)
        return false;
    if (tt_prof_mask(plan->comm->profiler)) return launch_seen_again(plan, bound, task, rc_out);
    const uint64_t frees = atomic_load_explicit(plan->frees, memory_order_relaxed);
    const bool looked = bound->looked.frees == frees;
    *rc_out = looked ? ncclSuccess : tt_looked_again(&bound->looked, frees, task);
    if (*rc_out) return true;
    struct tt_work *work = bound->work;
    if (!work || !tt_work_rebind(work, task->in, task->out))
        *rc_out = create_another(bound, task, &work);
    if (!*rc_out && tt_exec_launch(work, task->stream, rc_out) > TT_CLAIM_BUSY) {
        if (work != bound->work) tt_work_destroy(work);
        return false;
    }
    plan->issued++;
    tt_count_calls(plan, task->func, 1);
    return true;
}

/* ---- others ---- */

/* A single call that has to be checked: a group of one, without the group. */
static ncclResult_t launch_single(struct tt_plan *plan, const struct tt_task *task, bool logged)
{
    struct tt_group_call node = {.task = *task, .logged = logged};
    struct tt_group_events events = {0};
    ncclResult_t rc = tt_operator_reduction(plan, task, &node.reduction);
    if (!rc && tt_global_check_wanted(plan)) rc = tt_global_check_call(plan, task);
    if (rc) return rc;
    if (plan->comm->member.nranks == 1 && !tt_func_is_message(task->func))
        return tt_launch_alone(plan, &node);
    if (plan->comm->profiler) {
        tt_events_call(plan, &events, 1, &node);
        tt_events_group_ends(&events);
    }
    rc = tt_launch_single(plan, &node);
    tt_events_group_over(&events);
    return rc;
}

/* The call as a range for a tool; returns true. */
static __attribute__((noinline, cold)) bool begin_range(const struct tt_plan *plan,
                                                        const struct tt_task *task)
{
    const bool rooted = task->root >= 0;
    const bool reduces = task->func == TT_FUNC_REDUCE || task->func == TT_FUNC_REDUCESCATTER ||
                         task->func == TT_FUNC_ALLREDUCE;
    struct tt_nvtx_call call = {.comm = plan->comm->member.comm_id,
                                .bytes = (size_t)tt_task_bytes(task),
                                .root = task->root,
                                .op = (int32_t)task->op,
                                .kind = reduces ? TT_NVTX_REDUCE : TT_NVTX_MOVE};
    if (rooted) call.kind = reduces ? TT_NVTX_ROOTED_REDUCE : TT_NVTX_ROOTED;
    if (tt_func_is_message(task->func)) call.kind = TT_NVTX_MESSAGE;
    return tt_nvtx_open_call(tt_func_name(task->func), &call).open;
}

/* Check, log, count, and append or launch. */
static __attribute__((noinline)) ncclResult_t add_looking(struct tt_plan *plan,
                                                          const struct tt_task *task, bool now)
{
    struct tt_nvtx_range range
        __attribute__((cleanup(tt_nvtx_end))) = {tt_nvtx_on() && begin_range(plan, task), NULL};
    (void)range;
    bool logged = tt_log_on(TT_LOG_INFO, TT_LOG_COLL | TT_LOG_CALL | TT_LOG_TUNING);
    bool known = is_known(plan, task);
    ncclResult_t rc = known ? ncclSuccess : tt_task_check(task);
    if (rc) return rc;
    if (logged) tt_task_log(task);
    if (task->count == 0 && !tt_func_is_message(task->func)) {
        if (!tt_global_check_wanted(plan)) return ncclSuccess;
        return now ? tt_global_check_call(plan, task) : tt_group_append(task, known, logged);
    }
    plan->issued++;
    return now ? launch_single(plan, task, logged) : tt_group_append(task, known, logged);
}

ncclResult_t tt_plan_failed(struct tt_comm *comm, ncclResult_t rc)
{
    char why[TT_WHY_BYTES];
    if (rc == ncclSuccess || rc == ncclInProgress) return rc;
    tt_error_take(why, sizeof(why));
    if (rc == ncclInvalidArgument || rc == ncclInvalidUsage) tt_refusal_keep(comm, why);
    if (comm->config.blocking == 0) tt_comm_show(comm, rc, why);
    tt_group_refuse(rc, why);
    return rc;
}

/* The plan cannot be entered: say why. Another thread may free the communicator at any moment. */
static __attribute__((noinline)) ncclResult_t refused(const struct tt_task *task, const char *name)
{
    struct tt_plan *plan = task->comm->plan;
    if (!tt_plan_pin(plan)) return tt_group_error(tt_comm_ended(task->comm, name));
    ncclResult_t rc = tt_comm_check(task->comm, name);
    rc = rc ? tt_group_error(rc) : tt_plan_failed(task->comm, tt_plan_contended(plan));
    tt_plan_unpin(plan);
    return rc;
}

/* The plan is entered before anything of the communicator is read: from then on a thread that
 * aborts it waits. */
static __attribute__((noinline)) ncclResult_t add(const struct tt_task *task, const char *name,
                                                  struct tt_group *group)
{
    struct tt_comm *comm = task->comm;
    if (!comm || comm->magic != TT_COMM_MAGIC) return tt_group_error(tt_comm_check(comm, name));
    struct tt_plan *plan = comm->plan;
    if (!tt_plan_enter(plan)) return refused(task, name);
    ncclResult_t rc = tt_comm_is_usual(comm) ? ncclSuccess : tt_comm_check(comm, name);
    if (rc) {
        tt_group_error(rc);
    } else {
        bool now = !group || group->depth == 0 ||
                   (comm->member.nranks == 1 && !tt_func_is_message(task->func));
        if (!(now ? launch_again(plan, task, &rc) : tt_group_begin_repeating(group, task)))
            rc = add_looking(plan, task, now);
        if (rc) tt_plan_failed(comm, rc);
    }
    tt_plan_exit(plan);
    return rc;
}

/* Nothing says how the group goes on: its first call may. */
static __attribute__((noinline)) ncclResult_t add_first(const struct tt_task *task,
                                                        const char *name, struct tt_group *group)
{
    return tt_group_begin_same(group, task) ? ncclSuccess : add(task, name, group);
}

/* The group may go on as an earlier one did, but for buffers. */
static __attribute__((noinline)) ncclResult_t
add_elsewhere(const struct tt_task *task, const char *name, struct tt_group *group)
{
    struct tt_plan *plan = group->repeats;
    if (!plan || tt_plan_closed(plan) || task->comm != group->repeat_comm ||
        task->stream != group->repeat_stream ||
        !tt_batch_accepts(plan->repeat, (int)(group->next_call - plan->repeat->calls), task))
        return add(task, name, group);
    group->next_call++;
    return ncclSuccess;
}

/* In a group that is like an earlier one so far: the communicator is not looked at before its end.
 */
static inline ncclResult_t add_next(const struct tt_task *task, const char *name,
                                    struct tt_group *group)
{
    const bool same = task->comm == group->repeat_comm && task->stream == group->repeat_stream &&
                      !tt_plan_closed(group->repeats) && tt_batch_same(group->next_call, task);
    if (!same) return add_elsewhere(task, name, group);
    group->next_call++;
    return ncclSuccess;
}

/* hot */
ncclResult_t tt_plan_add(const struct tt_task *task, const char *name)
{
    struct tt_group *group = tt_own_group;
    if (group && group->next_call != group->end_call) return add_next(task, name, group);
    if (!group || group->depth == 0) return add(task, name, group);
    return add_first(task, name, group);
}
