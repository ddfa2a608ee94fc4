/* A graph launch and direct calls on other streams happen in the order in which the host issued
 * them, whatever the streams do in between: one rank's graph is held back by a host function, the
 * other's is not. And two executable graphs of one captured graph may be in flight together. */
#include "../harness/harness.h"

#include <stdatomic.h>
#include <string.h>

enum { COUNT = 3000, TURNS = 50 };

static void fill(float *buffer, float value)
{
    for (int i = 0; i < COUNT; i++) {
        buffer[i] = value;
    }
}

static void expect(const float *buffer, float want, const char *what)
{
    for (int i = 0; i < COUNT; i++) {
        if (buffer[i] != want)
            harness_fail(__FILE__, __LINE__, "%s: element %d is %g, not %g", what, i,
                         (double)buffer[i], (double)want);
    }
}

static cudaGraph_t capture(struct harness_rank *r, float *buffer)
{
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    return graph;
}

static void hold(void *arg)
{
    _Atomic int *go = arg;
    while (!atomic_load(go)) { /* the test's own thread sets it */
    }
}

static void held_back(struct harness_rank *r, cudaStream_t other)
{
    float *captured = harness_device_alloc(COUNT * sizeof(float));
    float *direct = harness_device_alloc(COUNT * sizeof(float));
    float n = (float)r->nranks;
    cudaGraph_t graph = capture(r, captured);
    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 0; turn < TURNS; turn++) {
        _Atomic int go = 0;
        fill(captured, 1);
        fill(direct, (float)r->rank);
        if ((turn + r->rank) % 2) CUDA(cudaLaunchHostFunc(r->stream, hold, &go));
        CUDA(cudaGraphLaunch(exec, r->stream));
        NCCL(ncclAllReduce(direct, direct, COUNT, ncclFloat, ncclMax, r->comm, other));
        CUDA(cudaGraphLaunch(exec, r->stream)); /* queued twice: a sequence number for each */
        NCCL(ncclAllReduce(direct, direct, COUNT, ncclFloat, ncclSum, r->comm, other));
        atomic_store(&go, 1);
        CUDA(cudaStreamSynchronize(r->stream));
        CUDA(cudaStreamSynchronize(other));
        expect(captured, n * n, "graph launched twice");
        expect(direct, (n - 1) * n, "direct calls beside it");
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(captured));
    CUDA(cudaFree(direct));
}

static void two_of_one(struct harness_rank *r, cudaStream_t other)
{
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    cudaGraph_t graph = capture(r, buffer);
    cudaGraphExec_t execs[2];
    for (int e = 0; e < 2; e++) {
        CUDA(cudaGraphInstantiate(&execs[e], graph, 0));
    }
    for (int turn = 0; turn < TURNS; turn++) {
        fill(buffer, 1);
        CUDA(cudaGraphLaunch(execs[turn % 2], r->stream));
        CUDA(cudaGraphLaunch(execs[1 - turn % 2], other));
        CUDA(cudaStreamSynchronize(other));
        CUDA(cudaStreamSynchronize(r->stream));
        expect(buffer, (float)(r->nranks * r->nranks), "two executable graphs of one");
    }
    for (int e = 0; e < 2; e++) {
        CUDA(cudaGraphExecDestroy(execs[e]));
    }
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(buffer));
}

static void run(struct harness_rank *r)
{
    cudaStream_t other;
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    held_back(r, other);
    two_of_one(r, other);
    CUDA(cudaStreamDestroy(other));
}

int main(void)
{
    harness_processes(2, run, NULL, 0);
    harness_threads(3, run, NULL, 0);
    printf("graph-order: ok\n");
    return 0;
}
