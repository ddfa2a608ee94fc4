/* Graphs and their nodes: what the other suites leave out. C and C++, CUDA 12 and 13. */
#include "conform.h"

static char *device;
static int not_a_handle; /* its address is no handle */
static cudaGraph_t wrong_graph;
static cudaGraphNode_t wrong_node;
static cudaGraphExec_t wrong_exec;

static void count_up(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELEASE);
}

static int byte_at(size_t at)
{
    char value = 0;
    cudaMemcpy(&value, device + at, 1, cudaMemcpyDeviceToHost);
    return value;
}

static void run(cudaGraphExec_t exec)
{
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaStreamSynchronize(NULL));
}

static struct cudaMemsetParams fill(char *dst, unsigned value)
{
    struct cudaMemsetParams params;
    memset(&params, 0, sizeof(params));
    params.dst = dst;
    params.value = value;
    params.elementSize = 1;
    params.width = 8;
    params.height = 1;
    return params;
}

static void instances(void)
{
    cudaGraphInstantiateParams params;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL, clone = NULL;
    memset(&params, 0, sizeof(params));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    WORKS(cudaGraphUpload(exec, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaGraphUpload(exec, (cudaStream_t)&not_a_handle));
    ANSWERS(cudaErrorInvalidValue, cudaGraphUpload(wrong_exec, NULL));
    WORKS(cudaGraphExecDestroy(exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphUpload(exec, NULL)); /* gone */
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecDestroy(exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecDestroy(wrong_exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiateWithFlags(&exec, wrong_graph, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiateWithFlags(&exec, graph, 1 << 20));
    params.flags = cudaGraphInstantiateFlagUpload;
    WORKS(cudaGraphInstantiateWithParams(&exec, graph, &params));
    HOLDS(params.result_out == cudaGraphInstantiateSuccess);
    WORKS(cudaGraphExecDestroy(exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphClone(&clone, wrong_graph));
    ANSWERS(cudaErrorInvalidValue, cudaGraphClone(NULL, graph));
    ANSWERS(cudaErrorInvalidValue, cudaGraphDebugDotPrint(graph, NULL, 0));
    WORKS(cudaGraphDestroy(graph));
}

/* a -> b, a -> c; the signatures differ between the versions. */
static void neighbours(cudaGraph_t graph, cudaGraphNode_t a, cudaGraphNode_t b)
{
    cudaGraphNode_t list[4];
    size_t count = 4;
    (void)graph;
#if CUDART_VERSION >= 13000
    cudaGraphEdgeData edges[4];
    WORKS(cudaGraphNodeGetDependencies(b, list, edges, &count));
    HOLDS(count == 1 && list[0] == a && list[1] == NULL && edges[0].from_port == 0);
    count = 4;
    WORKS(cudaGraphNodeGetDependentNodes(a, list, NULL, &count));
    HOLDS(count == 2);
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(wrong_node, list, NULL, &count));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetDependentNodes(a, list, NULL, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphGetEdges(wrong_graph, list, list, NULL, &count));
    WORKS(cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    count = 4;
    WORKS(cudaGraphNodeGetDependencies(b, list, NULL, &count));
#else
    WORKS(cudaGraphNodeGetDependencies(b, list, &count));
    HOLDS(count == 1 && list[0] == a && list[1] == NULL);
    count = 4;
    WORKS(cudaGraphNodeGetDependentNodes(a, list, &count));
    HOLDS(count == 2);
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(wrong_node, list, &count));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetDependentNodes(a, list, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphGetEdges(wrong_graph, list, list, &count));
    WORKS(cudaGraphRemoveDependencies(graph, &a, &b, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &a, &b, 1));
    count = 4;
    WORKS(cudaGraphNodeGetDependencies(b, list, &count));
#endif
    HOLDS(count == 0);
}

static void lists(void)
{
    cudaGraphNode_t a = NULL, b = NULL, c = NULL, list[4], foreign = NULL;
    enum cudaGraphNodeType type;
    cudaGraph_t graph = NULL, other = NULL;
    size_t count = 1;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphCreate(&other, 0));
    WORKS(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
    WORKS(cudaGraphAddEmptyNode(&b, graph, &a, 1));
    WORKS(cudaGraphAddEmptyNode(&c, graph, &a, 1));
    WORKS(cudaGraphAddEmptyNode(&foreign, other, NULL, 0));
    WORKS(cudaGraphGetNodes(graph, list, &count));
    HOLDS(count == 1 && list[0] == a);
    ANSWERS(cudaErrorInvalidValue, cudaGraphGetNodes(wrong_graph, list, &count));
    ANSWERS(cudaErrorInvalidValue, cudaGraphGetNodes(graph, list, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphGetRootNodes(wrong_graph, list, &count));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetType(wrong_node, &type));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetType(a, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&c, a, other)); /* no clone */
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeFindInClone(NULL, a, other));
#if CUDART_VERSION >= 13000
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &a, &foreign, NULL, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &a, &a, NULL, 1));
#else
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &a, &foreign, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &a, &a, 1));
#endif
    neighbours(graph, a, b);
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaGraphDestroy(other));
}

static void add_any(cudaGraph_t graph, cudaGraphNode_t *node, struct cudaGraphNodeParams *params)
{
#if CUDART_VERSION >= 13000
    WORKS(cudaGraphAddNode(node, graph, NULL, NULL, 0, params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(node, wrong_graph, NULL, NULL, 0, params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(node, graph, NULL, NULL, 0, NULL));
    params->type = cudaGraphNodeTypeConditional;
    ANSWERS(cudaErrorNotSupported, cudaGraphAddNode(node, graph, NULL, NULL, 0, params));
#else
    WORKS(cudaGraphAddNode(node, graph, NULL, 0, params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(node, wrong_graph, NULL, 0, params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(node, graph, NULL, 0, NULL));
    params->type = cudaGraphNodeTypeConditional;
    ANSWERS(cudaErrorNotSupported, cudaGraphAddNode(node, graph, NULL, 0, params));
#endif
    params->type = cudaGraphNodeTypeMemset;
}

static void any_kind(void)
{
    struct cudaGraphNodeParams params;
    struct cudaMemsetParams set = fill(device, 3);
    enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t node = NULL;
    cudaGraph_t graph = NULL;
    unsigned int on = 7;
    memset(&params, 0, sizeof(params));
    params.type = cudaGraphNodeTypeMemset;
    memcpy(&params.memset, &set, sizeof(set));
    WORKS(cudaMemset(device, 0, 64));
    WORKS(cudaGraphCreate(&graph, 0));
    add_any(graph, &node, &params);
    WORKS(cudaGraphNodeGetType(node, &type));
    HOLDS(type == cudaGraphNodeTypeMemset);
    params.memset.value = 4;
    WORKS(cudaGraphNodeSetParams(node, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeSetParams(wrong_node, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeSetParams(node, NULL));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    run(exec);
    HOLDS(byte_at(0) == 4);
    params.memset.value = 5;
    WORKS(cudaGraphExecNodeSetParams(exec, node, &params));
    run(exec);
    HOLDS(byte_at(0) == 5);
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(wrong_exec, node, &params));
    params.type = cudaGraphNodeTypeEmpty;
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(exec, node, &params));
    WORKS(cudaGraphNodeGetEnabled(exec, node, &on));
    HOLDS(on == 1);
    WORKS(cudaGraphNodeSetEnabled(exec, node, 0));
    WORKS(cudaGraphNodeGetEnabled(exec, node, &on));
    HOLDS(on == 0);
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetEnabled(exec, wrong_node, &on));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeGetEnabled(exec, node, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(exec, wrong_node, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(wrong_exec, node, 1));
    set.elementSize = 3;
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, node, &set));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
}

static void copies(void)
{
    struct cudaMemcpy3DParms box;
    cudaGraphNode_t node = NULL, plain = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL;
    memset(&box, 0, sizeof(box));
    box.srcPtr.ptr = device;
    box.dstPtr.ptr = device + 1024;
    box.srcPtr.pitch = box.dstPtr.pitch = 16;
    box.srcPtr.ysize = box.dstPtr.ysize = 2;
    box.extent.width = 8;
    box.extent.height = 2;
    box.extent.depth = 1;
    box.kind = cudaMemcpyDeviceToDevice;
    WORKS(cudaMemset(device, 0, 4096));
    WORKS(cudaMemset(device, 9, 32));
    WORKS(cudaMemset(device + 64, 6, 32));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &box));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&plain, graph, NULL, 0, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&plain, wrong_graph, NULL, 0, &box));
    WORKS(cudaGraphAddMemcpyNode1D(&plain, graph, NULL, 0, device + 2048, device, 8,
                                   cudaMemcpyDeviceToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemcpyNode1D(&plain, graph, NULL, 0, NULL, device, 8,
                                                            cudaMemcpyDeviceToDevice));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    run(exec);
    HOLDS(byte_at(1024) == 9 && byte_at(1024 + 8) == 0 && byte_at(1024 + 16) == 9);
    HOLDS(byte_at(2048) == 9);
    WORKS(cudaGraphExecMemcpyNodeSetParams1D(exec, plain, device + 2048, device + 64, 8,
                                             cudaMemcpyDeviceToDevice));
    run(exec);
    HOLDS(byte_at(2048) == 6);
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphExecMemcpyNodeSetParams1D(exec, wrong_node, device, device + 64, 8,
                                               cudaMemcpyDeviceToDevice));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
}

static void host_functions(void)
{
    struct cudaHostNodeParams call, other;
    cudaGraphNode_t node = NULL, nested = NULL, wrong = NULL, empty = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL, child = NULL, found = NULL;
    int first = 0, second = 0;
    call.fn = other.fn = count_up;
    call.userData = &first;
    other.userData = &second;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphCreate(&child, 0));
    WORKS(cudaGraphAddEmptyNode(&empty, child, NULL, 0));
    WORKS(cudaGraphAddHostNode(&node, graph, NULL, 0, &call));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddHostNode(&wrong, graph, NULL, 0, NULL));
    WORKS(cudaGraphAddChildGraphNode(&nested, graph, &node, 1, child));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&wrong, graph, NULL, 0, wrong_graph));
    WORKS(cudaGraphChildGraphNodeGetGraph(nested, &found));
    HOLDS(found != NULL && found != child);
    ANSWERS(cudaErrorInvalidValue, cudaGraphChildGraphNodeGetGraph(node, &found));
    ANSWERS(cudaErrorInvalidValue, cudaGraphChildGraphNodeGetGraph(nested, NULL));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    run(exec);
    HOLDS(first == 1);
    WORKS(cudaGraphExecHostNodeSetParams(exec, node, &other));
    run(exec);
    HOLDS(first == 1 && second == 1);
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(exec, nested, &other));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(exec, node, NULL));
    WORKS(cudaGraphHostNodeSetParams(node, &other));
    ANSWERS(cudaErrorInvalidValue, cudaGraphHostNodeSetParams(nested, &other));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(child));
    WORKS(cudaGraphDestroy(graph));
}

static void events(void)
{
    cudaGraphNode_t record = NULL, wait = NULL, node = NULL;
    cudaEvent_t one = NULL, two = NULL, wrong = (cudaEvent_t)&not_a_handle;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL;
    float msec = -1;
    WORKS(cudaEventCreate(&one));
    WORKS(cudaEventCreate(&two));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, one));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaGraphAddEventRecordNode(&node, graph, NULL, 0, wrong));
    WORKS(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, one));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaGraphAddEventWaitNode(&node, graph, NULL, 0, wrong));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphExecEventRecordNodeSetEvent(exec, record, two));
    WORKS(cudaGraphExecEventWaitNodeSetEvent(exec, wait, two));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecEventRecordNodeSetEvent(exec, wait, two));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecEventWaitNodeSetEvent(exec, record, two));
    run(exec);
    WORKS(cudaEventElapsedTime(&msec, two, two));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&msec, one, two));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaEventDestroy(one));
    WORKS(cudaEventDestroy(two));
}

static void memory(void)
{
    struct cudaMemAllocNodeParams params;
    struct cudaMemsetParams set;
    cudaGraphNode_t take = NULL, use = NULL, give = NULL, again = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL;
    memset(&params, 0, sizeof(params));
    params.bytesize = 4096;
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemAllocNode(&take, graph, NULL, 0, &params));
    HOLDS(params.dptr != NULL);
    set = fill((char *)params.dptr, 3);
    WORKS(cudaGraphAddMemsetNode(&use, graph, &take, 1, &set));
    WORKS(cudaGraphAddMemFreeNode(&give, graph, &use, 1, params.dptr));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&again, graph, &use, 1, params.dptr));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&again, graph, NULL, 0, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&again, graph, NULL, 0, device));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    run(exec);
    run(exec);
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaGraphCreate(&graph, 0));
    params.bytesize = 0;
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemAllocNode(&take, graph, NULL, 0, &params));
    params.bytesize = (size_t)1 << 60;
    ANSWERS(cudaErrorMemoryAllocation, cudaGraphAddMemAllocNode(&take, graph, NULL, 0, &params));
    WORKS(cudaGraphDestroy(graph));
}

static void objects(void)
{
    cudaUserObject_t object = NULL, wrong = (cudaUserObject_t)&not_a_handle;
    cudaGraph_t graph = NULL;
    int gone = 0;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaUserObjectCreate(&object, &gone, count_up, 1, cudaUserObjectNoDestructorSync));
    WORKS(cudaUserObjectRetain(object, 2));
    ANSWERS(cudaErrorInvalidValue, cudaUserObjectRetain(wrong, 1));
    ANSWERS(cudaErrorInvalidValue, cudaUserObjectRetain(object, 0));
    WORKS(cudaUserObjectRelease(object, 1));
    ANSWERS(cudaErrorInvalidValue, cudaUserObjectRelease(wrong, 1));
    ANSWERS(cudaErrorInvalidValue, cudaUserObjectRelease(object, 77));
    WORKS(cudaGraphRetainUserObject(graph, object, 2, cudaGraphUserObjectMove));
    ANSWERS(cudaErrorInvalidValue, cudaGraphRetainUserObject(graph, wrong, 1, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphRetainUserObject(graph, object, 1, 4));
    HOLDS(gone == 0);
    WORKS(cudaGraphReleaseUserObject(graph, object, 1));
    HOLDS(gone == 0);
    ANSWERS(cudaErrorInvalidValue, cudaGraphReleaseUserObject(wrong_graph, object, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphReleaseUserObject(graph, wrong, 1));
    WORKS(cudaGraphReleaseUserObject(graph, object, 1));
    conform_await(&gone, 1);
    WORKS(cudaGraphDestroy(graph));
}

int main(void)
{
    wrong_graph = (cudaGraph_t)&not_a_handle;
    wrong_node = (cudaGraphNode_t)&not_a_handle;
    wrong_exec = (cudaGraphExec_t)&not_a_handle;
    WORKS(cudaMalloc((void **)&device, 4096));
    instances();
    lists();
    any_kind();
    copies();
    host_functions();
    events();
    memory();
    objects();
    WORKS(cudaFree(device));
    return finish("surface of graphs");
}
