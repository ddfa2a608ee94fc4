/* Collectives on any memory, mixed among the ranks: malloc, mmap, static, and another device's.
 * usage: foreign_memory MODE [RANKS] */
#include "../harness/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20, KINDS = 5 };

static char static_memory[WORLD_MAX][2][BYTES];

static void *memory_of(int kind, const struct world_rank *own, int which, int nranks)
{
    void *ptr = NULL;
    switch (kind) {
    case 0: return malloc(BYTES);
    case 1:
        ptr = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return ptr == MAP_FAILED ? NULL : ptr;
    case 2: return static_memory[own->rank][which];
    case 3: world_check_cuda(cudaSetDevice((own->device + 1) % nranks), "cudaSetDevice"); break;
    default: world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice"); break;
    }
    world_check_cuda(cudaMalloc(&ptr, BYTES), "cudaMalloc");
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    return ptr;
}

static void memory_free(int kind, void *ptr)
{
    if (kind == 0) free(ptr);
    if (kind == 1) munmap(ptr, BYTES);
    if (kind > 2) world_check_cuda(cudaFree(ptr), "cudaFree");
}

static int run_all(struct world_team *team, void *const *in, void *const *out)
{
    static const size_t counts[] = {1, 1000, 60000};
    int failures = 0;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        failures += checked_allreduce(team, in, out, counts[c]);
        failures += checked_allreduce(team, in, in, 1); /* whatever follows an in-place call */
        failures += checked_alltoall(team, in, out, counts[c] / (size_t)team->nranks + 1);
        failures += checked_broadcast(team, in, out, counts[c], team->nranks - 1);
        failures += checked_ring(team, in, out, counts[c]);
    }
    return failures;
}

/* All memory of a team, made before and freed after everything: cudaFree() waits for the memory's
 * device, which may be a peer's that waits for us. */
struct pool {
    void *in[WORLD_MAX][KINDS], *out[WORLD_MAX][KINDS];
};

static int body(struct world_team *team)
{
    int failures = 0;
    static struct pool pools[WORLD_MAX]; /* by the team's first rank */
    struct pool *pool = &pools[team->ranks[0].rank];
    for (int k = 0; k < team->count; k++) {
        for (int kind = 0; kind < KINDS; kind++) {
            pool->in[k][kind] = memory_of(kind, &team->ranks[k], 0, team->nranks);
            pool->out[k][kind] = memory_of(kind, &team->ranks[k], 1, team->nranks);
            if (!pool->in[k][kind] || !pool->out[k][kind]) return 1;
        }
    }
    for (int round = 0; round < 2 * KINDS; round++) {
        void *in[WORLD_MAX], *out[WORLD_MAX];
        for (int k = 0; k < team->count; k++) {
            /* first all alike, then all different */
            int kind = round < KINDS ? round : (round + team->ranks[k].rank) % KINDS;
            in[k] = pool->in[k][kind];
            out[k] = pool->out[k][(kind + round / KINDS) % KINDS];
        }
        failures += run_all(team, in, out);
    }
    for (int k = 0; k < team->count; k++) {
        for (int kind = 0; kind < KINDS; kind++) {
            memory_free(kind, pool->in[k][kind]);
            memory_free(kind, pool->out[k][kind]);
        }
    }
    if (team->ranks[0].rank == 0) printf("%d rounds, %d wrong\n", 2 * KINDS, failures);
    return failures;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int nranks = world_ranks(argc > 2 ? argv[2] : NULL, 4, 8);
    if (!mode || !nranks) {
        fprintf(stderr, "usage: foreign_memory one-thread|threads|processes|mixed [2..8]\n");
        return 2;
    }
    return world_run(mode, nranks, body, NULL) ? 1 : 0;
}
