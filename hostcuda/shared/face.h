/* What the faces share: CUDA's declarations as exported symbols, and the one way a result leaves:
 * it is kept as the thread's last error unless it is success. */
#pragma once

#pragma GCC visibility push(default)
#include "cuda_runtime_api.h"
#pragma GCC visibility pop

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <stdbool.h>

/* Number of the result, remembered. Every function of a face but the error questions ends here. */
static inline cudaError_t tt_face_done(int rc)
{
    return (cudaError_t)(rc ? tuttiHostErrorSet(rc) : 0);
}

/* The stream that a caller means by its handle. Files with functions that have a per-thread twin
 * are compiled twice, and this is where the twins differ. */
static inline struct CUstream_st *tt_face_stream(cudaStream_t stream)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    return stream ? stream : cudaStreamPerThread;
#else
    return stream;
#endif
}

/* 100 without devices, 101 for a number that is none. */
int tt_face_device(int device);

/* Answer of a question about a device (enum cudaDeviceAttr); false when it is unknown. */
bool tt_face_attribute(int device, int attr, int *value);

/* CUDA's 3D copy as the device room's, and back. */
int tt_face_boxes(const struct cudaMemcpy3DParms *params, struct tt_copy *copy);
void tt_face_boxes_back(const struct tt_copy *copy, struct cudaMemcpy3DParms *params);

/* The sentence about a result code, or NULL for a number that is none. */
const char *tt_face_error_text(int code);
