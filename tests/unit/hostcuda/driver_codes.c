/* What the driver's functions answer to right and wrong use, family by family: objects, memory,
 * copies, pools, contexts. Each does something before it refuses something. Run with four devices
 * of 64 MiB. */
#define CONFORM_DRIVER
#include "conform.h"

#include <cudaProfiler.h>
#include <stdint.h>

enum { BYTES = 4096 };
static int not_a_handle; /* its address is no handle */
#define NO_STREAM ((CUstream)&not_a_handle)
#define NO_EVENT ((CUevent)&not_a_handle)
#define NO_CONTEXT ((CUcontext)&not_a_handle)
#define NO_POOL ((CUmemoryPool)&not_a_handle)
#define NO_FUNCTION ((CUfunction)&not_a_handle)

static CUcontext context_of(CUdevice device)
{
    CUcontext context = NULL;
    WORKS(cuDevicePrimaryCtxRetain(&context, device));
    WORKS(cuDevicePrimaryCtxRelease(device));
    return context;
}

static unsigned char byte_at(CUdeviceptr ptr)
{
    unsigned char byte = 0;
    WORKS(cuMemcpyDtoH(&byte, ptr, 1));
    return byte;
}

/* ---- contexts and devices ---- */

static int device_now(void)
{
    CUdevice device = -1;
    WORKS(cuCtxGetDevice(&device));
    return device;
}

/* As libraries do that work on a device and leave their caller's as it was. */
static void stack_of_contexts(void)
{
    CUcontext popped = NULL, made = NULL;
    CUdeviceptr ptr = 0;
    int where = -1;
    WORKS(cuCtxSetCurrent(context_of(0)));
    WORKS(cuCtxPushCurrent(context_of(2)));
    WORKS(cuCtxPushCurrent(context_of(1)));
    HOLDS(device_now() == 1);
    WORKS(cuCtxSetCurrent(context_of(3))); /* in the place of the top one */
    WORKS(cuCtxPopCurrent(&popped));
    HOLDS(popped == context_of(3) && device_now() == 2);
    WORKS(cuMemAlloc(&ptr, 64));
    WORKS(cuPointerGetAttribute(&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr));
    HOLDS(where == 2);
    WORKS(cuMemFree(ptr));
    WORKS(cuCtxCreate(&made, NULL, 0, 1));
    HOLDS(device_now() == 1);
    WORKS(cuCtxDestroy(made)); /* it was current */
    HOLDS(device_now() == 2);
    WORKS(cuCtxPushCurrent(context_of(1)));
    WORKS(cuCtxSetCurrent(NULL)); /* is a pop */
    HOLDS(device_now() == 2);
    WORKS(cuCtxPopCurrent(&popped));
    HOLDS(popped == context_of(2) && device_now() == 0);
    for (int i = 0; i < 20; i++) /* more than are kept */
        WORKS(cuCtxPushCurrent(context_of(i % 3)));
    for (int i = 20; i-- > 4;) {
        WORKS(cuCtxPopCurrent(&popped));
        HOLDS(popped == context_of(i % 3));
    }
    WORKS(cuCtxSetCurrent(context_of(0)));
}

static void contexts(void)
{
    CUcontext second = context_of(1), current = NULL, made = NULL;
    unsigned long long id = 0, other_id = 0;
    CUdevice device = -1;
    unsigned version = 0;
    WORKS(cuCtxCreate(&made, NULL, 0, 1));
    HOLDS(made == second);
    WORKS(cuCtxGetDevice(&device));
    HOLDS(device == 1);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(NULL, NULL, 0, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&made, NULL, 1U << 20, 1));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&made, NULL, 0, 9));
    WORKS(cuCtxDestroy(made));
    stack_of_contexts();
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(NULL));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(NO_CONTEXT));
    WORKS(cuCtxPushCurrent(context_of(2)));
    WORKS(cuCtxPopCurrent(&current));
    HOLDS(current == context_of(2));
    WORKS(cuCtxPopCurrent(NULL));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(NO_CONTEXT));
    WORKS(cuCtxSetCurrent(context_of(0)));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(NO_CONTEXT));
    WORKS(cuCtxGetId(context_of(0), &id));
    WORKS(cuCtxGetId(second, &other_id));
    HOLDS(id != other_id);
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetId(NO_CONTEXT, &id));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetId(second, NULL));
    WORKS(cuCtxGetApiVersion(second, &version));
    HOLDS(version >= 3020);
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(NO_CONTEXT, &version));
    WORKS(cuCtxResetPersistingL2Cache());
    WORKS(cuProfilerStart());
    WORKS(cuProfilerStop());
    WORKS(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                       (CUflushGPUDirectRDMAWritesScope)7));
}

static void settings(void)
{
    static const CUlimit limits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE,
                                     CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_MAX_L2_FETCH_GRANULARITY};
    CUfunc_cache config = CU_FUNC_CACHE_PREFER_L1;
    unsigned flags = 0;
    int least = -1, greatest = 1, active = 0;
    size_t value = 0;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        WORKS(cuCtxSetLimit(limits[i], 128));
        WORKS(cuCtxGetLimit(&value, limits[i]));
        HOLDS(value == 128);
    }
    ANSWERS(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit((CUlimit)99, 1));
    ANSWERS(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, (CUlimit)99));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    WORKS(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
    WORKS(cuCtxGetCacheConfig(&config));
    HOLDS(config == CU_FUNC_CACHE_PREFER_SHARED);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetCacheConfig(NULL));
    WORKS(cuCtxGetStreamPriorityRange(&least, &greatest));
    HOLDS(least == 0 && greatest < 0);
    WORKS(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
    WORKS(cuCtxGetFlags(&flags));
    HOLDS((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetFlags(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(3)); /* spin and yield */
    WORKS(cuDevicePrimaryCtxSetFlags(3, CU_CTX_SCHED_SPIN));
    WORKS(cuDevicePrimaryCtxGetState(3, &flags, &active));
    HOLDS((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxGetState(9, &flags, &active));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxSetFlags(9, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(3, 1U << 20));
    WORKS(cuDevicePrimaryCtxReset(3));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxReset(9));
    WORKS(cuCtxSetFlags(0));
}

static void devices(void)
{
    char id[32];
    int can = 0, value = -1, major = 0, minor = -1;
    CUdevice device = -1;
    WORKS(cuDeviceGetPCIBusId(id, sizeof(id), 2));
    WORKS(cuDeviceGetByPCIBusId(&device, id));
    HOLDS(device == 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&device, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&device, "nothing"));
    WORKS(cuDeviceComputeCapability(&major, &minor, 0));
    HOLDS(major > 0 && minor >= 0);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceComputeCapability(&major, &minor, 9));
    WORKS(cuDeviceCanAccessPeer(&can, 0, 1));
    HOLDS(can == 1);
    WORKS(cuDeviceCanAccessPeer(&can, 1, 1));
    HOLDS(can == 0);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceCanAccessPeer(NULL, 0, 1));
    WORKS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    HOLDS(value == 1);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)99, 0, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
}

static void peers(void)
{
    CUcontext first = context_of(0), second = context_of(1);
    WORKS(cuCtxSetCurrent(first));
    ANSWERS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(second));
    WORKS(cuCtxEnablePeerAccess(second, 0));
    ANSWERS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(second, 0));
    WORKS(cuCtxDisablePeerAccess(second));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(second, 1));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(first, 0)); /* oneself */
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(NO_CONTEXT, 0));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDisablePeerAccess(NO_CONTEXT));
}

/* ---- streams and events ---- */

static void called(void *arg)
{
    ++*(int *)arg;
}

static void called_back(CUstream stream, CUresult status, void *arg)
{
    (void)stream;
    *(int *)arg += status == CUDA_SUCCESS;
}

static void streams(void)
{
    CUstream stream = NULL, other = NULL;
    CUcontext context = NULL;
    CUdevice device = -1;
    unsigned flags = 0;
    unsigned long long id = 0, other_id = 0;
    int priority = 1, calls = 0;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 2));
    WORKS(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamCreateWithPriority(&stream, 77, 0));
    WORKS(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100)); /* clamped */
    WORKS(cuStreamGetPriority(stream, &priority));
    HOLDS(priority == -5);
    WORKS(cuStreamGetFlags(stream, &flags));
    HOLDS(flags == CU_STREAM_NON_BLOCKING);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamGetFlags(stream, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamGetPriority(stream, NULL));
    WORKS(cuStreamGetId(stream, &id));
    WORKS(cuStreamGetId(other, &other_id));
    HOLDS(id != other_id);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamGetId(stream, NULL));
    WORKS(cuStreamGetDevice(stream, &device));
    HOLDS(device == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamGetDevice(stream, NULL));
    WORKS(cuStreamGetCtx(stream, &context));
    HOLDS(context == context_of(0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamGetCtx(stream, NULL));
    WORKS(cuStreamQuery(stream));
    WORKS(cuLaunchHostFunc(stream, called, &calls));
    WORKS(cuStreamAddCallback(stream, called_back, &calls, 0));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(calls == 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, NULL, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, NULL, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, called_back, &calls, 1));
    WORKS(cuStreamCopyAttributes(other, stream));
    WORKS(cuStreamDestroy(stream));
    WORKS(cuStreamDestroy(other));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(NULL));
}

/* Every call that takes a stream refuses what is none. */
static void no_streams(void)
{
    CUstreamCaptureStatus status;
    CUevent event = NULL;
    CUdeviceptr ptr = 0;
    CUgraph graph = NULL;
    unsigned flags;
    int number, calls = 0;
    WORKS(cuMemAlloc(&ptr, BYTES));
    WORKS(cuEventCreate(&event, CU_EVENT_DEFAULT));
    const CUresult answers[] = {
        cuStreamQuery(NO_STREAM),
        cuStreamSynchronize(NO_STREAM),
        cuStreamDestroy(NO_STREAM),
        cuStreamWaitEvent(NO_STREAM, event, 0),
        cuEventRecord(event, NO_STREAM),
        cuEventRecordWithFlags(event, NO_STREAM, 0),
        cuLaunchHostFunc(NO_STREAM, called, &calls),
        cuStreamAddCallback(NO_STREAM, called_back, &calls, 0),
        cuStreamIsCapturing(NO_STREAM, &status),
        cuStreamBeginCapture(NO_STREAM, CU_STREAM_CAPTURE_MODE_GLOBAL),
        cuStreamEndCapture(NO_STREAM, &graph),
        cuStreamGetFlags(NO_STREAM, &flags),
        cuStreamGetPriority(NO_STREAM, &number),
        cuStreamGetDevice(NO_STREAM, &number),
        cuMemAllocAsync(&ptr, 64, NO_STREAM),
        cuMemFreeAsync(ptr, NO_STREAM),
        cuMemsetD8Async(ptr, 0, 1, NO_STREAM),
        cuMemsetD16Async(ptr, 0, 1, NO_STREAM),
        cuMemsetD32Async(ptr, 0, 1, NO_STREAM),
        cuMemsetD2D8Async(ptr, 8, 0, 1, 2, NO_STREAM),
        cuMemcpyAsync(ptr, ptr + 64, 1, NO_STREAM),
        cuMemcpyHtoDAsync(ptr, &number, 1, NO_STREAM),
        cuMemcpyDtoHAsync(&number, ptr, 1, NO_STREAM),
        cuMemcpyDtoDAsync(ptr, ptr + 64, 1, NO_STREAM),
        cuMemcpyPeerAsync(ptr, context_of(0), ptr + 64, context_of(1), 1, NO_STREAM),
        cuStreamWriteValue32(NO_STREAM, ptr, 1, 0),
        cuStreamWaitValue32(NO_STREAM, ptr, 1, 0),
        cuStreamWriteValue64(NO_STREAM, ptr, 1, 0),
        cuStreamWaitValue64(NO_STREAM, ptr, 1, 0),
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i] != CUDA_ERROR_INVALID_HANDLE) printf("row %zu of no_streams\n", i);
        HOLDS(answers[i] == CUDA_ERROR_INVALID_HANDLE);
    }
    HOLDS(calls == 0);
    WORKS(cuEventDestroy(event));
    WORKS(cuMemFree(ptr));
}

static void events(void)
{
    CUevent event = NULL, other = NULL, quiet = NULL;
    CUstream stream = NULL;
    float msec = -1;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, 64));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    WORKS(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    WORKS(cuEventCreate(&other, CU_EVENT_DEFAULT));
    WORKS(cuEventCreate(&quiet, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventQuery(event)); /* never recorded: nothing to wait for */
    WORKS(cuEventSynchronize(event));
    WORKS(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&msec, event, other));
    WORKS(cuEventRecord(event, stream));
    WORKS(cuEventRecordWithFlags(other, stream, CU_EVENT_RECORD_DEFAULT));
    WORKS(cuEventRecord(quiet, stream));
    WORKS(cuEventSynchronize(other));
    WORKS(cuEventElapsedTime(&msec, event, other));
    HOLDS(msec >= 0);
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&msec, event, quiet));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuEventElapsedTime(NULL, event, other));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, stream, 8));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(stream, event, 2));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(stream, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(stream, NO_EVENT, 0));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(NO_EVENT));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NO_EVENT, stream));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(NULL));
    WORKS(cuEventDestroy(event));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(event));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(NULL));
    WORKS(cuEventDestroy(other));
    WORKS(cuEventDestroy(quiet));
    WORKS(cuStreamDestroy(stream));
}

static void attributes(void)
{
    CUlaunchAttributeValue value, back;
    CUstream stream = NULL;
    memset(&value, 0, sizeof(value));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    WORKS(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    WORKS(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &back));
    HOLDS(back.syncPolicy == CU_SYNC_POLICY_YIELD);
    value.syncPolicy = (CUsynchronizationPolicy)99;
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &back));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuStreamGetAttribute(NO_STREAM, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamCopyAttributes(stream, NO_STREAM));
    WORKS(cuStreamDestroy(stream));
}

/* A batch with a wrong operation does none of them; words lie in memory that is there. */
static void words(void)
{
    CUstreamBatchMemOpParams ops[2];
    CUdeviceptr ptr = 0, gone = 0;
    CUstream stream = NULL;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuMemAlloc(&ptr, 6));
    WORKS(cuMemsetD8(ptr, 0, 6));
    WORKS(cuMemAlloc(&gone, BYTES));
    WORKS(cuMemFree(gone));
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = ptr;
    ops[0].writeValue.value = 9;
    ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = ptr + 1;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
    ops[1].waitValue.address = gone;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(byte_at(ptr) == 0);
    ops[1].operation = CU_STREAM_MEM_OP_BARRIER;
    WORKS(cuStreamBatchMemOp(stream, 2, ops, 0));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(byte_at(ptr) == 9);
    WORKS(cuStreamBatchMemOp(stream, 0, ops, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, ops, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 257, ops, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, gone, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, 0, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, 64, 1, 0));  /* no page */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, ptr, 1, 0)); /* 6 bytes */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(stream, gone, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, ptr, 1, 2));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, ptr, 1, 4));
    WORKS(cuStreamSynchronize(stream));
    WORKS(cuMemFree(ptr));
    WORKS(cuStreamDestroy(stream));
}

/* ---- memory ---- */

static void allocations(void)
{
    CUdeviceptr ptr = 0, base = 0;
    void *pinned = NULL;
    size_t pitch = 0, len = 0;
    WORKS(cuMemAlloc(&ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, BYTES));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&base, (size_t)1 << 60));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(ptr + 64));
    WORKS(cuMemGetAddressRange(NULL, &len, ptr + 64));
    HOLDS(len == BYTES);
    WORKS(cuMemFree(ptr));
    WORKS(cuMemFree(0));
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &len, ptr));
    WORKS(cuMemAllocPitch(&ptr, &pitch, 100, 3, 4));
    HOLDS(pitch >= 100 && pitch % 16 == 0);
    WORKS(cuMemFree(ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&ptr, &pitch, 100, 3, 5));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&ptr, &pitch, 0, 3, 4));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&ptr, NULL, 100, 3, 4));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch(&ptr, &pitch, 1 << 20, SIZE_MAX >> 8, 4));
    WORKS(cuMemAllocManaged(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuMemFree(ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&ptr, BYTES, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&ptr, 0, CU_MEM_ATTACH_GLOBAL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(NULL, 1, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuMemAllocHost(&pinned, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)pinned));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)pinned + 64));
    WORKS(cuMemFreeHost(pinned));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost(&pinned, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost(NULL, BYTES));
    WORKS(cuMemAlloc(&ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)ptr));
    WORKS(cuMemFree(ptr));
}

static void host_memory(void)
{
    static char own[3 * BYTES];
    CUdeviceptr ptr = 0;
    void *pinned = NULL;
    unsigned flags = 0;
    WORKS(cuMemHostAlloc(&pinned, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    WORKS(cuMemHostGetFlags(&flags, pinned));
    HOLDS(flags & CU_MEMHOSTALLOC_PORTABLE);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(NULL, pinned));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&flags, own));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&pinned, BYTES, 64));
    WORKS(cuMemHostGetDevicePointer(&ptr, (char *)pinned + 8, 0));
    HOLDS(ptr == (CUdeviceptr)(uintptr_t)pinned + 8);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&ptr, pinned, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(NULL, pinned, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&ptr, own, 0));
    WORKS(cuMemFreeHost(pinned));
    WORKS(cuMemHostRegister(own, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    ANSWERS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own, BYTES, 0));
    ANSWERS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own + 64, 64, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, BYTES, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(own + 2 * BYTES, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(own + 2 * BYTES, 64, 64));
    ANSWERS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own + 64));
    WORKS(cuMemHostUnregister(own));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(NULL));
}

/* A capture forbids what may wait for other streams, with the mode that is the default. */
static void in_capture(void)
{
    static char own[BYTES];
    CUdeviceptr ptr = 0;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    void *pinned = NULL;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuMemAlloc(&ptr, BYTES));
    for (int i = 0; i < 9; i++) {
        CUresult rc = CUDA_SUCCESS;
        WORKS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        switch (i) {
        case 0: rc = cuMemAlloc(&ptr, BYTES); break;
        case 1: rc = cuMemFree(ptr); break;
        case 2: rc = cuMemAllocHost(&pinned, BYTES); break;
        case 3: rc = cuMemHostRegister(own, BYTES, 0); break;
        case 4: rc = cuCtxSynchronize(); break;
        case 5: rc = cuStreamSynchronize(stream); break;
        case 6: rc = cuStreamQuery(stream); break;
        case 7: rc = cuMemsetD8(ptr, 1, 1); break;
        default: rc = cuMemAllocManaged(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL); break;
        }
        if (!rc) printf("row %d of in_capture\n", i);
        HOLDS(rc == (i == 7 ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                            : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
        ANSWERS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    }
    WORKS(cuMemFree(ptr));
    WORKS(cuStreamDestroy(stream));
}

/* ---- copies ---- */

static void copies(void)
{
    CUdeviceptr from = 0, to = 0, gone = 0;
    CUcontext first = context_of(0), second = context_of(1);
    char host[BYTES];
    memset(host, 5, sizeof(host));
    WORKS(cuMemAlloc(&from, BYTES));
    WORKS(cuMemAlloc(&to, BYTES));
    WORKS(cuMemAlloc(&gone, BYTES));
    WORKS(cuMemFree(gone));
    WORKS(cuMemcpyHtoD(from, host, BYTES));
    WORKS(cuMemcpyDtoD(to, from, BYTES));
    HOLDS(byte_at(to + BYTES - 1) == 5);
    WORKS(cuMemcpy(to, from, BYTES));
    WORKS(cuMemcpyAsync(to, from, BYTES, NULL));
    WORKS(cuMemcpyHtoDAsync(to, host, BYTES, NULL));
    WORKS(cuMemcpyPeer(to, first, from, second, BYTES));
    WORKS(cuMemcpyPeerAsync(to, first, from, second, BYTES, NULL));
    WORKS(cuMemcpyDtoH(host, from, 0));
    const CUresult answers[] = {
        cuMemcpy(to, from + 1, BYTES),
        cuMemcpy(to + 1, from, BYTES),
        cuMemcpy(gone, from, BYTES),
        cuMemcpyHtoD(to, host, BYTES + 1),
        cuMemcpyHtoD(to, NULL, 1),
        cuMemcpyHtoD(0, host, 1),
        cuMemcpyDtoH(NULL, from, 1),
        cuMemcpyDtoH(host, gone, 1),
        cuMemcpyDtoD(to, gone, 1),
        cuMemcpyDtoD(to, from, (size_t)-1),
        cuMemcpyAsync(to + BYTES, from, 1, NULL),
        cuMemcpyHtoDAsync(gone, host, 1, NULL),
        cuMemcpyDtoHAsync(host, gone, 1, NULL),
        cuMemcpyDtoDAsync(gone, from, 1, NULL),
        cuMemcpyPeer(gone, first, from, second, 1),
        cuMemcpyPeerAsync(to, first, gone, second, 1, NULL),
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i] != CUDA_ERROR_INVALID_VALUE) printf("row %zu of copies\n", i);
        HOLDS(answers[i] == CUDA_ERROR_INVALID_VALUE);
    }
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(to, NO_CONTEXT, from, second, 1));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeerAsync(to, first, from, NO_CONTEXT, 1, NULL));
    WORKS(cuCtxSynchronize());
    WORKS(cuMemFree(from));
    WORKS(cuMemFree(to));
}

static void boxes_of_peers(const CUDA_MEMCPY3D *good)
{
    CUDA_MEMCPY3D_PEER peer;
    HOLDS(sizeof(peer) == sizeof(*good)); /* contexts are in the place of what is reserved */
    memcpy(&peer, good, sizeof(peer));
    peer.srcContext = context_of(0);
    peer.dstContext = context_of(1);
    WORKS(cuMemcpy3DPeer(&peer));
    WORKS(cuMemcpy3DPeerAsync(&peer, NULL));
    peer.dstContext = NO_CONTEXT;
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy3DPeer(&peer));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuMemcpy3DPeerAsync(&peer, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(NULL));
}

static void rows(void)
{
    CUDA_MEMCPY2D rows;
    CUdeviceptr ptr = 0;
    WORKS(cuMemAlloc(&ptr, 256));
    WORKS(cuMemsetD8(ptr, 1, 256));
    memset(&rows, 0, sizeof(rows));
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    rows.srcDevice = ptr;
    rows.dstDevice = ptr + 128;
    rows.srcPitch = rows.dstPitch = 64;
    rows.WidthInBytes = 32;
    rows.Height = 2;
    WORKS(cuMemcpy2D(&rows));
    WORKS(cuMemcpy2DUnaligned(&rows));
    WORKS(cuMemcpy2DAsync(&rows, NULL));
    rows.Height = 0;
    WORKS(cuMemcpy2D(&rows));
    rows.Height = SIZE_MAX;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&rows, NULL));
    WORKS(cuMemFree(ptr));
}

/* A right copy of boxes, and one thing after the other wrong with it. */
static void boxes(void)
{
    static char host[4 * 64 * 4];
    CUDA_MEMCPY3D box, good;
    CUdeviceptr ptr = 0;
    WORKS(cuMemAlloc(&ptr, sizeof(host)));
    memset(host, 3, sizeof(host));
    memset(&good, 0, sizeof(good));
    good.srcMemoryType = CU_MEMORYTYPE_HOST;
    good.srcHost = host;
    good.srcPitch = 64;
    good.srcHeight = 4;
    good.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    good.dstDevice = ptr;
    good.dstPitch = 64;
    good.dstHeight = 4;
    good.WidthInBytes = 64;
    good.Height = 4;
    good.Depth = 4;
    WORKS(cuMemcpy3D(&good));
    HOLDS(byte_at(ptr + sizeof(host) - 1) == 3);
    WORKS(cuMemcpy3DAsync(&good, NULL));
    for (int wrong = 0; wrong < 11; wrong++) {
        box = good;
        switch (wrong) {
        case 0: box.srcMemoryType = (CUmemorytype)0; break;
        case 1: box.dstMemoryType = (CUmemorytype)9; break;
        case 2: box.srcPitch = 63; break;
        case 3: box.dstPitch = 63; break;
        case 4: box.dstHeight = 3; break;
        case 5: box.srcXInBytes = 1; break;
        case 6: box.dstY = 1; break;
        case 7: box.dstZ = 1; break; /* past the allocation */
        case 8: box.dstZ = SIZE_MAX; break;
        case 9: box.Depth = SIZE_MAX; break;
        default: box.srcHost = NULL; break;
        }
        CUresult now = cuMemcpy3D(&box), later = cuMemcpy3DAsync(&box, NULL);
        if (now != CUDA_ERROR_INVALID_VALUE) printf("row %d of boxes: %d\n", wrong, (int)now);
        HOLDS(now == CUDA_ERROR_INVALID_VALUE && later == now);
    }
    box = good;
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED, cuMemcpy3D(&box));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(NULL, NULL));
    boxes_of_peers(&good);
    WORKS(cuCtxSynchronize());
    WORKS(cuMemFree(ptr));
}

int main(void)
{
    WORKS(cuInit(0));
    contexts();
    settings();
    devices();
    peers();
    streams();
    no_streams();
    events();
    attributes();
    words();
    allocations();
    host_memory();
    in_capture();
    copies();
    boxes();
    rows();
    return finish("codes of the driver");
}
