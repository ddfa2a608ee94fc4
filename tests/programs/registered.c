/* Registered buffers and symmetric windows on ncclMemAlloc memory. */
#include "check.h"

#include <stddef.h>

enum { COUNT = 1 << 18 };

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    void *memory;
    void *handle;
    ncclWindow_t window;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, size, id, rank));
    CUDA(cudaStreamCreate(&stream));
    NCCL(ncclMemAlloc(&memory, 2 * COUNT * sizeof(float)));
    NCCL(ncclCommRegister(comm, memory, 2 * COUNT * sizeof(float), &handle));
    float *send = (float *)memory;
    float *recv = send + COUNT;
    fill(send, COUNT, 2);
    NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, 2.0f * (float)size, "AllReduce on registered memory");
    NCCL(ncclCommDeregister(comm, handle));
    NCCL(ncclCommWindowRegister(comm, memory, 2 * COUNT * sizeof(float), &window,
                                NCCL_WIN_COLL_SYMMETRIC));
    if (!window) return 1;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
    void *user = NULL;
    NCCL(ncclWinGetUserPtr(comm, window, &user));
    if (user != memory) return 1;
#endif
    NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, 2.0f * (float)size, "AllReduce in a window");
    NCCL(ncclCommWindowDeregister(comm, window));
    NCCL(ncclMemFree(memory));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaStreamDestroy(stream));
    if (rank == 0) printf("registered: ok\n");
    return 0;
}
