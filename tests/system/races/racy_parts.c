/* Scenarios of plain loads and stores of the host to device memory, which it can reach here, and to
 * parts of pages of pinned and managed memory. */
#include "racy.h"

#include <pthread.h>
#include <unistd.h>

static volatile int seen;

static int *pinned(size_t count)
{
    int *ints = NULL;
    OK(cudaMallocHost((void **)&ints, count * sizeof(int)));
    memset(ints, 0, count * sizeof(int));
    return ints;
}

static int *managed(size_t count)
{
    int *ints = NULL;
    OK(cudaMallocManaged((void **)&ints, count * sizeof(int), cudaMemAttachGlobal));
    memset(ints, 0, count * sizeof(int));
    return ints;
}

static volatile int *ints_of(char *ptr)
{
    return (volatile int *)(void *)ptr;
}

/* ---- device memory ---- */

static void fill_then_read(bool sound)
{
    fill(my.x, my.a);
    await(my.a, sound);
    seen = ints_of(my.x)[0];
}

static void fill_then_read_end(bool sound)
{
    fill(my.x, my.a);
    await(my.a, sound);
    seen = ints_of(my.x)[COUNT - 1];
}

static void store_while_copied(bool sound)
{
    copy(my.pinned, my.x, my.a);
    await(my.a, sound);
    ints_of(my.x)[17] = 5;
}

static void load_while_copied(bool sound) /* two that read; or one that writes */
{
    copy(sound ? my.pinned : my.x, sound ? my.x : my.pinned, my.a);
    seen = ints_of(my.x)[17];
    OK(cudaStreamSynchronize(my.a));
}

static void store_then_copy(bool sound) /* what comes before the call is before the copy */
{
    ints_of(my.x)[3] = 5;
    copy(my.pinned, my.x, my.a);
    if (!sound) ints_of(my.x)[3] = 6;
    OK(cudaStreamSynchronize(my.a));
}

static void device_memcpy(bool sound)
{
    static unsigned char heap[BYTES];
    copy(my.x, my.y, my.a);
    await(my.a, sound);
    memcpy(heap, my.x, sizeof(heap));
    seen = heap[3];
}

static void device_memset(bool sound)
{
    copy(my.y, my.x, my.a);
    await(my.a, sound);
    memset(my.x, 0, BYTES);
}

static void device_other(bool sound) /* an allocation beside it is none of its business */
{
    fill(my.x, my.a);
    seen = ints_of(sound ? my.y : my.x)[2];
    OK(cudaStreamSynchronize(my.a));
}

static void device_far(bool sound)
{
    cudaStream_t far;
    char *there;
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&there, BYTES));
    OK(cudaMemcpyPeerAsync(there, 1, my.x, 0, BYTES, far));
    if (!sound) OK(cudaSetDevice(0));
    OK(cudaDeviceSynchronize());
    seen = ints_of(there)[1];
}

static void *store_there(void *ptr)
{
    *(volatile int *)ptr = 4;
    return NULL;
}

static void device_in_thread(bool sound)
{
    pthread_t thread;
    copy(my.y, my.x, my.a);
    await(my.a, sound);
    OK(pthread_create(&thread, NULL, store_there, my.x + 400));
    OK(pthread_join(thread, NULL));
    OK(cudaStreamSynchronize(my.a));
}

static void device_loop(bool sound)
{
    for (int i = 0; i < 50; i++) {
        ints_of(my.x)[i] = i;
        copy(my.y, my.x, my.a);
        await(my.a, sound || i != 30);
    }
    OK(cudaStreamSynchronize(my.a));
}

static void device_reduced(bool sound)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    for (int r = 0; r < RANKS; r++)
        await(ranks.stream[r], sound);
    seen = (int)((volatile float *)ranks.out[1])[5];
    racy_finish_ranks();
}

static void device_reduced_input(bool sound)
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    await(ranks.stream[1], sound); /* whose sum tells that the other rank has given its part */
    ((volatile float *)ranks.in[0])[9] = 1;
    racy_finish_ranks();
}

static void device_received(bool sound)
{
    racy_start_ranks();
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(ranks.stream[sound ? 1 : 0]));
    seen = (int)((volatile float *)ranks.out[1])[COUNT - 1];
    racy_finish_ranks();
}

static void device_in_graph(bool sound)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeGlobal));
    fill(my.x, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    await(my.a, sound);
    seen = ints_of(my.x)[8];
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

/* ---- parts of pages ---- */

static void one_of_many(bool sound)
{
    int *counters = pinned(1024);
    OK(cudaMemcpyAsync(&counters[3], my.x, 4, cudaMemcpyDeviceToHost, my.a));
    seen = counters[sound ? 4 : 3];
    OK(cudaStreamSynchronize(my.a));
}

static void small_double_buffer(bool sound)
{
    int *both = pinned(256);
    for (int i = 0; i < 4; i++) {
        OK(cudaMemcpyAsync(both, my.x, 512, cudaMemcpyDeviceToHost, my.a));
        await(my.b, true);
        seen = both[i == 2 && !sound ? 7 : 128 + 7];
        OK(cudaMemcpyAsync(both + 128, my.x, 512, cudaMemcpyDeviceToHost, my.b));
        await(my.a, true);
        seen = both[7];
    }
    OK(cudaDeviceSynchronize());
}

static void field_of_struct(bool sound)
{
    struct results {
        float loss;
        int steps;
        float norms[16];
    } *results = (struct results *)(void *)pinned(64);
    OK(cudaMemcpyAsync(results->norms, my.x, sizeof(results->norms), cudaMemcpyDefault, my.a));
    results->steps++;
    await(my.a, sound);
    seen = results->norms[2] > 0;
}

static void tail_of_transfer(bool sound) /* the end fills no page */
{
    int *got = pinned(3000);
    OK(cudaMemcpyAsync(got, my.x, BYTES, cudaMemcpyDeviceToHost, my.a));
    OK(cudaMemcpyAsync(got + COUNT, my.x, 2000, cudaMemcpyDeviceToHost, my.a));
    await(my.a, sound);
    seen = got[COUNT + 499];
    OK(cudaStreamSynchronize(my.a));
}

static void pieces_of_arena(bool sound) /* a program's own allocator over one pinned block */
{
    char *arena = (char *)pinned(2048);
    char *pieces[4];
    for (int i = 0; i < 4; i++) {
        pieces[i] = arena + i * 320;
        OK(cudaMemcpyAsync(pieces[i], my.x, 300, cudaMemcpyDeviceToHost, i % 2 ? my.a : my.b));
    }
    OK(cudaStreamSynchronize(my.a));
    seen = ints_of(pieces[sound ? 3 : 2])[10];
    OK(cudaStreamSynchronize(my.b));
}

static void managed_part(bool sound)
{
    int *x = managed(1024);
    OK(cudaMemsetAsync(x + 100, 1, 400, my.a));
    x[sound ? 200 : 199] = 4;
    OK(cudaStreamSynchronize(my.a));
}

static void managed_shared(bool sound) /* one buffer, two streams, and the host in the middle */
{
    int *x = managed(300);
    OK(cudaMemsetAsync(x, 1, 400, my.a));
    OK(cudaMemsetAsync(x + 200, 1, 400, my.b));
    x[150] = 1;
    await(my.b, sound);
    x[200] = 1;
    OK(cudaDeviceSynchronize());
}

static void next_input_too_early(bool sound)
{
    int *input = pinned(64);
    for (int i = 0; i < 10; i++) {
        input[5] = i;
        OK(cudaMemcpyAsync(my.x, input + 5, 4, cudaMemcpyHostToDevice, my.a));
        await(my.a, sound);
    }
}

static void mapped_part(bool sound)
{
    int *host = NULL, *on_device = NULL;
    OK(cudaHostAlloc((void **)&host, 4096, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer((void **)&on_device, host, 0));
    OK(cudaMemsetAsync(on_device + 8, 1, 64, my.a));
    await(my.a, sound);
    seen = host[9];
}

static void part_of_reduction(bool sound)
{
    int *sums = NULL;
    racy_start_ranks();
    sums = pinned(100);
    float *out[RANKS] = {ranks.out[0], (float *)(void *)(sums + 40)};
    all_reduce(ranks.in, out, 20, ranks.stream);
    await(ranks.stream[1], sound);
    seen = sums[59];
    racy_finish_ranks();
}

/* ---- boxes with more rows than there are addresses ---- */

static void rows_without_end(bool sound)
{
    struct cudaMemcpy3DParms params = {.srcPtr = {my.x, 64, 64, 64},
                                       .dstPtr = {my.y, 64, 64, 64},
                                       .extent = {32, 8, 1},
                                       .kind = cudaMemcpyDefault};
    if (!sound) params.extent.height = params.srcPtr.ysize = params.dstPtr.ysize = (size_t)1 << 50;
    cudaError_t rc = cudaMemcpy3D(&params);
    if ((rc == cudaSuccess) != sound) exit(2);
    cudaGetLastError();
}

/* ---- the table ---- */

const struct racy_scenario racy_parts[] = {
    {"device-fill-then-read", fill_then_read, "race"},
    {"device-fill-then-read-end", fill_then_read_end, "race"},
    {"device-store-while-copied", store_while_copied, "race"},
    {"device-load-while-copied", load_while_copied, "race"},
    {"device-store-then-copy", store_then_copy, "race"},
    {"device-memcpy", device_memcpy, "race"},
    {"device-memset", device_memset, "race"},
    {"device-other", device_other, "race"},
    {"device-far", device_far, "race"},
    {"device-in-thread", device_in_thread, "race"},
    {"device-loop", device_loop, "race"},
    {"device-reduced", device_reduced, "race"},
    {"device-reduced-input", device_reduced_input, "race"},
    {"device-received", device_received, "race"},
    {"device-in-graph", device_in_graph, "race"},
    {"part-one-of-many", one_of_many, "race"},
    {"part-small-double-buffer", small_double_buffer, "race"},
    {"part-field-of-struct", field_of_struct, "race"},
    {"part-tail-of-transfer", tail_of_transfer, "race"},
    {"part-pieces-of-arena", pieces_of_arena, "race"},
    {"part-managed", managed_part, "race"},
    {"part-managed-shared", managed_shared, "race"},
    {"part-next-input-too-early", next_input_too_early, "race"},
    {"part-mapped", mapped_part, "race"},
    {"part-of-reduction", part_of_reduction, "race"},
    {"rows-without-end", rows_without_end, "outside"},
};
const size_t racy_nparts = sizeof(racy_parts) / sizeof(racy_parts[0]);
