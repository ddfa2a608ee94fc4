/* A grid of ranks: a communicator per row, one per column, and a sum over each.
 *   tutti run -n 6 ./split */
#include "check.h"

enum { COLUMNS = 2 };

static float sum(float number, ncclComm_t comm, cudaStream_t stream, float *device)
{
    CUDA(cudaMemcpyAsync(device, &number, sizeof(number), cudaMemcpyHostToDevice, stream));
    NCCL(ncclAllReduce(device, device, 1, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(&number, device, sizeof(number), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    return number;
}

int main(void)
{
    int rank = from_launcher("RANK", 0);
    int nranks = from_launcher("WORLD_SIZE", 1);
    int row = rank / COLUMNS;
    int column = rank % COLUMNS;
    ncclUniqueId id;
    ncclComm_t world;
    ncclComm_t across;
    ncclComm_t down;
    cudaStream_t stream;
    float *device;

    CUDA(cudaSetDevice(from_launcher("LOCAL_RANK", 0)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&world, nranks, id, rank));
    NCCL(ncclCommSplit(world, row, rank, &across, NULL));  /* same row: one communicator */
    NCCL(ncclCommSplit(world, column, rank, &down, NULL)); /* same column: one communicator */
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&device, sizeof(float)));

    float want_across = 0;
    float want_down = 0;
    for (int r = 0; r < nranks; r++) {
        want_across += r / COLUMNS == row ? (float)r : 0;
        want_down += r % COLUMNS == column ? (float)r : 0;
    }
    float got_across = sum((float)rank, across, stream, device);
    float got_down = sum((float)rank, down, stream, device);
    int wrong = (got_across != want_across) + (got_down != want_down);
    printf("rank %d: row %d sums to %g, column %d to %g, %d wrong\n", rank, row, (double)got_across,
           column, (double)got_down, wrong);

    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(down));
    NCCL(ncclCommDestroy(across));
    NCCL(ncclCommDestroy(world));
    return wrong != 0;
}
