/* A process forks while it has communicators: in the child each call on them fails as usage and
 * says why, none waits for threads that the child has not, and the parent's go on. */
#include "../harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 4096, TIMEOUT_SEC = 60, FORKS = 200 };

static void sum(const struct harness_rank *r, float *buffer)
{
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
}

static void refused(ncclResult_t rc, const char *call)
{
    const char *why = ncclGetLastError(NULL);
    if (rc != ncclInvalidUsage || !strstr(why, "created before fork"))
        harness_fail(__FILE__, __LINE__, "%s in a child: code %d: %s", call, (int)rc, why);
}

/* No CUDA here: a child of fork has no device. */
static void child_main(const struct harness_rank *r, float *buffer, bool aborts)
{
    ncclResult_t state = ncclSuccess;
    ncclComm_t other = NULL;
    int excluded = 1 - r->rank, n;
    alarm(TIMEOUT_SEC);
    refused(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, r->comm, r->stream),
            "AllReduce");
    refused(ncclSend(buffer, COUNT, ncclFloat, excluded, r->comm, r->stream), "Send");
    refused(ncclCommCount(r->comm, &n), "CommCount");
    refused(ncclCommSplit(r->comm, 0, 0, &other, NULL), "CommSplit");
    refused(ncclCommShrink(r->comm, &excluded, 1, &other, NULL, NCCL_SHRINK_DEFAULT), "CommShrink");
    refused(ncclCommFinalize(r->comm), "CommFinalize");
    CHECK(ncclCommGetAsyncError(r->comm, &state) == ncclSuccess && state == ncclInvalidUsage);
    if (aborts) {
        NCCL(ncclCommAbort(r->comm));
    } else {
        refused(ncclCommDestroy(r->comm), "CommDestroy");
    }
    CHECK(!other);
    _exit(0);
}

struct asking {
    ncclComm_t comm;
    _Atomic bool over;
};

/* As a watchdog does, so that a fork may come at any moment of it. */
static void *ask_on(void *arg)
{
    struct asking *asking = arg;
    ncclResult_t state;
    while (!atomic_load(&asking->over))
        NCCL(ncclCommGetAsyncError(asking->comm, &state));
    return NULL;
}

static void fork_beside_a_watchdog(struct harness_rank *r)
{
    struct asking asking = {.comm = r->comm};
    pthread_t thread;
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    sum(r, buffer);
    CHECK(!pthread_create(&thread, NULL, ask_on, &asking));
    for (int k = 0; k < FORKS; k++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child_main(r, buffer, k % 2);
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            harness_fail(__FILE__, __LINE__, "child %d ended with status %#x", k, (unsigned)status);
    }
    atomic_store(&asking.over, true);
    pthread_join(thread, NULL);
    sum(r, buffer);
    CUDA(cudaFree(buffer));
}

static void fork_twice(struct harness_rank *r)
{
    float *buffer = harness_device_alloc(COUNT * sizeof(float));
    int status;
    sum(r, buffer);
    for (int aborts = 0; aborts < 2; aborts++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child_main(r, buffer, aborts);
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            harness_fail(__FILE__, __LINE__, "a child ended with status %#x", (unsigned)status);
        sum(r, buffer);
    }
    CUDA(cudaFree(buffer));
}

/* Its thread that splits is not there: no thread waits for it. */
static void child_of_split(ncclComm_t comm, bool aborts)
{
    alarm(TIMEOUT_SEC);
    if (aborts) {
        NCCL(ncclCommAbort(comm));
    } else {
        CHECK(harness_wait(comm) == ncclInvalidUsage);
        CHECK(ncclCommDestroy(comm) == ncclInvalidUsage);
    }
    _exit(0);
}

/* Rank 0 forks while a split of a non-blocking communicator waits for the other rank. */
static void fork_in_split(struct harness_rank *r)
{
    _Atomic int *forked = r->arg;
    ncclComm_t comm = NULL, child = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t rc = ncclCommInitRankConfig(&comm, RANKS, r->id, r->rank, &config);
    CHECK((rc == ncclSuccess || rc == ncclInProgress) && harness_wait(comm) == ncclSuccess);
    while (r->rank == 1 && !atomic_load(forked))
        usleep(200);
    rc = ncclCommSplit(comm, 0, r->rank, &child, NULL);
    CHECK(rc == ncclSuccess || rc == ncclInProgress);
    for (int aborts = 0; r->rank == 0 && aborts < 2; aborts++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child_of_split(comm, aborts);
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            harness_fail(__FILE__, __LINE__, "a child ended with status %#x", (unsigned)status);
    }
    atomic_store(forked, 1);
    CHECK(harness_wait(comm) == ncclSuccess);
    NCCL(ncclCommDestroy(child));
    NCCL(ncclCommDestroy(comm));
}

int main(void)
{
    _Atomic int *forked =
        mmap(NULL, sizeof(*forked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(forked != MAP_FAILED);
    harness_processes(RANKS, fork_twice, NULL, 0);
    harness_processes(RANKS, fork_beside_a_watchdog, NULL, 0);
    harness_processes(RANKS, fork_in_split, forked, HARNESS_NO_COMM);
    return 0;
}
