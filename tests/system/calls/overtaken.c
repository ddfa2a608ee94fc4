/* One thread calls without a pause, alone and in groups that come again, and one asks after errors,
 * while another one aborts both communicators, as a watchdog does: each call returns, the first
 * failure ends the round, and nothing that a call looks at is freed under it (the sanitizers see
 * that). usage: overtaken [ROUNDS [SEED]] */
#include "../harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

enum { RANKS = 2, COUNT = 2, KINDS = 4 };

struct round {
    ncclComm_t comms[RANKS];
    cudaStream_t streams[RANKS];
    float *in[RANKS], *out[RANKS];
    _Atomic int calls;
    _Atomic bool over; /* a call failed, with this sentence */
    char why[768];
    int kind, wait;
};

static uint32_t random_next(uint32_t *state)
{
    return (*state = *state * 1664525u + 1013904223u) >> 8;
}

static ncclResult_t sum(const struct round *round, int rank)
{
    return ncclAllReduce(round->in[rank], round->out[rank], COUNT, ncclFloat, ncclSum,
                         round->comms[rank], round->streams[rank]);
}

static ncclResult_t message(const struct round *round, int rank)
{
    ncclComm_t comm = round->comms[rank];
    cudaStream_t stream = round->streams[rank];
    ncclResult_t rc = ncclSend(round->in[rank], COUNT, ncclFloat, !rank, comm, stream);
    return rc ? rc : ncclRecv(round->out[rank], COUNT, ncclFloat, !rank, comm, stream);
}

static ncclResult_t group(const struct round *round, int rank)
{
    ncclResult_t rc = ncclGroupStart();
    for (int k = 0; k < 3 && !rc; k++)
        rc = round->kind == 2 ? message(round, rank) : sum(round, rank);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* kind 0: calls alone; 1 and 2: groups of one communicator; 3: both communicators in a group */
static ncclResult_t call(const struct round *round)
{
    ncclResult_t rc = ncclSuccess, end = ncclSuccess;
    if (round->kind == 3) rc = ncclGroupStart();
    for (int rank = 0; rank < RANKS && !rc; rank++) {
        bool alone = round->kind == 0 || round->kind == 3;
        rc = alone ? sum(round, rank) : group(round, rank);
    }
    if (round->kind == 3) end = ncclGroupEnd();
    return rc ? rc : end;
}

static void *call_on(void *arg)
{
    struct round *round = arg;
    while (!call(round)) {
        if (++round->calls % 16) continue;
        for (int rank = 0; rank < RANKS; rank++)
            CUDA(cudaStreamSynchronize(round->streams[rank]));
    }
    snprintf(round->why, sizeof(round->why), "%s", ncclGetLastError(NULL));
    atomic_store(&round->over, true);
    return NULL;
}

static void *ask_on(void *arg)
{
    const struct round *round = arg;
    int number;
    for (ncclResult_t state, rc = ncclSuccess; !rc;) {
        for (int rank = 0; rank < RANKS && !rc; rank++) {
            rc = ncclCommGetAsyncError(round->comms[rank], &state);
            if (!rc) rc = ncclCommCount(round->comms[rank], &number);
        }
        sched_yield();
    }
    return NULL;
}

static void play(struct round *round)
{
    pthread_t thread, asking;
    NCCL(ncclCommInitAll(round->comms, RANKS, NULL));
    round->calls = 0;
    round->over = false;
    CHECK(!pthread_create(&thread, NULL, call_on, round));
    CHECK(!pthread_create(&asking, NULL, ask_on, round));
    while (round->calls < round->wait) {
        if (atomic_load(&round->over))
            harness_fail(__FILE__, __LINE__,
                         "kind %d, after %d calls of %d, a call failed before the abort: %s",
                         round->kind, round->calls, round->wait, round->why);
        sched_yield();
    }
    for (int rank = 0; rank < RANKS; rank++)
        NCCL(ncclCommAbort(round->comms[rank]));
    pthread_join(thread, NULL);
    pthread_join(asking, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        CUDA(cudaStreamSynchronize(round->streams[rank]));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    uint32_t state = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    struct round round = {.kind = 0};
    setenv("TUTTI_DEVICES", "2", 1);
    for (int rank = 0; rank < RANKS; rank++) {
        CUDA(cudaSetDevice(rank));
        CUDA(cudaStreamCreateWithFlags(&round.streams[rank], cudaStreamNonBlocking));
        round.in[rank] = harness_device_alloc(COUNT * sizeof(float));
        round.out[rank] = harness_device_alloc(COUNT * sizeof(float));
    }
    for (int k = 0; k < rounds; k++) {
        round.kind = k % KINDS;
        round.wait = 1 + (int)(random_next(&state) % 40);
        play(&round);
    }
    printf("%d rounds\n", rounds);
    return 0;
}
