/* The driver interface: start, errors, devices, contexts. A context is one of a fixed row of
 * addresses, one per device: it is never made and never goes. */
#include "forward.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"

#include <stdio.h>
#include <string.h>

enum { MAX_CONTEXTS = 1024 };
static const char contexts[MAX_CONTEXTS];

struct result_name {
    CUresult code;
    const char *name;
};

static const struct result_name names[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
    {CUDA_ERROR_PROFILER_DISABLED, "CUDA_ERROR_PROFILER_DISABLED"},
    {CUDA_ERROR_PROFILER_NOT_INITIALIZED, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"},
    {CUDA_ERROR_PROFILER_ALREADY_STARTED, "CUDA_ERROR_PROFILER_ALREADY_STARTED"},
    {CUDA_ERROR_PROFILER_ALREADY_STOPPED, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"},
    {CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"},
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {CUDA_ERROR_DEVICE_NOT_LICENSED, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"},
    {CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED"},
    {CUDA_ERROR_UNMAP_FAILED, "CUDA_ERROR_UNMAP_FAILED"},
    {CUDA_ERROR_ARRAY_IS_MAPPED, "CUDA_ERROR_ARRAY_IS_MAPPED"},
    {CUDA_ERROR_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {CUDA_ERROR_ALREADY_ACQUIRED, "CUDA_ERROR_ALREADY_ACQUIRED"},
    {CUDA_ERROR_NOT_MAPPED, "CUDA_ERROR_NOT_MAPPED"},
    {CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"},
    {CUDA_ERROR_NOT_MAPPED_AS_POINTER, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    {CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
    {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
    {CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"},
    {CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"},
    {CUDA_ERROR_CONTAINED, "CUDA_ERROR_CONTAINED"},
    {CUDA_ERROR_INVALID_SOURCE, "CUDA_ERROR_INVALID_SOURCE"},
    {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND"},
    {CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
    {CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
    {CUDA_ERROR_LOSSY_QUERY, "CUDA_ERROR_LOSSY_QUERY"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"},
    {CUDA_ERROR_TOO_MANY_PEERS, "CUDA_ERROR_TOO_MANY_PEERS"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    {CUDA_ERROR_MPS_RPC_FAILURE, "CUDA_ERROR_MPS_RPC_FAILURE"},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    {CUDA_ERROR_CDP_NOT_SUPPORTED, "CUDA_ERROR_CDP_NOT_SUPPORTED"},
    {CUDA_ERROR_CDP_VERSION_MISMATCH, "CUDA_ERROR_CDP_VERSION_MISMATCH"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    {CUDA_ERROR_TIMEOUT, "CUDA_ERROR_TIMEOUT"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    {CUDA_ERROR_EXTERNAL_DEVICE, "CUDA_ERROR_EXTERNAL_DEVICE"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    {CUDA_ERROR_FUNCTION_NOT_LOADED, "CUDA_ERROR_FUNCTION_NOT_LOADED"},
    {CUDA_ERROR_INVALID_RESOURCE_TYPE, "CUDA_ERROR_INVALID_RESOURCE_TYPE"},
    {CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"},
    {CUDA_ERROR_KEY_ROTATION, "CUDA_ERROR_KEY_ROTATION"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
};

CUresult tt_driver_done(int rc)
{
    switch (rc) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    default: return (CUresult)rc;
    }
}

CUresult tt_driver_forward(int kept, cudaError_t rc)
{
    if (!rc) return CUDA_SUCCESS;
    tuttiHostErrorGet();
    tuttiHostErrorSet(kept);
    return tt_driver_done((int)rc);
}

int tt_driver_device(CUdevice device)
{
    int count = tuttiHostDeviceCount();
    if (count == 0) return tuttiHostReady(); /* none, or this is a forked child */
    return device >= 0 && device < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuInit(unsigned int flags)
{
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return tuttiHostDeviceCount() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 13000;
    return CUDA_SUCCESS;
}

static const struct result_name *find_name(CUresult error)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == error) return &names[i];
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    const struct result_name *found = find_name(error);
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const struct result_name *found = find_name(error);
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = found ? tt_face_error_text((int)error) : NULL;
    if (found && !*text) *text = found->name; /* the runtime has no such code */
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices: a handle is the ordinal ---- */

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = device ? tt_driver_device(ordinal) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *device = ordinal;
    return tt_driver_done(rc);
}

CUresult cuDeviceGetCount(int *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = tuttiHostDeviceCount();
    return CUDA_SUCCESS;
}

static int info_of(CUdevice device, const void *out, struct tt_device_info *info)
{
    int rc = out ? tt_driver_device(device) : (int)CUDA_ERROR_INVALID_VALUE;
    return rc ? rc : tuttiHostDeviceInfo(device, info);
}

static int put_text(char *out, int len, const char *text, bool cut)
{
    if (len <= 0 || (!cut && strlen(text) >= (size_t)len)) return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)len, "%s", text);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_device_info info;
    int rc = info_of(device, name, &info);
    return tt_driver_done(rc ? rc : put_text(name, len, info.name, true));
}

CUresult cuDeviceGetPCIBusId(char *bus_id, int len, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_device_info info;
    int rc = info_of(device, bus_id, &info);
    return tt_driver_done(rc ? rc : put_text(bus_id, len, info.bus_id, false));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!device || !bus_id) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostDeviceByBusId(bus_id, device));
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_device_info info;
    int rc = info_of(device, uuid, &info);
    if (!rc) memcpy(uuid->bytes, info.uuid, sizeof(uuid->bytes));
    return tt_driver_done(rc);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_device_info info;
    int rc = info_of(device, bytes, &info);
    if (!rc) *bytes = info.memory_bytes;
    return tt_driver_done(rc);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = value ? tt_driver_device(device) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc && !tt_face_attribute(device, (int)attr, value)) rc = CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(rc);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = can ? tt_driver_device(device) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tt_driver_device(peer);
    if (!rc) *can = device != peer;
    return tt_driver_done(rc);
}

/* ---- contexts ---- */

static int device_of(CUcontext context)
{
    uintptr_t at = (uintptr_t)context - (uintptr_t)contexts;
    return at < (uintptr_t)tuttiHostDeviceCount() ? (int)at : -1;
}

int tt_driver_ordinal(CUcontext context)
{
    if (context) return device_of(context);
    return tuttiHostDeviceCount() ? tuttiHostGetDevice() : -1;
}

static CUcontext context_of(int device)
{
    return (CUcontext)(uintptr_t)&contexts[device];
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = context ? tt_driver_device(device) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *context = context_of(device);
    return tt_driver_done(rc);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_driver_device(device));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    unsigned unused;
    int rc = active ? tt_driver_device(device) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tuttiHostFlagsGet(device, flags ? flags : &unused);
    if (!rc) *active = 1;
    return tt_driver_done(rc);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = tuttiHostDeviceCount() ? context_of(tuttiHostGetDevice()) : NULL;
    return CUDA_SUCCESS;
}

/* The device on top of the thread's stack is current; there is always one. */
CUresult cuCtxSetCurrent(CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = device_of(context);
    if (!context) tuttiHostDevicePop();
    if (!context) return CUDA_SUCCESS;
    return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : tt_driver_done(tuttiHostSetDevice(device));
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = context ? device_of(context) : -1;
    return device < 0 ? CUDA_ERROR_INVALID_CONTEXT : tt_driver_done(tuttiHostDevicePush(device));
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUcontext unused;
    CUresult rc = cuCtxGetCurrent(context ? context : &unused);
    if (!rc) tuttiHostDevicePop();
    return rc;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (tuttiHostDeviceCount() == 0) return CUDA_ERROR_INVALID_CONTEXT;
    *device = tuttiHostGetDevice();
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = tuttiHostCaptureUnsafe();
    if (!rc) rc = tuttiHostCaptureOfDevice(tuttiHostGetDevice());
    return tt_driver_done(rc ? rc : tuttiHostDeviceSynchronize(tuttiHostGetDevice()));
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
        (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
         scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}
