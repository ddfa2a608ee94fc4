/* Programs from files (TUTTI_PROGRAM_DIR) in communicators: AllReduce, AllGather, ReduceScatter and
 * AlltoAll of several channels and chunks a message, in and out of place, with counts that nothing
 * divides, twice in a row on one stream. Beyond the files' sizes the library's own programs run.
 * usage: imports MODE [CHANNELS]     MODE: threads, processes, mixed */
#include "../harness/world.h"
#include "msccl_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum func { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, FUNC_COUNT_ };
static const char *const names[] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"};

enum { TURNS = 3, MOST = 60001, OWN_FROM_BYTES = 4 << 20 };
static const size_t counts[] = {1, 7, 64, 1000, 4097, MOST}; /* of int32, in each block */

struct one {
    enum func func;
    size_t count;
    bool in_place;
    int turn, nranks;
};

static int32_t input(const struct one *c, int rank, size_t index)
{
    uint32_t value = (uint32_t)(index * 131 + (size_t)rank * 7919 + (size_t)c->turn * 17);
    return (int32_t)((value ^ value >> 7) % 9973);
}

static size_t in_blocks(const struct one *c)
{
    return c->func == REDUCE_SCATTER || c->func == ALL_TO_ALL ? (size_t)c->nranks : 1;
}

static size_t out_blocks(const struct one *c)
{
    return c->func == ALL_GATHER || c->func == ALL_TO_ALL ? (size_t)c->nranks : 1;
}

static int32_t expected(const struct one *c, int rank, size_t index)
{
    size_t block = index / c->count, within = index % c->count;
    size_t at = c->func == REDUCE_SCATTER ? (size_t)rank * c->count + index : index;
    int32_t sum = 0;
    if (c->func == ALL_GATHER) return input(c, (int)block, within);
    if (c->func == ALL_TO_ALL) return input(c, (int)block, (size_t)rank * c->count + within);
    for (int r = 0; r < c->nranks; r++)
        sum += input(c, r, at);
    return sum;
}

struct buffers {
    int32_t *in, *out;
};

/* Where the rank's buffers of this call begin: in place they are one. */
static struct buffers buffers_of(const struct one *c, int rank, const struct buffers *memory)
{
    struct buffers own = *memory;
    if (!c->in_place) return own;
    if (c->func == ALL_GATHER) own.in = own.out + (size_t)rank * c->count;
    if (c->func == REDUCE_SCATTER) own.out = own.in + (size_t)rank * c->count;
    if (c->func == ALL_REDUCE || c->func == ALL_TO_ALL) own.in = own.out;
    return own;
}

static ncclResult_t call(const struct one *c, const struct world_rank *rank,
                         const struct buffers *memory)
{
    struct buffers own = buffers_of(c, rank->rank, memory);
    switch (c->func) {
    case ALL_REDUCE:
        return ncclAllReduce(own.in, own.out, c->count, ncclInt32, ncclSum, rank->comm,
                             rank->stream);
    case ALL_GATHER:
        return ncclAllGather(own.in, own.out, c->count, ncclInt32, rank->comm, rank->stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(own.in, own.out, c->count, ncclInt32, ncclSum, rank->comm,
                                 rank->stream);
    default: return ncclAlltoAll(own.in, own.out, c->count, ncclInt32, rank->comm, rank->stream);
    }
}

static int check(const struct one *c, int rank, const struct buffers *memory)
{
    struct buffers own = buffers_of(c, rank, memory);
    for (size_t i = 0; i < out_blocks(c) * c->count; i++) {
        int32_t want = expected(c, rank, i);
        if (own.out[i] == want) continue;
        printf("wrong: %s of %zu%s, %d ranks, turn %d, rank %d: element %zu is %d, not %d\n",
               names[c->func], c->count, c->in_place ? " in place" : "", c->nranks, c->turn, rank,
               i, own.out[i], want);
        return 1;
    }
    for (size_t i = 0; !c->in_place && i < in_blocks(c) * c->count; i++) {
        if (own.in[i] == input(c, rank, i)) continue;
        printf("wrong: %s of %zu, %d ranks, rank %d wrote into its input\n", names[c->func],
               c->count, c->nranks, rank);
        return 1;
    }
    return 0;
}

static int run_one(struct world_team *team, struct one c, const struct buffers *memory)
{
    int wrong = 0;
    for (c.turn = 0; c.turn < TURNS && !wrong; c.turn++) {
        for (int k = 0; k < team->count; k++) {
            struct buffers own = buffers_of(&c, team->ranks[k].rank, &memory[k]);
            for (size_t i = 0; i < out_blocks(&c) * c.count; i++)
                own.out[i] = -1;
            for (size_t i = 0; i < in_blocks(&c) * c.count; i++)
                own.in[i] = input(&c, team->ranks[k].rank, i);
        }
        world_check(ncclGroupStart(), "ncclGroupStart");
        for (int k = 0; k < team->count; k++)
            world_check(call(&c, &team->ranks[k], &memory[k]), names[c.func]);
        world_check(ncclGroupEnd(), names[c.func]);
        for (int k = 0; k < team->count; k++)
            world_check_cuda(cudaStreamSynchronize(team->ranks[k].stream), "synchronise");
        for (int k = 0; k < team->count; k++)
            wrong += check(&c, team->ranks[k].rank, &memory[k]);
    }
    return wrong;
}

static int body(struct world_team *team)
{
    int wrong = 0;
    struct buffers memory[WORLD_MAX];
    size_t bytes = MOST * (size_t)team->nranks * sizeof(int32_t);
    for (int k = 0; k < team->count; k++) {
        void *in, *out;
        world_check_cuda(cudaSetDevice(team->ranks[k].device), "cudaSetDevice");
        world_check_cuda(cudaMalloc(&in, bytes), "cudaMalloc");
        world_check_cuda(cudaMalloc(&out, bytes), "cudaMalloc");
        memory[k] = (struct buffers){in, out};
    }
    for (int func = 0; func < FUNC_COUNT_; func++) {
        for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]) && !wrong; i++) {
            struct one c = {.func = (enum func)func,
                            .count = counts[i / 2],
                            .in_place = i % 2,
                            .nranks = team->nranks};
            wrong += run_one(team, c, memory);
        }
    }
    for (int k = 0; k < team->count; k++) {
        world_check_cuda(cudaFree(memory[k].in), "cudaFree");
        world_check_cuda(cudaFree(memory[k].out), "cudaFree");
    }
    return wrong;
}

static bool write_file(const char *folder, const char *name, enum msccl_text text,
                       const struct msccl_shape *shape)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s-%d.xml", folder, name, shape->nranks);
    return msccl_text_write(path, text, shape);
}

/* A file per function and number of ranks; AllReduce changes from pairs to rings. */
static bool write_files(const char *folder, int nranks, int nchannels)
{
    struct msccl_shape shape = {.nranks = nranks, .nchannels = nchannels, .nparts = 2};
    shape.max_bytes = 20000;
    bool done = write_file(folder, "pairs", MSCCL_PAIRS_ALLREDUCE, &shape);
    shape.max_bytes = OWN_FROM_BYTES;
    done = done && write_file(folder, "rings", MSCCL_RING_ALLREDUCE, &shape);
    done = done && write_file(folder, "gather", MSCCL_PAIRS_ALLGATHER, &shape);
    shape.nparts = 3;
    done = done && write_file(folder, "scatter", MSCCL_PAIRS_REDUCESCATTER, &shape);
    return done && write_file(folder, "exchange", MSCCL_PAIRS_ALLTOALL, &shape);
}

static void remove_files(const char *folder, int nranks)
{
    static const char *const files[] = {"pairs", "rings", "gather", "scatter", "exchange"};
    char path[256];
    for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
        (void)snprintf(path, sizeof(path), "%s/%s-%d.xml", folder, files[k], nranks);
        (void)unlink(path);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {2, 3, 5, 8};
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int nchannels = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2, wrong = 0;
    char folder[] = "/tmp/imports.XXXXXX";
    if (!mode || nchannels < 1 || nchannels > 64 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: imports threads|processes|mixed [CHANNELS]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("TUTTI_PROGRAM_DIR", folder, 1);
    setenv("TUTTI_STRICT", "1", 0); /* a file that is refused fails the communicator */
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        wrong += !write_files(folder, sizes[k], nchannels);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]) && !wrong; k++)
        wrong += world_run(mode, sizes[k], body, NULL);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        remove_files(folder, sizes[k]);
    (void)rmdir(folder);
    return wrong ? 1 : 0;
}
