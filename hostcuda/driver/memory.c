/* The driver interface: memory that is handed out whole, and questions about addresses. */
#include "forward.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_pool.h"
#include "device/host/host_vmm.h"

#include <string.h>

/* ---- questions ---- */

struct whereabouts { /* what is known of an address */
    bool known;      /* to the device room */
    bool mapped;     /* by cuMemMap() */
    unsigned type;   /* CU_MEMORYTYPE_HOST or CU_MEMORYTYPE_DEVICE */
    bool managed;
    int device;
    char *base;
    size_t bytes;
    char *range; /* of addresses, mapped here or not; NULL: what base says */
    size_t range_bytes;
    uint64_t id;
    unsigned share;
    int access;
};

static void find_range(const void *address, struct whereabouts *found)
{
    struct tt_reserved reserved;
    if (!tuttiHostReserved(address, &reserved)) return;
    found->range = reserved.base;
    found->range_bytes = reserved.bytes;
}

static struct whereabouts find(CUdeviceptr ptr)
{
    struct whereabouts found = {.access = 3};
    struct tt_pointer where;
    struct tt_mapped mapped;
    struct tt_registered registered;
    const void *address = tt_driver_ptr(ptr);
    if (tuttiHostPointer(address, &where)) return found;
    if (where.base == NULL) tuttiHostIpcMapped(address, &where);
    if (where.base && where.kind != TT_MEMORY_CONTROL) {
        found.known = true;
        found.managed = where.kind == TT_MEMORY_MANAGED;
        found.type = where.kind == TT_MEMORY_DEVICE || found.managed ? CU_MEMORYTYPE_DEVICE
                                                                     : CU_MEMORYTYPE_HOST;
        found.device = where.device;
        found.base = where.base;
        found.bytes = where.bytes;
        tuttiHostPointerId(address, &found.id);
    } else if (tuttiHostMapped(address, &mapped)) {
        found = (struct whereabouts){.known = true,
                                     .mapped = true,
                                     .type = mapped.info.on_host ? CU_MEMORYTYPE_HOST
                                                                 : CU_MEMORYTYPE_DEVICE,
                                     .device = mapped.info.device,
                                     .base = mapped.base,
                                     .bytes = mapped.bytes,
                                     .id = ((uint64_t)1 << 63) | mapped.block,
                                     .share = mapped.info.share,
                                     .access = mapped.access};
    } else if (tuttiHostRegistered(address, &registered)) {
        found.known = true;
        found.type = CU_MEMORYTYPE_HOST;
        found.device = registered.device;
        found.base = registered.base;
        found.bytes = registered.bytes;
        found.id = ((uint64_t)1 << 62) | (uintptr_t)registered.base;
    }
    if (found.mapped || !found.known) find_range(address, &found);
    return found;
}

static int put(void *value, uint64_t number, size_t len)
{
    memcpy(value, &number, len); /* little endian: the low bytes */
    return CUDA_SUCCESS;
}

/* What an address has that is reserved, with memory or without. */
static int answer_range(const struct whereabouts *at, int attr, void *value)
{
    const char *base = at->range ? at->range : at->base;
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(value, (uintptr_t)base, 8);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(value, at->range ? at->range_bytes : at->bytes, 8);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(value, at->known, 4);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Truth values are 4 bytes wide, as callers' variables are. */
static int answer(const struct whereabouts *at, int attr, CUdeviceptr ptr, void *value)
{
    CUcontext context = NULL;
    struct CUmemPoolHandle_st *pool = at->known ? tuttiHostPoolOf(at->base) : NULL;
    if (!at->known && !at->range) return CUDA_ERROR_INVALID_VALUE;
    if (!at->known) return answer_range(at, attr, value);
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        cuDevicePrimaryCtxRetain(&context, at->device);
        return put(value, (uintptr_t)context, 8);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return put(value, at->type, 4);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(value, ptr, 8);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (at->type == CU_MEMORYTYPE_DEVICE && !at->managed) return CUDA_ERROR_INVALID_VALUE;
        return put(value, ptr, 8);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(value, 0, 4);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return put(value, at->id, 8);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(value, at->managed, 4);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(value, (uint64_t)at->device, 4);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put(value, !at->mapped && !at->managed && !pool && at->type == CU_MEMORYTYPE_DEVICE,
                   4);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return put(value, (uintptr_t)at->base, 8);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return put(value, at->bytes, 8);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(value, at->share, 8);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(value, (uint64_t)at->access, 4);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(value, (uintptr_t)pool, 8);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put(value, 0, 4);
    default: return answer_range(at, attr, value);
    }
}

/* Bytes that an attribute has, to clear them for an unknown address. */
static size_t width_of(int attr)
{
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return 4;
    default: return 8;
    }
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct whereabouts at = find(ptr);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(answer(&at, (int)attr, ptr, value));
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attrs, void **values,
                                CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct whereabouts at = find(ptr);
    if (!count || !attrs || !values) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        bool in_range = (int)attrs[i] >= CU_POINTER_ATTRIBUTE_CONTEXT &&
                        attrs[i] <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
        if (!values[i] || !in_range) return CUDA_ERROR_INVALID_VALUE;
        if (answer(&at, (int)attrs[i], ptr, values[i]) == CUDA_SUCCESS) continue;
        bool ordinal = attrs[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        put(values[i], ordinal ? (uint64_t)CU_DEVICE_INVALID : 0, width_of((int)attrs[i]));
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !find(ptr).known)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS; /* copies of memory in use are synchronous enough here */
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *len, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct whereabouts at = find(ptr);
    if (!at.known) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = (uintptr_t)at.base;
    if (len) *len = at.bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!free_bytes || !total_bytes) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostMemInfo(tuttiHostGetDevice(), free_bytes, total_bytes));
}

/* ---- allocation ---- */

CUresult cuMemAlloc(CUdeviceptr *ptr, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    void *address = NULL;
    int rc = ptr && len ? tuttiHostCaptureUnsafe() : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tuttiHostMalloc(tuttiHostGetDevice(), len, &address);
    if (!rc) *ptr = (uintptr_t)address;
    return tt_driver_done(rc);
}

CUresult cuMemFree(CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return ptr ? tt_driver_forward(kept, cudaFree(tt_driver_ptr(ptr))) : CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ptr, size_t len, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!ptr || !len || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostCaptureUnsafe();
    return tt_driver_done(rc ? rc : tuttiHostMallocHost(len, flags, false, ptr));
}

CUresult cuMemAllocHost(void **ptr, size_t len)
{
    return cuMemHostAlloc(ptr, len, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return ptr ? tt_driver_forward(kept, cudaFreeHost(ptr)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostRegister(void *ptr, size_t len, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                           CU_MEMHOSTREGISTER_IOMEMORY | 8; /* 8: read only */
    if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
    int rc = tuttiHostCaptureUnsafe();
    return tt_driver_done(rc ? rc : tuttiHostHostRegister(ptr, len, flags));
}

CUresult cuMemHostUnregister(void *ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostHostUnregister(ptr));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device_ptr, void *ptr, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct whereabouts at = find((uintptr_t)ptr);
    bool host = at.known && (at.type == CU_MEMORYTYPE_HOST || at.managed);
    if (!device_ptr || flags || !host) return CUDA_ERROR_INVALID_VALUE;
    *device_ptr = (uintptr_t)ptr;
    return CUDA_SUCCESS;
}
