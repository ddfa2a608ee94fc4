/* The doors into a stream: items, sets, host functions (copies: copy.c); and waiting for a stream.
 * An idle stream runs the work inside the call; only what stays unfinished is queued. */
#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/stream/claim.h"

#include <stdlib.h>

/* hot */
enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out)
{
    struct CUstream_st *stream = tt_host_stream_glance(handle);
    if (!stream) stream = tt_host_stream_find(handle);
    if (!stream) return TT_CLAIM_INVALID;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) return TT_CLAIM_CAPTURING;
    if (tt_host_checks() || !tt_host_stream_claim_idle(stream)) return TT_CLAIM_BUSY;
    *stream_out = stream;
    return TT_CLAIM_TAKEN;
}

/* hot */
void tuttiHostClaimEnd(struct CUstream_st *stream)
{
    tt_host_stream_release(stream);
}

void tuttiHostClaimPark(struct CUstream_st *stream, struct tt_item *item)
{
    atomic_store_explicit(&stream->asks_one, item->asks_one, memory_order_relaxed);
    struct tt_host_op op = {.kind = TT_HOST_OP_ITEM, .item = item};
    tt_host_stream_park(stream, &op);
}

int tuttiHostSubmit(struct CUstream_st *handle, struct tt_item *item, bool allow_inline)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    struct tt_host_op op = {.kind = TT_HOST_OP_ITEM, .item = item};
    if (!stream) return tt_host_bad_handle();
    atomic_store_explicit(&stream->asks_one, item->asks_one, memory_order_relaxed);
    if (tt_host_checks()) tt_host_check_item(stream, item);
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return tt_host_capture_add(stream, &op);
    if (!allow_inline || !tt_host_stream_claim_idle(stream))
        return tt_host_stream_append(stream, &op);
    if (item->step(item, TT_ITEM_STEP) != TT_STEP_DONE) return tt_host_stream_park(stream, &op);
    item->step(item, TT_ITEM_RELEASE);
    tt_host_stream_release(stream);
    return TT_HOST_OK;
}

/* An operation that ends in one step when it is run here. */
static int submit_op(struct CUstream_st *stream, struct tt_host_op *op, bool allow_inline)
{
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return tt_host_capture_add(stream, op);
    if (allow_inline && tt_host_stream_claim_idle(stream)) {
        tt_host_op_step(op, false);
        tt_host_op_drop(op);
        tt_host_stream_release(stream);
        return TT_HOST_OK;
    }
    return tt_host_stream_append(stream, op);
}

int tuttiHostSet(struct CUstream_st *handle, const struct tt_set *set)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    struct tt_host_op op = {.kind = TT_HOST_OP_SET, .set = *set};
    if (!stream) return tt_host_bad_handle();
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    if (!set->width || !set->height) return TT_HOST_OK;
    bool fits = tt_host_set_fits(&op);
    if (tt_host_checks()) tt_host_check_set(stream, set, fits);
    if (!fits) return TT_HOST_INVALID_VALUE;
    return submit_op(stream, &op,
                     set->width <= TT_HOST_INLINE_BYTES / set->elem_bytes / set->height);
}

bool tuttiHostSetFits(const struct tt_set *set)
{
    const struct tt_host_op op = {.kind = TT_HOST_OP_SET, .set = *set};
    bool fits = tt_host_set_fits(&op);
    if (!fits && tt_host_checks()) tt_host_check_set(NULL, set, false);
    return fits;
}

/* Never run here: it is left to waiters and workers, on an idle stream without the queue. */
int tuttiHostCall(struct CUstream_st *handle, void (*fn)(void *), void *arg)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    if (!fn) return TT_HOST_INVALID_VALUE;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    if (tt_host_checks()) tt_host_check_call(stream, &fn, &arg);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    if (!capturing && tt_host_stream_claim_idle(stream))
        return tt_host_stream_park_call(stream, fn, arg);
    struct tt_host_op op = {.kind = TT_HOST_OP_CALL, .call = {fn, arg}};
    return capturing ? tt_host_capture_add(stream, &op) : tt_host_stream_append(stream, &op);
}

/* ---- streams among each other ---- */

int tuttiHostStreamInfo(struct CUstream_st *handle, struct tt_stream_info *info)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    enum tt_capture_status status;
    struct CUgraph_st *graph;
    if (!stream) return tt_host_bad_handle();
    *info = (struct tt_stream_info){.device = stream->device, .stream_id = stream->id};
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return TT_HOST_OK;
    tuttiHostCaptureStatus(handle, &status, &info->capture_id, &graph);
    info->capturing = status != TT_CAPTURE_NONE;
    return TT_HOST_OK;
}

static int join_captured(struct CUstream_st *after, struct CUstream_st *before)
{
    struct CUevent_st *event = NULL;
    int device = tt_host_thread.device;
    tt_host_thread.device = before->device; /* events belong to a device */
    int rc = tuttiHostEventCreate(TT_EVENT_NO_TIMING, &event);
    tt_host_thread.device = device;
    if (!rc) rc = tuttiHostEventRecord(event, before);
    if (!rc) rc = tuttiHostStreamWaitEvent(after, event);
    if (event) tuttiHostEventDestroy(event);
    return rc;
}

int tuttiHostStreamJoin(struct CUstream_st *after, struct CUstream_st *before)
{
    struct CUstream_st *waiter = tt_host_stream_find(after);
    struct CUstream_st *first = tt_host_stream_find(before);
    struct tt_host_op op = {.kind = TT_HOST_OP_WAIT};
    if (!waiter || !first) return tt_host_bad_handle();
    if (waiter == first) return TT_HOST_OK;
    if (tt_host_checks()) tt_host_check_join(waiter, first);
    if (!atomic_load_explicit(&first->capture, memory_order_relaxed)) {
        int rc = tt_host_stream_end(first, &op.position);
        if (rc || tt_host_position_reached(&op.position)) return rc;
    }
    if (atomic_load_explicit(&waiter->capture, memory_order_relaxed) ||
        atomic_load_explicit(&first->capture, memory_order_relaxed))
        return join_captured(waiter, first);
    return tt_host_stream_append(waiter, &op);
}

/* ---- waiting ---- */

/* What forbids waiting for a stream: 900 capture (now invalid), 800 inside a host function. */
static int check_wait(struct CUstream_st *stream)
{
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        tt_host_capture_invalidate(stream);
        return TT_HOST_CAPTURE_UNSUPPORTED;
    }
    return tt_host_thread.in_host_fn ? TT_HOST_NOT_PERMITTED : TT_HOST_OK;
}

/* A stream with nothing to wait for, and nothing that forbids to ask. */
static inline bool is_quiet(struct CUstream_st *handle)
{
    const struct CUstream_st *stream = tt_host_stream_glance(handle);
    return stream && !atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
           !tt_host_thread.in_host_fn && tt_host_stream_idle(stream) &&
           (!stream->legacy || !tt_host_stream_conflicts(stream));
}

static struct tt_host_position end_of(struct CUstream_st *stream)
{
    return (struct tt_host_position){
        stream, atomic_load_explicit(&stream->line.tail, memory_order_seq_cst)};
}

/* Asking puts nothing on the legacy stream, which later work would have to wait for. */
static int synchronize_legacy(struct CUstream_st *legacy)
{
    struct tt_host_positions *positions = NULL;
    int rc = tt_host_legacy_ends(legacy, &positions);
    for (size_t i = 0; !rc && i < positions->count; i++) {
        tt_host_wait_position(&positions->positions[i]);
    }
    free(positions);
    return rc;
}

/* Apart from its caller, which so needs no stack. */
static __attribute__((noinline)) int synchronize(struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    int rc = check_wait(stream);
    if (rc) return rc;
    if (stream->legacy) return synchronize_legacy(stream);
    const struct tt_host_position position = end_of(stream);
    struct tt_host_position blocker = {NULL, 0};
    tt_host_stream_run(stream, position.seq, &blocker); /* as a rule that is all */
    if (!tt_host_position_reached(&position)) tt_host_wait_position(&position);
    return TT_HOST_OK;
}

/* hot */
int tt_host_stream_synchronize(struct CUstream_st *handle)
{
    return is_quiet(handle) ? TT_HOST_OK : synchronize(handle);
}

static __attribute__((noinline)) int synchronize_checked(struct CUstream_st *handle)
{
    int rc = tt_host_stream_synchronize(handle);
    if (!rc) tt_host_check_synced(tt_host_stream_find(handle));
    return rc;
}

/* hot */
int tuttiHostStreamSynchronize(struct CUstream_st *handle)
{
    return tt_host_checks() ? synchronize_checked(handle) : tt_host_stream_synchronize(handle);
}

static int query_legacy(struct CUstream_st *legacy)
{
    struct tt_host_positions *positions = NULL;
    struct tt_host_share outer;
    int rc = tt_host_legacy_ends(legacy, &positions);
    tt_host_share_begin(&outer);
    for (size_t i = 0; !rc && i < positions->count; i++) {
        if (!tt_host_ask_position(&positions->positions[i])) rc = TT_HOST_NOT_READY;
    }
    tt_host_share_end(&outer);
    free(positions);
    return rc;
}

static __attribute__((noinline)) int query(struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    int rc = check_wait(stream);
    if (rc) return rc;
    if (stream->legacy) return query_legacy(stream);
    const struct tt_host_position position = end_of(stream);
    return tt_host_ask_position(&position) ? TT_HOST_OK : TT_HOST_NOT_READY;
}

/* hot */
int tuttiHostStreamQuery(struct CUstream_st *handle)
{
    int rc = is_quiet(handle) ? TT_HOST_OK : query(handle);
    if (tt_host_checks() && !rc) tt_host_check_synced(tt_host_stream_find(handle));
    return rc;
}

int tuttiHostStreamAllows(struct CUstream_st *handle)
{
    int rc = is_quiet(handle) ? TT_HOST_OK : query(handle);
    return rc == TT_HOST_NOT_READY ? TT_HOST_OK : rc;
}

int tuttiHostDeviceSynchronize(int device)
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (!tt_host_device_count()) return TT_HOST_NO_DEVICE;
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    if (tt_host_thread.in_host_fn) return TT_HOST_NOT_PERMITTED;
    tt_host_streams_wait(device);
    if (tt_host_checks()) tt_host_check_device_synced(device);
    return TT_HOST_OK;
}
