/* A program whose threads have little stack: 8 ranks, each a thread of 256 KiB, in a communicator
 * on the machine that NCCL_TOPO_FILE describes; all reduce, and the sum is right. */
#include "cuda_runtime.h"

#include "nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 8, COUNT = 4096, STACK_BYTES = 256 << 10 };

static ncclUniqueId id;
static int nranks;

static void need(bool good, const char *what)
{
    if (good) return;
    (void)fprintf(stderr, "%s: %s\n", what, ncclGetLastError(NULL));
    exit(1);
}

static void *run(void *context)
{
    int rank = (int)(size_t)context;
    ncclComm_t comm = NULL;
    cudaStream_t stream = NULL;
    void *data = NULL;
    float ones[COUNT];
    for (int k = 0; k < COUNT; k++)
        ones[k] = 1;
    need(!cudaSetDevice(rank), "set device");
    need(!cudaMalloc(&data, sizeof(ones)), "malloc");
    need(!cudaMemcpy(data, ones, sizeof(ones), cudaMemcpyHostToDevice), "copy");
    need(!cudaStreamCreate(&stream), "stream");
    need(!ncclCommInitRank(&comm, nranks, id, rank), "init");
    need(!ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream), "all reduce");
    need(!cudaStreamSynchronize(stream), "synchronize");
    need(!cudaMemcpy(ones, data, sizeof(ones), cudaMemcpyDeviceToHost), "copy back");
    for (int k = 0; k < COUNT; k++)
        need(ones[k] == (float)nranks, "sum");
    need(!ncclCommDestroy(comm), "destroy");
    (void)cudaStreamDestroy(stream);
    (void)cudaFree(data);
    return NULL;
}

int main(void)
{
    pthread_t threads[RANKS];
    pthread_attr_t attr;
    need(!cudaGetDeviceCount(&nranks) && nranks > 0, "devices");
    if (nranks > RANKS) nranks = RANKS;
    need(!ncclGetUniqueId(&id), "id");
    need(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, STACK_BYTES), "attributes");
    for (int r = 0; r < nranks; r++)
        need(!pthread_create(&threads[r], &attr, run, (void *)(size_t)r), "thread");
    for (int r = 0; r < nranks; r++)
        (void)pthread_join(threads[r], NULL);
    (void)pthread_attr_destroy(&attr);
    (void)printf("%d ranks\n", nranks);
    return 0;
}
