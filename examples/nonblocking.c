/* A communicator whose calls do not wait: after each one its state is asked for, and a rank that
 * does not come in time ends in ncclCommAbort() and not in a program that hangs.
 *   tutti run -n 3 ./nonblocking */
#include "check.h"

#include <time.h>

enum { COUNT = 1000, TIMEOUT_SECONDS = 60 };

/* Wait until the communicator is ready; meanwhile a program would do something useful. */
static void wait_ready(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    time_t end = time(NULL) + TIMEOUT_SECONDS;
    while (state == ncclInProgress && time(NULL) < end) {
        NCCL(ncclCommGetAsyncError(comm, &state));
    }
    if (state == ncclSuccess) return;
    fprintf(stderr, "not ready: %s: %s\n", ncclGetErrorString(state), ncclGetLastError(comm));
    NCCL(ncclCommAbort(comm));
    exit(1);
}

int main(void)
{
    int rank = from_launcher("RANK", 0);
    int nranks = from_launcher("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    cudaStream_t stream;
    int64_t *device;
    int64_t host[COUNT];

    config.blocking = 0;
    CUDA(cudaSetDevice(from_launcher("LOCAL_RANK", 0)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRankConfig(&comm, nranks, id, rank, &config));
    wait_ready(comm);
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&device, sizeof(host)));
    for (int i = 0; i < COUNT; i++) {
        host[i] = rank == nranks - 1 ? i : -1;
    }
    CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
    NCCL(ncclBroadcast(device, device, COUNT, ncclInt64, nranks - 1, comm, stream));
    wait_ready(comm);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += host[i] != i;
    }
    printf("rank %d of %d: %d wrong\n", rank, nranks, wrong);
    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommFinalize(comm));
    wait_ready(comm);
    NCCL(ncclCommDestroy(comm));
    return wrong != 0;
}
