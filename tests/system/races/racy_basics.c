/* Scenarios of each kind of order: streams, default streams, the host, the life of memory, graphs,
 * collectives. */
#include "racy.h"

#include <pthread.h>
#include <unistd.h>

/* ---- streams ---- */

static void write_then_read(bool sound)
{
    fill(my.x, my.a);
    order(my.a, my.b, sound);
    copy(my.y, my.x, my.b);
}

static void write_then_write(bool sound)
{
    fill(my.x, my.a);
    order(my.a, my.b, sound);
    fill(my.x, my.b);
}

static void read_then_write(bool sound)
{
    copy(my.y, my.x, my.a);
    order(my.a, my.b, sound);
    fill(my.x, my.b);
}

static void halves(bool sound) /* sound: two streams, two halves */
{
    OK(cudaMemsetAsync(my.x, 1, BYTES / 2 + (sound ? 0 : 1), my.a));
    OK(cudaMemsetAsync(my.x + BYTES / 2, 1, BYTES / 2, my.b));
}

static void columns(bool sound) /* sound: the rows interleave and do not touch */
{
    OK(cudaMemcpy2DAsync(my.x, 64, my.y, 64, 32, 16, cudaMemcpyDefault, my.a));
    OK(cudaMemcpy2DAsync(my.x + (sound ? 32 : 31), 64, my.z, 64, 32, 16, cudaMemcpyDefault, my.b));
}

static void record_too_early(bool sound)
{
    if (!sound) OK(cudaEventRecord(my.event, my.a));
    fill(my.x, my.a);
    if (sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
}

static void wait_too_late(bool sound)
{
    fill(my.x, my.a);
    OK(cudaEventRecord(my.event, my.a));
    if (sound) OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
}

static void never_recorded(bool sound)
{
    fill(my.x, my.a);
    if (sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
}

static void through_third_stream(bool sound)
{
    cudaStream_t c;
    OK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    fill(my.x, my.a);
    order(my.a, c, true);
    order(c, my.b, sound);
    copy(my.y, my.x, my.b);
}

static void event_again(bool sound) /* the wait takes the record that is the latest then */
{
    fill(my.x, my.a);
    OK(cudaEventRecord(my.event, my.a));
    if (sound) OK(cudaStreamWaitEvent(my.b, my.event, 0));
    OK(cudaEventRecord(my.event, my.b));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
}

static void shared_event(bool sound)
{
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    fill(my.x, my.a);
    if (sound) OK(cudaEventRecord(event, my.a));
    OK(cudaStreamWaitEvent(my.b, event, 0));
    copy(my.y, my.x, my.b);
}

static void destroyed_stream(bool sound)
{
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill(my.x, stream);
    await(stream, sound);
    OK(cudaStreamDestroy(stream));
    copy(my.y, my.x, my.b);
}

static void *fill_in_thread(void *stream)
{
    fill(my.x, stream);
    return NULL;
}

static void joined_thread(bool sound) /* the end of a thread orders no streams */
{
    pthread_t thread;
    OK(pthread_create(&thread, NULL, fill_in_thread, my.a));
    OK(pthread_join(thread, NULL));
    order(my.a, my.b, sound);
    copy(my.y, my.x, my.b);
}

static void other_device(bool sound)
{
    cudaStream_t far;
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    fill(my.x, my.a);
    order(my.a, far, sound);
    copy(my.y, my.x, far);
}

static void stream_words(bool sound)
{
    unsigned *word;
    OK(cudaMalloc((void **)&word, sizeof(*word)));
    OK(cudaMemset(word, 0, sizeof(*word)));
    OK(cudaDeviceSynchronize());
    if (sound)
        OK(cuStreamWaitValue32((CUstream)my.b, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    fill(my.x, my.a);
    if (sound) OK(cuStreamWriteValue32((CUstream)my.a, (CUdeviceptr)word, 1, 0));
    copy(my.y, my.x, my.b);
}

/* ---- default streams ---- */

static void default_and_other(bool sound) /* a blocking stream waits for the default one */
{
    cudaStream_t blocking;
    OK(cudaStreamCreate(&blocking));
    OK(cudaMemset(my.x, 3, BYTES));
    copy(my.y, my.x, sound ? blocking : my.a);
}

static void other_and_default(bool sound)
{
    cudaStream_t blocking;
    OK(cudaStreamCreate(&blocking));
    copy(my.y, my.x, sound ? blocking : my.a);
    OK(cudaMemsetAsync(my.x, 3, BYTES, NULL));
}

static void default_of_thread(bool sound)
{
    OK(cudaMemsetAsync(my.x, 3, BYTES, cudaStreamPerThread));
    copy(my.y, my.x, sound ? NULL : my.a);
}

static void copy_on_device(bool sound) /* cudaMemcpy between devices does not wait */
{
    OK(cudaMemcpy(my.x, my.y, BYTES, cudaMemcpyDeviceToDevice));
    if (sound) OK(cudaDeviceSynchronize());
    copy(my.z, my.x, my.a);
}

static void copy_from_host(bool sound) /* the other kind does */
{
    if (sound) OK(cudaMemcpy(my.x, my.pinned, BYTES, cudaMemcpyHostToDevice));
    if (!sound) OK(cudaMemcpyAsync(my.x, my.pinned, BYTES, cudaMemcpyHostToDevice, NULL));
    copy(my.z, my.x, my.a);
}

/* ---- the host ---- */

static void host_reads(bool sound)
{
    copy(my.pinned, my.x, my.a);
    await(my.a, sound);
    tuttiCheckRead(my.pinned, BYTES);
}

static void host_writes(bool sound)
{
    copy(my.x, my.pinned, my.a);
    await(my.a, sound);
    tuttiCheckWrite(my.pinned, 1);
}

static void waits_for_another(bool sound)
{
    copy(my.pinned, my.x, my.a);
    OK(cudaStreamSynchronize(sound ? my.a : my.b));
    tuttiCheckRead(my.pinned, BYTES);
}

static void event_of_host(bool sound)
{
    if (!sound) OK(cudaEventRecord(my.event, my.a));
    copy(my.pinned, my.x, my.a);
    if (sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaEventSynchronize(my.event));
    tuttiCheckRead(my.pinned, BYTES);
}

static void polls(bool sound)
{
    copy(my.pinned, my.x, my.a);
    while (cudaStreamQuery(sound ? my.a : my.b) == cudaErrorNotReady) {
    }
    tuttiCheckRead(my.pinned, BYTES);
}

static void pageable(bool sound) /* a copy there is made when the call returns */
{
    copy(sound ? my.pageable : my.pinned, my.x, my.a);
    tuttiCheckRead(sound ? my.pageable : my.pinned, BYTES);
}

static void write_pinned(void *arg)
{
    tuttiCheckWrite(arg, BYTES);
}

static void host_function(bool sound)
{
    OK(cudaLaunchHostFunc(my.a, write_pinned, my.pinned));
    order(my.a, my.b, sound);
    copy(my.x, my.pinned, my.b);
    OK(cudaDeviceSynchronize());
}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    tuttiCheckWrite(*(void **)args[0], BYTES);
}

static void stub(void) {}

static void kernel(bool sound)
{
    const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)stub,
                                    .run = run_kernel,
                                    .nargs = 1,
                                    .arg_bytes = sizes};
    void *args[] = {&my.x};
    OK(tuttiRegisterKernel(&one));
    OK(cudaLaunchKernel((const void *)stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, my.a));
    order(my.a, my.b, sound);
    copy(my.y, my.x, my.b);
    OK(cudaDeviceSynchronize());
}

/* ---- life of memory ---- */

static void freed_before(bool sound)
{
    if (!sound) OK(cudaFree(my.x));
    if (cudaMemcpy(my.y, my.x, BYTES, cudaMemcpyDefault) == cudaSuccess) OK(!sound);
    if (sound) OK(cudaFree(my.x));
}

static void freed_too_early(bool sound) /* cudaFree waits for the memory's own device alone */
{
    cudaStream_t far;
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    copy(my.pinned, my.x, far);
    await(far, sound);
    OK(cudaFree(my.x));
}

static void pinned_too_early(bool sound)
{
    cudaStream_t far;
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    copy(my.x, my.pinned, far);
    await(far, sound);
    OK(cudaSetDevice(0));
    OK(cudaFreeHost(my.pinned));
}

static void unregistered_too_early(bool sound)
{
    OK(cudaHostRegister(my.pageable, BYTES, 0));
    copy(my.x, my.pageable, my.a);
    await(my.a, sound);
    OK(cudaHostUnregister(my.pageable));
}

static void free_on_other_stream(bool sound)
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    order(my.a, my.b, sound);
    OK(cudaFreeAsync(memory, my.b));
}

static void used_behind_free(bool sound)
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    fill(memory, my.a);
    if (!sound) OK(cudaFreeAsync(memory, my.a));
    cudaMemcpyAsync(my.x, memory, BYTES, cudaMemcpyDefault, my.a);
    if (sound) OK(cudaFreeAsync(memory, my.a));
}

static void allocated_elsewhere(bool sound) /* the memory is there in the order of its stream */
{
    char *memory;
    OK(cudaMallocAsync((void **)&memory, BYTES, my.a));
    order(my.a, my.b, sound);
    fill(memory, my.b);
}

static void unwritten(bool sound)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, BYTES));
    if (sound) OK(cudaMemset(memory, 0, BYTES));
    OK(cudaMemcpy(my.pinned, memory, BYTES, cudaMemcpyDefault));
}

static void past_the_end(bool sound)
{
    int rc = cudaMemcpy(my.x, my.pageable, sound ? BYTES : BYTES + 1, cudaMemcpyHostToDevice);
    OK(sound ? rc : rc == cudaSuccess);
}

static void fill_past_the_end(bool sound)
{
    int rc = cudaMemset(my.x + 1, 0, sound ? BYTES - 1 : BYTES);
    OK(sound ? rc : rc == cudaSuccess);
}

/* ---- graphs ---- */

static void launch(cudaGraph_t graph, cudaStream_t stream)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void nodes(bool sound)
{
    cudaGraph_t graph;
    cudaGraphNode_t one, other;
    struct cudaMemsetParams set = {
        .dst = my.x, .value = 1, .elementSize = 1, .width = 64, .height = 1};
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &set));
    OK(cudaGraphAddMemsetNode(&other, graph, &one, sound ? 1 : 0, &set));
    launch(graph, my.a);
}

static void captured_fork(bool sound)
{
    cudaGraph_t graph;
    cudaEvent_t back;
    OK(cudaEventCreate(&back));
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    if (sound) fill(my.x, my.a);
    order(my.a, my.b, true);
    if (!sound) fill(my.x, my.a);
    copy(my.y, my.x, my.b);
    OK(cudaEventRecord(back, my.b));
    OK(cudaStreamWaitEvent(my.a, back, 0));
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph, my.a);
}

static void graph_and_stream(bool sound)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    fill(my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph, my.a);
    order(my.a, my.b, sound);
    copy(my.y, my.x, my.b);
}

static void graph_event(bool sound) /* a node records what another stream awaits */
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    fill(my.x, my.a);
    if (sound) OK(cudaEventRecordWithFlags(my.event, my.a, cudaEventRecordExternal));
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph, my.a);
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
}

static void launches_of_one(bool sound) /* they follow each other, on whatever streams */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec, other;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    fill(my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphInstantiateWithFlags(&other, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphLaunch(sound ? exec : other, my.b));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphExecDestroy(other));
    OK(cudaGraphDestroy(graph));
}

/* ---- collectives ---- */

static void result_too_early(bool sound)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    order(ranks.stream[1], ranks.other[1], false);
    if (sound) OK(cudaStreamSynchronize(ranks.stream[1]));
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES, cudaMemcpyDefault, ranks.other[1]));
    racy_finish_ranks();
}

static void reused_bucket(bool sound)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    OK(cudaMemsetAsync(ranks.in[1], 1, BYTES, sound ? ranks.stream[1] : ranks.other[1]));
    racy_finish_ranks();
}

static void two_streams(bool sound) /* two collectives write one buffer */
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    all_reduce(ranks.in, ranks.out, COUNT, sound ? ranks.stream : ranks.other);
    racy_finish_ranks();
}

static void message(bool sound)
{
    racy_start_ranks();
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES, cudaMemcpyDefault,
                       sound ? ranks.stream[1] : ranks.other[1]));
    racy_finish_ranks();
}

static void collective_as_barrier(bool sound) /* what a peer did before it is over behind it */
{
    racy_start_ranks();
    OK(cudaMemsetAsync(my.x, 1, BYTES, ranks.stream[1]));
    if (sound) all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, ranks.stream[0]));
    if (!sound) all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    racy_finish_ranks();
}

static void captured_collective(bool sound)
{
    cudaGraph_t graph[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamBeginCapture(ranks.stream[r], cudaStreamCaptureModeRelaxed));
    }
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamEndCapture(ranks.stream[r], &graph[r]));
        launch(graph[r], ranks.stream[r]);
    }
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES, cudaMemcpyDefault,
                       sound ? ranks.stream[1] : ranks.other[1]));
    racy_finish_ranks();
}

const struct racy_scenario racy_basics[] = {
    {"write-then-read", write_then_read, "race"},
    {"write-then-write", write_then_write, "race"},
    {"read-then-write", read_then_write, "race"},
    {"halves", halves, "race"},
    {"columns", columns, "race"},
    {"record-too-early", record_too_early, "race"},
    {"wait-too-late", wait_too_late, "race"},
    {"never-recorded", never_recorded, "race"},
    {"through-third-stream", through_third_stream, "race"},
    {"event-again", event_again, "race"},
    {"shared-event", shared_event, "race"},
    {"destroyed-stream", destroyed_stream, "race"},
    {"joined-thread", joined_thread, "race"},
    {"other-device", other_device, "race"},
    {"stream-words", stream_words, "race"},
    {"default-and-other", default_and_other, "race"},
    {"other-and-default", other_and_default, "race"},
    {"default-of-thread", default_of_thread, "race"},
    {"copy-on-device", copy_on_device, "race"},
    {"copy-from-host", copy_from_host, "race"},
    {"host-reads", host_reads, "race"},
    {"host-writes", host_writes, "race"},
    {"waits-for-another", waits_for_another, "race"},
    {"event-of-host", event_of_host, "race"},
    {"polls", polls, "race"},
    {"pageable", pageable, "race"},
    {"host-function", host_function, "race"},
    {"kernel", kernel, "race"},
    {"freed-before", freed_before, "use after free"},
    {"freed-too-early", freed_too_early, "race"},
    {"pinned-too-early", pinned_too_early, "race"},
    {"unregistered-too-early", unregistered_too_early, "race"},
    {"free-on-other-stream", free_on_other_stream, "race"},
    {"used-behind-free", used_behind_free, "use after free"},
    {"allocated-elsewhere", allocated_elsewhere, "race"},
    {"unwritten", unwritten, "unwritten"},
    {"past-the-end", past_the_end, "outside"},
    {"fill-past-the-end", fill_past_the_end, "outside"},
    {"nodes", nodes, "race"},
    {"captured-fork", captured_fork, "race"},
    {"graph-and-stream", graph_and_stream, "race"},
    {"graph-event", graph_event, "race"},
    {"launches-of-one", launches_of_one, "race"},
    {"result-too-early", result_too_early, "race"},
    {"reused-bucket", reused_bucket, "race"},
    {"two-streams", two_streams, "race"},
    {"message", message, "race"},
    {"collective-as-barrier", collective_as_barrier, "race"},
    {"captured-collective", captured_collective, "race"},
};
const size_t racy_nbasics = sizeof(racy_basics) / sizeof(racy_basics[0]);
