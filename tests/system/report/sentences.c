/* What a user is told of mistakes that end in a wait, or well: a group that is not ended, two
 * communicators used in different orders, messages that were not received or do not match, memory
 * that was freed between two calls of one kind. Each scenario is a process of its own, whose ranks
 * are threads; they play at the same time, and each reads its own log. */
#include "../harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NRANKS = 2, COUNT = 16, LARGE = 100000, LIVES = 9, WAIT_SEC = 100 };

struct stage {
    const char *log;
    ncclComm_t first[NRANKS], second[NRANKS];
    pthread_barrier_t barrier;
    _Atomic bool go;
    int turn; /* of a scenario that is played several times */
    bool sockets;
};

struct actor {
    struct stage *stage;
    int rank;
    float *buffer, *other;
    cudaStream_t stream;
    void (*play)(struct actor *actor);
};

static int count_of(const struct stage *stage, const char *words)
{
    static char text[1 << 20];
    FILE *file = fopen(stage->log, "r");
    size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    int count = 0;
    if (file) fclose(file);
    text[bytes] = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        count++;
    return count;
}

static bool says(const struct stage *stage, const char *words)
{
    return count_of(stage, words) > 0;
}

static void await(const struct stage *stage, const char *words)
{
    double end = harness_now_sec() + WAIT_SEC;
    while (!says(stage, words)) {
        if (harness_now_sec() > end)
            harness_fail(__FILE__, __LINE__, "%s does not say '%s'", stage->log, words);
        usleep(2000);
    }
}

static ncclResult_t sum(const struct actor *actor, float *buffer, ncclComm_t comm)
{
    return ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, actor->stream);
}

static void synchronize(const struct actor *actor)
{
    CUDA(cudaStreamSynchronize(actor->stream));
}

static void *actor_main(void *arg)
{
    struct actor *actor = arg;
    CUDA(cudaSetDevice(actor->rank));
    CUDA(cudaStreamCreateWithFlags(&actor->stream, cudaStreamNonBlocking));
    actor->buffer = harness_device_alloc(COUNT * sizeof(float));
    actor->other = harness_device_alloc(COUNT * sizeof(float));
    actor->play(actor);
    return NULL;
}

static void begin(struct stage *stage, pthread_t threads[NRANKS], struct actor actors[NRANKS],
                  void (*play)(struct actor *actor))
{
    CHECK(!pthread_barrier_init(&stage->barrier, NULL, NRANKS));
    for (int r = 0; r < NRANKS; r++) {
        actors[r] = (struct actor){.stage = stage, .rank = r, .play = play};
        CHECK(!pthread_create(&threads[r], NULL, actor_main, &actors[r]));
    }
}

static void end(struct stage *stage, pthread_t threads[NRANKS])
{
    for (int r = 0; r < NRANKS; r++)
        pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&stage->barrier);
}

/* ---- a group that is not ended ---- */

static void forget_the_end(struct actor *actor)
{
    ncclComm_t comm = actor->stage->first[actor->rank];
    if (actor->rank == 1) NCCL(ncclGroupStart());
    NCCL(sum(actor, actor->buffer, comm));
    while (actor->rank == 1 && !atomic_load(&actor->stage->go))
        usleep(1000);
    if (actor->rank == 1) NCCL(ncclGroupEnd());
    synchronize(actor);
}

static void open_group(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, forget_the_end);
    await(stage, "; rank 1 has opened a group with calls and not ended it (ncclGroupEnd)");
    atomic_store(&stage->go, true);
    end(stage, threads);
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommDestroy(stage->first[r]));
}

/* ---- one thread calls for several ranks without a group ---- */

static void call_alone(struct actor *actor)
{
    if (actor->rank) return;
    NCCL(sum(actor, actor->buffer, actor->stage->first[0]));
    cudaStreamSynchronize(actor->stream); /* until it is aborted */
}

static void one_by_one(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, call_alone);
    await(stage, "rank 1 has called no collective yet; the ranks are of one process: what one "
                 "thread calls for several ranks must be between one ncclGroupStart and its ");
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommAbort(stage->first[r]));
    end(stage, threads);
}

static void init_one_by_one(struct stage *stage)
{
    ncclUniqueId id;
    setenv("TUTTI_INIT_TIMEOUT", "2", 1);
    NCCL(ncclGetUniqueId(&id));
    CHECK(ncclCommInitRank(&stage->first[0], NRANKS, id, 0) == ncclTimeout);
    CHECK(strstr(ncclGetLastError(NULL), "? A thread that calls ncclCommInitRank for several ranks "
                                         "must do so between ncclGroupStart and ncclGroupEnd"));
}

/* ---- two communicators in different orders ---- */

static void wait_in_own(struct actor *actor)
{
    struct stage *stage = actor->stage;
    NCCL(sum(actor, actor->buffer, actor->rank ? stage->second[1] : stage->first[0]));
    cudaStreamSynchronize(actor->stream); /* until all is aborted */
}

static void two_orders(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    NCCL(ncclCommInitAll(stage->second, NRANKS, NULL));
    begin(stage, threads, actors, wait_in_own);
    await(stage, "2 ranks wait for each other: rank ");
    CHECK(says(stage, " of comm 0x"));
    CHECK(says(stage, "all ranks must use communicators in the same order"));
    for (int r = 0; r < NRANKS; r++) {
        NCCL(ncclCommAbort(stage->first[r]));
        NCCL(ncclCommAbort(stage->second[r]));
    }
    end(stage, threads);
}

/* ---- messages that were not received ---- */

/* A message whose receiver has ended is waited for a moment, not for the network's ten seconds. */
static void end_comm(ncclComm_t comm)
{
    double since = harness_now_sec();
    NCCL(ncclCommDestroy(comm));
    double took = harness_now_sec() - since;
    if (took > 8) harness_fail(__FILE__, __LINE__, "ncclCommDestroy took %.1f s", took);
}

/* Who ends the communicator first, in turns. */
enum first { RECEIVER, SENDER, BOTH, FIRST_COUNT_ };

static enum first first_of(const struct stage *stage)
{
    const enum first first = (enum first)(stage->turn % FIRST_COUNT_);
    const bool received = stage->turn < FIRST_COUNT_;
    /* over sockets a sender that does not end last waits long for its data to be taken */
    return stage->sockets && !received ? RECEIVER : first;
}

static void send_one(struct actor *actor)
{
    struct stage *stage = actor->stage;
    ncclComm_t comm = stage->first[actor->rank];
    const enum first first = first_of(stage), own = actor->rank ? RECEIVER : SENDER;
    const bool received = stage->turn < FIRST_COUNT_;
    if (actor->rank == 0) NCCL(ncclSend(actor->buffer, 2, ncclFloat, 1, comm, actor->stream));
    if (actor->rank == 1 && received)
        NCCL(ncclRecv(actor->buffer, 2, ncclFloat, 0, comm, actor->stream));
    synchronize(actor);
    pthread_barrier_wait(&stage->barrier);
    if (first == BOTH || first == own) end_comm(comm);
    pthread_barrier_wait(&stage->barrier);
    if (first != BOTH && first != own) end_comm(comm);
}

/* Every second communicator is a child of the first one. */
static void make_comm(struct stage *stage)
{
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    if (stage->turn % 2 == 0) return;
    NCCL(ncclGroupStart());
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommSplit(stage->first[r], 0, r, &stage->second[r], NULL));
    NCCL(ncclGroupEnd());
    for (int r = 0; r < NRANKS; r++) {
        NCCL(ncclCommDestroy(stage->first[r]));
        stage->first[r] = stage->second[r];
    }
}

/* One of the two ranks warns of each, whichever ends first. */
static void unreceived(struct stage *stage)
{
    static const char *const words[] = {
        "after 0 of 1 message(s) that this rank has sent to it: a ncclRecv is missing there",
        "has sent 1 message(s) to this rank, which ends the communicator after 0: a ncclRecv is"};
    for (stage->turn = 0; stage->turn < LIVES; stage->turn++) {
        pthread_t threads[NRANKS];
        struct actor actors[NRANKS];
        make_comm(stage);
        begin(stage, threads, actors, send_one);
        end(stage, threads);
        const int warnings = count_of(stage, "a ncclRecv is missing");
        const int due = stage->turn < FIRST_COUNT_ ? 0 : stage->turn - FIRST_COUNT_ + 1;
        if (warnings != due)
            harness_fail(__FILE__, __LINE__, "turn %d: %d warnings", stage->turn, warnings);
    }
    CHECK(says(stage, words[0]) && (stage->sockets || says(stage, words[1])));
}

/* Two ranks in processes of their own; rank 1 is the child. */
struct twin {
    int rank;
    pid_t child;
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
};

static struct twin fork_twin(void)
{
    struct twin twin = {.rank = 0};
    ncclUniqueId id;
    int ends[2];
    CHECK(pipe(ends) == 0);
    twin.child = fork(); /* before there are threads */
    twin.rank = twin.child == 0 ? 1 : 0;
    if (twin.rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        CHECK(write(ends[1], &id, sizeof(id)) == (ssize_t)sizeof(id));
    } else {
        CHECK(read(ends[0], &id, sizeof(id)) == (ssize_t)sizeof(id));
    }
    CUDA(cudaSetDevice(twin.rank));
    CUDA(cudaStreamCreateWithFlags(&twin.stream, cudaStreamNonBlocking));
    twin.buffer = harness_device_alloc(COUNT * sizeof(float));
    NCCL(ncclCommInitRank(&twin.comm, NRANKS, id, twin.rank));
    return twin;
}

/* A rank that exits without a word may have received all: no rank knows. */
static void exited(struct stage *stage)
{
    const struct twin twin = fork_twin();
    int status = -1;
    if (twin.rank == 0) NCCL(ncclSend(twin.buffer, 2, ncclFloat, 1, twin.comm, twin.stream));
    if (twin.rank == 1) NCCL(ncclRecv(twin.buffer, 2, ncclFloat, 0, twin.comm, twin.stream));
    CUDA(cudaStreamSynchronize(twin.stream));
    if (twin.rank == 1) exit(0);
    CHECK(waitpid(twin.child, &status, 0) == twin.child && status == 0);
    NCCL(ncclCommDestroy(twin.comm));
    CHECK(!says(stage, "a ncclRecv is missing"));
}

/* A rank that sends and exits at once, before there is a connection: the message comes, or the wait
 * ends. That another connection was there is no reason to wait on. */
static void sent_and_exited(struct stage *stage)
{
    const struct twin twin = fork_twin();
    float *buffer = twin.buffer;
    ncclResult_t state = ncclSuccess;
    (void)stage;
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, twin.comm, twin.stream));
    CUDA(cudaStreamSynchronize(twin.stream));
    if (twin.rank == 1) ncclSend(buffer, 2, ncclFloat, 0, twin.comm, twin.stream);
    if (twin.rank == 1) exit(0);
    double until = harness_now_sec() + WAIT_SEC;
    bool failed = ncclRecv(buffer, 2, ncclFloat, 1, twin.comm, twin.stream) != ncclSuccess;
    while (!failed && !state && cudaStreamQuery(twin.stream) == cudaErrorNotReady) {
        if (harness_now_sec() > until) harness_fail(__FILE__, __LINE__, "it waits for ever");
        NCCL(ncclCommGetAsyncError(twin.comm, &state));
    }
    CHECK(waitpid(twin.child, NULL, 0) == twin.child);
    ncclCommAbort(twin.comm);
}

/* ---- a Send and a Recv that do not match ---- */

/* Types of one size match: small, large, and in memory that the network names. */
static void other_types(const struct actor *actor, float *large)
{
    static const size_t counts[] = {2, LARGE};
    ncclComm_t comm = actor->stage->first[actor->rank];
    for (int k = 0; k < 2; k++) {
        if (actor->rank == 0) NCCL(ncclSend(large, counts[k], ncclFloat, 1, comm, actor->stream));
        if (actor->rank == 1)
            NCCL(ncclRecv(large, counts[k] * 2, ncclBfloat16, 0, comm, actor->stream));
        synchronize(actor);
    }
    if (actor->rank == 1) CHECK(large[1] == 7 && large[LARGE - 1] == 8);
}

static void send_other(struct actor *actor)
{
    ncclComm_t comm = actor->stage->first[actor->rank];
    float *large = harness_device_alloc(LARGE * sizeof(double));
    const size_t count = actor->stage->turn ? LARGE : 2;
    if (actor->rank == 0) {
        large[1] = 7;
        large[LARGE - 1] = 8;
    }
    other_types(actor, large);
    if (actor->rank == 0) NCCL(ncclSend(large, count, ncclDouble, 1, comm, actor->stream));
    if (actor->rank == 1) NCCL(ncclRecv(large, count, ncclFloat, 0, comm, actor->stream));
    cudaStreamSynchronize(actor->stream); /* until it is aborted */
}

static void mismatched(struct stage *stage)
{
    static const char *const words[] = {
        "rank 1 called Recv(count 2, float, from rank 0) as message 3 of rank 0, which called "
        "Send(count 2, double, to rank 1) as message 3",
        "rank 1 called Recv(count 100000, float, from rank 0) as message 3 of rank 0, which called "
        "Send(count 100000, double, to rank 1) as message 3"};
    for (stage->turn = 0; stage->turn < 2; stage->turn++) {
        pthread_t threads[NRANKS];
        struct actor actors[NRANKS];
        NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
        begin(stage, threads, actors, send_other);
        await(stage, words[stage->turn]);
        for (int r = 0; r < NRANKS; r++)
            NCCL(ncclCommAbort(stage->first[r]));
        end(stage, threads);
    }
}

static void larger(struct actor *actor)
{
    ncclComm_t comm = actor->stage->first[actor->rank];
    NCCL(ncclGroupStart());
    NCCL(ncclSend(actor->buffer, 2, ncclDouble, actor->rank, comm, actor->stream));
    NCCL(ncclRecv(actor->other, 3, ncclFloat, actor->rank, comm, actor->stream));
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
}

static void to_itself(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, larger);
    end(stage, threads);
    CHECK(says(stage, "rank 1: Send(count 2, double, to rank 1) is larger than Recv(count 3, "
                      "float, from rank 1), which receives it"));
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommAbort(stage->first[r]));
}

/* One that is larger waits for its receiver, whose end is its failure. */
static void send_late(struct actor *actor)
{
    struct stage *stage = actor->stage;
    ncclComm_t comm = stage->first[actor->rank];
    float *large = harness_device_alloc(LARGE * sizeof(float));
    NCCL(sum(actor, actor->buffer, comm));
    synchronize(actor);
    if (actor->rank == 1) NCCL(ncclCommDestroy(comm));
    pthread_barrier_wait(&stage->barrier);
    if (actor->rank == 1) return;
    double until = harness_now_sec() + WAIT_SEC;
    ncclResult_t state = ncclSuccess;
    NCCL(ncclSend(large, LARGE, ncclFloat, 1, comm, actor->stream));
    while (!state && harness_now_sec() < until) {
        cudaStreamQuery(actor->stream);
        NCCL(ncclCommGetAsyncError(comm, &state));
    }
    /* from the tree, or read in the memory that both share: the same words */
    const char *said = ncclGetLastError(comm);
    const bool named =
        strstr(said, "rank 0: rank 1 on host ") &&
        strstr(said, " has ended the communicator (ncclCommDestroy); rank 0 waits in Send(count "
                     "100000, float, to rank 1): a ncclRecv is missing there");
    if (state != ncclRemoteError || !named)
        harness_fail(__FILE__, __LINE__, "code %d, said: %s", state, said);
    ncclCommAbort(comm);
}

static void left_behind(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, send_late);
    end(stage, threads);
}

/* ---- memory freed between two calls of one kind ---- */

static ncclResult_t group_of_two(const struct actor *actor)
{
    ncclComm_t comm = actor->stage->first[actor->rank];
    NCCL(ncclGroupStart());
    sum(actor, actor->buffer, comm);
    sum(actor, actor->other, comm);
    return ncclGroupEnd();
}

static void free_between(struct actor *actor)
{
    for (int turn = 0; turn < 4; turn++) {
        NCCL(group_of_two(actor));
        synchronize(actor);
    }
    CUDA(cudaFree(actor->other));
    CHECK(group_of_two(actor) == ncclInvalidArgument);
    if (!strstr(ncclGetLastError(NULL), "in no live allocation: it was freed"))
        harness_fail(__FILE__, __LINE__, "said: %s", ncclGetLastError(NULL));
}

static void freed(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, free_between);
    end(stage, threads);
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommAbort(stage->first[r]));
}

/* ---- a call that is refused on one rank ---- */

/* The others, which wait in it, are told why, whether the rank ends the communicator or revokes it.
 */
static void refuse_one(struct actor *actor)
{
    struct stage *stage = actor->stage;
    ncclComm_t comm = stage->first[actor->rank];
    double until = harness_now_sec() + WAIT_SEC;
    ncclResult_t state = ncclSuccess;
    if (actor->rank) {
        CHECK(ncclAllReduce(actor->buffer, NULL, COUNT, ncclFloat, ncclSum, comm, actor->stream) ==
              ncclInvalidArgument);
        pthread_barrier_wait(&stage->barrier);
        ncclCommDestroy(comm);
        return;
    }
    NCCL(sum(actor, actor->buffer, comm));
    pthread_barrier_wait(&stage->barrier);
    while (!state && harness_now_sec() < until) {
        cudaStreamQuery(actor->stream);
        NCCL(ncclCommGetAsyncError(comm, &state));
    }
    const char *said = ncclGetLastError(comm);
    if (!state || !strstr(said, "; a call of rank 1 was refused: ncclAllReduce: recvbuff is NULL"))
        harness_fail(__FILE__, __LINE__, "code %d, said: %s", state, said);
    ncclCommAbort(comm);
}

static void refused(struct stage *stage)
{
    pthread_t threads[NRANKS];
    struct actor actors[NRANKS];
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    begin(stage, threads, actors, refuse_one);
    end(stage, threads);
}

/* ---- a revoke by one of two ranks ---- */

static void revoked(struct stage *stage)
{
    ncclComm_t rest = NULL;
    int left_out = 1;
    ncclResult_t state = ncclSuccess;
    double until = harness_now_sec() + WAIT_SEC;
    NCCL(ncclCommInitAll(stage->first, NRANKS, NULL));
    NCCL(ncclCommRevoke(stage->first[1], NCCL_REVOKE_DEFAULT));
    while (!state && harness_now_sec() < until)
        NCCL(ncclCommGetAsyncError(stage->first[0], &state));
    CHECK(ncclCommShrink(stage->first[0], &left_out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT) == state);
    CHECK(strstr(ncclGetLastError(NULL), "is broken: rank 1 revoked the communicator; a rank that "
                                         "goes on with it (ncclCommShrink, ncclCommSplit) calls "
                                         "ncclCommRevoke itself"));
    NCCL(ncclCommRevoke(stage->first[0], NCCL_REVOKE_DEFAULT));
    NCCL(ncclCommShrink(stage->first[0], &left_out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    NCCL(ncclCommDestroy(rest));
    for (int r = 0; r < NRANKS; r++)
        NCCL(ncclCommDestroy(stage->first[r]));
}

static const struct scenario {
    const char *name;
    void (*play)(struct stage *stage);
    bool sockets;
} scenarios[] = {
    {"open group", open_group, false},
    {"one by one", one_by_one, false},
    {"init one by one", init_one_by_one, false},
    {"two orders", two_orders, false},
    {"unreceived", unreceived, false},
    {"unreceived over sockets", unreceived, true},
    {"mismatched", mismatched, false},
    {"mismatched over sockets", mismatched, true},
    {"sent and exited", sent_and_exited, true},
    {"to itself", to_itself, false},
    {"exited", exited, false},
    {"left behind", left_behind, false},
    {"left behind over sockets", left_behind, true},
    {"freed", freed, false},
    {"refused", refused, false},
    {"refused over sockets", refused, true},
    {"revoked", revoked, false},
};
enum { NSCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

int main(void)
{
    char folder[] = "/tmp/sentences-XXXXXX", logs[NSCENARIOS][64];
    pid_t pids[NSCENARIOS];
    int failed = 0;
    CHECK(mkdtemp(folder));
    setenv("TUTTI_DEVICES", "2", 1);
    setenv("TUTTI_WATCHDOG", "1", 1);
    setenv("NCCL_DEBUG", "WARN", 1);
    for (int k = 0; k < NSCENARIOS; k++) {
        snprintf(logs[k], sizeof(logs[k]), "%s/%d", folder, k);
        pids[k] = fork();
        CHECK(pids[k] >= 0);
        if (pids[k]) continue;
        struct stage stage = {.log = logs[k], .sockets = scenarios[k].sockets};
        setenv("NCCL_DEBUG_FILE", logs[k], 1);
        setenv("NCCL_P2P_DISABLE", scenarios[k].sockets ? "1" : "0", 1);
        setenv("NCCL_SHM_DISABLE", scenarios[k].sockets ? "1" : "0", 1);
        scenarios[k].play(&stage);
        exit(0);
    }
    for (int k = 0; k < NSCENARIOS; k++) {
        int status = 1;
        CHECK(waitpid(pids[k], &status, 0) == pids[k]);
        if (status) printf("sentences: \"%s\" failed\n", scenarios[k].name);
        failed += status != 0;
        unlink(logs[k]);
    }
    rmdir(folder);
    return failed ? 1 : 0;
}
