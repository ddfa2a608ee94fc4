/* The driver interface: memory pools, managed memory and rows, hints, memory of other processes. */
#include "../shared/shared.h"
#include "forward.h"

#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

/* ---- memory pools ---- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceGetDefaultMemPool(pool, device));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceGetMemPool(pool, device));
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceSetMemPool(device, pool));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaMemPoolDestroy(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaMemPoolTrimTo(pool, keep_bytes));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)attr, value));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attr, value));
}

_Static_assert(sizeof(CUmemAccessDesc) == sizeof(struct cudaMemAccessDesc),
               "access of both interfaces");
_Static_assert(sizeof(CUmemPoolPtrExportData) == sizeof(struct cudaMemPoolPtrExportData),
               "tokens of both interfaces");

struct cudaMemPoolProps tt_driver_pool_props(const CUmemPoolProps *props)
{
    return (struct cudaMemPoolProps){
        .allocType = (enum cudaMemAllocationType)props->allocType,
        .handleTypes = (enum cudaMemAllocationHandleType)props->handleTypes,
        .location = {(enum cudaMemLocationType)props->location.type, props->location.id},
        .maxSize = props->maxSize};
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    if (!props) return CUDA_ERROR_INVALID_VALUE;
    struct cudaMemPoolProps wanted = tt_driver_pool_props(props);
    return tt_driver_forward(kept, cudaMemPoolCreate(pool, &wanted));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *descs, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(
        kept, cudaMemPoolSetAccess(pool, (const struct cudaMemAccessDesc *)descs, count));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    enum cudaMemAccessFlags found = cudaMemAccessFlagsProtNone;
    if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
    struct cudaMemLocation where = {(enum cudaMemLocationType)location->type, location->id};
    CUresult rc = tt_driver_forward(kept, cudaMemPoolGetAccess(&found, pool, &where));
    if (!rc) *flags = (CUmemAccess_flags)found;
    return rc;
}

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_forward(kept, cudaMemPoolExportToShareableHandle(
                                       handle, pool, (enum cudaMemAllocationHandleType)type, 0));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_forward(kept, cudaMemPoolImportFromShareableHandle(
                                       pool, handle, (enum cudaMemAllocationHandleType)type, 0));
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *token, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(
        kept,
        cudaMemPoolExportPointer((struct cudaMemPoolPtrExportData *)token, tt_driver_ptr(ptr)));
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *token)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    if (!ptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(
        kept, cudaMemPoolImportPointer(&address, pool, (struct cudaMemPoolPtrExportData *)token));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

/* ---- managed memory, rows, hints ---- */

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaHostGetFlags(flags, ptr));
}

CUresult cuMemRangeGetAttribute(void *value, size_t value_len, CUmem_range_attribute attr,
                                CUdeviceptr ptr, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaMemRangeGetAttribute(value, value_len,
                                                            (enum cudaMemRangeAttribute)attr,
                                                            tt_driver_ptr(ptr), len));
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t len, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    if (!ptr || !len) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaMallocManaged(&address, len, flags));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

CUresult cuMemAllocPitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                         unsigned int elem_bytes)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    bool good = elem_bytes == 4 || elem_bytes == 8 || elem_bytes == 16;
    if (!ptr || !width || !height || !good) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaMallocPitch(&address, pitch, width, height));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t len, CUmem_advise advice, CUmemLocation location)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const struct cudaMemLocation where = {(enum cudaMemLocationType)location.type, location.id};
    return tt_driver_done(
        tt_face_advise(tt_driver_ptr(ptr), len, (int)advice, tt_face_location(&where)));
}

CUresult cuMemRangeGetAttributes(void **values, size_t *value_lens, CUmem_range_attribute *attrs,
                                 size_t count, CUdeviceptr ptr, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!values || !value_lens || !attrs || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult rc = cuMemRangeGetAttribute(values[i], value_lens[i], attrs[i], ptr, len);
        if (rc) return rc;
    }
    return CUDA_SUCCESS;
}

/* ---- between processes ---- */

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaIpcCloseMemHandle(tt_driver_ptr(ptr)));
}

_Static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t), "handles of both interfaces");
_Static_assert(sizeof(CUipcEventHandle) == sizeof(cudaIpcEventHandle_t),
               "handles of both interfaces");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaIpcGetMemHandle((cudaIpcMemHandle_t *)handle, tt_driver_ptr(ptr)));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    void *address = NULL;
    cudaIpcMemHandle_t given;
    memcpy(&given, &handle, sizeof(given));
    if (!ptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaIpcOpenMemHandle(&address, given, flags));
    if (!rc) *ptr = (uintptr_t)address;
    return rc;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaIpcGetEventHandle((cudaIpcEventHandle_t *)handle, event));
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    cudaIpcEventHandle_t given;
    memcpy(&given, &handle, sizeof(given));
    return tt_driver_forward(kept, cudaIpcOpenEventHandle(event, given));
}
/* NOLINTEND(readability-non-const-parameter) */
