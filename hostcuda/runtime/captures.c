/* Capture and launch of graphs: what happens on a stream. Compiled twice, for the legacy and the
 * per-thread default stream. */
#include "../shared/face.h"

#include "device/host/host_graph.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return tt_face_done(tuttiHostCaptureBegin(tt_face_stream(stream), (int)mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    (void)edges; /* ports and types say when device code may go on; here an edge is an edge */
    return tt_face_done(
        tuttiHostCaptureBeginInto(tt_face_stream(stream), graph, dependencies, count, (int)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    if (!graph) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostCaptureEnd(tt_face_stream(stream), graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    enum tt_capture_status found = TT_CAPTURE_NONE;
    struct CUgraph_st *graph;
    uint64_t id;
    if (!status) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostCaptureStatus(tt_face_stream(stream), &found, &id, &graph);
    if (!rc) *status = (enum cudaStreamCaptureStatus)found;
    return tt_face_done(rc);
}

/* hot */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return tt_face_done(tuttiHostGraphLaunch(exec, tt_face_stream(stream)));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    struct tt_stream_info info;
    if (!tuttiHostExecAlive(exec)) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostStreamInfo(tt_face_stream(stream), &info));
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params)
{
    if (!params) return tt_face_done(cudaErrorInvalidValue);
    cudaError_t rc = cudaGraphInstantiate(exec, graph, params->flags);
    params->errNode_out = NULL;
    params->result_out = cudaGraphInstantiateError;
    if (rc == cudaSuccess) params->result_out = cudaGraphInstantiateSuccess;
    if (rc == cudaErrorInvalidValue) params->result_out = cudaGraphInstantiateInvalidStructure;
    if (rc == cudaErrorNotSupported)
        params->result_out = cudaGraphInstantiateNodeOperationNotSupported;
    return rc;
}
