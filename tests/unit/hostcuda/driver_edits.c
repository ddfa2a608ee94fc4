/* What the driver's functions answer to right and wrong edits of graphs: parameters of nodes in
 * graphs and in executables, events, kernels, memory, counted objects, captures into a graph. Run
 * with four devices. */
#define CONFORM_DRIVER
#include "conform.h"

#include <dlfcn.h>
#include <stdint.h>

enum { BYTES = 4096 };
static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry one(.param .u64 at)\n{\nret;\n}\n";

static void count_up(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELEASE);
}

static CUgraphExec make_exec(CUgraph graph)
{
    CUgraphExec exec = NULL;
    WORKS(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void run(CUgraphExec exec)
{
    WORKS(cuGraphLaunch(exec, NULL));
    WORKS(cuStreamSynchronize(NULL));
}

static unsigned char byte_at(CUdeviceptr ptr)
{
    unsigned char byte = 0;
    WORKS(cuMemcpyDtoH(&byte, ptr, 1));
    return byte;
}

/* ---- fills, copies, host functions ---- */

static CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr at, unsigned value)
{
    CUDA_MEMSET_NODE_PARAMS fill;
    memset(&fill, 0, sizeof(fill));
    fill.dst = at;
    fill.value = value;
    fill.elementSize = 1;
    fill.width = BYTES;
    fill.height = 1;
    return fill;
}

static CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    CUDA_MEMCPY3D copy;
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

struct line { /* fill, copy, function */
    CUgraph graph;
    CUgraphNode fill, copy, call;
    CUdeviceptr from, to;
    int calls, others;
};

static void set_params(struct line *line)
{
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(line->from, 2);
    CUDA_MEMCPY3D copy = copy_of(line->to, line->from, BYTES / 2), back;
    CUDA_HOST_NODE_PARAMS call = {count_up, &line->others}, asked = {NULL, NULL};
    WORKS(cuGraphMemsetNodeSetParams(line->fill, &fill));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeSetParams(line->fill, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeSetParams(line->copy, &fill));
    fill.elementSize = 3;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeSetParams(line->fill, &fill));
    WORKS(cuGraphMemcpyNodeSetParams(line->copy, &copy));
    WORKS(cuGraphMemcpyNodeGetParams(line->copy, &back));
    HOLDS(back.WidthInBytes == BYTES / 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeSetParams(line->copy, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeSetParams(line->call, &copy));
    copy.WidthInBytes = 2 * (size_t)BYTES;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeSetParams(line->copy, &copy));
    WORKS(cuGraphHostNodeSetParams(line->call, &call));
    WORKS(cuGraphHostNodeGetParams(line->call, &asked));
    HOLDS(asked.userData == &line->others);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeSetParams(line->call, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeSetParams(line->fill, &call));
}

static void set_in_exec(struct line *line, CUgraphExec exec)
{
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(line->from, 3);
    CUDA_MEMCPY3D copy = copy_of(line->to, line->from, BYTES);
    CUDA_HOST_NODE_PARAMS call = {count_up, &line->calls};
    CUcontext context = NULL;
    WORKS(cuCtxGetCurrent(&context));
    WORKS(cuGraphExecMemsetNodeSetParams(exec, line->fill, &fill, context));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphExecMemsetNodeSetParams(exec, line->fill, NULL, context));
    WORKS(cuGraphExecMemcpyNodeSetParams(exec, line->copy, &copy, context));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphExecMemcpyNodeSetParams(exec, line->copy, NULL, context));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphExecMemcpyNodeSetParams(exec, line->call, &copy, context));
    WORKS(cuGraphExecHostNodeSetParams(exec, line->call, &call));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, line->call, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, line->copy, &call));
}

static void enabling(struct line *line, CUgraphExec exec)
{
    unsigned enabled = 0;
    int before = line->calls;
    WORKS(cuGraphNodeGetEnabled(exec, line->fill, &enabled));
    HOLDS(enabled == 1);
    WORKS(cuGraphNodeSetEnabled(exec, line->fill, 0));
    WORKS(cuGraphNodeGetEnabled(exec, line->fill, &enabled));
    HOLDS(enabled == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(exec, line->fill, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(exec, NULL, &enabled));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, NULL, 1));
    WORKS(cuMemsetD8(line->from, 9, BYTES));
    run(exec);
    HOLDS(byte_at(line->to) == 9 && line->calls == before + 1);
    WORKS(cuGraphNodeSetEnabled(exec, line->fill, 1));
    run(exec);
    HOLDS(byte_at(line->to) == 3);
}

static void parameters(void)
{
    struct line line;
    memset(&line, 0, sizeof(line));
    CUDA_HOST_NODE_PARAMS call = {count_up, &line.calls};
    CUgraphNode next[2] = {NULL, NULL};
    size_t n = 2;
    cuuint64_t flags = 1;
    WORKS(cuMemAlloc(&line.from, BYTES));
    WORKS(cuMemAlloc(&line.to, BYTES));
    CUDA_MEMSET_NODE_PARAMS fill = fill_of(line.from, 1);
    CUDA_MEMCPY3D copy = copy_of(line.to, line.from, BYTES);
    WORKS(cuGraphCreate(&line.graph, 0));
    WORKS(cuGraphAddMemsetNode(&line.fill, line.graph, NULL, 0, &fill, NULL));
    WORKS(cuGraphAddMemcpyNode(&line.copy, line.graph, &line.fill, 1, &copy, NULL));
    WORKS(cuGraphAddHostNode(&line.call, line.graph, &line.copy, 1, &call));
    WORKS(cuGraphNodeGetDependentNodes(line.fill, next, NULL, &n));
    HOLDS(n == 1 && next[0] == line.copy);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependentNodes(NULL, next, NULL, &n));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependentNodes(line.fill, next, NULL, NULL));
    set_params(&line);
    CUgraphExec exec = make_exec(line.graph);
    WORKS(cuGraphExecGetFlags(exec, &flags));
    HOLDS(flags == 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecGetFlags(exec, NULL));
    run(exec);
    HOLDS(byte_at(line.to) == 2 && line.others == 1 && line.calls == 0);
    set_in_exec(&line, exec);
    run(exec);
    HOLDS(byte_at(line.to + BYTES - 1) == 3 && line.others == 1 && line.calls == 1);
    enabling(&line, exec);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDebugDotPrint(line.graph, "/dev/null", 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(line.graph, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(NULL, "/dev/null", 0));
    WORKS(cuGraphDestroy(line.graph));
    WORKS(cuMemFree(line.from));
    WORKS(cuMemFree(line.to));
}

/* The same by the functions that take any node. */
static void any_node(void)
{
    CUgraphNodeParams params;
    CUgraphNode node = NULL;
    CUgraph graph = NULL;
    CUdeviceptr at = 0;
    WORKS(cuMemAlloc(&at, BYTES));
    WORKS(cuGraphCreate(&graph, 0));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset.dst = at;
    params.memset.value = 4;
    params.memset.elementSize = 1;
    params.memset.width = BYTES;
    params.memset.height = 1;
    WORKS(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    params.memset.value = 5;
    WORKS(cuGraphNodeSetParams(node, &params));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(node, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(NULL, &params));
    CUgraphExec exec = make_exec(graph);
    run(exec);
    HOLDS(byte_at(at) == 5);
    params.memset.value = 6;
    WORKS(cuGraphExecNodeSetParams(exec, node, &params));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(exec, node, NULL));
    run(exec);
    HOLDS(byte_at(at) == 6);
    params.type = CU_GRAPH_NODE_TYPE_HOST;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(node, &params)); /* another type */
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuMemFree(at));
}

/* ---- events, graphs in graphs ---- */

static void events(void)
{
    CUevent first = NULL, second = NULL, asked = NULL;
    CUgraphNode record = NULL, wait = NULL;
    CUgraph graph = NULL;
    WORKS(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddEventRecordNode(&record, graph, NULL, 0, first));
    WORKS(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, first));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventWaitNode(NULL, graph, NULL, 0, first));
    WORKS(cuGraphEventWaitNodeGetEvent(wait, &asked));
    HOLDS(asked == first);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(record, &asked));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(wait, NULL));
    WORKS(cuGraphEventRecordNodeSetEvent(record, second));
    WORKS(cuGraphEventWaitNodeSetEvent(wait, second));
    WORKS(cuGraphEventRecordNodeGetEvent(record, &asked));
    HOLDS(asked == second);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphEventRecordNodeSetEvent(wait, second));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeSetEvent(record, second));
    CUgraphExec exec = make_exec(graph);
    WORKS(cuGraphExecEventRecordNodeSetEvent(exec, record, first));
    WORKS(cuGraphExecEventWaitNodeSetEvent(exec, wait, first));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecEventRecordNodeSetEvent(exec, wait, first));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecEventWaitNodeSetEvent(exec, record, first));
    run(exec);
    WORKS(cuEventSynchronize(first));
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuEventDestroy(first));
    WORKS(cuEventDestroy(second));
}

static void children(void)
{
    int calls[2] = {0, 0};
    CUDA_HOST_NODE_PARAMS call = {count_up, &calls[0]};
    CUgraph graph = NULL, child = NULL, other = NULL;
    CUgraphNode node = NULL, inner = NULL;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphCreate(&child, 0));
    WORKS(cuGraphAddHostNode(&inner, child, NULL, 0, &call));
    WORKS(cuGraphClone(&other, child));
    WORKS(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    CUgraphExec exec = make_exec(graph);
    CUgraphNode twin = NULL;
    WORKS(cuGraphNodeFindInClone(&twin, inner, other));
    call.userData = &calls[1];
    WORKS(cuGraphHostNodeSetParams(twin, &call));
    WORKS(cuGraphExecChildGraphNodeSetParams(exec, node, other));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(exec, node, NULL));
    run(exec);
    HOLDS(calls[0] == 0 && calls[1] == 1);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuGraphDestroy(child));
    WORKS(cuGraphDestroy(other));
}

/* ---- kernels ---- */

struct block; /* struct tuttiBlock of tutti.h, which is not there on a GPU */
struct kernel {
    size_t size;
    const void *function;
    const char *name;
    void (*run)(const struct block *block, void **args, void *context);
    void *context;
    size_t nargs;
    const size_t *arg_bytes;
};

static void one(const struct block *block, void **args, void *context)
{
    (void)block, (void)args, (void)context;
}

static void give_implementation(void)
{
    static const size_t sizes[] = {sizeof(CUdeviceptr)};
    const struct kernel kernel = {sizeof(kernel), NULL, "one", one, NULL, 1, sizes};
    int (*give)(const struct kernel *kernel) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "tuttiRegisterKernel");
    memcpy(&give, &found, sizeof(give));
    if (give) HOLDS(give(&kernel) == 0);
}

static void kernels(void)
{
    CUlaunchAttributeValue value, back;
    CUDA_KERNEL_NODE_PARAMS params, asked;
    CUgraphNode node = NULL, other = NULL, empty = NULL;
    CUgraph graph = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr at = 0;
    void *args[] = {&at};
    WORKS(cuModuleLoadData(&module, ptx));
    WORKS(cuModuleGetFunction(&function, module, "one"));
    WORKS(cuGraphCreate(&graph, 0));
    memset(&params, 0, sizeof(params));
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = args;
    WORKS(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    WORKS(cuGraphAddKernelNode(&other, graph, NULL, 0, &params));
    WORKS(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    params.gridDimX = 2;
    WORKS(cuGraphKernelNodeSetParams(node, &params));
    WORKS(cuGraphKernelNodeGetParams(node, &asked));
    HOLDS(asked.gridDimX == 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(empty, &params));
    memset(&value, 0, sizeof(value));
    value.priority = -1;
    WORKS(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    WORKS(cuGraphKernelNodeCopyAttributes(other, node));
    WORKS(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
    HOLDS(back.priority == -1);
    CUgraphExec exec = make_exec(graph);
    params.gridDimX = 3;
    WORKS(cuGraphExecKernelNodeSetParams(exec, node, &params));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, empty, &params));
    run(exec);
    WORKS(cuGraphExecDestroy(exec));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, NULL));
    params.gridDimX = 0;
    CUresult rc = cuGraphAddKernelNode(&node, graph, NULL, 0, &params);
    REFUSES(cuGraphAddKernelNode, rc != CUDA_SUCCESS);
    WORKS(cuGraphDestroy(graph));
    WORKS(cuModuleUnload(module));
}

/* ---- memory, counted objects ---- */

static void memory(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params, asked;
    CUgraphNode alloc = NULL, release = NULL;
    CUdeviceptr ptr = 0;
    CUgraph graph = NULL;
    memset(&params, 0, sizeof(params));
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = BYTES;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    HOLDS(params.dptr != 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&release, graph, NULL, 0, NULL));
    WORKS(cuGraphMemAllocNodeGetParams(alloc, &asked));
    HOLDS(asked.dptr == params.dptr && asked.bytesize == BYTES);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemAllocNodeGetParams(alloc, NULL));
    WORKS(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr));
    WORKS(cuGraphMemFreeNodeGetParams(release, &ptr));
    HOLDS(ptr == params.dptr);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemFreeNodeGetParams(alloc, &ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemAllocNodeGetParams(release, &asked));
    CUgraphExec exec = make_exec(graph);
    run(exec);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
}

static void objects(void)
{
    int ended = 0;
    CUuserObject object = NULL;
    CUgraph graph = NULL;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuUserObjectCreate(&object, &ended, count_up, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    WORKS(cuUserObjectRetain(object, 2));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(NULL, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 0));
    WORKS(cuGraphRetainUserObject(graph, object, 1, 0));
    WORKS(cuGraphReleaseUserObject(graph, object, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(NULL, object, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 0));
    WORKS(cuUserObjectRelease(object, 2));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(NULL, 1));
    HOLDS(__atomic_load_n(&ended, __ATOMIC_ACQUIRE) == 0);
    WORKS(cuUserObjectRelease(object, 1));
    conform_await(&ended, 1);
    WORKS(cuGraphDestroy(graph));
}

/* ---- captures ---- */

static void captures(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraphNode start = NULL, nodes[4];
    CUgraph graph = NULL, got = NULL;
    CUstream stream = NULL;
    CUdeviceptr at = 0;
    size_t n = 4;
    WORKS(cuMemAlloc(&at, BYTES));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphAddEmptyNode(&start, graph, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0,
                                                                  CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(cuStreamBeginCaptureToGraph(stream, graph, &start, NULL, 1,
                                      CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(cuStreamIsCapturing(stream, &status));
    HOLDS(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamIsCapturing(stream, NULL));
    WORKS(cuMemsetD8Async(at, 1, BYTES, stream));
    WORKS(cuStreamUpdateCaptureDependencies(stream, &start, NULL, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuStreamUpdateCaptureDependencies(stream, &start, NULL, 1, 7));
    WORKS(cuMemsetD8Async(at, 2, BYTES, stream));
    WORKS(cuStreamEndCapture(stream, &got));
    HOLDS(got == graph);
    WORKS(cuGraphNodeGetDependentNodes(start, nodes, NULL, &n));
    HOLDS(n == 2);
    CUresult rc = cuStreamUpdateCaptureDependencies(stream, &start, NULL, 1,
                                                    CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    REFUSES(cuStreamUpdateCaptureDependencies, rc != CUDA_SUCCESS); /* no capture */
    WORKS(cuGraphDestroy(graph));
    WORKS(cuStreamDestroy(stream));
    WORKS(cuMemFree(at));
}

int main(void)
{
    give_implementation();
    WORKS(cuInit(0));
    parameters();
    any_node();
    events();
    children();
    kernels();
    memory();
    objects();
    captures();
    return finish("edits of the driver");
}
