/* An AllReduce and a copy captured once, replayed with changing contents. */
#include "check.h"

enum { COUNT = 4096, REPLAYS = 100 };

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *send;
    float *recv;
    float *copy;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, size, id, rank));
    CUDA(cudaMalloc((void **)&send, COUNT * sizeof(float)));
    CUDA(cudaMalloc((void **)&recv, COUNT * sizeof(float)));
    CUDA(cudaMalloc((void **)&copy, COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(copy, recv, COUNT * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    for (int i = 0; i < REPLAYS; i++) {
        fill(send, COUNT, (float)(i + rank));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect(copy, COUNT, (float)(i * size + size * (size - 1) / 2), "replay");
        fill(send, COUNT, 1);
        NCCL(ncclAllReduce(send, send, COUNT, ncclFloat, ncclSum, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect(send, COUNT, (float)size, "direct call between replays");
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    CUDA(cudaFree(copy));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    if (rank == 0) printf("graph: ok\n");
    return 0;
}
