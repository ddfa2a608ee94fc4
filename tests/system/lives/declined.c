/* Ranks that were to take part in an init and do not: aborted before or while their init begins,
 * refused for an argument, dropped with their group. The others hear it long before
 * TUTTI_INIT_TIMEOUT (300 s, more than this test may take); who corrects a refused call loses
 * nothing. */
#include "../harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { ROUNDS = 24, COUNT = 256 };

struct pair { /* what rank 0 does wrong while rank 1 waits for it, or comes later */
    ncclUniqueId id;
    int nranks, round;
    bool used; /* the init of rank 1 succeeded: the operation is what must end */
    ncclResult_t rc;
};

/* Rank 1: an init, and an operation if it comes to that. */
static void *wait_for_rank_0(void *arg)
{
    struct pair *pair = arg;
    ncclComm_t comm = NULL;
    cudaStream_t stream;
    CUDA(cudaSetDevice(1));
    pair->rc = ncclCommInitRank(&comm, pair->nranks, pair->id, 1);
    if (pair->rc) return NULL;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    pair->used = true;
    pair->rc = ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream);
    CUDA(cudaStreamSynchronize(stream));
    if (!pair->rc) NCCL(ncclCommGetAsyncError(comm, &pair->rc));
    NCCL(ncclCommAbort(comm));
    CUDA(cudaFree(buffer));
    CUDA(cudaStreamDestroy(stream));
    return NULL;
}

static ncclConfig_t nonblocking(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

static void abort_at_once(struct pair *pair)
{
    ncclComm_t comm = NULL;
    ncclConfig_t config = nonblocking();
    ncclResult_t rc = ncclCommInitRankConfig(&comm, pair->nranks, pair->id, 0, &config);
    CHECK(rc == ncclSuccess || rc == ncclInProgress);
    for (int k = 0; k < pair->round * pair->round; k++)
        sched_yield();
    NCCL(ncclCommAbort(comm));
}

static void wrong_rank(struct pair *pair)
{
    ncclComm_t comm;
    CHECK(ncclCommInitRank(&comm, pair->nranks, pair->id, 7) == ncclInvalidArgument);
    CHECK(comm == NULL);
}

static void wrong_count(struct pair *pair)
{
    ncclComm_t comm;
    CHECK(ncclCommInitRank(&comm, 0, pair->id, 0) == ncclInvalidArgument);
}

static void wrong_config(struct pair *pair)
{
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 17;
    CHECK(ncclCommInitRankConfig(&comm, pair->nranks, pair->id, 0, &config) == ncclInvalidArgument);
}

/* Its own init is right, another call of the group is not. */
static void dropped_with_its_group(struct pair *pair)
{
    ncclComm_t comm = NULL, other = NULL;
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    NCCL(ncclCommInitRank(&comm, pair->nranks, pair->id, 0));
    CHECK(ncclCommInitRank(&other, 1, id, 3) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    NCCL(ncclCommAbort(comm)); /* half-made, and the caller's */
}

static const struct {
    const char *name;
    void (*rank_0)(struct pair *pair);
    int rounds;
} cases[] = {
    {"aborted at once", abort_at_once, ROUNDS},
    {"a wrong rank", wrong_rank, 1},
    {"a wrong number of ranks", wrong_count, 1},
    {"a wrong config", wrong_config, 1},
    {"dropped with its group", dropped_with_its_group, 1},
};

static void play(size_t which, int round)
{
    struct pair pair = {.nranks = 2, .round = round};
    pthread_t thread;
    NCCL(ncclGetUniqueId(&pair.id));
    CHECK(!pthread_create(&thread, NULL, wait_for_rank_0, &pair));
    CUDA(cudaSetDevice(0));
    cases[which].rank_0(&pair);
    pthread_join(thread, NULL);
    if (pair.rc == ncclSuccess)
        harness_fail(__FILE__, __LINE__, "%s: rank 1 succeeded without rank 0", cases[which].name);
}

/* ---- refused calls are as if they had not been made ---- */

static void *join(void *arg)
{
    struct pair *pair = arg;
    ncclComm_t comm;
    CUDA(cudaSetDevice(1));
    NCCL(ncclCommInitRank(&comm, pair->nranks, pair->id, 1));
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

static void corrected(size_t which)
{
    struct pair pair = {.nranks = 2};
    pthread_t thread;
    ncclComm_t comm;
    NCCL(ncclGetUniqueId(&pair.id));
    CHECK(!pthread_create(&thread, NULL, join, &pair));
    CUDA(cudaSetDevice(0));
    cases[which].rank_0(&pair);
    NCCL(ncclCommInitRank(&comm, pair.nranks, pair.id, 0));
    NCCL(ncclCommDestroy(comm));
    pthread_join(thread, NULL);
}

int main(void)
{
    for (size_t which = 0; which < sizeof(cases) / sizeof(cases[0]); which++) {
        for (int round = 0; round < cases[which].rounds; round++)
            play(which, round);
        if (cases[which].rounds == 1) corrected(which);
        printf("%s: %s\n", cases[which].name, ncclGetLastError(NULL));
        fflush(stdout);
    }
    return 0;
}
