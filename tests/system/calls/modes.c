/* The whole matrix: every operation, type, operator, placement and root at three sizes and at none,
 * checked element by element, with guards around every result. In most cases the buffers of some
 * ranks lie off the boundaries that the others' lie on.
 * usage: modes MODE [RANKS]      MODE: one-thread, threads, processes, mixed */
#include "../harness/values.h"
#include "../harness/world.h"

#include <math.h>
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
    SEND_RECV,
    FUNC_COUNT_,
};

/* Operators of the tests' own: sum of inputs times a scalar of each rank, by residence. */
enum { PRE_MUL_HOST = 5, PRE_MUL_DEVICE, OP_COUNT_ };

struct one {
    enum func func;
    ncclDataType_t type;
    int op; /* ncclSum .. ncclAvg, PRE_MUL */
    size_t count;
    bool in_place;
    int root;
    int number; /* of the case: decides who is unaligned */
};

static const char *const func_names[] = {"AllReduce", "Reduce",    "ReduceScatter",
                                         "Broadcast", "AllGather", "AlltoAll",
                                         "Gather",    "Scatter",   "SendRecv"};
static const size_t counts[] = {0, 3, 1025, 70001};
#define COUNT_MOST 70001

/* Inputs, and so results within a block, repeat after this many elements (see input()). */
#define PERIOD ((size_t)66)

#define GUARD_BYTES ((size_t)64)
#define SHIFT_MOST ((size_t)64)

struct buffers {                                                /* of one rank */
    char *in, *out;                                             /* on the device, with guards */
    ncclRedOp_t by_host[ncclNumTypes], by_device[ncclNumTypes]; /* PreMulSum per type */
    void *scalars; /* on the device: one of 8 bytes per type */
};

static struct buffers buffers[WORLD_MAX]; /* by rank; each touched by its own thread */

static bool reduces(enum func func)
{
    return func <= REDUCE_SCATTER;
}

static bool has_root(enum func func)
{
    return func == REDUCE || func == BROADCAST || func == GATHER || func == SCATTER;
}

static size_t in_blocks(const struct one *c, int rank, int n)
{
    if (c->func == REDUCE_SCATTER || c->func == ALL_TO_ALL) return (size_t)n;
    if (c->func == SCATTER) return rank == c->root ? (size_t)n : 0;
    if (c->func == BROADCAST) return rank == c->root;
    return 1;
}

static size_t out_blocks(const struct one *c, int rank, int n)
{
    if (c->func == ALL_GATHER || c->func == ALL_TO_ALL) return (size_t)n;
    if (c->func == GATHER) return rank == c->root ? (size_t)n : 0;
    if (c->func == REDUCE) return rank == c->root;
    return 1;
}

/* Input of element `index` (counted over the whole send buffer) of a rank. */
static double input(const struct one *c, int rank, size_t index)
{
    size_t mix = index * 7 + (size_t)rank * 5 + index / 11;
    if (reduces(c->func) && c->op == ncclProd) return 1 + (double)(mix % 2);
    return (double)(mix % 3);
}

/* What PreMulSum multiplies a rank's input by. */
static double scalar_of(int op, int rank)
{
    return op == PRE_MUL_HOST ? 2 : 1 + rank % 3;
}

/* Takes in the value of the next rank. */
static double reduce(const struct one *c, double sofar, int rank, double value)
{
    switch (c->op) {
    case ncclProd: return sofar * value;
    case ncclMax: return value > sofar ? value : sofar;
    case ncclMin: return value < sofar ? value : sofar;
    case PRE_MUL_HOST:
    case PRE_MUL_DEVICE: return sofar + scalar_of(c->op, rank) * value;
    default: return sofar + value;
    }
}

static double reduced(const struct one *c, int n, size_t index)
{
    double result = c->op == ncclProd ? 1 : c->op == ncclMin ? 99 : 0;
    for (int r = 0; r < n; r++) {
        result = reduce(c, result, r, input(c, r, index));
    }
    if (c->op != ncclAvg) return result;
    return c->type < ncclFloat16 ? trunc(result / n) : result / n;
}

/* What element `index` of the rank's receive buffer must be. */
static double expected(const struct one *c, int rank, int n, size_t index)
{
    size_t block = index / c->count, within = index % c->count;
    switch (c->func) {
    case ALL_REDUCE:
    case REDUCE: return reduced(c, n, index);
    case REDUCE_SCATTER: return reduced(c, n, (size_t)rank * c->count + index);
    case BROADCAST: return input(c, c->root, index);
    case ALL_GATHER:
    case GATHER: return input(c, (int)block, within);
    case ALL_TO_ALL: return input(c, (int)block, (size_t)rank * c->count + within);
    case SCATTER: return input(c, c->root, (size_t)rank * c->count + index);
    default: return input(c, (rank + n - 1) % n, index);
    }
}

/* Whole elements by which a buffer lies off its boundary: none in every fourth case, else the
 * ranks differ. */
static size_t shift_bytes(const struct one *c, int rank, int which)
{
    int elements = c->number % 4 ? (c->number + rank * 3 + which) % 4 : 0;
    return (size_t)elements * value_bytes(c->type);
}

/* Where the rank's send and receive buffers lie; in place they overlap as the operation wants. */
static void set_buffers(const struct one *c, int rank, char **in, char **out)
{
    size_t block = c->count * value_bytes(c->type);
    *in = buffers[rank].in + GUARD_BYTES + shift_bytes(c, rank, 0);
    *out = buffers[rank].out + GUARD_BYTES + shift_bytes(c, rank, 1);
    if (!c->in_place) return;
    bool root = rank == c->root;
    if (c->func == REDUCE_SCATTER || (c->func == SCATTER && root)) {
        *out = *in + (size_t)rank * block; /* result within the input */
    } else if (c->func == ALL_GATHER || (c->func == GATHER && root)) {
        *in = *out + (size_t)rank * block;
    } else if (c->func == ALL_REDUCE || c->func == BROADCAST || c->func == ALL_TO_ALL ||
               (c->func == REDUCE && root)) {
        *in = *out;
    }
}

static void fill(const struct one *c, int rank, int n)
{
    char *in, *out;
    set_buffers(c, rank, &in, &out);
    size_t bytes = value_bytes(c->type);
    memset(buffers[rank].out, 0x5a,
           out_blocks(c, rank, n) * c->count * bytes + 2 * GUARD_BYTES + SHIFT_MOST);
    size_t total = in_blocks(c, rank, n) * c->count;
    for (size_t i = 0; i < total && i < PERIOD; i++) {
        value_put(in, i, c->type, input(c, rank, i));
    }
    for (size_t done = PERIOD; done < total; done *= 2) {
        size_t more = total - done < done ? total - done : done;
        memcpy(in + done * bytes, in, more * bytes);
    }
}

static ncclResult_t send_recv(const struct one *c, const struct world_rank *own, int n,
                              const void *in, void *out)
{
    ncclResult_t rc = ncclSend(in, c->count, c->type, (own->rank + 1) % n, own->comm, own->stream);
    if (rc) return rc;
    return ncclRecv(out, c->count, c->type, (own->rank + n - 1) % n, own->comm, own->stream);
}

static ncclResult_t call(const struct one *c, const struct world_rank *own, int n)
{
    char *in, *out;
    set_buffers(c, own->rank, &in, &out);
    ncclRedOp_t op = (ncclRedOp_t)c->op;
    if (c->op == PRE_MUL_HOST) op = buffers[own->rank].by_host[c->type];
    if (c->op == PRE_MUL_DEVICE) op = buffers[own->rank].by_device[c->type];
    ncclComm_t comm = own->comm;
    cudaStream_t s = own->stream;
    switch (c->func) {
    case ALL_REDUCE: return ncclAllReduce(in, out, c->count, c->type, op, comm, s);
    case REDUCE: return ncclReduce(in, out, c->count, c->type, op, c->root, comm, s);
    case REDUCE_SCATTER: return ncclReduceScatter(in, out, c->count, c->type, op, comm, s);
    case BROADCAST: return ncclBroadcast(in, out, c->count, c->type, c->root, comm, s);
    case ALL_GATHER: return ncclAllGather(in, out, c->count, c->type, comm, s);
    case ALL_TO_ALL: return ncclAlltoAll(in, out, c->count, c->type, comm, s);
    case GATHER: return ncclGather(in, out, c->count, c->type, c->root, comm, s);
    case SCATTER: return ncclScatter(in, out, c->count, c->type, c->root, comm, s);
    default: return send_recv(c, own, n, in, out);
    }
}

static bool guards_hold(const char *start, size_t bytes)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (start[i] != 0x5a || start[GUARD_BYTES + bytes + i] != 0x5a) return false;
    }
    return true;
}

static void describe(const struct one *c, int rank)
{
    printf("wrong: rank %d %s %s op %d count %zu %s root %d", rank, func_names[c->func],
           value_type_name(c->type), c->op, c->count, c->in_place ? "in place" : "out of place",
           c->root);
}

/* The rest of a block from element `index` on is, bit for bit, what it is a period before. */
static bool repeats(const struct one *c, const char *out, size_t index)
{
    size_t bytes = value_bytes(c->type), count = c->count - PERIOD;
    return !memcmp(out + (index - PERIOD) * bytes, out + index * bytes, count * bytes);
}

static int check(const struct one *c, int rank, int n)
{
    char *in, *out;
    set_buffers(c, rank, &in, &out);
    size_t total = out_blocks(c, rank, n) * c->count;
    for (size_t i = 0; i < total; i++) {
        double found = value_get(out, i, c->type), wanted = expected(c, rank, n, i);
        if (found == wanted) {
            if (i % c->count == PERIOD && repeats(c, out, i)) i += c->count - PERIOD - 1;
            continue;
        }
        describe(c, rank);
        printf(": element %zu is %g, not %g\n", i, found, wanted);
        return 1;
    }
    const char *start = buffers[rank].out + shift_bytes(c, rank, 1);
    if (guards_hold(start, total * value_bytes(c->type))) return 0;
    bool elsewhere =
        c->in_place && (c->func == REDUCE_SCATTER || (c->func == SCATTER && rank == c->root));
    if (elsewhere) return 0;
    describe(c, rank);
    printf(": bytes around the result were changed\n");
    return 1;
}

static int run_one(struct world_team *team, const struct one *c)
{
    int n = team->nranks, wrong = 0;
    bool grouped = team->count > 1 || c->func == SEND_RECV;
    for (int k = 0; k < team->count; k++)
        fill(c, team->ranks[k].rank, n);
    if (grouped) world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        world_check(call(c, &team->ranks[k], n), func_names[c->func]);
    }
    if (grouped) world_check(ncclGroupEnd(), func_names[c->func]);
    for (int k = 0; k < team->count; k++) {
        world_check_cuda(cudaStreamSynchronize(team->ranks[k].stream), "cudaStreamSynchronize");
    }
    for (int k = 0; k < team->count; k++) {
        ncclResult_t state;
        world_check(ncclCommGetAsyncError(team->ranks[k].comm, &state), "ncclCommGetAsyncError");
        world_check(state, func_names[c->func]);
        wrong += check(c, team->ranks[k].rank, n);
    }
    return wrong;
}

static int run_places(struct world_team *team, struct one c, int *cases)
{
    int wrong = 0;
    int nroots = has_root(c.func) ? team->nranks : 1;
    for (c.root = 0; c.root < nroots; c.root++) {
        for (int set_buffers = 0; set_buffers < 2; set_buffers++) {
            c.in_place = set_buffers == 1;
            if (c.in_place && c.func == SEND_RECV) continue;
            c.number = (*cases)++;
            wrong += run_one(team, &c);
        }
    }
    return wrong;
}

static int run_op(struct world_team *team, struct one c, int *cases)
{
    int wrong = 0;
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        c.count = counts[k];
        wrong += run_places(team, c, cases);
    }
    return wrong;
}

static int run_type(struct world_team *team, ncclDataType_t type, int *cases)
{
    int wrong = 0;
    for (int func = 0; func < FUNC_COUNT_; func++) {
        int nops = reduces((enum func)func) ? OP_COUNT_ : 1;
        for (int op = 0; op < nops && wrong <= 20; op++) {
            const struct one c = {.func = (enum func)func, .type = type, .op = op};
            wrong += run_op(team, c, cases);
        }
    }
    return wrong;
}

static void operators_make(const struct world_rank *own)
{
    struct buffers *mine = &buffers[own->rank];
    memset(mine->scalars, 0, (size_t)ncclNumTypes * 8);
    for (int t = 0; t < ncclNumTypes; t++) {
        ncclDataType_t type = (ncclDataType_t)t;
        char scalar[8];
        void *there = (char *)mine->scalars + (size_t)t * 8;
        value_put(scalar, 0, type, scalar_of(PRE_MUL_HOST, own->rank));
        world_check(ncclRedOpCreatePreMulSum(&mine->by_host[t], scalar, type,
                                             ncclScalarHostImmediate, own->comm),
                    "ncclRedOpCreatePreMulSum");
        memset(scalar, 0x77, sizeof(scalar)); /* it was read */
        world_check(
            ncclRedOpCreatePreMulSum(&mine->by_device[t], there, type, ncclScalarDevice, own->comm),
            "ncclRedOpCreatePreMulSum");
        value_put(there, 0, type, scalar_of(PRE_MUL_DEVICE, own->rank)); /* it is read later */
    }
}

static void buffers_init(struct world_team *team)
{
    size_t most = COUNT_MOST * 8 * (size_t)team->nranks + 2 * GUARD_BYTES + SHIFT_MOST;
    for (int k = 0; k < team->count; k++) {
        const struct world_rank *own = &team->ranks[k];
        void *in, *out, *scalars;
        world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
        world_check_cuda(cudaMalloc(&in, most), "cudaMalloc");
        world_check_cuda(cudaMalloc(&out, most), "cudaMalloc");
        world_check_cuda(cudaMalloc(&scalars, (size_t)ncclNumTypes * 8), "cudaMalloc");
        buffers[own->rank] = (struct buffers){.in = in, .out = out, .scalars = scalars};
        operators_make(own);
    }
}

static void buffers_fini(struct world_team *team)
{
    for (int k = 0; k < team->count; k++) {
        const struct buffers *mine = &buffers[team->ranks[k].rank];
        for (int type = 0; type < ncclNumTypes; type++) {
            ncclComm_t comm = team->ranks[k].comm;
            world_check(ncclRedOpDestroy(mine->by_host[type], comm), "ncclRedOpDestroy");
            world_check(ncclRedOpDestroy(mine->by_device[type], comm), "ncclRedOpDestroy");
        }
        world_check_cuda(cudaFree(mine->in), "cudaFree");
        world_check_cuda(cudaFree(mine->out), "cudaFree");
        world_check_cuda(cudaFree(mine->scalars), "cudaFree");
    }
}

static int body(struct world_team *team)
{
    int wrong = 0, cases = 0;
    buffers_init(team);
    for (int type = 0; type < ncclNumTypes && wrong <= 20; type++) {
        wrong += run_type(team, (ncclDataType_t)type, &cases);
    }
    buffers_fini(team);
    if (team->ranks[0].rank == 0) printf("%d cases, %d wrong\n", cases, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    int nranks = world_ranks(argc > 2 ? argv[2] : NULL, 4, 8);
    if (!mode || !nranks) {
        fprintf(stderr, "usage: modes one-thread|threads|processes|mixed [2..8]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    return world_run(mode, nranks, body, NULL) ? 1 : 0;
}
