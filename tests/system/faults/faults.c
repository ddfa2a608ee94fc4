/* What goes wrong with real processes: wrong ranks and ids, ranks that never come, die, leave or
 * abort, at every stage of a communicator. Each survivor gets the code and the sentence, and no
 * call hangs: a scenario that is not over after LIMIT_SEC is killed and counts as wrong. usage:
 * faults
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, LIMIT_SEC = 30, COUNT = 100000, DESCRIPTORS = 64 };

struct finding { /* what a process found */
    int rc;
    char sentence[1024];
};

struct shared { /* shared by all processes of a scenario */
    ncclUniqueId ids[2];
    _Atomic int ids_made;
    _Atomic int entered; /* ranks that are about to make the call that cannot end well */
    struct finding findings[PROCESSES];
};

struct player {
    struct shared *shared;
    int index;        /* process number */
    int rank, nranks; /* as this process believes */
};

struct scenario {
    const char *name;
    int processes;
    void (*play)(struct player *player);
    int victim;        /* place that is not asked afterwards; -1: none */
    ncclResult_t code; /* of every survivor; ncclSuccess: any error */
    const char *words; /* in every survivor's sentence */
    bool wired;        /* also over shared memory copies and sockets */
};

/* ---- steps ---- */

static _Noreturn void leave(const struct player *p, ncclResult_t rc)
{
    struct finding *finding = &p->shared->findings[p->index];
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    finding->rc = rc;
    exit(0);
}

static const ncclUniqueId *share_id(const struct player *p, int maker)
{
    struct shared *shared = p->shared;
    if (p->index == maker) {
        if (ncclGetUniqueId(&shared->ids[0]) || ncclGetUniqueId(&shared->ids[1])) _exit(3);
        atomic_store(&shared->ids_made, 1);
    }
    while (!atomic_load(&shared->ids_made))
        sched_yield();
    return &shared->ids[0];
}

static ncclResult_t init(const struct player *p, const ncclUniqueId *id, ncclComm_t *comm)
{
    cudaSetDevice(p->index);
    return ncclCommInitRank(comm, p->nranks, *id, p->rank);
}

static ncclComm_t must_init(const struct player *p)
{
    ncclComm_t comm = NULL;
    ncclResult_t rc = init(p, share_id(p, 0), &comm);
    if (rc) leave(p, ncclSuccess); /* shows as "no error" */
    return comm;
}

static void await_entered(const struct player *p, int count)
{
    while (atomic_load(&p->shared->entered) < count)
        sched_yield();
}

static ncclResult_t await_error(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess || state == ncclInProgress)
        if (ncclCommGetAsyncError(comm, &state)) return ncclInternalError;
    return state;
}

/* The error that a pending operation ends with, and the words of the next call. */
static _Noreturn void finish_stuck(const struct player *p, ncclComm_t comm, cudaStream_t stream)
{
    void *word;
    ncclResult_t rc = await_error(comm);
    if (cudaMalloc(&word, sizeof(float))) leave(p, ncclSuccess);
    ncclResult_t next = ncclAllReduce(word, word, 1, ncclFloat32, ncclSum, comm, stream);
    if (next != rc) rc = ncclSuccess;
    struct finding *finding = &p->shared->findings[p->index];
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    if (ncclCommAbort(comm)) rc = ncclSuccess;
    cudaStreamSynchronize(stream);
    finding->rc = rc;
    exit(0);
}

/* An operation that one rank will not take part in; the error it ends with. */
static void stuck_operation(struct player *p, ncclComm_t comm)
{
    float *buffer;
    cudaStream_t stream;
    if (cudaMalloc((void **)&buffer, COUNT * sizeof(float))) leave(p, ncclSuccess);
    if (cudaStreamCreate(&stream)) leave(p, ncclSuccess);
    atomic_fetch_add(&p->shared->entered, 1);
    ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, stream);
    finish_stuck(p, comm, stream);
}
static void one_good_operation(ncclComm_t comm)
{
    float *buffer;
    cudaStream_t stream;
    if (cudaMalloc((void **)&buffer, 1024) || cudaStreamCreate(&stream)) _exit(3);
    if (ncclAllReduce(buffer, buffer, 256, ncclFloat32, ncclSum, comm, stream)) _exit(3);
    cudaStreamSynchronize(stream);
}

/* ---- init ---- */

static void join_and_leave(struct player *p)
{
    ncclComm_t comm = NULL;
    leave(p, init(p, share_id(p, 0), &comm));
}

static void same_rank(struct player *p)
{
    if (p->index == 2) p->rank = 1;
    join_and_leave(p);
}

static void other_count(struct player *p)
{
    if (p->index == 2) p->nranks = 4;
    join_and_leave(p);
}

static void other_id(struct player *p)
{
    ncclComm_t comm = NULL;
    const ncclUniqueId *ids = share_id(p, 0);
    leave(p, init(p, &ids[p->index == 2], &comm));
}

static void other_secrecy(struct player *p)
{
    if (p->index == 2) setenv("TUTTI_NET_ENCRYPT", "1", 1);
    join_and_leave(p);
}

static void never_comes(struct player *p)
{
    p->nranks = p->nranks + 1;
    join_and_leave(p);
}

static void damaged_id(struct player *p)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id = *share_id(p, 0);
    memset(id.internal + 20, 0, sizeof(id.internal) - 20); /* as a copy of text does it */
    leave(p, init(p, &id, &comm));
}

static bool is_connected(void)
{
    struct sockaddr_storage peer;
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        socklen_t bytes = sizeof(peer);
        if (!getpeername(fd, (struct sockaddr *)&peer, &bytes) && peer.ss_family != AF_UNIX)
            return true;
    }
    return false;
}

/* One reaches the root, but has no descriptors for more when the last rank has come. */
static void fails_in_init(struct player *p)
{
    const struct rlimit few = {DESCRIPTORS, DESCRIPTORS};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state = ncclInProgress;
    ncclComm_t comm = NULL;
    const ncclUniqueId *id = share_id(p, 0);
    if (p->index == 2) await_entered(p, 1);
    if (p->index != 1) leave(p, init(p, id, &comm));
    config.blocking = 0;
    cudaSetDevice(1);
    setrlimit(RLIMIT_NOFILE, &few);
    ncclCommInitRankConfig(&comm, p->nranks, *id, 1, &config);
    while (!is_connected())
        usleep(1000);
    usleep(300000); /* it introduces itself */
    while (dup(STDERR_FILENO) >= 0) {
    }
    atomic_fetch_add(&p->shared->entered, 1);
    while (state == ncclInProgress)
        ncclCommGetAsyncError(comm, &state);
    leave(p, state);
}

/* No descriptors from now on, but what the library has put aside. */
static void use_up_descriptors(int index)
{
    const struct rlimit few = {DESCRIPTORS, DESCRIPTORS};
    void *word;
    cudaSetDevice(index);
    cudaMalloc(&word, sizeof(float)); /* so that the device is there */
    setrlimit(RLIMIT_NOFILE, &few);
    while (dup(STDERR_FILENO) >= 0) {
    }
}

/* One cannot even reach the root: an id that it made itself has the library begin. */
static void fails_before_root(struct player *p)
{
    ncclUniqueId other;
    const ncclUniqueId *id = share_id(p, 0);
    if (p->index == 1 && !ncclGetUniqueId(&other)) use_up_descriptors(p->index);
    ncclComm_t comm = NULL;
    leave(p, init(p, id, &comm));
}

/* The one that holds the root cannot reach it, the others have. */
static void root_fails_in_init(struct player *p)
{
    const ncclUniqueId *id = share_id(p, 0);
    ncclComm_t comm = NULL;
    if (p->index == 0) {
        await_entered(p, 2);
        usleep(300000); /* they introduce themselves */
        use_up_descriptors(p->index);
    }
    atomic_fetch_add(&p->shared->entered, 1);
    ncclResult_t rc = init(p, id, &comm);
    if (p->index == 0) usleep(500000); /* its end would be told as well */
    leave(p, rc);
}

/* The one that holds the root can accept no rank. */
static void root_accepts_none(struct player *p)
{
    setenv("TUTTI_INIT_TIMEOUT", "20", 1);
    const ncclUniqueId *id = share_id(p, 0);
    ncclComm_t comm = NULL;
    if (p->index == 0) {
        use_up_descriptors(p->index);
        atomic_fetch_add(&p->shared->entered, 1);
        await_entered(p, 3);
        leave(p, ncclSuccess);
    }
    await_entered(p, 1);
    ncclResult_t rc = init(p, id, &comm);
    atomic_fetch_add(&p->shared->entered, 1);
    leave(p, rc);
}

static void abort_in_init(struct player *p)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const ncclUniqueId *id = share_id(p, 0);
    ncclComm_t comm = NULL;
    if (p->index != 1) leave(p, init(p, id, &comm));
    config.blocking = 0;
    cudaSetDevice(1);
    ncclCommInitRankConfig(&comm, p->nranks + 1, *id, 1, &config); /* cannot complete */
    ncclResult_t rc = ncclCommAbort(comm);
    leave(p, rc ? rc : ncclRemoteError);
}

static void killed_in_init(struct player *p)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    const ncclUniqueId *id = share_id(p, 0);
    p->nranks++; /* one never comes: init lasts until a rank dies */
    if (p->index != 1) {
        atomic_fetch_add(&p->shared->entered, 1);
        leave(p, init(p, id, &comm));
    }
    await_entered(p, 2);
    config.blocking = 0;
    cudaSetDevice(1);
    ncclCommInitRankConfig(&comm, p->nranks, *id, 1, &config);
    struct pollfd none = {.fd = -1};
    poll(&none, 1, 300); /* any moment will do; most likely it has been to the root by now */
    raise(SIGKILL);
}

static void root_killed(struct player *p)
{
    ncclComm_t comm = NULL;
    if (p->index == 0) {
        share_id(p, 0);
        await_entered(p, 2);
        raise(SIGKILL);
    }
    const ncclUniqueId *id = share_id(p, 0);
    atomic_fetch_add(&p->shared->entered, 1);
    leave(p, init(p, id, &comm));
}

/* ---- afterwards ---- */

static void killed(struct player *p)
{
    ncclComm_t comm = must_init(p);
    one_good_operation(comm);
    if (p->index != 1) stuck_operation(p, comm);
    await_entered(p, 2);
    raise(SIGKILL);
}

static void exits(struct player *p)
{
    ncclComm_t comm = must_init(p);
    one_good_operation(comm);
    if (p->index != 1) stuck_operation(p, comm);
    await_entered(p, 2);
    exit(3);
}

/* A message that the one that exits never sends. */
static void exits_before_message(struct player *p)
{
    ncclComm_t comm = must_init(p);
    float *buffer;
    cudaStream_t stream;
    if (p->index == 1) {
        await_entered(p, 2);
        exit(3);
    }
    if (cudaMalloc((void **)&buffer, COUNT * sizeof(float))) leave(p, ncclSuccess);
    if (cudaStreamCreate(&stream)) leave(p, ncclSuccess);
    ncclRecv(buffer, COUNT, ncclFloat32, 1, comm, stream);
    atomic_fetch_add(&p->shared->entered, 1);
    finish_stuck(p, comm, stream);
}

/* What was sent before a clean exit arrives. */
static void exits_after_message(struct player *p)
{
    ncclComm_t comm = must_init(p);
    int *buffer;
    cudaStream_t stream;
    ncclResult_t rc = ncclInternalError;
    if (cudaMallocManaged((void **)&buffer, COUNT * sizeof(int), cudaMemAttachGlobal))
        leave(p, ncclSuccess);
    if (cudaStreamCreate(&stream)) leave(p, ncclSuccess);
    for (int i = 0; i < COUNT; i++)
        buffer[i] = p->index == 1 ? i : -1;
    if (p->index == 1) {
        await_entered(p, 1);
        rc = ncclSend(buffer, COUNT, ncclInt32, 0, comm, stream);
        cudaStreamSynchronize(stream);
        exit(rc ? 3 : 0);
    }
    if (ncclRecv(buffer, COUNT, ncclInt32, 1, comm, stream)) leave(p, ncclSuccess);
    atomic_fetch_add(&p->shared->entered, 1);
    cudaStreamSynchronize(stream);
    if (buffer[0] == 0 && buffer[COUNT - 1] == COUNT - 1) rc = ncclRemoteError;
    ncclCommAbort(comm);
    leave(p, rc);
}

/* Who calls after a rank's exit is told, and finds the communicator broken. A call without elements
 * launches nothing, so that no wait is what breaks it. */
static void calls_after_exit(struct player *p)
{
    ncclComm_t comm = must_init(p);
    ncclResult_t rc = ncclSuccess, state = ncclSuccess;
    float *word;
    if (p->index == 1) {
        await_entered(p, 1);
        exit(0);
    }
    if (cudaMalloc((void **)&word, sizeof(float))) leave(p, ncclSuccess);
    atomic_fetch_add(&p->shared->entered, 1);
    while (!rc)
        rc = ncclAllReduce(word, word, 0, ncclFloat32, ncclSum, comm, NULL);
    if (ncclCommGetAsyncError(comm, &state) || state != rc) leave(p, ncclSuccess);
    ncclCommAbort(comm);
    leave(p, rc);
}

/* What the first failure said stands in what each later call says. */
static void mismatched(struct player *p)
{
    ncclComm_t comm = must_init(p);
    float *buffer;
    if (cudaMalloc((void **)&buffer, COUNT * sizeof(float))) leave(p, ncclSuccess);
    if (p->index == 1) {
        ncclBroadcast(buffer, buffer, COUNT, ncclFloat32, 0, comm, NULL);
    } else {
        ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, NULL);
    }
    finish_stuck(p, comm, NULL);
}

static void aborts(struct player *p)
{
    ncclComm_t comm = must_init(p);
    one_good_operation(comm);
    if (p->index != 1) stuck_operation(p, comm);
    await_entered(p, 2);
    leave(p, ncclCommAbort(comm) ? ncclSuccess : ncclRemoteError);
}

static void revokes(struct player *p)
{
    ncclComm_t comm = must_init(p);
    one_good_operation(comm);
    if (p->index != 1) stuck_operation(p, comm);
    await_entered(p, 2);
    if (ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)) leave(p, ncclSuccess);
    leave(p, ncclCommDestroy(comm) ? ncclSuccess : ncclRemoteError);
}

static void killed_in_split(struct player *p)
{
    ncclComm_t comm = must_init(p), child = NULL;
    if (p->index == 1) {
        await_entered(p, 2);
        raise(SIGKILL);
    }
    atomic_fetch_add(&p->shared->entered, 1);
    ncclResult_t rc = ncclCommSplit(comm, 0, 0, &child, NULL);
    struct finding *finding = &p->shared->findings[p->index];
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    ncclCommAbort(child);
    ncclCommAbort(comm);
    finding->rc = rc;
    exit(0);
}

/* One rank's own fault after the colors were exchanged: what it asks for cannot be shared. */
static void fails_in_split(struct player *p)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL, child = NULL;
    config.splitShare = 1;
    cudaSetDevice(p->index);
    if (ncclCommInitRankConfig(&comm, p->nranks, *share_id(p, 0), p->rank, &config))
        leave(p, ncclSuccess);
    if (p->index == 1) config.netName = "other";
    ncclResult_t rc = ncclCommSplit(comm, 0, 0, &child, &config);
    struct finding *finding = &p->shared->findings[p->index];
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    ncclCommAbort(child);
    ncclCommDestroy(comm);
    finding->rc = rc;
    exit(0);
}

/* An old rank ends the communicator that the others let grow; the last process is the new rank. */
static void abort_in_grow(struct player *p, bool late)
{
    ncclComm_t comm = NULL, grown = NULL;
    struct shared *shared = p->shared;
    const ncclUniqueId *id = share_id(p, 0);
    int old = p->nranks - 1;
    cudaSetDevice(p->index);
    if (p->index < old && ncclCommInitRank(&comm, old, *id, p->rank)) leave(p, ncclSuccess);
    if (p->index == 0 && ncclCommGetUniqueId(comm, &shared->ids[1])) leave(p, ncclSuccess);
    if (p->index == 0) atomic_fetch_add(&shared->entered, 1);
    await_entered(p, 1);
    if (p->index == 1) await_entered(p, 2);
    if (p->index == 1) leave(p, ncclCommAbort(comm) ? ncclSuccess : ncclRemoteError);
    ncclResult_t rc;
    if (p->index == old) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclCommGrow(NULL, old + 1, &shared->ids[1], old, &grown, &config);
        while (!is_connected())
            usleep(1000);
        usleep(100000); /* it introduces itself */
        atomic_fetch_add(&shared->entered, 1);
        rc = await_error(grown);
    } else {
        if (p->index == 0 && late) await_entered(p, 2);
        if (p->index == 0 && late) usleep(300000);
        rc = ncclCommGrow(comm, old + 1, NULL, -1, &grown, NULL);
    }
    struct finding *finding = &p->shared->findings[p->index];
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(NULL));
    ncclCommAbort(grown);
    ncclCommAbort(comm);
    finding->rc = rc;
    exit(0);
}

static void aborted_in_grow(struct player *p)
{
    abort_in_grow(p, false);
}

/* Rank 0 has not called, so the other one compares no ids yet. */
static void aborted_before_grow(struct player *p)
{
    abort_in_grow(p, true);
}

/* Destroy frees and comes back whatever happened to the others. */
static void killed_in_destroy(struct player *p)
{
    ncclComm_t comm = must_init(p);
    one_good_operation(comm);
    if (p->index == 1) {
        await_entered(p, 2);
        raise(SIGKILL);
    }
    atomic_fetch_add(&p->shared->entered, 1);
    ncclCommDestroy(comm);
    leave(p, ncclRemoteError);
}

/* The survivors go on without the dead one. */
static void recovers(struct player *p)
{
    ncclComm_t comm = must_init(p), child = NULL;
    int dead = 1, count = 0;
    one_good_operation(comm);
    if (p->index == 1) raise(SIGKILL);
    ncclResult_t rc = await_error(comm);
    if (ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)) leave(p, ncclSuccess);
    if (ncclCommShrink(comm, &dead, 1, &child, NULL, NCCL_SHRINK_ABORT)) leave(p, ncclSuccess);
    one_good_operation(child);
    if (ncclCommCount(child, &count) || count != 2) leave(p, ncclSuccess);
    if (ncclCommDestroy(child)) leave(p, ncclSuccess);
    ncclCommDestroy(comm);
    p->shared->findings[p->index].rc = rc;
    exit(0);
}

static const struct scenario scenarios[] = {
    {"two processes with one rank", 3, same_rank, -1, ncclInvalidUsage, "already taken", false},
    {"different numbers of ranks", 3, other_count, -1, ncclInvalidUsage, "says", false},
    {"different ids", 3, other_id, -1, ncclTimeout, "missing", false},
    {"one that wants encryption", 3, other_secrecy, -1, ncclInvalidUsage, "TUTTI_NET_ENCRYPT",
     false},
    {"a rank that never comes", 3, never_comes, -1, ncclTimeout, "missing 3", false},
    {"a damaged id", 2, damaged_id, -1, ncclInvalidArgument, "damaged", false},
    {"a rank without descriptors", 3, fails_in_init, 1, ncclRemoteError, "rank 1", false},
    {"a rank without descriptors from the start", 3, fails_before_root, 1, ncclRemoteError,
     "rank 1 on host", false},
    {"a root's rank without descriptors", 3, root_fails_in_init, 0, ncclRemoteError,
     "rank 0 on host", false},
    {"a root without descriptors", 3, root_accepts_none, 0, ncclRemoteError, "(ulimit -n)", false},
    {"an abort in init", 3, abort_in_init, -1, ncclSuccess, "", false},
    {"killed in init", 3, killed_in_init, 1, ncclSuccess, "1", false},
    {"the root's process killed", 3, root_killed, 0, ncclRemoteError, "", false},
    {"killed in an operation", 3, killed, 1, ncclRemoteError, "rank 1", true},
    {"exit in an operation", 3, exits, 1, ncclRemoteError, "rank 1", true},
    {"exit before a message", 3, exits_before_message, 1, ncclRemoteError, "exited", true},
    {"a call after an exit", 2, calls_after_exit, 1, ncclRemoteError, "rank 1", false},
    {"different operations", 2, mismatched, -1, ncclSuccess, "different operations", true},
    {"exit after a message", 2, exits_after_message, 1, ncclRemoteError, "", false},
    {"abort in an operation", 3, aborts, -1, ncclRemoteError, "", true},
    {"revoke in an operation", 3, revokes, -1, ncclRemoteError, "", true},
    {"killed in split", 3, killed_in_split, 1, ncclRemoteError, "rank 1", false},
    {"a fault in split", 3, fails_in_split, -1, ncclSuccess, "netName", false},
    {"abort in a grow", 4, aborted_in_grow, 1, ncclRemoteError, "rank 1", false},
    {"abort before all grow", 4, aborted_before_grow, 1, ncclRemoteError, "rank 1", false},
    {"killed in destroy", 3, killed_in_destroy, 1, ncclRemoteError, "", true},
    {"on without the dead", 3, recovers, 1, ncclRemoteError, "", true},
};

/* ---- the stage ---- */

static int judge(const struct scenario *scenario, const char *medium, const struct shared *shared)
{
    int wrong = 0;
    for (int i = 0; i < scenario->processes; i++) {
        const struct finding *finding = &shared->findings[i];
        if (i == scenario->victim) continue;
        bool code = scenario->code ? finding->rc == (int)scenario->code : finding->rc > 0;
        if (code && strstr(finding->sentence, scenario->words)) continue;
        printf("wrong: %s (%s): process %d: code %d, \"%s\"\n", scenario->name, medium, i,
               finding->rc, finding->sentence);
        wrong++;
    }
    return wrong;
}

/* False when it hung. */
static bool await_all(const pid_t *pids, int n)
{
    sigset_t child;
    struct timespec limit = {.tv_sec = LIMIT_SEC};
    int left = n;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (left > 0) {
        while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
            left--;
        if (left > 0 && sigtimedwait(&child, NULL, &limit) < 0) break;
    }
    if (left == 0) return true;
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return false;
}

static int perform(const struct scenario *scenario, const char *medium, struct shared *shared)
{
    pid_t pids[PROCESSES];
    memset(shared, 0, sizeof(*shared));
    for (int i = 0; i < scenario->processes; i++) {
        shared->findings[i].rc = -1;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0) {
            struct player player = {
                .shared = shared, .index = i, .rank = i, .nranks = scenario->processes};
            sigset_t none;
            sigemptyset(&none);
            sigprocmask(SIG_SETMASK, &none, NULL);
            scenario->play(&player);
            _exit(4);
        }
    }
    if (await_all(pids, scenario->processes)) return judge(scenario, medium, shared);
    printf("wrong: %s (%s): hung\n", scenario->name, medium);
    return 1;
}

int main(void)
{
    static const char *const media[] = {"mapped memory", "shared memory", "sockets"};
    int wrong = 0;
    sigset_t child;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    setenv("TUTTI_INIT_TIMEOUT", "3", 1);
    setenv("TUTTI_TIMEOUT", "8", 1); /* whose death is not noticed sooner shows as a time-out */
    setenv("TUTTI_DEVICES", "4", 1);
    for (int medium = 0; medium < 3; medium++) {
        setenv("NCCL_P2P_DISABLE", medium > 0 ? "1" : "0", 1);
        setenv("NCCL_SHM_DISABLE", medium > 1 ? "1" : "0", 1);
        for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++) {
            if (medium == 0 || scenarios[k].wired)
                wrong += perform(&scenarios[k], media[medium], shared);
        }
    }
    printf("faults: %d wrong\n", wrong);
    return wrong ? 1 : 0;
}
