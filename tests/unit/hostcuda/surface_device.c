/* Devices, settings, errors, entry points: what the other suites leave out. C and C++, CUDA 12 and
 * 13. Run with four devices. */
#include "conform.h"

#include <cuda_profiler_api.h>
#include <stdint.h>

static void which_device(void)
{
    int device = -1, can = -1, value = -1;
    char bus[32];
    ANSWERS(cudaErrorInvalidValue, cudaGetDevice(NULL));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 4));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, -1, 0));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceCanAccessPeer(NULL, 0, 1));
    WORKS(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
    HOLDS(value == 1);
    WORKS(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 2, 3));
    HOLDS(value == 1);
    WORKS(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 2, 3));
    ANSWERS(cudaErrorInvalidDevice,
            cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1));
    ANSWERS(cudaErrorInvalidDevice,
            cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 9));
    ANSWERS(cudaErrorInvalidValue,
            cudaDeviceGetP2PAttribute(&value, (enum cudaDeviceP2PAttr)99, 0, 1));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0)); /* a device and itself */
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(17, 0));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(bus, sizeof(bus), 4));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(NULL, "0000:01:00.0"));
    WORKS(cudaInitDevice(2, 0, 0));
    WORKS(cudaGetDevice(&device));
    HOLDS(device == 0); /* not changed */
    ANSWERS(cudaErrorInvalidDevice, cudaInitDevice(4, 0, 0));
    ANSWERS(cudaErrorInvalidValue, cudaInitDevice(2, 0, 0x4000));
}

static void kept_settings(void)
{
    enum cudaFuncCache cache = cudaFuncCachePreferNone;
    size_t limit = 0;
    ANSWERS(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&limit, (enum cudaLimit)77));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetLimit(NULL, cudaLimitStackSize));
    ANSWERS(cudaErrorInvalidValue, cudaGetDeviceFlags(NULL));
    WORKS(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    WORKS(cudaDeviceGetCacheConfig(&cache));
    HOLDS(cache == cudaFuncCachePreferShared);
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetCacheConfig((enum cudaFuncCache)9));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetCacheConfig(NULL));
    WORKS(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                             cudaFlushGPUDirectRDMAWritesToOwner));
    ANSWERS(cudaErrorInvalidValue,
            cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                               (enum cudaFlushGPUDirectRDMAWritesScope)7));
    WORKS(cudaCtxResetPersistingL2Cache());
    WORKS(cudaProfilerStart());
    WORKS(cudaProfilerStop());
    ANSWERS(cudaErrorInvalidValue, cudaRuntimeGetVersion(NULL));
    ANSWERS(cudaErrorInvalidValue, cudaDriverGetVersion(NULL));
}

static void last_errors(void)
{
    cudaGetLastError();
    DOES(cudaGetLastError, cudaGetLastError() == cudaSuccess);
    DOES(cudaPeekAtLastError, cudaPeekAtLastError() == cudaSuccess);
    cudaSetDevice(99);
    cudaStreamDestroy(NULL);
    DOES(cudaPeekAtLastError, cudaPeekAtLastError() == cudaErrorInvalidResourceHandle);
    DOES(cudaPeekAtLastError, cudaPeekAtLastError() == cudaErrorInvalidResourceHandle);
    DOES(cudaGetLastError, cudaGetLastError() == cudaErrorInvalidResourceHandle);
    DOES(cudaGetLastError, cudaGetLastError() == cudaSuccess);
    DOES(cudaGetErrorName, !strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
    DOES(cudaGetErrorName,
         !strcmp(cudaGetErrorName(cudaErrorCapturedEvent), "cudaErrorCapturedEvent"));
    REFUSES(cudaGetErrorName,
            !strcmp(cudaGetErrorName((cudaError_t)-1), "unrecognized error code"));
    DOES(cudaGetErrorString, strlen(cudaGetErrorString(cudaErrorNotReady)) > 5);
    REFUSES(cudaGetErrorString,
            !strcmp(cudaGetErrorString((cudaError_t)31337), "unrecognized error code"));
}

static void graph_memory(void)
{
    unsigned long long value = 1;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    struct cudaMemAllocNodeParams params;
    WORKS(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemCurrent, &value));
    HOLDS(value == 0);
    memset(&params, 0, sizeof(params));
    params.bytesize = 100000;
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.poolProps.location.id = 1;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    WORKS(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemCurrent, &value));
    HOLDS(value >= 100000);
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemCurrent, &value));
    HOLDS(value == 0);
    WORKS(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &value));
    HOLDS(value >= 100000);
    value = 5;
    ANSWERS(cudaErrorInvalidValue,
            cudaDeviceSetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &value));
    value = 0;
    WORKS(cudaDeviceSetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &value));
    WORKS(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &value));
    HOLDS(value == 0);
    ANSWERS(cudaErrorInvalidValue,
            cudaDeviceSetGraphMemAttribute(1, cudaGraphMemAttrUsedMemCurrent, &value));
    ANSWERS(cudaErrorInvalidDevice,
            cudaDeviceGetGraphMemAttribute(9, cudaGraphMemAttrUsedMemHigh, &value));
    WORKS(cudaDeviceGraphMemTrim(1));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceGraphMemTrim(4));
}

static void entry_points(void)
{
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    const cudaUUID_t id = {{1, 2, 3}};
    const void *table = &id;
    void *fn = NULL;
    WORKS(cudaGetDriverEntryPoint("cuMemCreate", &fn, cudaEnableDefault, &status));
    HOLDS(fn && status == cudaDriverEntryPointSuccess);
    WORKS(cudaGetDriverEntryPoint("cuNoSuchThing", &fn, cudaEnableDefault, &status));
    HOLDS(!fn && status == cudaDriverEntryPointSymbolNotFound);
    ANSWERS(cudaErrorSymbolNotFound,
            cudaGetDriverEntryPoint("cuNoSuchThing", &fn, cudaEnableDefault, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGetDriverEntryPoint(NULL, &fn, cudaEnableDefault, &status));
    ANSWERS(cudaErrorInvalidValue, cudaGetDriverEntryPoint("cuInit", &fn, 64, &status));
    ANSWERS(cudaErrorNotSupported, cudaGetExportTable(&table, &id));
    HOLDS(table == NULL);
    ANSWERS(cudaErrorInvalidValue, cudaGetExportTable(NULL, &id));
}

/* In a capture that other threads' calls must not disturb, calls on all of a device are refused. */
static void refused_in_capture(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    enum cudaStreamCaptureStatus status;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaDeviceReset());
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(cudaStreamLegacy, &status));
    WORKS(cudaStreamEndCapture(stream, &graph));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaStreamDestroy(stream));
}

static void reset(void)
{
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    size_t before = 0, after = 0, total = 0;
    void *ptr = NULL;
    WORKS(cudaSetDevice(3));
    WORKS(cudaMemGetInfo(&before, &total));
    WORKS(cudaMalloc(&ptr, 1 << 20));
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaEventCreate(&event));
    WORKS(cudaDeviceReset());
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(event));
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    WORKS(cudaMemGetInfo(&after, &total));
    HOLDS(before == after);
    WORKS(cudaSetDevice(0));
}

/* Pools, settings, permissions: as on the first day. */
static void reset_of_settings(void)
{
    const size_t odd = 4096 + 64;
    cudaMemPool_t own = NULL, pool = NULL;
    size_t usual = 0, limit = 0;
    uint64_t used = 0, threshold = 1 << 20;
    void *ptr = NULL;
    WORKS(cudaSetDevice(2));
    WORKS(cudaDeviceEnablePeerAccess(3, 0));
    WORKS(cudaSetDevice(3));
    WORKS(cudaDeviceEnablePeerAccess(2, 0));
    WORKS(cudaDeviceGetLimit(&usual, cudaLimitStackSize));
    WORKS(cudaDeviceSetLimit(cudaLimitStackSize, odd));
    WORKS(cudaMallocAsync(&ptr, 1 << 20, NULL));
    WORKS(cudaDeviceGetDefaultMemPool(&own, 3));
    WORKS(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    const struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                           .location = {cudaMemLocationTypeDevice, 3}};
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaMallocFromPoolAsync(&ptr, 1 << 20, pool, NULL));
    WORKS(cudaDeviceSetMemPool(3, pool));
    WORKS(cudaDeviceReset());
    WORKS(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    HOLDS(limit == usual);
    ANSWERS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(2));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    WORKS(cudaDeviceGetMemPool(&pool, 3));
    WORKS(cudaDeviceGetDefaultMemPool(&own, 3));
    HOLDS(pool == own);
    WORKS(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
    WORKS(cudaMemPoolGetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    HOLDS(used == 0 && threshold == 0);
    WORKS(cudaMallocAsync(&ptr, 1 << 20, NULL));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaSetDevice(2));
    ANSWERS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(3));
    WORKS(cudaSetDevice(0));
}

/* Host memory that was allocated or registered when the device was current. */
static void reset_of_host_memory(void)
{
    static char bytes[4096];
    void *pinned = NULL, *managed = NULL, *other = NULL;
    unsigned flags = 0;
    WORKS(cudaMallocHost(&other, 4096)); /* the first device's */
    WORKS(cudaSetDevice(3));
    WORKS(cudaMallocHost(&pinned, 4096));
    WORKS(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
    WORKS(cudaHostRegister(bytes, sizeof(bytes), cudaHostRegisterDefault));
    WORKS(cudaDeviceReset());
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(pinned));
    ANSWERS(cudaErrorInvalidValue, cudaFree(managed));
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(bytes));
    WORKS(cudaHostGetFlags(&flags, other));
    WORKS(cudaSetDevice(0));
    WORKS(cudaFreeHost(other));
}

/* A graph that outlives its memory frees nothing that came in its place. */
static void reset_of_graph_memory(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    void *ptr = NULL, *next = NULL;
    struct cudaPointerAttributes attributes;
    WORKS(cudaSetDevice(3));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaMallocAsync(&ptr, 1 << 16, stream));
    WORKS(cudaFreeAsync(ptr, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    WORKS(cudaDeviceReset());
    WORKS(cudaMalloc(&next, 1 << 16));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaPointerGetAttributes(&attributes, next));
    HOLDS(attributes.type == cudaMemoryTypeDevice && next == ptr);
    WORKS(cudaFree(next));
    WORKS(cudaSetDevice(0));
}

int main(void)
{
    which_device();
    kept_settings();
    last_errors();
    graph_memory();
    entry_points();
    refused_in_capture();
    reset();
    reset_of_settings();
    reset_of_host_memory();
    reset_of_graph_memory();
    return finish("surface of devices");
}
