/* Random fills, copies, host functions, graphs and collectives over every kind of memory, on
 * streams of two devices. Each operation waits for those that touched its buffers before, so the
 * order of the calls is an oracle: a model that does them one after the other has the same bytes.
 * What a failure needs to be repeated is printed: oracle SECONDS [SEED]; 0 seconds: 400 operations.
 */
#include "cuda.h"
#include "cuda_runtime.h"

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 2, STREAMS = 6, BUFFERS = 16, WORDS = 40000, BYTES = WORDS * 4, SHORT_RUN = 400 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        int rc_ = (int)(call);                                                                     \
        if (rc_) fail(__LINE__, #call, rc_);                                                       \
    } while (0)

enum kind {
    KIND_DEVICE,
    KIND_PAGEABLE,
    KIND_REGISTERED,
    KIND_PINNED,
    KIND_MANAGED,
    KIND_MAPPED,
    KIND_POOL,
    KIND_COUNT_
};

static const char *const kind_names[] = {"device",  "pageable", "registered", "pinned",
                                         "managed", "mapped",   "pool"};

struct buffer {
    enum kind kind;
    int device;
    uint32_t *at, *model;
    cudaEvent_t last; /* of the operations that touched it */
};

static struct {
    uint64_t seed, state;
    long number; /* of the operation */
    const char *doing;
    cudaStream_t streams[STREAMS]; /* stream i is of device i % DEVICES */
    cudaEvent_t done[DEVICES];
    struct buffer buffers[BUFFERS];
    ncclComm_t comms[DEVICES];
} run;

static void fail(int line, const char *what, int rc)
{
    printf("line %d: %s: %d at operation %ld (%s)\nrepeat: oracle 0 %llu\n", line, what, rc,
           run.number, run.doing, (unsigned long long)run.seed);
    exit(1);
}

static size_t pick(size_t count)
{
    run.state = run.state * 6364136223846793005ull + 1442695040888963407ull;
    return (size_t)(run.state >> 33) % count;
}

/* ---- memory ---- */

static void *map_memory(int device)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr ptr;
    size_t grain;
    OK(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    size_t bytes = (BYTES + grain - 1) / grain * grain;
    OK(cuMemCreate(&handle, bytes, &prop, 0));
    OK(cuMemAddressReserve(&ptr, bytes, 0, 0, 0));
    OK(cuMemMap(ptr, bytes, 0, handle, 0));
    OK(cuMemSetAccess(ptr, bytes, &access, 1));
    OK(cuMemRelease(handle));
    return (void *)(uintptr_t)ptr;
}

static void make_buffer(struct buffer *buffer, size_t number)
{
    buffer->kind = (enum kind)(number % KIND_COUNT_);
    buffer->device = (int)(number / KIND_COUNT_) % DEVICES;
    buffer->model = calloc(1, BYTES);
    OK(cudaSetDevice(buffer->device));
    switch (buffer->kind) {
    case KIND_DEVICE: OK(cudaMalloc((void **)&buffer->at, BYTES)); break;
    case KIND_PAGEABLE:
    case KIND_REGISTERED:
        buffer->at = calloc(1, BYTES);
        if (buffer->kind == KIND_REGISTERED) OK(cudaHostRegister(buffer->at, BYTES, 0));
        break;
    case KIND_PINNED: OK(cudaHostAlloc((void **)&buffer->at, BYTES, cudaHostAllocMapped)); break;
    case KIND_MANAGED: OK(cudaMallocManaged((void **)&buffer->at, BYTES, 1)); break;
    case KIND_MAPPED: buffer->at = map_memory(buffer->device); break;
    default: OK(cudaMallocAsync((void **)&buffer->at, BYTES, run.streams[buffer->device])); break;
    }
    OK(cudaEventCreateWithFlags(&buffer->last, cudaEventDisableTiming));
    if (buffer->kind == KIND_PAGEABLE) return;
    OK(cudaStreamSynchronize(run.streams[buffer->device]));
    OK(cudaMemset(buffer->at, 0, BYTES));
    OK(cudaDeviceSynchronize());
}

/* ---- order ---- */

static void begin(cudaStream_t stream, struct buffer *const *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        OK(cudaStreamWaitEvent(stream, buffers[i]->last, 0));
    }
}

/* An event is recorded on streams of its own device: another one carries it there. */
static void end(size_t stream, struct buffer *const *buffers, size_t count)
{
    int device = (int)(stream % DEVICES);
    OK(cudaEventRecord(run.done[device], run.streams[stream]));
    for (size_t i = 0; i < count; i++) {
        cudaStream_t own =
            buffers[i]->device == device ? run.streams[stream] : run.streams[buffers[i]->device];
        OK(cudaStreamWaitEvent(own, run.done[device], 0));
        OK(cudaEventRecord(buffers[i]->last, own));
    }
}

/* ---- operations ---- */

struct span {
    size_t first, count; /* words */
};

static struct span pick_span(void)
{
    size_t most = pick(4) ? 300 : WORDS;
    struct span span = {pick(WORDS), 1 + pick(most)};
    if (span.first + span.count > WORDS) span.count = WORDS - span.first;
    return span;
}

static struct buffer *pick_buffer(bool pageable)
{
    struct buffer *buffer = &run.buffers[pick(BUFFERS)];
    while (!pageable && buffer->kind == KIND_PAGEABLE) {
        buffer = &run.buffers[pick(BUFFERS)];
    }
    return buffer;
}

struct change { /* a host function's; lives until the streams were waited for */
    uint32_t *at;
    size_t count;
    uint32_t value;
};

static void add_value(void *arg)
{
    struct change *change = arg;
    for (size_t i = 0; i < change->count; i++) {
        change->at[i] += change->value;
    }
    free(change);
}

static void do_fill(cudaStream_t stream, struct buffer *to)
{
    struct span span = pick_span();
    int value = (int)pick(256);
    OK(cudaMemsetAsync(to->at + span.first, value, span.count * 4, stream));
    memset(to->model + span.first, value, span.count * 4);
}

static void do_copy(cudaStream_t stream, struct buffer *to, const struct buffer *from)
{
    struct span span = pick_span();
    size_t at = pick(WORDS - span.count + 1);
    if (to == from) at = span.first; /* ranges of one copy must not overlap otherwise */
    OK(cudaMemcpyAsync(to->at + at, from->at + span.first, span.count * 4, cudaMemcpyDefault,
                       stream));
    memmove(to->model + at, from->model + span.first, span.count * 4);
}

static void do_call(cudaStream_t stream, struct buffer *to)
{
    struct span span = pick_span();
    struct change *change = malloc(sizeof(*change));
    uint32_t value = (uint32_t)pick(1000);
    *change = (struct change){to->at + span.first, span.count, value};
    OK(cudaLaunchHostFunc(stream, add_value, change));
    for (size_t i = 0; i < span.count; i++) {
        to->model[span.first + i] += value;
    }
}

/* A captured fill and copy, launched twice, the copy changed in between half of the time. */
static void do_graph(cudaStream_t stream, struct buffer *to, const struct buffer *from)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node, fill;
    size_t count = 1 + pick(WORDS / 2), at = pick(WORDS - count), shift = pick(WORDS - count);
    struct cudaMemsetParams set = {
        .dst = to->at, .value = (unsigned)pick(256), .elementSize = 1, .width = 64, .height = 1};
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &set));
    OK(cudaGraphAddMemcpyNode1D(&node, graph, &fill, 1, to->at + at, from->at + at, count * 4,
                                cudaMemcpyDefault));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int turn = 0; turn < 2; turn++) {
        OK(cudaGraphLaunch(exec, stream));
        memset(to->model, (int)set.value, 64);
        memmove(to->model + at, from->model + at, count * 4);
        if (turn || pick(2)) continue;
        at = shift;
        OK(cudaGraphExecMemcpyNodeSetParams1D(exec, node, to->at + at, from->at + at, count * 4,
                                              cudaMemcpyDefault));
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void do_reduce(struct buffer *const *two)
{
    struct span span = pick_span();
    size_t stream = DEVICES * pick(STREAMS / DEVICES);
    for (size_t d = 0; d < DEVICES; d++) {
        begin(run.streams[stream + d], &two[d], 1);
    }
    OK(ncclGroupStart());
    for (size_t d = 0; d < DEVICES; d++) {
        OK(ncclAllReduce(two[d]->at + span.first, two[d]->at + span.first, span.count, ncclUint32,
                         ncclSum, run.comms[d], run.streams[stream + d]));
    }
    OK(ncclGroupEnd());
    for (size_t i = span.first; i < span.first + span.count; i++) {
        two[0]->model[i] = two[1]->model[i] = two[0]->model[i] + two[1]->model[i];
    }
    for (size_t d = 0; d < DEVICES; d++) {
        end(stream + d, &two[d], 1);
    }
}

static void operate(void)
{
    static const char *const names[] = {"fill", "copy", "copy", "call", "graph", "reduce", "renew"};
    size_t what = pick(sizeof(names) / sizeof(names[0]));
    size_t stream = pick(STREAMS);
    struct buffer *two[] = {pick_buffer(what == 1 || what == 2), pick_buffer(what == 1)};
    run.doing = names[what];
    if (what == 5) {
        if (two[0] != two[1]) do_reduce(two);
        return;
    }
    begin(run.streams[stream], two, 2);
    switch (what) {
    case 0: do_fill(run.streams[stream], two[0]); break;
    case 1:
    case 2: do_copy(run.streams[stream], two[0], two[1]); break;
    case 3: do_call(run.streams[stream], two[0]); break;
    case 4:
        if (two[0] != two[1]) do_graph(run.streams[stream], two[0], two[1]);
        break;
    default:
        if (two[0]->kind != KIND_POOL) break;
        OK(cudaFreeAsync(two[0]->at, run.streams[stream]));
        OK(cudaMallocAsync((void **)&two[0]->at, BYTES, run.streams[stream]));
        OK(cudaMemsetAsync(two[0]->at, 7, BYTES, run.streams[stream]));
        memset(two[0]->model, 7, BYTES);
    }
    end(stream, two, 2);
}

/* ---- the oracle ---- */

static void compare(void)
{
    static uint32_t seen[WORDS];
    for (int d = 0; d < DEVICES; d++) {
        OK(cudaSetDevice(d));
        OK(cudaDeviceSynchronize());
    }
    for (size_t b = 0; b < BUFFERS; b++) {
        const struct buffer *buffer = &run.buffers[b];
        OK(cudaMemcpy(seen, buffer->at, BYTES, cudaMemcpyDefault));
        for (size_t i = 0; i < WORDS; i++) {
            if (seen[i] == buffer->model[i]) continue;
            printf("buffer %zu (%s, device %d), word %zu: %08x, the model has %08x\n", b,
                   kind_names[buffer->kind], buffer->device, i, seen[i], buffer->model[i]);
            fail(__LINE__, "compare", 0);
        }
    }
}

int main(int argc, char **argv)
{
    setenv("TUTTI_DEVICES", "2", 0);
    time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
    run.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000 + clock() % 1000;
    run.state = run.seed * 2 + 1;
    run.doing = "set-up";
    printf("seed %llu\n", (unsigned long long)run.seed);
    for (int i = 0; i < STREAMS; i++) {
        OK(cudaSetDevice(i % DEVICES));
        OK(cudaStreamCreateWithFlags(&run.streams[i], i < 4 ? cudaStreamNonBlocking : 0));
    }
    for (int d = 0; d < DEVICES; d++) {
        OK(cudaSetDevice(d));
        OK(cudaEventCreateWithFlags(&run.done[d], cudaEventDisableTiming));
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        make_buffer(&run.buffers[i], i);
    }
    OK(ncclCommInitAll(run.comms, DEVICES, NULL));
    while (run.number < SHORT_RUN || time(NULL) < until) {
        run.number++;
        operate();
        if (pick(50) == 0) compare();
    }
    compare();
    printf("%ld operations agree with the model\n", run.number);
    for (int d = 0; d < DEVICES; d++) {
        OK(ncclCommDestroy(run.comms[d]));
    }
    return 0;
}
