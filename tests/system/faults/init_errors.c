/* Wrong rank counts, the same rank twice, a rank that never comes, one that dies: every other rank
 * gets an error within its bound; nothing hangs. */
#include "../harness/harness.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const double bound_sec = 15; /* generous: the promise is 1 s after the last rank spoke */

struct joiner {
    ncclUniqueId id;
    int nranks, rank;
    ncclResult_t rc;
};

static void *join(void *arg)
{
    struct joiner *g = arg;
    ncclComm_t comm = NULL;
    CUDA(cudaSetDevice(g->rank % 4));
    g->rc = ncclCommInitRank(&comm, g->nranks, g->id, g->rank);
    if (g->rc == ncclSuccess) ncclCommAbort(comm);
    return NULL;
}

static void all_fail(const char *what, const int (*pairs)[2], int n)
{
    struct joiner joiners[4];
    pthread_t threads[4];
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    double start = harness_now_sec();
    for (int i = 0; i < n; i++) {
        joiners[i] = (struct joiner){.id = id, .nranks = pairs[i][0], .rank = pairs[i][1]};
        CHECK(!pthread_create(&threads[i], NULL, join, &joiners[i]));
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        if (joiners[i].rc == ncclSuccess)
            harness_fail(__FILE__, __LINE__, "%s: guest %d succeeded", what, i);
    }
    CHECK(harness_now_sec() - start < bound_sec);
    printf("%s: %s\n", what, ncclGetLastError(NULL));
}

static void damaged_id(void)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    NCCL(ncclGetUniqueId(&id));
    id.internal[20] ^= 1;
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidArgument);
    memset(&id, 0, sizeof(id));
    CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclInvalidArgument);
    CHECK(comm == NULL);
}

/* A member dies after all have met: the others' next wait ends with an error. */
static void dies(struct harness_rank *r)
{
    float *buffer = harness_device_alloc(1024);
    NCCL(ncclAllReduce(buffer, buffer, 256, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    if (r->rank == 1) _exit(0);
    double start = harness_now_sec();
    ncclResult_t async = ncclSuccess;
    ncclAllReduce(buffer, buffer, 256, ncclFloat, ncclSum, r->comm, r->stream);
    while (async == ncclSuccess && harness_now_sec() - start < bound_sec) {
        NCCL(ncclCommGetAsyncError(r->comm, &async));
        usleep(1000);
    }
    CHECK(async == ncclRemoteError);
    NCCL(ncclCommAbort(r->comm));
    CUDA(cudaStreamSynchronize(r->stream));
    _exit(0);
}

int main(void)
{
    static const int twice[3][2] = {{3, 0}, {3, 1}, {3, 1}};
    static const int counts[2][2] = {{2, 0}, {3, 1}};
    static const int missing[2][2] = {{3, 0}, {3, 1}};
    harness_processes(3, dies, NULL, 0);
    setenv("TUTTI_INIT_TIMEOUT", "3", 1);
    damaged_id();
    all_fail("the same rank twice", twice, 3);
    all_fail("different rank counts", counts, 2);
    all_fail("a rank that never comes", missing, 2);
    printf("init-errors: ok\n");
    return 0;
}
