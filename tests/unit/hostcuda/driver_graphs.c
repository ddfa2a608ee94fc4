/* The driver interface's graphs, capture, pools, copies of rows and boxes, and contexts: what a
 * program for the driver alone does with them. Run with at least two devices. */
#define CONFORM_DRIVER
#include "conform.h"

#include <stdint.h>

enum { COUNT = 1024, BYTES = COUNT * 4, PITCH = 64, ROWS = 8 };

static CUdeviceptr a, b;
static unsigned host[COUNT], back[COUNT];

static void count_up(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELEASE);
}

static CUDA_MEMCPY3D row(CUmemorytype to, CUdeviceptr dst, CUmemorytype from, CUdeviceptr src)
{
    CUDA_MEMCPY3D copy;
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = from;
    copy.srcHost = (void *)(uintptr_t)src;
    copy.srcDevice = src;
    copy.dstMemoryType = to;
    copy.dstHost = (void *)(uintptr_t)dst;
    copy.dstDevice = dst;
    copy.WidthInBytes = BYTES;
    copy.Height = copy.Depth = 1;
    return copy;
}

static int all_are(unsigned value)
{
    for (int i = 0; i < COUNT; i++) {
        if (back[i] != value) return 0;
    }
    return 1;
}

struct chain { /* fill a, copy it to b, copy b to the host, call a function */
    CUgraph graph;
    CUgraphNode fill, copy, out, call;
    CUDA_MEMSET_NODE_PARAMS set;
    int calls;
};

static void build(struct chain *chain)
{
    CUcontext context = NULL;
    const CUDA_HOST_NODE_PARAMS function = {count_up, &chain->calls};
    CUDA_MEMCPY3D move = row(CU_MEMORYTYPE_DEVICE, b, CU_MEMORYTYPE_DEVICE, a);
    const CUDA_MEMCPY3D home = row(CU_MEMORYTYPE_HOST, (uintptr_t)back, CU_MEMORYTYPE_DEVICE, b);
    memset(chain, 0, sizeof(*chain));
    chain->set.dst = a;
    chain->set.value = 7;
    chain->set.elementSize = 4;
    chain->set.width = COUNT;
    chain->set.height = 1;
    WORKS(cuCtxGetCurrent(&context));
    WORKS(cuGraphCreate(&chain->graph, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
    CUgraph graph = chain->graph;
    WORKS(cuGraphAddMemsetNode(&chain->fill, graph, NULL, 0, &chain->set, context));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphAddMemsetNode(&chain->fill, graph, NULL, 0, NULL, context));
    WORKS(cuGraphAddMemcpyNode(&chain->copy, graph, &chain->fill, 1, &move, context));
    WORKS(cuGraphAddMemcpyNode(&chain->out, graph, &chain->copy, 1, &home, context));
    move.srcMemoryType = (CUmemorytype)9;
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphAddMemcpyNode(&chain->out, graph, &chain->copy, 1, &move, context));
    WORKS(cuGraphAddHostNode(&chain->call, graph, &chain->out, 1, &function));
}

static void ask(const struct chain *chain)
{
    CUgraphNode nodes[8], from[8], to[8];
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_MEMSET_NODE_PARAMS asked;
    CUDA_HOST_NODE_PARAMS got;
    CUDA_MEMCPY3D moved;
    size_t n = 8;
    WORKS(cuGraphGetNodes(chain->graph, nodes, &n));
    HOLDS(n == 4);
    n = 8;
    WORKS(cuGraphGetRootNodes(chain->graph, nodes, &n));
    HOLDS(n == 1 && nodes[0] == chain->fill);
    n = 8;
    WORKS(cuGraphGetEdges(chain->graph, from, to, NULL, &n));
    HOLDS(n == 3);
    n = 8;
    WORKS(cuGraphNodeGetDependencies(chain->call, nodes, NULL, &n));
    HOLDS(n == 1 && nodes[0] == chain->out);
    WORKS(cuGraphRemoveDependencies(chain->graph, &chain->out, &chain->call, NULL, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuGraphRemoveDependencies(chain->graph, &chain->out, &chain->call, NULL, 1));
    WORKS(cuGraphAddDependencies(chain->graph, &chain->out, &chain->call, NULL, 1));
    WORKS(cuGraphNodeGetType(chain->fill, &type));
    HOLDS(type == CU_GRAPH_NODE_TYPE_MEMSET);
    WORKS(cuGraphMemsetNodeGetParams(chain->fill, &asked));
    HOLDS(asked.dst == a && asked.value == 7 && asked.width == COUNT);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(chain->call, &asked));
    WORKS(cuGraphMemcpyNodeGetParams(chain->copy, &moved));
    HOLDS(moved.srcDevice == a && moved.dstDevice == b && moved.WidthInBytes == BYTES);
    WORKS(cuGraphHostNodeGetParams(chain->call, &got));
    HOLDS(got.userData == &chain->calls);
}

static void launch(const struct chain *chain, CUgraphExec exec, int calls, unsigned value)
{
    CUstream stream = NULL;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuGraphLaunch(exec, stream));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(chain->calls == calls && all_are(value));
    WORKS(cuStreamDestroy(stream));
}

static void graphs(void)
{
    struct chain chain;
    CUgraph clone = NULL;
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    CUgraphExecUpdateResultInfo info;
    build(&chain);
    ask(&chain);
    WORKS(cuGraphInstantiate(&exec, chain.graph, 0));
    launch(&chain, exec, 1, 7);
    chain.set.value = 9; /* of the executable alone */
    WORKS(cuGraphExecMemsetNodeSetParams(exec, chain.fill, &chain.set, NULL));
    launch(&chain, exec, 2, 9);
    WORKS(cuGraphExecUpdate(exec, chain.graph, &info)); /* as the graph has it again */
    HOLDS(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
    launch(&chain, exec, 3, 7);
    WORKS(cuGraphClone(&clone, chain.graph));
    WORKS(cuGraphNodeFindInClone(&node, chain.fill, clone));
    WORKS(cuGraphDestroyNode(node));
    ANSWERS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, clone, &info));
    HOLDS(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    WORKS(cuGraphDestroy(clone));
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(chain.graph));
}

/* A node of the union, memory of the graph's own, events, a graph in a graph. */
static void nodes_of_all_kinds(void)
{
    CUgraph graph = NULL, child = NULL, inside = NULL;
    CUgraphNode alloc = NULL, fill = NULL, out = NULL, release = NULL, node = NULL;
    CUgraphExec exec = NULL;
    CUevent event = NULL, found = NULL;
    CUgraphNodeParams params;
    cuuint64_t used = 0;
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphCreate(&child, 0));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.bytesize = BYTES;
    WORKS(cuGraphAddNode(&alloc, graph, NULL, NULL, 0, &params));
    CUdeviceptr own = params.alloc.dptr;
    HOLDS(own != 0);
    WORKS(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset.dst = own;
    params.memset.value = 21;
    params.memset.elementSize = 4;
    params.memset.width = COUNT;
    params.memset.height = 1;
    WORKS(cuGraphAddNode(&fill, graph, &alloc, NULL, 1, &params));
    CUDA_MEMCPY3D home = row(CU_MEMORYTYPE_HOST, (uintptr_t)back, CU_MEMORYTYPE_UNIFIED, own);
    WORKS(cuGraphAddMemcpyNode(&out, graph, &fill, 1, &home, NULL));
    WORKS(cuGraphAddMemFreeNode(&release, graph, &out, 1, own));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, &out, 1, 0));
    WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WORKS(cuGraphAddEventRecordNode(&node, graph, &release, 1, event));
    WORKS(cuGraphEventRecordNodeGetEvent(node, &found));
    HOLDS(found == event);
    WORKS(cuGraphAddEmptyNode(&node, child, NULL, 0));
    WORKS(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    WORKS(cuGraphChildGraphNodeGetGraph(node, &inside));
    HOLDS(inside != NULL && inside != child);
    WORKS(cuGraphInstantiateWithFlags(&exec, graph, 0));
    WORKS(cuGraphUpload(exec, NULL));
    WORKS(cuGraphLaunch(exec, NULL));
    WORKS(cuEventSynchronize(event));
    HOLDS(all_are(21));
    memset(&params, 0, sizeof(params));
    params.type = (CUgraphNodeType)99;
    HOLDS(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params) != CUDA_SUCCESS);
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(child));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuEventDestroy(event));
}

static void capture(void)
{
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUevent event = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS how;
    unsigned flags = 0;
    int priority = 1;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&event, 0));
    WORKS(cuStreamGetFlags(stream, &flags));
    HOLDS(flags == CU_STREAM_NON_BLOCKING);
    WORKS(cuStreamGetPriority(stream, &priority));
    HOLDS(priority == 0);
    ANSWERS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    WORKS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORKS(cuMemsetD32Async(a, 33, COUNT, stream));
    WORKS(cuMemcpyDtoHAsync(back, a, BYTES, stream));
    WORKS(cuStreamEndCapture(stream, &graph));
    memset(&how, 0, sizeof(how));
    WORKS(cuGraphInstantiateWithParams(&exec, graph, &how));
    HOLDS(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
    WORKS(cuGraphLaunch(exec, stream));
    WORKS(cuEventRecordWithFlags(event, stream, 0));
    WORKS(cuEventSynchronize(event));
    HOLDS(all_are(33));
    WORKS(cuGraphExecDestroy(exec));
    WORKS(cuGraphDestroy(graph));
    WORKS(cuEventDestroy(event));
    WORKS(cuStreamDestroy(stream));
}

static void pools(void)
{
    CUmemoryPool pool = NULL, usual = NULL;
    CUmemPoolProps props;
    CUstream stream = NULL;
    CUdeviceptr ptr = 0, other = 0;
    cuuint64_t used = 0, keep = 1 << 20;
    memset(&props, 0, sizeof(props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuDeviceGetDefaultMemPool(&usual, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDefaultMemPool(&usual, 99));
    WORKS(cuMemPoolCreate(&pool, &props));
    WORKS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    WORKS(cuMemAllocFromPoolAsync(&ptr, BYTES, pool, stream));
    WORKS(cuMemAllocAsync(&other, BYTES, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(NULL, BYTES, stream));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(&ptr, 0, stream));
    WORKS(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    HOLDS(used >= BYTES);
    WORKS(cuMemsetD32Async(ptr, 44, COUNT, stream));
    WORKS(cuMemcpyDtoDAsync(other, ptr, BYTES, stream));
    WORKS(cuMemFreeAsync(ptr, stream));
    WORKS(cuMemcpyDtoHAsync(back, other, BYTES, stream));
    WORKS(cuMemFreeAsync(other, stream));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(all_are(44));
    WORKS(cuMemPoolTrimTo(pool, 0));
    WORKS(cuMemPoolDestroy(pool));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(usual));
    WORKS(cuStreamDestroy(stream));
}

/* A window of ROWS - 2 rows of 16 bytes out of a pitched field and back. */
static void rows(void)
{
    unsigned char field[ROWS][PITCH], window[ROWS - 2][16];
    CUDA_MEMCPY2D in, out;
    CUdeviceptr ptr = 0;
    size_t pitch = 0;
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < PITCH; x++) {
            field[y][x] = (unsigned char)(y * 16 + x);
        }
    }
    WORKS(cuMemAllocPitch(&ptr, &pitch, PITCH, ROWS, 4));
    HOLDS(pitch >= PITCH);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&ptr, &pitch, PITCH, ROWS, 3));
    memset(&in, 0, sizeof(in));
    in.srcMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = field;
    in.srcPitch = PITCH;
    in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    in.dstDevice = ptr;
    in.dstPitch = pitch;
    in.WidthInBytes = PITCH;
    in.Height = ROWS;
    WORKS(cuMemcpy2D(&in));
    in.srcPitch = 1;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&in));
    memset(&out, 0, sizeof(out));
    out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    out.srcDevice = ptr;
    out.srcPitch = pitch;
    out.srcXInBytes = 8;
    out.srcY = 1;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = window;
    out.dstPitch = 16;
    out.WidthInBytes = 16;
    out.Height = ROWS - 2;
    WORKS(cuMemcpy2DAsync(&out, NULL));
    WORKS(cuStreamSynchronize(NULL));
    HOLDS(window[0][0] == field[1][8] && window[ROWS - 3][15] == field[ROWS - 2][23]);
    memset(window, 0, sizeof(window));
    WORKS(cuMemcpy2DUnaligned(&out));
    HOLDS(window[2][3] == field[3][11]);
    CUDA_MEMCPY3D box = row(CU_MEMORYTYPE_HOST, (uintptr_t)back, CU_MEMORYTYPE_DEVICE, a);
    WORKS(cuMemsetD32(a, 55, COUNT));
    WORKS(cuMemcpy3D(&box));
    HOLDS(all_are(55));
    box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    WORKS(cuMemsetD32(a, 56, COUNT));
    WORKS(cuMemcpy3DAsync(&box, NULL));
    WORKS(cuStreamSynchronize(NULL));
    HOLDS(all_are(56));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(NULL));
    WORKS(cuMemFree(ptr));
}

/* Contexts, peers, managed memory, callbacks. */
static void contexts(void)
{
    CUcontext first = NULL, second = NULL;
    CUdevice device = -1;
    CUdeviceptr there = 0, managed = 0;
    CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    size_t limit = 0;
    unsigned version = 0;
    int least = 1, greatest = 1, value = -1;
    WORKS(cuCtxGetCurrent(&first));
    WORKS(cuDevicePrimaryCtxRetain(&second, 1));
    WORKS(cuCtxSetCurrent(second));
    WORKS(cuMemAlloc(&there, BYTES));
    WORKS(cuCtxGetDevice(&device));
    HOLDS(device == 1);
    WORKS(cuCtxSetCurrent(first));
    WORKS(cuCtxGetApiVersion(first, &version));
    WORKS(cuCtxGetStreamPriorityRange(&least, &greatest));
    HOLDS(greatest <= least);
    WORKS(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    ANSWERS(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&limit, (CUlimit)99));
    WORKS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    if (value) WORKS(cuCtxEnablePeerAccess(second, 0));
    if (value) ANSWERS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(second, 0));
    WORKS(cuMemsetD32(a, 66, COUNT));
    WORKS(cuMemcpyPeer(there, second, a, first, BYTES));
    WORKS(cuMemcpyPeerAsync(b, first, there, second, BYTES, NULL));
    WORKS(cuMemcpyDtoH(back, b, BYTES));
    HOLDS(all_are(66));
    if (value) WORKS(cuCtxDisablePeerAccess(second));
    WORKS(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    WORKS(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, place));
    WORKS(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed,
                                 BYTES));
    HOLDS(value == 1);
    WORKS(cuMemPrefetchAsync(managed, BYTES, place, 0, NULL));
    WORKS(cuMemFree(managed));
    WORKS(cuMemFree(there));
}

static void called_back(CUstream stream, CUresult status, void *arg)
{
    (void)stream;
    if (status == CUDA_SUCCESS) count_up(arg);
}

static void callbacks(void)
{
    CUstream stream = NULL;
    CUcontext context = NULL, current = NULL;
    CUuserObject object = NULL;
    CUgraph graph = NULL;
    int called = 0, gone = 0;
    WORKS(cuStreamCreate(&stream, 0));
    WORKS(cuStreamGetCtx(stream, &context));
    WORKS(cuCtxGetCurrent(&current));
    HOLDS(context == current);
    WORKS(cuStreamAddCallback(stream, called_back, &called, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, NULL, &called, 0));
    WORKS(cuStreamSynchronize(stream));
    HOLDS(called == 1);
    WORKS(cuUserObjectCreate(&object, &gone, count_up, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    WORKS(cuGraphCreate(&graph, 0));
    WORKS(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    WORKS(cuGraphDestroy(graph));
    conform_await(&gone, 1);
    WORKS(cuStreamDestroy(stream));
}

int main(void)
{
    CUcontext context = NULL;
    WORKS(cuInit(0));
    WORKS(cuDevicePrimaryCtxRetain(&context, 0));
    WORKS(cuCtxSetCurrent(context));
    WORKS(cuMemAlloc(&a, BYTES));
    WORKS(cuMemAlloc(&b, BYTES));
    WORKS(cuMemcpyHtoD(a, host, BYTES));
    graphs();
    nodes_of_all_kinds();
    capture();
    pools();
    rows();
    contexts();
    callbacks();
    WORKS(cuMemFree(a));
    WORKS(cuMemFree(b));
    return finish("driver_graphs");
}
