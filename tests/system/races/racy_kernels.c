/* Scenarios of kernels that tell nothing: what they touch is seen while they run. They come as
 * programs write them, with device, managed and pinned memory, messages and graphs around them. */
#include "racy.h"

#include <pthread.h>
#include <unistd.h>

static volatile int seen;

/* ---- kernels: (int *to, const int *from, int n, int value) ---- */

static void run_fill(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0], n = *(int *)args[2];
    (void)context;
    for (int t = 0, i; t < (int)b->block.x; t++) {
        i = (int)(b->index.x * b->block.x) + t;
        if (i < n) to[i] = *(int *)args[3];
    }
}

static void run_add(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0], n = *(int *)args[2];
    const int *from = *(const int **)args[1];
    (void)context;
    for (int t = 0, i; t < (int)b->block.x; t++) {
        i = (int)(b->index.x * b->block.x) + t;
        if (i < n) to[i] += from[i];
    }
}

static void run_sum(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0], n = *(int *)args[2], sum = 0;
    const int *from = *(const int **)args[1];
    (void)b, (void)context;
    for (int i = 0; i < n; i++)
        sum += from[i];
    *to = sum;
}

static void run_count(const struct tuttiBlock *b, void **args, void *context) /* atomicAdd() */
{
    (void)context;
    for (unsigned t = 0; t < b->block.x; t++)
        __atomic_fetch_add(*(int **)args[0], 1, __ATOMIC_RELAXED);
}

static void fill_stub(void) {}
static void add_stub(void) {}
static void sum_stub(void) {}
static void count_stub(void) {}

static void set_up(void)
{
    static const size_t sizes[] = {sizeof(void *), sizeof(void *), sizeof(int), sizeof(int)};
    static const struct {
        void (*stub)(void);
        tuttiKernelRun run;
    } rows[] = {
        {fill_stub, run_fill}, {add_stub, run_add}, {sum_stub, run_sum}, {count_stub, run_count}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tuttiKernel one = {.size = sizeof(one),
                                        .function = (const void *)rows[i].stub,
                                        .run = rows[i].run,
                                        .nargs = 4,
                                        .arg_bytes = sizes};
        OK(tuttiRegisterKernel(&one));
    }
}

static void launch(void (*stub)(void), void *to, const void *from, int n, cudaStream_t stream)
{
    int value = 3;
    void *args[] = {&to, &from, &n, &value};
    set_up();
    OK(cudaLaunchKernel((const void *)stub, (dim3){(unsigned)(n + 255) / 256, 1, 1},
                        (dim3){256, 1, 1}, args, 0, stream));
}

static void fills(void *to, int n, cudaStream_t stream)
{
    launch(fill_stub, to, NULL, n, stream);
}

static void adds(void *to, const void *from, int n, cudaStream_t stream)
{
    launch(add_stub, to, from, n, stream);
}

static int *managed(size_t count)
{
    int *ints = NULL;
    OK(cudaMallocManaged((void **)&ints, count * sizeof(int), cudaMemAttachGlobal));
    for (size_t i = 0; i < count; i++)
        ints[i] = (int)i;
    return ints;
}

static void *device(size_t bytes)
{
    void *ptr = NULL;
    OK(cudaMalloc(&ptr, bytes));
    OK(cudaMemset(ptr, 0, bytes));
    OK(cudaDeviceSynchronize());
    return ptr;
}

/* ---- kernels, copies and fills on streams ---- */

static void then_copy(bool sound)
{
    fills(my.x, COUNT, my.a);
    order(my.a, my.b, sound);
    copy(my.y, my.x, my.b);
}

static void behind_copy(bool sound)
{
    copy(my.x, my.y, my.a);
    order(my.a, my.b, sound);
    adds(my.z, my.x, COUNT, my.b);
}

static void behind_fill(bool sound)
{
    fill(my.x, my.a);
    order(my.a, my.b, sound);
    fills(my.x, COUNT, my.b);
}

static void producer_consumer(bool sound)
{
    fills(my.x, COUNT, my.a);
    order(my.a, my.b, sound);
    adds(my.y, my.x, COUNT, my.b);
}

static void read_then_overwrite(bool sound)
{
    adds(my.y, my.x, COUNT, my.a);
    order(my.a, my.b, sound);
    fills(my.x, COUNT, my.b);
}

static void halves(bool sound) /* two kernels, two halves of one buffer; or one element too many */
{
    fills(my.x, COUNT / 2 + (sound ? 0 : 1), my.a);
    fills(my.x + BYTES / 2, COUNT / 2, my.b);
}

static void last_element(bool sound) /* of many, which only one of the kernels' blocks touches */
{
    int *big = device(40000 * sizeof(int));
    fills(big, 40000, my.a);
    adds(my.y, big + (sound ? 40000 - 1 : 0), 1, sound ? my.a : my.b);
}

static void readers(bool sound) /* two kernels that read; or one of them writes */
{
    adds(my.y, my.x, COUNT, my.a);
    adds(sound ? my.z : my.x, my.x, COUNT, my.b);
}

static void copy_back(bool sound)
{
    fills(my.x, COUNT, my.a);
    OK(cudaMemcpyAsync(my.pinned, my.x, BYTES, cudaMemcpyDeviceToHost, sound ? my.a : my.b));
    OK(cudaDeviceSynchronize());
}

static void input_replaced(bool sound) /* the host gives the next input while the kernel runs */
{
    adds(my.y, my.x, COUNT, my.a);
    await(my.a, sound);
    OK(cudaMemcpyAsync(my.x, my.pinned, BYTES, cudaMemcpyHostToDevice, my.b));
}

static void default_stream(bool sound) /* a blocking stream waits for it, another one does not */
{
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, sound ? cudaStreamDefault : cudaStreamNonBlocking));
    fills(my.x, COUNT, NULL);
    adds(my.y, my.x, COUNT, stream);
}

static void accumulator(bool sound)
{
    for (int i = 0; i < 6; i++) {
        adds(my.x, my.y, COUNT, my.a);
        adds(my.x, my.z, COUNT, sound ? my.a : my.b);
    }
}

static void counter(bool sound) /* atomics of two kernels; but the result is read too early */
{
    launch(count_stub, my.x, NULL, 256, my.a);
    launch(count_stub, my.x, NULL, 256, my.b);
    await(my.a, true);
    await(my.b, sound);
    OK(cudaMemcpy(&my.pageable[0], my.x, 4, cudaMemcpyDeviceToHost));
    if (!sound) fills(my.x, 1, my.a), fills(my.x, 1, my.b);
}

static void large(bool sound)
{
    enum { LARGE = 2 << 20 };
    int *big = device(LARGE * sizeof(int));
    fills(big, LARGE, my.a);
    order(my.a, my.b, sound);
    OK(cudaMemcpyAsync(my.y, big + LARGE - COUNT, BYTES, cudaMemcpyDefault, my.b));
    fills(my.y, COUNT, my.b);
    OK(cudaMemsetAsync(big, 0, LARGE * sizeof(int), my.b));
}

static void many_blocks_of_memory(bool sound)
{
    int *parts[16];
    for (int i = 0; i < 16; i++)
        parts[i] = device(700);
    for (int i = 0; i < 16; i++)
        fills(parts[i], 175, i % 2 ? my.a : my.b);
    if (sound) OK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++)
        adds(my.x, parts[i], 175, my.a);
}

static void scalar_result(bool sound)
{
    int *result = device(sizeof(int));
    launch(sum_stub, result, my.x, COUNT, my.a);
    order(my.a, my.b, sound);
    OK(cudaMemcpyAsync(my.pinned, result, sizeof(int), cudaMemcpyDefault, my.b));
}

static void ping_pong(bool sound)
{
    for (int i = 0; i < 6; i += 2) {
        adds(my.x, my.y, COUNT, my.a);
        order(my.a, my.b, sound || i != 2);
        adds(my.y, my.x, COUNT, my.b);
        order(my.b, my.a, true);
    }
}

static void peer(bool sound) /* a kernel of device 1 reads memory of device 0 */
{
    cudaStream_t far;
    OK(cudaSetDevice(1));
    OK(cudaDeviceEnablePeerAccess(0, 0));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    int *own = device(BYTES);
    OK(cudaSetDevice(0));
    fills(my.x, COUNT, my.a);
    order(my.a, far, sound);
    OK(cudaSetDevice(1));
    adds(own, my.x, COUNT, far);
}

/* ---- graphs ---- */

static cudaGraphExec_t captured(void (*stub)(void), void *to, void *from)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    launch(stub, to, from, COUNT, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void in_graph(bool sound)
{
    cudaGraphExec_t exec = captured(fill_stub, my.x, NULL);
    for (int i = 0; i < 3; i++) {
        OK(cudaGraphLaunch(exec, my.a));
        order(my.a, my.b, sound || i != 1);
        copy(my.y, my.x, my.b);
        order(my.b, my.a, true);
    }
    OK(cudaGraphExecDestroy(exec));
}

static void graphs_of_two(bool sound)
{
    cudaGraphExec_t one = captured(add_stub, my.x, my.z), other = captured(add_stub, my.y, my.x);
    for (int i = 0; i < 3; i++) {
        OK(cudaGraphLaunch(one, my.a));
        order(my.a, my.b, sound);
        OK(cudaGraphLaunch(other, my.b));
        order(my.b, my.a, true);
    }
    OK(cudaGraphExecDestroy(one));
    OK(cudaGraphExecDestroy(other));
}

static void graph_reads_managed(bool sound)
{
    int *x = managed(COUNT);
    cudaGraphExec_t exec = captured(add_stub, my.x, x);
    for (int i = 0; i < 3; i++) {
        x[i * 100] = i;
        OK(cudaGraphLaunch(exec, my.a));
        await(my.a, sound);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamSynchronize(my.a));
}

static void
recorded_amid_graph(bool sound) /* the event counts for what is before it in the graph */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    fills(my.x, COUNT, my.a);
    OK(cudaEventRecordWithFlags(my.event, my.a, cudaEventRecordExternal));
    fills(my.z, COUNT, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    adds(my.y, sound ? my.x : my.z, COUNT, my.b);
}

/* ---- life of memory ---- */

static void freed_in_pool_order(bool sound)
{
    void *memory;
    OK(cudaMallocAsync(&memory, BYTES, my.a));
    fills(memory, COUNT, my.a);
    order(my.a, my.b, true);
    adds(my.y, memory, COUNT, my.b);
    if (sound) order(my.b, my.a, true);
    OK(cudaFreeAsync(memory, my.a));
}

static void freed_by_another_device(bool sound)
{
    cudaStream_t far;
    OK(cudaSetDevice(1));
    OK(cudaDeviceEnablePeerAccess(0, 0));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    fills(my.x, COUNT, far);
    await(far, sound);
    OK(cudaFree(my.x)); /* waits for device 0 */
}

static void pool_memory_elsewhere(bool sound)
{
    void *memory;
    OK(cudaMallocAsync(&memory, BYTES, my.a));
    order(my.a, my.b, sound);
    fills(memory, COUNT, my.b);
}

/* ---- the host and kernels ---- */

static void managed_result(bool sound) /* the sample's first error */
{
    int *x = managed(1000);
    fills(x, 1000, my.a);
    await(my.a, sound);
    seen = x[0];
}

static void managed_result_late(bool sound) /* it has run for long */
{
    int *x = managed(1000);
    fills(x, 1000, my.a);
    usleep(20000);
    await(my.a, sound);
    seen = x[777];
}

static void managed_last(bool sound)
{
    int *x = managed(3000);
    fills(x, 3000, my.a);
    await(my.a, sound);
    seen = x[2999];
}

static void managed_in_place(bool sound) /* loads and stores, far behind what is seen one by one */
{
    int *x = managed(1 << 16);
    adds(x, x, 1 << 16, my.a);
    await(my.a, sound);
    seen = x[1 << 15];
}

static void managed_one(bool sound)
{
    int *result = managed(1);
    launch(sum_stub, result, my.x, COUNT, my.a);
    await(my.a, sound);
    if (*result) seen = 1;
}

static void managed_input(bool sound)
{
    int *x = managed(COUNT);
    adds(my.x, x, COUNT, my.a);
    await(my.a, sound);
    x[COUNT / 2] = 7;
}

static void managed_other_half(bool sound) /* the host may use what the kernel does not */
{
    int *x = managed(2 * COUNT);
    fills(x, COUNT, my.a);
    x[sound ? COUNT + 5 : 5] = 7;
    OK(cudaStreamSynchronize(my.a));
}

static void managed_same_page(bool sound)
{
    int *x = managed(64);
    fills(x, 32, my.a);
    x[sound ? 33 : 31] = 7;
    OK(cudaStreamSynchronize(my.a));
}

static void managed_loop(bool sound)
{
    int *x = managed(256);
    for (int turn = 0; turn < 20; turn++) {
        fills(x, 256, my.a);
        await(my.a, sound || turn != 7);
        for (int i = 0; i < 256; i++)
            seen += x[i];
    }
    OK(cudaStreamSynchronize(my.a));
}

static void managed_wrong_stream(bool sound)
{
    int *x = managed(256);
    fills(x, 256, my.a);
    OK(cudaStreamSynchronize(sound ? my.a : my.b));
    seen = x[9];
    OK(cudaStreamSynchronize(my.a));
}

static void managed_event_before(bool sound)
{
    int *x = managed(256);
    if (!sound) OK(cudaEventRecord(my.event, my.a));
    fills(x, 256, my.a);
    if (sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaEventSynchronize(my.event));
    seen = x[9];
    OK(cudaStreamSynchronize(my.a));
}

static void *reads_there(void *ints)
{
    seen = ((volatile int *)ints)[100];
    return NULL;
}

static void managed_in_thread(bool sound)
{
    pthread_t thread;
    int *x = managed(256);
    fills(x, 256, my.a);
    await(my.a, sound);
    OK(pthread_create(&thread, NULL, reads_there, x));
    OK(pthread_join(thread, NULL));
    OK(cudaStreamSynchronize(my.a));
}

static void polled_flag(bool sound) /* pinned memory is how a kernel talks to the host */
{
    int *flag = (int *)(void *)my.pinned;
    *flag = 0;
    fills(my.x, COUNT, my.a);
    fills(flag, 1, my.a);
    while (*(volatile int *)flag == 0)
        usleep(100);
    OK(cudaMemcpyAsync(my.y, my.x, BYTES, cudaMemcpyDefault, my.b));
    if (!sound) fills(my.y, COUNT, my.a);
}

/* ---- collectives and messages ---- */

static void on_each(void (*stub)(void), float **to, float **from, cudaStream_t *streams)
{
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        launch(stub, to[r], from ? from[r] : NULL, COUNT, streams[r]);
    }
}

static void order_rank(int rank, cudaStream_t first, cudaStream_t second)
{
    cudaEvent_t event;
    OK(cudaSetDevice(rank));
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
}

static void order_all(cudaStream_t *first, cudaStream_t *second)
{
    for (int r = 0; r < RANKS; r++)
        order_rank(r, first[r], second[r]);
}

static void gradient_kernel(bool sound) /* the gradients are not there yet */
{
    racy_start_ranks();
    on_each(fill_stub, ranks.in, NULL, ranks.stream);
    if (sound) order_all(ranks.stream, ranks.other);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.other);
    racy_finish_ranks();
}

static void optimizer_kernel(bool sound) /* the sum is not there yet */
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.other);
    if (sound) order_all(ranks.other, ranks.stream);
    on_each(add_stub, ranks.in, ranks.out, ranks.stream);
    racy_finish_ranks();
}

static void bucket_kernel(bool sound) /* the next backward pass reuses the bucket */
{
    racy_start_ranks();
    for (int step = 0; step < 3; step++) {
        on_each(fill_stub, ranks.in, NULL, ranks.stream);
        order_all(ranks.stream, ranks.other);
        all_reduce(ranks.in, ranks.out, COUNT, ranks.other);
        if (sound) order_all(ranks.other, ranks.stream);
    }
    racy_finish_ranks();
}

static void in_place_kernel(bool sound)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.in, COUNT, ranks.stream);
    on_each(add_stub, ranks.in, ranks.out, sound ? ranks.stream : ranks.other);
    racy_finish_ranks();
}

static void sent_kernel(bool sound)
{
    racy_start_ranks();
    OK(cudaSetDevice(0));
    launch(fill_stub, ranks.in[0], NULL, COUNT, sound ? ranks.stream[0] : ranks.other[0]);
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

static void received_kernel(bool sound)
{
    racy_start_ranks();
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    OK(cudaSetDevice(1));
    launch(add_stub, ranks.in[1], ranks.out[1], COUNT, sound ? ranks.stream[1] : ranks.other[1]);
    racy_finish_ranks();
}

static void managed_collective(bool sound)
{
    float *in[RANKS], *out[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        in[r] = (float *)(void *)managed(COUNT);
        out[r] = (float *)(void *)managed(COUNT);
    }
    all_reduce(in, out, COUNT, ranks.stream);
    on_each(add_stub, in, out, sound ? ranks.stream : ranks.other);
    racy_finish_ranks();
}

/* ---- memory that is no allocation any more ---- */

static void given_after_free(bool sound) /* the kernel's own pointer is stale */
{
    int *ints = device(BYTES);
    if (!sound) OK(cudaFree(ints));
    adds(my.y, ints, COUNT, my.a);
    if (sound) OK(cudaFree(ints));
}

static void given_again(bool sound) /* sound: the memory of one allocation is another's by now */
{
    int *ints = device(BYTES), *again;
    OK(cudaFree(ints));
    if (sound) {
        again = device(4 * BYTES);
        adds(my.y, ints == again ? ints : again, COUNT, my.a);
        OK(cudaStreamSynchronize(my.a));
        OK(cudaFree(again));
    } else {
        fills(ints, COUNT, my.a);
    }
}

static void given_unused(bool sound) /* an address that the kernel leaves alone is no access */
{
    int *ints = device(BYTES), *other = device(BYTES);
    OK(cudaFree(ints));
    launch(sound ? fill_stub : add_stub, my.y, ints, COUNT, my.a);
    OK(cudaMalloc((void **)&ints, BYTES));
    OK(cudaMemset(ints, 0, BYTES));
    OK(cudaDeviceSynchronize());
    ints[0] = other[0];
    OK(cudaFree(ints));
    OK(cudaFree(other));
}

/* ---- the table ---- */

const struct racy_scenario racy_kernels[] = {
    {"kernel-then-copy", then_copy, "race"},
    {"kernel-behind-copy", behind_copy, "race"},
    {"kernel-behind-fill", behind_fill, "race"},
    {"kernel-producer-consumer", producer_consumer, "race"},
    {"kernel-read-then-overwrite", read_then_overwrite, "race"},
    {"kernel-halves", halves, "race"},
    {"kernel-last-element", last_element, "race"},
    {"kernel-readers", readers, "race"},
    {"kernel-copy-back", copy_back, "race"},
    {"kernel-input-replaced", input_replaced, "race"},
    {"kernel-default-stream", default_stream, "race"},
    {"kernel-accumulator", accumulator, "race"},
    {"kernel-counter", counter, "race"},
    {"kernel-large", large, "race"},
    {"kernel-many-blocks-of-memory", many_blocks_of_memory, "race"},
    {"kernel-scalar-result", scalar_result, "race"},
    {"kernel-ping-pong", ping_pong, "race"},
    {"kernel-peer", peer, "race"},
    {"kernel-captured", in_graph, "race"},
    {"kernel-graphs-of-two", graphs_of_two, "race"},
    {"kernel-graph-reads-managed", graph_reads_managed, "race"},
    {"kernel-recorded-amid-graph", recorded_amid_graph, "race"},
    {"kernel-freed-in-pool-order", freed_in_pool_order, "race"},
    {"kernel-freed-by-another-device", freed_by_another_device, "race"},
    {"kernel-pool-memory-elsewhere", pool_memory_elsewhere, "race"},
    {"kernel-managed-result", managed_result, "race"},
    {"kernel-managed-result-late", managed_result_late, "race"},
    {"kernel-managed-last", managed_last, "race"},
    {"kernel-managed-in-place", managed_in_place, "race"},
    {"kernel-managed-one", managed_one, "race"},
    {"kernel-managed-input", managed_input, "race"},
    {"kernel-managed-other-half", managed_other_half, "race"},
    {"kernel-managed-same-page", managed_same_page, "race"},
    {"kernel-managed-loop", managed_loop, "race"},
    {"kernel-managed-wrong-stream", managed_wrong_stream, "race"},
    {"kernel-managed-event-before", managed_event_before, "race"},
    {"kernel-managed-in-thread", managed_in_thread, "race"},
    {"kernel-polled-flag", polled_flag, "race"},
    {"kernel-gradient", gradient_kernel, "race"},
    {"kernel-optimizer", optimizer_kernel, "race"},
    {"kernel-bucket", bucket_kernel, "race"},
    {"kernel-in-place", in_place_kernel, "race"},
    {"kernel-sent", sent_kernel, "race"},
    {"kernel-received", received_kernel, "race"},
    {"kernel-managed-collective", managed_collective, "race"},
    {"kernel-given-after-free", given_after_free, "use after free"},
    {"kernel-given-again", given_again, "use after free"},
    {"kernel-given-unused", given_unused, "use after free"},
};
const size_t racy_nkernels = sizeof(racy_kernels) / sizeof(racy_kernels[0]);
