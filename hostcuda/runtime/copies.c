/* Copies and fills. Compiled twice, for the legacy and the per-thread default stream. What CUDA
 * promises about pageable memory, tuttiHostCopy() does: a copy from or to it is done when the call
 * returns. */
#include "../shared/face.h"
#include "../shared/shared.h"

#include "device/host/host_graph.h"
#include "device/host/host_kernel.h"

static int check_copy(const struct tt_copy *copy, int kind)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (copy->width && copy->height && (!copy->dst || !copy->src)) return cudaErrorInvalidValue;
    if (copy->height > 1 && (copy->width > copy->dst_pitch || copy->width > copy->src_pitch))
        return cudaErrorInvalidPitchValue;
    return cudaSuccess;
}

/* A call without a stream means the default one, and a capture of this thread forbids it. */
static int default_stream(struct CUstream_st **stream)
{
    *stream = tt_face_stream(NULL);
    return tuttiHostCaptureUnsafe() ? cudaErrorStreamCaptureImplicit
                                    : tt_face_device(tuttiHostGetDevice());
}

static int copy_now(const struct tt_copy *copy, int kind)
{
    struct CUstream_st *stream = NULL;
    int rc = check_copy(copy, kind);
    if (!rc) rc = default_stream(&stream);
    if (rc) return rc;
    if (kind == cudaMemcpyDeviceToDevice)
        return tuttiHostCopy(stream, copy); /* the caller does not wait */
    return tuttiHostCopyNow(stream, copy);
}

static int copy_later(const struct tt_copy *copy, int kind, cudaStream_t stream)
{
    int rc = check_copy(copy, kind);
    return rc ? rc : tuttiHostCopy(tt_face_stream(stream), copy);
}

static inline int check_bytes(const void *dst, const void *src, size_t len,
                              enum cudaMemcpyKind kind)
{
    if ((unsigned)kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    return len && (!dst || !src) ? cudaErrorInvalidValue : cudaSuccess;
}

/* hot */
cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind)
{
    struct CUstream_st *stream = NULL;
    int rc = check_bytes(dst, src, len, kind);
    if (!rc) rc = default_stream(&stream);
    if (rc) return tt_face_done(rc);
    if (kind == cudaMemcpyDeviceToDevice) /* the caller does not wait */
        return tt_face_done(tuttiHostCopyBytes(stream, dst, src, len));
    return tt_face_done(tuttiHostCopyBytesNow(stream, dst, src, len));
}

/* hot */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    int rc = check_bytes(dst, src, len, kind);
    return tt_face_done(rc ? rc : tuttiHostCopyBytes(tt_face_stream(stream), dst, src, len));
}

/* 0 rows are nothing; to the device room they would be a plain copy. */
static struct tt_copy plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            struct cudaExtent extent)
{
    return (struct tt_copy){.dst = dst,
                            .src = src,
                            .dst_pitch = dst_pitch,
                            .src_pitch = src_pitch,
                            .width = extent.height ? extent.width : 0,
                            .height = extent.height};
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    const struct cudaExtent extent = {width, height, 1};
    const struct tt_copy copy = plane(dst, dst_pitch, src, src_pitch, extent);
    if (width > dst_pitch || width > src_pitch) return tt_face_done(cudaErrorInvalidPitchValue);
    return tt_face_done(copy_now(&copy, (int)kind));
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    const struct cudaExtent extent = {width, height, 1};
    const struct tt_copy copy = plane(dst, dst_pitch, src, src_pitch, extent);
    if (width > dst_pitch || width > src_pitch) return tt_face_done(cudaErrorInvalidPitchValue);
    return tt_face_done(copy_later(&copy, (int)kind, stream));
}

/* ---- boxes ---- */

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params)
{
    struct CUstream_st *stream;
    struct tt_copy copy;
    int rc = params ? default_stream(&stream) : cudaErrorInvalidValue;
    if (!rc) rc = tt_face_boxes(params, &copy);
    return tt_face_done(rc ? rc : tuttiHostCopyNow(stream, &copy));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
    struct tt_copy copy;
    int rc = params ? tt_face_boxes(params, &copy) : (int)cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : tuttiHostCopy(tt_face_stream(stream), &copy));
}

static struct cudaMemcpy3DParms without_devices(const struct cudaMemcpy3DPeerParms *peer)
{
    return (struct cudaMemcpy3DParms){.srcArray = peer->srcArray,
                                      .srcPos = peer->srcPos,
                                      .srcPtr = peer->srcPtr,
                                      .dstArray = peer->dstArray,
                                      .dstPos = peer->dstPos,
                                      .dstPtr = peer->dstPtr,
                                      .extent = peer->extent,
                                      .kind = cudaMemcpyDefault};
}

static int check_peers(const struct cudaMemcpy3DPeerParms *peer)
{
    int rc = peer ? tt_face_device(peer->srcDevice) : cudaErrorInvalidValue;
    return rc ? rc : tt_face_device(peer->dstDevice);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *peer)
{
    int rc = check_peers(peer);
    if (rc) return tt_face_done(rc);
    struct cudaMemcpy3DParms params = without_devices(peer);
    return cudaMemcpy3D(&params);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *peer, cudaStream_t stream)
{
    int rc = check_peers(peer);
    if (rc) return tt_face_done(rc);
    struct cudaMemcpy3DParms params = without_devices(peer);
    return cudaMemcpy3DAsync(&params, stream);
}

/* ---- fills ---- */

static int check_fill(const struct tt_set *fill)
{
    if (fill->width && fill->height && !fill->ptr) return cudaErrorInvalidValue;
    return fill->height > 1 && fill->width > fill->pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
}

static int fill_in_order(const struct tt_set *fill, struct CUstream_st *stream)
{
    int rc = check_fill(fill);
    return rc ? rc : tuttiHostSet(stream, fill);
}

static cudaError_t fill_default(const struct tt_set *fill)
{
    struct CUstream_st *stream;
    int rc = default_stream(&stream);
    if (!rc) rc = fill_in_order(fill, stream);
    return tt_face_done(rc ? rc : tt_face_fill_seen(fill->ptr, stream));
}

static cudaError_t fill_later(const struct tt_set *fill, cudaStream_t stream)
{
    return tt_face_done(fill_in_order(fill, tt_face_stream(stream)));
}

cudaError_t cudaMemset(void *ptr, int value, size_t len)
{
    return fill_default(&(struct tt_set){ptr, (unsigned char)value, 1, len, len, 1});
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t len, cudaStream_t stream)
{
    return fill_later(&(struct tt_set){ptr, (unsigned char)value, 1, len, len, 1}, stream);
}

cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
    return fill_default(&(struct tt_set){ptr, (unsigned char)value, 1, pitch, width, height});
}

cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return fill_later(&(struct tt_set){ptr, (unsigned char)value, 1, pitch, width, height}, stream);
}

/* All of a box, before the first slice is filled: the rows from its first to its last one. */
static int check_slices(const struct tt_set *slice, size_t rows, size_t depth)
{
    struct tt_set all = *slice;
    if (__builtin_mul_overflow(rows, depth - 1, &all.height) ||
        __builtin_add_overflow(all.height, slice->height, &all.height))
        return cudaErrorInvalidValue;
    return tuttiHostSetFits(&all) ? cudaSuccess : cudaErrorInvalidValue;
}

static int fill_box(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent,
                    struct CUstream_st *stream)
{
    struct tt_set fill = {ptr.ptr, (unsigned char)value, 1, ptr.pitch, extent.width, extent.height};
    bool empty = !extent.width || !extent.height || !extent.depth;
    size_t slice = 0;
    if (empty) return cudaSuccess;
    if (extent.depth > 1 && extent.height > ptr.ysize) return cudaErrorInvalidValue;
    if (__builtin_mul_overflow(ptr.pitch, ptr.ysize, &slice)) return cudaErrorInvalidValue;
    int rc = check_fill(&fill);
    if (!rc && extent.depth > 1 && extent.width > ptr.pitch) rc = cudaErrorInvalidPitchValue;
    if (!rc && extent.depth > 1) rc = check_slices(&fill, ptr.ysize, extent.depth);
    for (size_t z = 0; !rc && z < extent.depth; z++) {
        rc = fill_in_order(&fill, stream);
        fill.ptr = (char *)fill.ptr + slice;
    }
    return rc;
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent)
{
    struct CUstream_st *stream;
    int rc = default_stream(&stream);
    if (!rc) rc = fill_box(ptr, value, extent, stream);
    return tt_face_done(rc ? rc : tt_face_fill_seen(ptr.ptr, stream));
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    return tt_face_done(fill_box(ptr, value, extent, tt_face_stream(stream)));
}

/* ---- device variables: their host shadow is the storage ---- */

/* A variable is the device's side of the copy. */
static bool leads_there(int kind, int direction)
{
    return kind == direction || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

static int variable_part(const void *symbol, size_t offset, size_t len, char **part)
{
    size_t bytes;
    if (!tuttiHostVariable(symbol, &bytes)) return cudaErrorInvalidSymbol;
    if (offset > bytes || len > bytes - offset) return cudaErrorInvalidValue;
    *part = (char *)(uintptr_t)symbol + offset;
    return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t len, size_t offset,
                               enum cudaMemcpyKind kind)
{
    char *part;
    int rc = variable_part(symbol, offset, len, &part);
    if (!rc && !leads_there((int)kind, cudaMemcpyHostToDevice))
        rc = cudaErrorInvalidMemcpyDirection;
    return rc ? tt_face_done(rc) : cudaMemcpy(part, src, len, kind);
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t len, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    char *part;
    int rc = variable_part(symbol, offset, len, &part);
    if (!rc && !leads_there((int)kind, cudaMemcpyDeviceToHost))
        rc = cudaErrorInvalidMemcpyDirection;
    return rc ? tt_face_done(rc) : cudaMemcpy(dst, part, len, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t len, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *part;
    int rc = variable_part(symbol, offset, len, &part);
    if (!rc && !leads_there((int)kind, cudaMemcpyHostToDevice))
        rc = cudaErrorInvalidMemcpyDirection;
    return rc ? tt_face_done(rc) : cudaMemcpyAsync(part, src, len, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t len, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *part;
    int rc = variable_part(symbol, offset, len, &part);
    if (!rc && !leads_there((int)kind, cudaMemcpyDeviceToHost))
        rc = cudaErrorInvalidMemcpyDirection;
    return rc ? tt_face_done(rc) : cudaMemcpyAsync(dst, part, len, kind, stream);
}
