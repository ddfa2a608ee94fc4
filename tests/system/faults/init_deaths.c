/* A rank that is killed or stopped at any call of its init: the program counts the victim's calls
 * of the C library and strikes at the n-th, so every stage from the first socket to the last
 * barrier is hit. All others must end with an error that names the victim, also when it holds the
 * root. usage: init-deaths kill|stop POINTS   (moments per scenario; 0: every call) */
#include <cuda_runtime.h>
#include <errno.h>
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 9, IDS = 3, LIMIT_SEC = 40, LANES_KILL = 4, LANES_STOP = 12 };

/* ---- the strike ---- */

static struct {
    _Atomic bool *known; /* another rank has its proof: its death must be noticed as such */
    _Atomic int sent;
    int enough; /* messages after which another rank has its proof */
    bool early; /* count the calls before that too */
    _Atomic int count;
    _Atomic int at; /* 0: never */
    _Atomic bool armed;
    int signal;
} inject;

static void step(void)
{
    if (!atomic_load(&inject.armed)) return;
    if (!inject.early && atomic_load(&inject.sent) < inject.enough) return;
    if (atomic_fetch_add(&inject.count, 1) + 1 != atomic_load(&inject.at)) return;
    if (atomic_load(&inject.sent) >= inject.enough) atomic_store(inject.known, true);
    kill(getpid(), inject.signal);
}

/* What the library calls between first contact and the end of init. */
int socket(int domain, int type, int protocol)
{
    step();
    return (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    step();
    return (int)syscall(SYS_connect, fd, addr, len);
}

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
    step();
    return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    step();
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    if (atomic_load(&inject.armed)) atomic_fetch_add(&inject.sent, 1);
    return sent;
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    ssize_t got = syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
    step(); /* it has read, and no rank will know */
    return got;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    step();
    long at = syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
    void *mapped;
    memcpy(&mapped, &at, sizeof(mapped));
    return mapped;
}

/* ---- a scenario ---- */

enum form { INIT, SCALABLE, SPLIT };

struct scenario {
    enum form form;
    int n, victim;
    int maker; /* place that makes the ids; n: a process of its own, that is no rank */
    bool sockets;
    bool early; /* also before it has spoken: then it is one that never comes */
};

static const struct scenario scenarios[] = {
    {INIT, 2, 1, 0, false, true},      {INIT, 3, 0, 0, false, false},
    {INIT, 4, 2, 0, true, false},      {INIT, 4, 0, 1, false, false},
    {INIT, 4, 3, 3, false, false},     {INIT, 8, 5, 8, false, false},
    {INIT, 8, 0, 8, false, false},     {SCALABLE, 5, 0, 0, false, false},
    {SCALABLE, 5, 2, 2, false, false}, {SCALABLE, 5, 4, 0, false, false},
    {SPLIT, 4, 0, 0, false, false},    {SPLIT, 4, 3, 0, true, false},
};

struct shared { /* shared by the processes of a scenario */
    ncclUniqueId ids[IDS];
    _Atomic int ids_made;
    _Atomic int steps; /* calls of the victim */
    _Atomic int ended; /* survivors that have their result */
    _Atomic bool over, known;
    int rc[PROCESSES];
    pid_t pids[PROCESSES];
    char sentences[PROCESSES][1024];
};

struct player {
    const struct scenario *scenario;
    struct shared *shared;
    int index;
};

static void make_ids(struct shared *shared, int index, const struct scenario *scenario)
{
    for (int i = 0; i < IDS; i++) {
        bool mine = index == scenario->maker;
        /* several ids: one more root in the victim's process, one in the last rank's */
        if (scenario->form == SCALABLE && i > 0) mine = index == (i == 1 ? 1 : scenario->n - 1);
        if (!mine) continue;
        if (ncclGetUniqueId(&shared->ids[i])) _exit(3);
        atomic_fetch_add(&shared->ids_made, 1);
    }
    while (atomic_load(&shared->ids_made) < IDS)
        sched_yield();
}

static ncclResult_t first_init(const struct player *p, ncclComm_t *comm)
{
    const struct scenario *scenario = p->scenario;
    if (scenario->form == SCALABLE)
        return ncclCommInitRankScalable(comm, scenario->n, p->index, IDS, p->shared->ids, NULL);
    return ncclCommInitRank(comm, scenario->n, p->shared->ids[0], p->index);
}

static ncclResult_t async_error(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    struct pollfd none = {.fd = -1};
    while (state == ncclSuccess || state == ncclInProgress) {
        if (ncclCommGetAsyncError(comm, &state)) return ncclInternalError;
        poll(&none, 1, 1);
    }
    return state;
}

/* The words of an error that came after init go to the next call. */
static void next_words(ncclComm_t comm)
{
    void *word;
    if (!cudaMalloc(&word, sizeof(float)))
        ncclAllReduce(word, word, 1, ncclFloat32, ncclSum, comm, NULL);
}

static void survive(const struct player *p, ncclResult_t rc, ncclComm_t comm)
{
    struct shared *shared = p->shared;
    char *words = shared->sentences[p->index];
    bool killing = inject.signal == SIGKILL && atomic_load(&inject.at);
    if (!rc && killing) { /* it came through before the blow fell */
        rc = async_error(comm);
        next_words(comm);
    }
    snprintf(words, sizeof(shared->sentences[0]), "%s", ncclGetLastError(comm));
    shared->rc[p->index] = (int)rc;
    atomic_fetch_add(&shared->ended, 1);
    /* the parent of a split ends only when no rank is in it any more */
    int others = p->scenario->n - (atomic_load(&inject.at) ? 1 : 0);
    while (p->scenario->form == SPLIT && atomic_load(&shared->ended) < others)
        poll(NULL, 0, 1);
    ncclCommAbort(comm);
}

static void play(struct player *p)
{
    const struct scenario *scenario = p->scenario;
    bool victim = p->index == scenario->victim;
    ncclComm_t world = NULL, comm = NULL;
    ncclResult_t rc = ncclSuccess;
    make_ids(p->shared, p->index, scenario);
    while (p->index >= scenario->n && !atomic_load(&p->shared->over))
        poll(NULL, 0, 1); /* only holds the roots */
    if (p->index >= scenario->n) return;
    cudaSetDevice(p->index);
    if (scenario->form == SPLIT && first_init(p, &world)) _exit(4);
    inject.known = &p->shared->known;
    inject.enough = scenario->form == SCALABLE ? 8 : 2; /* heads visit two roots, and may be one */
    if (scenario->form == SPLIT || scenario->maker == scenario->victim) inject.enough = 0;
    inject.early = scenario->early || inject.signal == SIGSTOP;
    atomic_store(&inject.armed, victim);
    rc = world ? ncclCommSplit(world, 0, p->index, &comm, NULL) : first_init(p, &comm);
    atomic_store(&inject.armed, false);
    if (victim) {
        atomic_store(&p->shared->steps, atomic_load(&inject.count));
        atomic_store(&p->shared->known, true);
        if (atomic_load(&inject.at)) raise(inject.signal); /* this time it was quicker */
    }
    survive(p, rc, comm ? comm : world);
    if (world && comm) ncclCommAbort(world);
}

/* ---- the stage ---- */

static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Who still runs after LIMIT_SEC hangs. The victim is not waited for. */
static bool await_others(struct shared *shared, const struct scenario *scenario, bool injected)
{
    double limit = now_sec() + LIMIT_SEC;
    bool gone[PROCESSES] = {false};
    int left = scenario->n - injected;
    while (left > 0 && now_sec() < limit) {
        for (int i = 0; i < scenario->n; i++) {
            if ((injected && i == scenario->victim) || gone[i]) continue;
            gone[i] = waitpid(shared->pids[i], NULL, WNOHANG) == shared->pids[i];
            left -= gone[i];
        }
        if (left > 0) poll(NULL, 0, 1);
    }
    atomic_store(&shared->over, true);
    for (int i = 0; i < PROCESSES; i++) {
        if (shared->pids[i] <= 0 || gone[i]) continue;
        if (i < scenario->n) kill(shared->pids[i], SIGKILL);
        waitpid(shared->pids[i], NULL, 0);
    }
    return left == 0;
}

static bool named(const struct shared *shared, const struct scenario *scenario, int index)
{
    char rank[32], list[32], pid[32];
    snprintf(rank, sizeof(rank), "rank %d ", scenario->victim);
    snprintf(list, sizeof(list), "missing %d", scenario->victim);
    snprintf(pid, sizeof(pid), "pid %d", (int)shared->pids[scenario->victim]);
    return strstr(shared->sentences[index], rank) || strstr(shared->sentences[index], list) ||
           strstr(shared->sentences[index], pid);
}

/* A stopped one may have given all it had to; one that is killed before it sent anything is one
 * that never comes; all others are noticed, and named. */
static bool good(const struct shared *shared, const struct scenario *scenario, int at, int index)
{
    ncclResult_t rc = (ncclResult_t)shared->rc[index];
    bool stopped = inject.signal == SIGSTOP;
    if (at == 0 || (stopped && rc == ncclSuccess)) return rc == ncclSuccess;
    bool late_allowed = stopped || (!atomic_load(&shared->known) && scenario->form != SPLIT);
    if (rc == ncclTimeout && !late_allowed) return false;
    return (int)rc > 0 && named(shared, scenario, index);
}

static int judge(const struct shared *shared, const struct scenario *scenario, int at)
{
    int wrong = 0;
    for (int i = 0; i < scenario->n; i++) {
        if (at && i == scenario->victim) continue;
        if (good(shared, scenario, at, i)) continue;
        printf("wrong: form %d n %d victim %d maker %d call %d: rank %d: code %d, \"%s\"\n",
               (int)scenario->form, scenario->n, scenario->victim, scenario->maker, at, i,
               shared->rc[i], shared->sentences[i]);
        wrong++;
    }
    return wrong;
}

static void start(struct shared *shared, const struct scenario *scenario, int index,
                  const char *init_sec)
{
    struct player player = {.scenario = scenario, .shared = shared, .index = index};
    pid_t pid = fork();
    if (pid) shared->pids[index] = pid; /* the page is the child's too */
    if (pid) return;
    if (scenario->sockets) {
        setenv("NCCL_P2P_DISABLE", "1", 1);
        setenv("NCCL_SHM_DISABLE", "1", 1);
    }
    setenv("TUTTI_INIT_TIMEOUT", init_sec, 1);
    play(&player);
    exit(0);
}

static int perform_once(struct shared *shared, const struct scenario *scenario, int at,
                        const char *init_sec)
{
    int nplaces = scenario->n + (scenario->maker >= scenario->n);
    memset(shared, 0, sizeof(*shared));
    atomic_store(&inject.at, at);
    fflush(stdout);
    for (int i = 0; i < nplaces; i++) {
        shared->rc[i] = -1;
        start(shared, scenario, i, at == 0 ? "60" : init_sec);
    }
    bool over = await_others(shared, scenario, at != 0);
    if (!over) {
        printf("wrong: form %d n %d victim %d maker %d call %d: hung\n", (int)scenario->form,
               scenario->n, scenario->victim, scenario->maker, at);
    }
    return judge(shared, scenario, at) + !over;
}

/* A time-out names who is late, which on a oversubscribed machine may be another: then give them
 * more time.
 */
static int perform(struct shared *shared, const struct scenario *scenario, int at)
{
    if (inject.signal == SIGKILL)
        return perform_once(shared, scenario, at, scenario->early ? "2" : "60");
    int wrong = perform_once(shared, scenario, at, "2");
    if (wrong && at) wrong = perform_once(shared, scenario, at, "20");
    return wrong;
}

/* Once without harm, which counts the calls; then a blow at each of `points` of them. */
static int perform_all(struct shared *shared, const struct scenario *scenario, int points)
{
    int wrong = perform(shared, scenario, 0);
    int calls = atomic_load(&shared->steps);
    if (points == 0 || points > calls) points = calls;
    for (int k = 0; k < points; k++) {
        wrong += perform(shared, scenario, 1 + (int)((long long)k * calls / points));
    }
    if (calls == 0) printf("wrong: no call was counted\n");
    return wrong + (calls == 0);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    bool stopping = strcmp(argv[1], "stop") == 0;
    int points = (int)strtol(argv[2], NULL, 10), lanes = stopping ? LANES_STOP : LANES_KILL,
        failed = 0;
    inject.signal = stopping ? SIGSTOP : SIGKILL;
    setenv("TUTTI_DEVICES", "8", 1);
    for (int lane = 0; lane < lanes; lane++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            int wrong = 0;
            for (size_t k = (size_t)lane; k < sizeof(scenarios) / sizeof(scenarios[0]);
                 k += (size_t)lanes)
                wrong += perform_all(shared, &scenarios[k], points);
            fflush(stdout);
            _exit(wrong != 0);
        }
    }
    for (int lane = 0; lane < lanes; lane++) {
        int status = 0;
        wait(&status);
        failed += status != 0;
    }
    printf("init-deaths %s: %d of %d lanes failed\n", argv[1], failed, lanes);
    return failed != 0;
}
