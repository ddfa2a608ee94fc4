/* What both versions do in the same way behind signatures or layouts that differ. */
#pragma once

#include "face.h"

#include "device/host/host_graph.h"

struct tt_face_pointer { /* the 24 bytes that every version's cudaPointerAttributes begins with */
    int type, device;
    void *device_pointer, *host_pointer;
};
int tt_face_pointer(const void *ptr, struct tt_face_pointer *found);

struct tt_face_capture { /* where answers go; NULL for what is not asked */
    enum cudaStreamCaptureStatus *status;
    unsigned long long *id;
    cudaGraph_t *graph;
    const cudaGraphNode_t **tips;
    const cudaGraphEdgeData **edges;
    size_t *count;
};
int tt_face_capture_info(struct CUstream_st *stream, const struct tt_face_capture *out);

/* device: cudaCpuDeviceId or an ordinal. */
int tt_face_prefetch(struct CUstream_st *stream, const void *ptr, size_t len, int device);
int tt_face_advise(const void *ptr, size_t len, int advice, int device);
/* Ordinal, or cudaCpuDeviceId, or cudaInvalidDeviceId for a location that is none. */
int tt_face_location(const struct cudaMemLocation *location);

enum tt_face_side { TT_FACE_BEFORE, TT_FACE_AFTER };
int tt_face_neighbours(cudaGraphNode_t node, enum tt_face_side side, cudaGraphNode_t *nodes,
                       cudaGraphEdgeData *edges, size_t *count);
int tt_face_edges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                  cudaGraphEdgeData *edges, size_t *count);
int tt_face_edges_add(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                      size_t count);
int tt_face_edges_remove(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                         size_t count);

struct tt_face_batch {
    void *const *dsts;
    const void *const *srcs;
    const size_t *lens;
    size_t count;
    const struct cudaMemcpyAttributes *attrs; /* of all copies; NULL without any */
    const size_t *attr_starts;                /* where each begins to count; NULL likewise */
    size_t nattrs;
};
/* *failed: index of the copy that was refused, SIZE_MAX for none; or NULL. */
int tt_face_copy_batch(struct CUstream_st *stream, const struct tt_face_batch *batch,
                       size_t *failed);

/* What a fill without a stream ends with: of pinned and managed memory the host sees it then, of
 * other memory in stream order. */
int tt_face_fill_seen(const void *ptr, struct CUstream_st *stream);
