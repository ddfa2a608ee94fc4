/* The properties of a device, from the same answers as cudaDeviceGetAttribute()'s. Compiled once
 * per CUDA version, whose struct has other places for the same names. */
#include "props.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct field {
    size_t offset;
    int attr;
};

static const struct field ints[] = {
    {offsetof(struct cudaDeviceProp, regsPerBlock), cudaDevAttrMaxRegistersPerBlock},
    {offsetof(struct cudaDeviceProp, warpSize), cudaDevAttrWarpSize},
    {offsetof(struct cudaDeviceProp, maxThreadsPerBlock), cudaDevAttrMaxThreadsPerBlock},
    {offsetof(struct cudaDeviceProp, major), cudaDevAttrComputeCapabilityMajor},
    {offsetof(struct cudaDeviceProp, minor), cudaDevAttrComputeCapabilityMinor},
    {offsetof(struct cudaDeviceProp, multiProcessorCount), cudaDevAttrMultiProcessorCount},
    {offsetof(struct cudaDeviceProp, integrated), cudaDevAttrIntegrated},
    {offsetof(struct cudaDeviceProp, canMapHostMemory), cudaDevAttrCanMapHostMemory},
    {offsetof(struct cudaDeviceProp, concurrentKernels), cudaDevAttrConcurrentKernels},
    {offsetof(struct cudaDeviceProp, ECCEnabled), cudaDevAttrEccEnabled},
    {offsetof(struct cudaDeviceProp, pciBusID), cudaDevAttrPciBusId},
    {offsetof(struct cudaDeviceProp, pciDeviceID), cudaDevAttrPciDeviceId},
    {offsetof(struct cudaDeviceProp, pciDomainID), cudaDevAttrPciDomainId},
    {offsetof(struct cudaDeviceProp, tccDriver), cudaDevAttrTccDriver},
    {offsetof(struct cudaDeviceProp, asyncEngineCount), cudaDevAttrAsyncEngineCount},
    {offsetof(struct cudaDeviceProp, unifiedAddressing), cudaDevAttrUnifiedAddressing},
    {offsetof(struct cudaDeviceProp, memoryBusWidth), cudaDevAttrGlobalMemoryBusWidth},
    {offsetof(struct cudaDeviceProp, l2CacheSize), cudaDevAttrL2CacheSize},
    {offsetof(struct cudaDeviceProp, persistingL2CacheMaxSize),
     cudaDevAttrMaxPersistingL2CacheSize},
    {offsetof(struct cudaDeviceProp, maxThreadsPerMultiProcessor),
     cudaDevAttrMaxThreadsPerMultiProcessor},
    {offsetof(struct cudaDeviceProp, streamPrioritiesSupported),
     cudaDevAttrStreamPrioritiesSupported},
    {offsetof(struct cudaDeviceProp, globalL1CacheSupported), cudaDevAttrGlobalL1CacheSupported},
    {offsetof(struct cudaDeviceProp, localL1CacheSupported), cudaDevAttrLocalL1CacheSupported},
    {offsetof(struct cudaDeviceProp, regsPerMultiprocessor),
     cudaDevAttrMaxRegistersPerMultiprocessor},
    {offsetof(struct cudaDeviceProp, managedMemory), cudaDevAttrManagedMemory},
    {offsetof(struct cudaDeviceProp, isMultiGpuBoard), cudaDevAttrIsMultiGpuBoard},
    {offsetof(struct cudaDeviceProp, multiGpuBoardGroupID), cudaDevAttrMultiGpuBoardGroupID},
    {offsetof(struct cudaDeviceProp, hostNativeAtomicSupported),
     cudaDevAttrHostNativeAtomicSupported},
    {offsetof(struct cudaDeviceProp, pageableMemoryAccess), cudaDevAttrPageableMemoryAccess},
    {offsetof(struct cudaDeviceProp, concurrentManagedAccess), cudaDevAttrConcurrentManagedAccess},
    {offsetof(struct cudaDeviceProp, computePreemptionSupported),
     cudaDevAttrComputePreemptionSupported},
    {offsetof(struct cudaDeviceProp, canUseHostPointerForRegisteredMem),
     cudaDevAttrCanUseHostPointerForRegisteredMem},
    {offsetof(struct cudaDeviceProp, cooperativeLaunch), cudaDevAttrCooperativeLaunch},
    {offsetof(struct cudaDeviceProp, pageableMemoryAccessUsesHostPageTables),
     cudaDevAttrPageableMemoryAccessUsesHostPageTables},
    {offsetof(struct cudaDeviceProp, directManagedMemAccessFromHost),
     cudaDevAttrDirectManagedMemAccessFromHost},
    {offsetof(struct cudaDeviceProp, maxBlocksPerMultiProcessor),
     cudaDevAttrMaxBlocksPerMultiprocessor},
    {offsetof(struct cudaDeviceProp, accessPolicyMaxWindowSize),
     cudaDevAttrMaxAccessPolicyWindowSize},
    {offsetof(struct cudaDeviceProp, hostRegisterSupported), cudaDevAttrHostRegisterSupported},
    {offsetof(struct cudaDeviceProp, sparseCudaArraySupported),
     cudaDevAttrSparseCudaArraySupported},
    {offsetof(struct cudaDeviceProp, hostRegisterReadOnlySupported),
     cudaDevAttrHostRegisterReadOnlySupported},
    {offsetof(struct cudaDeviceProp, timelineSemaphoreInteropSupported),
     cudaDevAttrTimelineSemaphoreInteropSupported},
    {offsetof(struct cudaDeviceProp, memoryPoolsSupported), cudaDevAttrMemoryPoolsSupported},
    {offsetof(struct cudaDeviceProp, gpuDirectRDMASupported), cudaDevAttrGPUDirectRDMASupported},
    {offsetof(struct cudaDeviceProp, gpuDirectRDMAFlushWritesOptions),
     cudaDevAttrGPUDirectRDMAFlushWritesOptions},
    {offsetof(struct cudaDeviceProp, gpuDirectRDMAWritesOrdering),
     cudaDevAttrGPUDirectRDMAWritesOrdering},
    {offsetof(struct cudaDeviceProp, memoryPoolSupportedHandleTypes),
     cudaDevAttrMemoryPoolSupportedHandleTypes},
    {offsetof(struct cudaDeviceProp, deferredMappingCudaArraySupported),
     cudaDevAttrDeferredMappingCudaArraySupported},
    {offsetof(struct cudaDeviceProp, ipcEventSupported), cudaDevAttrIpcEventSupport},
    {offsetof(struct cudaDeviceProp, clusterLaunch), cudaDevAttrClusterLaunch},
};

static const struct field sizes[] = {
    {offsetof(struct cudaDeviceProp, sharedMemPerBlock), cudaDevAttrMaxSharedMemoryPerBlock},
    {offsetof(struct cudaDeviceProp, memPitch), cudaDevAttrMaxPitch},
    {offsetof(struct cudaDeviceProp, totalConstMem), cudaDevAttrTotalConstantMemory},
    {offsetof(struct cudaDeviceProp, textureAlignment), cudaDevAttrTextureAlignment},
    {offsetof(struct cudaDeviceProp, texturePitchAlignment), cudaDevAttrTexturePitchAlignment},
    {offsetof(struct cudaDeviceProp, surfaceAlignment), cudaDevAttrSurfaceAlignment},
    {offsetof(struct cudaDeviceProp, sharedMemPerMultiprocessor),
     cudaDevAttrMaxSharedMemoryPerMultiprocessor},
    {offsetof(struct cudaDeviceProp, sharedMemPerBlockOptin),
     cudaDevAttrMaxSharedMemoryPerBlockOptin},
    {offsetof(struct cudaDeviceProp, reservedSharedMemPerBlock),
     cudaDevAttrReservedSharedMemoryPerBlock},
};

static int answer(int device, int attr)
{
    int value = 0;
    return tt_face_attribute(device, attr, &value) ? value : 0;
}

int tt_face_properties(struct cudaDeviceProp *prop, int device)
{
    struct tt_device_info info;
    int rc = prop ? tt_face_device(device) : (int)cudaErrorInvalidValue;
    if (!rc) rc = tuttiHostDeviceInfo(device, &info);
    if (rc) return rc;
    memset(prop, 0, sizeof(*prop));
    memcpy(prop->name, info.name, sizeof(prop->name));
    memcpy(prop->uuid.bytes, info.uuid, sizeof(prop->uuid.bytes));
    prop->totalGlobalMem = info.memory_bytes;
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
        int value = answer(device, ints[i].attr);
        memcpy((char *)prop + ints[i].offset, &value, sizeof(value));
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t value = (size_t)answer(device, sizes[i].attr);
        memcpy((char *)prop + sizes[i].offset, &value, sizeof(value));
    }
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = answer(device, cudaDevAttrMaxBlockDimX + i);
        prop->maxGridSize[i] = answer(device, cudaDevAttrMaxGridDimX + i);
    }
    prop->unifiedFunctionPointers = 1; /* host functions are everywhere at one address */
    return cudaSuccess;
}
