/* The doors into a stream: items, copies, sets, host functions; and waiting for a stream. An idle
 * stream runs the work inside the call; only what stays unfinished is queued. */
#include "stream.h"

#include "base/arch/arch.h"

#include <stddef.h>

/* Polls that an inline item may wait, and ticks (about 2 us at 3 GHz) that it may work. */
enum { INLINE_POLLS = 200, INLINE_TICKS = 6000 };

static int run_inline(struct CUstream_st *stream, struct tt_item *item)
{
    enum tt_step step = item->step(item, TT_ITEM_STEP);
    if (step != TT_STEP_DONE && !host_crowded()) {
        uint64_t until = tt_cpu_ticks() + INLINE_TICKS;
        for (int polls = 0; step != TT_STEP_DONE && polls < INLINE_POLLS; polls++) {
            step = item->step(item, TT_ITEM_STEP);
            if (tt_cpu_ticks() > until) break;
        }
    }
    if (step == TT_STEP_DONE) {
        host_stream_release(stream);
        item->step(item, TT_ITEM_RELEASE);
        return HOST_OK;
    }
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    return host_stream_park(stream, &op);
}

int tuttiHostSubmit(struct CUstream_st *handle, struct tt_item *item, bool allow_inline)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, &op);
    if (allow_inline && host_stream_claim_idle(stream)) return run_inline(stream, item);
    return host_stream_append(stream, &op);
}

/* An operation that ends in one step. */
static int submit_op(struct CUstream_st *handle, struct host_op *op)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, op);
    if (op->kind != HOST_OP_CALL && host_stream_claim_idle(stream)) {
        host_op_step(op, false);
        host_stream_release(stream);
        return HOST_OK;
    }
    return host_stream_append(stream, op);
}

int tuttiHostCopy(struct CUstream_st *stream, const struct tt_copy *copy)
{
    struct host_op op = {.kind = HOST_OP_COPY, .copy = *copy};
    if (!copy->width || !copy->height) return HOST_OK;
    return submit_op(stream, &op);
}

int tuttiHostSet(struct CUstream_st *stream, void *ptr, unsigned value, unsigned elem_bytes,
                 size_t pitch, size_t width, size_t height)
{
    struct host_op op = {.kind = HOST_OP_SET,
                         .set = {ptr, value, elem_bytes, pitch, width, height}};
    if (!width || !height) return HOST_OK;
    return submit_op(stream, &op);
}

int tuttiHostCall(struct CUstream_st *stream, void (*fn)(void *), void *arg)
{
    struct host_op op = {.kind = HOST_OP_CALL, .call = {fn, arg}};
    return submit_op(stream, &op);
}

int tuttiHostStreamCard(struct CUstream_st *handle, struct tt_stream_card *card)
{
    struct CUstream_st *stream = host_stream_find(handle);
    enum tt_capture_status status;
    struct CUgraph_st *graph;
    if (!stream) return HOST_BAD_HANDLE;
    *card = (struct tt_stream_card){.device = stream->device, .stream_id = stream->id};
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return HOST_OK;
    tuttiHostCaptureStatus(handle, &status, &card->capture_id, &graph);
    card->capturing = status != TT_CAPTURE_NONE;
    return HOST_OK;
}

int tuttiHostStreamJoin(struct CUstream_st *after, struct CUstream_st *before)
{
    struct CUevent_st *event = NULL;
    int rc = tuttiHostEventCreate(TT_EVENT_NO_TIMING, &event);
    if (!rc) rc = tuttiHostEventRecord(event, before);
    if (!rc) rc = tuttiHostStreamWaitEvent(after, event);
    if (event) tuttiHostEventDestroy(event);
    return rc;
}

/* ---- waiting ---- */

static bool stream_done(void *arg)
{
    return host_stream_idle(arg);
}

static bool device_idle(struct CUstream_st *stream, void *arg)
{
    return stream->device == *(const int *)arg &&
           !host_stream_idle(stream); /* found a busy one: stop */
}

static bool device_done(void *arg)
{
    return !host_streams_visit(device_idle, arg);
}

struct legacy_wait {
    int device;
};

static bool blocking_busy(struct CUstream_st *stream, void *arg)
{
    const struct legacy_wait *wait = arg;
    bool counts = stream->device == wait->device && !(stream->flags & TT_STREAM_NON_BLOCKING);
    return counts && !host_stream_idle(stream);
}

static bool legacy_done(void *arg)
{
    return !host_streams_visit(blocking_busy, arg);
}

int tuttiHostStreamSynchronize(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        host_capture_invalidate(stream);
        return HOST_CAPTURE_UNSUPPORTED;
    }
    if (stream->legacy && atomic_load_explicit(&host_busy_streams, memory_order_acquire)) {
        struct legacy_wait wait = {stream->device};
        host_wait_until(legacy_done, &wait, stream);
        return HOST_OK;
    }
    if (!host_stream_idle(stream)) host_wait_until(stream_done, stream, stream);
    return HOST_OK;
}

int tuttiHostStreamQuery(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        host_capture_invalidate(stream);
        return HOST_CAPTURE_UNSUPPORTED;
    }
    if (host_stream_idle(stream)) return HOST_OK;
    host_stream_run(stream, false);
    tuttiHostHelp();
    return host_stream_idle(stream) ? HOST_OK : HOST_NOT_READY;
}

int tuttiHostDeviceSynchronize(int device)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    if (atomic_load_explicit(&host_busy_streams, memory_order_acquire))
        host_wait_until(device_done, &device, NULL);
    return HOST_OK;
}

int tuttiHostDeviceReset(int device)
{
    return tuttiHostDeviceSynchronize(device);
}
