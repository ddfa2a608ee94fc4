/* A graph is launched in one thread while another one calls the same communicator, on one stream:
 * whichever comes first there comes first in the communicator's order, too, or both wait for ever.
 * The graph sends and the call receives, so either order is legal. */
#include "../harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 2000 };

struct pair { /* the two threads of rank 0 */
    struct harness_rank *rank;
    cudaGraphExec_t graph;
    float *buffer;
    _Atomic int round, done; /* rounds begun, launches made */
};

static void *launch(void *arg)
{
    struct pair *pair = arg;
    CUDA(cudaSetDevice(pair->rank->device));
    for (int k = 1; k <= ROUNDS; k++) {
        while (atomic_load(&pair->round) < k)
            sched_yield();
        CUDA(cudaGraphLaunch(pair->graph, pair->rank->stream));
        atomic_store(&pair->done, k);
    }
    return NULL;
}

static void both(struct harness_rank *rank)
{
    struct pair pair = {.rank = rank, .buffer = harness_device_alloc(2 * sizeof(float))};
    cudaGraph_t graph;
    pthread_t thread;
    CUDA(cudaStreamBeginCapture(rank->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclSend(pair.buffer, 1, ncclFloat, 1, rank->comm, rank->stream));
    CUDA(cudaStreamEndCapture(rank->stream, &graph));
    CUDA(cudaGraphInstantiate(&pair.graph, graph, 0));
    CHECK(pthread_create(&thread, NULL, launch, &pair) == 0);
    for (int k = 1; k <= ROUNDS; k++) {
        atomic_store(&pair.round, k);
        for (volatile int wait = k % 64 * 4; wait > 0; wait--)
            continue;
        NCCL(ncclRecv(pair.buffer + 1, 1, ncclFloat, 1, rank->comm, rank->stream));
        while (atomic_load(&pair.done) < k)
            sched_yield();
        CUDA(cudaStreamSynchronize(rank->stream));
    }
    pthread_join(thread, NULL);
    CUDA(cudaGraphExecDestroy(pair.graph));
    CUDA(cudaGraphDestroy(graph));
}

static void run(struct harness_rank *rank)
{
    if (rank->rank == 0) {
        both(rank);
        return;
    }
    float *buffer = harness_device_alloc(2 * sizeof(*buffer));
    for (int k = 1; k <= ROUNDS; k++) {
        NCCL(ncclGroupStart());
        NCCL(ncclRecv(buffer, 1, ncclFloat, 0, rank->comm, rank->stream));
        NCCL(ncclSend(buffer + 1, 1, ncclFloat, 0, rank->comm, rank->stream));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(rank->stream));
    }
}

int main(void)
{
    harness_processes(2, run, NULL, 0);
    puts("beside: a stream has the order of the communicator");
    return 0;
}
