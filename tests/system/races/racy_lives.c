/* Scenarios as a user would write them: pools, memory that is not written or not there, graphs
 * that are edited, ranks. */
#include "racy.h"

/* ---- life of memory ---- */

static void pool_hands_on(bool sound) /* sound: memory comes again, which the pool orders */
{
    char *one, *other;
    OK(cudaMallocAsync((void **)&one, BYTES, my.a));
    fill(one, my.a);
    OK(cudaFreeAsync(one, my.a));
    if (!sound) fill(one, my.b);
    OK(cudaMallocAsync((void **)&other, BYTES, my.b));
    fill(other, my.b);
    copy(my.y, other, my.b);
    OK(cudaFreeAsync(other, my.b));
    OK(cudaDeviceSynchronize());
}

static void pool_freed_at_once(bool sound) /* cudaFree waits, cudaFreeAsync elsewhere does not */
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    if (sound) OK(cudaFree(memory));
    if (!sound) OK(cudaFreeAsync(memory, my.b));
}

static void pool_forgotten(bool sound) /* what a block held before is not in the next one */
{
    char *memory;
    for (int i = 0; i < 2; i++) {
        OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
        if (sound || !i) fill(memory, my.a);
        copy(my.x, memory, my.a);
        OK(cudaFreeAsync(memory, my.a));
    }
}

static void half_written(bool sound)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    OK(cudaMemset(memory, 1, BYTES / 2));
    OK(cudaMemcpy(my.pageable, memory, sound ? BYTES / 2 : BYTES, cudaMemcpyDeviceToHost));
    OK(cudaFree(memory));
}

static void reduces_unwritten(bool sound)
{
    float *fresh[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaMalloc((void **)&fresh[r], BYTES));
        if (sound || !r) OK(cudaMemsetAsync(fresh[r], 0, BYTES, ranks.stream[r]));
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(fresh[r], ranks.out[r], COUNT, ncclFloat, ncclSum, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

static void rows_past_the_end(bool sound)
{
    size_t rows = BYTES / 64 + !sound;
    int rc = cudaMemcpy2D(my.x + 8, 64, my.y, 64, 56, rows, cudaMemcpyDefault);
    OK(sound ? rc : rc == cudaSuccess);
}

static void fill_rows_past_the_end(bool sound)
{
    int rc = cudaMemset2DAsync(my.x + 32, 64, 0, 32, sound ? BYTES / 64 : BYTES / 64 + 1, my.a);
    OK(sound ? rc : rc == cudaSuccess);
}

static void from_past_the_end(bool sound)
{
    int rc = cudaMemcpyAsync(my.pageable, my.x + BYTES / 2, sound ? BYTES / 2 : BYTES,
                             cudaMemcpyDeviceToHost, my.a);
    OK(sound ? rc : rc == cudaSuccess);
}

static void graph_behind_free(bool sound)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    fill(memory, my.a);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    copy(my.x, memory, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    if (!sound) OK(cudaFree(memory));
    int rc = cudaGraphLaunch(exec, my.a);
    if (sound) OK(rc);
    cudaStreamSynchronize(my.a);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void freed_by_other_thread_of_device(bool sound) /* memory of ncclMemAlloc, in use */
{
    void *memory;
    cudaStream_t far;
    OK(ncclMemAlloc(&memory, BYTES));
    fill(memory, my.a);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaSetDevice(1));
    far = make_stream();
    OK(cudaMemcpyAsync(my.y, memory, BYTES, cudaMemcpyDefault, far));
    if (sound) OK(cudaStreamSynchronize(far));
    OK(cudaSetDevice(0));
    OK(ncclMemFree(memory));
    OK(cudaSetDevice(1));
    OK(cudaStreamSynchronize(far));
}

/* ---- graphs ---- */

static cudaGraph_t begun;

static void begin(void)
{
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t end(void)
{
    cudaGraphExec_t exec;
    OK(cudaStreamEndCapture(my.a, &begun));
    OK(cudaGraphInstantiateWithFlags(&exec, begun, 0));
    return exec;
}

static void over(cudaGraphExec_t exec)
{
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(begun));
}

static void node_edited(bool sound) /* racy: the executable writes elsewhere now */
{
    begin();
    copy(my.y, my.x, my.a);
    cudaGraphExec_t exec = end();
    cudaGraphNode_t node;
    size_t one = 1;
    OK(cudaGraphGetNodes(begun, &node, &one));
    OK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, sound ? my.y : my.z, my.x, BYTES,
                                          cudaMemcpyDefault));
    OK(cudaGraphLaunch(exec, my.a));
    fill(my.z, my.b);
    over(exec);
}

static void node_disabled(bool sound)
{
    begin();
    fill(my.x, my.a);
    cudaGraphExec_t exec = end();
    cudaGraphNode_t node;
    size_t one = 1;
    OK(cudaGraphGetNodes(begun, &node, &one));
    OK(cudaGraphNodeSetEnabled(exec, node, !sound));
    OK(cudaGraphLaunch(exec, my.a));
    copy(my.y, my.x, my.b);
    over(exec);
}

static void child_and_sibling(bool sound)
{
    cudaGraph_t whole;
    cudaGraphNode_t child, other;
    cudaGraphExec_t exec, both;
    begin();
    fill(my.x, my.a);
    exec = end();
    OK(cudaGraphCreate(&whole, 0));
    OK(cudaGraphAddChildGraphNode(&child, whole, NULL, 0, begun));
    OK(cudaGraphAddMemcpyNode1D(&other, whole, &child, sound, my.y, my.x, BYTES,
                                cudaMemcpyDefault));
    OK(cudaGraphInstantiateWithFlags(&both, whole, 0));
    OK(cudaGraphLaunch(both, my.a));
    over(exec);
    OK(cudaGraphExecDestroy(both));
    OK(cudaGraphDestroy(whole));
}

static void updated(bool sound) /* as a whole, by another graph */
{
    cudaGraph_t first;
    cudaGraphExecUpdateResultInfo result;
    begin();
    copy(my.y, my.x, my.a);
    cudaGraphExec_t exec = end();
    first = begun;
    begin();
    copy(my.z, my.x, my.a);
    cudaGraphExec_t second = end();
    if (!sound) OK(cudaGraphExecUpdate(exec, begun, &result));
    OK(cudaGraphLaunch(exec, my.a));
    fill(my.z, my.b);
    over(exec);
    OK(cudaGraphExecDestroy(second));
    OK(cudaGraphDestroy(first));
}

static void graph_reads_pinned(bool sound)
{
    begin();
    copy(my.x, my.pinned, my.a);
    cudaGraphExec_t exec = end();
    OK(cudaGraphLaunch(exec, my.a));
    if (sound) OK(cudaStreamSynchronize(my.a));
    tuttiCheckWrite(my.pinned, 4);
    OK(cudaGraphLaunch(exec, my.a));
    over(exec);
}

static void two_graphs(bool sound) /* racy: launched to two streams */
{
    begin();
    fill(my.x, my.a);
    cudaGraphExec_t one = end();
    cudaGraph_t first = begun;
    begin();
    copy(my.y, my.x, my.a);
    cudaGraphExec_t other = end();
    OK(cudaGraphLaunch(one, my.a));
    OK(cudaGraphLaunch(other, sound ? my.a : my.b));
    over(one);
    OK(cudaGraphExecDestroy(other));
    OK(cudaGraphDestroy(first));
}

static void diamond(bool sound) /* captured: two branches, racy: both write */
{
    begin();
    fill(my.x, my.a);
    racy_join(my.b, my.a);
    copy(my.y, my.x, my.a);
    copy(sound ? my.z : my.y, my.x, my.b);
    racy_join(my.a, my.b);
    cudaGraphExec_t exec = end();
    OK(cudaGraphLaunch(exec, my.a));
    over(exec);
}

static void graph_memory_outlives(bool sound) /* a graph's allocation is used behind its launch */
{
    char *memory;
    begin();
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    if (!sound) OK(cudaFreeAsync(memory, my.a));
    cudaGraphExec_t exec = end();
    OK(cudaGraphLaunch(exec, my.a));
    cudaMemcpyAsync(my.y, memory, BYTES, cudaMemcpyDefault, my.a);
    if (sound) OK(cudaFreeAsync(memory, my.a));
    over(exec);
}

/* ---- ranks ---- */

static void root_alone_receives(bool sound) /* of a reduction; elsewhere nothing is written */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, 0, ranks.comm[r],
                      ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    int k = sound ? 1 : 0;
    OK(cudaMemsetAsync(ranks.out[k], 0, BYTES, ranks.other[k]));
    racy_finish_ranks();
}

static void overwritten_message(bool sound)
{
    racy_start_ranks();
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    if (sound) racy_join(ranks.other[0], ranks.stream[0]);
    OK(cudaMemsetAsync(ranks.in[0], 0, BYTES, ranks.other[0]));
    racy_finish_ranks();
}

static void two_communicators(bool sound) /* on two streams, one bucket */
{
    ncclComm_t second[RANKS];
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclCommSplit(ranks.comm[r], 0, r, &second[r], NULL));
    }
    OK(ncclGroupEnd());
    for (int pass = 0; pass < 2; pass++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            OK(ncclAllReduce(ranks.in[r], pass && sound ? ranks.out[r] : ranks.in[r], COUNT,
                             ncclFloat, ncclSum, pass ? second[r] : ranks.comm[r],
                             pass && !sound ? ranks.other[r] : ranks.stream[r]));
        }
        OK(ncclGroupEnd());
    }
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaDeviceSynchronize());
        OK(ncclCommDestroy(second[r]));
    }
    racy_finish_ranks();
}

static void captured_step(bool sound) /* a step as one graph; racy: next input while it runs */
{
    cudaGraph_t graph[RANKS];
    cudaGraphExec_t exec[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamBeginCapture(ranks.stream[r], cudaStreamCaptureModeRelaxed));
    }
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamEndCapture(ranks.stream[r], &graph[r]));
        OK(cudaGraphInstantiateWithFlags(&exec[r], graph[r], 0));
    }
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            OK(cudaMemsetAsync(ranks.in[r], i, BYTES, ranks.other[r]));
            racy_join(ranks.stream[r], ranks.other[r]);
        }
        for (int r = 0; r < RANKS; r++) {
            OK(cudaGraphLaunch(exec[r], ranks.stream[r]));
        }
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            if (sound) racy_join(ranks.other[r], ranks.stream[r]);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamSynchronize(ranks.stream[r]));
        OK(cudaGraphExecDestroy(exec[r]));
        OK(cudaGraphDestroy(graph[r]));
    }
    racy_finish_ranks();
}

static void reduced_then_peer_reads(bool sound) /* a peer's result, without a word from the peer */
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    if (sound) racy_join(ranks.stream[0], ranks.stream[1]);
    OK(cudaMemcpyAsync(ranks.in[0], ranks.out[1], BYTES, cudaMemcpyDefault, ranks.stream[0]));
    racy_finish_ranks();
}

static void launch_event(bool sound) /* what waits for the wrong rank's stream */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclReduceScatter(ranks.in[r], ranks.out[r], COUNT / 2, ncclFloat, ncclSum,
                             ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_join(ranks.other[1], ranks.stream[sound ? 1 : 0]);
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES / 2, cudaMemcpyDefault, ranks.other[1]));
    racy_finish_ranks();
}

const struct racy_scenario racy_lives[] = {
    {"pool-hands-on", pool_hands_on, "use after free"},
    {"pool-freed-at-once", pool_freed_at_once, "race"},
    {"pool-forgotten", pool_forgotten, "unwritten"},
    {"half-written", half_written, "unwritten"},
    {"reduces-unwritten", reduces_unwritten, "unwritten"},
    {"rows-past-the-end", rows_past_the_end, "outside"},
    {"fill-rows-past-the-end", fill_rows_past_the_end, "outside"},
    {"from-past-the-end", from_past_the_end, "outside"},
    {"graph-behind-free", graph_behind_free, "use after free"},
    {"freed-by-other-thread-of-device", freed_by_other_thread_of_device, "race"},
    {"node-edited", node_edited, "race"},
    {"node-disabled", node_disabled, "race"},
    {"child-and-sibling", child_and_sibling, "race"},
    {"updated", updated, "race"},
    {"graph-reads-pinned", graph_reads_pinned, "race"},
    {"two-graphs", two_graphs, "race"},
    {"diamond", diamond, "race"},
    {"graph-memory-outlives", graph_memory_outlives, "use after free"},
    {"root-alone-receives", root_alone_receives, "race"},
    {"overwritten-message", overwritten_message, "race"},
    {"two-communicators", two_communicators, "race"},
    {"captured-step", captured_step, "race"},
    {"reduced-then-peer-reads", reduced_then_peer_reads, "race"},
    {"launch-event", launch_event, "race"},
};
const size_t racy_nlives = sizeof(racy_lives) / sizeof(racy_lives[0]);
