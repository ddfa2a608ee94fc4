/* Training that outlives its processes: workers are killed in the midst of a loop, the others go on
 * without them (ncclCommShrink), new ones join (ncclCommGrow), and the sums stay right.
 *   ./elastic [WORKERS [DEATHS [SEED]]]
 * The first process starts the workers, kills one now and then, and says who is dead: a real job
 * learns that from its scheduler. What the workers share lies in shared memory, where a
 * job of several hosts would have its store. */
#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, ITEMS = 1000, STEP_USEC = 500, WAIT_SEC = 120 };
enum {
    SUM,
    JOIN,
    STOP,
    WORDS
}; /* what a step adds up: the gradient, and what rank 0 has been told */

struct shared {
    ncclUniqueId id;
    _Atomic int has_id;  /* of the start, then of each newcomer's number */
    _Atomic int deaths;  /* dead[] has so many */
    _Atomic int joining; /* number of the newcomer that waits, from 2 on; 0: none */
    _Atomic int joined;  /* number of the last one that is in */
    _Atomic int whole;   /* deaths from which all have recovered */
    _Atomic int stop;
    _Atomic long step;       /* of rank 0 */
    int dead[1024];          /* slots of workers that were killed */
    int nranks, slots[MOST]; /* for a newcomer: whose slot each rank is */
};

struct worker {
    struct shared *shared;
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t *device;
    int slot; /* number of the worker; the one that replaces it has the same */
    int rank, nranks, slots[MOST], deaths; /* of which it has recovered */
    int64_t step, weight,
        before; /* before: the weight one step ago, as others may be a step behind */
};

/* What one step adds to the weight, however many workers share the items. */
static int64_t gradient(int64_t step, int rank, int nranks)
{
    int64_t sum = 0;
    for (int item = rank; item < ITEMS; item += nranks)
        sum += (step * 7919 + item) % 1009;
    return sum;
}

static ncclResult_t all_reduce(struct worker *w, int64_t *words, int count, ncclRedOp_t op)
{
    ncclResult_t rc, state = ncclSuccess;
    CUDA(cudaMemcpyAsync(w->device, words, (size_t)count * sizeof(*words), cudaMemcpyHostToDevice,
                         w->stream));
    rc = ncclAllReduce(w->device, w->device, (size_t)count, ncclInt64, op, w->comm, w->stream);
    CUDA(cudaStreamSynchronize(w->stream)); /* ends when the peers have, or when one is lost */
    if (rc == ncclSuccess) rc = ncclCommGetAsyncError(w->comm, &state);
    if (rc == ncclSuccess) rc = state;
    if (rc != ncclSuccess) return rc;
    CUDA(cudaMemcpyAsync(words, w->device, (size_t)count * sizeof(*words), cudaMemcpyDeviceToHost,
                         w->stream));
    CUDA(cudaStreamSynchronize(w->stream));
    return ncclSuccess;
}

/* The dead among the members, as ranks; how many. */
static int find_dead(const struct worker *w, int deaths, int *ranks)
{
    int count = 0;
    for (int r = 0; r < w->nranks; r++) {
        for (int k = w->deaths; k < deaths; k++) {
            if (w->shared->dead[k] == w->slots[r]) ranks[count++] = r;
        }
    }
    return count;
}

/* Go on without the dead, from the step that all the others have in common. */
static void recover(struct worker *w)
{
    int dead[MOST], left = 0;
    ncclComm_t smaller = NULL;
    while (atomic_load(&w->shared->deaths) == w->deaths)
        usleep(200);
    int deaths = atomic_load(&w->shared->deaths);
    int count = find_dead(w, deaths, dead);
    NCCL(ncclCommShrink(w->comm, dead, count, &smaller, NULL, NCCL_SHRINK_ABORT));
    NCCL(ncclCommAbort(w->comm));
    w->comm = smaller;
    for (int r = 0, k = 0; r < w->nranks; r++) {
        if (k < count && dead[k] == r)
            k++;
        else
            w->slots[left++] = w->slots[r];
    }
    w->nranks = left;
    w->deaths = deaths;
    NCCL(ncclCommUserRank(w->comm, &w->rank));
    int64_t least = w->step;
    NCCL(all_reduce(w, &least, 1, ncclMin));
    if (least < w->step) w->weight = w->before;
    w->step = least;
    if (w->rank == 0) atomic_store(&w->shared->whole, deaths);
}

/* All old ranks come here after the same step; the newcomer takes the last rank. */
static void grow(struct worker *w, int number, int slot)
{
    struct shared *shared = w->shared;
    ncclComm_t larger;
    if (w->rank == 0) {
        NCCL(ncclCommGetUniqueId(w->comm, &shared->id));
        memcpy(shared->slots, w->slots, sizeof(w->slots));
        shared->nranks = w->nranks;
        atomic_store(&shared->has_id, number);
    }
    NCCL(
        ncclCommGrow(w->comm, w->nranks + 1, w->rank == 0 ? &shared->id : NULL, -1, &larger, NULL));
    NCCL(ncclCommDestroy(w->comm));
    w->comm = larger;
    w->slots[w->nranks++] = slot;
}

static void join(struct worker *w, int number)
{
    struct shared *shared = w->shared;
    while (atomic_load(&shared->has_id) != number)
        usleep(200);
    w->rank = shared->nranks;
    w->nranks = shared->nranks + 1;
    memcpy(w->slots, shared->slots, sizeof(w->slots));
    w->slots[w->rank] = w->slot;
    w->deaths = atomic_load(&shared->deaths);
    NCCL(ncclCommGrow(NULL, w->nranks, &shared->id, w->rank, &w->comm, NULL));
}

/* The newcomer gets what a checkpoint would hold. */
static void share_state(struct worker *w, int number)
{
    int64_t state[3] = {w->step, w->weight, w->before};
    CUDA(cudaMemcpyAsync(w->device, state, sizeof(state), cudaMemcpyHostToDevice, w->stream));
    NCCL(ncclBroadcast(w->device, w->device, 3, ncclInt64, 0, w->comm, w->stream));
    CUDA(cudaMemcpyAsync(state, w->device, sizeof(state), cudaMemcpyDeviceToHost, w->stream));
    CUDA(cudaStreamSynchronize(w->stream));
    w->step = state[0];
    w->weight = state[1];
    w->before = state[2];
    if (w->rank == w->nranks - 1) atomic_store(&w->shared->joined, number);
}

/* One step; true when all have been told to stop. */
static int train(struct worker *w)
{
    struct shared *shared = w->shared;
    int64_t words[WORDS] = {gradient(w->step, w->rank, w->nranks), 0, 0};
    if (w->rank == 0) {
        words[JOIN] = atomic_load(&shared->joining);
        words[STOP] = atomic_load(&shared->stop);
        atomic_store(&shared->step, (long)w->step);
    }
    if (all_reduce(w, words, WORDS, ncclSum) != ncclSuccess) {
        recover(w);
        return 0;
    }
    w->before = w->weight;
    w->weight += words[SUM];
    w->step++;
    if (words[JOIN]) {
        int number = (int)(words[JOIN] / MOST), slot = (int)(words[JOIN] % MOST);
        if (number > atomic_load(&shared->joined)) {
            grow(w, number, slot);
            share_state(w, number);
            while (atomic_load(&shared->joining)) /* until it is known that the newcomer is in */
                usleep(200);
        }
    }
    return words[STOP] != 0;
}

static void work(struct shared *shared, int slot, int nranks, int number)
{
    struct worker w = {.shared = shared, .slot = slot, .rank = slot, .nranks = nranks};
    int64_t expected = 0;
    int devices;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(WAIT_SEC);
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(slot % devices));
    CUDA(cudaStreamCreate(&w.stream));
    CUDA(cudaMalloc((void **)&w.device, WORDS * sizeof(*w.device)));
    for (int r = 0; r < nranks; r++)
        w.slots[r] = r;
    if (number > 1) {
        join(&w, number);
        share_state(&w, number);
    } else {
        if (slot == 0) NCCL(ncclGetUniqueId(&shared->id));
        if (slot == 0) atomic_store(&shared->has_id, 1);
        while (!atomic_load(&shared->has_id))
            usleep(200);
        NCCL(ncclCommInitRank(&w.comm, nranks, shared->id, slot));
    }
    while (!train(&w)) {
        alarm(WAIT_SEC); /* a wait of that length has failed */
        usleep(STEP_USEC);
    }
    for (int64_t step = 0; step < w.step; step++)
        expected += gradient(step, 0, 1);
    if (w.weight != expected) {
        fprintf(stderr, "rank %d: the weight after step %lld is wrong\n", w.rank,
                (long long)w.step);
        exit(1);
    }
    NCCL(ncclCommDestroy(w.comm));
    CUDA(cudaFree(w.device));
    exit(0);
}

static pid_t start(struct shared *shared, int slot, int nranks, int number)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) work(shared, slot, nranks, number);
    return pid;
}

/* Until the workers have come so far; none of them may end meanwhile. */
static void await(const _Atomic int *word, int wanted)
{
    while (atomic_load(word) < wanted) {
        siginfo_t ended = {.si_pid = 0};
        if (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
            fprintf(stderr, "elastic: process %d ended by itself\n", (int)ended.si_pid);
            exit(1);
        }
        usleep(200);
    }
}

int main(int argc, char **argv)
{
    int workers = argc > 1 ? atoi(argv[1]) : 3, deaths = argc > 2 ? atoi(argv[2]) : 4;
    unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    pid_t pids[MOST];
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || workers < 2 || workers > MOST || deaths < 0 || deaths > 1024)
        return 2;
    for (int slot = 0; slot < workers; slot++)
        pids[slot] = start(shared, slot, workers, 1);
    for (int k = 0; k < deaths; k++) {
        int slot = rand_r(&seed) % workers, number = k + 2;
        long step = atomic_load(&shared->step) + 2 + rand_r(&seed) % 20;
        while (atomic_load(&shared->step) < step)
            await(&shared->whole, k); /* looks after them */
        kill(pids[slot], SIGKILL);
        waitpid(pids[slot], NULL, 0);
        shared->dead[k] = slot;
        atomic_store(&shared->deaths, k + 1);
        await(&shared->whole, k + 1);
        printf("worker %d was killed after step %ld, the others go on\n", slot,
               atomic_load(&shared->step));
        pids[slot] = start(shared, slot, workers, number);
        atomic_store(&shared->joining, number * MOST + slot);
        await(&shared->joined, number);
        atomic_store(&shared->joining, 0);
    }
    atomic_store(&shared->stop, 1);
    for (int slot = 0; slot < workers; slot++) {
        int status;
        if (waitpid(pids[slot], &status, 0) < 0 || status) {
            fprintf(stderr, "elastic: worker %d ended with status %d\n", slot, status);
            return 1;
        }
    }
    printf("elastic: %d workers, %d killed and replaced, %ld steps, all sums right\n", workers,
           deaths, atomic_load(&shared->step));
    return 0;
}
