/* The doors into a stream: items, copies, sets, host functions; and waiting for a stream. An idle
 * stream runs the work inside the call; only what stays unfinished is queued. */
#include "bytes.h"
#include "stream.h"

#include "base/arch/arch.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
    POLLS_BLIND = 32,      /* of an inline item before the first look at the clock */
    POLLS_MOST = 400,      /* where there is no clock */
    INLINE_TICKS = 6000,   /* about 2 us at 3 GHz */
    INLINE_BYTES = 1 << 20 /* larger copies are left to waiters and workers */
};

/* Work of one call on an idle stream: polls within the budget, or one pass when cores are short. */
static bool finishes_inline(struct tt_item *item)
{
    uint64_t until = 0;
    for (int polls = 0; polls < POLLS_MOST; polls++) {
        if (item->step(item, TT_ITEM_STEP) == TT_STEP_DONE) return true;
        if (polls == 0 && host_crowded()) return false;
        if (polls < POLLS_BLIND) continue;
        if (polls == POLLS_BLIND) until = tt_cpu_ticks() + INLINE_TICKS;
        if (tt_cpu_ticks() > until) return false;
    }
    return false;
}

static int run_inline(struct CUstream_st *stream, struct tt_item *item)
{
    if (finishes_inline(item)) {
        item->step(item, TT_ITEM_RELEASE);
        host_stream_release(stream);
        return HOST_OK;
    }
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    return host_stream_park(stream, &op);
}

int tuttiHostSubmit(struct CUstream_st *handle, struct tt_item *item, bool allow_inline)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, &op);
    if (allow_inline && host_stream_claim_idle(stream)) return run_inline(stream, item);
    return host_stream_append(stream, &op);
}

/* An operation that ends in one step when it is run here. */
static int submit_op(struct CUstream_st *stream, struct host_op *op, bool allow_inline)
{
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, op);
    if (allow_inline && host_stream_claim_idle(stream)) {
        host_op_step(op, false);
        host_op_drop(op);
        host_stream_release(stream);
        return HOST_OK;
    }
    return host_stream_append(stream, op);
}

/* ---- copies ---- */

static bool is_foreign(const void *ptr)
{
    const struct tt_range *range = tuttiHostRange();
    return !range || (size_t)((const char *)ptr - range->base) >= range->bytes;
}

/* The bytes of a pageable source are read before the call returns. */
static int stage(struct host_op *op)
{
    struct tt_copy *copy = &op->copy;
    size_t rows = copy->height * copy->depth;
    size_t bytes = 0;
    if (!tt_mul_size(copy->width, rows, &bytes)) return HOST_INVALID_VALUE;
    char *staging = malloc(bytes);
    if (!staging) return HOST_OUT_OF_MEMORY;
    for (size_t row = 0; row < rows; row++) {
        const char *from = (const char *)copy->src + row / copy->height * copy->src_slice;
        memcpy(staging + row * copy->width, from + row % copy->height * copy->src_pitch,
               copy->width);
    }
    copy->src = op->staging = staging;
    copy->src_pitch = copy->width;
    copy->src_slice = copy->width * copy->height;
    return HOST_OK;
}

/* A copy that cannot run at once: what pageable memory needs is done before the call returns. */
static int queue_copy(struct CUstream_st *stream, struct host_op *op)
{
    struct host_place place;
    bool settled = is_foreign(op->copy.dst);
    int rc = is_foreign(op->copy.src) && !settled ? stage(op) : HOST_OK;
    if (!rc) rc = host_stream_append_at(stream, op, &place);
    if (rc) free(op->staging);
    if (!rc && settled) host_wait_place(&place);
    return rc;
}

static int copy_boxes(struct CUstream_st *stream, const struct tt_copy *copy, bool waits)
{
    struct host_op op = {.kind = HOST_OP_COPY, .copy = *copy};
    if (!op.copy.height) op.copy.height = 1;
    if (!op.copy.depth) op.copy.depth = 1;
    if (!copy->width) return HOST_OK;
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    if (capturing) return host_capture_add(stream, &op);
    /* the caller stays until it is done, or until pageable memory is read or written */
    bool here = waits || is_foreign(op.copy.dst) || is_foreign(op.copy.src) ||
                copy->width <= INLINE_BYTES / op.copy.height / op.copy.depth;
    if (!here || !host_stream_claim_idle(stream)) return queue_copy(stream, &op);
    while (host_op_step(&op, false) != TT_STEP_DONE) {
    }
    host_stream_release(stream);
    return HOST_OK;
}

/* hot */
static inline int submit_copy(struct CUstream_st *handle, const struct tt_copy *copy, bool waits)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    if (!host_copy_fits(copy)) return HOST_INVALID_VALUE;
    bool plain = copy->height <= 1 && copy->depth <= 1 && copy->width <= INLINE_BYTES &&
                 !atomic_load_explicit(&stream->capture, memory_order_relaxed);
    if (!plain || !host_stream_claim_idle(stream)) return copy_boxes(stream, copy, waits);
    host_bytes_copy(copy->dst, copy->src, copy->width, copy->width);
    host_stream_release(stream);
    return HOST_OK;
}

int tuttiHostCopy(struct CUstream_st *stream, const struct tt_copy *copy)
{
    return submit_copy(stream, copy, false);
}

int tuttiHostCopyNow(struct CUstream_st *stream, const struct tt_copy *copy)
{
    int rc = submit_copy(stream, copy, true);
    return rc ? rc : tuttiHostStreamSynchronize(stream);
}

int tuttiHostSet(struct CUstream_st *handle, const struct tt_set *set)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_op op = {.kind = HOST_OP_SET, .set = *set};
    if (!stream) return host_bad_handle();
    if (set->elem_bytes != 1 && set->elem_bytes != 2 && set->elem_bytes != 4)
        return HOST_INVALID_VALUE;
    if (!set->width || !set->height) return HOST_OK;
    if (!host_set_fits(&op)) return HOST_INVALID_VALUE;
    return submit_op(stream, &op, set->width <= INLINE_BYTES / set->elem_bytes / set->height);
}

/* Never run here: it is left to waiters and workers, on an idle stream without the queue. */
int tuttiHostCall(struct CUstream_st *handle, void (*fn)(void *), void *arg)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    if (!fn) return HOST_INVALID_VALUE;
    struct host_op op = {.kind = HOST_OP_CALL, .call = {fn, arg}};
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, &op);
    if (host_stream_claim_idle(stream)) return host_stream_park(stream, &op);
    return host_stream_append(stream, &op);
}

/* ---- streams among each other ---- */

int tuttiHostStreamCard(struct CUstream_st *handle, struct tt_stream_card *card)
{
    struct CUstream_st *stream = host_stream_find(handle);
    enum tt_capture_status status;
    struct CUgraph_st *graph;
    if (!stream) return host_bad_handle();
    *card = (struct tt_stream_card){.device = stream->device, .stream_id = stream->id};
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return HOST_OK;
    tuttiHostCaptureStatus(handle, &status, &card->capture_id, &graph);
    card->capturing = status != TT_CAPTURE_NONE;
    return HOST_OK;
}

static int join_captured(struct CUstream_st *after, struct CUstream_st *before)
{
    struct CUevent_st *event = NULL;
    int device = host_thread.device;
    host_thread.device = before->device; /* events belong to a device */
    int rc = tuttiHostEventCreate(TT_EVENT_NO_TIMING, &event);
    host_thread.device = device;
    if (!rc) rc = tuttiHostEventRecord(event, before);
    if (!rc) rc = tuttiHostStreamWaitEvent(after, event);
    if (event) tuttiHostEventDestroy(event);
    return rc;
}

int tuttiHostStreamJoin(struct CUstream_st *after, struct CUstream_st *before)
{
    struct CUstream_st *waiter = host_stream_find(after);
    struct CUstream_st *first = host_stream_find(before);
    struct host_op op = {.kind = HOST_OP_WAIT};
    if (!waiter || !first) return host_bad_handle();
    if (waiter == first) return HOST_OK;
    if (!atomic_load_explicit(&first->capture, memory_order_relaxed)) {
        int rc = host_stream_end(first, &op.place);
        if (rc || host_place_reached(&op.place)) return rc;
    }
    if (atomic_load_explicit(&waiter->capture, memory_order_relaxed) ||
        atomic_load_explicit(&first->capture, memory_order_relaxed))
        return join_captured(waiter, first);
    return host_stream_append(waiter, &op);
}

/* ---- waiting ---- */

/* What forbids waiting for a stream: 900 capture (now invalid), 800 inside a host function. */
static int check_wait(struct CUstream_st *stream)
{
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        host_capture_invalidate(stream);
        return HOST_CAPTURE_UNSUPPORTED;
    }
    return host_thread.in_host_fn ? HOST_NOT_PERMITTED : HOST_OK;
}

/* Where a wait for the stream ends: for the legacy one also behind what it would wait for. */
static int end_of(struct CUstream_st *stream, struct host_place *place_out)
{
    if (stream->legacy) return host_stream_end(stream, place_out);
    uint64_t tail = atomic_load_explicit(&stream->tail, memory_order_seq_cst);
    *place_out = (struct host_place){stream, tail};
    return HOST_OK;
}

/* Nothing to wait for, and nothing that forbids to ask. */
static inline bool is_quiet(const struct CUstream_st *stream)
{
    return !stream->legacy && !atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
           !host_thread.in_host_fn && host_stream_idle(stream);
}

static int synchronize(struct CUstream_st *stream)
{
    struct host_place place;
    int rc = check_wait(stream);
    if (!rc) rc = end_of(stream, &place);
    if (!rc && !host_place_reached(&place)) host_wait_place(&place);
    return rc;
}

/* hot */
int tuttiHostStreamSynchronize(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    return is_quiet(stream) ? HOST_OK : synchronize(stream);
}

int tuttiHostStreamQuery(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_place place;
    struct host_place blocker = {NULL, 0};
    if (!stream) return host_bad_handle();
    if (is_quiet(stream)) return HOST_OK;
    int rc = check_wait(stream);
    if (!rc) rc = end_of(stream, &place);
    if (rc || host_place_reached(&place)) return rc;
    host_stream_run(stream, 0, &blocker);
    if (!host_place_reached(&place)) host_help(stream);
    return host_place_reached(&place) ? HOST_OK : HOST_NOT_READY;
}

int tuttiHostDeviceSynchronize(int device)
{
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (!host_device_count()) return HOST_NO_DEVICE;
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    if (host_thread.in_host_fn) return HOST_NOT_PERMITTED;
    host_streams_wait(device);
    return HOST_OK;
}
