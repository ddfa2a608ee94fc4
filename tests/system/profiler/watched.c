/* What a profiler is to see of a whole life: two communicators in one group, messages to one peer
 * that follow one another, exchanges and tags, and a communicator that is aborted in mid flight.
 * usage: watched MODE [RANKS] */
#include "../harness/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 40000, CHAIN = 3, TAG = 4711 };

struct buffers {
    float *in, *out;
};

static void chain(const struct world_rank *own, int n, const struct buffers *mem, ncclComm_t comm,
                  cudaStream_t stream)
{
    int next = (own->rank + 1) % n, last = (own->rank + n - 1) % n;
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (size_t k = 0; k < CHAIN; k++) {
        world_check(ncclSend(mem->in + k, COUNT / 2, ncclFloat32, next, comm, stream), "ncclSend");
        world_check(ncclRecv(mem->out + k * COUNT / 2, COUNT / 2, ncclFloat32, last, comm, stream),
                    "ncclRecv");
    }
    world_check(ncclGroupEnd(), "chain");
}

/* Every call of the group has run, watched or not. */
static void check_group(const struct world_rank *own, size_t n, const struct buffers *mem,
                        size_t part)
{
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    for (size_t i = 0; i < 2 * part; i++) {
        size_t k = i % part;
        if (k >= 20) continue;
        float want = k < 10 ? (float)(n * (k + 1)) : (float)(k - 10 + 1);
        if (mem->out[i] == want) continue;
        fprintf(stderr, "rank %d: word %zu is %g, not %g\n", own->rank, i, mem->out[i], want);
        exit(1);
    }
}

static void collectives(const struct world_rank *own, size_t n, const struct buffers *mem,
                        ncclComm_t other)
{
    ncclComm_t comm = own->comm;
    cudaStream_t stream = own->stream;
    size_t part = COUNT / n;
    const ncclComm_t both[2] = {comm, other};
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < 2; k++) {
        float *out = mem->out + (size_t)k * part;
        world_check(ncclAllReduce(mem->in, out, 10, ncclFloat32, ncclSum, both[k], stream),
                    "ncclAllReduce");
        world_check(ncclBroadcast(mem->in, out + 10, 10, ncclFloat32, 0, both[k], stream),
                    "ncclBroadcast");
    }
    world_check(ncclGroupEnd(), "group over two communicators");
    check_group(own, n, mem, part);
    world_check(ncclReduce(mem->in, mem->out, COUNT, ncclFloat32, ncclMax, 0, comm, stream),
                "ncclReduce");
    world_check(ncclReduceScatter(mem->in, mem->out, part, ncclFloat32, ncclSum, comm, stream),
                "ncclReduceScatter");
    world_check(ncclAllGather(mem->in, mem->out, part, ncclFloat32, comm, stream), "ncclAllGather");
    world_check(ncclGather(mem->in, mem->out, part, ncclFloat32, 0, comm, stream), "ncclGather");
    world_check(ncclScatter(mem->in, mem->out, part, ncclFloat32, 0, comm, stream), "ncclScatter");
}

static void tagged(const struct world_rank *own, size_t n, const struct buffers *mem)
{
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.userProfilerTag = TAG;
    world_check(ncclAllReduceConfig(mem->in, mem->out, COUNT, ncclFloat32, ncclSum, own->comm,
                                    own->stream, &config),
                "ncclAllReduceConfig");
    /* between two ranks without shared memory longer than what is one program */
    world_check(ncclAlltoAllConfig(mem->in, mem->out, 2 * COUNT / n, ncclFloat32, own->comm,
                                   own->stream, &config),
                "ncclAlltoAllConfig");
}

/* Rank 0 begins what no rank answers; then all abort. */
static void abort_under_way(const struct world_rank *own, int n, const struct buffers *mem,
                            ncclComm_t comm)
{
    cudaStream_t stream;
    float *word = mem->out;
    world_check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    if (own->rank == 0) {
        world_check(ncclAllReduce(mem->in, mem->in, COUNT, ncclFloat32, ncclSum, comm, stream),
                    "ncclAllReduce");
        chain(own, n, mem, comm, stream);
    }
    world_check(ncclAllReduce(word, word, 1, ncclFloat32, ncclSum, own->comm, own->stream),
                "ncclAllReduce");
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    world_check(ncclCommAbort(comm), "ncclCommAbort");
    cudaStreamSynchronize(stream);
    world_check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static int body(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    int n = team->nranks;
    struct buffers mem;
    ncclComm_t other;
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    world_check_cuda(cudaMalloc((void **)&mem.in, 2 * COUNT * sizeof(float)), "cudaMalloc");
    world_check_cuda(cudaMalloc((void **)&mem.out, 2 * COUNT * sizeof(float)), "cudaMalloc");
    for (size_t i = 0; i < 2 * COUNT; i++) {
        mem.in[i] = (float)(i % 100 + 1);
        mem.out[i] = -1;
    }
    world_check(ncclCommSplit(own->comm, 0, own->rank, &other, NULL), "ncclCommSplit");
    collectives(own, (size_t)n, &mem, other);
    chain(own, n, &mem, own->comm, own->stream);
    tagged(own, (size_t)n, &mem);
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    abort_under_way(own, n, &mem, other);
    world_check_cuda(cudaFree(mem.in), "cudaFree");
    world_check_cuda(cudaFree(mem.out), "cudaFree");
    return 0;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int nranks = world_ranks(argc > 2 ? argv[2] : NULL, 2, 8);
    if (!mode || (mode->processes == 1 && mode->threads == 1) || !nranks) {
        fprintf(stderr, "usage: watched threads|processes|mixed [2..8]\n");
        return 2;
    }
    return world_run(mode, nranks, body, NULL) ? 1 : 0;
}
