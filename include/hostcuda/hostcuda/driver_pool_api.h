/* Memory pools, managed and pitched memory, hints, and memory of other processes in the driver API.
 * Part of cuda.h. */
#ifndef TUTTI_HOSTCUDA_DRIVER_POOL_API_H_
#define TUTTI_HOSTCUDA_DRIVER_POOL_API_H_

#include "driver_memory_types.h"
#include "driver_rename.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory pools ---- */
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *descs, size_t count);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *token, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *token);

/* ---- managed memory, pitched memory, hints ---- */
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t len, unsigned int flags);
CUresult cuMemAllocPitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                         unsigned int elem_bytes);
CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t len, CUmem_advise advice, CUmemLocation location);
CUresult cuMemRangeGetAttribute(void *value, size_t value_len, CUmem_range_attribute attr,
                                CUdeviceptr ptr, size_t len);
CUresult cuMemRangeGetAttributes(void **values, size_t *value_lens, CUmem_range_attribute *attrs,
                                 size_t count, CUdeviceptr ptr, size_t len);

/* ---- between processes ---- */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);

#ifdef __cplusplus
}
#endif

#endif
