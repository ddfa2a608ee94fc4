/* Over sockets a receiver that comes later than any time-out of TCP is waited for: what was sent
 * fills the buffers, and the window stays closed for 12 s. */
#include "../harness/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 16 << 20, LATE_SEC = 12 };

static void exchange(const struct world_rank *rank, void *memory)
{
    if (rank->rank == 0) {
        world_check(ncclSend(memory, BYTES, ncclChar, 1, rank->comm, rank->stream), "ncclSend");
    } else {
        world_check(ncclRecv(memory, BYTES, ncclChar, 0, rank->comm, rank->stream), "ncclRecv");
    }
}

static int body(struct world_team *team)
{
    const struct world_rank *rank = &team->ranks[0];
    static char bytes[BYTES];
    void *memory;
    world_check_cuda(cudaMalloc(&memory, BYTES), "cudaMalloc");
    world_check_cuda(cudaMemset(memory, rank->rank ? 0 : 7, BYTES), "cudaMemset");
    exchange(rank, memory); /* connects */
    world_check_cuda(cudaStreamSynchronize(rank->stream), "cudaStreamSynchronize");
    if (rank->rank == 1) {
        world_check_cuda(cudaMemset(memory, 0, BYTES), "cudaMemset");
        sleep(LATE_SEC);
    }
    exchange(rank, memory);
    world_check_cuda(cudaStreamSynchronize(rank->stream), "cudaStreamSynchronize");
    ncclResult_t state;
    world_check(ncclCommGetAsyncError(rank->comm, &state), "ncclCommGetAsyncError");
    world_check(state, "the communicator");
    world_check_cuda(cudaMemcpy(bytes, memory, BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int i = 0; i < BYTES; i++) {
        if (bytes[i] == 7) continue;
        printf("rank %d: byte %d is %d\n", rank->rank, i, bytes[i]);
        return 1;
    }
    return 0;
}

int main(void)
{
    return world_run(world_mode("processes"), 2, body, NULL) != 0;
}
