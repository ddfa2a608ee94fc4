/* Lists of what operations touch. Copies and fills say it themselves, items are asked: they answer
 * through the functions of device.h, in the thread that asks. */
#include "base/mem.h"
#include "device/host/check/access.h"
#include "device/host/check/shadow/guard.h"
#include "device/host/host.h"
#include "device/host/host_vmm.h"
#include "device/host/memory/memory.h"
#include "device/host/memory/vmm.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIASES_MOST = 16, REFUSED_ROWS_MOST = 65536 };

/* ---- lists of accesses ---- */

static void add_touch(struct tt_check_touches *touches, const struct tt_check_touch *touch)
{
    struct tt_pointer where;
    if (touches->counts) {
        touches->opened += tuttiHostIpcMapped(touch->ptr, &where);
        return;
    }
    if (touches->count == touches->room) {
        size_t room = touches->room ? 2 * touches->room : 16;
        struct tt_check_touch *wider = realloc(touches->at, room * sizeof(*wider));
        if (!wider) return;
        touches->at = wider;
        touches->room = room;
    }
    touches->at[touches->count] = *touch;
    touches->at[touches->count].ptr = tt_host_unview(touch->ptr);
    touches->at[touches->count].part = touches->part;
    touches->at[touches->count].call = touches->call;
    touches->at[touches->count].call_number = touches->call_number;
    touches->at[touches->count].direct = touches->direct;
    touches->at[touches->count++].node = touches->node;
}

/* Memory that is mapped at several addresses is touched at each of them. */
void tt_check_touches_bytes(struct tt_check_touches *touches, const void *ptr, size_t bytes,
                            bool write)
{
    if (!ptr || !bytes) return;
    struct tt_check_touch touch = {
        .kind = write ? TT_CHECK_TOUCH_WRITE : TT_CHECK_TOUCH_READ, .ptr = ptr, .bytes = bytes};
    add_touch(touches, &touch);
    if (touches->counts || !tuttiHostAnyReserved()) return;
    const void *aliases[ALIASES_MOST];
    for (const char *at = ptr, *end = at + bytes; at < end; at += touch.bytes) {
        touch.bytes = (size_t)(end - at);
        size_t count = tt_host_vmm_aliases(at, &touch.bytes, aliases, ALIASES_MOST);
        for (size_t i = 0; i < count; i++) {
            touch.ptr = aliases[i];
            add_touch(touches, &touch);
        }
    }
}

struct box {
    const char *ptr;
    size_t pitch, width, height, slice, depth;
};

/* Bytes from the first row's to the last one's end, or of all addresses. */
static size_t reach_of(const struct box *box)
{
    size_t most = (size_t)1 << 47, rows = 0, slices = 0;
    bool far = (box->height && __builtin_mul_overflow(box->height - 1, box->pitch, &rows)) ||
               (box->depth && __builtin_mul_overflow(box->depth - 1, box->slice, &slices)) ||
               __builtin_add_overflow(rows, slices, &rows) ||
               __builtin_add_overflow(rows, box->width, &rows);
    return far ? most : tt_min_size(rows, most);
}

/* What is refused may have more rows than there are addresses: from some row on the rest is one
 * access. */
static bool add_rest(struct tt_check_touches *touches, const struct box *box, const char *row,
                     bool write)
{
    if (!touches->refused || touches->count < REFUSED_ROWS_MOST) return false;
    size_t before = (uintptr_t)row - (uintptr_t)box->ptr, reach = reach_of(box);
    const struct tt_check_touch touch = {.kind = write ? TT_CHECK_TOUCH_WRITE : TT_CHECK_TOUCH_READ,
                                         .ptr = row,
                                         .bytes = before < reach ? reach - before : box->width};
    add_touch(touches, &touch);
    return true;
}

/* Rows that lie apart are accesses of their own: what is between them does not belong to them. */
static void add_box(struct tt_check_touches *touches, const struct box *box, bool write)
{
    size_t height = box->height ? box->height : 1;
    size_t depth = box->depth ? box->depth : 1;
    for (size_t z = 0; z < depth; z++) {
        const char *slice = box->ptr + z * box->slice;
        if (height == 1 || box->pitch == box->width) {
            if (add_rest(touches, box, slice, write)) return;
            tt_check_touches_bytes(touches, slice, box->width * height, write);
            continue;
        }
        for (size_t y = 0; y < height; y++) {
            if (add_rest(touches, box, slice + y * box->pitch, write)) return;
            tt_check_touches_bytes(touches, slice + y * box->pitch, box->width, write);
        }
    }
}

void tt_check_touches_copy(struct tt_check_touches *touches, const struct tt_copy *copy)
{
    const struct box from = {copy->src,    copy->src_pitch, copy->width,
                             copy->height, copy->src_slice, copy->depth};
    const struct box to = {copy->dst,    copy->dst_pitch, copy->width,
                           copy->height, copy->dst_slice, copy->depth};
    if (!copy->width) return;
    add_box(touches, &from, false);
    add_box(touches, &to, true);
}

void tt_check_touches_set(struct tt_check_touches *touches, const struct tt_set *set)
{
    const struct box to = {set->ptr, set->pitch, set->width * set->elem_bytes, set->height, 0, 1};
    if (set->width && set->height) add_box(touches, &to, true);
}

bool tt_check_touches_item(struct tt_check_touches *touches, struct tt_item *item)
{
    if (!item->reports_touches) return false;
    struct tt_check_touches *outer = tt_host_thread.check.touches;
    bool was_open = touches->closed;
    touches->closed = false;
    touches->direct = true;
    touches->part = touches->call_number = 0;
    touches->call = NULL;
    tt_host_thread.check.touches = touches;
    item->step(item, TT_ITEM_TOUCH);
    tt_host_thread.check.touches = outer;
    bool complete = !touches->closed;
    touches->direct = false;
    touches->closed = was_open;
    return complete;
}

bool tt_check_touches_op(struct tt_check_touches *touches, const struct tt_host_op *op,
                         struct tt_item *item)
{
    switch (op->kind) {
    case TT_HOST_OP_COPY: tt_check_touches_copy(touches, &op->copy); return true;
    case TT_HOST_OP_SET: tt_check_touches_set(touches, &op->set); return true;
    case TT_HOST_OP_ITEM: return tt_check_touches_item(touches, item ? item : op->item);
    case TT_HOST_OP_CALL: touches->reports = true; return false;
    default: return true;
    }
}

unsigned tt_host_item_opened(struct tt_item *item)
{
    struct tt_check_touches touches = {.counts = true};
    tt_check_touches_item(&touches, item);
    return touches.opened;
}

/* ---- what items say ---- */

bool tt_host_check_counts(void)
{
    return tt_host_thread.check.touches && tt_host_thread.check.touches->counts;
}

void tt_host_check_argument(const void *ptr)
{
    const struct tt_check_touch touch = {.ptr = ptr};
    if (tt_host_check_counts()) add_touch(tt_host_thread.check.touches, &touch);
}

void tt_host_check_word(struct tt_check_words *words, const void *word)
{
    struct tt_registered range;
    if (words->count < TT_CHECK_WORDS_MOST && tt_host_view(word) != word) {
        words->at[words->count++] = word;
    } else if (!words->registered) {
        words->registered = tuttiHostRegistered(word, &range);
    }
}

/* The program may poll pinned memory that the kernel writes. */
void tt_host_check_opaque(const struct tt_check_words *words, const struct tt_item *item)
{
    const struct tt_check_touch touch = {.kind = TT_CHECK_TOUCH_KERNEL, .ptr = item};
    struct tt_check_touches *touches = tt_host_thread.check.touches;
    struct tt_pointer found;
    if (!touches) return;
    touches->closed = true;
    touches->reports |= words->registered;
    if (words->count) add_touch(touches, &touch);
    for (size_t i = 0; i < words->count; i++) {
        tt_host_check_word(&touches->words, words->at[i]);
        touches->reports |=
            !tuttiHostPointer(words->at[i], &found) && found.kind == TT_MEMORY_PINNED;
    }
}

void tuttiHostTouch(const void *ptr, size_t bytes, bool write)
{
    if (tt_host_thread.check.touches)
        tt_check_touches_bytes(tt_host_thread.check.touches, ptr, bytes, write);
}

void tuttiHostTouchName(const char *name)
{
    struct tt_check_touches *touches = tt_host_thread.check.touches;
    if (touches) snprintf(touches->name, sizeof(touches->name), "%s", name);
}

void tuttiHostTouchPart(int part)
{
    if (tt_host_thread.check.touches) tt_host_thread.check.touches->part = part;
}

void tuttiHostTouchCall(const char *name, int number)
{
    struct tt_check_touches *touches = tt_host_thread.check.touches;
    if (!touches) return;
    touches->call = name;
    touches->call_number = number;
}

void tuttiHostTouchUnknown(void)
{
    if (tt_host_thread.check.touches) tt_host_thread.check.touches->closed = true;
}

void tt_host_check_keep(struct tt_check_op **slot)
{
    if (tt_host_thread.check.touches) tt_host_thread.check.touches->keep = slot;
}

void tt_host_check_end(struct tt_check_op *op)
{
    struct tt_host_check *check = tt_host_check_lock();
    tt_check_launch_end(check, op);
    tt_check_op_drop(op);
    tt_host_check_unlock(check);
}

void tuttiHostTouchWord(const struct tt_word *word)
{
    const struct tt_check_touch touch = {.kind = word->waits ? TT_CHECK_TOUCH_WORD_WAIT
                                                             : TT_CHECK_TOUCH_WORD_WRITE,
                                         .ptr = word->address,
                                         .word = *word};
    if (tt_host_thread.check.touches) add_touch(tt_host_thread.check.touches, &touch);
}

void tuttiHostTouchCollective(const void *member, const struct tt_collective *collective)
{
    const struct tt_check_touch touch = {.kind = TT_CHECK_TOUCH_COLLECTIVE,
                                         .ptr = member,
                                         .group = collective->group,
                                         .nranks = collective->nranks,
                                         .role = collective->role};
    if (tt_host_thread.check.touches) add_touch(tt_host_thread.check.touches, &touch);
}

void tuttiHostTouchMessage(const struct tt_peer_message *message, bool sends)
{
    const struct tt_check_touch touch = {
        .kind = sends ? TT_CHECK_TOUCH_SEND : TT_CHECK_TOUCH_RECEIVE, .message = *message};
    if (tt_host_thread.check.touches) add_touch(tt_host_thread.check.touches, &touch);
}

void tt_host_check_event_node(const struct CUevent_st *event, bool waits)
{
    const struct tt_check_touch touch = {
        .kind = waits ? TT_CHECK_TOUCH_AWAIT : TT_CHECK_TOUCH_REPORT, .ptr = event};
    if (tt_host_thread.check.touches) add_touch(tt_host_thread.check.touches, &touch);
}

void tt_host_check_memory_node(const void *ptr, size_t bytes, bool ends)
{
    const struct tt_check_touch touch = {
        .kind = ends ? TT_CHECK_TOUCH_END : TT_CHECK_TOUCH_BEGIN, .ptr = ptr, .bytes = bytes};
    if (tt_host_thread.check.touches) add_touch(tt_host_thread.check.touches, &touch);
}

int tt_check_by_address(const void *a, const void *b)
{
    const struct tt_check_touch *one = a, *other = b;
    if (one->ptr == other->ptr) return 0;
    return (const char *)one->ptr < (const char *)other->ptr ? -1 : 1;
}
