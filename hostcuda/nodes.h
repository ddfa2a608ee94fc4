/* Nodes between CUDA's structs and the device room's: one translation for adding and changing. */
#pragma once

#include "face.h"

#include "device/host/host_graph.h"

/* What to hand to the device room; an item made for a kernel is the caller's until it is taken. */
int tt_face_node_kernel(struct tt_node *node, const struct cudaKernelNodeParams *params);
int tt_face_node_copy(struct tt_node *node, const struct cudaMemcpy3DParms *params);
int tt_face_node_set(struct tt_node *node, const struct cudaMemsetParams *params);
/* Any kind from CUDA's union; 801 for conditional nodes and semaphores. */
int tt_face_node_any(struct tt_node *node, const struct cudaGraphNodeParams *params);
/* Give back what the functions above made and nobody took. */
void tt_face_node_drop(struct tt_node *node);

struct tt_node_place { /* where a node goes */
    cudaGraphNode_t *node_out;
    cudaGraph_t graph;
    const cudaGraphNode_t *dependencies;
    size_t count;
};
/* Add `node`, or drop it; rc is what making it said. */
cudaError_t tt_face_node_add(const struct tt_node_place *place, struct tt_node *node, int rc);
