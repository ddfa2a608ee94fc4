/* What a node of a graph does, asked and changed afterwards: on the graph, and on what was made of
 * it. C and C++, CUDA 12 and 13. Run with four devices. */
#include "conform.h"

static char *device, *other; /* on devices 0 and 1 */
static cudaGraph_t graph;
static cudaGraphExec_t exec;

static void launch(void)
{
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaStreamSynchronize(NULL));
}

static void instantiate(void)
{
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
}

static void finish_graph(void)
{
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
}

static struct cudaMemcpy3DParms box(void *dst, void *src, size_t width, size_t rows)
{
    struct cudaMemcpy3DParms params;
    memset(&params, 0, sizeof(params));
    params.srcPtr = make_cudaPitchedPtr(src, 16, width, rows);
    params.dstPtr = make_cudaPitchedPtr(dst, 16, width, rows);
    params.extent = make_cudaExtent(width, rows, 1);
    params.kind = cudaMemcpyHostToDevice;
    return params;
}

static void copies(void)
{
    char text[64] = "one two three four five six", back[64] = "";
    cudaGraphNode_t node = NULL, empty = NULL;
    struct cudaMemcpy3DParms params = box(device, text, 16, 1), got, rows = box(device, text, 8, 2);
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &params));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
    WORKS(cudaGraphMemcpyNodeGetParams(node, &got));
    HOLDS(got.srcPtr.ptr == text && got.dstPtr.ptr == device && got.extent.width == 16);
    HOLDS(got.extent.height == 1 && got.extent.depth == 1 && got.srcPtr.pitch == 16);
    HOLDS(got.kind == cudaMemcpyHostToDevice && !got.srcArray && !got.dstArray);
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(empty, &got));
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(node, NULL));
    instantiate();
    params.srcPtr.ptr = text + 4;
    WORKS(cudaGraphExecMemcpyNodeSetParams(exec, node, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, empty, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, node, &rows));
    params.dstPtr.ptr = other; /* another device */
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, node, &params));
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphExecMemcpyNodeSetParams1D(exec, node, other, text, 4, cudaMemcpyHostToDevice));
    launch();
    WORKS(cudaMemcpy(back, device, 4, cudaMemcpyDeviceToHost));
    HOLDS(!strcmp(back, "two "));
    WORKS(cudaGraphMemcpyNodeGetParams(node, &got)); /* the graph's own node did not change */
    HOLDS(got.srcPtr.ptr == text);
    WORKS(cudaGraphMemcpyNodeSetParams1D(node, device + 1, text, 5, cudaMemcpyHostToDevice));
    WORKS(cudaGraphMemcpyNodeGetParams(node, &got));
    HOLDS(got.dstPtr.ptr == device + 1 && got.extent.width == 5);
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphMemcpyNodeSetParams1D(node, NULL, text, 5, cudaMemcpyHostToDevice));
    WORKS(cudaGraphMemcpyNodeSetParams(node, &rows));
    WORKS(cudaGraphMemcpyNodeGetParams(node, &got));
    HOLDS(got.extent.height == 2 && got.extent.width == 8 && got.dstPtr.pitch == 16);
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams(empty, &rows));
    WORKS(cudaGraphExecDestroy(exec));
    instantiate(); /* rows: nothing of it may change any more */
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams1D(exec, node, device, text, 4,
                                                                      cudaMemcpyHostToDevice));
    launch();
    WORKS(cudaMemcpy(back, device + 16, 8, cudaMemcpyDeviceToHost));
    HOLDS(!memcmp(back, text + 16, 8));
    finish_graph();
}

static void fills(void)
{
    struct cudaMemsetParams params, got;
    cudaGraphNode_t node = NULL, empty = NULL;
    unsigned char back[8];
    memset(&params, 0, sizeof(params));
    params.dst = device;
    params.value = 7;
    params.elementSize = 1;
    params.width = 8;
    params.height = 1;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &params));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
    WORKS(cudaGraphMemsetNodeGetParams(node, &got));
    HOLDS(got.dst == device && got.value == 7 && got.elementSize == 1 && got.width == 8);
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemsetNodeGetParams(empty, &got));
    params.value = 9;
    WORKS(cudaGraphMemsetNodeSetParams(node, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(empty, &params));
    params.elementSize = 3;
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(node, &params));
    params.elementSize = 1;
    instantiate();
    launch();
    WORKS(cudaMemcpy(back, device, 8, cudaMemcpyDeviceToHost));
    HOLDS(back[0] == 9 && back[7] == 9);
    params.dst = other;
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, node, &params));
    finish_graph();
}

static void events(void)
{
    cudaGraphNode_t record = NULL, wait = NULL;
    cudaEvent_t first = NULL, second = NULL, got = NULL;
    WORKS(cudaEventCreate(&first));
    WORKS(cudaEventCreate(&second));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, first));
    WORKS(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, first));
    WORKS(cudaGraphEventRecordNodeGetEvent(record, &got));
    HOLDS(got == first);
    WORKS(cudaGraphEventWaitNodeGetEvent(wait, &got));
    HOLDS(got == first);
    ANSWERS(cudaErrorInvalidValue, cudaGraphEventRecordNodeGetEvent(wait, &got));
    ANSWERS(cudaErrorInvalidValue, cudaGraphEventWaitNodeGetEvent(record, &got));
    ANSWERS(cudaErrorInvalidValue, cudaGraphEventWaitNodeGetEvent(wait, NULL));
    WORKS(cudaGraphEventRecordNodeSetEvent(record, second));
    WORKS(cudaGraphEventWaitNodeSetEvent(wait, second));
    ANSWERS(cudaErrorInvalidValue, cudaGraphEventRecordNodeSetEvent(wait, second));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaGraphEventWaitNodeSetEvent(wait, (cudaEvent_t)&graph));
    WORKS(cudaGraphEventRecordNodeGetEvent(record, &got));
    HOLDS(got == second);
    instantiate();
    launch();
    float msec = -1;
    WORKS(cudaEventRecord(first, NULL));
    WORKS(cudaEventSynchronize(first));
    WORKS(cudaEventElapsedTime(&msec, second, first)); /* the graph has recorded it */
    HOLDS(msec >= 0);
    finish_graph();
    WORKS(cudaEventDestroy(first));
    WORKS(cudaEventDestroy(second));
}

static void memory(void)
{
    struct cudaMemAllocNodeParams params, got;
    cudaGraphNode_t alloc = NULL, freeing = NULL;
    void *ptr = NULL;
    memset(&params, 0, sizeof(params));
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.poolProps.location.id = 1;
    params.bytesize = 3000;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    WORKS(cudaGraphAddMemFreeNode(&freeing, graph, &alloc, 1, params.dptr));
    WORKS(cudaGraphMemAllocNodeGetParams(alloc, &got));
    HOLDS(got.dptr == params.dptr && got.bytesize == 3000 && got.poolProps.location.id == 1);
    HOLDS(got.poolProps.allocType == cudaMemAllocationTypePinned);
    WORKS(cudaGraphMemFreeNodeGetParams(freeing, &ptr));
    HOLDS(ptr == params.dptr);
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroyNode(freeing)); /* nothing may go here */
#if CUDART_VERSION >= 13000
    ANSWERS(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &alloc, &freeing, NULL, 1));
#else
    ANSWERS(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph, &alloc, &freeing, 1));
#endif
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemAllocNodeGetParams(freeing, &got));
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemFreeNodeGetParams(alloc, &ptr));
    ANSWERS(cudaErrorInvalidValue, cudaGraphMemFreeNodeGetParams(freeing, NULL));
    WORKS(cudaGraphDestroy(graph));
}

/* A graph that allocates and frees. */
static cudaGraph_t with_memory(void)
{
    struct cudaMemAllocNodeParams params;
    cudaGraphNode_t alloc = NULL, freeing = NULL;
    cudaGraph_t made = NULL;
    memset(&params, 0, sizeof(params));
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 4096;
    WORKS(cudaGraphCreate(&made, 0));
    WORKS(cudaGraphAddMemAllocNode(&alloc, made, NULL, 0, &params));
    WORKS(cudaGraphAddMemFreeNode(&freeing, made, &alloc, 1, params.dptr));
    return made;
}

/* Such a graph has one executable at a time, and no copies. */
static void single_memory(void)
{
    cudaGraphExec_t second = NULL;
    cudaGraph_t outer = NULL, copy = NULL;
    cudaGraphNode_t node = NULL;
    graph = with_memory();
    WORKS(cudaGraphCreate(&outer, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphClone(&copy, graph));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
    WORKS(cudaGraphDestroy(outer));
    instantiate();
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiate(&second, graph, 0));
    launch();
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaGraphExecDestroy(exec)); /* while it runs, perhaps */
    instantiate();
    launch();
    finish_graph();
}

#if CUDART_VERSION >= 13000
/* A graph that is moved into a node is the node's, under the same handle. */
static void moved(void)
{
    struct cudaGraphNodeParams params = {cudaGraphNodeTypeGraph, {0}, {{0}}, 0};
    struct cudaMemAllocNodeParams more;
    cudaGraph_t inner = with_memory(), found = NULL;
    cudaGraphNode_t node = NULL, again = NULL;
    cudaGraphExec_t wrong = NULL;
    params.graph.graph = inner;
    params.graph.ownership = cudaGraphChildGraphOwnershipMove;
    memset(&more, 0, sizeof(more));
    more.poolProps.allocType = cudaMemAllocationTypePinned;
    more.poolProps.location.type = cudaMemLocationTypeDevice;
    more.bytesize = 4096;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    WORKS(cudaGraphChildGraphNodeGetGraph(node, &found));
    HOLDS(found == inner);
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(&again, graph, NULL, NULL, 0, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiate(&wrong, inner, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroy(inner));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemAllocNode(&again, inner, NULL, 0, &more));
    params.graph.graph = graph;
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddNode(&again, inner, NULL, NULL, 0, &params));
    instantiate();
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiate(&wrong, graph, 0));
    launch();
    launch();
    finish_graph();
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroy(inner)); /* gone with it */
}
#endif

/* A graph that only allocates: the memory is the program's after each launch, at one address, and
 * stays so when the graph is gone. */
static void kept_memory(void)
{
    struct cudaMemAllocNodeParams params;
    cudaGraphNode_t alloc = NULL;
    char *ptr = NULL, *next = NULL, value = 0;
    memset(&params, 0, sizeof(params));
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 4096;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    ptr = (char *)params.dptr;
    instantiate();
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr)); /* not launched yet */
    launch();
    WORKS(cudaMemset(ptr, 5, 4096));
    ANSWERS(cudaErrorInvalidValue, cudaGraphLaunch(exec, NULL)); /* not freed yet */
    WORKS(cudaFreeAsync(ptr, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(ptr, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    WORKS(cudaMalloc((void **)&next, 4096)); /* what is freed is still kept for the graph */
    HOLDS(next != ptr);
    launch();
    WORKS(cudaFree(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    launch();
    launch();
    WORKS(cudaMemset(ptr, 6, 4096));
    finish_graph();
    WORKS(cudaMemcpy(&value, ptr + 4095, 1, cudaMemcpyDeviceToHost)); /* the program's now */
    HOLDS(value == 6);
    WORKS(cudaFree(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    WORKS(cudaFree(next));
}

static void count_up(void *arg)
{
    ++*(int *)arg;
}

/* A graph of one host function that counts `number` up, and a fill behind it if wanted. */
static cudaGraph_t counting(int *number, int with_empty)
{
    struct cudaHostNodeParams host = {count_up, number};
    cudaGraph_t made = NULL;
    cudaGraphNode_t node = NULL, next = NULL;
    WORKS(cudaGraphCreate(&made, 0));
    WORKS(cudaGraphAddHostNode(&node, made, NULL, 0, &host));
    if (with_empty) WORKS(cudaGraphAddEmptyNode(&next, made, &node, 1));
    return made;
}

static void children(void)
{
    int one = 0, two = 0;
    cudaGraph_t first = counting(&one, 0), second = counting(&two, 0), longer = counting(&two, 1);
    cudaGraphNode_t node = NULL, empty = NULL;
    cudaGraphExecUpdateResultInfo info;
    unsigned long long flags = 99;
    cudaGraph_t inside = NULL;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, first));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, &node, 1));
    WORKS(cudaGraphChildGraphNodeGetGraph(node, &inside));
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroy(inside)); /* the node's own */
    instantiate();
    launch();
    HOLDS(one == 1 && two == 0);
    WORKS(cudaGraphExecChildGraphNodeSetParams(exec, node, second));
    launch();
    HOLDS(one == 1 && two == 1);
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecChildGraphNodeSetParams(exec, node, longer));
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecChildGraphNodeSetParams(exec, empty, second));
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphExecChildGraphNodeSetParams(exec, node, (cudaGraph_t)&one));
    launch();
    HOLDS(one == 1 && two == 2);
    WORKS(cudaGraphExecGetFlags(exec, &flags));
    HOLDS(flags == 0);
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecGetFlags(exec, NULL));
    WORKS(cudaGraphExecUpdate(exec, graph, &info)); /* the first child again */
    launch();
    HOLDS(one == 2 && two == 2);
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaGraphCreate(&graph, 0)); /* the same but for what is inside of the child */
    WORKS(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, longer));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, &node, 1));
    ANSWERS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, graph, &info));
    HOLDS(info.result == cudaGraphExecUpdateErrorTopologyChanged && info.errorNode == node);
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphInstantiateWithFlags(&exec, graph,
                                        cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                            cudaGraphInstantiateFlagUseNodePriority));
    WORKS(cudaGraphExecGetFlags(exec, &flags));
    HOLDS(flags ==
          (cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority));
    finish_graph();
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecGetFlags(exec, &flags)); /* gone */
    WORKS(cudaGraphDestroy(first));
    WORKS(cudaGraphDestroy(second));
    WORKS(cudaGraphDestroy(longer));
}

/* An update that CUDA forbids leaves all as it was. */
static void updates(void)
{
    char text[8] = "abcdefg", back[8] = "";
    cudaGraph_t changed = NULL;
    cudaGraphNode_t node = NULL;
    cudaEvent_t event = NULL;
    cudaGraphExecUpdateResultInfo info;
    WORKS(cudaEventCreate(&event));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, device, text, 8, cudaMemcpyDefault));
    instantiate();
    WORKS(cudaGraphCreate(&changed, 0));
    WORKS(cudaGraphAddMemcpyNode1D(&node, changed, NULL, 0, other, text, 8, cudaMemcpyDefault));
    ANSWERS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, changed, &info));
    HOLDS(info.result == cudaGraphExecUpdateErrorParametersChanged && info.errorNode == node);
    WORKS(cudaGraphDestroyNode(node));
    WORKS(cudaGraphAddEmptyNode(&node, changed, NULL, 0));
    ANSWERS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, changed, &info));
    HOLDS(info.result == cudaGraphExecUpdateErrorNodeTypeChanged && info.errorNode == node);
    launch();
    WORKS(cudaMemcpy(back, device, 8, cudaMemcpyDeviceToHost));
    HOLDS(!strcmp(back, "abcdefg"));
    finish_graph();
    WORKS(cudaGraphCreate(&graph, 0)); /* two kinds that run alike inside */
    WORKS(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, event));
    instantiate();
    WORKS(cudaGraphDestroyNode(node));
    WORKS(cudaGraphAddEventWaitNode(&node, graph, NULL, 0, event));
    ANSWERS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, graph, &info));
    HOLDS(info.result == cudaGraphExecUpdateErrorNodeTypeChanged);
    finish_graph();
    WORKS(cudaGraphDestroy(changed));
    WORKS(cudaEventDestroy(event));
}

int main(void)
{
    WORKS(cudaSetDevice(1));
    WORKS(cudaMalloc((void **)&other, 64));
    WORKS(cudaSetDevice(0));
    WORKS(cudaMalloc((void **)&device, 64));
    copies();
    fills();
    events();
    memory();
    kept_memory();
    single_memory();
#if CUDART_VERSION >= 13000
    moved();
#endif
    children();
    updates();
    WORKS(cudaFree(device));
    WORKS(cudaFree(other));
    return finish("nodes");
}
