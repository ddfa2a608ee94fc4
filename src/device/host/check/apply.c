/* What operations touch is put into the shadow, node by node, with what they tell and learn. */
#include "access.h"

#include "device/host/host.h"

enum { PARTS_MOST = 1024 };

static bool is_meeting(const struct check_touch *touch)
{
    return touch->kind == CHECK_TOUCH_MEET && touch->meeting != TT_MEETING_NONE;
}

/* What the operation tells others, or learns, when its accesses are known. */
static void pass_on(struct host_check *check, struct check_op *op, const struct check_touch *touch)
{
    switch (touch->kind) {
    case CHECK_TOUCH_READ: check_see_words(check, op->task, touch); break;
    case CHECK_TOUCH_WORD_WAIT:
    case CHECK_TOUCH_WORD_WRITE: check_pass_word(check, op->task, touch); break;
    case CHECK_TOUCH_TELL: check_tell_event(check, op->task, touch); break;
    case CHECK_TOUCH_MEET: check_tell_member(check, op->task, touch->ptr); break;
    case CHECK_TOUCH_END: /* until a launch allocates it again */
        check_reset(check, touch->ptr, touch->bytes, CHECK_FREED, op);
        break;
    default: break;
    }
}

/* Copies and fills have been refused before they come here. */
static void look_at_end(struct host_check *check, const struct check_op *op,
                        const struct check_touch *touch)
{
    struct tt_pointer found;
    if (touch->kind > CHECK_TOUCH_WRITE || tuttiHostPointer(touch->ptr, &found) || !found.base)
        return;
    size_t room = found.bytes - (size_t)((const char *)touch->ptr - found.base);
    const struct check_finding finding = {.kind = CHECK_OUTSIDE,
                                          .second = op,
                                          .second_writes = touch->kind == CHECK_TOUCH_WRITE,
                                          .ptr = touch->ptr,
                                          .bytes = touch->bytes};
    if (touch->bytes > room) check_report(check, &finding);
}

/* What events tell the task before it does what the node does; true: it meets others there. */
static bool learn_first(struct host_check *check, size_t task, const struct check_touch *touches,
                        size_t count)
{
    bool meets = false;
    for (size_t i = 0; i < count; i++) {
        const struct check_mark *mark = NULL;
        if (touches[i].kind == CHECK_TOUCH_AWAIT)
            mark = check_mark(&check->events, touches[i].ptr, 0);
        if (mark) check_clock_merge(&check->tasks[task].now, mark->clock);
        meets = meets || is_meeting(&touches[i]);
    }
    return meets;
}

enum { READS = 1, WRITES = 2 };

static void touch_all(struct host_check *check, struct check_op *op,
                      const struct check_touch *touches, size_t count, unsigned which)
{
    for (size_t i = 0; op && i < count; i++) {
        bool write = touches[i].kind != CHECK_TOUCH_READ;
        if (touches[i].kind <= CHECK_TOUCH_END && (which & (write ? WRITES : READS)))
            check_touch(check, op, touches[i].ptr, touches[i].bytes, write);
    }
}

/* Parts of one item run side by side: messages of a group. */
static void look_at_parts(struct host_check *check, const struct check_op *op,
                          const struct check_touch *touches, size_t count)
{
    struct check_op side = {.task = op->task,
                            .stream_id = op->stream_id,
                            .device = op->device,
                            .site = op->site,
                            .name = "message of a group"};
    for (size_t i = 0; i < count && count <= PARTS_MOST; i++) {
        const struct check_touch *one = &touches[i];
        if (one->kind != CHECK_TOUCH_WRITE) continue;
        for (size_t j = 0; j < count; j++) {
            const struct check_touch *other = &touches[j];
            const char *from = one->ptr, *at = other->ptr;
            if (other->kind > CHECK_TOUCH_WRITE || other->part == one->part ||
                at >= from + one->bytes || from >= at + other->bytes)
                continue;
            const struct check_finding finding = {.kind = CHECK_IN_GROUP,
                                                  .first = &side,
                                                  .second = &side,
                                                  .first_writes = true,
                                                  .second_writes = other->kind == CHECK_TOUCH_WRITE,
                                                  .ptr = at > from ? at : from,
                                                  .bytes = 1};
            check_report(check, &finding);
            return;
        }
    }
}

/* One node's accesses. Who meets others in a collective tells them that it has read, not that it
 * has written: they end when they have its data, whatever it does with theirs. So its writes are
 * an operation of their own, behind the meeting. */
static struct check_op *apply_node(struct host_check *check, const struct CUstream_st *stream,
                                   const struct check_touch *touches, size_t count,
                                   const char *name)
{
    bool meets = learn_first(check, check_task_of(check, stream), touches, count);
    struct check_op *op = check_op_begin(check, stream, name);
    touch_all(check, op, touches, count, meets ? READS : READS | WRITES);
    for (size_t i = 0; meets && op && i < count; i++) {
        if (is_meeting(&touches[i])) check_meet(check, op->task, &touches[i]);
    }
    if (meets) {
        check_op_drop(op);
        op = check_op_begin(check, stream, name);
        touch_all(check, op, touches, count, WRITES);
    }
    if (op) look_at_parts(check, op, touches, count);
    for (size_t i = 0; op && i < count; i++) {
        look_at_end(check, op, &touches[i]);
        pass_on(check, op, &touches[i]);
    }
    return op;
}

/* Nodes come in an order that their edges allow, so what an event node tells or learns holds for
 * those before or behind it. */
struct check_op *check_apply(struct host_check *check, struct CUstream_st *stream,
                             const struct check_touches *touches, const char *name)
{
    struct check_op *op = NULL;
    size_t at = 0;
    if (touches->name[0]) name = touches->name;
    check_arrive(check, stream);
    do {
        size_t end = at;
        while (end < touches->count && touches->at[end].node == touches->at[at].node) {
            end++;
        }
        check_op_drop(op);
        op = apply_node(check, stream, touches->at + at, end - at, name);
        at = end;
    } while (op && at < touches->count);
    return op;
}

/* The operation that is put on the stream next does what nobody knows. From now on whoever looks at
 * words may tell the host. */
void check_note_opaque(struct host_check *check, struct CUstream_st *stream)
{
    check_arrive(check, stream);
    for (size_t i = 0; !check->any_opaque && i < check->words.room; i++) {
        check_clock_merge(&check->tasks[CHECK_HOST].now, check->words.at[i].clock);
    }
    check->any_opaque = true;
    struct check_task *task = &check->tasks[check_task_of(check, stream)];
    task->opaque = (struct host_place){
        stream, atomic_load_explicit(&stream->line.tail, memory_order_relaxed) + 1};
}
