/* One MPI process per device, as the user guide has it; nothing in it knows Tutti. With an
 * argument, even and odd ranks make a communicator each, at the same time. */
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100003 };

static void must(int rc, const char *what, const char *why)
{
    if (rc == 0) return;
    (void)fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t rc = (call);                                                                   \
        must(rc, #call, cudaGetErrorString(rc));                                                   \
    } while (0)
#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t rc = (call);                                                                  \
        must(rc, #call, ncclGetLastError(NULL));                                                   \
    } while (0)

/* Wrong elements of the sum over ranks of (rank + 1) * i. */
static int count_wrong(const float *values, int nranks)
{
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += values[i] != (float)(i % 1000) * (float)(nranks * (nranks + 1) / 2);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, nranks, local;
    MPI_Comm all, host;
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *values, *sums, *plain = malloc(COUNT * sizeof(float));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, argc > 1 ? rank % 2 : 0, rank, &all);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &nranks);
    if (rank == 0) NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, all);
    CUDA(cudaSetDevice(local));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&values, COUNT * sizeof(float)));
    CUDA(cudaMalloc((void **)&sums, COUNT * sizeof(float)));
    for (int i = 0; i < COUNT; i++)
        plain[i] = (float)(i % 1000) * (float)(rank + 1);
    CUDA(cudaMemcpy(values, plain, COUNT * sizeof(float), cudaMemcpyHostToDevice));
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    NCCL(ncclAllReduce(values, sums, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(plain, sums, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = count_wrong(plain, nranks), all_wrong = 0;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, all);
    if (rank == 0) printf("%d ranks, %d wrong\n", nranks, all_wrong);
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    free(plain);
    MPI_Finalize();
    return all_wrong != 0;
}
