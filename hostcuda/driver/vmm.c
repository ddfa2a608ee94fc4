/* The driver interface: memory in parts. What may be passed on leaves as a file descriptor. */
#include "driver.h"

#include "device/host/host_face.h"
#include "device/host/host_vmm.h"

#include <sched.h>
#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

static bool is_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static int check_prop(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return tt_driver_device(prop->location.id);
    bool no_node = prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && prop->location.id < 0;
    return is_host(&prop->location) && !no_node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The node of the caller is looked up now: the answer to later questions names it. */
static void note_position(const CUmemLocation *location, struct tt_block_info *info)
{
    unsigned node = 0;
    info->location = (int)location->type;
    info->number = location->type == CU_MEM_LOCATION_TYPE_HOST ? 0 : location->id;
    if (location->type != CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) return;
    getcpu(NULL, &node);
    info->location = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    info->number = (int)node;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t len,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    uint64_t block = 0;
    int rc = handle && !flags ? check_prop(prop) : (int)CUDA_ERROR_INVALID_VALUE;
    if (rc) return tt_driver_done(rc);
    struct tt_block_info info = {.device = tuttiHostGetDevice(),
                                 .on_host = is_host(&prop->location),
                                 .share = (unsigned)prop->requestedHandleTypes,
                                 .bytes = len,
                                 .rdma = prop->allocFlags.gpuDirectRDMACapable};
    note_position(&prop->location, &info);
    if (!info.on_host) info.device = prop->location.id;
    rc = tuttiHostBlockCreate(&info, &block);
    if (!rc) *handle = block;
    return tt_driver_done(rc);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostBlockRelease(handle));
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t len, size_t alignment, CUdeviceptr address,
                             unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    void *base = NULL;
    if (!ptr || flags) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostReserve(len, alignment, tt_driver_ptr(address), &base);
    if (!rc) *ptr = (uintptr_t)base;
    return tt_driver_done(rc);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostUnreserve(tt_driver_ptr(ptr), len));
}

CUresult cuMemMap(CUdeviceptr ptr, size_t len, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostMap(tt_driver_ptr(ptr), len, offset, handle));
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t len)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostUnmap(tt_driver_ptr(ptr), len));
}

static bool is_access(CUmemAccess_flags flags)
{
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* Whom a location means, as the device room numbers them. */
static int check_location(const CUmemLocation *location, int *device_out)
{
    *device_out = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : TT_MAP_HOST;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) return tt_driver_device(location->id);
    return is_host(location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t len, const CUmemAccessDesc *descs, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int device = 0;
    int rc = descs && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !rc && i < count; i++) {
        rc = check_location(&descs[i].location, &device);
        if (!rc && !is_access(descs[i].flags)) rc = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; !rc && i < count; i++) {
        check_location(&descs[i].location, &device);
        rc = tuttiHostMapAccess(tt_driver_ptr(ptr), len, device, (int)descs[i].flags);
    }
    return tt_driver_done(rc);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int access = 0;
    int device = 0;
    int rc = flags && location ? check_location(location, &device) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tuttiHostMapAccessGet(tt_driver_ptr(ptr), device, &access);
    if (!rc) *flags = (unsigned long long)access;
    return tt_driver_done(rc);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = granularity ? check_prop(prop) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc && option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
        option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc) *granularity = TT_BLOCK_GRAIN;
    return tt_driver_done(rc);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_block_info info;
    int rc = prop ? tuttiHostBlockInfo(handle, &info) : (int)CUDA_ERROR_INVALID_VALUE;
    if (rc) return tt_driver_done(rc);
    memset(prop, 0, sizeof(*prop));
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->requestedHandleTypes = (CUmemAllocationHandleType)info.share;
    prop->location.type = (CUmemLocationType)info.location;
    prop->location.id = info.number;
    prop->allocFlags.gpuDirectRDMACapable = info.rdma;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_mapped mapped;
    if (!handle || !tuttiHostMapped(address, &mapped)) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostBlockRetain(mapped.block);
    if (!rc) *handle = mapped.block;
    return tt_driver_done(rc);
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_block_info info;
    int fd = -1;
    if (!shareable || flags) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return tt_driver_done(tuttiHostUnsupported("export of memory as other than a descriptor"));
    int rc = tuttiHostBlockInfo(handle, &info);
    if (!rc && !(info.share & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc) rc = tuttiHostBlockExport(handle, &fd);
    if (!rc) memcpy(shareable, &fd, sizeof(fd));
    return tt_driver_done(rc);
}

/* The descriptor travels in the pointer's own bits. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    uint64_t block = 0;
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return tt_driver_done(tuttiHostUnsupported("import of memory as other than a descriptor"));
    int rc = tuttiHostBlockImport((int)(intptr_t)shareable, &block);
    if (!rc) *handle = block;
    return tt_driver_done(rc);
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t len,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)ptr, (void)len, (void)flags;
    if (!handle || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) return CUDA_ERROR_INVALID_VALUE;
    return tt_driver_done(tuttiHostUnsupported("export of memory as DMA-BUF"));
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)handle, (void)prop;
    return tt_driver_done(tuttiHostUnsupported("cuMulticastCreate"));
}
/* NOLINTEND(readability-non-const-parameter): as above */
