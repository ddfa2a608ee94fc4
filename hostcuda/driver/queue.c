/* The driver interface: copies of rows and boxes, allocation in stream order, capture and launch of
 * graphs, questions about streams. Compiled twice, for the legacy and the per-thread default
 * stream. */
#include "../shared/shared.h"
#include "forward.h"

#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

/* ---- allocation in stream order ---- */

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaFreeAsync(tt_driver_ptr(ptr), stream));
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    if (!ptr || !len) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaMallocAsync(&address, len, stream));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t len, CUmemoryPool pool, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    if (!ptr || !len) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaMallocFromPoolAsync(&address, len, pool, stream));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

/* ---- copies of rows and boxes, between devices, in batches ---- */

static CUresult copy_boxes(const CUDA_MEMCPY3D *params)
{
    int kept = tuttiHostErrorPeek();
    struct cudaMemcpy3DParms boxes;
    int rc = tt_driver_boxes(params, &boxes);
    return rc ? tt_driver_done(rc) : tt_driver_forward(kept, cudaMemcpy3D(&boxes));
}

static CUresult copy_boxes_later(const CUDA_MEMCPY3D *params, CUstream stream)
{
    int kept = tuttiHostErrorPeek();
    struct cudaMemcpy3DParms boxes;
    int rc = tt_driver_boxes(params, &boxes);
    return rc ? tt_driver_done(rc) : tt_driver_forward(kept, cudaMemcpy3DAsync(&boxes, stream));
}

static CUDA_MEMCPY3D from_rows(const CUDA_MEMCPY2D *rows)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = rows->srcXInBytes,
                           .srcY = rows->srcY,
                           .srcMemoryType = rows->srcMemoryType,
                           .srcHost = rows->srcHost,
                           .srcDevice = rows->srcDevice,
                           .srcArray = rows->srcArray,
                           .srcPitch = rows->srcPitch,
                           .dstXInBytes = rows->dstXInBytes,
                           .dstY = rows->dstY,
                           .dstMemoryType = rows->dstMemoryType,
                           .dstHost = rows->dstHost,
                           .dstDevice = rows->dstDevice,
                           .dstArray = rows->dstArray,
                           .dstPitch = rows->dstPitch,
                           .WidthInBytes = rows->WidthInBytes,
                           .Height = rows->Height,
                           .Depth = 1};
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D boxes = from_rows(params);
    return copy_boxes(&boxes);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *params)
{
    return cuMemcpy2D(params);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *params, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D boxes = from_rows(params);
    return copy_boxes_later(&boxes, stream);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_boxes(params);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *params, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return copy_boxes_later(params, stream);
}

/* The contexts say what the addresses say as well. */
static int without_contexts(const CUDA_MEMCPY3D_PEER *peer, CUDA_MEMCPY3D *boxes)
{
    if (!peer) return CUDA_ERROR_INVALID_VALUE;
    if (tt_driver_ordinal(peer->srcContext) < 0 || tt_driver_ordinal(peer->dstContext) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    _Static_assert(sizeof(*peer) == sizeof(*boxes), "the same but for contexts");
    memcpy(boxes, peer, sizeof(*boxes));
    boxes->reserved0 = NULL;
    boxes->reserved1 = NULL;
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUDA_MEMCPY3D boxes;
    int rc = without_contexts(params, &boxes);
    return rc ? tt_driver_done(rc) : copy_boxes(&boxes);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *params, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUDA_MEMCPY3D boxes;
    int rc = without_contexts(params, &boxes);
    return rc ? tt_driver_done(rc) : copy_boxes_later(&boxes, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                      CUcontext src_context, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    int to = tt_driver_ordinal(dst_context), from = tt_driver_ordinal(src_context);
    if (to < 0 || from < 0) return CUDA_ERROR_INVALID_CONTEXT;
    return tt_driver_forward(kept,
                             cudaMemcpyPeer(tt_driver_ptr(dst), to, tt_driver_ptr(src), from, len));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t len, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    int to = tt_driver_ordinal(dst_context), from = tt_driver_ordinal(src_context);
    if (to < 0 || from < 0) return CUDA_ERROR_INVALID_CONTEXT;
    return tt_driver_forward(kept, cudaMemcpyPeerAsync(tt_driver_ptr(dst), to, tt_driver_ptr(src),
                                                       from, len, tt_driver_stream(stream)));
}

_Static_assert(sizeof(CUmemcpyAttributes) == sizeof(struct cudaMemcpyAttributes),
               "attributes of both interfaces");
_Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "addresses of both interfaces");

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                            CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const struct tt_face_batch batch = {.dsts = (void *const *)dsts,
                                        .srcs = (const void *const *)srcs,
                                        .lens = lens,
                                        .count = count,
                                        .attrs = (struct cudaMemcpyAttributes *)attrs,
                                        .attr_starts = attr_starts,
                                        .nattrs = nattrs};
    return tt_driver_done(tt_face_copy_batch(tt_driver_stream(stream), &batch, NULL));
}

/* ---- capture and launch of graphs ---- */

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamEndCapture(stream, graph));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphLaunch(exec, stream));
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphUpload(exec, stream));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                                     size_t count, CUstreamCaptureMode mode)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)edges; /* ports and types say when device code may go on; here an edge is an edge */
    return tt_driver_done(
        tuttiHostCaptureBeginInto(tt_driver_stream(stream), graph, dependencies, count, (int)mode));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies,
                                           const CUgraphEdgeData *edges, size_t count,
                                           unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)edges;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostCaptureSetTips(tt_driver_stream(stream), dependencies, count,
                                                  flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    cudaGraphInstantiateParams given = {.flags = params->flags,
                                        .uploadStream = params->hUploadStream};
    CUresult rc = tt_driver_forward(kept, cudaGraphInstantiateWithParams(exec, graph, &given));
    params->hErrNode_out = given.errNode_out;
    params->result_out = (CUgraphInstantiateResult)given.result_out;
    return rc;
}

/* ---- questions, attributes, callbacks, hints ---- */

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamGetFlags(stream, flags));
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamGetPriority(stream, priority));
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamGetId(stream, id));
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamGetDevice(stream, device));
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaStreamCopyAttributes(dst, src));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t len, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaStreamAttachMemAsync(stream, tt_driver_ptr(ptr), len, flags));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaEventRecordWithFlags(event, stream, flags));
}

_Static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaLaunchAttributeValue),
               "values of both interfaces");

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    int device = 0;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaStreamGetDevice(stream, &device));
    return rc ? rc : cuDevicePrimaryCtxRetain(context, device);
}

CUresult cuStreamGetAttribute(CUstream stream, CUlaunchAttributeID attr,
                              CUlaunchAttributeValue *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    cudaLaunchAttributeValue found;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(
        kept, cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)attr, &found));
    if (!rc) memcpy(value, &found, sizeof(*value));
    return rc;
}

CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attr,
                              const CUlaunchAttributeValue *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    cudaLaunchAttributeValue given;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&given, value, sizeof(given));
    return tt_driver_forward(kept,
                             cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)attr, &given));
}

struct callback {
    CUstreamCallback fn;
    CUstream stream;
    void *user_data;
};

static void run_callback(void *arg)
{
    struct callback *callback = arg;
    callback->fn(callback->stream, CUDA_SUCCESS, callback->user_data);
    free(callback);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *user_data,
                             unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_stream_info info;
    if (!fn || flags) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostStreamInfo(tt_driver_stream(stream), &info);
    if (!rc && info.capturing) rc = tuttiHostStreamQuery(tt_driver_stream(stream)); /* refuses */
    if (rc) return tt_driver_done(rc);
    struct callback *callback = malloc(sizeof(*callback));
    if (!callback) return CUDA_ERROR_OUT_OF_MEMORY;
    *callback = (struct callback){fn, stream, user_data};
    rc = tuttiHostCall(tt_driver_stream(stream), run_callback, callback);
    if (rc) free(callback);
    return tt_driver_done(rc);
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t len, CUmemLocation location, unsigned int flags,
                            CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const struct cudaMemLocation where = {(enum cudaMemLocationType)location.type, location.id};
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tt_face_prefetch(tt_driver_stream(stream), tt_driver_ptr(ptr), len,
                                           tt_face_location(&where)));
}
/* NOLINTEND(readability-non-const-parameter) */
