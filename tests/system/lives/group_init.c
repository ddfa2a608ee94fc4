/* Several non-blocking communicators made in one group by one thread, each polled by a thread of
 * its own, used, finalized and destroyed; a group that mixes modes, one with a rank that is wrong,
 * and an init that is aborted by another thread, all end as the interface says. */
#include "../harness/world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 4, COUNT = 512 };

static int failures;

static void expect(int holds, const char *what)
{
    if (holds) return;
    printf("wrong: %s (%s)\n", what, ncclGetLastError(NULL));
    failures++;
}

static bool under_way(ncclResult_t rc)
{
    return rc == ncclSuccess || rc == ncclInProgress;
}

/* NULL when it became ready. */
static void *poll_one(void *arg)
{
    ncclResult_t state;
    ncclComm_t comm = arg;
    do {
        sched_yield();
        if (ncclCommGetAsyncError(comm, &state)) return arg;
    } while (state == ncclInProgress);
    return state ? arg : NULL;
}

/* Each communicator by a thread of its own, all at once. */
static void poll_all(ncclComm_t *comms, const char *what)
{
    pthread_t threads[RANKS];
    for (int r = 0; r < RANKS; r++)
        pthread_create(&threads[r], NULL, poll_one, comms[r]);
    for (int r = 0; r < RANKS; r++) {
        void *wrong;
        pthread_join(threads[r], &wrong);
        expect(!wrong, what);
    }
}

static ncclConfig_t background(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

static void use(ncclComm_t *comms)
{
    cudaStream_t streams[RANKS];
    float *buffers[RANKS];
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS; r++) {
        world_check_cuda(cudaSetDevice(r), "cudaSetDevice");
        world_check_cuda(cudaStreamCreate(&streams[r]), "cudaStreamCreate");
        world_check_cuda(cudaMalloc((void **)&buffers[r], COUNT * sizeof(float)), "cudaMalloc");
        for (int i = 0; i < COUNT; i++)
            buffers[r][i] = (float)r;
        expect(under_way(ncclAllReduce(buffers[r], buffers[r], COUNT, ncclFloat32, ncclSum,
                                       comms[r], streams[r])),
               "ncclAllReduce");
    }
    expect(under_way(ncclGroupEnd()), "ncclGroupEnd of operations");
    poll_all(comms, "the operation");
    for (int r = 0; r < RANKS; r++) {
        world_check_cuda(cudaStreamSynchronize(streams[r]), "cudaStreamSynchronize");
        expect(buffers[r][COUNT - 1] == RANKS * (RANKS - 1) / 2, "the sum");
        world_check_cuda(cudaFree(buffers[r]), "cudaFree");
        world_check_cuda(cudaStreamDestroy(streams[r]), "cudaStreamDestroy");
    }
}

static void group_of_four(void)
{
    ncclComm_t comms[RANKS] = {NULL};
    ncclConfig_t config = background();
    ncclUniqueId id;
    world_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS; r++) {
        world_check_cuda(cudaSetDevice(r), "cudaSetDevice");
        expect(under_way(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config)), "init");
        expect(comms[r] != NULL, "a handle at once");
    }
    expect(ncclGroupEnd() == ncclInProgress, "GroupEnd reports the work under way");
    poll_all(comms, "init");
    use(comms);
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < RANKS; r++)
        expect(under_way(ncclCommFinalize(comms[r])), "ncclCommFinalize");
    expect(under_way(ncclGroupEnd()), "GroupEnd of finalize");
    poll_all(comms, "finalize");
    for (int r = 0; r < RANKS; r++)
        world_check(ncclCommDestroy(comms[r]), "ncclCommDestroy");
}

static void mixed_modes(void)
{
    ncclComm_t comms[2] = {NULL};
    ncclConfig_t config = background();
    ncclUniqueId id;
    world_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    world_check(ncclGroupStart(), "ncclGroupStart");
    cudaSetDevice(0);
    expect(under_way(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config)), "the first");
    cudaSetDevice(1);
    ncclResult_t second = ncclCommInitRankConfig(&comms[1], 2, id, 1, NULL);
    ncclResult_t end = ncclGroupEnd();
    expect(second == ncclInvalidArgument, "a blocking one after a non-blocking one is refused");
    expect(end == ncclInvalidArgument, "GroupEnd returns that");
    for (int k = 0; k < 2; k++)
        if (comms[k]) world_check(ncclCommAbort(comms[k]), "ncclCommAbort");
}

/* One wrong rank drops the group; nothing waits for it. */
static void wrong_rank(void)
{
    ncclComm_t comms[2] = {NULL};
    ncclConfig_t config = background();
    ncclUniqueId id;
    world_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    world_check(ncclGroupStart(), "ncclGroupStart");
    expect(under_way(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config)), "the good one");
    expect(ncclCommInitRankConfig(&comms[1], 2, id, 7, &config) == ncclInvalidArgument, "rank 7");
    expect(strstr(ncclGetLastError(NULL), "rank 7 is not in 0..1") != NULL, "the sentence");
    expect(ncclGroupEnd() == ncclInvalidArgument, "GroupEnd says so");
    expect(comms[1] == NULL, "no handle for it");
    if (comms[0]) world_check(ncclCommAbort(comms[0]), "ncclCommAbort");
    expect(ncclGroupEnd() == ncclInvalidUsage, "the thread's depth is back to nothing");
}

static void *abort_it(void *comm)
{
    return ncclCommAbort(comm) ? comm : NULL;
}

/* The other rank never comes; another thread aborts. */
static void abort_from_elsewhere(void)
{
    ncclComm_t comm = NULL;
    ncclConfig_t config = background();
    ncclUniqueId id;
    pthread_t thread;
    void *wrong;
    world_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    expect(under_way(ncclCommInitRankConfig(&comm, 2, id, 0, &config)), "init");
    pthread_create(&thread, NULL, abort_it, comm);
    pthread_join(thread, &wrong);
    expect(!wrong, "an abort by another thread");
}

int main(void)
{
    group_of_four();
    mixed_modes();
    wrong_rank();
    abort_from_elsewhere();
    printf("%d wrong\n", failures);
    return failures ? 1 : 0;
}
