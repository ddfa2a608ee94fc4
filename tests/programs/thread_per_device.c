/* A pthread per device, one communicator each, made inside the threads. */
#include "check.h"

#include <pthread.h>

enum { DEVICES = 4, COUNT = 100003 };

static ncclUniqueId id; /* made before the threads start, read by all */

static void *run(void *arg)
{
    int rank = *(int *)arg;
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, DEVICES, id, rank));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < 50; i++) {
        fill(buffer, COUNT, (float)rank);
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclMax, comm, stream));
        NCCL(ncclBroadcast(buffer, buffer, COUNT, ncclFloat, i % DEVICES, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect(buffer, COUNT, DEVICES - 1, "AllReduce and Broadcast");
    }
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(buffer));
    CUDA(cudaStreamDestroy(stream));
    return NULL;
}

int main(void)
{
    pthread_t threads[DEVICES];
    int ranks[DEVICES];
    NCCL(ncclGetUniqueId(&id));
    for (int i = 0; i < DEVICES; i++) {
        ranks[i] = i;
        if (pthread_create(&threads[i], NULL, run, &ranks[i])) return 1;
    }
    for (int i = 0; i < DEVICES; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("thread_per_device: ok\n");
    return 0;
}
