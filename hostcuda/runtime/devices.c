/* Devices: which there are, which one a thread uses, what can be set for them. What a device says
 * of itself is in device_facts.c. */
#include "../shared/face.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"

#include <string.h>

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count) return tt_face_done(cudaErrorInvalidValue);
    *count = tuttiHostDeviceCount();
    return tt_face_done(tuttiHostReady());
}

cudaError_t cudaSetDevice(int device)
{
    return tt_face_done(tuttiHostSetDevice(device));
}

cudaError_t cudaGetDevice(int *device)
{
    if (!device) return tt_face_done(cudaErrorInvalidValue);
    if (tuttiHostDeviceCount() == 0) return tt_face_done(tuttiHostReady());
    *device = tuttiHostGetDevice();
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *devices, int count)
{
    if (count < 0 || (count && !devices)) return tt_face_done(cudaErrorInvalidValue);
    for (int i = 0; i < count; i++) {
        int rc = tt_face_device(devices[i]);
        if (rc) return tt_face_done(rc);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    int rc = tuttiHostCaptureUnsafe();
    if (!rc) rc = tuttiHostCaptureOfDevice(tuttiHostGetDevice());
    return tt_face_done(rc ? rc : tuttiHostDeviceSynchronize(tuttiHostGetDevice()));
}

cudaError_t cudaDeviceReset(void)
{
    int rc = tuttiHostCaptureUnsafe();
    return tt_face_done(rc ? rc : tuttiHostDeviceReset(tuttiHostGetDevice()));
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    int rc = tt_face_device(device);
    if (rc) return tt_face_done(rc);
    if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid) return tt_face_done(cudaErrorInvalidValue);
    if (flags & cudaInitDeviceFlagsAreValid) rc = tuttiHostFlagsSet(device, device_flags);
    return tt_face_done(rc);
}

/* ---- the place on the bus ---- */

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int len, int device)
{
    struct tt_device_info info;
    int rc = tt_face_device(device);
    if (!rc && (!bus_id || len <= 0)) rc = cudaErrorInvalidValue;
    if (!rc) rc = tuttiHostDeviceInfo(device, &info);
    if (!rc && strlen(info.bus_id) >= (size_t)len) rc = cudaErrorInvalidValue;
    if (!rc) memcpy(bus_id, info.bus_id, strlen(info.bus_id) + 1);
    return tt_face_done(rc);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    if (!device || !bus_id) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostDeviceByBusId(bus_id, device));
}

/* ---- peers: every device reaches every other; the permission is kept as CUDA keeps it ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    int rc = tt_face_device(device);
    if (!rc) rc = tt_face_device(peer);
    if (!rc && !can) rc = cudaErrorInvalidValue;
    if (!rc) *can = device != peer;
    return tt_face_done(rc);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    if (flags) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostPeerEnable(tuttiHostGetDevice(), peer));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return tt_face_done(tuttiHostPeerDisable(tuttiHostGetDevice(), peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int src, int dst)
{
    int rc = tt_face_device(src);
    if (!rc) rc = tt_face_device(dst);
    if (!rc && src == dst) rc = cudaErrorInvalidDevice;
    if (!rc && !value) rc = cudaErrorInvalidValue;
    if (rc) return tt_face_done(rc);
    switch (attr) {
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported: *value = 1; return cudaSuccess;
    case cudaDevP2PAttrPerformanceRank:
    case cudaDevP2PAttrCudaArrayAccessSupported:
    case cudaDevP2PAttrOnlyPartialNativeAtomicSupported: *value = 0; return cudaSuccess;
    }
    return tt_face_done(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope)
{
    if (target != cudaFlushGPUDirectRDMAWritesTargetCurrentDevice ||
        (scope != cudaFlushGPUDirectRDMAWritesToOwner &&
         scope != cudaFlushGPUDirectRDMAWritesToAllDevices))
        return tt_face_done(cudaErrorInvalidValue);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return cudaSuccess;
}

/* ---- settings that are kept and, but for the waiting flags, change nothing ---- */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    int rc = tt_face_device(tuttiHostGetDevice());
    if (rc) return tt_face_done(rc);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return tt_face_done(tuttiHostFlagsSet(tuttiHostGetDevice(), flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    if (!flags) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostFlagsGet(tuttiHostGetDevice(), flags);
    if (!rc) *flags |= cudaDeviceMapHost;
    return tt_face_done(rc);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    if (!value) return tt_face_done(cudaErrorInvalidValue);
    if ((int)limit < 0 || limit > cudaLimitPersistingL2CacheSize)
        return tt_face_done(cudaErrorUnsupportedLimit);
    return tt_face_done(tuttiHostLimitGet(tuttiHostGetDevice(), limit, value));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    if ((int)limit < 0 || limit > cudaLimitPersistingL2CacheSize)
        return tt_face_done(cudaErrorUnsupportedLimit);
    return tt_face_done(tuttiHostLimitSet(tuttiHostGetDevice(), limit, value));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    size_t value = 0;
    if (!config) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostLimitGet(tuttiHostGetDevice(), TT_LIMIT_CACHE_CONFIG, &value);
    *config = (enum cudaFuncCache)value;
    return tt_face_done(rc);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    if ((int)config < 0 || config > cudaFuncCachePreferEqual)
        return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostLimitSet(tuttiHostGetDevice(), TT_LIMIT_CACHE_CONFIG, config));
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    if (!config) return tt_face_done(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    bool known = (int)config >= 0 && config <= cudaSharedMemBankSizeEightByte;
    return tt_face_done(known ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}
