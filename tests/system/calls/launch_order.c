/* Two threads launch graphs that hold collectives of one communicator: the same graph from two
 * executables on two streams, two graphs on one stream. Launches agree on one order, so that none
 * waits for one behind it. All write one result, which is not read: TUTTI_CHECK=race names that,
 * on two streams, and nothing else.
 * usage: launch_order */
#include "../harness/harness.h"

#include <pthread.h>
#include <unistd.h>

enum { LAUNCHES = 20000, COUNT = 16, TIMEOUT_SEC = 100 };

struct launcher {
    cudaGraphExec_t exec;
    cudaStream_t stream;
};

static cudaGraph_t capture(const struct harness_rank *r, const float *in, float *out, int calls)
{
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < calls; k++)
        NCCL(ncclAllReduce(in, out, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    return graph;
}

static void *launch(void *arg)
{
    const struct launcher *own = arg;
    for (int k = 0; k < LAUNCHES; k++) {
        CUDA(cudaGraphLaunch(own->exec, own->stream));
        if (k % 16 == 15) CUDA(cudaStreamSynchronize(own->stream));
    }
    CUDA(cudaStreamSynchronize(own->stream));
    return NULL;
}

static void together(struct launcher *launchers)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, launch, &launchers[i]));
    for (int i = 0; i < 2; i++) {
        CHECK(!pthread_join(threads[i], NULL));
        CUDA(cudaGraphExecDestroy(launchers[i].exec));
    }
}

static void body(struct harness_rank *r)
{
    float *in = harness_device_alloc(COUNT * sizeof(float));
    float *out = harness_device_alloc(COUNT * sizeof(float));
    CUDA(cudaMemset(in, 0, COUNT * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    struct launcher launchers[2];
    cudaStream_t other;
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaGraph_t one = capture(r, in, out, 1);
    cudaGraph_t two = capture(r, in, out, 2);

    for (int i = 0; i < 2; i++) {
        CUDA(cudaGraphInstantiate(&launchers[i].exec, one, 0));
        launchers[i].stream = i ? other : r->stream;
    }
    together(launchers);

    for (int i = 0; i < 2; i++) {
        CUDA(cudaGraphInstantiate(&launchers[i].exec, i ? two : one, 0));
        launchers[i].stream = other;
    }
    together(launchers);

    CUDA(cudaGraphDestroy(one));
    CUDA(cudaGraphDestroy(two));
    CUDA(cudaStreamDestroy(other));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

int main(void)
{
    alarm(TIMEOUT_SEC); /* a wait for ever ends here */
    harness_threads(1, body, NULL, 0);
    return 0;
}
