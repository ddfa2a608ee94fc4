/* CUDA's driver API over host memory. Programs link it, load it by name, or call
 * cuGetProcAddress(). What is missing: docs/hostcuda.md. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda.h>
#else
#ifndef TUTTI_CUDA_H_
#define TUTTI_CUDA_H_

#include "hostcuda/driver_base.h"
#include "hostcuda/driver_context_api.h"
#include "hostcuda/driver_flags.h"
#include "hostcuda/driver_graph_api.h"
#include "hostcuda/driver_node_api.h"
#include "hostcuda/driver_pool_api.h"
#include "hostcuda/driver_rename.h"
#include "hostcuda/driver_stream_api.h"
#include "hostcuda/driver_unused_flags.h"
#include "hostcuda/module_api.h"
#include "hostcuda/version.h"

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_DEVICE_CPU ((CUdevice)-1)
#define CU_DEVICE_INVALID ((CUdevice)-2)
#define CU_MEMHOSTREGISTER_PORTABLE 1
#define CU_MEMHOSTREGISTER_DEVICEMAP 2
#define CU_MEMHOSTREGISTER_IOMEMORY 4
#define CU_MEMHOSTALLOC_PORTABLE 1
#define CU_MEMHOSTALLOC_DEVICEMAP 2
#define CU_MEMHOSTALLOC_WRITECOMBINED 4

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUmemFabricHandle_st {
    unsigned char data[64];
} CUmemFabricHandle;

typedef struct CUmemAllocationProp_st {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmulticastObjectProp_st {
    unsigned int numDevices;
    size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
} CUmulticastObjectProp;

/* One entry of cuStreamBatchMemOp(); `operation` says which member counts. */
typedef union CUstreamBatchMemOpParams_union {
    CUstreamBatchMemOpType operation;
    struct CUstreamMemOpWaitValueParams_st {
        CUstreamBatchMemOpType operation;
        CUdeviceptr address;
        union {
            cuuint32_t value;
            cuuint64_t value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } waitValue;
    struct CUstreamMemOpWriteValueParams_st {
        CUstreamBatchMemOpType operation;
        CUdeviceptr address;
        union {
            cuuint32_t value;
            cuuint64_t value64;
        };
        unsigned int flags;
        CUdeviceptr alias;
    } writeValue;
    struct CUstreamMemOpFlushRemoteWritesParams_st {
        CUstreamBatchMemOpType operation;
        unsigned int flags;
    } flushRemoteWrites;
    cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

/* ---- initialisation, errors, entry points ---- */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status);

/* ---- devices and contexts: one context per device ---- */
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *bus_id, int len, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id);
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope);

/* ---- memory ---- */
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attr, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attrs, void **values,
                                CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr, CUdeviceptr ptr);
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *len, CUdeviceptr ptr);
CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemAlloc(CUdeviceptr *ptr, size_t len);
CUresult cuMemFree(CUdeviceptr ptr);
CUresult cuMemAllocHost(void **ptr, size_t len);
CUresult cuMemHostAlloc(void **ptr, size_t len, unsigned int flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemHostRegister(void *ptr, size_t len, unsigned int flags);
CUresult cuMemHostUnregister(void *ptr);
CUresult cuMemHostGetDevicePointer(CUdeviceptr *device_ptr, void *ptr, unsigned int flags);
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t len);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream);
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t len);
CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t len);
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t len);
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t len, CUstream stream);
CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t len, CUstream stream);
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream);
CUresult cuMemsetD8(CUdeviceptr ptr, unsigned char value, size_t count);
CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD32(CUdeviceptr ptr, unsigned int value, size_t count);
CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD2D8(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
                      size_t height);
CUresult cuMemsetD2D8Async(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream);
CUresult cuMemsetD16(CUdeviceptr ptr, unsigned short value, size_t count);
CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD2D16(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                       size_t height);
CUresult cuMemsetD2D16Async(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream);
CUresult cuMemsetD2D32(CUdeviceptr ptr, size_t pitch, unsigned int value, size_t width,
                       size_t height);
CUresult cuMemsetD2D32Async(CUdeviceptr ptr, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream);

/* ---- virtual memory management: physical memory and address ranges, each by itself ---- */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t len,
                     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t len, size_t alignment, CUdeviceptr address,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t len);
CUresult cuMemMap(CUdeviceptr ptr, size_t len, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t len);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t len, const CUmemAccessDesc *descs, size_t count);
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address);
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t len,
                                       CUmemRangeHandleType type, unsigned long long flags);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop);

/* ---- streams and events ---- */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user_data);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value,
                              unsigned int flags);
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value,
                             unsigned int flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value,
                              unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value,
                             unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops,
                            unsigned int flags);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **dependencies,
                                const CUgraphEdgeData **edges, size_t *count);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *msec, CUevent start, CUevent end);

#ifdef __cplusplus
}
#endif

#endif
#endif
