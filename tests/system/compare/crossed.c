/* Ranks that use two or more communicators in different order. Where each has both calls on one
 * stream nothing can end: all get ncclInvalidUsage with the calls. Where a rank waits for one call
 * before it makes the other, it might still make it: each that waits is warned within seconds.
 * Where the ranks are merely late, no rank says anything. A split or a registration against a sum
 * is an error at all ranks, with both calls; one of another communicator is warned of. In memory
 * and over sockets.
 *
 * usage: crossed [sockets] */
#include "../harness/harness.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 1000, LIMIT_SEC = 60, WARNED_SEC = 30, LATE_USEC = 2600000 };

struct play {
    const char *name;
    bool waits; /* for each call before the next one */
    bool late;  /* the order is right, but the last rank comes late */
    enum {
        SUMS,
        SPLITS,
        REGISTERS,
        SPLITS_ANOTHER
    } meets; /* what the first rank does where the
                others sum */
};

struct shared {
    ncclUniqueId ids[RANKS];
    _Atomic bool ready;
    _Atomic int done; /* ranks: none ends before all have seen what they are to see */
};

struct rank {
    int rank;
    const struct play *play;
    struct shared *shared;
    ncclComm_t comms[RANKS];
    cudaStream_t stream;
    float *buffer;
    FILE *log;
};

static const char *log_path(int rank)
{
    static char path[200];
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/crossed.%d.%d", tmp ? tmp : "/tmp", (int)getppid(), rank);
    return path;
}

/* The line is in this rank's log. */
static bool is_warned(const struct rank *own, const char *words)
{
    char line[2000];
    bool found = false;
    rewind(own->log);
    while (fgets(line, sizeof(line), own->log)) {
        found |= strstr(line, words) != NULL;
    }
    clearerr(own->log);
    return found;
}

static void call(const struct rank *own, int k)
{
    NCCL(ncclAllReduce(own->buffer, own->buffer, COUNT, ncclFloat, ncclSum, own->comms[k],
                       own->stream));
}

/* Until the stream is done or a communicator has failed; returns its error. */
static ncclResult_t await(const struct rank *own, const char **why)
{
    ncclResult_t state = ncclSuccess;
    bool done = false;
    while (!state && !done) {
        done = cudaStreamQuery(own->stream) == cudaSuccess;
        for (int k = 0; k < RANKS && !state; k++) {
            NCCL(ncclCommGetAsyncError(own->comms[k], &state));
            *why = ncclGetLastError(own->comms[k]);
        }
        usleep(500);
    }
    return state;
}

static void must_say(const struct rank *own, ncclResult_t state, const char *why)
{
    const char *const words[] = {" ranks wait for each other: rank ", " of comm 0x",
                                 "in AllReduce(count 1000, float, sum), rank ",
                                 "all ranks must use communicators in the same order"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (state == ncclInvalidUsage && strstr(why, words[i])) continue;
        harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", own->rank, (int)state, why);
    }
}

static void must_be_warned(const struct rank *own)
{
    const double end = harness_now_sec() + WARNED_SEC;
    call(own, own->rank);
    while (!is_warned(own, "all ranks must use communicators in the same order")) {
        if (harness_now_sec() > end)
            harness_fail(__FILE__, __LINE__, "rank %d: no word", own->rank);
        usleep(5000);
    }
    CHECK(cudaStreamQuery(own->stream) == cudaErrorNotReady);
}

/* The rank that stands in a split is told by a thread of the library, into its log. */
static void *await_word(void *arg)
{
    const struct rank *own = arg;
    const double end = harness_now_sec() + WARNED_SEC;
    while (!is_warned(own, "waits for all ranks in a split or registration")) {
        if (harness_now_sec() > end)
            harness_fail(__FILE__, __LINE__, "rank %d: no word", own->rank);
        usleep(5000);
    }
    own->shared->done++;
    while (own->shared->done < RANKS)
        usleep(2000);
    NCCL(ncclCommAbort(own->comms[0])); /* ends a split of its own and others' */
    return NULL;
}

/* Rank 0 splits a communicator, and the others sum in another one first. They might come yet. */
static void meet_beside(const struct rank *own)
{
    pthread_t thread;
    ncclComm_t part = NULL;
    CHECK(pthread_create(&thread, NULL, await_word, (void *)(uintptr_t)own) == 0);
    if (own->rank == 0) {
        CHECK(ncclCommSplit(own->comms[0], 0, 0, &part, NULL) != ncclSuccess);
    } else {
        call(own, 1);
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Rank 0 makes a call of all ranks where the others sum. */
static void meet(const struct rank *own)
{
    const char *why, *met = own->play->meets == SPLITS ? "ncclCommSplit" : "ncclCommWindowRegister";
    ncclComm_t part = NULL, comm = own->comms[0];
    ncclWindow_t window = NULL;
    ncclResult_t state;
    if (own->rank) {
        call(own, 0);
        state = await(own, &why);
    } else {
        state = own->play->meets == SPLITS
                    ? ncclCommSplit(comm, 0, 0, &part, NULL)
                    : ncclCommWindowRegister(comm, own->buffer, COUNT * sizeof(float), &window, 0);
        why = ncclGetLastError(comm);
    }
    if (state != ncclInvalidUsage || !strstr(why, met) || !strstr(why, "rank 0 called") ||
        !strstr(why, "called AllReduce(count 1000, float, sum) as operation 1"))
        harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", own->rank, (int)state, why);
}

/* All connections are there, so that the calls that follow come at once, between two looks of the
 * library. */
static void warm_up(const struct rank *own)
{
    const char *why = "";
    for (int k = 0; k < RANKS; k++)
        call(own, k);
    CHECK(await(own, &why) == ncclSuccess);
}

static void use(const struct rank *own)
{
    const char *why = "";
    if (own->play->meets == SUMS) warm_up(own);
    const double start = harness_now_sec();
    if (own->play->meets == SPLITS_ANOTHER) {
        meet_beside(own);
        printf("rank %d: %.2f s\n", own->rank, harness_now_sec() - start);
        return;
    }
    if (own->play->meets) {
        meet(own);
    } else if (own->play->waits) {
        must_be_warned(own);
    } else if (own->play->late) {
        if (own->rank == RANKS - 1) usleep(LATE_USEC);
        for (int k = 0; k < RANKS; k++)
            call(own, k);
        CHECK(await(own, &why) == ncclSuccess);
        CHECK(!is_warned(own, "wait for each other"));
    } else {
        for (int k = 0; k < RANKS; k++)
            call(own, (own->rank + k) % RANKS);
        const ncclResult_t state = await(own, &why);
        must_say(own, state, why);
    }
    printf("rank %d: %.2f s\n", own->rank, harness_now_sec() - start);
    own->shared->done++;
    while (own->shared->done < RANKS)
        usleep(2000);
}

static void live(int rank, const struct play *play, struct shared *shared)
{
    struct rank own = {.rank = rank, .play = play, .shared = shared};
    alarm(LIMIT_SEC);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", log_path(rank), 1);
    own.log = fopen(log_path(rank), "w+e");
    CHECK(own.log);
    for (int k = 0; k < RANKS && rank == 0; k++)
        NCCL(ncclGetUniqueId(&shared->ids[k]));
    if (rank == 0) shared->ready = true;
    while (!shared->ready)
        usleep(500);
    CUDA(cudaSetDevice(rank));
    for (int k = 0; k < RANKS; k++)
        NCCL(ncclCommInitRank(&own.comms[k], RANKS, shared->ids[k], rank));
    CUDA(cudaStreamCreate(&own.stream));
    CUDA(cudaMalloc((void **)&own.buffer, COUNT * sizeof(float)));
    use(&own);
    for (int k = play->meets == SPLITS_ANOTHER ? 1 : 0; k < RANKS; k++)
        (void)ncclCommAbort(own.comms[k]);
    unlink(log_path(rank));
    exit(0);
}

static void run(const struct play *play)
{
    int status, wrong = 0;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int rank = 0; rank < RANKS; rank++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) live(rank, play, shared);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK(wait(&status) > 0);
        wrong += status != 0;
    }
    CHECK(wrong == 0);
    munmap(shared, sizeof(*shared));
}

int main(int argc, char **argv)
{
    static const struct play plays[] = {
        {"on one stream", false, false, SUMS},
        {"one by one", true, false, SUMS},
        {"late", false, true, SUMS},
        {"against a split", false, false, SPLITS},
        {"against a registration", false, false, REGISTERS},
        {"against a split of another communicator", false, false, SPLITS_ANOTHER},
    };
    const bool sockets = argc > 1 && !strcmp(argv[1], "sockets");
    const size_t count = sizeof(plays) / sizeof(plays[0]) - (sockets ? 1 : 0);
    setenv("TUTTI_DEVICES", "3", 1);
    if (sockets) {
        setenv("NCCL_P2P_DISABLE", "1", 1);
        setenv("NCCL_SHM_DISABLE", "1", 1);
    }
    for (size_t i = 0; i < count; i++) {
        puts(plays[i].name);
        fflush(NULL);
        run(&plays[i]);
    }
    return 0;
}
