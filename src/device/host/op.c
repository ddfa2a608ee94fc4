/* One step of each kind of operation. Nothing blocks but a host function, which is why those only
 * run where the caller allows it. */
#include "stream.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct host_mark *host_mark_create(int refs)
{
    struct host_mark *mark = calloc(1, sizeof(*mark));
    if (mark) atomic_store_explicit(&mark->refs, refs, memory_order_relaxed);
    return mark;
}

void host_mark_drop(struct host_mark *mark)
{
    if (mark && atomic_fetch_sub(&mark->refs, 1) == 1) free(mark);
}

static void run_copy(const struct tt_copy *copy)
{
    if (copy->dst == copy->src) return;
    if (copy->height == 1 || (copy->dst_pitch == copy->width && copy->src_pitch == copy->width)) {
        memmove(copy->dst, copy->src, copy->width * copy->height);
        return;
    }
    for (size_t row = 0; row < copy->height; row++) {
        memmove((char *)copy->dst + row * copy->dst_pitch,
                (const char *)copy->src + row * copy->src_pitch, copy->width);
    }
}

static void set_row(void *ptr, unsigned value, unsigned elem_bytes, size_t count)
{
    if (elem_bytes == 1) {
        memset(ptr, (int)(value & 0xff), count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy((char *)ptr + i * elem_bytes, &value, elem_bytes); /* little endian: the low bytes */
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
    host_worker_arm(); /* it may wait for other work: somebody else must be awake */
    host_thread.in_host_fn++;
    op->call.fn(op->call.arg);
    host_thread.in_host_fn--;
    return TT_STEP_DONE;
}

static enum tt_step reach(struct host_mark *mark)
{
    mark->time_nsec = tt_now_nsec();
    atomic_store_explicit(&mark->reached, true, memory_order_release);
    return TT_STEP_DONE;
}

enum tt_step host_op_step(struct host_op *op, bool calls)
{
    switch (op->kind) {
    case HOST_OP_ITEM: return op->item->step(op->item, TT_ITEM_STEP);
    case HOST_OP_COPY: run_copy(&op->copy); return TT_STEP_DONE;
    case HOST_OP_SET: run_set(op); return TT_STEP_DONE;
    case HOST_OP_CALL: return run_call(op, calls);
    case HOST_OP_MARK: return reach(op->mark);
    case HOST_OP_WAIT:
        return atomic_load_explicit(&op->mark->reached, memory_order_acquire) ? TT_STEP_DONE
                                                                              : TT_STEP_WAIT;
    case HOST_OP_GRAPH: return host_exec_step(op->launch.exec, op->launch.token, calls);
    case HOST_OP_EMPTY: break;
    }
    return TT_STEP_DONE;
}

void host_op_drop(struct host_op *op)
{
    switch (op->kind) {
    case HOST_OP_ITEM: op->item->step(op->item, TT_ITEM_RELEASE); break;
    case HOST_OP_MARK:
    case HOST_OP_WAIT: host_mark_drop(op->mark); break;
    case HOST_OP_GRAPH: host_exec_drop(op->launch.exec); break;
    default: break;
    }
}
