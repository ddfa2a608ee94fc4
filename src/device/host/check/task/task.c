/* Tasks and their operations. A stream's place may be used again by another stream; that is the
 * same task only when the host knows all that the old one did. Asks nothing but the stream's own
 * fields: memory, which is below streams, reports through here. */
#include "device/host/check/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables by key ---- */

static size_t mark_slot(const struct tt_check_marks *marks, const void *key, uint64_t number)
{
    uint64_t hash = ((uintptr_t)key ^ number << 40 ^ number >> 3) * 0x9e3779b97f4a7c15ull;
    size_t at = (size_t)(hash >> 20) & (marks->room - 1);
    while (marks->at[at].key && (marks->at[at].key != key || marks->at[at].number != number)) {
        at = (at + 1) & (marks->room - 1);
    }
    return at;
}

static bool grow_marks(struct tt_check_marks *marks)
{
    struct tt_check_marks wider = {NULL, marks->count, marks->room ? 2 * marks->room : 64};
    wider.at = calloc(wider.room, sizeof(*wider.at));
    if (!wider.at) return false;
    for (size_t i = 0; i < marks->room; i++) {
        const struct tt_check_mark *one = &marks->at[i];
        if (one->key) wider.at[mark_slot(&wider, one->key, one->number)] = *one;
    }
    free(marks->at);
    *marks = wider;
    return true;
}

struct tt_check_mark *tt_check_mark(struct tt_check_marks *marks, const void *key, uint64_t number)
{
    if (2 * marks->count >= marks->room && !grow_marks(marks)) return NULL;
    struct tt_check_mark *mark = &marks->at[mark_slot(marks, key, number)];
    if (!mark->key) {
        mark->key = key;
        mark->number = number;
        marks->count++;
    }
    return mark;
}

const struct tt_check_mark *tt_check_block_of(const struct tt_host_check *check, const void *ptr)
{
    for (size_t i = 0; i < check->blocks.room; i++) {
        const struct tt_check_mark *one = &check->blocks.at[i];
        if (one->key && (size_t)((const char *)ptr - (const char *)one->key) < one->bytes)
            return one;
    }
    return NULL;
}

const struct tt_check_mark *tt_check_freed_of(const struct tt_host_check *check, const void *ptr)
{
    const struct tt_check_mark *last = NULL;
    for (size_t i = 0; i < check->blocks.room; i++) {
        const struct tt_check_mark *one = &check->blocks.at[i];
        const size_t at = (size_t)((const char *)ptr - (const char *)one->key);
        if (one->key && at < one->gone.bytes && (!last || one->gone.turn > last->gone.turn))
            last = one;
    }
    return last;
}

/* ---- tasks ---- */

static bool add_task(struct tt_host_check *check, const struct CUstream_st *stream)
{
    if (check->ntasks == check->task_room) {
        size_t room = check->task_room ? 2 * check->task_room : 16;
        struct tt_check_task *tasks = realloc(check->tasks, room * sizeof(*tasks));
        if (!tasks) return false;
        check->tasks = tasks;
        check->task_room = room;
    }
    check->tasks[check->ntasks++] =
        (struct tt_check_task){.stream = stream, .stream_id = stream ? stream->id : 0};
    return true;
}

static bool knows_task(struct tt_host_check *check, size_t number)
{
    if (number < check->task_of_room) return true;
    size_t room = check->task_of_room ? check->task_of_room : 64;
    while (room <= number) {
        room *= 2;
    }
    size_t *task_of = realloc(check->task_of, room * sizeof(*task_of));
    if (!task_of) return false;
    memset(task_of + check->task_of_room, 0, (room - check->task_of_room) * sizeof(*task_of));
    check->task_of = task_of;
    check->task_of_room = room;
    return true;
}

size_t tt_check_task_of(struct tt_host_check *check, const struct CUstream_st *stream)
{
    size_t number = tt_host_stream_number(stream);
    if (!check->ntasks && !add_task(check, NULL)) return TT_CHECK_HOST;
    if (!knows_task(check, number) || !check->tasks) return TT_CHECK_HOST;
    size_t index = check->task_of[number];
    struct tt_check_task *task = index ? &check->tasks[index] : NULL;
    if (task && task->stream_id == stream->id) return index;
    const struct tt_check_clock *host = check->tasks[TT_CHECK_HOST].now;
    if (task && tt_check_clock_of(host, index) >= task->epoch) {
        task->stream_id = stream->id;
        return index;
    }
    if (!add_task(check, stream)) return TT_CHECK_HOST;
    return check->task_of[number] = check->ntasks - 1;
}

/* *into learns all that the task did. */
void tt_check_task_report(struct tt_host_check *check, size_t task, struct tt_check_clock **into)
{
    tt_check_clock_merge(into, check->tasks[task].now);
    tt_check_clock_raise(into, task, check->tasks[task].epoch);
}

/* ---- operations ---- */

struct tt_check_op *tt_check_op_begin(struct tt_host_check *check, const struct CUstream_st *stream,
                                      const char *name)
{
    struct tt_check_op *op = calloc(1, sizeof(*op));
    if (!op) return NULL;
    if (!check->ntasks && !add_task(check, NULL)) {
        free(op);
        return NULL;
    }
    op->refs = 1;
    if (stream) {
        op->task = tt_check_task_of(check, stream);
        op->device = stream->device;
        op->stream_id = stream->id;
        op->legacy = stream->legacy;
        op->blocking = stream->ordered;
    }
    struct tt_check_task *task = &check->tasks[op->task];
    op->epoch = ++task->epoch;
    op->before = tt_check_clock_hold(task->now);
    op->site = tt_host_thread.check.site;
    snprintf(op->name, sizeof(op->name), "%s", name);
    return op;
}

void tt_check_op_drop(struct tt_check_op *op)
{
    if (!op || --op->refs) return;
    tt_check_clock_drop(op->before);
    free(op);
}
