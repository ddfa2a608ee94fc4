/* A rank that comes late: who is non-blocking gets control back at once, sees ncclInProgress until
 * the other one has come, and everything works afterwards. The late rank waits for a word of the
 * early one, so no clock decides. */
#include "../harness/world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000 };

struct fixture {
    ncclUniqueId id;
    _Atomic int saw_progress; /* the early rank has its control back and saw ncclInProgress */
    _Atomic int failures;
    bool grouped;
};

static ncclResult_t state_of(ncclComm_t comm)
{
    ncclResult_t state;
    world_check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    return state;
}

static void await_ready(ncclComm_t comm)
{
    ncclResult_t state;
    while ((state = state_of(comm)) == ncclInProgress) {
        sched_yield();
    }
    world_check(state, "non-blocking call");
}

static void expect(struct fixture *fixture, bool holds, const char *what)
{
    if (holds) return;
    printf("wrong: %s\n", what);
    fixture->failures++;
}

static ncclComm_t start_init(struct fixture *fixture, int rank)
{
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    world_check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    if (fixture->grouped) world_check(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t rc = ncclCommInitRankConfig(&comm, 2, fixture->id, rank, &config);
    if (fixture->grouped) {
        expect(fixture, rc == ncclSuccess || rc == ncclInProgress, "init in a group");
        rc = ncclGroupEnd();
    }
    expect(fixture, rc == ncclInProgress || rc == ncclSuccess, "answer of a non-blocking init");
    expect(fixture, comm != NULL, "a handle at once");
    return comm;
}

static void use(struct fixture *fixture, ncclComm_t comm, int rank)
{
    void *in, *out;
    cudaStream_t stream;
    world_check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    world_check_cuda(cudaMalloc(&in, COUNT * sizeof(float)), "cudaMalloc");
    world_check_cuda(cudaMalloc(&out, COUNT * sizeof(float)), "cudaMalloc");
    for (size_t i = 0; i < COUNT; i++) {
        ((float *)in)[i] = (float)(rank + 1);
    }
    ncclResult_t rc = ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, comm, stream);
    expect(fixture, rc == ncclSuccess || rc == ncclInProgress, "non-blocking AllReduce");
    await_ready(comm);
    world_check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    expect(fixture, ((float *)out)[COUNT - 1] == 3, "sum");
    rc = ncclCommFinalize(comm);
    expect(fixture, rc == ncclSuccess || rc == ncclInProgress, "non-blocking finalize");
    await_ready(comm);
    world_check(ncclCommDestroy(comm), "ncclCommDestroy");
    world_check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    world_check_cuda(cudaFree(in), "cudaFree");
    world_check_cuda(cudaFree(out), "cudaFree");
}

static void *early(void *arg)
{
    struct fixture *fixture = arg;
    ncclComm_t comm = start_init(fixture, 0);
    int count;
    for (int k = 0; k < 100; k++) {
        expect(fixture, state_of(comm) == ncclInProgress, "in progress while a rank is missing");
    }
    expect(fixture, ncclCommCount(comm, &count) == ncclInvalidArgument,
           "no query before it is made");
    fixture->saw_progress = 1;
    await_ready(comm);
    use(fixture, comm, 0);
    return NULL;
}

static void *late(void *arg)
{
    struct fixture *fixture = arg;
    while (!fixture->saw_progress) {
        sched_yield();
    }
    ncclComm_t comm = start_init(fixture, 1);
    await_ready(comm);
    use(fixture, comm, 1);
    return NULL;
}

int main(void)
{
    int failures = 0;
    for (int grouped = 0; grouped < 2; grouped++) {
        struct fixture fixture = {.grouped = grouped == 1};
        pthread_t threads[2];
        world_check(ncclGetUniqueId(&fixture.id), "ncclGetUniqueId");
        pthread_create(&threads[0], NULL, early, &fixture);
        pthread_create(&threads[1], NULL, late, &fixture);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        failures += fixture.failures;
    }
    printf("%d wrong\n", failures);
    return failures ? 1 : 0;
}
