/* Memory pools as objects. Allocation in stream order is in pool_calls.c. */
#include "../shared/face.h"

#include "device/host/host_pool.h"

#include <stdlib.h>
#include <string.h>

static int check_out(const void *out, int device)
{
    return out ? tt_face_device(device) : (int)cudaErrorInvalidValue;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    int rc = check_out(pool, device);
    return tt_face_done(rc ? rc : tuttiHostPoolDefault(device, pool));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    int rc = check_out(pool, device);
    return tt_face_done(rc ? rc : tuttiHostPoolCurrent(device, pool));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    int rc = tt_face_device(device);
    return tt_face_done(rc ? rc : tuttiHostPoolChoose(device, pool));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    if (!pool || !props || props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice)
        return tt_face_done(cudaErrorInvalidValue);
    int rc = tt_face_device(props->location.id);
    if (rc) return tt_face_done(rc);
    return tt_face_done(tuttiHostPoolCreate(props->location.id, (unsigned)props->handleTypes,
                                            props->maxSize, pool));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return tt_face_done(tuttiHostPoolDestroy(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    return tt_face_done(tuttiHostPoolTrim(pool, keep_bytes));
}

/* The switches are ints, the sizes 64-bit numbers. */
static bool is_switch(enum cudaMemPoolAttr attr)
{
    return attr >= cudaMemPoolReuseFollowEventDependencies &&
           attr <= cudaMemPoolReuseAllowInternalDependencies;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    uint64_t number = 0;
    if (!value) return tt_face_done(cudaErrorInvalidValue);
    if (is_switch(attr)) {
        int given;
        memcpy(&given, value, sizeof(given));
        number = given != 0;
    } else {
        memcpy(&number, value, sizeof(number));
    }
    return tt_face_done(tuttiHostPoolSet(pool, (int)attr, number));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    uint64_t number = 0;
    if (!value) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostPoolGet(pool, (int)attr, &number);
    if (rc) return tt_face_done(rc);
    if (is_switch(attr)) {
        int answer = (int)number;
        memcpy(value, &answer, sizeof(answer));
    } else {
        memcpy(value, &number, sizeof(number));
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descs,
                                 size_t count)
{
    struct tt_pool_access *list = count ? calloc(count, sizeof(*list)) : NULL;
    int rc = descs || !count ? cudaSuccess : cudaErrorInvalidValue;
    if (!rc && count && !list) rc = cudaErrorMemoryAllocation;
    for (size_t i = 0; !rc && i < count; i++) {
        if (descs[i].location.type != cudaMemLocationTypeDevice) rc = cudaErrorInvalidValue;
        if (!rc) rc = tt_face_device(descs[i].location.id);
        list[i] = (struct tt_pool_access){descs[i].location.id, (int)descs[i].flags};
    }
    if (!rc) rc = tuttiHostPoolAccessSet(pool, list, count);
    free(list);
    return tt_face_done(rc);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    int access = 0;
    if (!flags || !location || location->type != cudaMemLocationTypeDevice)
        return tt_face_done(cudaErrorInvalidValue);
    int rc = tt_face_device(location->id);
    if (!rc) rc = tuttiHostPoolAccessGet(pool, location->id, &access);
    if (!rc) *flags = (enum cudaMemAccessFlags)access;
    return tt_face_done(rc);
}

/* ---- between processes ---- */

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                               enum cudaMemAllocationHandleType type,
                                               unsigned int flags)
{
    int fd = -1;
    bool good = handle && type == cudaMemHandleTypePosixFileDescriptor && !flags;
    int rc = good ? tuttiHostPoolExport(pool, &fd) : (int)cudaErrorInvalidValue;
    if (!rc) memcpy(handle, &fd, sizeof(fd));
    return tt_face_done(rc);
}

/* The handle is the descriptor itself, in a pointer's clothes. */
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                 enum cudaMemAllocationHandleType type,
                                                 unsigned int flags)
{
    bool good = pool && type == cudaMemHandleTypePosixFileDescriptor && !flags;
    int rc = good ? tt_face_device(tuttiHostGetDevice()) : (int)cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : tuttiHostPoolImport((int)(intptr_t)handle, pool));
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *token, void *ptr)
{
    if (!token) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostPoolTokenGet(ptr, token->reserved));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
                                     struct cudaMemPoolPtrExportData *token)
{
    if (!ptr || !token) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostPoolTokenOpen(pool, token->reserved, ptr));
}
