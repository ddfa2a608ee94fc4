/* Programs that make different calls and end at once: stream synchronized, communicator destroyed.
 * No rank may end well, whatever its part was, and the sentence names the first operation in which
 * they differ. A rank that ends before a call that others make, or before a message that others
 * wait for, ends these with an error. In memory and over sockets.
 *
 * usage: parted [RANKS]
 *        parted late    a message of the last comparison takes LATE_USEC */
#include "../harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_RANKS = 8, COUNT = 1000, LARGE = 4 << 20, LATE_USEC = 2500000 };
enum func { NONE, BROADCAST, REDUCE, GATHER, SCATTER, ALLREDUCE, SEND, RECV };

struct call {
    enum func func;
    int root;
};

struct scenario {
    const char *name;
    struct call odd, others, then; /* of rank 1, of the others; then all make the last one */
    enum { WELL, PARTED, LEFT } outcome;
    const char *words; /* in the sentence of each rank that fails */
};

static const struct scenario scenarios[] = {
    {"the same", {BROADCAST, 0}, {BROADCAST, 0}, {NONE, 0}, WELL, ""},
    {"Broadcast: root", {BROADCAST, 1}, {BROADCAST, 0}, {NONE, 0}, PARTED, "as operation 1"},
    {"Scatter: root", {SCATTER, 1}, {SCATTER, 0}, {NONE, 0}, PARTED, "as operation 1"},
    {"Broadcast, Reduce", {BROADCAST, 0}, {REDUCE, 0}, {NONE, 0}, PARTED, "Reduce(count"},
    {"Reduce, Broadcast", {REDUCE, 0}, {BROADCAST, 0}, {NONE, 0}, PARTED, "Broadcast(count"},
    {"Broadcast, Gather", {BROADCAST, 0}, {GATHER, 0}, {NONE, 0}, PARTED, "Gather(count"},
    {"Scatter, Reduce", {SCATTER, 0}, {REDUCE, 0}, {NONE, 0}, PARTED, "Reduce(count"},
    {"Scatter, Gather", {SCATTER, 0}, {GATHER, 0}, {NONE, 0}, PARTED, "Gather(count"},
    {"root, then a sum", {BROADCAST, 1}, {BROADCAST, 0}, {ALLREDUCE, 0}, PARTED, "root 1"},
    {"a late rank", {REDUCE, 0}, {ALLREDUCE, 0}, {NONE, 0}, PARTED, "Reduce(count"},
    {"no call", {NONE, 0}, {ALLREDUCE, 0}, {NONE, 0}, LEFT, "AllReduce(count 1000, float, sum)"},
    {"no Recv", {NONE, 0}, {SEND, 1}, {NONE, 0}, LEFT, "Send(count 4194304, float, to rank 1)"},
    {"no Send", {NONE, 0}, {RECV, 1}, {NONE, 0}, LEFT, "Recv(count 4194304, float, from rank 1)"},
};

/* The third rank makes its call after the others, and is waited for: the sentence says that rank 1
 * is alone. */
static bool is_late(const struct scenario *scenario)
{
    return !strcmp(scenario->name, "a late rank");
}

struct finding {
    int rc;
    char sentence[768];
};

struct stage {
    const struct scenario *scenario;
    int nranks;
    ncclUniqueId id;
    _Atomic int ready;
    struct finding findings[MOST_RANKS];
};

static ncclResult_t make(const struct call *call, float *in, float *out, ncclComm_t comm,
                         cudaStream_t stream)
{
    switch (call->func) {
    case BROADCAST: return ncclBroadcast(in, out, COUNT, ncclFloat, call->root, comm, stream);
    case REDUCE: return ncclReduce(in, out, COUNT, ncclFloat, ncclSum, call->root, comm, stream);
    case GATHER: return ncclGather(in, out, COUNT, ncclFloat, call->root, comm, stream);
    case SCATTER: return ncclScatter(in, out, COUNT, ncclFloat, call->root, comm, stream);
    case ALLREDUCE: return ncclAllReduce(in, out, COUNT, ncclFloat, ncclSum, comm, stream);
    case SEND: return ncclSend(in, LARGE, ncclFloat, call->root, comm, stream);
    case RECV: return ncclRecv(out, LARGE, ncclFloat, call->root, comm, stream);
    default: return ncclSuccess;
    }
}

static void play(struct stage *stage, int rank)
{
    const struct scenario *scenario = stage->scenario;
    struct finding *finding = &stage->findings[rank];
    const struct call *call = rank == 1 ? &scenario->odd : &scenario->others;
    bool bystander = (call->func == SEND || call->func == RECV) && rank > 1;
    ncclComm_t comm = NULL;
    cudaStream_t stream;
    ncclResult_t state = ncclSuccess;
    void *in, *out;
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, stage->nranks, stage->id, rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&in, LARGE * sizeof(float)));
    CUDA(cudaMalloc(&out, LARGE * sizeof(float)));
    atomic_fetch_add(&stage->ready, 1);
    while (atomic_load(&stage->ready) < stage->nranks)
        sched_yield();
    if (is_late(scenario) && rank == 2) usleep(20000);
    ncclResult_t rc = bystander ? ncclSuccess : make(call, in, out, comm, stream);
    if (!rc) rc = make(&scenario->then, in, out, comm, stream);
    cudaStreamSynchronize(stream);
    NCCL(ncclCommGetAsyncError(comm, &state));
    if (!rc) rc = state;
    state = ncclCommDestroy(comm);
    finding->rc = rc ? rc : state;
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaStreamDestroy(stream));
}

/* ---- a message that takes its time ---- */

enum { FRAME_MESSAGE = 18, TAG_AT = 16 + 8, CLOSING_TAG = 12 };

static _Atomic int late_messages; /* yet to come */

/* In the place of libc's. A frame of the bootstrap: length, type, counter, then source, target and
 * tag of a message. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    const struct iovec *iov = message->msg_iov;
    const unsigned char *bytes = iov->iov_base;
    const bool closing = message->msg_iovlen == 1 && iov->iov_len > TAG_AT + 4 &&
                         bytes[4] == FRAME_MESSAGE && bytes[TAG_AT] == CLOSING_TAG &&
                         bytes[TAG_AT + 2] == 0xfe && bytes[TAG_AT + 3] == 0xff;
    if (closing && atomic_load(&late_messages) > 0 && atomic_fetch_sub(&late_messages, 1) > 0)
        usleep(LATE_USEC);
    return syscall(SYS_sendmsg, fd, message, flags);
}

struct actor {
    struct stage *stage;
    int rank;
};

static void *thread_main(void *arg)
{
    const struct actor *actor = arg;
    play(actor->stage, actor->rank);
    return NULL;
}

static bool is_right(const struct stage *stage, int rank)
{
    const struct scenario *scenario = stage->scenario;
    const struct finding *finding = &stage->findings[rank];
    bool waits = rank == 0 || scenario->others.func == ALLREDUCE;
    if (scenario->outcome == WELL) return finding->rc == ncclSuccess;
    if (scenario->outcome == LEFT && (rank == 1 || !waits))
        return true; /* as the others were seen */
    bool code = finding->rc == ncclInvalidUsage ||
                (scenario->outcome == LEFT && finding->rc == ncclRemoteError);
    return code && strstr(finding->sentence, scenario->words) &&
           strstr(finding->sentence, "rank 1");
}

static void play_once(const struct scenario *scenario, int nranks, struct stage *stage)
{
    pthread_t threads[MOST_RANKS];
    struct actor actors[MOST_RANKS];
    memset(stage, 0, sizeof(*stage));
    stage->scenario = scenario;
    stage->nranks = nranks;
    NCCL(ncclGetUniqueId(&stage->id));
    for (int r = 0; r < nranks; r++) {
        actors[r] = (struct actor){stage, r};
        CHECK(pthread_create(&threads[r], NULL, thread_main, &actors[r]) == 0);
    }
    for (int r = 0; r < nranks; r++)
        pthread_join(threads[r], NULL);
}

static int play_scenario(const struct scenario *scenario, const char *way, int nranks)
{
    static struct stage stage;
    int wrong = 0, turns = 0;
    bool named = false;
    do { /* the third may be later than it is waited for */
        play_once(scenario, nranks, &stage);
        named = !is_late(scenario) || nranks < 3 || !strcmp(way, "sockets") ||
                strstr(stage.findings[0].sentence, "rank 1 alone called");
    } while (!named && ++turns < 5);
    if (!named) printf("wrong: \"%s\": the sentence does not say who is alone\n", scenario->name);
    wrong += !named;
    for (int r = 0; r < nranks; r++) {
        if (is_right(&stage, r)) continue;
        wrong++;
        printf("wrong: %s, %d ranks, \"%s\": rank %d ended with %d, \"%s\"\n", way, nranks,
               scenario->name, r, stage.findings[r].rc, stage.findings[r].sentence);
    }
    return wrong;
}

/* They who gave all end well unless they wait for the message. */
static int play_late(void)
{
    static const char *const names[] = {"Broadcast, Gather", "Scatter: root"};
    int wrong = 0;
    setenv("NCCL_P2P_DISABLE", "1", 1);
    setenv("NCCL_SHM_DISABLE", "1", 1);
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++) {
        if (strcmp(scenarios[k].name, names[0]) != 0 && strcmp(scenarios[k].name, names[1]) != 0)
            continue;
        late_messages = 1;
        wrong += play_scenario(&scenarios[k], "sockets", 4);
        wrong += late_messages > 0; /* there was none */
    }
    return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const char *const medium_names[] = {"memory", "sockets"};
    int only = argc > 1 ? atoi(argv[1]) : 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("TUTTI_DEVICES", "8", 1);
    if (argc > 1 && !strcmp(argv[1], "late")) return play_late();
    for (int medium = 0; medium < 2; medium++) { /* each in a process of its own: it is read once */
        int status = 1;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            int wrong = 0;
            setenv("NCCL_P2P_DISABLE", medium ? "1" : "0", 1);
            setenv("NCCL_SHM_DISABLE", medium ? "1" : "0", 1);
            for (int n = only ? only : 2; n <= (only ? only : 3); n++) {
                for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++)
                    wrong += play_scenario(&scenarios[k], medium_names[medium], n);
            }
            exit(wrong ? 1 : 0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        failed += status != 0;
    }
    return failed ? 1 : 0;
}
