/* What broke a communicator is told by its own sentence: a call that is refused while others run in
 * the background leaves none behind, though it comes between the failure and its report. */
#include "../harness/harness.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static void started(ncclResult_t rc)
{
    CHECK(rc == ncclSuccess || rc == ncclInProgress);
}

static ncclComm_t make(void)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.splitShare = 1;
    NCCL(ncclGetUniqueId(&id));
    started(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    CHECK(harness_wait(comm) == ncclSuccess);
    return comm;
}

static void hold(void *arg)
{
    while (!atomic_load((_Atomic int *)arg))
        usleep(200);
}

static ncclResult_t call(ncclComm_t comm, float *buffer, cudaStream_t stream)
{
    return ncclAllReduce(buffer, buffer + 1, 1, ncclFloat, ncclSum, comm, stream);
}

/* Its network is not the parent's, with whom resources are to be shared. */
static void refused_split(ncclComm_t comm, ncclComm_t *child)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.netName = "another";
    started(ncclCommSplit(comm, 0, 0, child, &config));
}

int main(void)
{
    _Atomic int go = 0;
    cudaStream_t stream;
    ncclComm_t child = NULL;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *buffer = harness_device_alloc(2 * sizeof(*buffer));
    ncclComm_t comm = make(), slow = make();
    CUDA(cudaLaunchHostFunc(stream, hold, &go));
    NCCL(call(slow, buffer, stream));
    NCCL(ncclGroupStart());
    refused_split(comm, &child);
    started(ncclCommFinalize(slow)); /* the group ends with what is on the stream */
    started(ncclGroupEnd());
    for (int k = 0; k < 50; k++) { /* some of them after the split has failed, as a rule */
        CHECK(call(comm, buffer, stream) == ncclInvalidArgument);
        CHECK(strstr(ncclGetLastError(NULL), "in progress"));
        usleep(2000);
    }
    atomic_store(&go, 1);
    CHECK(harness_wait(comm) == ncclInvalidUsage);
    CHECK(call(comm, buffer, stream) == ncclInvalidUsage);
    if (!strstr(ncclGetLastError(NULL), "netName"))
        harness_fail(__FILE__, __LINE__, "blamed: %s", ncclGetLastError(NULL));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclCommAbort(child));
    NCCL(ncclCommAbort(slow));
    NCCL(ncclCommAbort(comm));
    puts("blamed: a refused call leaves no sentence behind");
    return 0;
}
