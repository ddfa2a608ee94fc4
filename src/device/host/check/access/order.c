/* What passes knowledge of what is over between tasks: issuing, the legacy stream's rules, events,
 * joins, synchronisation. */
#include "device/host/check/state.h"

static void learn(struct tt_host_check *check, size_t task, size_t from)
{
    if (task != from) tt_check_task_report(check, from, &check->tasks[task].now);
}

void tt_check_arrive(struct tt_host_check *check, struct CUstream_st *stream)
{
    size_t task = tt_check_task_of(check, stream);
    learn(check, task, TT_CHECK_HOST);
    if (!stream->ordered) return;
    if (!stream->legacy) {
        const struct CUstream_st *legacy = tt_host_legacy_stream(stream->device);
        if (legacy) learn(check, task, tt_check_task_of(check, legacy));
        return;
    }
    const struct CUstream_st *other = tt_host_ordered_streams(stream->device);
    for (; other; other = other->next_ordered) {
        learn(check, task, tt_check_task_of(check, other));
    }
}

/* ---- events ---- */

static void clear_mark(struct tt_check_marks *marks, const void *key)
{
    struct tt_check_mark *mark = tt_check_mark(marks, key, 0);
    if (!mark) return;
    tt_check_clock_drop(mark->clock);
    mark->clock = NULL;
}

void tt_host_check_record(const struct CUevent_st *event, struct CUstream_st *stream,
                          bool elsewhere)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (stream && check) {
        clear_mark(&check->events, event);
        struct tt_check_mark *mark = tt_check_mark(&check->events, event, 0);
        if (!tt_check_is_captured(stream) && mark) {
            tt_check_arrive(check, stream);
            tt_check_task_report(check, tt_check_task_of(check, stream), &mark->clock);
            if (elsewhere) tt_check_clock_merge(&check->remote, mark->clock);
        }
    }
    tt_host_check_unlock(check);
}

void tt_host_check_wait(const struct CUevent_st *event, struct CUstream_st *stream, bool elsewhere)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (stream && check && !tt_check_is_captured(stream)) {
        const struct tt_check_mark *mark = tt_check_mark(&check->events, event, 0);
        tt_check_arrive(check, stream);
        struct tt_check_task *task = &check->tasks[tt_check_task_of(check, stream)];
        if (elsewhere) tt_check_clock_merge(&task->now, check->remote);
        if (mark && !elsewhere) tt_check_clock_merge(&task->now, mark->clock);
    }
    tt_host_check_unlock(check);
}

void tt_host_check_passed(const struct CUevent_st *event, bool elsewhere)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check && check->ntasks) {
        const struct tt_check_mark *mark = tt_check_mark(&check->events, event, 0);
        struct tt_check_task *host = &check->tasks[TT_CHECK_HOST];
        if (elsewhere) tt_check_clock_merge(&host->now, check->remote);
        if (mark && !elsewhere) {
            tt_check_clock_merge(&host->now, mark->clock);
            tt_check_clock_merge(&check->waited, mark->clock);
            if (check->fences.count) tt_check_fences_pass(check);
        }
    }
    tt_host_check_unlock(check);
}

void tt_host_check_forget(const struct CUevent_st *event)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check) clear_mark(&check->events, event);
    tt_host_check_unlock(check);
}

void tt_host_check_join(struct CUstream_st *after, struct CUstream_st *before)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check && !tt_check_is_captured(after) && !tt_check_is_captured(before)) {
        tt_check_arrive(check, before);
        tt_check_arrive(check, after);
        learn(check, tt_check_task_of(check, after), tt_check_task_of(check, before));
    }
    tt_host_check_unlock(check);
}

/* ---- the host waits ---- */

/* The host has waited for all that the task did. */
static void host_waited(struct tt_host_check *check, size_t task)
{
    learn(check, TT_CHECK_HOST, task);
    tt_check_clock_raise(&check->waited, task, check->tasks[task].epoch);
    if (check->fences.count) tt_check_fences_pass(check);
}

void tt_host_check_synced(struct CUstream_st *stream)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (stream && check && !tt_check_is_captured(stream)) {
        if (stream->legacy)
            tt_check_arrive(check, stream); /* it is over when the blocking ones are */
        host_waited(check, tt_check_task_of(check, stream));
    }
    tt_host_check_unlock(check);
}

void tt_host_check_device_synced(int device)
{
    struct tt_host_check *check = tt_host_check_lock();
    for (size_t i = 1; check && i < check->ntasks; i++) {
        if (check->tasks[i].stream->device == device) host_waited(check, i);
    }
    tt_host_check_unlock(check);
}
