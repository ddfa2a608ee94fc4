/* Which bytes an operation reads and writes. Copies and fills say it themselves, items are asked,
 * a program tells it for what nobody can see: its own loads and stores, host functions, kernels. */
#include "access.h"

#include "tutti.h"

#include "device/host/graph/exec.h"
#include "device/host/host.h"
#include "device/host/host_kernel.h"
#include "device/host/host_vmm.h"
#include "device/host/memory/memory.h"
#include "device/host/memory/vmm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIASES_MOST = 16, PARTS_MOST = 1024 };

static bool is_captured(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

/* ---- lists of accesses ---- */

void check_touches_add(struct check_touches *touches, const struct check_touch *touch)
{
    struct tt_pointer where;
    if (touches->counts) {
        touches->opened += tuttiHostIpcMapped(touch->ptr, &where);
        return;
    }
    if (touches->count == touches->room) {
        size_t room = touches->room ? 2 * touches->room : 16;
        struct check_touch *wider = realloc(touches->at, room * sizeof(*wider));
        if (!wider) return;
        touches->at = wider;
        touches->room = room;
    }
    touches->at[touches->count] = *touch;
    touches->at[touches->count].ptr = host_unview(touch->ptr);
    touches->at[touches->count].part = touches->part;
    touches->at[touches->count++].node = touches->node;
}

/* Memory that is mapped at several addresses is touched at each of them. */
static void add_bytes(struct check_touches *touches, const void *ptr, size_t bytes, bool write)
{
    if (!ptr || !bytes) return;
    struct check_touch touch = {
        .kind = write ? CHECK_TOUCH_WRITE : CHECK_TOUCH_READ, .ptr = ptr, .bytes = bytes};
    check_touches_add(touches, &touch);
    if (touches->counts || !tuttiHostAnyReserved()) return;
    const void *aliases[ALIASES_MOST];
    for (const char *at = ptr, *end = at + bytes; at < end; at += touch.bytes) {
        touch.bytes = (size_t)(end - at);
        size_t count = host_vmm_aliases(at, &touch.bytes, aliases, ALIASES_MOST);
        for (size_t i = 0; i < count; i++) {
            touch.ptr = aliases[i];
            check_touches_add(touches, &touch);
        }
    }
}

struct box {
    const char *ptr;
    size_t pitch, width, height, slice, depth;
};

/* Rows that lie apart are accesses of their own: what is between them is somebody else's. */
static void add_box(struct check_touches *touches, const struct box *box, bool write)
{
    size_t height = box->height ? box->height : 1;
    size_t depth = box->depth ? box->depth : 1;
    for (size_t z = 0; z < depth; z++) {
        const char *slice = box->ptr + z * box->slice;
        if (height == 1 || box->pitch == box->width) {
            add_bytes(touches, slice, box->width * height, write);
            continue;
        }
        for (size_t y = 0; y < height; y++) {
            add_bytes(touches, slice + y * box->pitch, box->width, write);
        }
    }
}

static void add_copy(struct check_touches *touches, const struct tt_copy *copy)
{
    const struct box from = {copy->src,    copy->src_pitch, copy->width,
                             copy->height, copy->src_slice, copy->depth};
    const struct box to = {copy->dst,    copy->dst_pitch, copy->width,
                           copy->height, copy->dst_slice, copy->depth};
    if (!copy->width) return;
    add_box(touches, &from, false);
    add_box(touches, &to, true);
}

static void add_set(struct check_touches *touches, const struct tt_set *set)
{
    const struct box to = {set->ptr, set->pitch, set->width * set->elem_bytes, set->height, 0, 1};
    if (set->width && set->height) add_box(touches, &to, true);
}

bool check_touches_item(struct check_touches *touches, struct tt_item *item)
{
    if (!item->tells_touches) return false;
    struct check_touches *outer = host_thread.touches;
    bool was_open = touches->closed;
    touches->closed = false;
    touches->part = 0;
    host_thread.touches = touches;
    item->step(item, TT_ITEM_TOUCH);
    host_thread.touches = outer;
    bool told = !touches->closed;
    touches->closed = was_open;
    return told;
}

bool check_touches_op(struct check_touches *touches, const struct host_op *op, struct tt_item *item)
{
    switch (op->kind) {
    case HOST_OP_COPY: add_copy(touches, &op->copy); return true;
    case HOST_OP_SET: add_set(touches, &op->set); return true;
    case HOST_OP_ITEM: return check_touches_item(touches, item ? item : op->item);
    case HOST_OP_CALL: touches->tells = true; return false;
    default: return true;
    }
}

unsigned host_item_opened(struct tt_item *item)
{
    struct check_touches touches = {.counts = true};
    check_touches_item(&touches, item);
    return touches.opened;
}

/* ---- what items say ---- */

bool host_check_counts(void)
{
    return host_thread.touches && host_thread.touches->counts;
}

void host_check_argument(const void *ptr)
{
    const struct check_touch touch = {.ptr = ptr};
    struct tt_pointer found;
    if (host_check_counts()) {
        check_touches_add(host_thread.touches, &touch);
    } else if (host_thread.touches && !tuttiHostPointer(ptr, &found)) {
        host_thread.touches->tells |=
            found.kind == TT_MEMORY_PINNED || found.kind == TT_MEMORY_MANAGED;
    }
}

void tuttiHostTouch(const void *ptr, size_t bytes, bool write)
{
    if (host_thread.touches) add_bytes(host_thread.touches, ptr, bytes, write);
}

void tuttiHostTouchName(const char *name)
{
    struct check_touches *touches = host_thread.touches;
    if (touches) snprintf(touches->name, sizeof(touches->name), "%s", name);
}

void tuttiHostTouchPart(int part)
{
    if (host_thread.touches) host_thread.touches->part = part;
}

void tuttiHostTouchUnknown(void)
{
    if (host_thread.touches) host_thread.touches->closed = true;
}

void host_check_keep(struct check_op **slot)
{
    if (host_thread.touches) host_thread.touches->keep = slot;
}

void host_check_end(struct check_op *op)
{
    struct host_check *check = host_check_lock();
    check_op_drop(op);
    host_check_unlock(check);
}

void tuttiHostTouchWord(const void *word, bool waits)
{
    const struct check_touch touch = {
        .kind = waits ? CHECK_TOUCH_WORD_WAIT : CHECK_TOUCH_WORD_WRITE, .ptr = word};
    if (host_thread.touches) check_touches_add(host_thread.touches, &touch);
}

void tuttiHostTouchMeet(const void *member, uint64_t group, enum tt_meeting meeting)
{
    const struct check_touch touch = {
        .kind = CHECK_TOUCH_MEET, .ptr = member, .group = group, .meeting = meeting};
    if (host_thread.touches) check_touches_add(host_thread.touches, &touch);
}

void host_check_event_node(const struct CUevent_st *event, bool waits)
{
    const struct check_touch touch = {.kind = waits ? CHECK_TOUCH_AWAIT : CHECK_TOUCH_TELL,
                                      .ptr = event};
    if (host_thread.touches) check_touches_add(host_thread.touches, &touch);
}

void host_check_memory_node(const void *ptr, size_t bytes, bool ends)
{
    const struct check_touch touch = {
        .kind = ends ? CHECK_TOUCH_END : CHECK_TOUCH_BEGIN, .ptr = ptr, .bytes = bytes};
    if (host_thread.touches) check_touches_add(host_thread.touches, &touch);
}

/* ---- putting them into the shadow ---- */

/* The tasks that wait there, this one perhaps among them, know what those did that tell, before and
 * after. */
static void gather_at(struct host_check *check, struct check_mark *mark, size_t task,
                      enum tt_meeting meeting)
{
    size_t *tasks = mark ? realloc(mark->tasks, (mark->ntasks + 1) * sizeof(*tasks)) : NULL;
    if (!tasks) return;
    mark->tasks = tasks;
    bool is_there = false;
    for (size_t i = 0; i < mark->ntasks; i++) {
        is_there = is_there || mark->tasks[i] == task;
    }
    if (meeting != TT_MEETING_GIVES && !is_there) mark->tasks[mark->ntasks++] = task;
    if (meeting != TT_MEETING_TAKES) check_task_tell(check, task, &mark->clock);
    for (size_t i = 0; i < mark->ntasks; i++) {
        check_clock_merge(&check->tasks[mark->tasks[i]].now, mark->clock);
    }
}

/* Ranks of one process that are in a collective wait for those whose data they need: what these did
 * before it is over when it ends. Who comes later tells those that are there already. */
static void meet(struct host_check *check, size_t task, const struct check_touch *touch)
{
    struct check_mark *count = check_mark(&check->counts, touch->ptr, 0);
    uint64_t turn = count ? ++count->turn : 0;
    uint64_t number = touch->group * 0x9e3779b97f4a7c15ull + turn;
    struct check_mark *mark = &check->meetings[number % CHECK_MEETINGS];
    if (mark->number != number) {
        check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->ntasks = 0;
        mark->number = number;
    }
    gather_at(check, mark, task, touch->meeting);
}

/* What is in a device's memory the program's own loads do not see. */
static bool is_hidden(const void *word)
{
    struct tt_pointer found;
    return !tuttiHostLocate(word, &found) && found.kind == TT_MEMORY_DEVICE;
}

/* The host may look at the word, which nobody sees, so it is taken to know; of a word in a device's
 * memory only when a kernel or host function may have told it. A word that no stream has written
 * somebody else will write, the host or a host function, who may have waited for everything. */
static void pass_word(struct host_check *check, size_t task, const struct check_touch *touch)
{
    bool tells = touch->kind == CHECK_TOUCH_WORD_WRITE;
    struct check_mark *word = check_mark(&check->words, touch->ptr, 0);
    for (size_t i = 0; !tells && word && !word->clock && i < check->ntasks; i++) {
        if (i != task) check_task_tell(check, i, &check->tasks[task].now);
    }
    gather_at(check, word, task, tells ? TT_MEETING_ALL : TT_MEETING_TAKES);
    if (tells && (check->any_opaque || !is_hidden(touch->ptr)))
        check_task_tell(check, task, &check->tasks[CHECK_HOST].now);
}

/* Who copies a word may have waited for it to change. */
static void see_words(struct host_check *check, size_t task, const struct check_touch *touch)
{
    for (size_t i = 0; check->words.count && i < check->words.room; i++) {
        const struct check_mark *word = &check->words.at[i];
        size_t at = (uintptr_t)word->key - (uintptr_t)touch->ptr; /* of unused ones: beyond */
        if (at < touch->bytes) check_clock_merge(&check->tasks[task].now, word->clock);
    }
}

/* Who waits for the event from now on knows what the task did, and nothing else. */
static void tell_event(struct host_check *check, size_t task, const struct check_touch *touch)
{
    struct check_mark *mark = check_mark(&check->events, touch->ptr, 0);
    if (!mark) return;
    check_clock_drop(mark->clock);
    mark->clock = NULL;
    check_task_tell(check, task, &mark->clock);
}

/* Who waits for all work of the member knows what the task did. */
static void tell_member(struct host_check *check, size_t task, const void *member)
{
    struct check_mark *mark = check_mark(&check->counts, member, 0);
    if (mark) check_task_tell(check, task, &mark->clock);
}

/* Another member may come to its address, and counts anew. */
void tuttiHostMemberOver(const void *member)
{
    struct host_check *check = host_checks() ? host_check_lock() : NULL;
    struct check_mark *mark = check ? check_mark(&check->counts, member, 0) : NULL;
    if (mark && check->ntasks) {
        check_clock_merge(&check->tasks[CHECK_HOST].now, mark->clock);
        check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->turn = 0;
    }
    host_check_unlock(check);
}

static bool is_meeting(const struct check_touch *touch)
{
    return touch->kind == CHECK_TOUCH_MEET && touch->meeting != TT_MEETING_NONE;
}

/* What the operation tells others, or learns, when its accesses are known. */
static void pass_on(struct host_check *check, struct check_op *op, const struct check_touch *touch)
{
    switch (touch->kind) {
    case CHECK_TOUCH_READ: see_words(check, op->task, touch); break;
    case CHECK_TOUCH_WORD_WAIT:
    case CHECK_TOUCH_WORD_WRITE: pass_word(check, op->task, touch); break;
    case CHECK_TOUCH_TELL: tell_event(check, op->task, touch); break;
    case CHECK_TOUCH_MEET: tell_member(check, op->task, touch->ptr); break;
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
        if (is_meeting(&touches[i])) meet(check, op->task, &touches[i]);
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

/* ---- the doors ---- */

enum side { SIDE_DEVICE, SIDE_HOST, SIDE_PAGEABLE };

static enum side side_of(const void *ptr)
{
    struct tt_pointer found;
    size_t bytes;
    if (tuttiHostLocate(ptr, &found)) return SIDE_DEVICE;
    if (found.kind == TT_MEMORY_PINNED) return SIDE_HOST;
    if (found.kind != TT_MEMORY_FOREIGN || tuttiHostVariable(ptr, &bytes)) return SIDE_DEVICE;
    return SIDE_PAGEABLE;
}

/* What was refused: the first rows that are not in an allocation. */
static void tell_misfits(const struct check_touches *touches, const char *name)
{
    struct tt_pointer found;
    for (size_t i = 0; i < touches->count; i++) {
        const struct check_touch *touch = &touches->at[i];
        tuttiHostLocate(touch->ptr, &found);
        size_t at = found.base ? (size_t)((const char *)touch->ptr - found.base) : 0;
        bool pageable = !found.base && found.kind == TT_MEMORY_FOREIGN;
        if (pageable || (found.base && at + touch->bytes <= found.bytes)) continue;
        struct host_check *check = host_check_lock();
        struct check_op *op = check ? check_op_begin(check, NULL, name) : NULL;
        const struct check_finding finding = {.kind = CHECK_OUTSIDE,
                                              .second = op,
                                              .ptr = touch->ptr,
                                              .bytes = touch->bytes,
                                              .refused = true,
                                              .freed = check && check_is_freed(check, touch->ptr)};
        if (op) check_report(check, &finding);
        if (check) check_op_drop(op);
        host_check_unlock(check);
        return;
    }
}

void host_check_copy(struct CUstream_st *stream, const struct tt_copy *copy, bool waits, bool fits)
{
    struct check_touches touches = {0};
    if (!copy->width) return;
    if (!fits) {
        add_copy(&touches, copy);
        tell_misfits(&touches, "copy");
        free(touches.at);
        return;
    }
    if (is_captured(stream)) return;
    enum side to = side_of(copy->dst);
    enum side from = side_of(copy->src);
    add_copy(&touches, copy);
    /* what pageable memory held is taken when the call returns */
    for (size_t i = 0; from == SIDE_PAGEABLE && i < touches.count; i++) {
        if (touches.at[i].kind == CHECK_TOUCH_READ) touches.at[i].bytes = 0;
    }
    struct host_check *check = host_check_lock();
    if (check) {
        check_op_drop(check_apply(check, stream, &touches, waits ? "copy that waits" : "copy"));
        /* pageable memory is written, and between host memories all is done, when the call returns;
         * between devices nobody waits */
        bool done = to == SIDE_PAGEABLE || (to != SIDE_DEVICE && from != SIDE_DEVICE) ||
                    (waits && (to != SIDE_DEVICE || from != SIDE_DEVICE));
        struct check_clock **host = &check->tasks[CHECK_HOST].now;
        if (done) check_task_tell(check, check_task_of(check, stream), host);
    }
    host_check_unlock(check);
    free(touches.at);
}

void host_check_set(struct CUstream_st *stream, const struct tt_set *set, bool fits)
{
    struct check_touches touches = {0};
    add_set(&touches, set);
    if (!fits) tell_misfits(&touches, "fill");
    struct host_check *check = host_check_lock();
    if (check && fits && touches.count && !is_captured(stream))
        check_op_drop(check_apply(check, stream, &touches, "fill"));
    host_check_unlock(check);
    free(touches.at);
}

void host_check_item(struct CUstream_st *stream, struct tt_item *item)
{
    struct check_touches touches = {0};
    if (is_captured(stream)) return;
    bool told = check_touches_item(&touches, item);
    struct host_check *check = host_check_lock();
    if (check) {
        struct check_op *op = NULL;
        if (touches.count || touches.keep) op = check_apply(check, stream, &touches, "work");
        if (touches.keep) *touches.keep = op;
        if (!touches.keep) check_op_drop(op);
        if (!told) check_note_opaque(check, stream);
        if (touches.tells) /* the host may learn by its stores what is over before it */
            check_task_tell(check, check_task_of(check, stream), &check->tasks[CHECK_HOST].now);
    }
    host_check_unlock(check);
    free(touches.at);
}

/* ---- life of memory in stream order ---- */

void host_check_alloc_async(void *ptr, size_t bytes, struct CUstream_st *stream)
{
    const struct check_block block = {ptr, bytes, TT_MEMORY_DEVICE, stream->device};
    struct host_check *check = host_check_lock();
    if (check) {
        check_arrive(check, stream);
        struct check_op *op = check_op_begin(check, stream, "allocation");
        check_allocate(check, &block, op);
        check_op_drop(op);
    }
    host_check_unlock(check);
}

void host_check_free_async(void *ptr, struct CUstream_st *stream)
{
    struct tt_pointer found;
    if (tuttiHostPointer(ptr, &found) || found.base != ptr) return;
    const struct check_block block = {ptr, found.bytes, found.kind, found.device};
    struct host_check *check = host_check_lock();
    if (check && !check_is_freed(check, ptr)) {
        check_arrive(check, stream);
        struct check_op *op = check_op_begin(check, stream, "free");
        check_release(check, &block, op);
        check_op_drop(op);
    }
    host_check_unlock(check);
}

/* ---- host functions ---- */

struct told_call {
    void (*fn)(void *);
    void *arg;
    struct check_op *op; /* owned */
};

/* While it runs, what precedes it is over, and it may tell the host so by ways that nobody sees. */
static void run_told(void *arg)
{
    struct told_call *call = arg;
    struct host_check *check = host_check_lock();
    if (check && call->op) {
        struct check_clock **host = &check->tasks[CHECK_HOST].now;
        check_clock_merge(host, call->op->before);
        check_clock_raise(host, call->op->task, call->op->epoch - 1);
        check_guard_except(check, call->op);
    }
    host_check_unlock(check);
    struct check_op *outer = host_thread.checked;
    host_thread.checked = call->op;
    call->fn(call->arg);
    host_thread.checked = outer;
    check = host_check_lock();
    if (check && call->op) check_guard_again(check, call->op);
    if (check) check_op_drop(call->op);
    host_check_unlock(check);
    free(call);
}

void host_check_runs(void (*fn)(void *), bool begins)
{
    if (fn == run_told) return; /* which knows what is behind it */
    struct host_check *check = host_check_lock();
    if (check && begins) check_guard_except(check, NULL);
    if (check && !begins) check_guard_again(check, NULL);
    host_check_unlock(check);
}

void host_check_call(struct CUstream_st *stream, void (**fn)(void *), void **arg)
{
    struct told_call *call = is_captured(stream) ? NULL : calloc(1, sizeof(*call));
    if (!call) return;
    *call = (struct told_call){*fn, *arg, NULL};
    struct host_check *check = host_check_lock();
    if (check) {
        check_note_opaque(check, stream);
        call->op = check_op_begin(check, stream, "host function"); /* it has arrived */
    }
    host_check_unlock(check);
    *fn = run_told;
    *arg = call;
}

/* ---- what programs tell ---- */

static void told_access(const void *ptr, size_t bytes, bool write)
{
    if (!host_checks()) return;
    if (host_thread.touches) {
        add_bytes(host_thread.touches, ptr, bytes, write);
        return;
    }
    struct host_check *check = host_check_lock();
    struct check_op *op = check ? host_thread.checked : NULL;
    if (op) op->refs++;
    if (check && !op && !host_thread.in_host_fn && !host_thread.in_kernel)
        op = check_op_begin(check, NULL, "the host");
    check_touch(check, op, ptr, bytes, write);
    if (check) check_op_drop(op);
    host_check_unlock(check);
}

void tuttiCheckRead(const void *ptr, size_t bytes)
{
    told_access(ptr, bytes, false);
}

void tuttiCheckWrite(const void *ptr, size_t bytes)
{
    told_access(ptr, bytes, true);
}
