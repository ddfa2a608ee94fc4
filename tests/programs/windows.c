/* Symmetric windows in groups, at offsets, on two communicators of one process per device; and
 * memory that several registrations cover. */
#include "check.h"

enum { COUNT = 1 << 16 };

static void collectives(ncclComm_t comm, float *base, int rank, int size, cudaStream_t stream)
{
    float *send = base + 1024;
    float *recv = base + COUNT;
    fill(send, COUNT / 4, (float)(rank + 1));
    NCCL(ncclAllReduce(send, recv, COUNT / 4, ncclFloat, ncclMax, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT / 4, (float)size, "AllReduce in a window");
    NCCL(ncclAllGather(send, recv, COUNT / 16, ncclFloat, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < size; r++) {
        expect(recv + (size_t)r * (COUNT / 16), COUNT / 16, (float)(r + 1),
               "AllGather in a window");
    }
    NCCL(ncclReduceScatter(recv, send, COUNT / 16, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(send, COUNT / 16, (float)(size * (rank + 1)), "ReduceScatter in a window");
}

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    size_t bytes = 2 * COUNT * sizeof(float);
    ncclUniqueId id;
    ncclComm_t comms[2];
    ncclWindow_t windows[2][2];
    void *handles[2];
    void *memory[2];
    cudaStream_t stream;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    CUDA(cudaStreamCreate(&stream));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comms[0], size, id, rank));
    NCCL(ncclCommSplit(comms[0], 0, rank, &comms[1], NULL));
    for (int m = 0; m < 2; m++) {
        NCCL(ncclMemAlloc(&memory[m], bytes));
    }
    NCCL(ncclGroupStart());
    for (int c = 0; c < 2; c++) {
        for (int m = 0; m < 2; m++) {
            NCCL(ncclCommWindowRegister(comms[c], memory[m], bytes, &windows[c][m],
                                        m ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT));
        }
    }
    NCCL(ncclGroupEnd());
    for (int c = 0; c < 2; c++) {
        NCCL(ncclCommRegister(comms[c], memory[0], bytes / 2, &handles[c]));
        for (int m = 0; m < 2; m++) {
            if (!windows[c][m]) return 1;
            collectives(comms[c], (float *)memory[m], rank, size, stream);
        }
    }
    for (int c = 0; c < 2; c++) {
        NCCL(ncclCommDeregister(comms[c], handles[c]));
        for (int m = 0; m < 2; m++) {
            NCCL(ncclCommWindowDeregister(comms[c], windows[c][m]));
        }
    }
    for (int m = 0; m < 2; m++) {
        NCCL(ncclMemFree(memory[m]));
    }
    NCCL(ncclCommDestroy(comms[1]));
    NCCL(ncclCommDestroy(comms[0]));
    CUDA(cudaStreamDestroy(stream));
    if (rank == 0) printf("windows: ok\n");
    return 0;
}
