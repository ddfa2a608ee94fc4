/* Copies between devices. These have no per-thread twin: handle 0 is the legacy stream. */
#include "../shared/face.h"

#include "device/host/host_graph.h"

static int check_devices(int dst_device, int src_device, const void *dst, const void *src)
{
    int rc = tt_face_device(dst_device);
    if (!rc) rc = tt_face_device(src_device);
    return !rc && (!dst || !src) ? cudaErrorInvalidValue : rc;
}

/* Behind the earlier work of both devices. */
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t len)
{
    if (len == 0) return cudaSuccess;
    int rc = check_devices(dst_device, src_device, dst, src);
    if (!rc && tuttiHostCaptureUnsafe()) rc = cudaErrorStreamCaptureImplicit;
    if (!rc) rc = tuttiHostDeviceSynchronize(src_device);
    if (!rc) rc = tuttiHostDeviceSynchronize(dst_device);
    return tt_face_done(rc ? rc : tuttiHostCopyBytesNow(NULL, dst, src, len));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t len, cudaStream_t stream)
{
    if (len == 0) return cudaSuccess;
    int rc = check_devices(dst_device, src_device, dst, src);
    return tt_face_done(rc ? rc : tuttiHostCopyBytes(stream, dst, src, len));
}
