/* Memory that is handed out and taken back at once, host memory that programs bring, and what can
 * be asked of an address. Copies are in copies.c, pools in pools.c. */
#include "../shared/face.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_kernel.h"
#include "device/host/host_pool.h"

enum { PITCH_BYTES = 512 };

static int allocate(void **ptr, size_t len)
{
    int rc = tuttiHostCaptureUnsafe();
    if (!rc && !ptr) rc = cudaErrorInvalidValue;
    if (!rc) rc = tt_face_device(tuttiHostGetDevice());
    return rc ? rc : tuttiHostMalloc(tuttiHostGetDevice(), len, ptr);
}

cudaError_t cudaMalloc(void **ptr, size_t len)
{
    return tt_face_done(allocate(ptr, len));
}

cudaError_t cudaFree(void *ptr)
{
    struct tt_pointer found = {0};
    if (!ptr) return tt_face_done(tt_face_device(tuttiHostGetDevice()));
    int rc = tuttiHostCaptureUnsafe();
    if (!rc) rc = tuttiHostPointer(ptr, &found);
    if (!rc && !found.base) tuttiHostIpcMapped(ptr, &found); /* maybe of an imported pool */
    if (!rc && found.base != ptr) rc = cudaErrorInvalidValue;
    if (found.kind == TT_MEMORY_MANAGED) found.device = tuttiHostGetDevice();
    if (!rc) rc = tuttiHostDeviceSynchronize(found.device); /* its work may use the memory */
    return tt_face_done(rc ? rc : tuttiHostFreeUsed(ptr));
}

static size_t pitch_of(size_t width)
{
    return (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
}

/* Product, or 0 when it does not fit. */
static size_t product(size_t a, size_t b)
{
    size_t result;
    return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    if (!ptr || !pitch || width > SIZE_MAX - PITCH_BYTES)
        return tt_face_done(cudaErrorInvalidValue);
    size_t len = product(pitch_of(width), height);
    if (!len && width && height) return tt_face_done(cudaErrorMemoryAllocation);
    int rc = allocate(ptr, len);
    if (!rc) *pitch = pitch_of(width);
    return tt_face_done(rc);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
    if (!ptr || extent.width > SIZE_MAX - PITCH_BYTES) return tt_face_done(cudaErrorInvalidValue);
    size_t rows = product(extent.height, extent.depth);
    size_t len = product(pitch_of(extent.width), rows);
    if (!len && extent.width && extent.height && extent.depth)
        return tt_face_done(cudaErrorMemoryAllocation);
    int rc = allocate(&ptr->ptr, len);
    if (rc) return tt_face_done(rc);
    ptr->pitch = pitch_of(extent.width);
    ptr->xsize = extent.width;
    ptr->ysize = extent.height;
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **ptr, size_t len, unsigned int flags)
{
    int rc = tuttiHostCaptureUnsafe();
    if (!rc && (!ptr || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)))
        rc = cudaErrorInvalidValue;
    if (!rc) rc = tt_face_device(tuttiHostGetDevice());
    if (!rc) rc = tuttiHostMallocHost(len, flags, true, ptr);
    return tt_face_done(rc);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    size_t unused;
    int rc = tt_face_device(tuttiHostGetDevice());
    if (rc) return tt_face_done(rc);
    return tt_face_done(tuttiHostMemInfo(tuttiHostGetDevice(), free_bytes ? free_bytes : &unused,
                                         total_bytes ? total_bytes : &unused));
}

/* ---- host memory ---- */

cudaError_t cudaHostAlloc(void **ptr, size_t len, unsigned int flags)
{
    const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    int rc = tuttiHostCaptureUnsafe();
    if (!rc && (!ptr || (flags & ~known))) rc = cudaErrorInvalidValue;
    if (!rc) rc = tt_face_device(tuttiHostGetDevice());
    if (!rc) rc = tuttiHostMallocHost(len, flags, false, ptr);
    return tt_face_done(rc);
}

cudaError_t cudaMallocHost(void **ptr, size_t len)
{
    return cudaHostAlloc(ptr, len, cudaHostAllocDefault);
}

/* The current device finishes first. What others still do with it is no reason to wait: they may be
 * waiting for this thread. */
cudaError_t cudaFreeHost(void *ptr)
{
    struct tt_pointer found;
    if (!ptr) return cudaSuccess;
    int rc = tuttiHostCaptureUnsafe();
    if (!rc) rc = tuttiHostPointer(ptr, &found);
    if (!rc && (found.kind != TT_MEMORY_PINNED || found.base != ptr)) rc = cudaErrorInvalidValue;
    if (!rc) rc = tuttiHostDeviceSynchronize(tuttiHostGetDevice());
    return tt_face_done(rc ? rc : tuttiHostFreeHost(ptr));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr)
{
    struct tt_registered range;
    int rc = flags ? tuttiHostHostFlags(ptr, flags) : (int)cudaErrorInvalidValue;
    if (rc && flags && tuttiHostRegistered(ptr, &range)) {
        *flags = range.flags & cudaHostAllocPortable;
        rc = cudaSuccess;
    }
    if (!rc) *flags |= cudaHostAllocMapped;
    return tt_face_done(rc);
}

cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *host_ptr, unsigned int flags)
{
    struct tt_registered range;
    struct tt_pointer found;
    int rc = device_ptr && !flags ? tuttiHostPointer(host_ptr, &found) : (int)cudaErrorInvalidValue;
    bool known = !rc && ((found.base != NULL && found.kind != TT_MEMORY_DEVICE) ||
                         tuttiHostRegistered(host_ptr, &range));
    if (!rc && !known) rc = cudaErrorInvalidValue;
    if (!rc) *device_ptr = host_ptr;
    return tt_face_done(rc);
}

cudaError_t cudaHostRegister(void *ptr, size_t len, unsigned int flags)
{
    const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                           cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    int rc = tuttiHostCaptureUnsafe();
    if (!rc && (flags & ~known)) rc = cudaErrorInvalidValue;
    if (!rc && (flags & cudaHostRegisterIoMemory)) rc = cudaErrorNotSupported;
    if (!rc) rc = tt_face_device(tuttiHostGetDevice());
    return tt_face_done(rc ? rc : tuttiHostHostRegister(ptr, len, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
    return tt_face_done(tuttiHostHostUnregister(ptr));
}

/* ---- hints and variables ---- */

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind)
{
    struct cudaChannelFormatDesc desc = {x, y, z, w, kind};
    return desc;
}

cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol)
{
    size_t bytes;
    if (!ptr) return tt_face_done(cudaErrorInvalidValue);
    if (!tuttiHostVariable(symbol, &bytes)) return tt_face_done(cudaErrorInvalidSymbol);
    *ptr = (void *)(uintptr_t)symbol; /* the shadow is the storage */
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *len, const void *symbol)
{
    if (!len) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostVariable(symbol, len) ? cudaSuccess : cudaErrorInvalidSymbol);
}
