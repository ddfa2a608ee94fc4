/* Earlier and later forms of the driver's functions about streams, contexts and hints than the
 * headers' names stand for. */
#include "../shared/shared.h"
#include "forward.h"

#include <stdlib.h>

#undef cuEventElapsedTime
#undef cuStreamBeginCapture
#undef cuStreamUpdateCaptureDependencies
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuMemcpyBatchAsync

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

struct CUexecAffinityParam_st;
struct CUgreenCtx_st;

#pragma GCC visibility push(default)
CUresult cuCtxCreate_v3(CUcontext *context, struct CUexecAffinityParam_st *params, int nparams,
                        unsigned int flags, CUdevice device);
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuEventElapsedTime_v2(float *msec, CUevent start, CUevent end);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, struct CUgreenCtx_st **green);
CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, struct CUgreenCtx_st **green);
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCapture_ptsz(CUstream stream);
CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                           unsigned int flags);
CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *nodes, size_t count,
                                                unsigned int flags);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t len, CUmem_advise advice, CUdevice device);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t len, CUdevice device, CUstream stream);
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t len, CUdevice device, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                            size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                                 size_t *failed, CUstream stream);
#pragma GCC visibility pop

static CUstream own(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuCtxCreate_v3(CUcontext *context, struct CUexecAffinityParam_st *params, int nparams,
                        unsigned int flags, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)params;
    if (nparams) return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int found = tt_driver_ordinal(context);
    if (found < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = found;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = tt_driver_ordinal(context);
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    int rc = tuttiHostCaptureUnsafe();
    if (!rc) rc = tuttiHostCaptureOfDevice(device);
    return tt_driver_done(rc ? rc : tuttiHostDeviceSynchronize(device));
}

CUresult cuEventElapsedTime_v2(float *msec, CUevent start, CUevent end)
{
    return cuEventElapsedTime(msec, start, end);
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, struct CUgreenCtx_st **green)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult rc = cuStreamGetCtx(stream, context);
    if (!rc && green) *green = NULL; /* no stream is of a green one */
    return rc;
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, struct CUgreenCtx_st **green)
{
    return cuStreamGetCtx_v2(own(stream), context, green);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
    return cuStreamBeginCapture(own(stream));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                           unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *nodes, size_t count,
                                                unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies(own(stream), nodes, count, flags);
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t len, CUmem_advise advice, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_advise(tt_driver_ptr(ptr), len, (int)advice, device));
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t len, CUdevice device, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_prefetch(stream, tt_driver_ptr(ptr), len, device));
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t len, CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync(ptr, len, device, own(stream));
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                            size_t *failed, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const struct tt_face_batch batch = {.dsts = (void *const *)dsts,
                                        .srcs = (const void *const *)srcs,
                                        .lens = lens,
                                        .count = count,
                                        .attrs = (struct cudaMemcpyAttributes *)attrs,
                                        .attr_starts = attr_starts,
                                        .nattrs = nattrs};
    return tt_driver_done(tt_face_copy_batch(stream, &batch, failed));
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *lens, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attr_starts, size_t nattrs,
                                 size_t *failed, CUstream stream)
{
    return cuMemcpyBatchAsync(dsts, srcs, lens, count, attrs, attr_starts, nattrs, failed,
                              own(stream));
}
/* NOLINTEND(readability-non-const-parameter) */
