/* Collectives, Sends and Receives on memory that is registered, in a window, half of each, or
 * nothing of it: with a network that is told of the memory they must come out alike, also where the
 * memory is freed and other memory takes its place.
 * usage: registered threads|processes RANKS */
#include "../harness/harness.h"

#include <string.h>

enum { MOST = 1 << 20, ROUNDS = 5 };

static unsigned char value(int rank, size_t at, int seed)
{
    return (unsigned char)((at * 13 + at / 4099 + (size_t)rank * 37 + (size_t)seed) % 31);
}

struct buffers {
    unsigned char *in, *out;
    size_t bytes;
    int seed;
};

static void fill(const struct harness_rank *rank, const struct buffers *b)
{
    for (size_t i = 0; i < b->bytes; i++)
        b->in[i] = value(rank->rank, i, b->seed);
    memset(b->out, 0xee, b->bytes * (size_t)rank->nranks);
}

static void compare(const struct harness_rank *rank, const char *what, size_t at, unsigned got,
                    unsigned want)
{
    if (got == want) return;
    harness_fail(__FILE__, __LINE__, "rank %d: %s: byte %zu is %u, not %u", rank->rank, what, at,
                 got, want);
}

static void all_reduce(struct harness_rank *rank, const struct buffers *b)
{
    fill(rank, b);
    NCCL(ncclAllReduce(b->in, b->out, b->bytes, ncclUint8, ncclSum, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    for (size_t i = 0; i < b->bytes; i++) {
        unsigned sum = 0;
        for (int r = 0; r < rank->nranks; r++)
            sum += value(r, i, b->seed);
        compare(rank, "AllReduce", i, b->out[i], sum % 256);
    }
}

static void all_gather(struct harness_rank *rank, const struct buffers *b)
{
    fill(rank, b);
    NCCL(ncclAllGather(b->in, b->out, b->bytes, ncclUint8, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    for (size_t i = 0; i < b->bytes * (size_t)rank->nranks; i++)
        compare(rank, "AllGather", i, b->out[i], value((int)(i / b->bytes), i % b->bytes, b->seed));
}

static void broadcast(struct harness_rank *rank, const struct buffers *b)
{
    fill(rank, b);
    int root = b->seed % rank->nranks;
    NCCL(ncclBroadcast(b->in, b->out, b->bytes, ncclUint8, root, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    for (size_t i = 0; i < b->bytes; i++)
        compare(rank, "Broadcast", i, b->out[i], value(root, i, b->seed));
}

/* Two messages to the next rank, of different sizes. */
static void pass_on(struct harness_rank *rank, const struct buffers *b)
{
    int next = (rank->rank + 1) % rank->nranks,
        prev = (rank->rank + rank->nranks - 1) % rank->nranks;
    size_t first = b->bytes / 3;
    fill(rank, b);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(b->in, first, ncclUint8, next, rank->comm, rank->stream));
    NCCL(ncclSend(b->in + first, b->bytes - first, ncclUint8, next, rank->comm, rank->stream));
    NCCL(ncclRecv(b->out, first, ncclUint8, prev, rank->comm, rank->stream));
    NCCL(ncclRecv(b->out + first, b->bytes - first, ncclUint8, prev, rank->comm, rank->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(rank->stream));
    for (size_t i = 0; i < b->bytes; i++)
        compare(rank, "Send and Recv", i, b->out[i], value(prev, i, b->seed));
}

/* It is not said what a buffer holds that a group both sends and receives into; but a network is
 * not given memory that changes while it sends it (TUTTI_PLUGIN_CHECK notices). */
static void swap(struct harness_rank *rank, const struct buffers *b)
{
    int next = (rank->rank + 1) % rank->nranks,
        prev = (rank->rank + rank->nranks - 1) % rank->nranks;
    NCCL(ncclGroupStart());
    NCCL(ncclSend(b->out, b->bytes, ncclUint8, next, rank->comm, rank->stream));
    NCCL(ncclRecv(b->out, b->bytes, ncclUint8, prev, rank->comm, rank->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void one_round(struct harness_rank *rank, int round)
{
    void *memory[2], *handles[2] = {NULL, NULL};
    const size_t sizes[2] = {MOST, (size_t)MOST * (size_t)rank->nranks};
    ncclWindow_t window = NULL;
    bool whole = round % 4 < 2;
    for (int k = 0; k < 2; k++)
        NCCL(ncclMemAlloc(&memory[k], sizes[k]));
    for (int k = 0; k < 2 && whole; k++)
        NCCL(ncclCommRegister(rank->comm, memory[k], sizes[k], &handles[k]));
    if (round % 4 == 2) {
        NCCL(ncclCommWindowRegister(rank->comm, memory[1], sizes[1], &window,
                                    NCCL_WIN_COLL_SYMMETRIC));
    }
    if (round % 4 == 3 && rank->rank % 2)
        NCCL(ncclCommRegister(rank->comm, memory[1], MOST / 2, &handles[1]));
    for (int k = 0; k < 3; k++) {
        struct buffers b = {memory[0], memory[1], (size_t)MOST >> (3 * k), round + k};
        b.bytes -= (size_t)(k * round);
        all_reduce(rank, &b);
        all_gather(rank, &b);
        broadcast(rank, &b);
        pass_on(rank, &b);
        swap(rank, &b);
    }
    if (window) NCCL(ncclCommWindowDeregister(rank->comm, window));
    for (int k = 0; k < 2; k++) {
        if (handles[k]) NCCL(ncclCommDeregister(rank->comm, handles[k]));
        NCCL(ncclMemFree(memory[k]));
    }
}

static void all_rounds(struct harness_rank *rank)
{
    for (int round = 0; round < ROUNDS; round++)
        one_round(rank, round);
}

int main(int argc, char **argv)
{
    int nranks = argc > 2 ? atoi(argv[2]) : 2; /* NOLINT(cert-err34-c): a test's own argument */
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        harness_threads(nranks, all_rounds, NULL, 0);
    } else {
        harness_processes(nranks, all_rounds, NULL, 0);
    }
    puts("registered: all came out alike");
    return 0;
}
