/* The doors into a stream: items, sets, host functions (copies: copy.c); and waiting for a stream.
 * An idle stream runs the work inside the call; only what stays unfinished is queued. */
#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/stream/stream.h"

#include <stdlib.h>

/* hot */
enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out)
{
    struct CUstream_st *stream = host_stream_glance(handle);
    if (!stream) stream = host_stream_find(handle);
    if (!stream) return TT_CLAIM_INVALID;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) return TT_CLAIM_CAPTURING;
    if (host_checks() || !host_stream_claim_idle(stream)) return TT_CLAIM_BUSY;
    *stream_out = stream;
    return TT_CLAIM_TAKEN;
}

/* hot */
void tuttiHostClaimEnd(struct CUstream_st *stream)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_relaxed);
    host_stream_finish(stream, done + 1);
}

void tuttiHostClaimPark(struct CUstream_st *stream, struct tt_item *item)
{
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    host_stream_park(stream, &op);
}

int tuttiHostSubmit(struct CUstream_st *handle, struct tt_item *item, bool allow_inline)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    if (!stream) return host_bad_handle();
    if (host_checks()) host_check_item(stream, item);
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return host_capture_add(stream, &op);
    if (!allow_inline || !host_stream_claim_idle(stream)) return host_stream_append(stream, &op);
    if (item->step(item, TT_ITEM_STEP) != TT_STEP_DONE) return host_stream_park(stream, &op);
    item->step(item, TT_ITEM_RELEASE);
    host_stream_release(stream);
    return HOST_OK;
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

int tuttiHostSet(struct CUstream_st *handle, const struct tt_set *set)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_op op = {.kind = HOST_OP_SET, .set = *set};
    if (!stream) return host_bad_handle();
    if (!set->width || !set->height) return HOST_OK;
    bool fits = host_set_fits(&op);
    if (host_checks()) host_check_set(stream, set, fits);
    if (!fits) return HOST_INVALID_VALUE;
    return submit_op(stream, &op, set->width <= HOST_INLINE_BYTES / set->elem_bytes / set->height);
}

/* Never run here: it is left to waiters and workers, on an idle stream without the queue. */
int tuttiHostCall(struct CUstream_st *handle, void (*fn)(void *), void *arg)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    if (!fn) return HOST_INVALID_VALUE;
    if (host_checks()) host_check_call(stream, &fn, &arg);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    if (!capturing && host_stream_claim_idle(stream)) return host_stream_park_call(stream, fn, arg);
    struct host_op op = {.kind = HOST_OP_CALL, .call = {fn, arg}};
    return capturing ? host_capture_add(stream, &op) : host_stream_append(stream, &op);
}

/* ---- streams among each other ---- */

int tuttiHostStreamInfo(struct CUstream_st *handle, struct tt_stream_info *info)
{
    struct CUstream_st *stream = host_stream_find(handle);
    enum tt_capture_status status;
    struct CUgraph_st *graph;
    if (!stream) return host_bad_handle();
    *info = (struct tt_stream_info){.device = stream->device, .stream_id = stream->id};
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return HOST_OK;
    tuttiHostCaptureStatus(handle, &status, &info->capture_id, &graph);
    info->capturing = status != TT_CAPTURE_NONE;
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
    if (host_checks()) host_check_join(waiter, first);
    if (!atomic_load_explicit(&first->capture, memory_order_relaxed)) {
        int rc = host_stream_end(first, &op.position);
        if (rc || host_position_reached(&op.position)) return rc;
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

/* A stream with nothing to wait for, and nothing that forbids to ask. */
static inline bool is_quiet(struct CUstream_st *handle)
{
    const struct CUstream_st *stream = host_stream_glance(handle);
    return stream && !atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
           !host_thread.in_host_fn && host_stream_idle(stream) &&
           (!stream->legacy || !host_stream_conflicts(stream));
}

static struct host_position end_of(struct CUstream_st *stream)
{
    return (struct host_position){stream,
                                  atomic_load_explicit(&stream->line.tail, memory_order_seq_cst)};
}

/* Asking puts nothing on the legacy stream, which later work would have to wait for. */
static int synchronize_legacy(struct CUstream_st *legacy)
{
    struct host_positions *positions = NULL;
    int rc = host_legacy_ends(legacy, &positions);
    for (size_t i = 0; !rc && i < positions->count; i++) {
        host_wait_position(&positions->positions[i]);
    }
    free(positions);
    return rc;
}

/* Apart from its caller, which so needs no stack. */
static __attribute__((noinline)) int synchronize(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    int rc = check_wait(stream);
    if (rc) return rc;
    if (stream->legacy) return synchronize_legacy(stream);
    const struct host_position position = end_of(stream);
    struct host_position blocker = {NULL, 0};
    host_stream_run(stream, position.seq, &blocker); /* as a rule that is all */
    if (!host_position_reached(&position)) host_wait_position(&position);
    return HOST_OK;
}

/* hot */
int host_stream_synchronize(struct CUstream_st *handle)
{
    return is_quiet(handle) ? HOST_OK : synchronize(handle);
}

static __attribute__((noinline)) int synchronize_checked(struct CUstream_st *handle)
{
    int rc = host_stream_synchronize(handle);
    if (!rc) host_check_synced(host_stream_find(handle));
    return rc;
}

/* hot */
int tuttiHostStreamSynchronize(struct CUstream_st *handle)
{
    return host_checks() ? synchronize_checked(handle) : host_stream_synchronize(handle);
}

static int query_legacy(struct CUstream_st *legacy)
{
    struct host_positions *positions = NULL;
    struct host_share outer;
    int rc = host_legacy_ends(legacy, &positions);
    host_share_begin(&outer);
    for (size_t i = 0; !rc && i < positions->count; i++) {
        if (!host_ask_position(&positions->positions[i])) rc = HOST_NOT_READY;
    }
    host_share_end(&outer);
    free(positions);
    return rc;
}

static __attribute__((noinline)) int query(struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    int rc = check_wait(stream);
    if (rc) return rc;
    if (stream->legacy) return query_legacy(stream);
    const struct host_position position = end_of(stream);
    return host_ask_position(&position) ? HOST_OK : HOST_NOT_READY;
}

/* hot */
int tuttiHostStreamQuery(struct CUstream_st *handle)
{
    int rc = is_quiet(handle) ? HOST_OK : query(handle);
    if (host_checks() && !rc) host_check_synced(host_stream_find(handle));
    return rc;
}

int tuttiHostDeviceSynchronize(int device)
{
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (!host_device_count()) return HOST_NO_DEVICE;
    if (!host_device_info(device)) return HOST_INVALID_DEVICE;
    if (host_thread.in_host_fn) return HOST_NOT_PERMITTED;
    host_streams_wait(device);
    if (host_checks()) host_check_device_synced(device);
    return HOST_OK;
}
