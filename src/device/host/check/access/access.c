/* The doors: copies, fills and items that are put on a stream, and memory whose life is in a
 * stream's order. */
#include "device/host/check/access.h"

#include "device/host/check/shadow/guard.h"
#include "device/host/check/shadow/shadow.h"
#include "device/host/host.h"
#include "device/host/host_kernel.h"
#include "device/host/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the doors ---- */

enum side { SIDE_DEVICE, SIDE_HOST, SIDE_PAGEABLE };

static enum side side_of(const void *ptr)
{
    struct tt_pointer found;
    if (tuttiHostLocate(ptr, &found)) return SIDE_DEVICE;
    if (found.kind == TT_MEMORY_PINNED) return SIDE_HOST;
    if (found.kind != TT_MEMORY_FOREIGN || tuttiHostInVariable(ptr)) return SIDE_DEVICE;
    return SIDE_PAGEABLE;
}

/* Is the row in the allocation that the first row of its side begins in? */
static bool is_in(const struct tt_check_touch *row, const struct tt_pointer *block)
{
    size_t at = block->base ? (size_t)((const char *)row->ptr - block->base) : 0;
    if (!block->base) return block->kind == TT_MEMORY_FOREIGN; /* pageable */
    return at <= block->bytes && row->bytes <= block->bytes - at;
}

/* What was refused: the first rows that are not in an allocation. */
static void report_misfits(const struct tt_check_touches *touches, const char *name)
{
    struct tt_pointer blocks[2]; /* of what is read, and written */
    bool begun[2] = {false, false};
    for (size_t i = 0; i < touches->count; i++) {
        const struct tt_check_touch *touch = &touches->at[i];
        bool writes = touch->kind == TT_CHECK_TOUCH_WRITE;
        if (!begun[writes]) tuttiHostLocate(touch->ptr, &blocks[writes]);
        begun[writes] = true;
        if (is_in(touch, &blocks[writes])) continue;
        struct tt_host_check *check = tt_host_check_lock();
        struct tt_check_op *op = check ? tt_check_op_begin(check, NULL, name) : NULL;
        const struct tt_check_finding finding = {.kind = TT_CHECK_OUTSIDE,
                                                 .second = op,
                                                 .ptr = touch->ptr,
                                                 .bytes = touch->bytes,
                                                 .refused = true,
                                                 .freed =
                                                     check && tt_check_is_freed(check, touch->ptr)};
        if (op) tt_check_report(check, &finding);
        if (check) tt_check_op_drop(op);
        tt_host_check_unlock(check);
        return;
    }
}

void tt_host_check_copy(struct CUstream_st *stream, const struct tt_copy *copy, bool waits,
                        bool fits)
{
    struct tt_check_touches touches = {.refused = !fits};
    if (!copy->width) return;
    if (!fits) {
        tt_check_touches_copy(&touches, copy);
        report_misfits(&touches, "copy");
        free(touches.at);
        return;
    }
    if (tt_check_is_captured(stream)) return;
    enum side to = side_of(copy->dst);
    enum side from = side_of(copy->src);
    tt_check_touches_copy(&touches, copy);
    /* what pageable memory held is taken when the call returns */
    for (size_t i = 0; from == SIDE_PAGEABLE && i < touches.count; i++) {
        if (touches.at[i].kind == TT_CHECK_TOUCH_READ) touches.at[i].bytes = 0;
    }
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        tt_check_op_drop(
            tt_check_apply(check, stream, &touches, waits ? "copy that waits" : "copy"));
        /* pageable memory is written, and between host memories all is done, when the call returns;
         * between devices the caller does not wait */
        bool done = to == SIDE_PAGEABLE || (to != SIDE_DEVICE && from != SIDE_DEVICE) ||
                    (waits && (to != SIDE_DEVICE || from != SIDE_DEVICE));
        struct tt_check_clock **host = &check->tasks[TT_CHECK_HOST].now;
        if (done) tt_check_task_report(check, tt_check_task_of(check, stream), host);
    }
    tt_host_check_unlock(check);
    free(touches.at);
}

void tt_host_check_set(struct CUstream_st *stream, const struct tt_set *set, bool fits)
{
    struct tt_check_touches touches = {.refused = !fits};
    tt_check_touches_set(&touches, set);
    if (!fits) report_misfits(&touches, "fill");
    struct tt_host_check *check = tt_host_check_lock();
    if (check && fits && touches.count && !tt_check_is_captured(stream))
        tt_check_op_drop(tt_check_apply(check, stream, &touches, "fill"));
    tt_host_check_unlock(check);
    free(touches.at);
}

void tt_host_check_item(struct CUstream_st *stream, struct tt_item *item)
{
    struct tt_check_touches touches = {0};
    if (tt_check_is_captured(stream)) return;
    bool known = tt_check_touches_item(&touches, item);
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        struct tt_check_op *op = NULL;
        if (touches.count || touches.keep) op = tt_check_apply(check, stream, &touches, "work");
        if (touches.keep) *touches.keep = op;
        if (!touches.keep) tt_check_op_drop(op);
        tt_check_guard_kernel(check, op, &touches.words);
        if (!known) tt_check_note_opaque(check, stream);
        if (touches.reports) { /* the host may learn by its stores what is over before it */
            tt_check_task_report(check, tt_check_task_of(check, stream),
                                 &check->tasks[TT_CHECK_HOST].now);
        }
    }
    tt_host_check_unlock(check);
    free(touches.at);
}

bool tuttiHostChecks(void)
{
    return tt_host_checks();
}

void tuttiHostCheckParts(struct CUstream_st *handle, struct tt_item *item)
{
    struct tt_check_touches touches = {0};
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return;
    tt_check_touches_item(&touches, item);
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        struct tt_check_op op = {.task = tt_check_task_of(check, stream),
                                 .stream_id = stream->id,
                                 .device = stream->device,
                                 .legacy = stream->legacy,
                                 .blocking = stream->ordered,
                                 .site = tt_host_thread.check.site};
        snprintf(op.name, sizeof(op.name), "%s", touches.name);
        tt_check_parts(check, &op, touches.at, touches.count);
    }
    tt_host_check_unlock(check);
    free(touches.at);
}

void tuttiHostTouchNever(const void *base)
{
    struct tt_pointer found;
    if (tuttiHostPointer(base, &found)) return;
    struct tt_host_check *check = tt_host_check_lock();
    struct tt_check_range *wider =
        check ? realloc(check->private, (check->nprivate + 1) * sizeof(*wider)) : NULL;
    if (wider) {
        check->private = wider;
        wider[check->nprivate++] = (struct tt_check_range){base, found.bytes};
    }
    tt_host_check_unlock(check);
}

/* ---- life of memory in stream order ---- */

void tt_host_check_alloc_async(void *ptr, size_t bytes, struct CUstream_st *stream)
{
    const struct tt_check_block block = {ptr, bytes, TT_MEMORY_DEVICE, stream->device};
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        tt_check_arrive(check, stream);
        struct tt_check_op *op = tt_check_op_begin(check, stream, "allocation");
        tt_check_allocate(check, &block, op);
        tt_check_op_drop(op);
    }
    tt_host_check_unlock(check);
}

void tt_host_check_free_async(void *ptr, struct CUstream_st *stream)
{
    struct tt_pointer found;
    if (tuttiHostPointer(ptr, &found) || found.base != ptr) return;
    const struct tt_check_block block = {ptr, found.bytes, found.kind, found.device};
    struct tt_host_check *check = tt_host_check_lock();
    if (check && !tt_check_is_freed(check, ptr)) {
        tt_check_arrive(check, stream);
        struct tt_check_op *op = tt_check_op_begin(check, stream, "free");
        tt_check_release(check, &block, op);
        tt_check_op_drop(op);
    }
    tt_host_check_unlock(check);
}
