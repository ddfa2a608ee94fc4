/* Scenarios of models in parts: groups of ranks inside of others, experts, flags between streams,
 * registered buffers, graphs that are updated, events from outside of captures. */
#include "racy.h"

#include <pthread.h>

static void reduce_in_place(float *const *at, ncclComm_t *comms, cudaStream_t *streams)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclAllReduce(at[r], at[r], COUNT, ncclFloat, ncclSum, comms[r], streams[r]));
    OK(ncclGroupEnd());
}

/* ---- groups of ranks ---- */

static void two_groups(bool sound) /* one reduces what the other one gathers, on another stream */
{
    ncclComm_t inner[RANKS];
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclCommSplit(ranks.comm[r], 0, r, &inner[r], NULL));
    OK(ncclGroupEnd());
    reduce_in_place(ranks.in, inner, ranks.other);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound) join(ranks.stream[r], ranks.other[r]);
    }
    reduce_in_place(ranks.in, ranks.comm, ranks.stream);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaDeviceSynchronize());
        OK(ncclCommDestroy(inner[r]));
    }
    racy_finish_ranks();
}

static void experts(bool sound) /* tokens go to experts and back; racy: sent anew too early */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclAlltoAll(ranks.in[r], ranks.out[r], COUNT / RANKS, ncclFloat, ranks.comm[r],
                        ranks.stream[r]));
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound) join(ranks.other[r], ranks.stream[r]);
        OK(cudaMemsetAsync(ranks.in[r], 2, BYTES, ranks.other[r]));
    }
    racy_finish_ranks();
}

static void reduced_to_root(bool sound) /* a rank changes its part while the root may read it */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, 0, ranks.comm[r],
                      ranks.stream[r]));
    OK(ncclGroupEnd());
    OK(cudaSetDevice(1));
    if (sound) join(ranks.other[1], ranks.stream[1]);
    OK(cudaMemsetAsync(ranks.in[1], 2, BYTES, ranks.other[1]));
    racy_finish_ranks();
}

static void registered_bucket(bool sound) /* given back while the reduction runs */
{
    float *at[RANKS];
    void *handles[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(ncclMemAlloc((void **)&at[r], BYTES));
        OK(cudaMemset(at[r], 0, BYTES));
        OK(cudaDeviceSynchronize());
        OK(ncclCommRegister(ranks.comm[r], at[r], BYTES, &handles[r]));
    }
    reduce_in_place(at, ranks.comm, ranks.stream);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound) OK(cudaStreamSynchronize(ranks.stream[r]));
        if (!sound) OK(cudaMemsetAsync(at[r], 1, BYTES, ranks.other[r]));
        OK(cudaDeviceSynchronize());
        OK(ncclCommDeregister(ranks.comm[r], handles[r]));
    }
    for (int r = 0; r < RANKS; r++)
        OK(ncclMemFree(at[r]));
    racy_finish_ranks();
}

struct rank_thread {
    int rank;
    bool sound;
};

static void *train(void *arg)
{
    const struct rank_thread *own = arg;
    int r = own->rank;
    OK(cudaSetDevice(r));
    for (int step = 0; step < 3; step++) {
        OK(cudaMemsetAsync(ranks.in[r], step, BYTES, ranks.other[r]));
        join(ranks.stream[r], ranks.other[r]);
        OK(ncclAllReduce(ranks.in[r], ranks.in[r], COUNT, ncclFloat, ncclSum, ranks.comm[r],
                         ranks.stream[r]));
        if (own->sound || r) join(ranks.other[r], ranks.stream[r]);
    }
    OK(cudaDeviceSynchronize());
    return NULL;
}

static void rank_threads(bool sound)
{
    pthread_t threads[RANKS];
    struct rank_thread own[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++) {
        own[r] = (struct rank_thread){r, sound};
        OK(pthread_create(&threads[r], NULL, train, &own[r]));
    }
    for (int r = 0; r < RANKS; r++)
        OK(pthread_join(threads[r], NULL));
    racy_finish_ranks();
}

/* ---- flags between streams ---- */

static void
flag_per_chunk(bool sound) /* the consumer waits for a chunk's flag; racy: one too few */
{
    enum { CHUNKS = 4, PART = BYTES / CHUNKS };
    char *flags = make_buffer();
    CUdeviceptr flag = (CUdeviceptr)(uintptr_t)flags;
    for (int i = 0; i < CHUNKS; i++) {
        OK(cudaMemsetAsync(my.x + (ptrdiff_t)i * PART, i, PART, my.a));
        OK(cuStreamWriteValue32(my.a, flag, (unsigned)i + 1, 0));
    }
    for (int i = 0; i < CHUNKS; i++) {
        OK(cuStreamWaitValue32(my.b, flag, (unsigned)i + (sound ? 1 : 0),
                               CU_STREAM_WAIT_VALUE_GEQ));
        OK(cudaMemcpyAsync(my.y + (ptrdiff_t)i * PART, my.x + (ptrdiff_t)i * PART, PART,
                           cudaMemcpyDefault, my.b));
    }
}

static void flags_in_batch(bool sound) /* written and awaited by batches */
{
    char *flags = make_buffer();
    CUstreamBatchMemOpParams set[2], wait[2];
    memset(set, 0, sizeof(set));
    memset(wait, 0, sizeof(wait));
    for (unsigned i = 0; i < 2; i++) {
        set[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        set[i].writeValue.address = (CUdeviceptr)(uintptr_t)flags + 4 * i;
        set[i].writeValue.value = 1;
        wait[i].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        wait[i].waitValue.address = set[i].writeValue.address;
        wait[i].waitValue.value = 1;
        wait[i].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    }
    if (sound) fill(my.x, my.a);
    OK(cuStreamBatchMemOp(my.a, 2, set, 0));
    if (!sound) fill(my.x, my.a);
    OK(cuStreamBatchMemOp(my.b, 2, wait, 0));
    copy(my.y, my.x, my.b);
}

/* ---- by the driver's functions ---- */

static void columns_by_driver(bool sound) /* racy: the columns meet in one byte */
{
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = (CUdeviceptr)(uintptr_t)my.y,
                          .srcPitch = 64,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = (CUdeviceptr)(uintptr_t)my.x,
                          .dstPitch = 64,
                          .WidthInBytes = 32,
                          .Height = 16};
    OK(cuMemcpy2DAsync(&rows, my.a));
    rows.dstXInBytes = sound ? 32 : 31;
    OK(cuMemcpy2DAsync(&rows, my.b));
}

static void words_of_rows(bool sound) /* racy: rows of both share a half */
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)my.x;
    OK(cuMemsetD2D32Async(at, 64, 1, 8, 16, my.a));
    OK(cuMemsetD2D16Async(at + (sound ? 32 : 30), 64, 1, 16, 16, my.b));
}

/* ---- graphs ---- */

static cudaGraph_t capture_copy(char *to, const char *from)
{
    cudaGraph_t graph;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    copy(to, from, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    return graph;
}

static void
updated_in_flight(bool sound) /* sound: the other buffer is read while this is written */
{
    char *other = make_buffer();
    cudaGraph_t first = capture_copy(my.y, my.x), second = capture_copy(my.y, other);
    cudaGraphExecUpdateResultInfo result;
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiateWithFlags(&exec, first, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaGraphExecUpdate(exec, second, &result));
    OK(cudaGraphLaunch(exec, my.a));
    cudaEvent_t event = make_event();
    OK(cudaEventRecord(event, my.a));
    if (sound) OK(cudaStreamWaitEvent(my.b, event, 0));
    fill(other, my.b);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(first));
    OK(cudaGraphDestroy(second));
}

static void external_event(bool sound) /* waited for inside of a capture */
{
    cudaEvent_t event = make_event();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    if (sound) OK(cudaStreamWaitEvent(my.a, event, cudaEventWaitExternal));
    copy(my.y, my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        join(my.b, my.a);
        fill(my.x, my.b);
        OK(cudaEventRecord(event, my.b));
        OK(cudaGraphLaunch(exec, my.a));
    }
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void recorded_outside(bool sound) /* an event that a graph records for who is outside */
{
    cudaEvent_t event = make_event();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    if (!sound) OK(cudaEventRecordWithFlags(event, my.a, cudaEventRecordExternal));
    copy(my.y, my.x, my.a);
    if (sound) OK(cudaEventRecordWithFlags(event, my.a, cudaEventRecordExternal));
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamWaitEvent(my.b, event, 0));
    copy(my.z, my.y, my.b);
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void spare_streams(bool sound) /* streams of a pool take work in turns */
{
    cudaStream_t spare[3] = {make_stream(), make_stream(), make_stream()};
    cudaEvent_t last = make_event();
    for (int i = 0; i < 9; i++) {
        cudaStream_t now = spare[i % 3];
        if (sound || i != 5) OK(cudaStreamWaitEvent(now, last, 0));
        copy(i % 2 ? my.x : my.y, i % 2 ? my.y : my.x, now);
        OK(cudaEventRecord(last, now));
    }
}

const struct racy_scenario racy_parallel[] = {
    {"parallel-two-groups", two_groups, "race"},
    {"parallel-experts", experts, "race"},
    {"parallel-reduced-to-root", reduced_to_root, "race"},
    {"parallel-registered-bucket", registered_bucket, "race"},
    {"parallel-rank-threads", rank_threads, "race"},
    {"parallel-flag-per-chunk", flag_per_chunk, "race"},
    {"parallel-flags-in-batch", flags_in_batch, "race"},
    {"parallel-columns-by-driver", columns_by_driver, "race"},
    {"parallel-words-of-rows", words_of_rows, "race"},
    {"parallel-updated-in-flight", updated_in_flight, "race"},
    {"parallel-external-event", external_event, "race"},
    {"parallel-recorded-outside", recorded_outside, "race"},
    {"parallel-spare-streams", spare_streams, "race"},
};
const size_t racy_nparallel = sizeof(racy_parallel) / sizeof(racy_parallel[0]);
