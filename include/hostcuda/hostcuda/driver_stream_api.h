/* Stream-ordered functions of the driver API: allocation, copies, capture and launch of graphs,
 * attributes. Part of cuda.h. */
#ifndef TUTTI_HOSTCUDA_DRIVER_STREAM_API_H_
#define TUTTI_HOSTCUDA_DRIVER_STREAM_API_H_

#include "driver_graph_types.h"
#include "driver_rename.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user_data);

/* ---- stream-ordered allocation ---- */
CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t len, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t len, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);

/* ---- 2D, 3D, peer and batched copies ---- */
CUresult cuMemcpy2D(const CUDA_MEMCPY2D *params);
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *params);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *params, CUstream stream);
CUresult cuMemcpy3D(const CUDA_MEMCPY3D *params);
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *params, CUstream stream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *params);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *params, CUstream stream);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                      CUcontext src_context, size_t len);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t len, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                            CUstream stream);

/* ---- capture and launch of graphs ---- */
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                                     size_t count, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies,
                                           const CUgraphEdgeData *edges, size_t count,
                                           unsigned int flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params);

/* ---- queries, attributes, callbacks, hints ---- */
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamCopyAttributes(CUstream dst, CUstream src);
CUresult cuStreamGetAttribute(CUstream stream, CUlaunchAttributeID attr,
                              CUlaunchAttributeValue *value);
CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attr,
                              const CUlaunchAttributeValue *value);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *user_data,
                             unsigned int flags);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t len, unsigned int flags);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t len, CUmemLocation location, unsigned int flags,
                            CUstream stream);

#ifdef __cplusplus
}
#endif

#endif
