/* What a device says of itself: one number per question. The properties struct of each CUDA version
 * is filled from the same answers (props.c), so the two cannot disagree. */
#include "face.h"

#include <stdlib.h>

struct fact {
    int attr, value;
};

/* What every host device answers. What is not here, and not asked of the device's info, is 0. */
static const struct fact facts[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrClockRate, 1000000},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrMemoryClockRate, 1000000},
    {cudaDevAttrGlobalMemoryBusWidth, 128},
    {cudaDevAttrL2CacheSize, 1048576},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrAsyncEngineCount, 2},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 102400},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrHostNativeAtomicSupported, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 1},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 101376},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 1},
    {cudaDevAttrDirectManagedMemAccessFromHost, 1},
    {102, 1}, /* virtual memory management, a number of the driver interface only */
    {103, 1}, /* its blocks can be passed on as file descriptors */
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
    {cudaDevAttrHostRegisterReadOnlySupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, cudaMemHandleTypePosixFileDescriptor},
    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, cudaFlushGPUDirectRDMAWritesOptionHost},
    {cudaDevAttrGPUDirectRDMAWritesOrdering, cudaGPUDirectRDMAWritesOrderingAllDevices},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrHostNumaId, -1},
};

int tt_face_device(int device)
{
    int count = tuttiHostDeviceCount();
    if (count == 0) return tuttiHostReady(); /* none, or this is a forked child */
    return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

/* Of "0000:07:00.0", domain, bus and device in this order. */
static int bus_number(const struct tt_device_info *info, int attr)
{
    char *rest = NULL;
    unsigned long numbers[3] = {strtoul(info->bus_id, &rest, 16), 0, 0};
    for (int i = 1; i < 3 && *rest == ':'; i++) {
        numbers[i] = strtoul(rest + 1, &rest, 16);
    }
    if (attr == cudaDevAttrPciDomainId) return (int)numbers[0];
    return (int)numbers[attr == cudaDevAttrPciBusId ? 1 : 2];
}

bool tt_face_attribute(int device, int attr, int *value)
{
    struct tt_device_info info;
    if (attr < 1 || attr >= cudaDevAttrMax || tuttiHostDeviceInfo(device, &info)) return false;
    *value = 0;
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (facts[i].attr == attr) *value = facts[i].value;
    }
    switch (attr) {
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId: *value = bus_number(&info, attr); break;
    case cudaDevAttrComputeCapabilityMajor: *value = info.cc_major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = info.cc_minor; break;
    case cudaDevAttrMultiProcessorCount: *value = info.sms > 0 ? info.sms : 1; break;
    default: break;
    }
    return true;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    int rc = tt_face_device(device);
    if (!rc && (!value || !tt_face_attribute(device, (int)attr, value))) rc = cudaErrorInvalidValue;
    return tt_face_done(rc);
}
