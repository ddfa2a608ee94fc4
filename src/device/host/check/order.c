/* What passes knowledge of what is over between tasks: issuing, the legacy stream's rules, events,
 * joins, synchronisation. */
#include "state.h"

static void learn(struct host_check *check, size_t task, size_t from)
{
    if (task != from) check_task_tell(check, from, &check->tasks[task].now);
}

void check_arrive(struct host_check *check, struct CUstream_st *stream)
{
    size_t task = check_task_of(check, stream);
    learn(check, task, CHECK_HOST);
    if (!stream->ordered) return;
    if (!stream->legacy) {
        const struct CUstream_st *legacy = host_legacy_stream(stream->device);
        if (legacy) learn(check, task, check_task_of(check, legacy));
        return;
    }
    const struct CUstream_st *other = host_ordered_streams(stream->device);
    for (; other; other = other->next_ordered) {
        learn(check, task, check_task_of(check, other));
    }
}

/* ---- events ---- */

static void clear_mark(struct check_marks *marks, const void *key)
{
    struct check_mark *mark = check_mark(marks, key, 0);
    if (!mark) return;
    check_clock_drop(mark->clock);
    mark->clock = NULL;
}

void host_check_record(const struct CUevent_st *event, struct CUstream_st *stream, bool elsewhere)
{
    struct host_check *check = host_check_lock();
    if (stream && check) {
        clear_mark(&check->events, event);
        struct check_mark *mark = check_mark(&check->events, event, 0);
        if (!check_is_captured(stream) && mark) {
            check_arrive(check, stream);
            check_task_tell(check, check_task_of(check, stream), &mark->clock);
            if (elsewhere) check_clock_merge(&check->remote, mark->clock);
        }
    }
    host_check_unlock(check);
}

void host_check_wait(const struct CUevent_st *event, struct CUstream_st *stream, bool elsewhere)
{
    struct host_check *check = host_check_lock();
    if (stream && check && !check_is_captured(stream)) {
        const struct check_mark *mark = check_mark(&check->events, event, 0);
        check_arrive(check, stream);
        struct check_task *task = &check->tasks[check_task_of(check, stream)];
        if (elsewhere) check_clock_merge(&task->now, check->remote);
        if (mark && !elsewhere) check_clock_merge(&task->now, mark->clock);
    }
    host_check_unlock(check);
}

void host_check_passed(const struct CUevent_st *event, bool elsewhere)
{
    struct host_check *check = host_check_lock();
    if (check && check->ntasks) {
        const struct check_mark *mark = check_mark(&check->events, event, 0);
        struct check_task *host = &check->tasks[CHECK_HOST];
        if (elsewhere) check_clock_merge(&host->now, check->remote);
        if (mark && !elsewhere) {
            check_clock_merge(&host->now, mark->clock);
            check_clock_merge(&check->waited, mark->clock);
            if (check->fences.count) check_fences_pass(check);
        }
    }
    host_check_unlock(check);
}

void host_check_forget(const struct CUevent_st *event)
{
    struct host_check *check = host_check_lock();
    if (check) clear_mark(&check->events, event);
    host_check_unlock(check);
}

void host_check_join(struct CUstream_st *after, struct CUstream_st *before)
{
    struct host_check *check = host_check_lock();
    if (check && !check_is_captured(after) && !check_is_captured(before)) {
        check_arrive(check, before);
        check_arrive(check, after);
        learn(check, check_task_of(check, after), check_task_of(check, before));
    }
    host_check_unlock(check);
}

/* ---- the host waits ---- */

void check_waited(struct host_check *check, size_t task)
{
    learn(check, CHECK_HOST, task);
    check_clock_raise(&check->waited, task, check->tasks[task].epoch);
    if (check->fences.count) check_fences_pass(check);
}

void host_check_synced(struct CUstream_st *stream)
{
    struct host_check *check = host_check_lock();
    if (stream && check && !check_is_captured(stream)) {
        if (stream->legacy) check_arrive(check, stream); /* it is over when the blocking ones are */
        check_waited(check, check_task_of(check, stream));
    }
    host_check_unlock(check);
}

void host_check_device_synced(int device)
{
    struct host_check *check = host_check_lock();
    for (size_t i = 1; check && i < check->ntasks; i++) {
        if (check->tasks[i].stream->device == device) check_waited(check, i);
    }
    host_check_unlock(check);
}
