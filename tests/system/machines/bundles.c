/* One rank that calls in groups, for a tuner that notes what it is asked: sizes within a factor of
 * four, other types, registered buffers, a captured group, an estimate on rank 0 alone. Sums are
 * checked. With an argument: one call a millisecond until that file is there on some rank. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LENGTHS = 8, STRIDE = 4096, WHOLE = LENGTHS * STRIDE };
static const size_t counts[LENGTHS] = {64, 128, 200, 256, 1024, 16, 2048, 63};

static int check(int rc, const char *what)
{
    if (rc) printf("%s: %d: %s\n", what, rc, ncclGetLastError(NULL));
    return rc;
}

static int group(float *values, ncclComm_t comm, cudaStream_t stream)
{
    int rc = (int)ncclGroupStart();
    for (int i = 0; i < LENGTHS && !rc; i++) {
        float *at = values + (size_t)i * STRIDE;
        rc = (int)ncclAllReduce(at, at, counts[i], ncclFloat, ncclSum, comm, stream);
    }
    if (!rc)
        rc = (int)ncclAllReduce(values + 3000, values + 3000, 64, ncclInt32, ncclMax, comm, stream);
    if (!rc) rc = (int)ncclAllGather(values + 3500, values + 3600, 16, ncclInt32, comm, stream);
    return rc ? rc : (int)ncclGroupEnd();
}

static int captured(float *values, ncclComm_t comm, cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    int rc = (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    rc = rc ? rc : (int)ncclAllReduce(values, values, 333, ncclFloat, ncclSum, comm, stream);
    rc = rc ? rc : (int)cudaStreamEndCapture(stream, &graph);
    rc = rc ? rc : (int)cudaGraphInstantiate(&exec, graph, 0);
    rc = rc ? rc : (int)cudaGraphLaunch(exec, stream);
    rc = rc ? rc : (int)cudaStreamSynchronize(stream);
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
    return rc;
}

static int estimate(float *values, ncclComm_t comm, cudaStream_t stream)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    int rc = (int)ncclGroupStart();
    rc = rc ? rc : (int)ncclAllReduce(values, values, 4000, ncclFloat, ncclSum, comm, stream);
    rc = rc ? rc : (int)ncclGroupSimulateEnd(&info);
    if (!rc && !(info.estimatedTime > 0)) printf("estimated %f\n", (double)info.estimatedTime);
    return rc || !(info.estimatedTime > 0);
}

static int all(float *values, float *host, int rank, ncclComm_t comm)
{
    cudaStream_t stream = NULL;
    void *handle = NULL;
    for (int i = 0; i < WHOLE; i++)
        host[i] = 1;
    int rc = check((int)cudaStreamCreate(&stream), "stream");
    rc = rc ? rc : (int)cudaMemcpy(values, host, WHOLE * sizeof(float), cudaMemcpyHostToDevice);
    if (!rc && rank == 0) rc = check(estimate(values, comm, stream), "estimate");
    rc = rc ? rc : check(group(values, comm, stream), "group");
    rc =
        rc ? rc
           : check((int)ncclCommRegister(comm, values, WHOLE * sizeof(float), &handle), "register");
    rc = rc ? rc
            : check((int)ncclAllReduce(values, values, 100, ncclFloat, ncclSum, comm, stream),
                    "call");
    rc = rc ? rc : check((int)ncclCommDeregister(comm, handle), "deregister");
    rc = rc ? rc
            : check((int)ncclAllReduce(values, values, 101, ncclFloat, ncclMax, comm, stream),
                    "call");
    rc = rc ? rc : check(captured(values, comm, stream), "capture");
    rc = rc ? rc : (int)cudaMemcpy(host, values, WHOLE * sizeof(float), cudaMemcpyDeviceToHost);
    if (stream) cudaStreamDestroy(stream);
    return rc;
}

static int until(const char *path, float *values, ncclComm_t comm)
{
    const struct timespec pause = {0, 1000000};
    float found = 0;
    int rc = 0;
    while (!rc && !(found > 0)) {
        found = access(path, F_OK) == 0;
        rc = (int)cudaMemcpy(values, &found, sizeof(found), cudaMemcpyHostToDevice);
        rc = rc ? rc
                : check((int)ncclAllReduce(values, values, 1, ncclFloat, ncclSum, comm, NULL),
                        "call");
        rc = rc ? rc : (int)cudaMemcpy(&found, values, sizeof(found), cudaMemcpyDeviceToHost);
        nanosleep(&pause, NULL);
    }
    return rc;
}

int main(int argc, char **argv)
{
    int rank = atoi(getenv("RANK")), nranks = atoi(getenv("WORLD_SIZE")), wrong = 0;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    float *values = NULL, *host = malloc(WHOLE * sizeof(float));
    memset(&id, 0, sizeof(id));
    int rc = check((int)ncclGetUniqueId(&id), "id"); /* the same for all: NCCL_COMM_ID is set */
    rc = rc ? rc : check((int)cudaSetDevice(rank), "device");
    rc = rc ? rc : check((int)ncclCommInitRank(&comm, nranks, id, rank), "init");
    rc = rc ? rc : check((int)cudaMalloc((void **)&values, WHOLE * sizeof(float)), "memory");
    if (!rc) rc = argc > 1 ? until(argv[1], values, comm) : all(values, host, rank, comm);
    for (int i = 1; i < LENGTHS && !rc && argc == 1; i++) {
        for (size_t k = 0; k < counts[i]; k++)
            wrong += host[(size_t)i * STRIDE + k] != (float)nranks;
    }
    rc = rc ? rc : check((int)ncclCommDestroy(comm), "destroy");
    if (wrong) printf("rank %d: %d values are wrong\n", rank, wrong);
    free(host);
    return rc || wrong;
}
