/* One step of each kind of operation. Nothing blocks but a host function, which is why those only
 * run where the caller allows it. Large copies go slice by slice, so that others get their turn. */
#include "stream.h"

#include "base/mem.h"
#include "device/host/memory/bytes.h"
#include "device/host/memory/ipc.h"

#include <stdlib.h>
#include <string.h>

/* Both the C library and the string instruction go another way when they are given much more than
 * the caches hold, so a slice is that large. */
static const size_t slice_bytes = (size_t)256 << 20;

static void copy_rows(const struct tt_copy *copy, size_t slice)
{
    char *dst = (char *)copy->dst + slice * copy->dst_slice;
    const char *src = (const char *)copy->src + slice * copy->src_slice;
    for (size_t row = 0; row < copy->height; row++) {
        host_bytes_copy(dst + row * copy->dst_pitch, src + row * copy->src_pitch, copy->width,
                        copy->width);
    }
}

enum tt_step host_copy_step(const struct tt_copy *copy, size_t *moved)
{
    if (copy->height > 1 || copy->depth > 1) {
        for (size_t slice = 0; slice < copy->depth || slice == 0; slice++) {
            copy_rows(copy, slice);
        }
        return TT_STEP_DONE;
    }
    size_t bytes = tt_min_size(copy->width - *moved, slice_bytes);
    /* overlapping ranges must not be cut: memmove looks at the whole */
    size_t apart = (size_t)llabs((char *)copy->dst - (const char *)copy->src);
    if (apart < copy->width) bytes = copy->width;
    if (copy->dst != copy->src) {
        host_bytes_copy((char *)copy->dst + *moved, (const char *)copy->src + *moved, bytes,
                        copy->width);
    }
    *moved += bytes;
    if (*moved < copy->width) return TT_STEP_PROGRESS;
    *moved = 0;
    return TT_STEP_DONE;
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

static void run_set(const struct host_op *op)
{
    for (size_t row = 0; row < op->set.height; row++) {
        set_row((char *)op->set.ptr + row * op->set.pitch, op->set.value, op->set.elem_bytes,
                op->set.width);
    }
}

static enum tt_step run_call(const struct host_op *op, bool calls)
{
    if (!calls) return TT_STEP_WAIT;
    host_worker_enter();
    host_thread.in_host_fn++;
    op->call.fn(op->call.arg);
    host_thread.in_host_fn--;
    host_worker_leave();
    return TT_STEP_DONE;
}

enum tt_step host_op_step(struct host_op *op, bool calls)
{
    switch (op->kind) {
    case HOST_OP_ITEM: return op->item->step(op->item, TT_ITEM_STEP);
    case HOST_OP_COPY: return host_copy_step(&op->copy, &op->moved);
    case HOST_OP_SET: run_set(op); break;
    case HOST_OP_CALL: return run_call(op, calls);
    case HOST_OP_WAIT: return host_place_reached(&op->place) ? TT_STEP_DONE : TT_STEP_WAIT;
    case HOST_OP_REACH: host_cell_reach(op->reach.cell, op->reach.number); break;
    case HOST_OP_CELL:
        return host_cell_reached(op->cell.cell, op->cell.number) ? TT_STEP_DONE : TT_STEP_WAIT;
    case HOST_OP_RECORD: host_event_reached(op->record.event, op->record.number); break;
    case HOST_OP_GRAPH: return host_exec_step(op->launch.exec, op->launch.number, calls);
    case HOST_OP_EMPTY: break;
    }
    return TT_STEP_DONE;
}

void host_op_drop(struct host_op *op)
{
    switch (op->kind) {
    case HOST_OP_ITEM: op->item->step(op->item, TT_ITEM_RELEASE); break;
    case HOST_OP_GRAPH: host_exec_drop(op->launch.exec); break;
    default: break;
    }
}
