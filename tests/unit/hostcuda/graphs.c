/* Capture and graphs, with what they must refuse. For C and C++, CUDA 12 and 13, our headers and
 * NVIDIA's. */
#include "conform.h"

static char *device;

static void append(void *arg)
{
    char *text = (char *)arg;
    size_t len = strlen(text);
    text[len] = 'x';
    text[len + 1] = 0;
}

static size_t nodes_of(cudaGraph_t graph)
{
    size_t count = 0;
    cudaGraphGetNodes(graph, NULL, &count);
    return count;
}

static int byte_at(size_t at)
{
    char value = 0;
    cudaMemcpy(&value, device + at, 1, cudaMemcpyDeviceToHost);
    return value;
}

static void capture(void)
{
    cudaStream_t stream = NULL, side = NULL;
    cudaEvent_t fork = NULL, join = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    char text[16] = "";
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamCreate(&side));
    WORKS(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    WORKS(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    ANSWERS(cudaErrorStreamCaptureUnsupported,
            cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    WORKS(cudaStreamIsCapturing(stream, &status));
    HOLDS(status == cudaStreamCaptureStatusActive);
    WORKS(cudaMemsetAsync(device, 1, 64, stream));
    WORKS(cudaEventRecord(fork, stream));
    WORKS(cudaStreamWaitEvent(side, fork, 0));
    WORKS(cudaMemsetAsync(device + 64, 2, 64, side));
    WORKS(cudaLaunchHostFunc(stream, append, text));
    WORKS(cudaEventRecord(join, side));
    WORKS(cudaStreamWaitEvent(stream, join, 0));
    WORKS(cudaMemcpyAsync(device + 128, device + 64, 64, cudaMemcpyDeviceToDevice, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    HOLDS(nodes_of(graph) == 4);
    WORKS(cudaMemset(device, 0, 4096));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(byte_at(0) == 1 && byte_at(64) == 2 && byte_at(128) == 2 && !strcmp(text, "xx"));
    WORKS(cudaGraphDestroy(graph));
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroy(graph));
    WORKS(cudaGraphLaunch(exec, stream)); /* lives on */
    WORKS(cudaGraphExecDestroy(exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaEventDestroy(fork));
    WORKS(cudaEventDestroy(join));
    WORKS(cudaStreamDestroy(side));
    WORKS(cudaStreamDestroy(stream));
}

static void capture_refusals(void)
{
    cudaStream_t stream = NULL, side = NULL;
    cudaEvent_t event = NULL;
    cudaGraph_t graph = (cudaGraph_t)&stream;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *ptr = NULL;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamCreate(&side));
    WORKS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WORKS(cudaThreadExchangeStreamCaptureMode(&mode));
    HOLDS(mode == cudaStreamCaptureModeGlobal);
    WORKS(cudaMalloc((void **)&ptr, 64)); /* relaxed: allowed */
    WORKS(cudaThreadExchangeStreamCaptureMode(&mode));
    HOLDS(mode == cudaStreamCaptureModeRelaxed);
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    HOLDS(graph == NULL);
    WORKS(cudaFree(ptr));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaMalloc((void **)&ptr, 64));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WORKS(cudaEventRecord(event, stream));
    WORKS(cudaStreamWaitEvent(side, event, 0));
    WORKS(cudaMemsetAsync(device, 1, 4, side));
    ANSWERS(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(side, &graph));
    ANSWERS(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaEventDestroy(event));
    WORKS(cudaStreamDestroy(side));
    WORKS(cudaStreamDestroy(stream));
}

static void capture_info(void)
{
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL, found = NULL;
    const cudaGraphNode_t *tips = NULL;
    cudaGraphNode_t extra = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    size_t count = 9;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaMemsetAsync(device, 1, 4, stream));
#if CUDART_VERSION >= 13000
    WORKS(cudaStreamGetCaptureInfo(stream, &status, &id, &found, &tips, NULL, &count));
#else
    WORKS(cudaStreamGetCaptureInfo(stream, &status, &id, &found, &tips, &count));
#endif
    HOLDS(status == cudaStreamCaptureStatusActive && id != 0 && found && tips && count == 1);
    WORKS(cudaGraphAddEmptyNode(&extra, found, tips, count));
#if CUDART_VERSION >= 13000
    WORKS(cudaStreamUpdateCaptureDependencies(stream, &extra, NULL, 1,
                                              cudaStreamSetCaptureDependencies));
#else
    WORKS(cudaStreamUpdateCaptureDependencies(stream, &extra, 1, cudaStreamSetCaptureDependencies));
#endif
    WORKS(cudaMemsetAsync(device + 4, 1, 4, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    HOLDS(graph == found && nodes_of(graph) == 3);
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaStreamDestroy(stream));
}

/* New parameters for a node of an executable, and leaving it out. */
static void change_exec(cudaGraphExec_t exec, cudaGraphNode_t set, struct cudaMemsetParams *fill)
{
    fill->value = 0x05050505;
    WORKS(cudaGraphExecMemsetNodeSetParams(exec, set, fill));
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    HOLDS(byte_at(512) == 5);
    WORKS(cudaGraphNodeSetEnabled(exec, set, 0));
    WORKS(cudaMemset(device, 0, 64));
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    HOLDS(byte_at(512) == 0);
}

static void destroy_node(cudaGraph_t graph, cudaGraph_t clone, cudaGraphNode_t empty)
{
    struct cudaMemsetParams fill;
    cudaGraphNode_t node = NULL;
    memset(&fill, 0, sizeof(fill));
    fill.dst = device;
    fill.elementSize = 3;
    fill.width = fill.height = 1;
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    ANSWERS(cudaErrorInvalidValue, cudaGraphCreate(&clone, 5));
    WORKS(cudaGraphDebugDotPrint(graph, "/dev/null", 0));
    ANSWERS(cudaErrorOperatingSystem, cudaGraphDebugDotPrint(graph, "/no/such/place", 0));
    WORKS(cudaGraphDestroyNode(empty));
    HOLDS(nodes_of(graph) == 3 && nodes_of(clone) == 4);
    ANSWERS(cudaErrorInvalidValue, cudaGraphDestroyNode(empty));
}

static void by_hand(void)
{
    cudaGraph_t graph = NULL, clone = NULL, child = NULL;
    cudaGraphNode_t set = NULL, copy = NULL, host = NULL, empty = NULL, nested = NULL, same = NULL;
    cudaGraphNode_t list[8];
    cudaGraphExec_t exec = NULL;
    struct cudaMemsetParams fill;
    struct cudaHostNodeParams call, back;
    enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    char text[16] = "", other[16] = "";
    size_t count = 8;
    memset(&fill, 0, sizeof(fill));
    fill.dst = device;
    fill.value = 0x01020304;
    fill.elementSize = 4;
    fill.width = 8;
    fill.height = 1;
    call.fn = append;
    call.userData = text;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphCreate(&child, 0));
    WORKS(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &fill));
    WORKS(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, device + 512, device, 32,
                                   cudaMemcpyDeviceToDevice));
    WORKS(cudaGraphAddHostNode(&host, child, NULL, 0, &call));
    WORKS(cudaGraphAddChildGraphNode(&nested, graph, &copy, 1, child));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&same, graph, &host, 1));
    WORKS(cudaGraphNodeGetType(nested, &type));
    HOLDS(type == cudaGraphNodeTypeGraph);
    WORKS(cudaGraphGetNodes(graph, list, &count));
    HOLDS(count == 4 && list[0] == set && list[4] == NULL);
    count = 8;
    WORKS(cudaGraphGetRootNodes(graph, list, &count));
    HOLDS(count == 2);
    WORKS(cudaGraphHostNodeGetParams(host, &back));
    HOLDS(back.fn == append && back.userData == text);
    ANSWERS(cudaErrorInvalidValue, cudaGraphHostNodeGetParams(set, &back));
    WORKS(cudaGraphClone(&clone, graph));
    WORKS(cudaGraphNodeFindInClone(&same, copy, clone));
    HOLDS(same != NULL && same != copy);
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    HOLDS(byte_at(512) == 4 && byte_at(513) == 3);
    HOLDS(!strcmp(text, "x"));
    change_exec(exec, set, &fill);
    HOLDS(!strcmp(text, "xxx"));
    call.userData = other;
    WORKS(cudaGraphHostNodeSetParams(host, &call));
    destroy_node(graph, clone, empty);
    ANSWERS(cudaErrorNotSupported,
            cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(clone));
    WORKS(cudaGraphDestroy(child));
    WORKS(cudaGraphDestroy(graph));
}

static void edges_and_updates(void)
{
    cudaGraph_t graph = NULL, changed = NULL, longer = NULL;
    cudaGraphNode_t one = NULL, two = NULL, from[4], to[4], extra = NULL, twice[2];
    cudaGraphExec_t exec = NULL;
    cudaGraphExecUpdateResultInfo result;
    struct cudaMemsetParams fill;
    size_t count = 4;
    memset(&fill, 0, sizeof(fill));
    fill.dst = device;
    fill.value = 1;
    fill.elementSize = 1;
    fill.width = 4;
    fill.height = 1;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &fill));
    fill.dst = device + 4;
    WORKS(cudaGraphAddMemsetNode(&two, graph, NULL, 0, &fill));
#if CUDART_VERSION >= 13000
    WORKS(cudaGraphAddDependencies(graph, &one, &two, NULL, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &one, &two, NULL, 1));
    WORKS(cudaGraphGetEdges(graph, from, to, NULL, &count));
#else
    WORKS(cudaGraphAddDependencies(graph, &one, &two, 1));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &one, &two, 1));
    WORKS(cudaGraphGetEdges(graph, from, to, &count));
#endif
    HOLDS(count == 1 && from[0] == one && to[0] == two);
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphClone(&changed, graph));
    WORKS(cudaGraphClone(&longer, graph));
    WORKS(cudaGraphAddEmptyNode(&extra, longer, NULL, 0));
    twice[0] = twice[1] = extra;
    WORKS(cudaGraphNodeFindInClone(&extra, one, changed));
    ANSWERS(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&extra, one, graph)); /* its own */
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&extra, longer, twice, 2));
    WORKS(cudaGraphExecUpdate(exec, changed, &result));
    HOLDS(result.result == cudaGraphExecUpdateSuccess);
    ANSWERS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, longer, &result));
    HOLDS(result.result == cudaGraphExecUpdateErrorTopologyChanged);
#if CUDART_VERSION >= 13000
    WORKS(cudaGraphAddDependencies(graph, &two, &one, NULL, 1));
#else
    WORKS(cudaGraphAddDependencies(graph, &two, &one, 1));
#endif
    WORKS(cudaGraphExecDestroy(exec));
    ANSWERS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0)); /* a cycle */
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaGraphDestroy(changed));
    WORKS(cudaGraphDestroy(longer));
}

static void gone(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELEASE);
}

static void events_memory_objects(void)
{
    cudaGraph_t graph = NULL;
    cudaGraphNode_t record = NULL, wait = NULL;
    cudaGraphExec_t exec = NULL;
    cudaEvent_t event = NULL;
    cudaStream_t stream = NULL;
    cudaUserObject_t object = NULL;
    enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    void *ptr = NULL;
    int destroyed = 0;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaEventCreate(&event));
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, event));
    WORKS(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    WORKS(cudaGraphNodeGetType(record, &type));
    HOLDS(type == cudaGraphNodeTypeEventRecord);
    WORKS(cudaUserObjectCreate(&object, &destroyed, gone, 1, cudaUserObjectNoDestructorSync));
    ANSWERS(cudaErrorInvalidValue, cudaUserObjectCreate(&object, &destroyed, gone, 1, 0));
    WORKS(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphDestroy(graph));
    HOLDS(destroyed == 0);
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaEventQuery(event));
    WORKS(cudaGraphExecDestroy(exec));
    conform_await(&destroyed, 1);
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WORKS(cudaMallocAsync((void **)&ptr, 1024, stream));
    WORKS(cudaMemsetAsync(ptr, 3, 1024, stream));
    WORKS(cudaFreeAsync(ptr, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    HOLDS(nodes_of(graph) == 3);
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaEventDestroy(event));
    WORKS(cudaStreamDestroy(stream));
}

/* What reaches over the border of a capture, finished or not, ends it with an error. */
static void capture_borders(void)
{
    cudaStream_t stream = NULL, other = NULL;
    cudaEvent_t before = NULL, never = NULL;
    cudaGraph_t graph = NULL;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamCreate(&other));
    WORKS(cudaEventCreate(&before));
    WORKS(cudaEventCreate(&never));
    WORKS(cudaEventRecord(before, other));
    WORKS(cudaStreamSynchronize(other));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaStreamWaitEvent(stream, never, 0));
    ANSWERS(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, before, 0));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ANSWERS(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize()); /* whatever the mode */
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    WORKS(cudaEventRecord(before, stream));
    ANSWERS(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(other, before, 0));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    ANSWERS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(other, &graph));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WORKS(cudaStreamDestroy(stream)); /* and its capture with it */
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaStreamDestroy(other));
    WORKS(cudaEventDestroy(before));
    WORKS(cudaEventDestroy(never));
}

/* A stream that took part may be destroyed before the end; its work must have been joined, by the
 * end, through an event that may be gone as well. */
static void capture_outlives_side_streams(void)
{
    for (int joined = 0; joined < 2; joined++) {
        cudaStream_t stream = NULL, side = NULL;
        cudaEvent_t fork = NULL, join = NULL;
        cudaGraph_t graph = NULL;
        void *memory = NULL;
        WORKS(cudaMalloc(&memory, 16));
        WORKS(cudaStreamCreate(&stream));
        WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        WORKS(cudaStreamCreate(&side));
        WORKS(cudaEventCreate(&fork));
        WORKS(cudaEventCreate(&join));
        WORKS(cudaEventRecord(fork, stream));
        WORKS(cudaStreamWaitEvent(side, fork, 0));
        WORKS(cudaMemsetAsync(memory, 7, 16, side));
        WORKS(cudaEventRecord(join, side));
        WORKS(cudaStreamDestroy(side));
        if (joined) WORKS(cudaStreamWaitEvent(stream, join, 0));
        WORKS(cudaEventDestroy(fork));
        WORKS(cudaEventDestroy(join));
        if (joined) WORKS(cudaStreamEndCapture(stream, &graph));
        if (!joined) ANSWERS(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
        if (graph) WORKS(cudaGraphDestroy(graph));
        WORKS(cudaStreamDestroy(stream));
        WORKS(cudaFree(memory));
    }
}

int main(void)
{
    capture_outlives_side_streams();
    WORKS(cudaMalloc((void **)&device, 4096));
    capture_borders();
    capture();
    capture_refusals();
    capture_info();
    by_hand();
    edges_and_updates();
    events_memory_objects();
    WORKS(cudaFree(device));
    return finish("graphs");
}
