/* Buffers that are input and output at once, while ranks come at different times: no rank may read
 * what its owner has overwritten already. Every operation that may be in place, 2 to 8 ranks, from
 * 8 bytes to megabytes, each rank late by a different time at every call.
 * usage: in_place MODE      MODE: threads, processes, mixed */
#include "../harness/world.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum func {
    ALL_REDUCE,
    REDUCE,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    SUM_TO_ALL, /* an AlltoAll of what an AllReduce before it in the group leaves in its buffer */
    FUNC_COUNT_
};

static const char *const names[] = {"AllReduce", "Reduce",    "ReduceScatter",
                                    "Broadcast", "AllGather", "AlltoAll",
                                    "Gather",    "Scatter",   "AllReduce and AlltoAll"};
static const size_t counts[] = {2, 100, 3000, 70000}; /* of int32, in each block */

enum { TURNS = 4, MOST_RANKS = 8 };

struct one {
    enum func func;
    size_t count;
    int root, turn, nranks;
};

static uint32_t mixed(uint32_t value)
{
    value = (value ^ value >> 16) * 0x45d9f3bu;
    return (value ^ value >> 15) * 0x119de1f3u;
}

/* What each rank gives in turn 0, by element of its whole buffer. */
static int32_t *inputs[MOST_RANKS];

static void inputs_make(void)
{
    size_t most = counts[3] * MOST_RANKS;
    for (int rank = 0; rank < MOST_RANKS; rank++) {
        inputs[rank] = malloc(most * sizeof(int32_t));
        if (!inputs[rank]) abort();
        for (size_t i = 0; i < most; i++)
            inputs[rank][i] = (int32_t)(mixed((uint32_t)(i * 16 + (size_t)rank)) % 1000);
    }
}

/* Late by 0 to some 100 us. */
static void delay(const struct one *c, int rank)
{
    uint32_t hash = mixed((uint32_t)(c->turn * 64 + rank) + (uint32_t)c->count);
    volatile uint32_t sink = 0;
    uint32_t rounds = hash % 3 ? hash % 2000 : hash % 50000;
    for (uint32_t k = 0; k < rounds; k++)
        sink = sink + k;
}

static int32_t input(const struct one *c, int rank, size_t index)
{
    return inputs[rank][index] + c->turn;
}

/* The rank's whole buffer: blocks of one element type, of which some are input. */
static size_t nblocks(const struct one *c)
{
    return c->func == ALL_REDUCE || c->func == REDUCE || c->func == BROADCAST ? 1
                                                                              : (size_t)c->nranks;
}

static int32_t summed(const struct one *c, size_t index)
{
    int32_t sum = 0;
    for (int r = 0; r < c->nranks; r++)
        sum += input(c, r, index);
    return sum;
}

/* What element `index` of the buffer must be afterwards; *told false where nothing is promised. */
static int32_t expected(const struct one *c, int rank, size_t index, bool *defined)
{
    size_t block = index / c->count, within = index % c->count;
    bool own = block == (size_t)rank, root = rank == c->root;
    *defined = true;
    switch (c->func) {
    case ALL_REDUCE: return summed(c, index);
    case REDUCE: return root ? summed(c, index) : input(c, rank, index);
    case BROADCAST: return input(c, c->root, index);
    case REDUCE_SCATTER: return own ? summed(c, index) : input(c, rank, index);
    case ALL_GATHER: return input(c, (int)block, block * c->count + within);
    case ALL_TO_ALL: return input(c, (int)block, (size_t)rank * c->count + within);
    case GATHER:
        return root ? input(c, (int)block, block * c->count + within) : input(c, rank, index);
    case SUM_TO_ALL: return summed(c, (size_t)rank * c->count + within);
    default: /* SCATTER */ *defined = root || own; return input(c, c->root, index);
    }
}

static ncclResult_t call(const struct one *c, const struct world_rank *own, int32_t *buffer)
{
    int32_t *block = buffer + (size_t)own->rank * c->count;
    bool root = own->rank == c->root;
    ncclComm_t comm = own->comm;
    cudaStream_t s = own->stream;
    switch (c->func) {
    case ALL_REDUCE: return ncclAllReduce(buffer, buffer, c->count, ncclInt32, ncclSum, comm, s);
    case REDUCE: return ncclReduce(buffer, buffer, c->count, ncclInt32, ncclSum, c->root, comm, s);
    case REDUCE_SCATTER:
        return ncclReduceScatter(buffer, block, c->count, ncclInt32, ncclSum, comm, s);
    case BROADCAST: return ncclBroadcast(buffer, buffer, c->count, ncclInt32, c->root, comm, s);
    case ALL_GATHER: return ncclAllGather(block, buffer, c->count, ncclInt32, comm, s);
    case ALL_TO_ALL: return ncclAlltoAll(buffer, buffer, c->count, ncclInt32, comm, s);
    case GATHER:
        return ncclGather(block, root ? buffer : NULL, c->count, ncclInt32, c->root, comm, s);
    case SUM_TO_ALL: {
        size_t all = c->count * (size_t)c->nranks;
        ncclResult_t rc = ncclAllReduce(buffer, buffer, all, ncclInt32, ncclSum, comm, s);
        return rc ? rc : ncclAlltoAll(buffer, buffer, c->count, ncclInt32, comm, s);
    }
    default: return ncclScatter(root ? buffer : NULL, block, c->count, ncclInt32, c->root, comm, s);
    }
}

static int check(const struct one *c, int rank, const int32_t *buffer)
{
    for (size_t i = 0; i < nblocks(c) * c->count; i++) {
        bool defined;
        int32_t want = expected(c, rank, i, &defined);
        if (!defined || buffer[i] == want) continue;
        printf("wrong: %s of %zu in place, %d ranks, root %d, turn %d, rank %d: element %zu is %d, "
               "not %d\n",
               names[c->func], c->count, c->nranks, c->root, c->turn, rank, i, buffer[i], want);
        return 1;
    }
    return 0;
}

static int run_one(struct world_team *team, struct one c, int32_t **buffers)
{
    int wrong = 0;
    for (c.turn = 0; c.turn < TURNS && !wrong; c.turn++) {
        for (int k = 0; k < team->count; k++) {
            for (size_t i = 0; i < nblocks(&c) * c.count; i++)
                buffers[k][i] = input(&c, team->ranks[k].rank, i);
        }
        world_check(ncclGroupStart(), "ncclGroupStart");
        for (int k = 0; k < team->count; k++) {
            delay(&c, team->ranks[k].rank);
            world_check(call(&c, &team->ranks[k], buffers[k]), names[c.func]);
        }
        world_check(ncclGroupEnd(), names[c.func]);
        for (int k = 0; k < team->count; k++)
            world_check_cuda(cudaStreamSynchronize(team->ranks[k].stream), "synchronise");
        for (int k = 0; k < team->count; k++)
            wrong += check(&c, team->ranks[k].rank, buffers[k]);
    }
    return wrong;
}

static int body(struct world_team *team)
{
    int wrong = 0;
    int32_t *buffers[WORLD_MAX];
    size_t most = counts[3] * (size_t)team->nranks * sizeof(int32_t);
    for (int k = 0; k < team->count; k++) {
        void *memory;
        world_check_cuda(cudaSetDevice(team->ranks[k].device), "cudaSetDevice");
        world_check_cuda(cudaMalloc(&memory, most), "cudaMalloc");
        buffers[k] = memory;
    }
    for (int func = 0; func < FUNC_COUNT_; func++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !wrong; i++) {
            struct one c = {.func = (enum func)func, .count = counts[i], .nranks = team->nranks};
            c.root = (int)(i + (size_t)func) % team->nranks;
            wrong += run_one(team, c, buffers);
        }
    }
    for (int k = 0; k < team->count; k++)
        world_check_cuda(cudaFree(buffers[k]), "cudaFree");
    return wrong;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int wrong = 0;
    if (!mode) {
        fprintf(stderr, "usage: in_place threads|processes|mixed\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    inputs_make();
    for (int nranks = 2; nranks <= MOST_RANKS && !wrong; nranks++)
        wrong += world_run(mode, nranks, body, NULL);
    return wrong ? 1 : 0;
}
