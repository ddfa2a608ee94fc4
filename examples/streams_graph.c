/* Two streams joined by events, recorded as a graph once and launched many times.
 *   tutti run -n 2 ./streams_graph */
#include "check.h"

enum { COUNT = 4096, TIMES = 10 };

int main(void)
{
    int rank = from_launcher("RANK", 0);
    int nranks = from_launcher("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t compute;
    cudaStream_t talk;
    cudaEvent_t ready;
    cudaEvent_t done;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *numbers;
    int *sums;
    int host[COUNT];

    CUDA(cudaSetDevice(from_launcher("LOCAL_RANK", 0)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&talk, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CUDA(cudaMalloc((void **)&numbers, sizeof(host)));
    CUDA(cudaMalloc((void **)&sums, sizeof(host)));

    /* Nothing runs here: the calls are written down. `talk` joins through `ready`, and comes back
     * to the stream that records through `done`. */
    CUDA(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemsetAsync(numbers, 0, sizeof(host), compute));
    CUDA(cudaMemsetAsync(numbers, 1, sizeof(int), compute)); /* the first number: 0x01010101 */
    CUDA(cudaEventRecord(ready, compute));
    CUDA(cudaStreamWaitEvent(talk, ready, 0));
    NCCL(ncclAllReduce(numbers, sums, COUNT, ncclInt, ncclSum, comm, talk));
    CUDA(cudaEventRecord(done, talk));
    CUDA(cudaStreamWaitEvent(compute, done, 0));
    CUDA(cudaStreamEndCapture(compute, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));

    for (int i = 0; i < TIMES; i++) {
        CUDA(cudaGraphLaunch(exec, compute));
    }
    CUDA(cudaMemcpyAsync(host, sums, sizeof(host), cudaMemcpyDeviceToHost, compute));
    CUDA(cudaStreamSynchronize(compute));

    int wrong = host[0] != nranks * 0x01010101;
    for (int i = 1; i < COUNT; i++) {
        wrong += host[i] != 0;
    }
    printf("rank %d of %d: %d wrong after %d launches\n", rank, nranks, wrong, TIMES);

    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(ready));
    CUDA(cudaEventDestroy(done));
    CUDA(cudaFree(numbers));
    CUDA(cudaFree(sums));
    CUDA(cudaStreamDestroy(talk));
    CUDA(cudaStreamDestroy(compute));
    NCCL(ncclCommDestroy(comm));
    return wrong != 0;
}
