/* What TUTTI_STRICT, or the library anyway, makes an error, one mistake per mode: strict MODE. The
 * program goes on as one would that does not look at results, and ends with status 0 unless a call
 * fails. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000 };

static ncclComm_t comm;

static void end(void)
{
    ncclCommDestroy(comm);
}

/* Two ranks on two devices; each call is recorded in a graph, which outlives the communicator. */
static int destroy_before_graphs(float *memory)
{
    ncclComm_t pair[2];
    cudaGraph_t graphs[2];
    ncclResult_t rc = ncclCommInitAll(pair, 2, NULL);
    for (int i = 0; i < 2 && !rc; i++) {
        cudaStream_t stream;
        cudaSetDevice(i);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        rc = ncclBroadcast(memory, memory, COUNT, ncclFloat, 0, pair[i], stream);
        cudaStreamEndCapture(stream, &graphs[i]);
    }
    ncclGroupStart();
    for (int i = 0; i < 2; i++)
        ncclCommDestroy(pair[i]);
    rc = ncclGroupEnd();
    if (rc) printf("destroy: %d %s\n", rc, ncclGetLastError(NULL));
    for (int i = 0; i < 2; i++)
        cudaGraphDestroy(graphs[i]);
    return rc ? 2 : 0;
}

/* A rank ends, the other one calls and looks at no result. */
static int ignore_failure(float *memory)
{
    ncclComm_t pair[2];
    if (ncclCommInitAll(pair, 2, NULL)) return 2;
    ncclCommDestroy(pair[1]);
    cudaSetDevice(0);
    ncclAllReduce(memory, memory, COUNT, ncclFloat, ncclSum, pair[0], NULL);
    cudaStreamSynchronize(NULL);
    ncclCommDestroy(pair[0]);
    return 0;
}

/* Two results of a group in one place, by two ranks. */
static int write_twice_in_group(void)
{
    ncclComm_t pair[2];
    float *memory[2];
    const size_t half = COUNT / 2;
    ncclResult_t rc = ncclCommInitAll(pair, 2, NULL);
    if (rc) return 2;
    ncclGroupStart();
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaMalloc((void **)&memory[i], 3 * COUNT * sizeof(float));
        cudaMemset(memory[i], 0, 3 * COUNT * sizeof(float));
        cudaDeviceSynchronize();
        float *out = memory[i] + COUNT;
        ncclAllReduce(memory[i], out, COUNT, ncclFloat, ncclSum, pair[i], NULL);
        ncclAllReduce(memory[i], out + half, COUNT, ncclFloat, ncclMax, pair[i], NULL);
    }
    ncclGroupEnd();
    for (int i = 0; i < 2; i++)
        ncclCommDestroy(pair[i]);
    return 0;
}

/* What a call may do with one buffer: by one of two ranks that is right, or wrong. */
static ncclResult_t call_on(const char *mode, float *a, float *b, int rank, ncclComm_t at)
{
    const size_t n = 8;
    const size_t many = n << 20; /* more than the allocation has */
    if (!strcmp(mode, "overlap")) return ncclAllReduce(a, a + 1, n, ncclFloat, ncclSum, at, NULL);
    if (!strcmp(mode, "long")) return ncclAllReduce(a, a + 1, many, ncclFloat, ncclSum, at, NULL);
    if (!strcmp(mode, "offset")) return ncclAllGather(a, a, n, ncclFloat, at, NULL);
    if (!strcmp(mode, "misaligned"))
        return ncclAllReduce((char *)a + 1, b, n, ncclFloat, ncclSum, at, NULL);
    float *own = a + n * (size_t)rank;
    ncclResult_t rc = ncclAllReduce(a, a, n, ncclFloat, ncclSum, at, NULL);
    if (!rc) rc = ncclReduce(a, a, n, ncclFloat, ncclSum, 1, at, NULL);
    if (!rc) rc = ncclBroadcast(a, a, n, ncclFloat, 1, at, NULL);
    if (!rc) rc = ncclBcast(a, n, ncclFloat, 1, at, NULL);
    if (!rc) rc = ncclAllGather(own, a, n, ncclFloat, at, NULL);
    if (!rc) rc = ncclReduceScatter(a, own, n, ncclFloat, ncclSum, at, NULL);
    if (!rc) rc = ncclGather(own, a, n, ncclFloat, 1, at, NULL);
    if (!rc) rc = ncclScatter(a, own, n, ncclFloat, 1, at, NULL);
    if (!rc) rc = ncclBroadcast((char *)a + 1, (char *)b + 1, n, ncclFloat, 1, at, NULL);
    if (!rc) rc = ncclAlltoAll(a, a, n, ncclFloat, at, NULL);
    if (!rc) rc = ncclAllReduce(a, a + n, n, ncclFloat, ncclSum, at, NULL); /* side by side */
    return rc ? rc : ncclAllReduce((char *)a + 1, b, n, ncclInt8, ncclSum, at, NULL);
}

static int use_one_buffer(const char *mode)
{
    ncclComm_t pair[2];
    float *memory[2][2];
    ncclResult_t rc = ncclCommInitAll(pair, 2, NULL), failed = ncclSuccess;
    if (rc) return 3;
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        for (int k = 0; k < 2; k++) {
            cudaMalloc((void **)&memory[i][k], COUNT * sizeof(float));
            cudaMemset(memory[i][k], 0, COUNT * sizeof(float));
        }
        cudaDeviceSynchronize();
    }
    ncclGroupStart();
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        rc = call_on(mode, memory[i][0], memory[i][1], i, pair[i]);
        if (rc && !failed) {
            failed = rc;
            printf("rank %d: %d %s\n", i, rc, ncclGetLastError(NULL));
        }
    }
    rc = ncclGroupEnd();
    for (int i = 0; i < 2; i++)
        ncclCommDestroy(pair[i]);
    cudaSetDevice(0);
    return failed || rc ? 2 : 0;
}

/* Windows and a shrink by one of two ranks; the first call that fails is told. */
static ncclResult_t register_window(const char *mode, int rank, ncclComm_t at, ncclWindow_t *window)
{
    const size_t bytes = 1 << 20;
    const bool sizes = strcmp(mode, "window-sizes") == 0;
    int flags = strcmp(mode, "window-flag") == 0 ? 0x40 : NCCL_WIN_COLL_SYMMETRIC;
    void *memory = NULL;
    if (!strcmp(mode, "window-flags") && rank) flags = NCCL_WIN_DEFAULT;
    ncclResult_t rc = ncclMemAlloc(&memory, bytes);
    return rc ? rc
              : ncclCommWindowRegister(at, memory, sizes ? bytes >> rank : bytes, window, flags);
}

static int make_windows(const char *mode)
{
    ncclComm_t pair[2], rest = NULL;
    ncclWindow_t windows[2] = {NULL, NULL};
    int left_out = 1;
    ncclResult_t rc = ncclCommInitAll(pair, 2, NULL);
    if (rc) return 3;
    if (strcmp(mode, "shrink-flag") != 0) {
        ncclGroupStart();
        for (int i = 0; i < 2 && !rc; i++) {
            cudaSetDevice(i);
            rc = register_window(mode, i, pair[i], &windows[i]);
        }
        ncclResult_t ended = ncclGroupEnd();
        if (!rc) rc = ended;
    } else {
        rc = ncclCommShrink(pair[0], &left_out, 1, &rest, NULL, 8);
        if (rest) ncclCommDestroy(rest);
    }
    if (rc) printf("rank 0: %d %s\n", rc, ncclGetLastError(NULL));
    for (int i = 0; i < 2; i++) {
        if (windows[i]) ncclCommWindowDeregister(pair[i], windows[i]);
        ncclCommDestroy(pair[i]);
    }
    cudaSetDevice(0);
    return rc ? 2 : 0;
}

/* An operator whose scalar lies on a device, as it says. */
static ncclResult_t scale(const char *mode, float *memory)
{
    ncclRedOp_t op;
    float *scalar = NULL;
    cudaMalloc((void **)&scalar, sizeof(*scalar));
    cudaMemset(scalar, 0, sizeof(*scalar));
    if (!strcmp(mode, "scalar")) scalar = calloc(1, sizeof(*scalar));
    ncclResult_t rc = ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat, ncclScalarDevice, comm);
    if (!strcmp(mode, "scalar-freed")) cudaFree(scalar);
    if (!rc) {
        rc = ncclAllReduce(memory, memory, COUNT,
                           strcmp(mode, "scalar-type") ? ncclFloat : ncclInt32, op, comm, NULL);
        ncclResult_t destroyed = ncclRedOpDestroy(op, comm);
        if (!rc) rc = destroyed;
    }
    if (rc) printf("scalar: %d %s\n", rc, ncclGetLastError(NULL));
    return rc;
}

static void write_twice(float *memory, size_t bytes)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemsetAsync(memory, 1, bytes, stream);
    cudaMemsetAsync(memory, 2, bytes, NULL);
}

/* A store to what a fill may still write, and a fill of what is freed. */
static void use_late(float *memory, size_t bytes)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemsetAsync(memory, 0, bytes, stream);
    memory[2] = 1;
    cudaStreamSynchronize(stream);
    cudaFree(memory);
    cudaMemset(memory, 0, bytes);
}

/* As one of two processes: a Send that has no Recv, or both ranks' Sends before their Recvs. */
static int send_message(const char *mode)
{
    const int rank = atoi(getenv("RANK"));
    const size_t bytes = strstr(mode, "small") ? 8 : 256 << 10;
    ncclUniqueId id;
    char *memory = NULL;
    cudaSetDevice(rank);
    cudaMalloc((void **)&memory, 2 * bytes);
    cudaMemset(memory, 0, 2 * bytes);
    cudaDeviceSynchronize();
    ncclResult_t rc = ncclGetUniqueId(&id);
    if (!rc) rc = ncclCommInitRank(&comm, 2, id, rank);
    if (rc) return 3;
    if (rank == 0 || strstr(mode, "circle"))
        ncclSend(memory, bytes, ncclInt8, 1 - rank, comm, NULL);
    if (strstr(mode, "circle")) ncclRecv(memory + bytes, bytes, ncclInt8, 1 - rank, comm, NULL);
    cudaStreamSynchronize(NULL);
    if (rank == 0) usleep(300000); /* the other one has ended it by then */
    return ncclCommDestroy(comm) ? 2 : 0;
}

/* Memory that is freed although NCCL has it, and devices that are reset; "-fine" gives back first.
 */
static int take_away(const char *mode, float *registered)
{
    const bool fine = strstr(mode, "fine") != NULL;
    void *mine = NULL, *handle = NULL;
    ncclWindow_t window = NULL;
    ncclResult_t rc = ncclMemAlloc(&mine, 1 << 20);
    if (!rc && strstr(mode, "registered")) {
        rc = ncclCommRegister(comm, registered, COUNT * sizeof(float), &handle);
        if (!rc && fine) rc = ncclCommDeregister(comm, handle);
        cudaFree(registered);
        if (!rc && !fine) rc = ncclCommDeregister(comm, handle);
    }
    if (!rc && strstr(mode, "windowed")) {
        rc = ncclCommWindowRegister(comm, mine, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC);
        if (!rc && fine) rc = ncclCommWindowDeregister(comm, window);
        if (!rc) rc = ncclMemFree(mine);
        if (!rc && !fine) rc = ncclCommWindowDeregister(comm, window);
        return rc ? 2 : 0;
    }
    if (strstr(mode, "mapped") && !fine) {
        const cudaError_t freed = cudaFree(mine);
        printf("cudaFree: %d\n", freed);
        cudaGetLastError();
        if (!freed) return 0;
    }
    if (!strstr(mode, "reset")) return rc || ncclMemFree(mine) ? 2 : 0;
    if (fine) ncclCommDestroy(comm);
    cudaDeviceReset();
    if (fine) comm = NULL;
    return rc ? 2 : 0;
}

static int answers[3];

static void call_all(void *memory)
{
    void *more = NULL;
    answers[0] = cudaMalloc(&more, COUNT);
    answers[1] = cudaMemsetAsync(memory, 0, COUNT, cudaStreamLegacy);
    answers[2] = ncclAllReduce(memory, memory, COUNT, ncclFloat, ncclSum, comm, cudaStreamLegacy);
    if (answers[2]) printf("%s\n", ncclGetLastError(NULL));
}

/* CUDA's and NCCL's functions in a host function. */
static int call_in_function(float *memory)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaLaunchHostFunc(stream, call_all, memory);
    cudaStreamSynchronize(stream);
    cudaDeviceSynchronize();
    printf("in a host function: %d %d %d\n", answers[0], answers[1], answers[2]);
    return 0;
}

/* What a mode does beside the calls of main(). */
static ncclResult_t go_on(const char *mode, float *memory)
{
    int status = 0;
    if (!strcmp(mode, "group")) status = write_twice_in_group();
    if (!strcmp(mode, "ignored")) status = ignore_failure(memory);
    if (strstr("overlap long offset misaligned inplace", mode)) status = use_one_buffer(mode);
    if (strstr(mode, "window-") || strstr(mode, "shrink-")) status = make_windows(mode);
    if (strstr(mode, "taken")) status = take_away(mode, memory);
    if (!strcmp(mode, "function")) status = call_in_function(memory);
    if (strstr(mode, "scalar")) return scale(mode, memory);
    return status ? ncclInvalidArgument : ncclSuccess;
}

/* As one of two processes, with two ids, which are one under NCCL_COMM_ID. */
static int list_ids(const char *mode)
{
    ncclUniqueId ids[2];
    const int rank = atoi(getenv("RANK"));
    if (!strcmp(mode, "ids-twice")) unsetenv("NCCL_COMM_ID");
    ncclResult_t rc = ncclGetUniqueId(&ids[0]);
    if (!rc) rc = ncclGetUniqueId(&ids[1]);
    if (!strcmp(mode, "ids-twice")) ids[1] = ids[0];
    cudaSetDevice(rank);
    if (!rc) rc = ncclCommInitRankScalable(&comm, 2, rank, 2, ids, NULL);
    if (rc) printf("ids: %d %s\n", rc, ncclGetLastError(NULL));
    return rc || ncclCommDestroy(comm) ? 2 : 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "fine";
    const size_t bytes = COUNT * sizeof(float);
    if (strstr(mode, "ids")) return list_ids(mode);
    if (strstr(mode, "message")) return send_message(mode);
    float *memory = NULL, *second = NULL;
    ncclResult_t rc = ncclCommInitAll(&comm, 1, NULL);
    if (rc) {
        printf("init: %d %s\n", rc, ncclGetLastError(NULL));
        return 3;
    }
    if (!strcmp(mode, "handler")) atexit(end);
    if (!strcmp(mode, "child") && fork() == 0) return 0;
    if (!strcmp(mode, "open")) { /* and never ended */
        ncclGroupStart();
        ncclCommDestroy(comm);
        return 0;
    }
    cudaMalloc((void **)&memory, bytes);
    cudaMalloc((void **)&second, bytes);
    float *send = memory;
    cudaStream_t stream = NULL;
    cudaMemset(memory, 0, bytes);
    cudaMemset(second, 0, bytes);
    cudaDeviceSynchronize();
    if (strstr(mode, "race")) write_twice(memory, bytes);
    if (!strcmp(mode, "late")) use_late(second, bytes);
    if (!strncmp(mode, "malloc", 6)) send = calloc(1, bytes);
    if (!strcmp(mode, "freed")) cudaFree(second);
    if (!strcmp(mode, "freed")) send = second;
    if (!strcmp(mode, "inside")) send = memory + 1;
    if (!strcmp(mode, "again")) { /* freed between two calls of one kind */
        ncclAllReduce(second, memory, COUNT, ncclFloat, ncclSum, comm, NULL);
        cudaFree(second);
        send = second;
    }
    if (!strcmp(mode, "stream")) { /* of another device */
        send = second;
        cudaSetDevice(1);
        cudaStreamCreate(&stream);
        cudaSetDevice(0);
    }
    if (!strcmp(mode, "refused")) { /* in a group, and gives up then */
        ncclGroupStart();
        rc = ncclAllReduce(NULL, memory, COUNT, ncclFloat, ncclSum, comm, NULL);
        return rc ? 2 : 0;
    }
    rc = ncclAllReduce(send, memory, COUNT, ncclFloat, ncclSum, comm,
                       strcmp(mode, "stream") ? NULL : stream);
    if (rc) printf("call: %d %s\n", rc, ncclGetLastError(NULL));
    cudaStreamSynchronize(NULL);
    if (!rc) rc = go_on(mode, memory);
    if (!strcmp(mode, "graph")) return destroy_before_graphs(memory);
    if (!strstr(mode, "leak") && strcmp(mode, "handler") != 0) end();
    return rc && strcmp(mode, "malloc-ignored") != 0 ? 2 : 0;
}
