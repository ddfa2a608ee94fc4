/* Scenarios as a user would write them: events that are destroyed or stale, streams whose
 * handles come again, host functions, kernels, threads. */
#include "racy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

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
    if (sound) racy_join(my.b, my.a);
    copy(my.y, my.x, my.b);
}

static void stream_comes_again(bool sound) /* racy: a new stream, not behind the old one */
{
    cudaStream_t stream = make_stream();
    fill(my.x, stream);
    if (sound) racy_join(my.b, stream);
    OK(cudaStreamDestroy(stream));
    stream = make_stream();
    if (sound) racy_join(stream, my.b);
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
    if (sound) racy_join(my.b, high);
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
    if (sound) racy_join(there, my.a);
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
    racy_join(stream[0], stream[1]);
    for (int i = 0; i < 3; i++) {
        OK(cudaMemcpyPeerAsync(at[1], 1, at[0], 0, BYTES, stream[0]));
        racy_join(stream[1], stream[0]);
        OK(cudaMemcpyPeerAsync(at[0], 0, at[1], 1, BYTES, stream[1]));
        if (sound) racy_join(stream[0], stream[1]);
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

static void prefetched_back(bool sound) /* racy: that it moves to the host is no wait */
{
    char *managed;
    OK(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    const struct cudaMemLocation location = {.type = cudaMemLocationTypeHost};
    OK(cudaMemcpyAsync(managed, my.x, BYTES, cudaMemcpyDefault, my.a));
    OK(cudaMemPrefetchAsync(managed, BYTES, location, 0, my.a));
    if (sound) OK(cudaStreamSynchronize(my.a));
    if (*(volatile char *)managed == 77) puts("");
    OK(cudaStreamSynchronize(my.a));
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
    if (sound) racy_join(my.b, my.a);
    copy(my.pinned, my.y, my.b);
    OK(cudaDeviceSynchronize());
}

static void stub(void) {}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)args, (void)context;
}

static void report_kernel(const struct tuttiBlock *block, void **args, void *context)
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
                                    .touches = report_kernel};
    void *args[] = {&from, &to};
    if (!registered) OK(tuttiRegisterKernel(&one));
    registered = true;
    OK(cudaLaunchKernel((const void *)stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

static void kernels(bool sound)
{
    launch(my.x, my.y, my.a);
    if (sound) racy_join(my.b, my.a);
    launch(my.y, my.z, my.b);
}

static void kernel_and_bucket(bool sound) /* backward, AllReduce, step; racy: the step too early */
{
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        launch((char *)ranks.out[r], (char *)ranks.in[r], ranks.other[r]);
        racy_join(ranks.stream[r], ranks.other[r]);
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.in[r], COUNT, ncclFloat, ncclAvg, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound || r) racy_join(ranks.other[r], ranks.stream[r]);
        launch((char *)ranks.in[r], (char *)ranks.out[r], ranks.other[r]);
    }
    racy_finish_ranks();
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

const struct racy_scenario racy_fresh[] = {
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
    {"prefetched-back", prefetched_back, "race"},
    {"function-reads", function_reads, "race"},
    {"kernels", kernels, "race"},
    {"kernel-and-bucket", kernel_and_bucket, "race"},
    {"kernel-behind-free", kernel_behind_free, "use after free"},
    {"default-per-thread", default_per_thread, "race"},
    {"handed-over", handed_over, "race"},
};
const size_t racy_nfresh = sizeof(racy_fresh) / sizeof(racy_fresh[0]);
