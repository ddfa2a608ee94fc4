/* Scenarios at the edges of what calls touch: a column, a plane or an element too many, parts of
 * buffers that a collective leaves alone on some ranks, edges of graphs that a call leaves out. */
#include "racy.h"

/* ---- rows, planes, padding ---- */

static void edge_columns(bool sound) /* even columns and odd ones of one matrix */
{
    OK(cudaMemcpy2DAsync(my.x, 16, my.y, 16, 8, 100, cudaMemcpyDeviceToDevice, my.a));
    OK(cudaMemcpy2DAsync(my.x + 8, 16, my.z, 16, sound ? 8 : 9, 100, cudaMemcpyDeviceToDevice,
                         my.b));
}

static void edge_padding(bool sound) /* what lies between the rows is another one's */
{
    OK(cudaMemset2DAsync(my.x, 64, 3, sound ? 60 : 61, 20, my.a));
    OK(cudaMemcpy2DAsync(my.y, 4, my.x + 60, 64, 4, 20, cudaMemcpyDeviceToDevice, my.b));
}

/* Boxes of 32 x 16 bytes in planes. */
static struct cudaMemcpy3DParms box(char *to, char *from, size_t width, size_t planes)
{
    struct cudaMemcpy3DParms params = {0};
    params.srcPtr = make_cudaPitchedPtr(from, 32, 32, 16);
    params.dstPtr = make_cudaPitchedPtr(to, 32, 32, 16);
    params.extent = make_cudaExtent(width, 16, planes);
    params.kind = cudaMemcpyDeviceToDevice;
    return params;
}

static void edge_planes(bool sound)
{
    struct cudaMemcpy3DParms params = box(my.x, my.y, 32, 3);
    OK(cudaMemcpy3DAsync(&params, my.a));
    params.srcPtr.ptr = my.z;
    params.dstPos.z = sound ? 3 : 2;
    OK(cudaMemcpy3DAsync(&params, my.b));
}

static void edge_face(bool sound) /* the last column of each plane is written */
{
    struct cudaMemcpy3DParms face = box(my.x, my.y, 1, 6);
    struct cudaMemcpy3DParms inner = box(my.z, my.x, sound ? 31 : 32, 6);
    face.dstPos.x = 31;
    OK(cudaMemcpy3DAsync(&face, my.a));
    OK(cudaMemcpy3DAsync(&inner, my.b));
}

/* ---- graphs ---- */

static void launch(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void edge_captured_into(bool sound) /* racy: behind no node of the graph */
{
    struct cudaMemsetParams set = {.dst = my.x, .value = 1, .elementSize = 1, .width = BYTES};
    cudaGraph_t graph, same;
    cudaGraphNode_t node;
    set.height = 1;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set));
    OK(cudaStreamBeginCaptureToGraph(my.a, graph, &node, NULL, sound ? 1 : 0,
                                     cudaStreamCaptureModeRelaxed));
    copy(my.y, my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &same));
    launch(graph);
}

static void edge_dependencies_dropped(bool sound)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    fill(my.x, my.a);
    if (!sound) {
        OK(cudaStreamUpdateCaptureDependencies(my.a, NULL, NULL, 0,
                                               cudaStreamSetCaptureDependencies));
    }
    copy(my.y, my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph);
}

static void edge_launch_captured(bool sound) /* a graph in a branch of a capture */
{
    cudaGraph_t inner, graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    fill(my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &inner));
    OK(cudaGraphInstantiate(&exec, inner, 0));
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    racy_join(my.b, my.a);
    OK(cudaGraphLaunch(exec, my.b));
    if (sound) racy_join(my.a, my.b);
    copy(my.y, my.x, my.a);
    racy_join(my.a, my.b);
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(inner));
}

static void edge_two_launches(bool sound) /* of one graph: the reader waits for the earlier one */
{
    cudaStream_t third = make_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    fill(my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    if (!sound) racy_join(my.b, my.a);
    OK(cudaGraphLaunch(exec, third));
    if (sound) racy_join(my.b, third);
    copy(my.y, my.x, my.b);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(third));
}

/* ---- collectives ---- */

/* What another stream of the rank does beside a call of all. */
static void beside(void (*call)(int rank), int rank, float *ptr)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        call(r);
    OK(ncclGroupEnd());
    OK(cudaSetDevice(rank));
    OK(cudaMemsetAsync(ptr, 1, 4, ranks.other[rank]));
    racy_finish_ranks();
}

static void broadcast(int r)
{
    OK(ncclBroadcast(ranks.in[r], ranks.out[r], 100, ncclFloat, 1, ranks.comm[r], ranks.stream[r]));
}

static void edge_not_the_root(bool sound) /* sources of others than the root are not read */
{
    racy_start_ranks();
    beside(broadcast, sound ? 0 : 1, ranks.in[sound ? 0 : 1]);
}

static void reduce(int r)
{
    OK(ncclReduce(ranks.in[r], ranks.out[r], 100, ncclFloat, ncclSum, 0, ranks.comm[r],
                  ranks.stream[r]));
}

static void edge_result_of_the_root(bool sound) /* results of others are not written */
{
    racy_start_ranks();
    beside(reduce, sound ? 1 : 0, ranks.out[sound ? 1 : 0]);
}

static void gather_in_place(int r)
{
    OK(ncclAllGather(ranks.out[r] + 100 * r, ranks.out[r], 100, ncclFloat, ranks.comm[r],
                     ranks.stream[r]));
}

static void edge_behind_the_gathered(bool sound)
{
    racy_start_ranks();
    beside(gather_in_place, 0, ranks.out[0] + (sound ? 200 : 199));
}

static void exchange(int r)
{
    for (int peer = 0; peer < RANKS; peer++) {
        OK(ncclSend(ranks.in[r] + 64 * peer, 64, ncclFloat, peer, ranks.comm[r], ranks.stream[r]));
        OK(ncclRecv(ranks.out[r] + 64 * peer, 64, ncclFloat, peer, ranks.comm[r], ranks.stream[r]));
    }
}

static void edge_behind_the_exchanged(bool sound)
{
    racy_start_ranks();
    beside(exchange, 1, ranks.out[1] + (sound ? 128 : 127));
}

const struct racy_scenario racy_edges[] = {
    {"edge-columns", edge_columns, "race"},
    {"edge-padding", edge_padding, "race"},
    {"edge-planes", edge_planes, "race"},
    {"edge-face", edge_face, "race"},
    {"edge-captured-into", edge_captured_into, "race"},
    {"edge-dependencies-dropped", edge_dependencies_dropped, "race"},
    {"edge-launch-captured", edge_launch_captured, "race"},
    {"edge-two-launches", edge_two_launches, "race"},
    {"edge-not-the-root", edge_not_the_root, "race"},
    {"edge-result-of-the-root", edge_result_of_the_root, "race"},
    {"edge-behind-the-gathered", edge_behind_the_gathered, "race"},
    {"edge-behind-the-exchanged", edge_behind_the_exchanged, "race"},
};
const size_t racy_nedges = sizeof(racy_edges) / sizeof(racy_edges[0]);
