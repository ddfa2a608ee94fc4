/* What the driver's functions answer to right and wrong use: pools, memory in parts, hints, memory
 * and events of other processes, batches of copies. Run with four devices of 64 MiB. */
#define CONFORM_DRIVER
#include "conform.h"

#include <stdint.h>
#include <unistd.h>

enum { BYTES = 4096 };
static int not_a_handle; /* its address is no handle */
#define NO_STREAM ((CUstream)&not_a_handle)
#define NO_POOL ((CUmemoryPool)&not_a_handle)

static CUmemoryPool make_pool(CUdevice device)
{
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;
    memset(&props, 0, sizeof(props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device;
    WORKS(cuMemPoolCreate(&pool, &props));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(NULL, &props));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, NULL));
    props.location.id = 9;
    CUmemoryPool none = NULL;
    CUresult rc = cuMemPoolCreate(&none, &props);
    REFUSES(cuMemPoolCreate, rc == CUDA_ERROR_INVALID_DEVICE || rc == CUDA_ERROR_INVALID_VALUE);
    return pool;
}

static void pools(void)
{
    CUmemoryPool pool = make_pool(0), own = NULL, now = NULL;
    CUdeviceptr ptr = 0, more = 0;
    cuuint64_t threshold = BYTES, used = 1;
    int reuse = 0;
    WORKS(cuDeviceGetDefaultMemPool(&own, 0));
    WORKS(cuDeviceGetMemPool(&now, 0));
    HOLDS(now == own && own != pool);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDefaultMemPool(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDefaultMemPool(&now, 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetMemPool(&now, 9));
    WORKS(cuDeviceSetMemPool(0, pool));
    WORKS(cuDeviceGetMemPool(&now, 0));
    HOLDS(now == pool);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, NO_POOL));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceSetMemPool(9, pool));
    WORKS(cuMemAllocAsync(&ptr, BYTES, NULL));
    WORKS(cuMemAllocFromPoolAsync(&more, BYTES, pool, NULL));
    WORKS(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    HOLDS(used >= 2 * BYTES);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(NULL, BYTES, NULL));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&ptr, (size_t)1 << 60, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&ptr, BYTES, NO_POOL, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(NULL, BYTES, pool, NULL));
    WORKS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    WORKS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
    WORKS(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &used));
    HOLDS(used == BYTES);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used)); /* 0 alone */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &used));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolGetAttribute(NO_POOL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &used));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    WORKS(cuMemFreeAsync(ptr, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(ptr, NULL)); /* again */
    WORKS(cuMemFree(more));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(0, NULL));
    WORKS(cuMemPoolTrimTo(pool, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(NO_POOL, 0));
    WORKS(cuMemPoolDestroy(pool));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(own));
    WORKS(cuDeviceGetMemPool(&now, 0));
    HOLDS(now == own);
}

static void access_of_pools(void)
{
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                  none = {CU_MEM_LOCATION_TYPE_DEVICE, 9};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemoryPool pool = make_pool(0);
    WORKS(cuMemPoolSetAccess(pool, &desc, 1));
    WORKS(cuMemPoolGetAccess(&flags, pool, &second));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(NULL, pool, &second));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&flags, pool, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&flags, NO_POOL, &second));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuMemPoolGetAccess(&flags, pool, &none));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, NULL, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(NO_POOL, &desc, 1));
    desc.flags = (CUmemAccess_flags)2;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    desc.location.id = 0; /* its own device keeps it */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
    WORKS(cuMemPoolDestroy(pool));
}

static void shared_pools(void)
{
    CUmemoryPool pool = make_pool(0), copy = NULL;
    CUmemPoolPtrExportData token;
    CUdeviceptr ptr = 0, plain = 0, twin = 0;
    int fd = -1;
    WORKS(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    HOLDS(fd >= 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(
                                          &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(
                                          NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolExportToShareableHandle(&fd, NO_POOL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             0));
    WORKS(cuMemPoolImportFromShareableHandle(&copy, (void *)(intptr_t)fd,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemPoolImportFromShareableHandle(&copy, (void *)(intptr_t)-1,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    WORKS(cuMemAllocFromPoolAsync(&ptr, BYTES, pool, NULL));
    WORKS(cuMemAlloc(&plain, BYTES));
    WORKS(cuMemPoolExportPointer(&token, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(NULL, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&token, plain));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(NULL, copy, &token));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&twin, copy, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&twin, NO_POOL, &token));
    WORKS(cuMemPoolImportPointer(&twin, copy, &token));
    WORKS(cuMemsetD8(ptr, 6, BYTES));
    unsigned char byte = 0;
    WORKS(cuMemcpyDtoH(&byte, twin + BYTES - 1, 1));
    HOLDS(byte == 6);
    WORKS(cuMemFreeAsync(twin, NULL));
    WORKS(cuMemFreeAsync(ptr, NULL));
    WORKS(cuMemFree(plain));
    close(fd);
    WORKS(cuMemPoolDestroy(copy));
    WORKS(cuMemPoolDestroy(pool));
}

/* ---- parts ---- */

static void parts(void)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    CUstream stream = NULL;
    size_t grain = 0;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &prop, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(NULL, grain, &prop, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, grain, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, grain, &prop, 1));
    WORKS(cuMemCreate(&handle, 2 * grain, &prop, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&at, 0, 0, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&at, grain, 0, 0, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, grain, 0, 0, 0));
    WORKS(cuMemAddressReserve(&at, 2 * grain, 0, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, grain, 0, handle, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 3 * grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + 1, grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(0, grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, grain, 0, 12345, 0));
    WORKS(cuMemMap(at, 2 * grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, at, 1, 0)); /* no access yet */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 2 * grain, &access, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 2 * grain, NULL, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 3 * grain, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    WORKS(cuMemSetAccess(at, 2 * grain, &access, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, at, 1, 0)); /* reading alone */
    WORKS(cuStreamWaitValue32(stream, at, 0, CU_STREAM_WAIT_VALUE_EQ));
    WORKS(cuStreamSynchronize(stream));
    access.flags = (CUmemAccess_flags)2;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, 2 * grain, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    WORKS(cuMemSetAccess(at, 2 * grain, &access, 1));
    WORKS(cuStreamWriteValue32(stream, at + 2 * grain - 4, 1, 0));
    WORKS(cuStreamSynchronize(stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(at));         /* no allocation */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at, grain)); /* half of a mapping */
    WORKS(cuMemUnmap(at, 2 * grain));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, at, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(at, grain));
    WORKS(cuMemAddressFree(at, 2 * grain));
    WORKS(cuMemRelease(handle));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(0));
    WORKS(cuStreamDestroy(stream));
}

/* ---- hints ---- */

static void hints(void)
{
    CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, none = {CU_MEM_LOCATION_TYPE_DEVICE, 9};
    CUmem_range_attribute attrs[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                     CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
    int read_mostly = -1, preferred = -1;
    void *values[] = {&read_mostly, &preferred};
    size_t lens[] = {sizeof(int), sizeof(int)};
    CUdeviceptr ptr = 0, plain = 0;
    WORKS(cuMemAllocManaged(&ptr, BYTES, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuMemAlloc(&plain, BYTES));
    WORKS(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, first));
    WORKS(cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, first));
    WORKS(cuMemRangeGetAttributes(values, lens, attrs, 2, ptr, BYTES));
    HOLDS(read_mostly == 1 && preferred == 0);
    WORKS(cuMemRangeGetAttribute(&read_mostly, sizeof(int), attrs[0], ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemRangeGetAttribute(&read_mostly, 3, attrs[0], ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemRangeGetAttribute(NULL, sizeof(int), attrs[0], ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(values, lens, attrs, 0, ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(NULL, lens, attrs, 2, ptr, BYTES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemAdvise(plain, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, first));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(ptr, BYTES, (CUmem_advise)99, first));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(ptr, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, first));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuMemAdvise(ptr, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, none));
    WORKS(cuMemPrefetchAsync(ptr, BYTES, first, 0, NULL));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(ptr, BYTES, none, 0, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(ptr, BYTES, first, 1, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(plain, BYTES, first, 0, NULL));
    WORKS(cuStreamAttachMemAsync(NULL, ptr, 0, CU_MEM_ATTACH_GLOBAL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(NULL, ptr, 0, 64));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(NULL, plain, 0, CU_MEM_ATTACH_GLOBAL));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuStreamAttachMemAsync(NO_STREAM, ptr, 0, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuStreamSynchronize(NULL));
    WORKS(cuMemFree(plain));
    WORKS(cuMemFree(ptr));
}

/* ---- for other processes (which open them: litmus_ipc.c) ---- */

static void handles(void)
{
    CUipcMemHandle memory, nothing;
    CUipcEventHandle token, no_event;
    CUdeviceptr ptr = 0, managed = 0, opened = 0;
    CUevent event = NULL, own = NULL, twin = NULL;
    memset(&nothing, 0, sizeof(nothing));
    memset(&no_event, 0, sizeof(no_event));
    WORKS(cuMemAlloc(&ptr, BYTES));
    WORKS(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuIpcGetMemHandle(&memory, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&memory, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&nothing, managed));
    memset(&nothing, 0, sizeof(nothing));
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, /* one's own */
            cuIpcOpenMemHandle(&opened, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&opened, memory, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenMemHandle(NULL, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenMemHandle(&opened, nothing, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(0));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    WORKS(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
    WORKS(cuIpcGetEventHandle(&token, event));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, event));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&token, NULL));
    CUresult rc = cuIpcGetEventHandle(&no_event, own);
    REFUSES(cuIpcGetEventHandle, rc == CUDA_ERROR_INVALID_HANDLE || rc == CUDA_ERROR_INVALID_VALUE);
    memset(&no_event, 0, sizeof(no_event));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(NULL, token));
    rc = cuIpcOpenEventHandle(&twin, no_event);
    REFUSES(cuIpcOpenEventHandle,
            rc == CUDA_ERROR_INVALID_HANDLE || rc == CUDA_ERROR_INVALID_VALUE);
    WORKS(cuEventDestroy(event));
    WORKS(cuEventDestroy(own));
    WORKS(cuMemFree(managed));
    WORKS(cuMemFree(ptr));
}

/* ---- batches of copies, memory of graphs ---- */

static void batches(void)
{
    CUmemcpyAttributes attr;
    CUdeviceptr ptr = 0, to[2], from[2];
    CUstream stream = NULL;
    size_t lens[] = {64, 64}, start = 0;
    memset(&attr, 0, sizeof(attr));
    attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuMemAlloc(&ptr, 256));
    WORKS(cuMemsetD8(ptr, 1, 64));
    WORKS(cuMemsetD8(ptr + 64, 2, 64));
    WORKS(cuCtxSynchronize());
    from[0] = ptr, to[0] = ptr + 128;
    from[1] = ptr + 64, to[1] = ptr + 192;
    WORKS(cuMemcpyBatchAsync(to, from, lens, 2, &attr, &start, 1, stream));
    WORKS(cuStreamSynchronize(stream));
    unsigned char bytes[2] = {0, 0};
    WORKS(cuMemcpyDtoH(&bytes[0], ptr + 191, 1));
    WORKS(cuMemcpyDtoH(&bytes[1], ptr + 255, 1));
    HOLDS(bytes[0] == 1 && bytes[1] == 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 0, &attr, &start, 1, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(NULL, from, lens, 2, &attr, &start, 1, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, NULL, 2, &attr, &start, 1, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, &attr, NULL, 1, stream));
    start = 1;
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, &attr, &start, 1, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, &attr, &start, 0, stream));
    CUmemcpyAttributes attrs[] = {attr, attr};
    size_t starts[] = {0, 1}, same[] = {0, 0}, beyond[] = {0, 2};
    WORKS(cuMemcpyBatchAsync(to, from, lens, 2, attrs, starts, 2, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, attrs, same, 2, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, attrs, beyond, 2, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 1, attrs, starts, 2, stream));
    start = 0;
    attr.srcAccessOrder = (CUmemcpySrcAccessOrder)9;
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync(to, from, lens, 2, &attr, &start, 1, stream));
    WORKS(cuMemFree(ptr));
    WORKS(cuStreamDestroy(stream));
}

static void graph_memory(void)
{
    cuuint64_t bytes = 1;
    WORKS(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &bytes));
    bytes = 0;
    WORKS(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &bytes));
    WORKS(cuDeviceGraphMemTrim(0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(9));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuDeviceGetGraphMemAttribute(9, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &bytes));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)99, &bytes));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes));
}

int main(void)
{
    WORKS(cuInit(0));
    pools();
    access_of_pools();
    shared_pools();
    parts();
    hints();
    handles();
    batches();
    graph_memory();
    return finish("pools and parts of the driver");
}
