/* Scenes as a stranger would write them: events that are destroyed or stale, streams whose handles
 * come again, threads, pools, graphs that are edited, memory that is not written or not there. */
#include "racy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static cudaStream_t make_stream(void)
{
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaEvent_t make_event(void)
{
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static void wait_behind(cudaStream_t second, cudaStream_t first)
{
    int device, of_first;
    OK(cudaGetDevice(&device));
    OK(cudaStreamGetDevice(first, &of_first));
    OK(cudaSetDevice(of_first));
    cudaEvent_t event = make_event();
    OK(cudaSetDevice(device));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaEventDestroy(event));
}

/* ---- events and streams ---- */

static void event_comes_again(bool sound) /* racy: another event, perhaps at the old address */
{
    cudaEvent_t event = make_event();
    fill(my.x, my.a);
    OK(cudaEventRecord(event, my.a));
    if (!sound) {
        OK(cudaEventDestroy(event));
        event = make_event();
    }
    OK(cudaStreamWaitEvent(my.b, event, 0));
    copy(my.y, my.x, my.b);
}

static void event_gone(bool sound) /* a wait outlives its event */
{
    fill(my.x, my.a);
    if (sound) wait_behind(my.b, my.a);
    copy(my.y, my.x, my.b);
}

static void stream_comes_again(bool sound) /* racy: a new stream, not behind the old one */
{
    cudaStream_t stream = make_stream();
    fill(my.x, stream);
    if (sound) wait_behind(my.b, stream);
    OK(cudaStreamDestroy(stream));
    stream = make_stream();
    if (sound) wait_behind(stream, my.b);
    copy(my.y, my.x, stream);
}

static void recorded_elsewhere(bool sound) /* racy: the event's latest record is another stream's */
{
    copy(my.pinned, my.x, my.a);
    OK(cudaEventRecord(my.event, my.a));
    if (!sound) OK(cudaEventRecord(my.event, my.b));
    OK(cudaEventSynchronize(my.event));
    tuttiCheckRead(my.pinned, 1);
}

static void queried(bool sound)
{
    cudaEvent_t other = make_event();
    copy(my.pinned, my.x, my.a);
    OK(cudaEventRecord(my.event, my.a));
    OK(cudaEventRecord(other, my.b));
    while (cudaEventQuery(sound ? my.event : other) == cudaErrorNotReady) {
    }
    tuttiCheckRead(my.pinned, BYTES);
}

static void priorities(bool sound) /* order no streams */
{
    cudaStream_t high;
    OK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, -1));
    fill(my.x, high);
    if (sound) wait_behind(my.b, high);
    copy(my.y, my.x, my.b);
}

static void wrong_device(bool sound)
{
    copy(my.pinned, my.x, my.a);
    OK(cudaSetDevice(sound ? 0 : 1));
    OK(cudaDeviceSynchronize());
    tuttiCheckRead(my.pinned, BYTES);
}

static void default_between(bool sound) /* racy: two blocking streams, nothing between them */
{
    cudaStream_t one, other;
    OK(cudaStreamCreate(&one));
    OK(cudaStreamCreate(&other));
    fill(my.x, one);
    if (sound) OK(cudaMemsetAsync(my.z, 0, BYTES, cudaStreamLegacy));
    copy(my.y, my.x, other);
}

static void default_of_other_device(bool sound) /* it orders the streams of its own device */
{
    cudaStream_t one, other;
    OK(cudaStreamCreate(&one));
    OK(cudaStreamCreate(&other));
    fill(my.x, one);
    char *far;
    OK(cudaSetDevice(sound ? 0 : 1));
    OK(cudaMalloc((void **)&far, BYTES));
    OK(cudaMemsetAsync(far, 0, BYTES, cudaStreamLegacy));
    copy(my.y, my.x, other);
}

static void peer_copy(bool sound)
{
    char *far;
    cudaStream_t there;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&far, BYTES));
    there = make_stream();
    OK(cudaMemcpyPeerAsync(far, 1, my.x, 0, BYTES, my.a));
    if (sound) wait_behind(there, my.a);
    OK(cudaMemsetAsync(far, 0, BYTES, there));
}

static void peer_ring(bool sound) /* each device pushes to the next; racy: before it is read */
{
    char *at[2] = {my.x, NULL};
    cudaStream_t stream[2] = {my.a, NULL};
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&at[1], BYTES));
    stream[1] = make_stream();
    OK(cudaMemsetAsync(at[1], 0, BYTES, stream[1]));
    wait_behind(stream[0], stream[1]);
    for (int i = 0; i < 3; i++) {
        OK(cudaMemcpyPeerAsync(at[1], 1, at[0], 0, BYTES, stream[0]));
        wait_behind(stream[1], stream[0]);
        OK(cudaMemcpyPeerAsync(at[0], 0, at[1], 1, BYTES, stream[1]));
        if (sound) wait_behind(stream[0], stream[1]);
    }
}

static void boxes(bool sound) /* 3D: sound, they lie beside each other */
{
    struct cudaMemcpy3DParms box = {.srcPtr = {my.y, 32, 32, 8},
                                    .dstPtr = {my.x, 64, 64, 8},
                                    .extent = {16, 4, 4},
                                    .kind = cudaMemcpyDefault};
    OK(cudaMemcpy3DAsync(&box, my.a));
    box.dstPos.x = sound ? 16 : 15;
    OK(cudaMemcpy3DAsync(&box, my.b));
}

static void pageable_staged(bool sound) /* sound: what is pageable has been read at return */
{
    copy(my.x, sound ? my.pageable : my.pinned, my.a);
    tuttiCheckWrite(sound ? my.pageable : my.pinned, BYTES);
}

static void registered(bool sound)
{
    OK(cudaHostRegister(my.pageable, BYTES, 0));
    copy(my.pageable, my.x, my.a);
    if (sound) OK(cudaStreamSynchronize(my.a));
    tuttiCheckRead(my.pageable, BYTES);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaHostUnregister(my.pageable));
}

static void fill_does_not_wait(bool sound)
{
    OK(cudaMemset(my.x, 3, BYTES));
    if (sound) OK(cudaStreamSynchronize(NULL));
    copy(my.y, my.x, my.b);
}

static void prefetch(bool sound) /* moves, does not write */
{
    char *managed;
    OK(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    OK(cudaMemset(managed, 0, BYTES));
    OK(cudaDeviceSynchronize());
    copy(my.y, managed, my.a);
    const struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 0};
    OK(cudaMemPrefetchAsync(managed, BYTES, location, 0, my.b));
    if (!sound) OK(cudaMemsetAsync(managed, 1, BYTES, my.b));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(managed));
}

/* ---- host functions, kernels ---- */

static void read_pinned(void *arg)
{
    tuttiCheckRead(arg, BYTES);
}

static void function_reads(bool sound) /* racy: the next transfer comes before it has read */
{
    copy(my.pinned, my.x, my.a);
    OK(cudaLaunchHostFunc(my.a, read_pinned, my.pinned));
    if (sound) wait_behind(my.b, my.a);
    copy(my.pinned, my.y, my.b);
    OK(cudaDeviceSynchronize());
}

static void stub(void) {}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)args, (void)context;
}

static void tell_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    tuttiCheckRead(*(void **)args[0], BYTES);
    tuttiCheckWrite(*(void **)args[1], BYTES);
}

static void launch(char *from, char *to, cudaStream_t stream)
{
    static bool registered;
    const size_t sizes[] = {sizeof(void *), sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)stub,
                                    .run = run_kernel,
                                    .nargs = 2,
                                    .arg_bytes = sizes,
                                    .touches = tell_kernel};
    void *args[] = {&from, &to};
    if (!registered) OK(tuttiRegisterKernel(&one));
    registered = true;
    OK(cudaLaunchKernel((const void *)stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

static void kernels(bool sound)
{
    launch(my.x, my.y, my.a);
    if (sound) wait_behind(my.b, my.a);
    launch(my.y, my.z, my.b);
}

static void kernel_and_bucket(bool sound) /* backward, AllReduce, step; racy: the step too early */
{
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        launch((char *)ranks.out[r], (char *)ranks.in[r], ranks.other[r]);
        wait_behind(ranks.stream[r], ranks.other[r]);
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.in[r], COUNT, ncclFloat, ncclAvg, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound || r) wait_behind(ranks.other[r], ranks.stream[r]);
        launch((char *)ranks.in[r], (char *)ranks.out[r], ranks.other[r]);
    }
    racy_finish_ranks();
}

/* ---- threads ---- */

static void *fill_own_default(void *arg)
{
    OK(cudaMemsetAsync(my.x, 1, BYTES, cudaStreamPerThread));
    if (arg) OK(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static void default_per_thread(bool sound) /* each thread has its own */
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, fill_own_default, sound ? &thread : NULL));
    OK(pthread_join(thread, NULL));
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, cudaStreamPerThread));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
}

static atomic_bool recorded, may_record;

static void *record_in_thread(void *arg)
{
    (void)arg;
    while (!atomic_load(&may_record)) {
        usleep(100);
    }
    fill(my.x, my.a);
    OK(cudaEventRecord(my.event, my.a));
    atomic_store(&recorded, true);
    return NULL;
}

static void handed_over(bool sound) /* racy: the wait comes before the record */
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, record_in_thread, NULL));
    if (!sound) OK(cudaStreamWaitEvent(my.b, my.event, 0));
    atomic_store(&may_record, true);
    while (!atomic_load(&recorded)) {
        usleep(100);
    }
    if (sound) OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
    OK(pthread_join(thread, NULL));
}

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

static void kernel_behind_free(bool sound)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    fill(memory, my.a);
    if (!sound) OK(cudaFree(memory));
    launch(memory, my.y, my.a);
    if (sound) OK(cudaFree(memory));
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
    wait_behind(my.b, my.a);
    copy(my.y, my.x, my.a);
    copy(sound ? my.z : my.y, my.x, my.b);
    wait_behind(my.a, my.b);
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
    if (sound) wait_behind(ranks.other[0], ranks.stream[0]);
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
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamEndCapture(ranks.stream[r], &graph[r]));
        OK(cudaGraphInstantiateWithFlags(&exec[r], graph[r], 0));
    }
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            OK(cudaMemsetAsync(ranks.in[r], i, BYTES, ranks.other[r]));
            wait_behind(ranks.stream[r], ranks.other[r]);
        }
        for (int r = 0; r < RANKS; r++) {
            OK(cudaGraphLaunch(exec[r], ranks.stream[r]));
        }
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            if (sound) wait_behind(ranks.other[r], ranks.stream[r]);
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
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    if (sound) wait_behind(ranks.stream[0], ranks.stream[1]);
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
    wait_behind(ranks.other[1], ranks.stream[sound ? 1 : 0]);
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES / 2, cudaMemcpyDefault, ranks.other[1]));
    racy_finish_ranks();
}

const struct racy_scene racy_fresh[] = {
    {"event-comes-again", event_comes_again, "race"},
    {"event-gone", event_gone, "race"},
    {"stream-comes-again", stream_comes_again, "race"},
    {"recorded-elsewhere", recorded_elsewhere, "race"},
    {"queried", queried, "race"},
    {"priorities", priorities, "race"},
    {"wrong-device", wrong_device, "race"},
    {"default-between", default_between, "race"},
    {"default-of-other-device", default_of_other_device, "race"},
    {"peer-copy", peer_copy, "race"},
    {"peer-ring", peer_ring, "race"},
    {"boxes", boxes, "race"},
    {"pageable-staged", pageable_staged, "race"},
    {"registered", registered, "race"},
    {"fill-does-not-wait", fill_does_not_wait, "race"},
    {"prefetch", prefetch, "race"},
    {"function-reads", function_reads, "race"},
    {"kernels", kernels, "race"},
    {"kernel-and-bucket", kernel_and_bucket, "race"},
    {"default-per-thread", default_per_thread, "race"},
    {"handed-over", handed_over, "race"},
    {"pool-hands-on", pool_hands_on, "use after free"},
    {"pool-freed-at-once", pool_freed_at_once, "race"},
    {"pool-forgotten", pool_forgotten, "unwritten"},
    {"half-written", half_written, "unwritten"},
    {"reduces-unwritten", reduces_unwritten, "unwritten"},
    {"rows-past-the-end", rows_past_the_end, "outside"},
    {"fill-rows-past-the-end", fill_rows_past_the_end, "outside"},
    {"from-past-the-end", from_past_the_end, "outside"},
    {"kernel-behind-free", kernel_behind_free, "use after free"},
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
const size_t racy_nfresh = sizeof(racy_fresh) / sizeof(racy_fresh[0]);
