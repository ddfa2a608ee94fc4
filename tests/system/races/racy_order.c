/* Scenarios whose order is finer than that of whole launches and collectives: events and
 * collectives amid a graph, what a peer's end says, ends of communicators; and memory that has two
 * addresses, or no bytes yet. */
#include "racy.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- amid a graph ---- */

static cudaGraphExec_t capture(void (*what)(bool sound), bool sound)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    what(sound);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void fill_and_record(bool sound)
{
    if (sound) fill(my.x, my.a);
    OK(cudaEventRecordWithFlags(my.event, my.a, cudaEventRecordExternal));
    if (!sound) fill(my.x, my.a);
}

static void recorded_amid(bool sound) /* racy: what the event tells is not yet the fill */
{
    cudaGraphExec_t exec = capture(fill_and_record, sound);
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamWaitEvent(my.b, my.event, 0));
    copy(my.y, my.x, my.b);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
}

static void wait_and_copy(bool sound)
{
    if (!sound) copy(my.y, my.x, my.a);
    OK(cudaStreamWaitEvent(my.a, my.event, cudaEventWaitExternal));
    if (sound) copy(my.y, my.x, my.a);
}

static void awaited_amid(bool sound) /* racy: the copy does not come behind the wait */
{
    cudaGraphExec_t exec = capture(wait_and_copy, sound);
    fill(my.x, my.b);
    OK(cudaEventRecord(my.event, my.b));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
}

static void barrier_amid(bool sound) /* racy: rank 0 fills behind the collective */
{
    cudaGraph_t graph[RANKS];
    cudaGraphExec_t exec[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamBeginCapture(ranks.stream[r], cudaStreamCaptureModeRelaxed));
    }
    if (sound) fill(my.x, ranks.stream[0]);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    if (!sound) fill(my.x, ranks.stream[0]);
    copy(my.y, my.x, ranks.stream[1]);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamEndCapture(ranks.stream[r], &graph[r]));
        OK(cudaGraphInstantiateWithFlags(&exec[r], graph[r], 0));
        OK(cudaGraphDestroy(graph[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        OK(cudaGraphLaunch(exec[r], ranks.stream[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        OK(cudaStreamSynchronize(ranks.stream[r]));
        OK(cudaGraphExecDestroy(exec[r]));
    }
    racy_finish_ranks();
}

static char *from_graph;

static void allocate_and_copy(bool sound)
{
    OK(cudaMallocAsync((void **)&from_graph, BYTES, my.a));
    if (sound) fill(from_graph, my.a);
    copy(my.y, from_graph, my.a);
    OK(cudaFreeAsync(from_graph, my.a));
}

static void graph_memory_unwritten(bool sound)
{
    cudaGraphExec_t exec = capture(allocate_and_copy, sound);
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
}

/* ---- what an end says ---- */

static void end_of_a_peer(bool sound) /* racy: rank 1 has its result, rank 0 perhaps not */
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    OK(cudaStreamSynchronize(ranks.stream[sound ? 0 : 1]));
    OK(cudaMemcpyAsync(my.pinned, ranks.out[0], BYTES, cudaMemcpyDefault, ranks.other[0]));
    racy_finish_ranks();
}

static void end_of_communicators(bool sound, bool finalize)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    for (int r = 0; sound && r < RANKS; r++) {
        OK(finalize ? ncclCommFinalize(ranks.comm[r]) : ncclCommDestroy(ranks.comm[r]));
    }
    OK(cudaMemcpyAsync(my.pinned, ranks.out[1], BYTES, cudaMemcpyDefault, ranks.other[1]));
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaDeviceSynchronize());
        if (!sound || finalize) OK(ncclCommDestroy(ranks.comm[r]));
    }
}

static void destroyed_communicators(bool sound)
{
    end_of_communicators(sound, false);
}

static void finalized_communicators(bool sound)
{
    end_of_communicators(sound, true);
}

static void elapsed(bool sound) /* who is told the time between two events knows that they were */
{
    cudaEvent_t begin, end;
    float msec;
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(begin, my.a));
    fill(my.x, my.a);
    OK(cudaEventRecord(end, my.a));
    cudaError_t rc = sound ? cudaErrorNotReady : cudaSuccess;
    while (rc == cudaErrorNotReady) {
        rc = cudaEventElapsedTime(&msec, begin, end);
    }
    OK(rc);
    copy(my.y, my.x, my.b);
}

/* ---- memory ---- */

static CUdeviceptr map(CUmemGenericAllocationHandle block, size_t bytes)
{
    CUdeviceptr ptr;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemAddressReserve(&ptr, bytes, 0, 0, 0));
    OK(cuMemMap(ptr, bytes, 0, block, 0));
    OK(cuMemSetAccess(ptr, bytes, &access, 1));
    return ptr;
}

static void two_addresses(bool sound) /* of one memory */
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle block;
    size_t bytes;
    OK(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemCreate(&block, bytes, &prop, 0));
    CUdeviceptr at[] = {map(block, bytes), map(block, bytes)};
    fill((char *)(uintptr_t)at[0], my.a); /* NOLINT(performance-no-int-to-ptr): so CUDA has them */
    order(my.a, my.b, sound);
    copy(my.y, (char *)(uintptr_t)at[1], my.b); /* NOLINT(performance-no-int-to-ptr): as above */
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        OK(cuMemUnmap(at[i], bytes));
        OK(cuMemAddressFree(at[i], bytes));
    }
    OK(cuMemRelease(block));
}

/* Another process hands out memory until its input ends; it has to be another program's run, as
 * CUDA has started here. Lines, since read(2) is left to programs that hand it closed pages. */
int racy_lend(void)
{
    cudaIpcMemHandle_t handle;
    void *ptr;
    char line[4];
    OK(cudaMalloc(&ptr, BYTES));
    OK(cudaMemset(ptr, 0, BYTES));
    OK(cudaDeviceSynchronize());
    OK(cudaIpcGetMemHandle(&handle, ptr));
    for (size_t i = 0; i < sizeof(handle); i++) {
        printf("%02x\n", (unsigned char)handle.reserved[i]);
    }
    OK(fflush(stdout));
    OK(fgets(line, sizeof(line), stdin) != NULL);
    return 0;
}

static pid_t start_lender(cudaIpcMemHandle_t *handle, int *keep)
{
    int to[2], from[2];
    char line[4];
    OK(pipe(to) || pipe(from));
    pid_t lender = fork();
    if (lender == 0) {
        OK(dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0);
        close(to[1]);
        unsetenv("TUTTI_CHECK");
        execl("/proc/self/exe", "racy", "lend", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    FILE *lines = fdopen(from[0], "r");
    for (size_t i = 0; i < sizeof(*handle); i++) {
        OK(!lines || !fgets(line, sizeof(line), lines));
        handle->reserved[i] = (char)strtoul(line, NULL, 16);
    }
    OK(fclose(lines));
    *keep = to[1];
    return lender;
}

static void closed_too_early(bool sound) /* while another device's work still reads it */
{
    cudaIpcMemHandle_t handle;
    char *opened;
    int keep;
    pid_t lender = start_lender(&handle, &keep);
    OK(cudaIpcOpenMemHandle((void **)&opened, handle, cudaIpcMemLazyEnablePeerAccess));
    copy(my.y, opened, my.a);
    OK(cudaSetDevice(1));
    await(my.a, sound);
    OK(cudaIpcCloseMemHandle(opened));
    OK(cudaStreamSynchronize(my.a));
    close(keep);
    OK(waitpid(lender, NULL, 0) != lender);
}

static void scalar(bool sound) /* of an operator, in a device's memory */
{
    ncclRedOp_t ops[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(ncclRedOpCreatePreMulSum(&ops[r], r ? my.y : my.x, ncclFloat, ncclScalarDevice,
                                    ranks.comm[r]));
    }
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ops[r], ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    if (sound) OK(cudaStreamSynchronize(ranks.stream[0]));
    fill(my.x, my.a);
    racy_finish_ranks();
}

/* ---- parts of buffers, and of groups ---- */

static void root_in_place(bool sound) /* sound: what the root gives is read alone */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclBroadcast(ranks.in[r], ranks.in[r], COUNT, ncclFloat, 0, ranks.comm[r],
                         ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    int k = sound ? 0 : 1;
    OK(cudaMemcpyAsync(my.y, ranks.in[k], BYTES, cudaMemcpyDefault, ranks.other[k]));
    racy_finish_ranks();
}

static void shard_in_place(bool sound) /* sound: the rank's own shard */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllGather(ranks.in[r] + r * COUNT / 2, ranks.in[r], COUNT / 2, ncclFloat,
                         ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    OK(cudaMemcpyAsync(my.y, ranks.in[1] + (sound ? COUNT / 2 : COUNT / 2 - 1), BYTES / 2,
                       cudaMemcpyDefault, ranks.other[1]));
    racy_finish_ranks();
}

static void swapped_in_place(bool sound) /* racy: what is sent is overwritten by what comes */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclSend(ranks.in[r], COUNT, ncclFloat, 1 - r, ranks.comm[r], ranks.stream[r]));
        OK(ncclRecv(sound ? ranks.out[r] : ranks.in[r], COUNT, ncclFloat, 1 - r, ranks.comm[r],
                    ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    racy_finish_ranks();
}

/* ---- who waits for what the checker does not see ---- */

static unsigned *word;

static void release(void *arg)
{
    (void)arg;
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static void word_of_host_function(bool sound) /* racy: the copy comes before the wait */
{
    OK(cudaMallocHost((void **)&word, sizeof(*word)));
    *word = 0;
    fill(my.x, my.a);
    if (!sound) copy(my.y, my.x, my.b); /* the function, once it runs, tells the host all before */
    OK(cudaLaunchHostFunc(my.a, release, NULL));
    OK(cuStreamWaitValue32(my.b, (CUdeviceptr)(uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    if (sound) copy(my.y, my.x, my.b);
}

static cudaEvent_t begun, filled;

static void wait_amid(bool sound)
{
    OK(cudaMallocAsync((void **)&from_graph, BYTES, my.a));
    OK(cudaEventRecordWithFlags(begun, my.a, cudaEventRecordExternal));
    if (sound) OK(cudaStreamWaitEvent(my.a, filled, cudaEventWaitExternal));
    copy(my.y, from_graph, my.a);
    OK(cudaFreeAsync(from_graph, my.a));
}

static void graph_memory_filled_outside(bool sound) /* if it is filled amid the launch */
{
    OK(cudaEventCreate(&begun));
    OK(cudaEventCreate(&filled));
    cudaGraphExec_t exec = capture(wait_amid, sound);
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
}

static void batch_source(bool sound) /* sound: it has been read when the call is over */
{
    struct cudaMemcpyAttributes attrs = {.srcAccessOrder =
                                             sound ? cudaMemcpySrcAccessOrderDuringApiCall
                                                   : cudaMemcpySrcAccessOrderStream};
    void *const dsts[] = {my.y};
    const void *const srcs[] = {my.pinned};
    size_t lens[] = {BYTES}, starts[] = {0};
    OK(cudaMemcpyBatchAsync(dsts, srcs, lens, 1, &attrs, starts, 1, my.a));
    tuttiCheckWrite(my.pinned, BYTES);
}

static void run_kernel(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)args, (void)context;
}

static size_t touched_bytes;

static void report_touches(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    tuttiCheckWrite(*(void **)args[0], touched_bytes);
}

static void stub(void) {}

static void kernel_past_the_end(bool sound)
{
    const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)stub,
                                    .run = run_kernel,
                                    .nargs = 1,
                                    .arg_bytes = sizes,
                                    .touches = report_touches};
    void *args[] = {&my.x};
    touched_bytes = sound ? BYTES : BYTES + 1;
    OK(tuttiRegisterKernel(&one));
    OK(cudaLaunchKernel((const void *)stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, my.a));
}

const struct racy_scenario racy_order[] = {
    {"recorded-amid", recorded_amid, "race"},
    {"awaited-amid", awaited_amid, "race"},
    {"barrier-amid", barrier_amid, "race"},
    {"graph-memory-unwritten", graph_memory_unwritten, "unwritten"},
    {"end-of-a-peer", end_of_a_peer, "race"},
    {"destroyed-communicators", destroyed_communicators, "race"},
    {"finalized-communicators", finalized_communicators, "race"},
    {"elapsed", elapsed, "race"},
    {"two-addresses", two_addresses, "race"},
    {"closed-too-early", closed_too_early, "race"},
    {"scalar", scalar, "race"},
    {"kernel-past-the-end", kernel_past_the_end, "outside"},
    {"root-in-place", root_in_place, "race"},
    {"shard-in-place", shard_in_place, "race"},
    {"swapped-in-place", swapped_in_place, "race"},
    {"word-of-host-function", word_of_host_function, "race"},
    {"graph-memory-filled-outside", graph_memory_filled_outside, "unwritten"},
    {"batch-source", batch_source, "race"},
};
const size_t racy_norder = sizeof(racy_order) / sizeof(racy_order[0]);
