/* No launcher at all: the program forks one process per device before it touches CUDA, and hands
 * the id over through pipes. A ring of sends passes a token round, then all add up. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, COUNT = 2048 };

static void ring(ncclComm_t comm, int rank, float *token, cudaStream_t stream)
{
    int next = (rank + 1) % PROCESSES;
    int before = (rank + PROCESSES - 1) % PROCESSES;
    fill(token, COUNT, 1);
    if (rank == 0) {
        NCCL(ncclSend(token, COUNT, ncclFloat, next, comm, stream));
        NCCL(ncclRecv(token, COUNT, ncclFloat, before, comm, stream));
    } else {
        NCCL(ncclRecv(token, COUNT, ncclFloat, before, comm, stream));
        NCCL(ncclSend(token, COUNT, ncclFloat, next, comm, stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    expect(token, COUNT, 1, "token");
}

static int run(int rank, const ncclUniqueId *id)
{
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, PROCESSES, *id, rank));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    ring(comm, rank, buffer, stream);
    fill(buffer, COUNT, (float)(1 << rank));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(buffer, COUNT, (1 << PROCESSES) - 1, "sum");
    CUDA(cudaFree(buffer));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    return 0;
}

int main(void)
{
    int pipes[PROCESSES][2];
    ncclUniqueId id;
    int failed = 0;
    for (int r = 0; r < PROCESSES; r++) {
        if (pipe(pipes[r])) return 1;
    }
    for (int r = 1; r < PROCESSES; r++) {
        if (fork()) continue;
        if (read(pipes[r][0], &id, sizeof(id)) != (ssize_t)sizeof(id)) return 1;
        return run(r, &id);
    }
    NCCL(ncclGetUniqueId(&id));
    for (int r = 1; r < PROCESSES; r++) {
        if (write(pipes[r][1], &id, sizeof(id)) != (ssize_t)sizeof(id)) return 1;
    }
    run(0, &id);
    for (int r = 1; r < PROCESSES; r++) {
        int status = 0;
        wait(&status);
        failed += status != 0;
    }
    if (!failed) printf("forked: ok\n");
    return failed;
}
