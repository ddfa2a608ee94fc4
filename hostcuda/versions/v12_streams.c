/* What happens on a stream, by CUDA 12's signatures. Compiled twice, for the legacy and the
 * per-thread default stream. */
#include "../shared/shared.h"

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, size_t *count)
{
    struct tt_face_capture out = {status, id, graph, dependencies, NULL, count};
    return tt_face_done(tt_face_capture_info(tt_face_stream(stream), &out));
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies,
                                        const cudaGraphEdgeData **edges, size_t *count)
{
    struct tt_face_capture out = {status, id, graph, dependencies, edges, count};
    return tt_face_done(tt_face_capture_info(tt_face_stream(stream), &out));
}

static cudaError_t update(cudaStream_t stream, cudaGraphNode_t *tips, size_t count, unsigned flags)
{
    if (flags > cudaStreamSetCaptureDependencies) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostCaptureSetTips(tt_face_stream(stream), tips, count,
                                                flags == cudaStreamSetCaptureDependencies));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                size_t count, unsigned int flags)
{
    return update(stream, dependencies, count, flags);
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream,
                                                   cudaGraphNode_t *dependencies,
                                                   const cudaGraphEdgeData *edges, size_t count,
                                                   unsigned int flags)
{
    (void)edges;
    return update(stream, dependencies, count, flags);
}

cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t len, int device, cudaStream_t stream)
{
    return tt_face_done(tt_face_prefetch(tt_face_stream(stream), ptr, len, device));
}

cudaError_t cudaMemPrefetchAsync_v2(const void *ptr, size_t len, struct cudaMemLocation location,
                                    unsigned int flags, cudaStream_t stream)
{
    if (flags) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(
        tt_face_prefetch(tt_face_stream(stream), ptr, len, tt_face_location(&location)));
}

cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *lens, size_t count,
                                 struct cudaMemcpyAttributes *attrs, size_t *attr_starts,
                                 size_t nattrs, size_t *fail_index, cudaStream_t stream)
{
    const struct tt_face_batch batch = {
        dsts, (const void *const *)srcs, lens, count, attrs, attr_starts, nattrs};
    return tt_face_done(tt_face_copy_batch(tt_face_stream(stream), &batch, fail_index));
}
/* NOLINTEND(readability-non-const-parameter): as above */
