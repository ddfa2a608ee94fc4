/* Device memory and events that another process opens: 64-byte tokens that the device room makes.
 */
#include "../shared/face.h"

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
    if (!handle || !ptr) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostIpcGet(ptr, (unsigned char *)handle->reserved));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    if (!ptr || flags != cudaIpcMemLazyEnablePeerAccess) return tt_face_done(cudaErrorInvalidValue);
    int rc = tt_face_device(tuttiHostGetDevice());
    return tt_face_done(rc ? rc : tuttiHostIpcOpen((unsigned char *)handle.reserved, ptr));
}

/* The current device finishes first: its work may be what the memory's owner waits for by waiting
 * for this call. What others still do is no reason to wait: they may be waiting for this thread. */
cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
    struct tt_pointer opened;
    bool known = ptr && tuttiHostIpcMapped(ptr, &opened);
    int rc = known ? tuttiHostDeviceSynchronize(tuttiHostGetDevice()) : (int)cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : tuttiHostIpcClose(ptr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    if (!handle) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostIpcEventGet(event, (unsigned char *)handle->reserved));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    if (!event) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostIpcEventOpen((unsigned char *)handle.reserved, event));
}
