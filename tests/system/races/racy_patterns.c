/* Scenarios as programs have them: buffers that take turns, buckets of gradients, pipelines, graphs
 * that are changed, memory that is used again. */
#include "racy.h"

enum { TURNS = 4 };

/* ---- buffers that take turns ---- */

static void double_buffering(bool sound) /* racy: a buffer is filled while it is still read */
{
    char *const buffers[] = {my.x, my.y};
    cudaEvent_t filled[] = {make_event(), make_event()}, done[] = {make_event(), make_event()};
    for (int i = 0; i < TURNS; i++) {
        int k = i % 2;
        if (sound) OK(cudaStreamWaitEvent(my.a, done[k], 0));
        copy(buffers[k], my.pinned, my.a);
        OK(cudaEventRecord(filled[k], my.a));
        OK(cudaStreamWaitEvent(my.b, filled[k], 0));
        copy(my.z, buffers[k], my.b);
        OK(cudaEventRecord(done[k], my.b));
    }
}

static void staging(bool sound) /* the host refills pinned memory that a copy still reads */
{
    cudaEvent_t done[] = {make_event(), make_event()};
    for (int i = 0; i < TURNS; i++) {
        int k = i % 2;
        if (i >= 2) OK(cudaEventSynchronize(done[sound ? k : 1 - k]));
        tuttiCheckWrite(my.pinned + (ptrdiff_t)k * BYTES / 2, BYTES / 2);
        OK(cudaMemcpyAsync(my.x + (ptrdiff_t)k * BYTES / 2, my.pinned + (ptrdiff_t)k * BYTES / 2,
                           BYTES / 2, cudaMemcpyDefault, k ? my.b : my.a));
        OK(cudaEventRecord(done[k], k ? my.b : my.a));
    }
}

static void event_in_loop(bool sound) /* one event, both ways, turn after turn */
{
    for (int i = 0; i < TURNS; i++) {
        fill(my.x, my.a);
        order(my.a, my.b, true);
        copy(my.y, my.x, my.b);
        order(my.b, my.a, sound || i != 1);
    }
}

static void fan_out(bool sound) /* several readers, of which the writer waits for one */
{
    cudaStream_t c;
    OK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    fill(my.x, my.a);
    order(my.a, my.b, true);
    order(my.a, c, true);
    copy(my.y, my.x, my.b);
    copy(my.z, my.x, c);
    order(my.b, my.a, true);
    order(c, my.a, sound);
    fill(my.x, my.a);
}

/* ---- ranks ---- */

static void gradient_buckets(bool sound) /* racy: the second bucket is sent before it is full */
{
    cudaEvent_t ready[RANKS];
    racy_start_ranks();
    for (int bucket = 0; bucket < 2; bucket++) {
        size_t at = (size_t)bucket * COUNT / 2;
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            ready[r] = make_event();
            if (!sound && bucket) OK(cudaEventRecord(ready[r], ranks.other[r]));
            OK(cudaMemsetAsync(ranks.in[r] + at, 1, BYTES / 2, ranks.other[r]));
            if (sound || !bucket) OK(cudaEventRecord(ready[r], ranks.other[r]));
            OK(cudaStreamWaitEvent(ranks.stream[r], ready[r], 0));
        }
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            OK(ncclAllReduce(ranks.in[r] + at, ranks.in[r] + at, COUNT / 2, ncclFloat, ncclSum,
                             ranks.comm[r], ranks.stream[r]));
        }
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void sharded_step(bool sound) /* reduce-scatter, a step on the shard, all-gather */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclReduceScatter(ranks.in[r], ranks.out[r] + r * COUNT / 2, COUNT / 2, ncclFloat,
                             ncclSum, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        cudaEvent_t before = make_event(), behind = make_event();
        OK(cudaEventRecord(before, ranks.stream[r]));
        OK(cudaStreamWaitEvent(ranks.other[r], before, 0));
        OK(cudaMemsetAsync(ranks.out[r] + r * COUNT / 2, 1, BYTES / 2, ranks.other[r]));
        OK(cudaEventRecord(behind, ranks.other[r]));
        if (sound || r) OK(cudaStreamWaitEvent(ranks.stream[r], behind, 0));
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllGather(ranks.out[r] + r * COUNT / 2, ranks.out[r], COUNT / 2, ncclFloat,
                         ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

static void broadcast(int root)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclBroadcast(ranks.in[r], ranks.out[r], COUNT, ncclFloat, root, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
}

static void pipelined_broadcast(bool sound) /* the root fills its buffer for the next piece */
{
    racy_start_ranks();
    for (int i = 0; i < TURNS; i++) {
        OK(cudaMemsetAsync(ranks.in[0], i, BYTES, sound ? ranks.stream[0] : ranks.other[0]));
        broadcast(0);
    }
    racy_finish_ranks();
}

static void broadcast_as_barrier(bool sound) /* its root waits for no rank */
{
    racy_start_ranks();
    OK(cudaMemsetAsync(my.x, 1, BYTES, ranks.stream[1]));
    broadcast(sound ? 1 : 0);
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, ranks.stream[0]));
    racy_finish_ranks();
}

static void reduce_as_barrier(bool sound) /* only its root waits */
{
    racy_start_ranks();
    OK(cudaMemsetAsync(my.x, 1, BYTES, ranks.stream[1]));
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, sound ? 0 : 1,
                      ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, ranks.stream[0]));
    racy_finish_ranks();
}

/* ---- memory that is used again ---- */

static void pool_in_loop(bool sound) /* racy: freed on one stream while another one reads */
{
    for (int i = 0; i < TURNS; i++) {
        char *memory;
        OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
        fill(memory, my.a);
        order(my.a, my.b, true);
        copy(my.y, memory, my.b);
        order(my.b, my.a, sound);
        OK(cudaFreeAsync(memory, my.a));
    }
}

static void half_written(bool sound)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    OK(cudaMemset(memory, 0, BYTES / 2));
    if (sound) OK(cudaMemset(memory + BYTES / 2, 0, BYTES / 2));
    OK(cudaMemcpy(my.pinned, memory, BYTES, cudaMemcpyDefault));
}

static void never_freed(bool sound)
{
    void *memory, *pinned;
    OK(cudaMalloc(&memory, BYTES));
    OK(cudaMallocHost(&pinned, BYTES));
    if (sound) OK(cudaFree(memory));
    OK(cudaFreeHost(pinned));
}

/* ---- graphs ---- */

static void changed_graph(bool sound) /* the new source is still being filled elsewhere */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, my.y, my.x, BYTES, cudaMemcpyDefault));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    fill(my.z, my.b);
    OK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, my.y, my.z, BYTES, cudaMemcpyDefault));
    order(my.b, my.a, sound);
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void write_it(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    memset(*(void **)args[0], 1, BYTES);
}

static void says_it_writes(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    tuttiCheckWrite(*(void **)args[0], BYTES);
}

static void declared(void) {}

static void kernel_in_graph(bool sound) /* its implementation declares what it touches */
{
    const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)declared,
                                    .run = write_it,
                                    .nargs = 1,
                                    .arg_bytes = sizes,
                                    .touches = says_it_writes};
    void *args[] = {&my.x};
    struct cudaKernelNodeParams params = {.func = (void *)declared,
                                          .gridDim = {1, 1, 1},
                                          .blockDim = {1, 1, 1},
                                          .kernelParams = args};
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node, next;
    OK(tuttiRegisterKernel(&one));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
    OK(cudaGraphAddMemcpyNode1D(&next, graph, &node, sound ? 1 : 0, my.y, my.x, BYTES,
                                cudaMemcpyDefault));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void two_graphs(bool sound) /* graphs of their own share a buffer */
{
    cudaGraphExec_t execs[2];
    for (int i = 0; i < 2; i++) {
        cudaGraph_t graph;
        OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
        if (i) copy(my.y, my.x, my.a);
        if (!i) fill(my.x, my.a);
        OK(cudaStreamEndCapture(my.a, &graph));
        OK(cudaGraphInstantiateWithFlags(&execs[i], graph, 0));
        OK(cudaGraphDestroy(graph));
    }
    for (int i = 0; i < TURNS; i++) {
        OK(cudaGraphLaunch(execs[0], my.a));
        order(my.a, my.b, true);
        OK(cudaGraphLaunch(execs[1], my.b));
        order(my.b, my.a, sound);
    }
    OK(cudaGraphExecDestroy(execs[0]));
    OK(cudaGraphExecDestroy(execs[1]));
}

/* What a graph allocates is there until a node frees it. */
static void graph_memory(char *used_outside, bool on_branch, bool used_late)
{
    char *ptr = NULL;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaMallocAsync((void **)&ptr, BYTES, my.a));
    fill(ptr, my.a);
    OK(cudaEventRecord(my.event, my.a));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    if (on_branch) copy(my.y, ptr, my.b);
    order(my.b, my.a, !used_late || !on_branch);
    OK(cudaFreeAsync(ptr, my.a));
    if (used_late && !on_branch) copy(my.y, ptr, my.a);
    order(my.b, my.a, used_late && on_branch); /* no branch is left behind */
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < TURNS; i++) {
        OK(cudaGraphLaunch(exec, my.a));
    }
    if (used_outside) copy(used_outside, ptr, my.a);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void graph_memory_late(bool sound)
{
    graph_memory(NULL, false, !sound);
}

static void graph_memory_branch(bool sound)
{
    graph_memory(NULL, true, !sound);
}

static void graph_memory_outside(bool sound)
{
    graph_memory(sound ? NULL : my.z, true, false);
}

/* ---- words in a device's memory, which only copies show the host ---- */

static void word_of_device(bool sound, bool copied)
{
    unsigned *word = NULL, seen = 0;
    OK(cudaMalloc((void **)&word, sizeof(*word)));
    OK(cudaMemset(word, 0, sizeof(*word)));
    OK(cudaDeviceSynchronize());
    fill(my.x, my.a);
    OK(cuStreamWriteValue32((CUstream)my.a, (CUdeviceptr)word, 1, 0));
    if (sound && !copied)
        OK(cuStreamWaitValue32((CUstream)my.b, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
    while (sound && copied && !seen) {
        OK(cudaMemcpy(&seen, word, sizeof(seen), cudaMemcpyDefault));
    }
    copy(my.y, my.x, my.b);
    OK(cudaFree(word));
}

static void word_awaited(bool sound)
{
    word_of_device(sound, false);
}

static void word_copied(bool sound)
{
    word_of_device(sound, true);
}

const struct racy_scenario racy_patterns[] = {
    {"double-buffering", double_buffering, "race"},
    {"staging", staging, "race"},
    {"event-in-loop", event_in_loop, "race"},
    {"fan-out", fan_out, "race"},
    {"gradient-buckets", gradient_buckets, "race"},
    {"sharded-step", sharded_step, "race"},
    {"pipelined-broadcast", pipelined_broadcast, "race"},
    {"broadcast-as-barrier", broadcast_as_barrier, "race"},
    {"reduce-as-barrier", reduce_as_barrier, "race"},
    {"pool-in-loop", pool_in_loop, "race"},
    {"half-written", half_written, "unwritten"},
    {"never-freed", never_freed, "leak"},
    {"changed-graph", changed_graph, "race"},
    {"kernel-in-graph", kernel_in_graph, "race"},
    {"two-graphs", two_graphs, "race"},
    {"graph-memory-late", graph_memory_late, "use after free"},
    {"graph-memory-branch", graph_memory_branch, "race"},
    {"graph-memory-outside", graph_memory_outside, "use after free"},
    {"word-awaited", word_awaited, "race"},
    {"word-copied", word_copied, "race"},
};
const size_t racy_npatterns = sizeof(racy_patterns) / sizeof(racy_patterns[0]);
