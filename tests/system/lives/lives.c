/* Communicators made of communicators: split with colors and keys, without a color, sharing;
 * shrink; the ways to end. Each child is used. usage: lives MODE */
#include "../harness/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 3000 };

static int use(struct world_team *team, int k, ncclComm_t comm, int nranks)
{
    struct world_rank own = team->ranks[k];
    void *in, *out;
    float sum = 0;
    int rank, wrong = 0;
    world_check(ncclCommUserRank(comm, &rank), "ncclCommUserRank");
    world_check_cuda(cudaSetDevice(own.device), "cudaSetDevice");
    world_check_cuda(cudaMalloc(&in, (size_t)COUNT * 4), "cudaMalloc");
    world_check_cuda(cudaMalloc(&out, (size_t)COUNT * 4), "cudaMalloc");
    for (int i = 0; i < COUNT; i++) {
        ((float *)in)[i] = (float)(rank + 1);
    }
    world_check(ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, comm, own.stream),
                "ncclAllReduce of a child");
    world_check_cuda(cudaStreamSynchronize(own.stream), "cudaStreamSynchronize");
    for (int r = 0; r < nranks; r++) {
        sum += (float)(r + 1);
    }
    for (int i = 0; i < COUNT; i++) {
        wrong |= ((float *)out)[i] != sum;
    }
    world_check_cuda(cudaFree(in), "cudaFree");
    world_check_cuda(cudaFree(out), "cudaFree");
    if (wrong) printf("wrong: rank %d of a child of %d ranks\n", rank, nranks);
    return wrong;
}

static int expect(int found, int wanted, const char *what)
{
    if (found == wanted) return 0;
    printf("wrong: %s is %d, not %d\n", what, found, wanted);
    return 1;
}

/* Even and odd ranks, in descending order of rank. */
static int split_by_color(struct world_team *team, bool share)
{
    const struct world_rank *own = &team->ranks[0];
    ncclComm_t child;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int rank, count, failures = 0;
    config.splitShare = share;
    world_check(ncclCommSplit(own->comm, own->rank % 2, -own->rank, &child, share ? &config : NULL),
                "ncclCommSplit");
    world_check(ncclCommUserRank(child, &rank), "ncclCommUserRank");
    world_check(ncclCommCount(child, &count), "ncclCommCount");
    failures += expect(count, 2, "size of a child");
    failures += expect(rank, own->rank < 2 ? 1 : 0, "rank by key");
    failures += use(team, 0, child, 2);
    world_check(ncclCommDestroy(child), "ncclCommDestroy of a child");
    return failures;
}

/* One rank takes part and gets nothing. */
static int split_without(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    ncclComm_t child;
    bool out = own->rank == 1;
    int failures = 0;
    world_check(ncclCommSplit(own->comm, out ? NCCL_SPLIT_NOCOLOR : 7, 0, &child, NULL),
                "ncclCommSplit");
    failures += expect(child == NULL, out, "no communicator");
    if (child) {
        failures += use(team, 0, child, RANKS - 1);
        world_check(ncclCommFinalize(child), "ncclCommFinalize");
        world_check(ncclCommDestroy(child), "ncclCommDestroy");
    }
    return failures;
}

static int shrink(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    ncclComm_t child;
    int exclude[] = {3, 0}, failures = 0, rank;
    if (own->rank != 0 && own->rank != 3) {
        world_check(ncclCommShrink(own->comm, exclude, 2, &child, NULL, NCCL_SHRINK_DEFAULT),
                    "ncclCommShrink");
        world_check(ncclCommUserRank(child, &rank), "ncclCommUserRank");
        failures += expect(rank, own->rank - 1, "rank after shrinking");
        failures += use(team, 0, child, 2);
        world_check(ncclCommDestroy(child), "ncclCommDestroy");
    }
    return failures;
}

/* A child that is aborted while its parent lives on. */
static int abort_child(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    ncclComm_t child;
    world_check(ncclCommSplit(own->comm, 0, 0, &child, NULL), "ncclCommSplit");
    int failures = use(team, 0, child, RANKS);
    world_check(ncclCommAbort(child), "ncclCommAbort");
    return failures + use(team, 0, own->comm, RANKS);
}

static int body(struct world_team *team)
{
    int failures = 0;
    failures += split_by_color(team, false);
    failures += split_without(team);
    failures += split_by_color(team, true);
    failures += shrink(team);
    failures += abort_child(team);
    return failures;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    if (!mode || strcmp(argv[1], "one-thread") == 0) {
        fprintf(stderr, "usage: lives threads|processes|mixed\n");
        return 2;
    }
    int failures = world_run(mode, RANKS, body, NULL);
    printf("%d wrong\n", failures);
    return failures ? 1 : 0;
}
