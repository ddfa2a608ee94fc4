/* Earlier forms of the driver's functions for graphs and memory hints, which programs get that ask
 * for them by name and version, or were built against earlier headers. */
#include "../shared/shared.h"
#include "forward.h"

#include <string.h>

#undef cuGraphInstantiate
#undef cuGraphExecUpdate
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphAddNode
#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

struct kernel_params { /* without the last two members */
    CUfunction func;
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    void **args;
    void **extra;
};

#pragma GCC visibility push(default)
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                            size_t log_bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                               size_t log_bytes);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                           CUgraphExecUpdateResult *result);
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count);
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count);
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params);
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const struct kernel_params *params);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, struct kernel_params *params);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const struct kernel_params *params);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const struct kernel_params *params);
#pragma GCC visibility pop

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                            size_t log_bytes)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (node) *node = NULL;
    if (log && log_bytes) log[0] = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                               size_t log_bytes)
{
    return cuGraphInstantiate(exec, graph, node, log, log_bytes);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                           CUgraphExecUpdateResult *result)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUgraphExecUpdateResultInfo info;
    CUresult rc = cuGraphExecUpdate_v2(exec, graph, &info);
    if (node) *node = info.errorNode;
    if (result) *result = info.result;
    return rc;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count)
{
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count)
{
    return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params)
{
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, params);
}

static CUDA_KERNEL_NODE_PARAMS longer(const struct kernel_params *params)
{
    CUDA_KERNEL_NODE_PARAMS result = {0};
    memcpy(&result, params, sizeof(*params));
    return result;
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const struct kernel_params *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS given = longer(params);
    return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &given);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, struct kernel_params *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    CUDA_KERNEL_NODE_PARAMS found;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cuGraphKernelNodeGetParams_v2(node, &found);
    if (!rc) memcpy(params, &found, sizeof(*params));
    return rc;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const struct kernel_params *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS given = longer(params);
    return cuGraphKernelNodeSetParams_v2(node, &given);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const struct kernel_params *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS given = longer(params);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &given);
}
/* NOLINTEND(readability-non-const-parameter) */
