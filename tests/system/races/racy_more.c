/* More scenarios as a user would write them: ends of allocations of all kinds, frees, graphs
 * that are built, cloned and edited by hand, ranks in one graph, what collectives of all kinds
 * touch. */
#include "racy.h"

static void behind(cudaStream_t second, cudaStream_t first, bool sound)
{
    if (sound) racy_join(second, first);
}

/* ---- ends of allocations ---- */

static void is_refused(int rc, bool sound)
{
    OK(sound ? rc : rc == 0);
}

static void past_pinned(bool sound)
{
    is_refused(cudaMemcpyAsync(my.pinned + 1, my.x, BYTES - sound, cudaMemcpyDefault, my.a), sound);
}

static void past_managed(bool sound)
{
    char *managed;
    OK(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    is_refused(cudaMemset(managed, 0, BYTES + !sound), sound);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(managed));
}

static void past_pool(bool sound)
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    is_refused(cudaMemsetAsync(memory, 0, BYTES + !sound, my.a), sound);
    OK(cudaFreeAsync(memory, my.a));
}

static void past_both(bool sound) /* device to device, both ends */
{
    is_refused(cudaMemcpyAsync(my.x + BYTES / 2, my.y + BYTES / 2, BYTES / (sound ? 2 : 1),
                               cudaMemcpyDeviceToDevice, my.a),
               sound);
}

static void past_peer(bool sound)
{
    char *far;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&far, BYTES / 2));
    is_refused(cudaMemcpyPeer(far, 1, my.x, 0, sound ? BYTES / 2 : BYTES), sound);
    OK(cudaDeviceSynchronize());
}

static void before_the_start(bool sound)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, 2 * BYTES));
    OK(cudaMemset(memory, 0, 2 * BYTES));
    if (!sound) OK(cudaFree(memory));
    if (!sound) OK(cudaMalloc((void **)&memory, BYTES));
    is_refused(cudaMemcpy(my.pageable, memory + BYTES, BYTES, cudaMemcpyDefault), sound);
}

/* ---- frees ---- */

static void pinned_behind_free(bool sound)
{
    char *memory;
    OK(cudaMallocHost((void **)&memory, BYTES));
    memset(memory, 0, BYTES);
    if (!sound) OK(cudaFreeHost(memory));
    int rc = cudaMemcpyAsync(my.x, memory, BYTES, cudaMemcpyHostToDevice, my.a);
    if (sound) OK(rc);
    if (sound) OK(cudaStreamSynchronize(my.a));
    if (sound) OK(cudaFreeHost(memory));
}

static void pool_behind_free(bool sound) /* the host has waited, the memory is gone all the same */
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    if (!sound) OK(cudaFreeAsync(memory, my.a));
    OK(cudaStreamSynchronize(my.a));
    int rc = cudaMemcpyAsync(my.y, memory, BYTES, cudaMemcpyDefault, my.b);
    if (sound) OK(rc);
    OK(cudaStreamSynchronize(my.b));
    if (sound) OK(cudaFreeAsync(memory, my.a));
}

static void pool_used_elsewhere(bool sound) /* racy: freed on its stream, another one still reads */
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    behind(my.b, my.a, true);
    copy(my.y, memory, my.b);
    behind(my.a, my.b, sound);
    OK(cudaFreeAsync(memory, my.a));
}

static void comes_again(bool sound) /* sound: freed memory comes again, and is another one */
{
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    fill(memory, my.a);
    OK(cudaFree(memory));
    OK(cudaMalloc((void **)&memory, BYTES));
    fill(memory, my.b);
    if (!sound) fill(memory, my.a);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(memory));
}

static void unmapped_too_early(bool sound)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle block;
    CUdeviceptr at;
    size_t bytes;
    OK(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemCreate(&block, bytes, &prop, 0));
    OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    OK(cuMemMap(at, bytes, 0, block, 0));
    OK(cuMemSetAccess(at, bytes, &access, 1));
    OK(cuMemsetD8Async(at, 1, bytes, (CUstream)my.a));
    await(my.a, sound);
    OK(cuMemUnmap(at, bytes));
    OK(cudaDeviceSynchronize());
    OK(cuMemAddressFree(at, bytes));
    OK(cuMemRelease(block));
}

/* ---- the host ---- */

static void copy_that_waits_for_default(bool sound) /* racy: another stream writes its source */
{
    fill(my.x, my.a);
    if (sound) OK(cudaStreamSynchronize(my.a));
    OK(cudaMemcpy(my.pageable, my.x, BYTES, cudaMemcpyDeviceToHost));
}

static void refill(void *arg)
{
    tuttiCheckWrite(arg, BYTES);
}

static void two_functions(bool sound)
{
    OK(cudaLaunchHostFunc(my.a, refill, my.pinned));
    behind(my.b, my.a, sound);
    OK(cudaLaunchHostFunc(my.b, refill, my.pinned));
    OK(cudaDeviceSynchronize());
}

static void last_of_many(bool sound) /* racy: the host waits for the last but one event */
{
    cudaEvent_t done[4];
    for (int i = 0; i < 4; i++) {
        OK(cudaEventCreate(&done[i]));
        OK(cudaMemcpyAsync(my.pinned + (size_t)i * 64, my.x, 64, cudaMemcpyDefault, my.a));
        OK(cudaEventRecord(done[i], my.a));
    }
    OK(cudaEventSynchronize(done[sound ? 3 : 2]));
    tuttiCheckRead(my.pinned + 3 * 64, 64);
}

static void thread_default_and_legacy(bool sound) /* a thread's default stream blocks, others not */
{
    fill(my.x, sound ? cudaStreamPerThread : my.a);
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, cudaStreamLegacy));
}

/* ---- graphs by hand ---- */

static struct cudaMemsetParams filling(char *at)
{
    return (struct cudaMemsetParams){
        .dst = at, .value = 1, .elementSize = 1, .width = 64, .height = 1};
}

static void run(cudaGraph_t graph, cudaGraphExec_t *keep)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphDestroy(graph));
    if (keep) *keep = exec;
    if (!keep) OK(cudaGraphExecDestroy(exec));
}

static void edge_removed(bool sound)
{
    cudaGraph_t graph;
    cudaGraphNode_t one, other;
    struct cudaMemsetParams set = filling(my.x);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphAddMemcpyNode1D(&other, graph, &one, 1, my.y, my.x, 64, cudaMemcpyDefault));
    if (!sound) OK(cudaGraphRemoveDependencies(graph, &one, &other, NULL, 1));
    run(graph, NULL);
}

static void through_empty_node(bool sound)
{
    cudaGraph_t graph;
    cudaGraphNode_t one, empty, other;
    struct cudaMemsetParams set = filling(my.x);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphAddEmptyNode(&empty, graph, &one, sound));
    OK(cudaGraphAddMemcpyNode1D(&other, graph, &empty, 1, my.y, my.x, 64, cudaMemcpyDefault));
    run(graph, NULL);
}

static void cloned(bool sound)
{
    cudaGraph_t graph, clone;
    cudaGraphNode_t one, other;
    struct cudaMemsetParams set = filling(my.x);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphAddMemcpyNode1D(&other, graph, &one, sound, my.y, my.x, 64, cudaMemcpyDefault));
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphDestroy(graph));
    run(clone, NULL);
}

static void fill_edited(bool sound) /* racy: it writes elsewhere now */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t one;
    struct cudaMemsetParams set = filling(my.x), other = filling(my.z);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    if (!sound) OK(cudaGraphExecMemsetNodeSetParams(exec, one, &other));
    OK(cudaGraphLaunch(exec, my.a));
    copy(my.y, my.z, my.b);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void pageable_in_graph(bool sound) /* a graph reads it when it runs */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t one;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&one, graph, NULL, 0, my.x, my.pageable, BYTES, cudaMemcpyDefault));
    run(graph, &exec);
    await(my.a, sound);
    tuttiCheckWrite(my.pageable, BYTES);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
}

static void function_node(bool sound) /* and a copy beside it */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t one, other;
    struct cudaMemsetParams set = filling(my.pinned);
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphAddMemcpyNode1D(&other, graph, &one, sound, my.x, my.pinned, BYTES,
                                cudaMemcpyDefault));
    run(graph, &exec);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
}

static void word_in_graph(bool sound) /* racy: the wait in the graph ends too early */
{
    char *word;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaMalloc((void **)&word, 4));
    OK(cudaMemset(word, 0, 4));
    OK(cudaDeviceSynchronize());
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)word;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    OK(cuStreamWaitValue32((CUstream)my.a, at, sound ? 2 : 1, CU_STREAM_WAIT_VALUE_GEQ));
    copy(my.y, my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cuStreamWriteValue32((CUstream)my.b, at, 1, 0));
    fill(my.x, my.b);
    OK(cuStreamWriteValue32((CUstream)my.b, at, 2, 0));
    run(graph, &exec);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
}

/* ---- ranks ---- */

static void group(void (*call)(int r, bool sound), bool sound)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        call(r, sound);
    }
    OK(ncclGroupEnd());
}

static void reduce(int r, bool sound)
{
    (void)sound;
    OK(ncclAllReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, ranks.comm[r],
                     ranks.stream[r]));
}

static void ranks_in_one_graph(bool sound) /* racy: rank 1's result is read beside the collective */
{
    cudaGraph_t graph;
    racy_start_ranks();
    OK(cudaSetDevice(0));
    OK(cudaStreamBeginCapture(ranks.stream[0], cudaStreamCaptureModeRelaxed));
    behind(ranks.stream[1], ranks.stream[0], true);
    behind(ranks.other[1], ranks.stream[0], true);
    group(reduce, true);
    behind(ranks.other[1], ranks.stream[1], sound);
    OK(cudaMemcpyAsync(my.y, ranks.out[1], BYTES, cudaMemcpyDefault, ranks.other[1]));
    behind(ranks.stream[0], ranks.stream[1], true);
    behind(ranks.stream[0], ranks.other[1], true);
    OK(cudaStreamEndCapture(ranks.stream[0], &graph));
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, ranks.stream[0]));
    OK(cudaStreamSynchronize(ranks.stream[0]));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    racy_finish_ranks();
}

static void gather(int r, bool sound)
{
    (void)sound;
    OK(ncclGather(ranks.in[r], ranks.out[r], COUNT / 2, ncclFloat, 0, ranks.comm[r],
                  ranks.stream[r]));
}

static void gathered(bool sound) /* the root alone receives */
{
    racy_start_ranks();
    group(gather, sound);
    int k = sound ? 1 : 0;
    OK(cudaMemcpyAsync(my.y, ranks.out[k], BYTES, cudaMemcpyDefault, ranks.other[k]));
    racy_finish_ranks();
}

static void scatter(int r, bool sound)
{
    (void)sound;
    OK(ncclScatter(ranks.in[r], ranks.out[r], COUNT / 2, ncclFloat, 0, ranks.comm[r],
                   ranks.stream[r]));
}

static void scattered(bool sound) /* the root alone gives */
{
    racy_start_ranks();
    group(scatter, sound);
    int k = sound ? 1 : 0;
    OK(cudaMemsetAsync(ranks.in[k], 0, BYTES, ranks.other[k]));
    racy_finish_ranks();
}

static void nothing_reduced(int r, bool sound)
{
    OK(ncclAllReduce(ranks.in[r], ranks.out[r], sound ? 1 : 0, ncclFloat, ncclSum, ranks.comm[r],
                     ranks.stream[r]));
}

static void empty_barrier(bool sound) /* racy: of no elements, no rank waits */
{
    racy_start_ranks();
    fill(my.x, ranks.stream[1]);
    group(nothing_reduced, sound);
    copy(my.y, my.x, ranks.stream[0]);
    racy_finish_ranks();
}

static void one_rank(bool sound) /* its AllReduce is a copy on its stream */
{
    ncclComm_t comm;
    OK(ncclCommInitAll(&comm, 1, NULL));
    OK(ncclAllReduce(my.x, my.y, COUNT, ncclFloat, ncclSum, comm, my.a));
    behind(my.b, my.a, sound);
    copy(my.z, my.y, my.b);
    OK(cudaDeviceSynchronize());
    OK(ncclCommDestroy(comm));
}

static void shard_of_peer(int r, bool sound)
{
    (void)sound;
    OK(ncclReduceScatter(ranks.in[r], ranks.in[r] + (size_t)r * COUNT / 2, COUNT / 2, ncclFloat,
                         ncclSum, ranks.comm[r], ranks.stream[r]));
}

static void shards(bool sound) /* sound: the part that is not this rank's may be read */
{
    racy_start_ranks();
    group(shard_of_peer, sound);
    OK(cudaMemcpyAsync(my.y, ranks.in[0] + (sound ? COUNT / 2 : 0), BYTES / 2, cudaMemcpyDefault,
                       ranks.other[0]));
    racy_finish_ranks();
}

static void pipeline(bool sound) /* of stages, forward and back; racy: no credit comes back */
{
    racy_start_ranks();
    for (int i = 0; i < 3; i++) {
        OK(cudaMemsetAsync(ranks.in[0], i, BYTES, ranks.stream[0]));
        OK(ncclGroupStart());
        OK(ncclSend(ranks.in[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
        OK(ncclRecv(ranks.out[1], 4, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
        OK(ncclGroupEnd());
        OK(cudaMemcpyAsync(ranks.out[1], ranks.in[0], BYTES, cudaMemcpyDefault, ranks.stream[1]));
        if (!sound) continue;
        OK(ncclGroupStart());
        OK(ncclSend(ranks.in[1], 4, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
        OK(ncclRecv(ranks.out[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void shrunk_bucket(bool sound) /* racy: two reductions at once, one bucket reaches over */
{
    racy_start_ranks();
    for (int pass = 0; pass < 2; pass++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            size_t at = pass ? COUNT / 2 - !sound : 0;
            OK(ncclAllReduce(ranks.in[r] + at, ranks.in[r] + at, COUNT / 2, ncclFloat, ncclSum,
                             ranks.comm[r], pass ? ranks.other[r] : ranks.stream[r]));
        }
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void split_reader(bool sound) /* three readers, then a writer behind two of them */
{
    cudaStream_t c = make_stream(), d = make_stream();
    copy(my.y, my.x, my.a);
    OK(cudaMemcpyAsync(my.z, my.x, BYTES / 2, cudaMemcpyDefault, my.b));
    OK(cudaMemcpyAsync(my.z + BYTES / 2, my.x + BYTES / 2, BYTES / 2, cudaMemcpyDefault, c));
    behind(d, my.a, true);
    behind(d, my.b, true);
    behind(d, c, sound);
    fill(my.x, d);
}

static void group_of_two_communicators(bool sound) /* racy: the second reads the first one's sum */
{
    ncclComm_t second[RANKS];
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclCommSplit(ranks.comm[r], 0, r, &second[r], NULL));
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.out[r], COUNT / 2, ncclFloat, ncclSum, ranks.comm[r],
                         ranks.stream[r]));
        OK(ncclAllReduce(sound ? ranks.in[r] : ranks.out[r], ranks.out[r] + COUNT / 2, COUNT / 2,
                         ncclFloat, ncclSum, second[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamSynchronize(ranks.stream[r]));
        OK(ncclCommDestroy(second[r]));
    }
    racy_finish_ranks();
}

const struct racy_scenario racy_more[] = {
    {"group-of-two-communicators", group_of_two_communicators, "race"},
    {"past-pinned", past_pinned, "outside"},
    {"past-managed", past_managed, "outside"},
    {"past-pool", past_pool, "outside"},
    {"past-both", past_both, "outside"},
    {"past-peer", past_peer, "outside"},
    {"before-the-start", before_the_start, "use after free"},
    {"pinned-behind-free", pinned_behind_free, "use after free"},
    {"pool-behind-free", pool_behind_free, "use after free"},
    {"pool-used-elsewhere", pool_used_elsewhere, "race"},
    {"comes-again", comes_again, "race"},
    {"unmapped-too-early", unmapped_too_early, "race"},
    {"copy-that-waits-for-default", copy_that_waits_for_default, "race"},
    {"two-functions", two_functions, "race"},
    {"last-of-many", last_of_many, "race"},
    {"thread-default-and-legacy", thread_default_and_legacy, "race"},
    {"edge-removed", edge_removed, "race"},
    {"through-empty-node", through_empty_node, "race"},
    {"cloned", cloned, "race"},
    {"fill-edited", fill_edited, "race"},
    {"pageable-in-graph", pageable_in_graph, "race"},
    {"function-node", function_node, "race"},
    {"word-in-graph", word_in_graph, "race"},
    {"ranks-in-one-graph", ranks_in_one_graph, "race"},
    {"gathered", gathered, "race"},
    {"scattered", scattered, "race"},
    {"empty-barrier", empty_barrier, "race"},
    {"one-rank", one_rank, "race: copy reads what AllReduce writes"},
    {"shards", shards, "race"},
    {"pipeline", pipeline, "race"},
    {"shrunk-bucket", shrunk_bucket, "race"},
    {"split-reader", split_reader, "race"},
};
const size_t racy_nmore = sizeof(racy_more) / sizeof(racy_more[0]);
