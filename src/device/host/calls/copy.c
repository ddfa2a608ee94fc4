/* Copies into a stream. Most are plain bytes between allocations of devices on an idle stream: they
 * are checked and made inside the call, with as few lines read as can be, since a copy of 16 KiB
 * has just swept them out of the first cache. Everything else goes the long way. */
#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/memory/bytes.h"
#include "device/host/memory/memory.h"
#include "device/host/stream/claim.h"

static int copy_boxes(struct CUstream_st *stream, const struct tt_copy *copy, bool waits)
{
    struct tt_host_op op = {.kind = TT_HOST_OP_COPY, .copy = *copy};
    struct tt_host_position position;
    if (!op.copy.height) op.copy.height = 1;
    if (!op.copy.depth) op.copy.depth = 1;
    if (!copy->width) return TT_HOST_OK;
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    if (capturing) return tt_host_capture_add(stream, &op);
    bool here = waits || copy->width <= TT_HOST_INLINE_BYTES / op.copy.height / op.copy.depth;
    bool blocks = !here && tt_host_copy_blocks(&op.copy);
    if ((here || blocks) && tt_host_stream_claim_idle(stream)) {
        while (tt_host_op_step(&op, false) != TT_STEP_DONE) {
        }
        tt_host_stream_release(stream);
        return TT_HOST_OK;
    }
    if (here && !waits) blocks = tt_host_copy_blocks(&op.copy);
    if (blocks && tt_host_thread.in_host_fn) return TT_HOST_NOT_PERMITTED;
    int rc = tt_host_stream_append_at(stream, &op, &position);
    if (!rc && blocks) tt_host_wait_position(&position);
    return rc;
}

static int submit_copy(struct CUstream_st *handle, const struct tt_copy *copy, bool waits)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    bool fits = tt_host_copy_fits(copy);
    if (tt_host_checks()) tt_host_check_copy(stream, copy, waits, fits);
    return fits ? copy_boxes(stream, copy, waits) : TT_HOST_INVALID_VALUE;
}

/* True: done. Else nothing was done, be it for an error or for a reason to go the long way.   hot
 */
static inline bool copies_at_once(struct CUstream_st *handle, void *dst, const void *src,
                                  size_t bytes)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream || bytes > TT_HOST_INLINE_BYTES || tt_host_checks() ||
        atomic_load_explicit(&stream->capture, memory_order_relaxed) ||
        bytes > tt_host_device_room(dst) || bytes > tt_host_device_room(src) ||
        !tt_host_stream_claim_idle(stream))
        return false;
    tt_host_bytes_copy(dst, src, bytes, bytes);
    tt_host_stream_release(stream);
    return true;
}

/* The long way, apart from its callers, which so need little stack. */
static __attribute__((noinline)) int submit_plain(struct CUstream_st *stream, void *dst,
                                                  const void *src, size_t bytes, bool waits)
{
    const struct tt_copy copy = {.dst = dst,
                                 .src = src,
                                 .dst_pitch = bytes,
                                 .src_pitch = bytes,
                                 .width = bytes,
                                 .height = 1};
    return waits ? tuttiHostCopyNow(stream, &copy) : tuttiHostCopy(stream, &copy);
}

int tuttiHostCopyBytes(struct CUstream_st *stream, void *dst, const void *src, size_t bytes)
{
    if (copies_at_once(stream, dst, src, bytes)) return TT_HOST_OK;
    return submit_plain(stream, dst, src, bytes, false);
}

int tuttiHostCopyBytesNow(struct CUstream_st *stream, void *dst, const void *src, size_t bytes)
{
    /* nothing else was on the stream then */
    if (!tt_host_thread.in_host_fn && copies_at_once(stream, dst, src, bytes)) return TT_HOST_OK;
    return submit_plain(stream, dst, src, bytes, true);
}

int tuttiHostCopy(struct CUstream_st *stream, const struct tt_copy *copy)
{
    return submit_copy(stream, copy, false);
}

int tuttiHostCopyNow(struct CUstream_st *stream, const struct tt_copy *copy)
{
    int rc = submit_copy(stream, copy, true);
    return rc ? rc : tt_host_stream_synchronize(stream);
}
