/* The driver interface: contexts that a program makes, and settings and questions of devices and
 * kernels that are kept or answered alike by all. */
#include "../shared/loading.h"
#include "forward.h"

#pragma GCC visibility push(default)
#include "cudaProfiler.h"
#pragma GCC visibility pop

#include "device/host/host_face.h"
#include "device/host/host_kernel.h"

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

/* ---- contexts: one per device, which is never made and never goes ---- */

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceSetLimit((enum cudaLimit)limit, value));
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceSetCacheConfig((enum cudaFuncCache)config));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceGetStreamPriorityRange(least, greatest));
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGetDeviceFlags(flags));
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaSetDeviceFlags(flags));
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaCtxResetPersistingL2Cache());
}

/* A context that is asked for is the device's, and becomes current. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const unsigned known =
        CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS;
    if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cuDevicePrimaryCtxRetain(context, device);
    return rc ? rc : cuCtxPushCurrent_v2(*context);
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                     CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (params && (params->numExecAffinityParams || params->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v2(context, flags, device);
}

/* What was made in it stays, as does the device's context; its work is done. */
CUresult cuCtxDestroy(CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = context ? tt_driver_ordinal(context) : -1;
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    int rc = tuttiHostDeviceSynchronize(device);
    if (!rc && device == tuttiHostGetDevice()) tuttiHostDevicePop();
    return tt_driver_done(rc);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    enum cudaFuncCache found = cudaFuncCachePreferNone;
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaDeviceGetCacheConfig(&found));
    if (!rc) *config = (CUfunc_cache)found;
    return rc;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (tt_driver_ordinal(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020; /* what every context says */
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = tt_driver_ordinal(context);
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    *id = (unsigned long long)device + 1;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    int device = peer ? tt_driver_ordinal(peer) : -1;
    if (device < 0 || device == tuttiHostGetDevice()) return CUDA_ERROR_INVALID_CONTEXT;
    return tt_driver_forward(kept, cudaDeviceEnablePeerAccess(device, flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    int device = peer ? tt_driver_ordinal(peer) : -1;
    if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    return tt_driver_forward(kept, cudaDeviceDisablePeerAccess(device));
}

/* ---- devices ---- */

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(
        kept, cudaDeviceGetP2PAttribute(value, (enum cudaDeviceP2PAttr)attr, src, dst));
}

CUresult cuProfilerStart(void)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaProfilerStart());
}

CUresult cuProfilerStop(void)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaProfilerStop());
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = tt_driver_device(device);
    if (!rc) rc = tuttiHostCaptureUnsafe();
    return tt_driver_done(rc ? rc : tuttiHostDeviceReset(device));
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = tt_driver_device(device);
    return tt_driver_done(rc ? rc : tuttiHostFlagsSet(device, flags));
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return rc ? rc
              : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

/* ---- kernels ---- */

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if ((int)config < 0 || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    return cuFuncLoad(function);
}

/* What can be named is loaded. */
CUresult cuFuncLoad(CUfunction function)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tuttiHostKernelFind(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cuFuncLoad(function);
    if (!rc) *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return rc;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int block_size, size_t shared_bytes,
                                                              unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                                       blocks, function, block_size, shared_bytes, flags));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int block_size, size_t shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared_bytes, 0);
}

/* The largest block that fills a multiprocessor best, and as many of them as the device holds. */
CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t shared_bytes,
                                          int most)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int sms = 1, best = 0, device = tuttiHostGetDevice();
    if (!grid_size || !block_size) return CUDA_ERROR_INVALID_VALUE;
    if (most <= 0 || most > TT_FACE_THREADS_PER_BLOCK) most = TT_FACE_THREADS_PER_BLOCK;
    for (int size = most; size > 0; size = size > 32 ? (size - 1) / 32 * 32 : 0) {
        int blocks = 0;
        CUresult rc = cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function, size, shared_of_block ? shared_of_block(size) : shared_bytes);
        if (rc) return rc;
        if (blocks * size <= best) continue;
        best = blocks * size;
        *block_size = size;
        *grid_size = blocks;
    }
    CUresult rc = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (!rc && !best) rc = CUDA_ERROR_INVALID_VALUE; /* no block has that much shared memory */
    if (!rc) *grid_size *= sms;
    return rc;
}

/* A kernel of a library is the function of all devices. */
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel kernel,
                              CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUfunction function = NULL;
    int rc = tt_driver_device(device);
    if (!rc) rc = (int)cuKernelGetFunction(&function, kernel);
    return rc ? tt_driver_done(rc) : cuFuncGetAttribute(value, attr, function);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel kernel,
                              CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUfunction function = NULL;
    int rc = tt_driver_device(device);
    if (!rc) rc = (int)cuKernelGetFunction(&function, kernel);
    return rc ? tt_driver_done(rc) : cuFuncSetAttribute(function, attr, value);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUfunction function = NULL;
    int rc = tt_driver_device(device);
    if (!rc) rc = (int)cuKernelGetFunction(&function, kernel);
    return rc ? tt_driver_done(rc) : cuFuncSetCacheConfig(function, config);
}
/* NOLINTEND(readability-non-const-parameter) */
