/* What operations touch is put into the shadow, node by node, with what they pass on and learn. */
#include "device/host/check/access.h"
#include "device/host/check/shadow/shadow.h"
#include "device/host/host.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_sync(const struct tt_check_touch *touch)
{
    return (touch->kind == TT_CHECK_TOUCH_COLLECTIVE && touch->role != TT_SYNC_NONE) ||
           touch->kind == TT_CHECK_TOUCH_SEND || touch->kind == TT_CHECK_TOUCH_RECEIVE;
}

static void synchronize(struct tt_host_check *check, size_t task,
                        const struct tt_check_touch *touch)
{
    if (touch->kind == TT_CHECK_TOUCH_COLLECTIVE) {
        tt_check_collective(check, task, touch);
    } else {
        tt_check_pass_message(check, task, touch);
    }
}

/* What the operation passes on to others, or learns, when its accesses are known. */
static void pass_on(struct tt_host_check *check, struct tt_check_op *op,
                    const struct tt_check_touch *touch)
{
    switch (touch->kind) {
    case TT_CHECK_TOUCH_READ: tt_check_see_words(check, op->task, touch); break;
    case TT_CHECK_TOUCH_WRITE: tt_check_cover_words(check, op->task, touch); break;
    case TT_CHECK_TOUCH_WORD_WAIT: tt_check_await_word(check, op->task, &touch->word); break;
    case TT_CHECK_TOUCH_WORD_WRITE: tt_check_write_word(check, op->task, &touch->word); break;
    case TT_CHECK_TOUCH_REPORT: tt_check_report_event(check, op->task, touch); break;
    case TT_CHECK_TOUCH_KERNEL: tt_check_launch_kernel(check, op, touch->ptr, touch->node); break;
    case TT_CHECK_TOUCH_COLLECTIVE: tt_check_report_member(check, op->task, touch->ptr); break;
    case TT_CHECK_TOUCH_END: /* until a launch allocates it again */
        tt_check_reset(check, touch->ptr, touch->bytes, TT_CHECK_FREED, op);
        break;
    default: break;
    }
}

/* Copies and fills have been refused before they come here. */
static void look_at_end(struct tt_host_check *check, const struct tt_check_op *op,
                        const struct tt_check_touch *touch)
{
    struct tt_pointer found;
    if (touch->kind > TT_CHECK_TOUCH_WRITE || tuttiHostPointer(touch->ptr, &found) || !found.base)
        return;
    size_t room = found.bytes - (size_t)((const char *)touch->ptr - found.base);
    const struct tt_check_finding finding = {.kind = TT_CHECK_OUTSIDE,
                                             .second = op,
                                             .second_writes = touch->kind == TT_CHECK_TOUCH_WRITE,
                                             .ptr = touch->ptr,
                                             .bytes = touch->bytes};
    if (touch->bytes > room) tt_check_report(check, &finding);
}

/* What the task learns from events before it does what the node does; true: it meets others there.
 */
static bool learn_first(struct tt_host_check *check, size_t task,
                        const struct tt_check_touch *touches, size_t count)
{
    bool syncs = false;
    for (size_t i = 0; i < count; i++) {
        const struct tt_check_mark *mark = NULL;
        if (touches[i].kind == TT_CHECK_TOUCH_AWAIT)
            mark = tt_check_mark(&check->events, touches[i].ptr, 0);
        if (mark) tt_check_clock_merge(&check->tasks[task].now, mark->clock);
        syncs = syncs || is_sync(&touches[i]);
    }
    return syncs;
}

enum { READS = 1, WRITES = 2 };

static void touch_all(struct tt_host_check *check, struct tt_check_op *op,
                      const struct tt_check_touch *touches, size_t count, unsigned which)
{
    for (size_t i = 0; op && i < count; i++) {
        bool write = touches[i].kind != TT_CHECK_TOUCH_READ;
        if (touches[i].kind <= TT_CHECK_TOUCH_END && (which & (write ? WRITES : READS)))
            tt_check_touch(check, op, touches[i].ptr, touches[i].bytes, write);
    }
}

static bool clash(const struct tt_check_touch *one, const struct tt_check_touch *other)
{
    return one->part != other->part &&
           (one->kind == TT_CHECK_TOUCH_WRITE || other->kind == TT_CHECK_TOUCH_WRITE);
}

static void name_part(struct tt_check_op *side, const char *whole,
                      const struct tt_check_touch *touch)
{
    if (touch->call && touch->call_number) {
        snprintf(side->name, sizeof(side->name), "%.64s (call %d of a group)", touch->call,
                 touch->call_number);
    } else if (touch->call) {
        snprintf(side->name, sizeof(side->name), "%.64s of a group", touch->call);
    } else {
        snprintf(side->name, sizeof(side->name), "one part of %.64s", whole);
    }
}

/* `one` begins before or where `other` does. */
static void report_clash(struct tt_host_check *check, const struct tt_check_op *op,
                         const struct tt_check_touch *one, const struct tt_check_touch *other)
{
    struct tt_check_op sides[2];
    const bool turned = one->call_number > other->call_number;
    const struct tt_check_touch *first = turned ? other : one, *second = turned ? one : other;
    const char *end = (const char *)one->ptr + one->bytes;
    const size_t most = (size_t)(end - (const char *)other->ptr);
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct tt_check_op){.task = op->task,
                                        .stream_id = op->stream_id,
                                        .device = op->device,
                                        .legacy = op->legacy,
                                        .blocking = op->blocking,
                                        .site = op->site};
        name_part(&sides[i], op->name, i ? second : first);
    }
    const struct tt_check_finding finding = {.kind = TT_CHECK_IN_GROUP,
                                             .first = &sides[0],
                                             .second = &sides[1],
                                             .first_writes = first->kind == TT_CHECK_TOUCH_WRITE,
                                             .second_writes = second->kind == TT_CHECK_TOUCH_WRITE,
                                             .ptr = other->ptr,
                                             .bytes = tt_min_size(other->bytes, most)};
    tt_check_report(check, &finding);
}

/* One finding is enough. */
static void look_at_sorted(struct tt_host_check *check, const struct tt_check_op *op,
                           const struct tt_check_touch *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *end = (const char *)sorted[i].ptr + sorted[i].bytes;
        for (size_t k = i + 1; k < count && (const char *)sorted[k].ptr < end; k++) {
            if (!clash(&sorted[i], &sorted[k])) continue;
            report_clash(check, op, &sorted[i], &sorted[k]);
            return;
        }
    }
}

void tt_check_parts(struct tt_host_check *check, const struct tt_check_op *op,
                    const struct tt_check_touch *touches, size_t count)
{
    bool several = false;
    for (size_t i = 1; i < count; i++) {
        several = several || touches[i].part != touches[0].part;
    }
    struct tt_check_touch *sorted = several ? malloc(count * sizeof(*sorted)) : NULL;
    size_t kept = 0;
    for (size_t i = 0; sorted && i < count; i++) {
        if (touches[i].kind <= TT_CHECK_TOUCH_WRITE && touches[i].bytes)
            sorted[kept++] = touches[i];
    }
    if (sorted) qsort(sorted, kept, sizeof(*sorted), tt_check_by_address);
    if (sorted) look_at_sorted(check, op, sorted, kept);
    free(sorted);
}

/* One node's accesses. One that meets others in a collective lets them know that it has read, not
 * that it has written: they end when they have its data, whatever it does with theirs. So its
 * writes are an operation of their own, behind the synchronization. */
static struct tt_check_op *apply_node(struct tt_host_check *check, const struct CUstream_st *stream,
                                      const struct tt_check_touch *touches, size_t count,
                                      const char *name)
{
    bool syncs = learn_first(check, tt_check_task_of(check, stream), touches, count);
    struct tt_check_op *op = tt_check_op_begin(check, stream, name);
    if (op) op->direct = count && touches[0].direct;
    touch_all(check, op, touches, count, syncs ? READS : READS | WRITES);
    for (size_t i = 0; syncs && op && i < count; i++) {
        if (is_sync(&touches[i])) synchronize(check, op->task, &touches[i]);
    }
    if (syncs) {
        tt_check_op_drop(op);
        op = tt_check_op_begin(check, stream, name);
        if (op) op->direct = true;
        touch_all(check, op, touches, count, WRITES);
    }
    if (op) tt_check_parts(check, op, touches, count);
    for (size_t i = 0; op && i < count; i++) {
        look_at_end(check, op, &touches[i]);
        pass_on(check, op, &touches[i]);
    }
    return op;
}

/* Nodes come in an order that their edges allow, so what an event node passes on or learns holds
 * for those before or behind it. */
struct tt_check_op *tt_check_apply(struct tt_host_check *check, struct CUstream_st *stream,
                                   const struct tt_check_touches *touches, const char *name)
{
    struct tt_check_op *op = NULL;
    size_t at = 0;
    if (touches->name[0]) name = touches->name;
    tt_check_arrive(check, stream);
    do {
        size_t end = at;
        while (end < touches->count && touches->at[end].node == touches->at[at].node) {
            end++;
        }
        tt_check_op_drop(op);
        op = apply_node(check, stream, touches->at + at, end - at, name);
        at = end;
    } while (op && at < touches->count);
    return op;
}

/* The operation that is put on the stream next does something unknown. From now on the host may
 * learn of it from words. */
void tt_check_note_opaque(struct tt_host_check *check, struct CUstream_st *stream)
{
    tt_check_arrive(check, stream);
    if (!check->any_opaque) tt_check_report_words(check, &check->tasks[TT_CHECK_HOST].now);
    check->any_opaque = true;
    struct tt_check_task *task = &check->tasks[tt_check_task_of(check, stream)];
    task->unreported = (struct tt_host_position){
        stream, atomic_load_explicit(&stream->line.tail, memory_order_relaxed) + 1};
}
