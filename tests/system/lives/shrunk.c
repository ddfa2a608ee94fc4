/* Shrink without NCCL_SHRINK_ABORT when a rank of the parent fails: one that the child leaves out,
 * before the others shrink or while they do, changes nothing for them; a member's failure ends the
 * call, the second failure as well. */
#include "../harness/harness.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, EXCLUDED = 2, MEMBER = 3, COUNT = 64 };

struct shared {            /* shared by the processes */
    _Atomic int shrinking; /* ranks that are about to call Shrink */
    _Atomic int failed;    /* the rank that fails has */
    _Atomic int refused;   /* survivors whose Shrink came back with its failure */
};

static void await(_Atomic int *word, int least)
{
    while (atomic_load(word) < least)
        usleep(200);
}

static ncclResult_t await_error(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        usleep(200);
    }
    return state;
}

static void abort_own(struct harness_rank *rank)
{
    NCCL(ncclCommAbort(rank->comm));
    rank->comm = NULL;
}

static ncclResult_t shrink_without(const struct harness_rank *rank, int excluded, ncclComm_t *child)
{
    return ncclCommShrink(rank->comm, &excluded, 1, child, NULL, NCCL_SHRINK_DEFAULT);
}

static ncclResult_t shrink(const struct harness_rank *rank, ncclComm_t *child)
{
    return shrink_without(rank, EXCLUDED, child);
}

/* The child is whole and works. */
static void use(const struct harness_rank *rank, ncclComm_t child)
{
    int count = 0;
    float *buffer = harness_device_alloc(COUNT * sizeof(*buffer));
    for (int i = 0; i < COUNT; i++)
        buffer[i] = 1;
    NCCL(ncclCommCount(child, &count));
    CHECK(count == RANKS - 1);
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, child, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    CHECK(buffer[COUNT - 1] == RANKS - 1);
    NCCL(ncclCommDestroy(child));
    CUDA(cudaFree(buffer));
}

/* An abort, as any failure of the parent, makes ncclCommDestroy of it return the error. */
static void leave(struct harness_rank *rank)
{
    abort_own(rank);
}

static void before(struct harness_rank *rank)
{
    ncclComm_t child = NULL;
    if (rank->rank == EXCLUDED) {
        abort_own(rank);
        return;
    }
    CHECK(await_error(rank->comm) == ncclRemoteError);
    NCCL(shrink(rank, &child));
    use(rank, child);
    leave(rank);
}

/* Rank 0 is in the call when the other one fails; the others come later. */
static void meanwhile(struct harness_rank *rank)
{
    struct shared *shared = rank->arg;
    ncclComm_t child = NULL;
    if (rank->rank == EXCLUDED) {
        await(&shared->shrinking, 1);
        usleep(20000); /* so that it is there as a rule; right either way */
        abort_own(rank);
        atomic_store(&shared->failed, 1);
        return;
    }
    if (rank->rank == 0) {
        atomic_fetch_add(&shared->shrinking, 1);
    } else {
        await(&shared->failed, 1);
        CHECK(await_error(rank->comm) == ncclRemoteError);
    }
    NCCL(shrink(rank, &child));
    use(rank, child);
    leave(rank);
}

/* Resources are to be shared, and some ranks know already that there is nothing to share with: then
 * no rank shares, and the end of the parent is not one of the child. */
static void shares(struct harness_rank *rank)
{
    struct shared *shared = rank->arg;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t child = NULL, whole = rank->comm;
    config.shrinkShare = 1;
    NCCL(ncclCommSplit(whole, 0, rank->rank, &rank->comm, &config));
    if (rank->rank == EXCLUDED) {
        await(&shared->shrinking, 1);
        usleep(20000); /* as in meanwhile() */
        abort_own(rank);
        atomic_store(&shared->failed, 1);
    } else {
        if (rank->rank == 0) {
            atomic_fetch_add(&shared->shrinking, 1);
        } else {
            await(&shared->failed, 1);
            CHECK(await_error(rank->comm) == ncclRemoteError);
        }
        NCCL(shrink(rank, &child));
        abort_own(rank);
        use(rank, child);
    }
    rank->comm = whole;
    leave(rank);
}

static void member(struct harness_rank *rank)
{
    struct shared *shared = rank->arg;
    ncclComm_t child = NULL;
    if (rank->rank == EXCLUDED) {
        await(&shared->refused, RANKS - 2); /* it leaves by an abort, too */
    } else if (rank->rank == MEMBER) {
        await(&shared->shrinking, 2);
        abort_own(rank);
        atomic_store(&shared->failed, 1);
    } else {
        atomic_fetch_add(&shared->shrinking, 1);
        CHECK(shrink(rank, &child) == ncclRemoteError);
        CHECK(strstr(ncclGetLastError(NULL), "rank 3 aborted"));
        if (child) NCCL(ncclCommAbort(child));
        atomic_fetch_add(&shared->refused, 1);
    }
    leave(rank);
}

/* The call was in order when it was made; the member fails before its group is run. */
static void member_in_group(struct harness_rank *rank)
{
    struct shared *shared = rank->arg;
    ncclComm_t child = NULL;
    if (rank->rank == EXCLUDED) {
        await(&shared->refused, RANKS - 2); /* it leaves by an abort, too */
    } else if (rank->rank == MEMBER) {
        await(&shared->shrinking, 2);
        abort_own(rank);
        atomic_store(&shared->failed, 1);
    } else {
        NCCL(ncclGroupStart());
        NCCL(shrink(rank, &child));
        atomic_fetch_add(&shared->shrinking, 1);
        CHECK(await_error(rank->comm) == ncclRemoteError);
        CHECK(ncclGroupEnd() == ncclRemoteError);
        CHECK(strstr(ncclGetLastError(NULL), "rank 3 aborted"));
        if (child) NCCL(ncclCommAbort(child));
        atomic_fetch_add(&shared->refused, 1);
    }
    leave(rank);
}

/* All have heard of the one that is left out; the others are in the call when a member fails. */
static void member_second(struct harness_rank *rank, int excluded)
{
    struct shared *shared = rank->arg;
    ncclComm_t child = NULL;
    if (rank->rank == excluded) {
        abort_own(rank);
        atomic_store(&shared->failed, 1);
        return;
    }
    CHECK(await_error(rank->comm) == ncclRemoteError);
    if (rank->rank == MEMBER) {
        await(&shared->shrinking, 2);
        usleep(20000); /* as in meanwhile() */
    } else {
        atomic_fetch_add(&shared->shrinking, 1);
        CHECK(shrink_without(rank, excluded, &child) == ncclRemoteError);
        CHECK(strstr(ncclGetLastError(NULL), "rank 3 "));
        if (child) NCCL(ncclCommAbort(child));
    }
    leave(rank);
}

static void both(struct harness_rank *rank)
{
    member_second(rank, EXCLUDED);
}

/* Rank 0 knew all others: without it, they look whether the member still listens. */
static void both_and_cut(struct harness_rank *rank)
{
    member_second(rank, 0);
}

int main(void)
{
    static harness_fn *const cases[] = {before, meanwhile,       shares,      member,
                                        both,   member_in_group, both_and_cut};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct shared *shared =
            mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        harness_processes(RANKS, cases[k], shared, 0);
        munmap(shared, sizeof(*shared));
    }
    puts("shrunk: a rank that is left out may fail, a member may not");
    return 0;
}
