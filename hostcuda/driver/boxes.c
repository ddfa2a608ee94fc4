/* The driver interface's copies between boxes as the runtime has them; calls and graph nodes share
 * this. */
#include "forward.h"

#include "device/host/host_face.h"

struct side { /* of a copy; a box without pitch is a row, one without height a slice */
    CUmemorytype type;
    void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
};

static int check_side(const struct side *side)
{
    if ((int)side->type == CU_MEMORYTYPE_ARRAY) return tuttiHostUnsupported("copies of arrays");
    bool known = (int)side->type == CU_MEMORYTYPE_HOST || (int)side->type == CU_MEMORYTYPE_DEVICE ||
                 (int)side->type == CU_MEMORYTYPE_UNIFIED;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct cudaPitchedPtr box_of(const struct side *side, const CUDA_MEMCPY3D *params)
{
    bool one_row = params->Height <= 1 && params->Depth <= 1 && !side->y && !side->z;
    bool one_slice = params->Depth <= 1 && !side->z;
    size_t pitch = side->pitch, rows = side->height;
    if (!pitch && one_row) pitch = side->x + params->WidthInBytes;
    if (!rows && one_slice) rows = side->y + params->Height;
    void *at = side->type == CU_MEMORYTYPE_HOST ? side->host : tt_driver_ptr(side->device);
    return (struct cudaPitchedPtr){at, pitch, params->WidthInBytes, rows};
}

int tt_driver_boxes(const CUDA_MEMCPY3D *params, struct cudaMemcpy3DParms *boxes)
{
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const struct side src = {params->srcMemoryType, (void *)(uintptr_t)params->srcHost,
                             params->srcDevice,     params->srcXInBytes,
                             params->srcY,          params->srcZ,
                             params->srcPitch,      params->srcHeight};
    const struct side dst = {params->dstMemoryType, params->dstHost,  params->dstDevice,
                             params->dstXInBytes,   params->dstY,     params->dstZ,
                             params->dstPitch,      params->dstHeight};
    int rc = check_side(&src);
    if (!rc) rc = check_side(&dst);
    if (!rc && (params->srcLOD || params->dstLOD || params->reserved0 || params->reserved1))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc) return rc;
    *boxes =
        (struct cudaMemcpy3DParms){.srcPos = {src.x, src.y, src.z},
                                   .srcPtr = box_of(&src, params),
                                   .dstPos = {dst.x, dst.y, dst.z},
                                   .dstPtr = box_of(&dst, params),
                                   .extent = {params->WidthInBytes, params->Height, params->Depth},
                                   .kind = cudaMemcpyDefault};
    return CUDA_SUCCESS;
}

static CUmemorytype type_of(enum cudaMemcpyKind kind, enum cudaMemcpyKind other_way)
{
    if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
    return kind == cudaMemcpyHostToHost || kind == other_way ? CU_MEMORYTYPE_HOST
                                                             : CU_MEMORYTYPE_DEVICE;
}

void tt_driver_boxes_back(const struct cudaMemcpy3DParms *boxes, CUDA_MEMCPY3D *params)
{
    *params = (CUDA_MEMCPY3D){.srcMemoryType = type_of(boxes->kind, cudaMemcpyHostToDevice),
                              .srcHost = boxes->srcPtr.ptr,
                              .srcDevice = (uintptr_t)boxes->srcPtr.ptr,
                              .srcPitch = boxes->srcPtr.pitch,
                              .srcHeight = boxes->srcPtr.ysize,
                              .dstMemoryType = type_of(boxes->kind, cudaMemcpyDeviceToHost),
                              .dstHost = boxes->dstPtr.ptr,
                              .dstDevice = (uintptr_t)boxes->dstPtr.ptr,
                              .dstPitch = boxes->dstPtr.pitch,
                              .dstHeight = boxes->dstPtr.ysize,
                              .WidthInBytes = boxes->extent.width,
                              .Height = boxes->extent.height,
                              .Depth = boxes->extent.depth};
}
