/* The functions of the CUDA runtime, for C and C++: devices, errors, streams, events, memory.
 * Graphs and launches are in hostcuda/graph_api.h and hostcuda/launch_api.h, which it includes.
 * What each does, and what answers cudaErrorNotSupported: docs/hostcuda.md. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_runtime_api.h>
#else
#ifndef TUTTI_CUDA_RUNTIME_API_H_
#define TUTTI_CUDA_RUNTIME_API_H_

#include "driver_types.h"
#include "hostcuda/defaults.h"
#include "hostcuda/graph_api.h"
#include "hostcuda/launch_api.h"
#include "hostcuda/rename.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop);
cudaError_t cudaSetValidDevices(int *devices, int count);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int len, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int src, int dst);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value);
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value);
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* ---- errors ---- */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

/* ---- streams ---- */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void *user_data, unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user_data);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attr,
                                   cudaLaunchAttributeValue *value);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attr,
                                   const cudaLaunchAttributeValue *value);
cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr,
                                     size_t len TUTTI_CUDA_DEFAULT(0),
                                     unsigned int flags TUTTI_CUDA_DEFAULT(cudaMemAttachSingle));

/* ---- events ---- */
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream TUTTI_CUDA_DEFAULT(0),
                                     unsigned int flags TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *msec, cudaEvent_t start, cudaEvent_t end);

/* ---- memory ---- */
cudaError_t cudaMalloc(void **ptr, size_t len);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMallocHost(void **ptr, size_t len);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaHostAlloc(void **ptr, size_t len, unsigned int flags);
cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *host_ptr, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr);
cudaError_t cudaHostRegister(void *ptr, size_t len, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaMallocManaged(void **ptr, size_t len,
                              unsigned int flags TUTTI_CUDA_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr);

cudaError_t cudaMemcpy(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t len, enum cudaMemcpyKind kind,
                            cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t len);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t len, cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params);
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params,
                              cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *params);
cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *params,
                                  cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemset(void *ptr, int value, size_t len);
cudaError_t cudaMemsetAsync(void *ptr, int value, size_t len,
                            cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemset3D(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent);
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr ptr, int value, struct cudaExtent extent,
                              cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *lens,
                                 size_t count, struct cudaMemcpyAttributes *attrs,
                                 size_t *attr_starts, size_t nattrs, cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t len, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
#else
cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *lens, size_t count,
                                 struct cudaMemcpyAttributes *attrs, size_t *attr_starts,
                                 size_t nattrs, size_t *fail_index, cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t len, int device,
                                 cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemPrefetchAsync_v2(const void *ptr, size_t len, struct cudaMemLocation location,
                                    unsigned int flags, cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice, int device);
cudaError_t cudaMemAdvise_v2(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
                             struct cudaMemLocation location);
#endif
cudaError_t cudaMemRangeGetAttributes(void **values, size_t *value_lens,
                                      enum cudaMemRangeAttribute *attrs, size_t count,
                                      const void *ptr, size_t len);
cudaError_t cudaMemRangeGetAttribute(void *value, size_t value_len, enum cudaMemRangeAttribute attr,
                                     const void *ptr, size_t len);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t len,
                               size_t offset TUTTI_CUDA_DEFAULT(0),
                               enum cudaMemcpyKind kind TUTTI_CUDA_DEFAULT(cudaMemcpyHostToDevice));
cudaError_t
cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t len, size_t offset TUTTI_CUDA_DEFAULT(0),
                     enum cudaMemcpyKind kind TUTTI_CUDA_DEFAULT(cudaMemcpyDeviceToHost));
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t len, size_t offset,
                                    enum cudaMemcpyKind kind,
                                    cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t len, size_t offset,
                                      enum cudaMemcpyKind kind,
                                      cudaStream_t stream TUTTI_CUDA_DEFAULT(0));
cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *len, const void *symbol);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind);

/* ---- memory pools ---- */
cudaError_t cudaMallocAsync(void **ptr, size_t len, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t len, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descs,
                                 size_t count);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location);
cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                               enum cudaMemAllocationHandleType type,
                                               unsigned int flags);
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                 enum cudaMemAllocationHandleType type,
                                                 unsigned int flags);
cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *token, void *ptr);
cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
                                     struct cudaMemPoolPtrExportData *token);

/* ---- between processes ---- */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr);
cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *ptr);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);

/* ---- entry points of the driver ---- */
cudaError_t
cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *status TUTTI_CUDA_DEFAULT(NULL));
cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status TUTTI_CUDA_DEFAULT(NULL));
cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id);

#ifdef __cplusplus
}
#endif

#endif
#endif
