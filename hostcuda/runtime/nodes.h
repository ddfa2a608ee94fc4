/* Nodes between CUDA's structs and the device room's: one translation for adding and changing. */
#pragma once

#include "../shared/face.h"

#include "device/host/host_graph.h"

/* What to hand to the device room; an item made for a kernel is the caller's until it is taken. */
int tt_face_node_kernel(struct tt_node *node, const struct cudaKernelNodeParams *params);
int tt_face_node_copy(struct tt_node *node, const struct cudaMemcpy3DParms *params);
int tt_face_node_set(struct tt_node *node, const struct cudaMemsetParams *params);
int tt_face_node_alloc(struct tt_node *node, const struct cudaMemAllocNodeParams *params);
/* Any kind from CUDA's union; 801 for conditional nodes and semaphores. */
int tt_face_node_any(struct tt_node *node, const struct cudaGraphNodeParams *params);
struct tt_node_target { /* where a node goes */
    cudaGraphNode_t *node_out;
    cudaGraph_t graph;
    const cudaGraphNode_t *dependencies;
    size_t count;
};
/* Add `node`, or give back what the functions above made for it; rc is what making it said. */
int tt_node_add(const struct tt_node_target *to, struct tt_node *node, int rc);
/* Let a node, or what an executable graph has of it, do what `what` says; otherwise as above. */
int tt_node_change(cudaGraphNode_t node, struct tt_node *what, int rc);
int tt_node_exec_change(cudaGraphExec_t exec, cudaGraphNode_t node, struct tt_node *what, int rc);

/* The same as the end of a function of the runtime. */
static inline cudaError_t tt_face_node_add(const struct tt_node_target *to, struct tt_node *node,
                                           int rc)
{
    return tt_face_done(tt_node_add(to, node, rc));
}
static inline cudaError_t tt_face_node_change(cudaGraphNode_t node, struct tt_node *what, int rc)
{
    return tt_face_done(tt_node_change(node, what, rc));
}
static inline cudaError_t tt_face_exec_change(cudaGraphExec_t exec, cudaGraphNode_t node,
                                              struct tt_node *what, int rc)
{
    return tt_face_done(tt_node_exec_change(exec, node, what, rc));
}

/* What the node does; 1 unless it is of the kind that is asked about, or without `out`. */
int tt_face_node_get(cudaGraphNode_t node, enum tt_node_kind kind, const void *out,
                     struct tt_node *found);
