/* One MPI process per device: the id goes by MPI_Bcast, devices are counted within the node, and
 * sums are compared with MPI's own. */
#include "check.h"

#include <mpi.h>

enum { COUNT = 30011 };

static int local_rank(int rank)
{
    MPI_Comm node;
    int local = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    return local;
}

int main(int argc, char **argv)
{
    static float mine[COUNT];
    static float theirs[COUNT];
    static float ours[COUNT];
    int rank = 0;
    int size = 1;
    int devices = 0;
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *send;
    float *recv;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(local_rank(rank) % devices));
    CUDA(cudaMalloc((void **)&send, sizeof(mine)));
    CUDA(cudaMalloc((void **)&recv, sizeof(mine)));
    CUDA(cudaStreamCreate(&stream));
    NCCL(ncclCommInitRank(&comm, size, id, rank));
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < COUNT; i++) {
            mine[i] = (float)((i * 7 + rank * 11 + turn) % 100);
        }
        MPI_Allreduce(mine, theirs, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        CUDA(cudaMemcpyAsync(send, mine, sizeof(mine), cudaMemcpyHostToDevice, stream));
        NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
        CUDA(cudaMemcpyAsync(ours, recv, sizeof(ours), cudaMemcpyDeviceToHost, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            if (ours[i] == theirs[i]) continue;
            fprintf(stderr, "rank %d, turn %d: element %d is %g, MPI has %g\n", rank, turn, i,
                    (double)ours[i], (double)theirs[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    MPI_Finalize();
    if (rank == 0) printf("mpi_process_per_device: %d ranks ok\n", size);
    return 0;
}
