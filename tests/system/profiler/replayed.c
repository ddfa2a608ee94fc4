/* What a profiler is to see of graphs: one graph with an AllReduce and a ring of messages, launched
 * three times, with a direct AllReduce in between. usage: replayed MODE [RANKS] */
#include "../harness/world.h"

#include <stdio.h>

enum { COUNT = 3000, LAUNCHES = 3 };

static ncclResult_t ring(const struct world_rank *own, int n, const float *in, float *out)
{
    ncclResult_t rc = ncclGroupStart();
    if (!rc) rc = ncclSend(in, COUNT, ncclFloat32, (own->rank + 1) % n, own->comm, own->stream);
    if (!rc)
        rc = ncclRecv(out, COUNT, ncclFloat32, (own->rank + n - 1) % n, own->comm, own->stream);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

static int check(const struct world_rank *own, int n, const float *sum, const float *got, int turn)
{
    float total = (float)(turn * n + n * (n - 1) / 2);
    float previous = (float)(turn + (own->rank + n - 1) % n);
    if (sum[COUNT - 1] == total && got[COUNT - 1] == previous) return 0;
    printf("wrong: rank %d, launch %d: %g and %g, not %g and %g\n", own->rank, turn,
           (double)sum[COUNT - 1], (double)got[COUNT - 1], (double)total, (double)previous);
    return 1;
}

static int body(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    int failures = 0;
    float *in, *sum, *got;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    world_check_cuda(cudaMalloc((void **)&in, COUNT * sizeof(float)), "cudaMalloc");
    world_check_cuda(cudaMalloc((void **)&sum, COUNT * sizeof(float)), "cudaMalloc");
    world_check_cuda(cudaMalloc((void **)&got, COUNT * sizeof(float)), "cudaMalloc");
    world_check_cuda(cudaStreamBeginCapture(own->stream, cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture");
    world_check(ncclAllReduce(in, sum, COUNT, ncclFloat32, ncclSum, own->comm, own->stream),
                "ncclAllReduce");
    world_check(ring(own, team->nranks, in, got), "ring");
    world_check_cuda(cudaStreamEndCapture(own->stream, &graph), "cudaStreamEndCapture");
    world_check_cuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    for (int turn = 0; turn < LAUNCHES; turn++) {
        for (int i = 0; i < COUNT; i++) {
            in[i] = (float)(turn + own->rank);
        }
        world_check_cuda(cudaGraphLaunch(exec, own->stream), "cudaGraphLaunch");
        world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
        failures += check(own, team->nranks, sum, got, turn);
        world_check(ncclAllReduce(in, sum, COUNT, ncclFloat32, ncclSum, own->comm, own->stream),
                    "ncclAllReduce");
        world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    }
    world_check_cuda(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    world_check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    world_check_cuda(cudaFree(in), "cudaFree");
    world_check_cuda(cudaFree(sum), "cudaFree");
    world_check_cuda(cudaFree(got), "cudaFree");
    return failures;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int nranks = world_ranks(argc > 2 ? argv[2] : NULL, 2, 8);
    if (!mode || (mode->processes == 1 && mode->threads == 1) || !nranks) {
        fprintf(stderr, "usage: replayed threads|processes|mixed [2..8]\n");
        return 2;
    }
    return world_run(mode, nranks, body, NULL) ? 1 : 0;
}
