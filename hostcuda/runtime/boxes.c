/* A 3D copy of CUDA's as the device room has it; streams and graph nodes share this. */
#include "../shared/face.h"

#include "device/host/host_face.h"

enum { ADDRESS_BITS = 48 };

/* Past the first column a row, past the first row a slice must have room for the box. */
static bool has_room(const struct cudaPitchedPtr *ptr, const struct cudaPos *pos,
                     const struct cudaExtent *extent)
{
    size_t end = 0;
    bool wide = pos->x && (__builtin_add_overflow(pos->x, extent->width, &end) || end > ptr->pitch);
    bool high =
        pos->y && (__builtin_add_overflow(pos->y, extent->height, &end) || end > ptr->ysize);
    return !wide && !high;
}

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
    if (!has_room(&params->srcPtr, &params->srcPos, extent) ||
        !has_room(&params->dstPtr, &params->dstPos, extent))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

/* False when there is no such address. */
static bool corner(const struct cudaPitchedPtr *ptr, const struct cudaPos *pos, char **corner_out)
{
    uintptr_t at = (uintptr_t)ptr->ptr;
    size_t rows = 0, bytes = 0;
    *corner_out = NULL;
    if (!at) return true;
    if (__builtin_mul_overflow(pos->z, ptr->ysize, &rows) ||
        __builtin_add_overflow(rows, pos->y, &rows) ||
        __builtin_mul_overflow(rows, ptr->pitch, &bytes) ||
        __builtin_add_overflow(bytes, pos->x, &bytes) || __builtin_add_overflow(at, bytes, &at) ||
        at >> ADDRESS_BITS)
        return false;
    *corner_out = (char *)at; /* NOLINT(performance-no-int-to-ptr): checked arithmetic */
    return true;
}

int tt_face_boxes(const struct cudaMemcpy3DParms *params, struct tt_copy *copy)
{
    char *dst = NULL, *src = NULL;
    size_t dst_slice = 0, src_slice = 0;
    int rc = check_boxes(params);
    if (rc) return rc;
    if (!corner(&params->dstPtr, &params->dstPos, &dst) ||
        !corner(&params->srcPtr, &params->srcPos, &src) ||
        __builtin_mul_overflow(params->dstPtr.pitch, params->dstPtr.ysize, &dst_slice) ||
        __builtin_mul_overflow(params->srcPtr.pitch, params->srcPtr.ysize, &src_slice))
        return cudaErrorInvalidValue;
    *copy = (struct tt_copy){.dst = dst,
                             .src = src,
                             .dst_pitch = params->dstPtr.pitch,
                             .src_pitch = params->srcPtr.pitch,
                             .width = params->extent.width,
                             .height = params->extent.height,
                             .dst_slice = dst_slice,
                             .src_slice = src_slice,
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
