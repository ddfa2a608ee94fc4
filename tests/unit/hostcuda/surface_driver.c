/* Rows of the driver interface: what driver.c leaves out. Run with four devices. */
#define CONFORM_DRIVER
#include "conform.h"

#include <stdint.h>
#include <unistd.h>

static int not_a_handle; /* its address is no handle */

static void wait_inside(void *arg)
{
    *(CUresult *)arg = cuCtxSynchronize();
}

static void devices(void)
{
    CUdevice device = -1;
    CUcontext context = NULL;
    CUuuid uuid;
    const char *text = "";
    char name[64];
    size_t total = 0;
    int value = 0;
    WORKS(cuDriverGetVersion(&value));
    HOLDS(value >= 12000);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)31337, &text));
    HOLDS(text == NULL);
    WORKS(cuGetErrorString(CUDA_ERROR_NOT_FOUND, &text));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof(name), 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&uuid, 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0));
    WORKS(cuDeviceGetPCIBusId(name, sizeof(name), 1));
    HOLDS(strlen(name) == 12);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(name, 3, 1));
    WORKS(cuDeviceTotalMem(&total, 0));
    HOLDS(total > 0);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&total, 9));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&context, 9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRelease(9));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice(NULL));
    WORKS(cuCtxGetDevice(&device));
    CUresult inside = CUDA_SUCCESS;
    WORKS(cuLaunchHostFunc(NULL, wait_inside, &inside));
    WORKS(cuCtxSynchronize());
    REFUSES(cuCtxSynchronize, inside == CUDA_ERROR_NOT_PERMITTED);
}

static void lookups(void)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *fn = NULL;
    WORKS(cuGetProcAddress("cuStreamCreate", &fn, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    HOLDS(fn != NULL);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGetProcAddress(NULL, &fn, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    ANSWERS(CUDA_ERROR_NOT_FOUND,
            cuGetProcAddress("cuNoSuchThing", &fn, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
}

static void pointers(void)
{
    unsigned on = 1;
    CUdeviceptr ptr = 0;
    WORKS(cuMemAlloc(&ptr, 64));
    WORKS(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                            (CUdeviceptr)(uintptr_t)&on));
    WORKS(cuMemFree(ptr));
}

static void blocks(void)
{
    CUmemAllocationProp prop, back;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmulticastObjectProp group;
    CUmemGenericAllocationHandle handle = 0, other = 0;
    unsigned long long flags = 0;
    CUdeviceptr where = 0;
    size_t grain = 0;
    int fd = -1;
    memset(&prop, 0, sizeof(prop));
    memset(&group, 0, sizeof(group));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    WORKS(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&where, grain + 1, 0, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&where, grain, 3, 0, 0));
    WORKS(cuMemCreate(&handle, grain, &prop, 0));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&other, (size_t)1 << 50, &prop, 0));
    WORKS(cuMemAddressReserve(&where, 2 * grain, 0, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(where, grain, &access, 1)); /* not mapped */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where, grain));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &here, where));
    WORKS(cuMemMap(where, grain, 0, handle, 0));
    WORKS(cuMemSetAccess(where, grain, &access, 1));
    WORKS(cuMemGetAccess(&flags, &here, where));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&back, 99999));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemExportToShareableHandle(&fd, 99999, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED,
            cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(&other, (void *)(intptr_t)-1,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    WORKS(cuMemUnmap(where, grain));
    WORKS(cuMemRelease(handle));
    WORKS(cuMemAddressFree(where, 2 * grain));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where, 2 * grain));
    group.numDevices = 2;
    group.size = grain;
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(&handle, &group));
}

/* Parts, allocations and what is said to be free: one account. Who may do what: by device. */
static void accounts(void)
{
    CUmemAllocationProp prop;
    CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0, rest = 0, host = 0;
    unsigned long long flags = 7;
    CUdeviceptr where = 0, ptr = 0;
    size_t before = 0, now = 0, total = 0;
    const size_t grain = 2 << 20;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    WORKS(cuMemGetInfo(&before, &total));
    WORKS(cuMemCreate(&handle, 2 * grain, &prop, 0));
    WORKS(cuMemGetInfo(&now, &total));
    HOLDS(before - now == 2 * grain);
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY,
            cuMemCreate(&rest, (now / grain + 1) * grain, &prop, 0)); /* more than is left */
    WORKS(cuMemCreate(&rest, now / grain * grain, &prop, 0));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&ptr, grain));
    WORKS(cuMemRelease(rest));
    WORKS(cuMemAlloc(&ptr, grain));
    ANSWERS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&rest, now / grain * grain, &prop, 0));
    WORKS(cuMemFree(ptr));
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    WORKS(cuMemCreate(&host, 2 * grain, &prop, 0)); /* counts against no device */
    WORKS(cuMemGetInfo(&now, &total));
    HOLDS(before - now == 2 * grain);
    WORKS(cuMemRelease(host));
    WORKS(cuMemAddressReserve(&where, 2 * grain, 0, 0, 0));
    WORKS(cuMemMap(where, 2 * grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(where, 1, grain)); /* no access yet */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&now, where, sizeof(now)));
    WORKS(cuMemRelease(handle)); /* lives while it is mapped */
    WORKS(cuMemSetAccess(where, 2 * grain, &access, 1));
    WORKS(cuMemGetAccess(&flags, &second, where));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    WORKS(cuMemsetD8(where, 1, 2 * grain));
    WORKS(cuCtxSynchronize()); /* a fill is only begun when its call returns */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(where + grain, 1, grain + 1));
    access.location = second;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    WORKS(cuMemSetAccess(where, 2 * grain, &access, 1));
    WORKS(cuMemGetAccess(&flags, &second, where));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    memset((void *)(uintptr_t)where, 1, grain); /* the first device still may */
    second.id = 9;
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuMemGetAccess(&flags, &second, where));
    WORKS(cuMemGetInfo(&now, &total));
    HOLDS(before - now == 2 * grain);
    WORKS(cuMemUnmap(where, 2 * grain));
    WORKS(cuMemGetInfo(&now, &total));
    HOLDS(before == now);
    WORKS(cuMemAddressFree(where, 2 * grain));
}

static void batch(CUstream stream, CUdeviceptr ptr, unsigned *words)
{
    CUstreamBatchMemOpParams ops[2];
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = ptr;
    ops[0].writeValue.value = 9;
    ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = ptr;
    ops[1].waitValue.value = 9;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    WORKS(cuStreamBatchMemOp(stream, 2, ops, 0));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(words[0] == 9);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, NULL, 0));
    ops[0].operation = (CUstreamBatchMemOpType)77;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, ops, 0));
}

static void words(void)
{
    CUstream stream = NULL, wrong = (CUstream)&not_a_handle;
    CUdeviceptr ptr = 0;
    WORKS(cuMemAlloc(&ptr, 64));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    unsigned *words = (unsigned *)(uintptr_t)ptr;
    WORKS(cuStreamWriteValue64(stream, ptr + 8, UINT64_C(0x1122334455667788), 0));
    WORKS(cuStreamWaitValue64(stream, ptr + 8, UINT64_C(0x1122334455667788),
                              CU_STREAM_WAIT_VALUE_EQ));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(words[2] == 0x55667788 && words[3] == 0x11223344);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, ptr + 4, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamWriteValue64(wrong, ptr + 8, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(stream, ptr + 4, 1, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, ptr + 2, 1, 0));
    batch(stream, ptr, words);
    WORKS(cuStreamDestroy(stream));
    WORKS(cuMemFree(ptr));
}

static void capture(void)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)77;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CUstream stream = NULL;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
    HOLDS(status == CU_STREAM_CAPTURE_STATUS_NONE);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
    mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    HOLDS(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    WORKS(cuStreamDestroy(stream));
}

int main(void)
{
    WORKS(cuInit(0));
    devices();
    lookups();
    pointers();
    blocks();
    accounts();
    words();
    capture();
    return finish("surface of the driver");
}
