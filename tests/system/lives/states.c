/* Every kind of call in every state of a communicator, one process driving all ranks: its code, the
 * state that is left behind, and no hang. */
#include "../harness/world.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3, COUNT = 64 };
enum state { READY, FINALIZED, REVOKED, STATES };
static const char *const state_names[] = {"ready", "finalized", "revoked"};

struct fixture { /* what the calls work on */
    float *buffer[RANKS];
    cudaStream_t stream[RANKS];
    ncclComm_t comm[RANKS], child[RANKS];
    int failures;
};

static void expect(struct fixture *fixture, const char *state, const char *call, ncclResult_t got,
                   ncclResult_t want)
{
    if (got == want) return;
    fixture->failures++;
    printf("wrong: %s, %s: code %d, not %d (%s)\n", state, call, (int)got, (int)want,
           ncclGetLastError(NULL));
}

/* ---- the calls, of one rank ---- */

static ncclResult_t all_reduce(struct fixture *s, int r)
{
    return ncclAllReduce(s->buffer[r], s->buffer[r], COUNT, ncclFloat, ncclSum, s->comm[r],
                         s->stream[r]);
}

static ncclResult_t ring(struct fixture *s, int r)
{
    ncclResult_t rc =
        ncclSend(s->buffer[r], COUNT, ncclFloat, (r + 1) % RANKS, s->comm[r], s->stream[r]);
    ncclResult_t also = ncclRecv(s->buffer[r] + COUNT, COUNT, ncclFloat, (r + RANKS - 1) % RANKS,
                                 s->comm[r], s->stream[r]);
    return rc ? rc : also;
}

static ncclResult_t split(struct fixture *s, int r)
{
    return ncclCommSplit(s->comm[r], 0, -r, &s->child[r], NULL);
}

static ncclResult_t shrink(struct fixture *s, int r)
{
    int excluded[] = {RANKS - 1};
    if (r == excluded[0]) return ncclSuccess;
    return ncclCommShrink(s->comm[r], excluded, 1, &s->child[r], NULL, NCCL_SHRINK_DEFAULT);
}

static ncclResult_t count(struct fixture *s, int r)
{
    int n = 0;
    ncclResult_t rc = ncclCommCount(s->comm[r], &n);
    return rc || n == RANKS ? rc : ncclInternalError;
}

static ncclResult_t async_error(struct fixture *s, int r)
{
    ncclResult_t state = ncclInternalError;
    ncclResult_t rc = ncclCommGetAsyncError(s->comm[r], &state);
    return rc ? rc : state;
}

static ncclResult_t redop(struct fixture *s, int r)
{
    ncclRedOp_t op;
    float scalar = 2;
    ncclResult_t rc =
        ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, s->comm[r]);
    return rc ? rc : ncclRedOpDestroy(op, s->comm[r]);
}

static ncclResult_t finalize(struct fixture *s, int r)
{
    return ncclCommFinalize(s->comm[r]);
}

static ncclResult_t revoke(struct fixture *s, int r)
{
    return ncclCommRevoke(s->comm[r], NCCL_REVOKE_DEFAULT);
}

static ncclResult_t destroy(struct fixture *s, int r)
{
    ncclComm_t comm = s->comm[r];
    s->comm[r] = NULL;
    return ncclCommDestroy(comm);
}

static ncclResult_t abort_comm(struct fixture *s, int r)
{
    ncclComm_t comm = s->comm[r];
    s->comm[r] = NULL;
    return ncclCommAbort(comm);
}

static const struct {
    const char *name;
    ncclResult_t (*call)(struct fixture *fixture, int rank);
    ncclResult_t rc[STATES];
} rows[] = {
    {"AllReduce", all_reduce, {ncclSuccess, ncclInvalidUsage, ncclInvalidUsage}},
    {"Send and Recv", ring, {ncclSuccess, ncclInvalidUsage, ncclInvalidUsage}},
    {"Split", split, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"Shrink", shrink, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"Count", count, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"GetAsyncError", async_error, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"RedOp", redop, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"Finalize", finalize, {ncclSuccess, ncclInvalidArgument, ncclInvalidArgument}},
    {"Revoke", revoke, {ncclSuccess, ncclInvalidArgument, ncclInvalidArgument}},
    {"Destroy", destroy, {ncclSuccess, ncclSuccess, ncclSuccess}},
    {"Abort", abort_comm, {ncclSuccess, ncclSuccess, ncclSuccess}},
};

/* ---- the table ---- */

static void sync_all(struct fixture *s)
{
    for (int r = 0; r < RANKS; r++)
        world_check_cuda(cudaStreamSynchronize(s->stream[r]), "cudaStreamSynchronize");
}

static void enter(struct fixture *s, enum state state)
{
    memset(s->child, 0, sizeof(s->child));
    world_check(ncclCommInitAll(s->comm, RANKS, NULL), "ncclCommInitAll");
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS; r++) {
        if (state == FINALIZED) world_check(finalize(s, r), "ncclCommFinalize");
        if (state == REVOKED) world_check(revoke(s, r), "ncclCommRevoke");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd");
}

static void leave(struct fixture *s, const char *state, const char *name)
{
    sync_all(s);
    for (int r = 0; r < RANKS; r++) {
        expect(s, state, name, ncclCommDestroy(s->child[r]), ncclSuccess);
        expect(s, state, name, ncclCommDestroy(s->comm[r]), ncclSuccess);
    }
}

/* In one group for all ranks: refused by each call, and the next group is clean. */
static void every_call_in_every_state(struct fixture *s)
{
    for (int state = 0; state < STATES; state++) {
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            ncclResult_t first = ncclSuccess;
            enter(s, (enum state)state);
            world_check(ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < RANKS; r++) {
                ncclResult_t rc = rows[k].call(s, r);
                if (!first) first = rc;
            }
            ncclResult_t end = ncclGroupEnd();
            expect(s, state_names[state], rows[k].name, first ? first : end, rows[k].rc[state]);
            world_check(ncclGroupStart(), "ncclGroupStart");
            expect(s, state_names[state], "the next group", ncclGroupEnd(), ncclSuccess);
            leave(s, state_names[state], rows[k].name);
        }
    }
}

/* ---- while it is being made ---- */

static ncclComm_t start_single(void)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    world_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclResult_t rc = ncclCommInitRankConfig(&comm, 2, id, 0, &config);
    if (rc != ncclInProgress) world_check(rc, "ncclCommInitRankConfig");
    return comm;
}

/* Its peer never comes: whatever is called too early is refused, and abort and revoke end it. */
static void too_early(struct fixture *s)
{
    int n;
    ncclResult_t state;
    ncclComm_t comm = start_single(), child = NULL;
    expect(s, "init", "Count", ncclCommCount(comm, &n), ncclInvalidArgument);
    expect(s, "init", "Destroy", ncclCommDestroy(comm), ncclInvalidArgument);
    expect(s, "init", "Finalize", ncclCommFinalize(comm), ncclInvalidArgument);
    expect(s, "init", "Split", ncclCommSplit(comm, 0, 0, &child, NULL), ncclInvalidArgument);
    expect(s, "init", "AllReduce",
           ncclAllReduce(s->buffer[0], s->buffer[0], 1, ncclFloat, ncclSum, comm, s->stream[0]),
           ncclInvalidArgument);
    expect(s, "init", "Abort", ncclCommAbort(comm), ncclSuccess);
    comm = start_single();
    expect(s, "init", "Revoke", ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    do {
        world_check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
        sched_yield();
    } while (state == ncclInProgress);
    expect(s, "revoked init", "GetAsyncError", state, ncclInvalidUsage);
    expect(s, "revoked init", "Abort", ncclCommAbort(comm), ncclSuccess);
}

/* ---- while ranks wait in an operation that one does not join ---- */

static void stuck(struct fixture *s)
{
    world_check(ncclCommInitAll(s->comm, RANKS, NULL), "ncclCommInitAll");
    memset(s->child, 0, sizeof(s->child));
    for (int r = 0; r < RANKS - 1; r++)
        world_check(all_reduce(s, r), "ncclAllReduce");
}

static void survivors_work(struct fixture *s, const char *how)
{
    for (int r = 0; r < RANKS - 1; r++) {
        cudaStreamSynchronize(s->stream[r]); /* the operation that was given up */
        s->buffer[r][0] = 1;
    }
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS - 1; r++) {
        if (!s->child[r]) continue;
        world_check(ncclAllReduce(s->buffer[r], s->buffer[r], 1, ncclFloat, ncclSum, s->child[r],
                                  s->stream[r]),
                    "ncclAllReduce");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd");
    sync_all(s);
    if (s->buffer[0][0] == RANKS - 1) return;
    s->failures++;
    printf("wrong: %s: the sum of the survivors is %g\n", how, (double)s->buffer[0][0]);
}

static void end_stuck(struct fixture *s, const char *how)
{
    for (int r = 0; r < RANKS; r++) {
        expect(s, how, "Destroy of the child", ncclCommDestroy(s->child[r]), ncclSuccess);
        expect(s, how, "Abort", ncclCommAbort(s->comm[r]), ncclSuccess);
    }
}

static void shrink_group(struct fixture *s, const char *how, int flags)
{
    int excluded[] = {RANKS - 1};
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS - 1; r++) {
        expect(s, how, "Shrink", ncclCommShrink(s->comm[r], excluded, 1, &s->child[r], NULL, flags),
               ncclSuccess);
    }
    expect(s, how, "GroupEnd", ncclGroupEnd(), ncclSuccess);
    survivors_work(s, how);
    end_stuck(s, how);
}

static void way_out(struct fixture *s)
{
    stuck(s);
    shrink_group(s, "shrink by abort", NCCL_SHRINK_ABORT);
    stuck(s);
    for (int r = 0; r < RANKS - 1; r++)
        expect(s, "stuck", "Revoke", revoke(s, r), ncclSuccess);
    shrink_group(s, "shrink after revoke", NCCL_SHRINK_DEFAULT);
}

int main(void)
{
    static struct fixture fixture;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int r = 0; r < RANKS; r++) {
        void *buffer;
        world_check_cuda(cudaSetDevice(r), "cudaSetDevice");
        world_check_cuda(cudaMalloc(&buffer, 4 * COUNT * sizeof(float)), "cudaMalloc");
        world_check_cuda(cudaStreamCreate(&fixture.stream[r]), "cudaStreamCreate");
        fixture.buffer[r] = buffer;
    }
    every_call_in_every_state(&fixture);
    too_early(&fixture);
    way_out(&fixture);
    printf("%d wrong\n", fixture.failures);
    return fixture.failures ? 1 : 0;
}
