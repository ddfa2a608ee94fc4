/* The driver interface: fills of bytes, halves and words, of a row or of several. Compiled twice,
 * for the legacy and the per-thread default stream. */
#include "../shared/shared.h"
#include "driver.h"

#include "device/host/host_graph.h"

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

static int fill(CUstream stream, const struct tt_set *set)
{
    bool apart = set->height > 1;
    size_t bytes;
    if (set->width && set->height && !set->ptr) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(set->width, set->elem_bytes, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (apart && (set->pitch < bytes || set->pitch % set->elem_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return tuttiHostSet(tt_driver_stream(stream), set);
}

static CUresult fill_now(const struct tt_set *set)
{
    int rc = tuttiHostCaptureUnsafe() ? (int)CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    if (!rc) rc = fill(NULL, set);
    return tt_driver_done(rc ? rc : tt_face_fill_seen(set->ptr, tt_driver_stream(NULL)));
}

CUresult cuMemsetD8(CUdeviceptr ptr, unsigned char value, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 1, count, count, 1});
}

CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 1, count, count, 1}));
}

CUresult cuMemsetD2D8(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
                      size_t height)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 1, pitch, width, height});
}

CUresult cuMemsetD2D8Async(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 1, pitch, width, height}));
}

CUresult cuMemsetD16(CUdeviceptr ptr, unsigned short value, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 2, count * 2, count, 1});
}

CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 2, count * 2, count, 1}));
}

CUresult cuMemsetD2D16(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                       size_t height)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 2, pitch, width, height});
}

CUresult cuMemsetD2D16Async(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 2, pitch, width, height}));
}

CUresult cuMemsetD32(CUdeviceptr ptr, unsigned int value, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 4, count * 4, count, 1});
}

CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned int value, size_t count, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 4, count * 4, count, 1}));
}

CUresult cuMemsetD2D32(CUdeviceptr ptr, size_t pitch, unsigned int value, size_t width,
                       size_t height)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return fill_now(&(struct tt_set){tt_driver_ptr(ptr), value, 4, pitch, width, height});
}

CUresult cuMemsetD2D32Async(CUdeviceptr ptr, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        fill(stream, &(struct tt_set){tt_driver_ptr(ptr), value, 4, pitch, width, height}));
}

/* NOLINTEND(readability-non-const-parameter) */
