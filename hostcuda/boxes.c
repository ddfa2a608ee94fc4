/* A 3D copy of CUDA's as the device room has it; streams and graph nodes share this. */
#include "face.h"

#include "device/host/host_face.h"

static int check_boxes(const struct cudaMemcpy3DParms *params)
{
    const struct cudaExtent *extent = &params->extent;
    int kind = (int)params->kind;
    if (params->srcArray || params->dstArray) return tuttiHostUnsupported("copies of arrays");
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (!extent->width || !extent->height || !extent->depth) return cudaSuccess;
    if (!params->srcPtr.ptr || !params->dstPtr.ptr) return cudaErrorInvalidValue;
    bool rows = extent->height > 1 || extent->depth > 1;
    if (rows && (extent->width > params->srcPtr.pitch || extent->width > params->dstPtr.pitch))
        return cudaErrorInvalidPitchValue;
    bool slices = extent->depth > 1;
    if (slices && (extent->height > params->srcPtr.ysize || extent->height > params->dstPtr.ysize))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

static char *corner(const struct cudaPitchedPtr *ptr, const struct cudaPos *pos)
{
    if (!ptr->ptr) return NULL;
    return (char *)ptr->ptr + pos->x + (pos->y + pos->z * ptr->ysize) * ptr->pitch;
}

int tt_face_boxes(const struct cudaMemcpy3DParms *params, struct tt_copy *copy)
{
    int rc = check_boxes(params);
    if (rc) return rc;
    *copy = (struct tt_copy){.dst = corner(&params->dstPtr, &params->dstPos),
                             .src = corner(&params->srcPtr, &params->srcPos),
                             .dst_pitch = params->dstPtr.pitch,
                             .src_pitch = params->srcPtr.pitch,
                             .width = params->extent.width,
                             .height = params->extent.height,
                             .dst_slice = params->dstPtr.pitch * params->dstPtr.ysize,
                             .src_slice = params->srcPtr.pitch * params->srcPtr.ysize,
                             .depth = params->extent.depth};
    if (!copy->height || !copy->depth) copy->width = 0; /* nothing; 0 rows would mean 1 there */
    return cudaSuccess;
}

void tt_face_boxes_back(const struct tt_copy *copy, struct cudaMemcpy3DParms *params)
{
    size_t rows = copy->src_pitch ? copy->src_slice / copy->src_pitch : copy->height;
    size_t dst_rows = copy->dst_pitch ? copy->dst_slice / copy->dst_pitch : copy->height;
    *params = (struct cudaMemcpy3DParms){
        .srcPtr = {(void *)(uintptr_t)copy->src, copy->src_pitch, copy->width, rows},
        .dstPtr = {copy->dst, copy->dst_pitch, copy->width, dst_rows},
        .extent = {copy->width, copy->height ? copy->height : 1, copy->depth ? copy->depth : 1},
        .kind = cudaMemcpyDefault};
}
