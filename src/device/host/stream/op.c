/* One step of each kind of operation. Nothing blocks but a host function, which is why those only
 * run where the caller allows it. Large copies go slice by slice, so that others get their turn. */
#include "by_file.h"
#include "event.h"
#include "stream.h"

#include "base/mem.h"
#include "device/host/check/block.h"
#include "device/host/memory/bytes.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>
#include <string.h>

/* Both the C library and the string instruction go another way when they are given much more than
 * the caches hold, so a slice is that large. */
static const size_t slice_bytes = (size_t)256 << 20;

/* Bytes that may be moved now; 0: the thread's share is used up. */
static size_t take_slice(size_t left)
{
    struct tt_host_share *share = &tt_host_thread.share;
    size_t bytes = tt_min_size(left, share->until_nsec ? share->bytes : slice_bytes);
    if (bytes < left) bytes = bytes / TT_LINE_BYTES * TT_LINE_BYTES;
    if (share->until_nsec) share->bytes -= bytes;
    return bytes;
}

/* Where a copy or a fill goes on: byte `at` of a row of a slice. */
struct position {
    size_t slice, row, at;
};

static struct position position_of(size_t moved, size_t width, size_t height)
{
    struct position here = {0, 0, 0};
    if (!moved) return here;
    here.at = moved % width;
    here.row = moved / width;
    here.slice = here.row / height;
    here.row %= height;
    return here;
}

static void next_row(struct position *here, size_t height)
{
    here->at = 0;
    if (++here->row < height) return;
    here->row = 0;
    here->slice++;
}

static __attribute__((noinline)) enum tt_step copy_slice(const struct tt_copy *copy, size_t *moved)
{
    size_t height = copy->height ? copy->height : 1;
    size_t rows = copy->depth ? copy->depth * height : height;
    size_t left = copy->width * rows - *moved;
    /* overlapping ranges must not be cut: memmove looks at the whole */
    size_t apart = (size_t)llabs((char *)copy->dst - (const char *)copy->src);
    size_t bytes = rows == 1 && apart < copy->width ? left : take_slice(left);
    struct position here = position_of(*moved, copy->width, height);
    if (!bytes && left) return TT_STEP_WAIT;
    for (size_t todo = bytes; todo && (apart || rows > 1); next_row(&here, height)) {
        size_t part = tt_min_size(todo, copy->width - here.at);
        size_t to = here.slice * copy->dst_slice + here.row * copy->dst_pitch + here.at;
        size_t from = here.slice * copy->src_slice + here.row * copy->src_pitch + here.at;
        tt_host_bytes_copy((char *)copy->dst + to, (const char *)copy->src + from, part,
                           tt_host_thread.share.until_nsec ? part : copy->width);
        todo -= part;
    }
    *moved = bytes < left ? *moved + bytes : 0;
    return *moved ? TT_STEP_PROGRESS : TT_STEP_DONE;
}

static void set_row(void *ptr, unsigned value, unsigned elem_bytes, size_t count)
{
    if (elem_bytes == 1) {
        memset(ptr, (int)(value & 0xff), count);
        return;
    }
    if (elem_bytes == 2) {
        uint16_t *halves = ptr;
        for (size_t i = 0; i < count; i++) {
            halves[i] = (uint16_t)value;
        }
        return;
    }
    uint32_t *words = ptr;
    for (size_t i = 0; i < count; i++) {
        words[i] = value;
    }
}

static __attribute__((noinline)) enum tt_step set_slice(const struct tt_set *set, size_t *moved)
{
    size_t width = set->width * set->elem_bytes;
    size_t left = width * set->height - *moved;
    size_t bytes = take_slice(left);
    struct position here = position_of(*moved, width, set->height);
    if (!bytes && left) return TT_STEP_WAIT;
    for (size_t todo = bytes; todo; next_row(&here, set->height)) {
        size_t part = tt_min_size(todo, width - here.at);
        set_row((char *)set->ptr + here.row * set->pitch + here.at, set->value, set->elem_bytes,
                part / set->elem_bytes);
        todo -= part;
    }
    *moved = bytes < left ? *moved + bytes : 0;
    return *moved ? TT_STEP_PROGRESS : TT_STEP_DONE;
}

/* Apart from what takes several slices, which needs a stack. */
static inline enum tt_step step_bytes(const struct tt_host_op *op, size_t *moved)
{
    const struct tt_copy *copy = &op->copy;
    const struct tt_set *set = &op->set;
    bool whole = !*moved && !tt_host_thread.share.until_nsec;
    if (op->kind == TT_HOST_OP_COPY) {
        if (!whole || copy->height > 1 || copy->depth > 1 || copy->width > slice_bytes)
            return copy_slice(copy, moved);
        if (copy->dst != copy->src)
            tt_host_bytes_copy(copy->dst, copy->src, copy->width, copy->width);
        return TT_STEP_DONE;
    }
    if (!whole || set->height != 1 || set->width > slice_bytes) return set_slice(set, moved);
    set_row(set->ptr, set->value, set->elem_bytes, set->width);
    return TT_STEP_DONE;
}

/* The race checker may have closed the program's own mapping of the bytes. */
static __attribute__((noinline)) enum tt_step step_in_view(const struct tt_host_op *op,
                                                           size_t *moved)
{
    struct tt_host_op seen = *op;
    if (!*moved && tt_host_step_by_file(op)) return TT_STEP_DONE;
    if (op->kind == TT_HOST_OP_COPY) {
        seen.copy.dst = tt_host_view(op->copy.dst);
        seen.copy.src = tt_host_view(op->copy.src);
    } else {
        seen.set.ptr = tt_host_view(op->set.ptr);
    }
    return step_bytes(&seen, moved);
}

enum tt_step tt_host_bytes_step(const struct tt_host_op *op, size_t *moved)
{
    return tt_host_checks() ? step_in_view(op, moved) : step_bytes(op, moved);
}

static enum tt_step run_call(const struct tt_host_op *op, bool calls)
{
    if (!calls) return TT_STEP_WAIT;
    tt_host_worker_enter();
    tt_host_thread.in_host_fn++;
    if (tt_host_checks()) tt_host_check_runs(op->call.fn, true);
    op->call.fn(op->call.arg);
    if (tt_host_checks()) tt_host_check_runs(op->call.fn, false);
    tt_host_thread.in_host_fn--;
    tt_host_worker_leave();
    return TT_STEP_DONE;
}

enum tt_step tt_host_op_step(struct tt_host_op *op, bool calls)
{
    switch (op->kind) {
    case TT_HOST_OP_ITEM: return op->item->step(op->item, TT_ITEM_STEP);
    case TT_HOST_OP_COPY:
    case TT_HOST_OP_SET: return tt_host_bytes_step(op, &op->moved);
    case TT_HOST_OP_CALL: return run_call(op, calls);
    case TT_HOST_OP_WAIT:
        return tt_host_position_reached(&op->position) ? TT_STEP_DONE : TT_STEP_WAIT;
    case TT_HOST_OP_REACH: tt_host_cell_reach(op->reach.cell, op->reach.number); break;
    case TT_HOST_OP_CELL:
        return tt_host_cell_reached(op->cell.cell, op->cell.number) ? TT_STEP_DONE : TT_STEP_WAIT;
    case TT_HOST_OP_RECORD: tt_host_event_reached(op->record.event, op->record.number); break;
    case TT_HOST_OP_GRAPH: return op->launch.ops->step(op->launch.exec, op->launch.number, calls);
    case TT_HOST_OP_EMPTY: break;
    }
    return TT_STEP_DONE;
}

void tt_host_op_drop(struct tt_host_op *op)
{
    switch (op->kind) {
    case TT_HOST_OP_ITEM: op->item->step(op->item, TT_ITEM_RELEASE); break;
    case TT_HOST_OP_GRAPH: op->launch.ops->drop(op->launch.exec); break;
    default: break;
    }
}
