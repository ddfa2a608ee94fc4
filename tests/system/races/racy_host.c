/* Scenarios of one kind, "missing synchronise": the program loads and stores plainly, as programs
 * do, and tells the checker nothing. What it races with may be over when it does. */
#include "racy.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { LARGE = 6 << 20 };

static volatile long sum;

static int *pinned_ints(size_t count)
{
    int *ints = NULL;
    OK(cudaMallocHost((void **)&ints, count * sizeof(int)));
    memset(ints, 0, count * sizeof(int));
    return ints;
}

static void *device_bytes(size_t bytes)
{
    void *ptr = NULL;
    OK(cudaMalloc(&ptr, bytes));
    OK(cudaMemset(ptr, 0, bytes));
    OK(cudaDeviceSynchronize());
    return ptr;
}

static void add_up(const int *ints, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum += ints[i];
}

static void is_over(void) /* as a rule, and nothing says so */
{
    usleep(20000);
}

/* ---- results that are read too early ---- */

static void result(bool sound)
{
    int *got = pinned_ints(1000);
    OK(cudaMemcpyAsync(got, my.x, 4000, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    add_up(got, 1000);
}

static void result_that_is_there(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    is_over();
    await(my.a, sound);
    sum += got[COUNT - 1];
}

static void large_result(bool sound)
{
    int *got = pinned_ints(LARGE / 4);
    const void *from = device_bytes(LARGE);
    OK(cudaMemcpyAsync(got, from, LARGE, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    add_up(got, LARGE / 4);
}

static void one_flag(bool sound)
{
    int *flag = pinned_ints(1);
    OK(cudaMemcpyAsync(flag, my.x, sizeof(*flag), cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    if (*flag) sum++;
}

static void by_memcpy(bool sound) /* the load is the C library's */
{
    static char heap[BYTES];
    char *got = (char *)pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    memcpy(heap, got, sizeof(heap));
    sum += heap[7];
}

static void rows(bool sound)
{
    int *got = pinned_ints(32 * 16);
    OK(cudaMemcpy2DAsync(got, 64, my.x, 128, 64, 32, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    sum += got[100];
}

static void wrong_half(bool sound) /* the first half has been waited for */
{
    char *got = (char *)pinned_ints(LARGE / 4);
    char *from = device_bytes(LARGE);
    OK(cudaMemcpyAsync(got, from, LARGE / 2, cudaMemcpyDeviceToHost, my.a));
    OK(cudaMemcpyAsync(got + LARGE / 2, from, LARGE / 2, cudaMemcpyDeviceToHost, my.b));
    OK(cudaStreamSynchronize(my.a));
    sum += got[LARGE / 2 - (sound ? 1 : 0)];
    OK(cudaDeviceSynchronize());
}

static void in_parts(bool sound) /* none of which fills a page */
{
    int *got = pinned_ints(64);
    for (int i = 0; i < 64; i++)
        OK(cudaMemcpyAsync(got + i, my.x + 4 * i, 4, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    add_up(got, 64);
}

static void in_a_loop(bool sound) /* a loop that looks often is told of it, and goes on */
{
    int *got = pinned_ints(16);
    for (int turn = 0; turn < 1500; turn++) {
        OK(cudaMemcpyAsync(got, my.x, 64, cudaMemcpyDeviceToHost, my.a));
        await(my.a, sound);
        sum += got[0];
    }
    OK(cudaStreamSynchronize(my.a));
}

static void look(void *ints)
{
    sum += *(volatile int *)ints;
}

static void looked_at_in_order(bool sound) /* by host functions, each before a copy to there */
{
    int *got = pinned_ints(16);
    for (int turn = 0; turn < 1500; turn++) {
        OK(cudaMemcpyAsync(got, my.x, 64, cudaMemcpyDeviceToHost, my.a));
        OK(cudaLaunchHostFunc(my.a, look, got));
        OK(cudaMemcpyAsync(got, my.x, 64, cudaMemcpyDeviceToHost, my.a));
        await(my.a, sound || turn < 1499);
    }
    sum += got[0];
    OK(cudaStreamSynchronize(my.a));
}

/* ---- waits that are none, or for something else ---- */

static void event_recorded(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    OK(cudaEventRecord(my.event, my.a));
    if (sound) OK(cudaEventSynchronize(my.event));
    sum += got[1];
}

static void event_before(bool sound)
{
    int *got = pinned_ints(COUNT);
    if (!sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    if (sound) OK(cudaEventRecord(my.event, my.a));
    OK(cudaEventSynchronize(my.event));
    sum += got[1];
}

static void stream_waits(bool sound) /* another stream, but not the host */
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    order(my.a, my.b, true);
    await(my.b, sound);
    sum += got[1];
}

static void wrong_stream(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    OK(cudaStreamSynchronize(sound ? my.a : my.b));
    sum += got[1];
}

static void wrong_device(bool sound)
{
    cudaStream_t far;
    int *got = pinned_ints(COUNT);
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, far));
    OK(cudaSetDevice(sound ? 1 : 0));
    OK(cudaDeviceSynchronize());
    sum += got[1];
}

static void destroyed(bool sound) /* that waits for nothing */
{
    cudaStream_t stream;
    int *got = pinned_ints(COUNT);
    OK(cudaStreamCreate(&stream));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, stream));
    await(stream, sound);
    OK(cudaStreamDestroy(stream));
    sum += got[1];
}

static _Atomic bool gate_open;

static void gate(void *arg)
{
    (void)arg;
    while (!gate_open)
        sched_yield();
}

static void behind_a_slow_one(bool sound) /* the copy has not even begun */
{
    int *got = pinned_ints(COUNT);
    OK(cudaLaunchHostFunc(my.a, gate, NULL));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    is_over();
    gate_open = sound;
    await(my.a, sound);
    sum += got[1];
    gate_open = true;
}

static void asked(bool sound) /* and told: not yet */
{
    int *got = pinned_ints(COUNT);
    OK(cudaLaunchHostFunc(my.a, gate, NULL));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    gate_open = sound;
    while (cudaStreamQuery(my.a) == cudaErrorNotReady && sound) {
    }
    sum += got[1];
    gate_open = true;
}

static void asked_event(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaLaunchHostFunc(my.a, gate, NULL));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    OK(cudaEventRecord(my.event, my.a));
    gate_open = sound;
    while (cudaEventQuery(my.event) == cudaErrorNotReady && sound) {
    }
    sum += got[1];
    gate_open = true;
}

static void *add_in_thread(void *ints)
{
    add_up(ints, COUNT);
    return NULL;
}

static void in_thread(bool sound)
{
    pthread_t thread;
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    OK(pthread_create(&thread, NULL, add_in_thread, got));
    OK(pthread_join(thread, NULL));
}

static void default_stream(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, NULL));
    if (sound) OK(cudaMemcpy(my.pageable, my.y, BYTES, cudaMemcpyDeviceToHost));
    sum += got[1];
}

static void own_default_stream(bool sound)
{
    int *got = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    OK(cudaStreamSynchronize(sound ? cudaStreamPerThread : my.b));
    sum += got[1];
}

static _Atomic bool said;

static void say(void *arg)
{
    (void)arg;
    said = true;
}

static void said_by_host_function(bool sound)
{
    int *got = pinned_ints(COUNT);
    if (!sound) OK(cudaLaunchHostFunc(my.a, say, NULL));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    if (sound) OK(cudaLaunchHostFunc(my.a, say, NULL));
    while (!said)
        sched_yield();
    sum += got[1];
    OK(cudaStreamSynchronize(my.a));
}

/* ---- sources that are overwritten too early ---- */

static void overwritten(bool sound)
{
    int *staged = pinned_ints(COUNT);
    OK(cudaMemcpyAsync(my.x, staged, BYTES, cudaMemcpyHostToDevice, my.a));
    sum += staged[3]; /* which is allowed */
    await(my.a, sound);
    staged[3] = 4;
}

static void overwritten_by_memset(bool sound)
{
    int *staged = pinned_ints(LARGE / 4);
    void *to = device_bytes(LARGE);
    OK(cudaMemcpyAsync(to, staged, LARGE, cudaMemcpyHostToDevice, my.a));
    is_over();
    await(my.a, sound);
    memset(staged, 1, LARGE);
}

static void two_buffers(bool sound) /* the wait is for the other one */
{
    int *staged[2] = {pinned_ints(COUNT), pinned_ints(COUNT)};
    cudaEvent_t done[2];
    for (int k = 0; k < 2; k++)
        OK(cudaEventCreate(&done[k]));
    for (int turn = 0; turn < 4; turn++) {
        cudaStream_t stream = turn % 2 ? my.b : my.a;
        int k = turn % 2;
        if (turn >= 2) OK(cudaEventSynchronize(done[sound ? k : !k]));
        staged[k][0] = turn;
        OK(cudaMemcpyAsync(k ? my.x : my.y, staged[k], BYTES, cudaMemcpyHostToDevice, stream));
        OK(cudaEventRecord(done[k], stream));
    }
}

static void fill_in_order(void *arg)
{
    int *staged = arg;
    for (int i = 0; i < COUNT; i++)
        staged[i] = 9;
}

static void filled_in_order(bool sound) /* by a host function, with the copy behind it */
{
    sigset_t all;
    int got = 0, *staged = pinned_ints(COUNT);
    sigfillset(&all);
    OK(pthread_sigmask(SIG_BLOCK, &all, NULL)); /* as threads of servers do */
    for (int turn = 0; turn < 20; turn++) {
        memset(staged, 0, BYTES);
        OK(cudaLaunchHostFunc(my.a, fill_in_order, staged));
        OK(cudaMemcpyAsync(my.x, staged, BYTES, cudaMemcpyHostToDevice, my.a));
        if (!sound) staged[1] = 8;
        OK(cudaStreamSynchronize(my.a));
        OK(cudaMemcpy(&got, my.x, sizeof(got), cudaMemcpyDeviceToHost));
        if (got != 9) exit(3);
    }
}

static void in_a_graph(bool sound)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *got = pinned_ints(COUNT), *staged = pinned_ints(COUNT);
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    OK(cudaMemcpyAsync(my.x, staged, BYTES, cudaMemcpyHostToDevice, my.a));
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    staged[0] = 1;
    OK(cudaGraphLaunch(exec, my.a));
    await(my.a, sound);
    sum += got[0];
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void graph_input(bool sound) /* the next turn's, while this one runs */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *staged = pinned_ints(COUNT);
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeRelaxed));
    OK(cudaMemcpyAsync(my.x, staged, BYTES, cudaMemcpyHostToDevice, my.a));
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 0; turn < 2; turn++) {
        if (turn) await(my.a, sound);
        staged[0] = turn;
        OK(cudaGraphLaunch(exec, my.a));
    }
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

/* ---- managed and mapped memory ---- */

static void managed(bool sound)
{
    int *both = NULL;
    OK(cudaMallocManaged((void **)&both, BYTES, cudaMemAttachGlobal));
    OK(cudaMemcpyAsync(both, my.x, BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    sum += both[2];
}

static void managed_fill(bool sound)
{
    int *both = NULL;
    OK(cudaMallocManaged((void **)&both, BYTES, cudaMemAttachGlobal));
    OK(cudaMemsetAsync(both, 1, BYTES, my.a));
    await(my.a, sound);
    both[2] = 5;
}

static void fill_with_sevens(const struct tuttiBlock *block, void **args, void *context)
{
    int *to = *(int **)args[0];
    (void)block, (void)context;
    for (int i = 0; i < COUNT; i++)
        to[i] = 7;
}

static void reports_writes(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    tuttiCheckWrite(*(void **)args[0], BYTES);
}

static void sevens(void) {}

static void launch_sevens(int *to)
{
    static const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)sevens,
                                    .run = fill_with_sevens,
                                    .touches = reports_writes,
                                    .nargs = 1,
                                    .arg_bytes = sizes};
    void *args[] = {&to};
    OK(tuttiRegisterKernel(&one));
    OK(cudaLaunchKernel((const void *)sevens, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, my.a));
}

static void mapped(bool sound)
{
    int *host = NULL, *device = NULL;
    OK(cudaHostAlloc((void **)&host, BYTES, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer((void **)&device, host, 0));
    launch_sevens(device);
    is_over();
    await(my.a, sound);
    add_up(host, COUNT);
}

static void managed_kernel(bool sound)
{
    int *both = NULL;
    OK(cudaMallocManaged((void **)&both, BYTES, cudaMemAttachGlobal));
    both[0] = 1;
    launch_sevens(both);
    is_over();
    await(my.a, sound);
    both[0] = 2;
}

/* ---- collectives ---- */

static void reduce_pinned(float *in[RANKS], float *out[RANKS])
{
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        in[r] = (float *)(void *)pinned_ints(COUNT);
        out[r] = (float *)(void *)pinned_ints(COUNT);
        in[r][0] = (float)r;
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(in[r], out[r], COUNT, ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
}

static void reduced_result(bool sound)
{
    float *in[RANKS], *out[RANKS];
    reduce_pinned(in, out);
    await(ranks.stream[1], sound);
    sum += (long)out[1][0];
    racy_finish_ranks();
    if (out[0][0] != 1 || out[1][0] != 1) exit(3); /* closed pages or not */
}

static void reduced_input(bool sound)
{
    float *in[RANKS], *out[RANKS];
    reduce_pinned(in, out);
    is_over();
    await(ranks.stream[0], sound);
    in[0][0] = 3;
    racy_finish_ranks();
}

static void message_source(bool sound)
{
    int *from = pinned_ints(COUNT);
    racy_start_ranks();
    OK(ncclGroupStart());
    OK(ncclSend(from, COUNT, ncclInt, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclInt, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    await(ranks.stream[0], sound);
    from[0] = 1;
    racy_finish_ranks();
}

static void group_of_copies(bool sound) /* each rank's result comes to the host */
{
    int *got[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        got[r] = pinned_ints(COUNT);
        OK(cudaMemcpyAsync(got[r], ranks.in[r], BYTES, cudaMemcpyDeviceToHost, ranks.stream[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        if (sound || r == 0) OK(cudaStreamSynchronize(ranks.stream[r]));
    }
    for (int r = 0; r < RANKS; r++)
        add_up(got[r], COUNT);
    racy_finish_ranks();
}

const struct racy_scenario racy_host[] = {
    {"plain-result", result, "race"},
    {"plain-result-that-is-there", result_that_is_there, "race"},
    {"plain-large-result", large_result, "race"},
    {"plain-one-flag", one_flag, "race"},
    {"plain-by-memcpy", by_memcpy, "race"},
    {"plain-rows", rows, "race"},
    {"plain-wrong-half", wrong_half, "race"},
    {"plain-in-parts", in_parts, "race"},
    {"plain-in-a-loop", in_a_loop, "race"},
    {"plain-looked-at-in-order", looked_at_in_order, "race"},
    {"plain-event-recorded", event_recorded, "race"},
    {"plain-event-before", event_before, "race"},
    {"plain-stream-waits", stream_waits, "race"},
    {"plain-wrong-stream", wrong_stream, "race"},
    {"plain-wrong-device", wrong_device, "race"},
    {"plain-destroyed", destroyed, "race"},
    {"plain-behind-a-slow-one", behind_a_slow_one, "race"},
    {"plain-asked", asked, "race"},
    {"plain-asked-event", asked_event, "race"},
    {"plain-in-thread", in_thread, "race"},
    {"plain-default-stream", default_stream, "race"},
    {"plain-own-default-stream", own_default_stream, "race"},
    {"plain-said-by-host-function", said_by_host_function, "race"},
    {"plain-overwritten", overwritten, "race"},
    {"plain-overwritten-by-memset", overwritten_by_memset, "race"},
    {"plain-two-buffers", two_buffers, "race"},
    {"plain-filled-in-order", filled_in_order, "race"},
    {"plain-in-a-graph", in_a_graph, "race"},
    {"plain-graph-input", graph_input, "race"},
    {"plain-managed", managed, "race"},
    {"plain-managed-fill", managed_fill, "race"},
    {"plain-mapped", mapped, "race"},
    {"plain-managed-kernel", managed_kernel, "race"},
    {"plain-reduced-result", reduced_result, "race"},
    {"plain-reduced-input", reduced_input, "race"},
    {"plain-message-source", message_source, "race"},
    {"plain-group-of-copies", group_of_copies, "race"},
};
const size_t racy_nhost = sizeof(racy_host) / sizeof(racy_host[0]);
