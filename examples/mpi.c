/* An MPI program: MPI starts the ranks and carries the unique id, NCCL does the rest. Started by
 * the MPI's own launcher:
 *   make mpi && eval "$(tutti env --shell)" && mpirun -n 4 ./mpi */
#include "check.h"

#include <mpi.h>

enum { COUNT = 1000 };

int main(int argc, char **argv)
{
    int rank;
    int nranks;
    int local_rank;
    int ndevices;
    MPI_Comm local;
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *device;
    float host[COUNT];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &local_rank);
    CUDA(cudaGetDeviceCount(&ndevices));
    CUDA(cudaSetDevice(local_rank % ndevices));

    if (rank == 0) NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&device, sizeof(host)));
    for (int i = 0; i < COUNT; i++) {
        host[i] = 1;
    }
    CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += host[i] != (float)nranks;
    }
    printf("rank %d of %d: %d wrong\n", rank, nranks, wrong);
    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    MPI_Comm_free(&local);
    MPI_Finalize();
    return wrong != 0;
}
