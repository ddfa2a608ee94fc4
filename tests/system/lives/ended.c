/* Communicators that end, or are asked to, while something else holds them: an open group, running
 * work, a thread that polls, another job. Most cases once hung, crashed or freed memory in use. */
#include "../harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { RANKS = 2, COUNT = 4096 };

static pthread_barrier_t both;

static ncclComm_t nonblocking(const struct harness_rank *own)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    config.blocking = 0;
    ncclResult_t rc = ncclCommInitRankConfig(&comm, own->nranks, own->id, own->rank, &config);
    CHECK(rc == ncclSuccess || rc == ncclInProgress);
    NCCL(harness_wait(comm));
    return comm;
}

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fn, arg) == 0);
    return thread;
}

/* ---- polled from a second thread ---- */

struct polled {
    ncclComm_t comm;
    _Atomic bool over;
};

static void *poll_state(void *arg)
{
    struct polled *polled = arg;
    ncclResult_t state;
    while (!polled->over)
        NCCL(ncclCommGetAsyncError(polled->comm, &state));
    return NULL;
}

static void polled_splits(struct harness_rank *own)
{
    struct polled polled = {nonblocking(own), false};
    pthread_t poller = start(poll_state, &polled);
    for (int k = 0; k < 60; k++) {
        ncclComm_t child;
        NCCL(ncclCommSplit(polled.comm, 0, 0, &child, NULL));
        NCCL(harness_wait(polled.comm));
        NCCL(ncclCommDestroy(child));
    }
    polled.over = true;
    pthread_join(poller, NULL);
    NCCL(ncclCommDestroy(polled.comm));
}

/* ---- while a group is open ---- */

static void *abort_it(void *arg)
{
    NCCL(ncclCommAbort(arg));
    return NULL;
}

static void aborted_in_a_group(struct harness_rank *own)
{
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, own->comm, own->stream));
    pthread_barrier_wait(&both); /* a peer's abort would be told to this call */
    pthread_join(start(abort_it, own->comm), NULL);
    CHECK(ncclGroupEnd() == ncclInternalError);
    own->comm = NULL;
    CUDA(cudaStreamSynchronize(own->stream));
    CUDA(cudaFree(buffer));
}

static void destroyed_by_its_group(struct harness_rank *own)
{
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, own->comm, own->stream));
    NCCL(ncclCommDestroy(own->comm));
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    own->comm = NULL;
    CUDA(cudaStreamSynchronize(own->stream));
    CUDA(cudaFree(buffer));
}

/* The watchdog's way out of a call that waits for a peer. */
static void aborted_in_a_split(struct harness_rank *own)
{
    ncclComm_t child = NULL;
    if (own->rank == 0) {
        pthread_t watchdog = start(abort_it, own->comm);
        CHECK(ncclCommSplit(own->comm, 0, 0, &child, NULL) != ncclSuccess);
        pthread_join(watchdog, NULL);
        if (child) NCCL(ncclCommAbort(child));
    } else {
        NCCL(ncclCommAbort(own->comm));
    }
    own->comm = NULL;
}

/* ---- under running work ---- */

static _Atomic int first_is_destroying;

/* A refused group finalized nothing: Destroy still waits for the late peer. */
static void destroyed_after_a_refused_finalize(struct harness_rank *own)
{
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    for (int i = 0; i < COUNT; i++)
        buffer[i] = own->rank + 1;
    while (own->rank == 1 && !first_is_destroying)
        sched_yield();
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    NCCL(ncclGroupStart());
    NCCL(ncclCommFinalize(own->comm));
    CHECK(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream) ==
          ncclInvalidUsage);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    if (own->rank == 0) first_is_destroying = 1;
    NCCL(ncclCommDestroy(own->comm));
    own->comm = NULL;
    CUDA(cudaStreamSynchronize(own->stream));
    for (int i = 0; i < COUNT; i++)
        CHECK(buffer[i] == 3);
    CUDA(cudaFree(buffer));
}

/* A finalize that its group dropped never was: the communicator works. */
static void used_after_a_refused_finalize(struct harness_rank *own)
{
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    buffer[0] = 1;
    NCCL(ncclGroupStart());
    NCCL(ncclCommFinalize(own->comm));
    CHECK(ncclSend(buffer, 1, ncclInt, 7, own->comm, own->stream) != ncclSuccess);
    CHECK(ncclGroupEnd() != ncclSuccess);
    NCCL(ncclAllReduce(buffer, buffer, 1, ncclInt, ncclSum, own->comm, own->stream));
    CUDA(cudaStreamSynchronize(own->stream));
    CHECK(buffer[0] == RANKS);
    CUDA(cudaFree(buffer));
}

/* ---- while operations wait behind a host function ---- */

static void hold_back(void *arg)
{
    while (!*(_Atomic bool *)arg)
        sched_yield();
}

enum ending { BY_ABORT, BY_REVOKE, BY_SHRINK, ENDINGS };

static void end_by(struct harness_rank *own, enum ending ending)
{
    int excluded = 1;
    ncclComm_t survivor = NULL;
    if (ending == BY_REVOKE) NCCL(ncclCommRevoke(own->comm, NCCL_REVOKE_DEFAULT));
    if (ending == BY_SHRINK && own->rank == 0) {
        NCCL(ncclCommShrink(own->comm, &excluded, 1, &survivor, NULL, NCCL_SHRINK_ABORT));
        NCCL(ncclCommDestroy(survivor));
    }
    if (ending == BY_ABORT || own->rank == 1) {
        NCCL(ncclCommAbort(own->comm));
    } else if (ending == BY_REVOKE) {
        NCCL(ncclCommDestroy(own->comm));
    }
}

/* The stream reaches them after the communicator's end, and goes on behind them. */
static void ended_before_its_turn(struct harness_rank *own)
{
    enum ending ending = *(const enum ending *)own->arg;
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    _Atomic bool go = false;
    ncclResult_t state;
    CUDA(cudaLaunchHostFunc(own->stream, hold_back, &go));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    pthread_barrier_wait(&both);
    end_by(own, ending);
    if (ending == BY_ABORT) CHECK(ncclCommGetAsyncError(own->comm, &state) == ncclInvalidArgument);
    pthread_barrier_wait(&both);
    go = true;
    CUDA(cudaStreamSynchronize(own->stream));
    if (ending == BY_SHRINK && own->rank == 0) NCCL(ncclCommAbort(own->comm));
    own->comm = NULL;
    CUDA(cudaFree(buffer));
}

/* A graph is launched and destroyed after the abort of what it was captured from. */
static void aborted_under_a_graph(struct harness_rank *own)
{
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(own->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    CUDA(cudaStreamEndCapture(own->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    pthread_barrier_wait(&both);
    NCCL(ncclCommAbort(own->comm));
    own->comm = NULL;
    CUDA(cudaGraphLaunch(exec, own->stream));
    CUDA(cudaStreamSynchronize(own->stream));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaFree(buffer));
}

/* The child's queue is its parent's, whose call waits for a stream that stands still. */
static void aborted_beside_a_sharer(struct harness_rank *own)
{
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t child;
    _Atomic bool go = false;
    config.splitShare = 1;
    NCCL(ncclCommSplit(own->comm, 0, own->rank, &child, &config));
    NCCL(ncclCommFinalize(child));
    CUDA(cudaLaunchHostFunc(own->stream, hold_back, &go));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    pthread_barrier_wait(&both);
    NCCL(ncclCommAbort(child));
    pthread_barrier_wait(&both);
    go = true;
    NCCL(ncclCommAbort(own->comm));
    own->comm = NULL;
    CUDA(cudaStreamSynchronize(own->stream));
    CUDA(cudaFree(buffer));
}

/* Time for a message of rank 0, if there were one. */
static bool stays_well(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    for (int k = 0; k < 200 && state == ncclSuccess; k++) {
        if (ncclCommGetAsyncError(comm, &state)) return false;
        sched_yield();
    }
    return state == ncclSuccess;
}

/* Who has finalized has done its part: what it calls then takes nothing from the others. */
static void aborted_after_finalize(struct harness_rank *own)
{
    int *buffer = harness_device_alloc(COUNT * sizeof(int));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclInt, ncclSum, own->comm, own->stream));
    CUDA(cudaStreamSynchronize(own->stream));
    if (own->rank == 1) pthread_barrier_wait(&both);
    CHECK(own->rank == 0 || stays_well(own->comm));
    NCCL(ncclCommFinalize(own->comm));
    NCCL(own->rank == 0 ? ncclCommAbort(own->comm) : ncclCommDestroy(own->comm));
    if (own->rank == 0) pthread_barrier_wait(&both);
    own->comm = NULL;
    CUDA(cudaFree(buffer));
}

/* ---- grow ---- */

/* The id was made before a split: no rank may wait for another one. */
static void grown_by_an_old_id(struct harness_rank *own)
{
    ncclUniqueId id;
    ncclComm_t child, grown = NULL;
    if (own->rank == 0) NCCL(ncclCommGetUniqueId(own->comm, &id));
    NCCL(ncclCommSplit(own->comm, 0, 0, &child, NULL));
    NCCL(ncclCommDestroy(child));
    ncclResult_t rc =
        ncclCommGrow(own->comm, RANKS + 1, own->rank == 0 ? &id : NULL, -1, &grown, NULL);
    CHECK(rc == ncclInvalidArgument);
    if (grown) NCCL(ncclCommAbort(grown));
}

/* A grow in the background beside splits of the same parent: each call has its number. */
static void grown_beside_splits(struct harness_rank *own)
{
    ncclComm_t comm = nonblocking(own);
    for (int k = 0; k < 10; k++) {
        ncclUniqueId id;
        ncclComm_t grown, child;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        if (own->rank == 0) NCCL(ncclCommGetUniqueId(comm, &id));
        NCCL(ncclCommGrow(comm, RANKS + 1, own->rank == 0 ? &id : NULL, -1, &grown, &config));
        NCCL(ncclCommSplit(comm, 0, 0, &child, NULL));
        NCCL(harness_wait(comm));
        NCCL(ncclCommAbort(grown)); /* no new rank ever comes */
        NCCL(ncclCommDestroy(child));
    }
    NCCL(ncclCommDestroy(comm));
}

/* One rank has left in order before the other splits, or leaves while that waits: it is told at
 * once and not when the time of the init is up. */
static void split_without_one(struct harness_rank *own)
{
    const int *leaving = own->arg;
    ncclComm_t child = NULL;
    if (own->rank == *leaving) {
        NCCL(ncclCommDestroy(own->comm));
    } else {
        double start = harness_now_sec();
        ncclResult_t rc = ncclCommSplit(own->comm, 0, 0, &child, NULL);
        const char *why = ncclGetLastError(own->comm);
        if (rc != ncclRemoteError || !strstr(why, "has left the communicator") ||
            !strstr(why, own->rank ? "rank 0 on" : "rank 1 on") || harness_now_sec() - start > 60)
            harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", own->rank, (int)rc, why);
        if (child) NCCL(ncclCommAbort(child));
        NCCL(ncclCommAbort(own->comm));
    }
    own->comm = NULL;
}

/* ---- and why ---- */

static void *fail_otherwise(void *arg)
{
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess)
        NCCL(ncclCommGetAsyncError(arg, &state));
    CHECK(ncclCommCount(arg, NULL) == ncclInvalidArgument);
    return NULL;
}

/* The end of a broken communicator reports its own reason, whatever another thread said since. */
static void reported_at_the_end(struct harness_rank *own)
{
    if (own->rank) {
        NCCL(ncclCommAbort(own->comm));
    } else {
        pthread_join(start(fail_otherwise, own->comm), NULL);
        ncclResult_t rc = ncclCommDestroy(own->comm);
        const char *why = ncclGetLastError(NULL);
        if (rc != ncclRemoteError || !strstr(why, "rank 1 aborted the communicator"))
            harness_fail(__FILE__, __LINE__, "code %d, \"%s\"", (int)rc, why);
    }
    own->comm = NULL;
}

int main(void)
{
    pthread_barrier_init(&both, NULL, RANKS);
    harness_threads(RANKS, polled_splits, NULL, HARNESS_NO_COMM);
    harness_threads(RANKS, aborted_in_a_group, NULL, 0);
    harness_threads(RANKS, destroyed_by_its_group, NULL, 0);
    harness_threads(RANKS, aborted_in_a_split, NULL, 0);
    harness_threads(RANKS, destroyed_after_a_refused_finalize, NULL, 0);
    harness_threads(RANKS, used_after_a_refused_finalize, NULL, 0);
    for (enum ending ending = BY_ABORT; ending < ENDINGS; ending++)
        harness_threads(RANKS, ended_before_its_turn, &ending, 0);
    harness_threads(RANKS, aborted_under_a_graph, NULL, 0);
    harness_threads(RANKS, aborted_beside_a_sharer, NULL, 0);
    for (int k = 0; k < 20; k++) /* what the network has yet to carry is not cut off either */
        harness_threads(RANKS, aborted_after_finalize, NULL, 0);
    harness_threads(RANKS, grown_by_an_old_id, NULL, 0);
    harness_threads(RANKS, grown_beside_splits, NULL, HARNESS_NO_COMM);
    for (int leaving = 0; leaving < RANKS; leaving++)
        harness_threads(RANKS, split_without_one, &leaving, 0);
    harness_threads(RANKS, reported_at_the_end, NULL, 0);
    puts("done");
    return 0;
}
