/* `graph-replay`: 1,000 replays with changing contents, interleaved with direct calls and with a
 * second graph of the same communicator. */
#include "harness.h"

enum { COUNT = 512, REPLAYS = 1000 };

static cudaGraphExec_t capture(struct harness_rank *r, const float *send, float *recv, int calls)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; i++) {
        NCCL(ncclAllReduce(i ? recv : send, recv, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    }
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

static void check(const float *got, float want, const char *what, int turn)
{
    for (int i = 0; i < COUNT; i++) {
        if (got[i] != want)
            harness_fail(__FILE__, __LINE__, "%s, turn %d: element %d is %g, not %g", what, turn, i,
                         (double)got[i], (double)want);
    }
}

static void run(struct harness_rank *r)
{
    float *send = harness_device_alloc(COUNT * sizeof(float));
    float *one = harness_device_alloc(COUNT * sizeof(float));
    float *two = harness_device_alloc(COUNT * sizeof(float));
    float n = (float)r->nranks;
    cudaGraphExec_t first = capture(r, send, one, 1);
    cudaGraphExec_t second = capture(r, send, two, 2);
    for (int turn = 0; turn < REPLAYS; turn++) {
        for (int i = 0; i < COUNT; i++) {
            send[i] = (float)(turn % 100 + r->rank);
        }
        float sum = (float)(turn % 100) * n + n * (n - 1) / 2;
        CUDA(cudaGraphLaunch(first, r->stream));
        if (turn % 3 == 0) CUDA(cudaGraphLaunch(second, r->stream));
        CUDA(cudaStreamSynchronize(r->stream));
        check(one, sum, "first graph", turn);
        if (turn % 3 == 0) check(two, sum * n, "second graph", turn);
        if (turn % 5 == 0) {
            NCCL(ncclAllReduce(send, send, COUNT, ncclFloat, ncclMax, r->comm, r->stream));
            CUDA(cudaStreamSynchronize(r->stream));
            check(send, (float)(turn % 100) + n - 1, "direct call", turn);
        }
    }
    CUDA(cudaGraphExecDestroy(first));
    CUDA(cudaGraphExecDestroy(second));
    CUDA(cudaFree(send));
    CUDA(cudaFree(one));
    CUDA(cudaFree(two));
}

int main(void)
{
    harness_processes(2, run, NULL, 0);
    harness_threads(3, run, NULL, 0);
    printf("graph-replay: ok\n");
    return 0;
}
