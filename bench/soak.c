/* Random collectives over random communicators, for as long as asked. Each world is some processes
 * that take the same random steps: calls, splits, shrinks, grows, new inits, and ranks that stand
 * still, leave, abort, revoke or are killed. Every result is compared with what it must be, every
 * error must come in time, with a sentence, and only after a fault. A world's seed makes all its
 * choices; only the moment within a call at which a signal comes is not the same again.
 * usage: bench-soak [SECONDS [SEED [WORLDS]]] */
#include "soak_call.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 6, STEPS = 12, BURST = 4, STUCK_SEC = 180, BOUND_SEC = 30 };
enum { MOST_BYTES = MOST * SOAK_MOST_COUNT * 8 };
enum { WAYS = 3, SIZES = 3, SAMPLES = 1 << 13 }; /* samples: of a row's times, for the median */

enum fault { KILL, ABORT, REVOKE, FAULTS };

struct scene { /* a fault, as its survivors found it */
    _Atomic int fault, nranks;
    _Atomic int64_t struck_usec, told_usec; /* when it came, 0: not yet; until the last knew */
    _Atomic int told, remote, named; /* survivors; with ncclRemoteError; with the culprit's rank */
};

struct board { /* shared by the processes of a world */
    ncclUniqueId ids[STEPS + 1];
    _Atomic bool has_id[STEPS + 1];  /* [0]: of the start, then of the steps that make one */
    int members[STEPS + 1][MOST];    /* seats in the order of ranks, after a grow */
    int nmembers[STEPS + 1];         /* of these */
    _Atomic int joining;             /* step at which a newcomer is wanted, plus 1 */
    _Atomic bool doomed[MOST];       /* by a signal of its own */
    const char *_Atomic doing[MOST]; /* the text lies at one address in all processes */
    _Atomic int at_step[MOST];       /* where each is */
    struct scene scenes[STEPS];
};

struct world {
    uint64_t seed;
    int nseats, way;
    bool nonblocking;
    struct board *board;
};

struct member { /* of the whole world, as one process sees it */
    const struct world *world;
    int seat, rank, nranks, seats[MOST];
    int step;
    uint64_t common; /* state of random numbers, the same in all members */
    ncclComm_t comm;
    cudaStream_t stream;
    unsigned char *in[BURST], *out[BURST];
};

struct group { /* a communicator, and who this process is in it */
    ncclComm_t comm;
    int rank, n;
};

/* ---- small things ---- */

static int64_t now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static _Noreturn void wrong(const struct member *m, const char *what, int code)
{
    fprintf(stderr, "soak: seat %d (rank %d of %d), step %d, %s: %s: code %d: %s\n", m->seat,
            m->rank, m->nranks, m->step, m->world->board->doing[m->seat], what, code,
            ncclGetLastError(NULL));
    _exit(1);
}

static void must(const struct member *m, ncclResult_t rc, const char *what)
{
    if (rc != ncclSuccess) wrong(m, what, (int)rc);
}

static void cuda(const struct member *m, cudaError_t err, const char *what)
{
    if (err) wrong(m, what, (int)err);
}

/* What a call on the communicator came to. */
static ncclResult_t settled(ncclComm_t comm, ncclResult_t rc)
{
    if (rc != ncclSuccess && rc != ncclInProgress) return rc;
    ncclResult_t state = ncclInProgress;
    while (comm && state == ncclInProgress) {
        rc = ncclCommGetAsyncError(comm, &state);
        if (rc) return rc;
        if (state == ncclInProgress) usleep(100);
    }
    return comm ? state : ncclSuccess;
}

/* The same of a call that makes one communicator out of another (NULL: of none). */
static ncclResult_t made(ncclComm_t from, ncclComm_t *comm, ncclResult_t rc)
{
    rc = settled(from, rc);
    if (!rc && !*comm) rc = ncclInternalError;
    return rc ? rc : settled(*comm, rc);
}

/* ---- calls ---- */

static ncclResult_t send_around(const struct soak_call *call, const struct group *g, const void *in,
                                void *out, cudaStream_t s)
{
    int to = (g->rank + call->root) % g->n, from = (g->rank + g->n - call->root) % g->n;
    ncclResult_t rc = ncclGroupStart(), ended;
    if (rc) return rc;
    rc = ncclSend(in, call->count, soak_type(call), to, g->comm, s);
    if (rc == ncclSuccess || rc == ncclInProgress)
        rc = ncclRecv(out, call->count, soak_type(call), from, g->comm, s);
    ended = ncclGroupEnd();
    return rc ? rc : ended;
}

static ncclResult_t launch(const struct member *m, const struct group *g,
                           const struct soak_call *call, int k)
{
    unsigned char *in = m->in[k], *out = call->in_place ? in : m->out[k];
    ncclDataType_t type = soak_type(call);
    size_t count = call->count;
    cudaStream_t s = m->stream;
    switch (call->func) {
    case SOAK_ALL_REDUCE: return ncclAllReduce(in, out, count, type, call->op, g->comm, s);
    case SOAK_REDUCE: return ncclReduce(in, out, count, type, call->op, call->root, g->comm, s);
    case SOAK_REDUCE_SCATTER: return ncclReduceScatter(in, out, count, type, call->op, g->comm, s);
    case SOAK_BROADCAST: return ncclBroadcast(in, out, count, type, call->root, g->comm, s);
    case SOAK_ALL_GATHER: return ncclAllGather(in, out, count, type, g->comm, s);
    case SOAK_ALL_TO_ALL: return ncclAlltoAll(in, out, count, type, g->comm, s);
    case SOAK_GATHER: return ncclGather(in, out, count, type, call->root, g->comm, s);
    case SOAK_SCATTER: return ncclScatter(in, out, count, type, call->root, g->comm, s);
    default: return send_around(call, g, in, out, s);
    }
}

static void compare(const struct member *m, const struct group *g, const struct soak_call *call,
                    int k)
{
    const unsigned char *out = call->in_place ? m->in[k] : m->out[k];
    for (size_t i = 0; i < soak_out_count(call, g->rank, g->n); i++) {
        uint64_t got = soak_get(out, call->width, i), want = soak_expected(call, g->rank, g->n, i);
        if (got == want) continue;
        fprintf(stderr, "soak: call %d of %d ranks, element %zu of %zu: %#llx, not %#llx\n",
                (int)call->func, g->n, i, call->count, (unsigned long long)got,
                (unsigned long long)want);
        wrong(m, "a wrong value", 0);
    }
}

struct burst { /* a few calls, all under way before the first is waited for */
    struct soak_call calls[BURST];
    int ncalls;
};

static ncclResult_t begin(struct member *m, const struct group *g, uint64_t *state,
                          struct burst *burst)
{
    bool grouped = soak_pick(state, 3) == 0;
    ncclResult_t rc = ncclSuccess, ended = ncclSuccess;
    burst->ncalls = 1 + soak_pick(state, BURST);
    for (int k = 0; k < burst->ncalls; k++) {
        struct soak_call *call = &burst->calls[k];
        *call = soak_call_random(state, g->n);
        memset(m->out[k], 0xa5, soak_out_count(call, g->rank, g->n) * (size_t)call->width);
        for (size_t i = 0; i < soak_in_count(call, g->n); i++) {
            soak_put(m->in[k], call->width, i, soak_input(call, g->rank, i));
        }
    }
    if (grouped) ended = ncclGroupStart();
    for (int k = 0; k < burst->ncalls && (rc == ncclSuccess || rc == ncclInProgress); k++) {
        rc = launch(m, g, &burst->calls[k], k);
        if (!grouped) rc = settled(g->comm, rc);
    }
    if (grouped) ended = ncclGroupEnd();
    if (rc == ncclSuccess || rc == ncclInProgress) rc = settled(g->comm, ended);
    return rc;
}

static ncclResult_t operate(struct member *m, const struct group *g, uint64_t *state)
{
    struct burst burst;
    ncclResult_t rc = begin(m, g, state, &burst);
    cudaError_t err = cudaStreamSynchronize(m->stream);
    if (!rc) rc = settled(g->comm, ncclSuccess);
    if (rc) return rc;
    cuda(m, err, "cudaStreamSynchronize");
    for (int k = 0; k < burst.ncalls; k++) {
        compare(m, g, &burst.calls[k], k);
    }
    return ncclSuccess;
}

static struct group whole(const struct member *m)
{
    return (struct group){m->comm, m->rank, m->nranks};
}

/* Use a communicator that was made, and end it. */
static ncclResult_t use_and_end(struct member *m, struct group g, uint64_t *state)
{
    bool finalizes = soak_pick(state, 2);
    ncclResult_t rc = operate(m, &g, state);
    if (!rc && finalizes) rc = settled(g.comm, ncclCommFinalize(g.comm));
    ncclResult_t ended = rc ? ncclCommAbort(g.comm) : ncclCommDestroy(g.comm);
    return rc ? rc : ended;
}

/* ---- steps ---- */

static ncclResult_t split(struct member *m, uint64_t *state)
{
    int colors = 1 + soak_pick(state, 3), backward = soak_pick(state, 2), color = m->rank % colors;
    struct group g = {NULL, m->rank / colors, (m->nranks - color + colors - 1) / colors};
    if (backward) g.rank = g.n - 1 - g.rank;
    ncclResult_t rc = ncclCommSplit(m->comm, color, backward ? -m->rank : 0, &g.comm, NULL);
    rc = made(m->comm, &g.comm, rc);
    uint64_t own = soak_mix(*state + (uint64_t)color);
    if (!rc) return use_and_end(m, g, &own);
    if (g.comm) ncclCommAbort(g.comm);
    return rc;
}

/* A part without one of the ranks, beside the whole. */
static ncclResult_t shrink(struct member *m, uint64_t *state)
{
    int out = soak_pick(state, m->nranks);
    struct group g = {NULL, m->rank - (m->rank > out), m->nranks - 1};
    if (m->rank == out || m->nranks == 1) return ncclSuccess;
    ncclResult_t rc = ncclCommShrink(m->comm, &out, 1, &g.comm, NULL, NCCL_SHRINK_DEFAULT);
    rc = made(m->comm, &g.comm, rc);
    return rc ? rc : use_and_end(m, g, state);
}

static const ncclUniqueId *shared_id(const struct member *m, int place)
{
    struct board *board = m->world->board;
    if (m->rank == 0 && place == 0) must(m, ncclGetUniqueId(&board->ids[0]), "ncclGetUniqueId");
    if (m->rank == 0) atomic_store(&board->has_id[place], true);
    while (!atomic_load(&board->has_id[place])) {
        usleep(100);
    }
    return &board->ids[place];
}

static void init(struct member *m, int place)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = m->world->nonblocking ? 0 : 1;
    if (m->rank == 0 && place)
        must(m, ncclGetUniqueId(&m->world->board->ids[place]), "ncclGetUniqueId");
    const ncclUniqueId *id = shared_id(m, place);
    m->comm = NULL;
    ncclResult_t rc = ncclCommInitRankConfig(&m->comm, m->nranks, *id, m->rank, &config);
    must(m, made(NULL, &m->comm, rc), "init");
}

static ncclResult_t init_anew(struct member *m, uint64_t *state)
{
    soak_pick(state, 2); /* as a step: this one has no choice */
    must(m, ncclCommDestroy(m->comm), "ncclCommDestroy");
    init(m, m->step + 1);
    return ncclSuccess;
}

/* The first free seat joins as the last rank. */
static ncclResult_t grow(struct member *m, uint64_t *state)
{
    struct board *board = m->world->board;
    int seat = 0, place = m->step + 1;
    ncclComm_t larger = NULL;
    if (m->nranks == m->world->nseats) {
        struct group g = whole(m);
        return operate(m, &g, state);
    }
    for (int r = 0; r < m->nranks; r++) {
        if (m->seats[r] != seat) continue;
        seat++;
        r = -1;
    }
    m->seats[m->nranks] = seat;
    if (m->rank == 0) {
        must(m, ncclCommGetUniqueId(m->comm, &board->ids[place]), "ncclCommGetUniqueId");
        memcpy(board->members[place], m->seats, sizeof(m->seats));
        board->nmembers[place] = m->nranks + 1;
        atomic_store(&board->has_id[place], true);
        atomic_store(&board->joining, place);
    }
    ncclResult_t rc = ncclCommGrow(m->comm, m->nranks + 1, m->rank ? NULL : &board->ids[place], -1,
                                   &larger, NULL);
    rc = made(m->comm, &larger, rc);
    must(m, rc, "ncclCommGrow");
    must(m, ncclCommDestroy(m->comm), "ncclCommDestroy");
    m->comm = larger;
    m->nranks++;
    return ncclSuccess;
}

/* ---- faults ---- */

struct strike {
    struct member *member;
    int signal, after_usec;
};

static void *strike(void *arg)
{
    struct strike *s = arg;
    struct board *board = s->member->world->board;
    usleep((useconds_t)s->after_usec);
    if (s->signal == SIGKILL) {
        int64_t none = 0;
        atomic_store(&board->doomed[s->member->seat], true);
        atomic_compare_exchange_strong(&board->scenes[s->member->step].struck_usec, &none,
                                       now_usec());
    }
    kill(getpid(), s->signal);
    return NULL;
}

/* One rank stands still for a while: slow, not dead. */
static ncclResult_t stop(struct member *m, uint64_t *state)
{
    int victim = soak_pick(state, m->nranks);
    struct strike still = {m, SIGSTOP, soak_pick(state, 3000)};
    struct group g = whole(m);
    pthread_t thread = 0;
    ncclResult_t rc = ncclSuccess;
    if (m->rank == victim && pthread_create(&thread, NULL, strike, &still))
        wrong(m, "pthread_create", 0);
    for (int k = 0; k < 4 && !rc; k++) {
        rc = operate(m, &g, state);
    }
    if (m->rank == victim) pthread_join(thread, NULL);
    return rc;
}

struct plan {
    enum fault fault;
    int nout, out[2]; /* who is left behind, ascending */
    int revoker;
    bool splits; /* the fault comes into splits, not into calls */
};

static struct plan some_plan(uint64_t *state, int n)
{
    struct plan plan = {.fault = (enum fault)soak_pick(state, FAULTS), .nout = 1};
    plan.out[0] = soak_pick(state, n);
    plan.revoker = soak_pick(state, n);
    plan.splits = soak_pick(state, 3) == 0;
    if (plan.fault == KILL && n > 2 && soak_pick(state, 3) == 0) {
        plan.nout = 2;
        plan.out[1] = plan.out[0] + 1 + soak_pick(state, n);
        if (plan.out[1] >= n) plan.out[1] = plan.out[0];
        if (plan.out[1] == plan.out[0]) plan.nout = 1;
    }
    return plan;
}

static bool is_out(const struct plan *plan, int rank)
{
    return plan->out[0] == rank || (plan->nout == 2 && plan->out[1] == rank);
}

/* What the rank that does it does: a signal while it works, or a call in the midst of it. */
static void do_fault(struct member *m, const struct plan *plan, uint64_t *state)
{
    uint64_t own = soak_mix(*state + (uint64_t)m->rank);
    struct strike end = {m, SIGKILL, soak_pick(&own, 4000)};
    struct board *board = m->world->board;
    struct group g = whole(m);
    pthread_t thread;
    if (plan->fault == KILL) {
        if (pthread_create(&thread, NULL, strike, &end)) wrong(m, "pthread_create", 0);
        while (!(plan->splits ? split(m, state) : operate(m, &g, state))) {
        }
        for (;;)
            pause();
    }
    for (int k = soak_pick(&own, 3); k > 0; k--) {
        must(m, plan->splits ? split(m, state) : operate(m, &g, state), "before the fault");
    }
    if (!plan->splits && soak_pick(&own, 2)) { /* others may or may not have come to these */
        struct burst burst;
        must(m, begin(m, &g, state, &burst), "under way at the fault");
    }
    usleep((useconds_t)soak_pick(&own, 1000));
    atomic_store(&board->scenes[m->step].struck_usec, now_usec());
    if (plan->fault == ABORT) {
        must(m, ncclCommAbort(m->comm), "ncclCommAbort");
        m->comm = NULL;
    } else {
        must(m, settled(NULL, ncclCommRevoke(m->comm, NCCL_REVOKE_DEFAULT)), "ncclCommRevoke");
    }
}

/* The error that a fault of others brings: in time, and in words. */
static void take_error(struct member *m, const struct plan *plan, uint64_t *state)
{
    struct scene *scene = &m->world->board->scenes[m->step];
    struct group g = whole(m);
    ncclResult_t rc = ncclSuccess;
    bool named = false;
    while (!rc) {
        rc = plan->splits ? split(m, state) : operate(m, &g, state);
    }
    int64_t struck = atomic_load(&scene->struck_usec), took = now_usec() - struck;
    if (!struck) wrong(m, "an error before the fault", (int)rc);
    if (took > (int64_t)BOUND_SEC * 1000000) wrong(m, "the error came late", (int)rc);
    for (int64_t seen = scene->told_usec; seen < took;) {
        if (atomic_compare_exchange_weak(&scene->told_usec, &seen, took)) break;
    }
    ncclAllReduce(m->in[0], m->out[0], 1, ncclUint8, ncclSum, m->comm, m->stream);
    const char *sentence = ncclGetLastError(m->comm);
    if (!sentence || !*sentence) wrong(m, "an error without a sentence", (int)rc);
    for (int k = 0; k < plan->nout; k++) {
        char words[32];
        snprintf(words, sizeof(words), "rank %d",
                 plan->fault == REVOKE ? plan->revoker : plan->out[k]);
        const char *found = strstr(sentence, words);
        const char *after = found ? found + strlen(words) : "";
        named |= found && (*after < '0' || *after > '9');
    }
    if (!named)
        fprintf(stderr, "soak: seed %llu, step %d, rank %d: does not name rank %d: %s\n",
                (unsigned long long)m->world->seed, m->step, m->rank,
                plan->fault == REVOKE ? plan->revoker : plan->out[0], sentence);
    scene->fault = (int)plan->fault;
    scene->nranks = m->nranks;
    atomic_fetch_add(&scene->told, 1);
    atomic_fetch_add(&scene->remote, rc == ncclRemoteError);
    atomic_fetch_add(&scene->named, named);
}

/* Until all have ended the step before: a death there would be another scene. */
static void meet(const struct member *m)
{
    for (int r = 0; r < m->nranks; r++) {
        while (atomic_load(&m->world->board->at_step[m->seats[r]]) < m->step) {
            usleep(100);
        }
    }
}

/* Somebody ends; the others go on without him. The one left behind does not come back. */
static ncclResult_t fault(struct member *m, uint64_t *state)
{
    struct plan plan = some_plan(state, m->nranks);
    ncclComm_t smaller = NULL;
    int left = 0, rank = 0;
    meet(m);
    bool does = plan.fault == REVOKE ? m->rank == plan.revoker : is_out(&plan, m->rank);
    if (does) do_fault(m, &plan, state);
    if (!does) take_error(m, &plan, state);
    if (is_out(&plan, m->rank)) {
        if (m->comm) must(m, ncclCommAbort(m->comm), "ncclCommAbort");
        exit(0);
    }
    ncclResult_t rc =
        ncclCommShrink(m->comm, plan.out, plan.nout, &smaller, NULL, NCCL_SHRINK_ABORT);
    if (!rc) (void)settled(m->comm, rc); /* its state is that of the fault, once it is done */
    must(m, made(NULL, &smaller, rc), "ncclCommShrink with abort");
    must(m, ncclCommAbort(m->comm), "ncclCommAbort of what is left behind");
    for (int r = 0; r < m->nranks; r++) {
        if (is_out(&plan, r)) continue;
        if (r == m->rank) rank = left;
        m->seats[left++] = m->seats[r];
    }
    m->comm = smaller;
    m->rank = rank;
    m->nranks = left;
    return ncclSuccess;
}

/* ---- a world ---- */

static ncclResult_t calls(struct member *m, uint64_t *state)
{
    struct group g = whole(m);
    ncclResult_t rc = ncclSuccess;
    for (int k = soak_pick(state, 4); k >= 0 && !rc; k--) {
        rc = operate(m, &g, state);
    }
    return rc;
}

struct step {
    const char *name;
    ncclResult_t (*take)(struct member *m, uint64_t *state);
    int alone; /* step that a rank that is alone takes instead */
};

static const struct step steps[] = {
    {"calls", calls, 0}, {"calls", calls, 1},        {"split", split, 2}, {"shrink", shrink, 0},
    {"stop", stop, 0},   {"new init", init_anew, 5}, {"grow", grow, 6},   {"grow", grow, 7},
    {"fault", fault, 6}, {"fault", fault, 7},
};

static _Noreturn void live(const struct world *world, int seat, int place)
{
    struct board *board = world->board;
    struct member m = {.world = world, .seat = seat, .rank = seat, .nranks = world->nseats};
    int ndevices = 0, nsteps = (int)(sizeof(steps) / sizeof(steps[0]));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NCCL_P2P_DISABLE", world->way > 0 ? "1" : "0", 1);
    setenv("NCCL_SHM_DISABLE", world->way > 1 ? "1" : "0", 1);
    board->doing[seat] = place ? "joining" : "init";
    cuda(&m, cudaGetDeviceCount(&ndevices), "cudaGetDeviceCount");
    cuda(&m, cudaSetDevice(seat % ndevices), "cudaSetDevice");
    cuda(&m, cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking), "stream");
    for (int k = 0; k < BURST; k++) {
        cuda(&m, cudaMalloc((void **)&m.in[k], MOST_BYTES), "cudaMalloc");
        cuda(&m, cudaMalloc((void **)&m.out[k], MOST_BYTES), "cudaMalloc");
    }
    for (int r = 0; r < m.nranks; r++) {
        m.seats[r] = r;
    }
    if (place) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = world->nonblocking ? 0 : 1;
        m.nranks = board->nmembers[place];
        m.rank = m.nranks - 1;
        memcpy(m.seats, board->members[place], sizeof(m.seats));
        ncclResult_t rc =
            ncclCommGrow(NULL, m.nranks, &board->ids[place], m.rank, &m.comm, &config);
        must(&m, made(NULL, &m.comm, rc), "ncclCommGrow of the newcomer");
    } else {
        init(&m, 0);
    }
    for (m.step = place; m.step < STEPS; m.step++) {
        m.common = soak_mix(world->seed * STEPS + (uint64_t)m.step);
        const struct step *step = &steps[soak_pick(&m.common, nsteps)];
        if (m.nranks == 1) step = &steps[step->alone];
        board->doing[seat] = step->name;
        board->at_step[seat] = m.step;
        must(&m, step->take(&m, &m.common), "a step");
    }
    must(&m, ncclCommDestroy(m.comm), "ncclCommDestroy");
    for (int k = 0; k < BURST; k++) {
        cuda(&m, cudaFree(m.in[k]), "cudaFree");
        cuda(&m, cudaFree(m.out[k]), "cudaFree");
    }
    cuda(&m, cudaStreamDestroy(m.stream), "cudaStreamDestroy");
    exit(0);
}

static pid_t start(const struct world *world, int seat, int place)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) live(world, seat, place);
    if (pid < 0) {
        perror("soak: fork");
        exit(2); /* and all others with this process */
    }
    return pid;
}

/* A child that ended or stands still; false: it ended as it should not. */
static bool look_after(const struct world *world, pid_t *pids, pid_t pid, int status)
{
    int seat = 0;
    while (seat < MOST && pids[seat] != pid) {
        seat++;
    }
    if (seat == MOST) return true;
    if (WIFSTOPPED(status)) {
        usleep((useconds_t)(soak_mix(world->seed + (uint64_t)seat) % 100000));
        kill(pid, SIGCONT);
        return true;
    }
    pids[seat] = 0;
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0;
    if (WTERMSIG(status) == SIGKILL && atomic_exchange(&world->board->doomed[seat], false))
        return true;
    fprintf(stderr, "soak: seat %d, step %d, %s: ended by signal %d\n", seat,
            world->board->at_step[seat], world->board->doing[seat], WTERMSIG(status));
    return false;
}

/* Into the seat that a grow waits for, when its last holder is gone; how many came. */
static int bring_newcomer(const struct world *world, pid_t *pids)
{
    struct board *board = world->board;
    int place = atomic_load(&board->joining);
    if (!place) return 0;
    int seat = board->members[place][board->nmembers[place] - 1];
    if (pids[seat]) return 0;
    atomic_store(&board->joining, 0);
    pids[seat] = start(world, seat, place);
    return 1;
}

static const char *const ways[WAYS] = {"memory", "copies", "sockets"};

static bool play(const struct world *world)
{
    struct board *board = world->board;
    pid_t pids[MOST] = {0};
    int alive = world->nseats, status;
    bool well = true;
    int64_t end = now_usec() + (int64_t)STUCK_SEC * 1000000;
    for (int seat = 0; seat < world->nseats; seat++) {
        board->at_step[seat] = -1;
        pids[seat] = start(world, seat, 0);
    }
    while (alive && well && now_usec() < end) {
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid > 0) {
            well = look_after(world, pids, pid, status);
            alive -= !WIFSTOPPED(status);
        }
        alive += bring_newcomer(world, pids);
        if (pid <= 0) usleep(500);
    }
    for (int seat = 0; seat < world->nseats && alive; seat++) {
        if (!pids[seat]) continue;
        fprintf(stderr, "soak: seat %d is in step %d, %s\n", seat, board->at_step[seat],
                board->doing[seat]);
        kill(pids[seat], SIGKILL);
        waitpid(pids[seat], NULL, 0);
    }
    return well && !alive;
}

/* ---- all worlds ---- */

struct row {
    int faults, told, remote, named;
    int64_t usec[SAMPLES]; /* of the first so many */
};

struct sums {
    int worlds, faults;
    struct row rows[WAYS][FAULTS][SIZES];
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A table as docs/reliability.md has it. */
static void tell_all(struct sums *sums)
{
    static const char *const faults[] = {"killed", "aborts", "revokes"};
    static const char *const sizes[] = {"2", "3", "4 to 6"};
    printf(
        "\n| way | fault | ranks | faults | survivors told | as ncclRemoteError | naming the rank "
        "| median ms | slowest ms |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int k = 0; k < WAYS * FAULTS * SIZES; k++) {
        int way = k / (FAULTS * SIZES), fault = k / SIZES % FAULTS, size = k % SIZES;
        struct row *row = &sums->rows[way][fault][size];
        int n = row->faults < SAMPLES ? row->faults : SAMPLES;
        if (!n) continue;
        qsort(row->usec, (size_t)n, sizeof(*row->usec), by_size);
        int64_t median = row->usec[n / 2], most = row->usec[n - 1];
        printf("| %s | %s | %s | %d | %d | %d | %d | %.1f | %.1f |\n", ways[way], faults[fault],
               sizes[size], row->faults, row->told, row->remote, row->named, (double)median / 1000,
               (double)most / 1000);
    }
}

static void count(struct sums *sums, const struct world *world)
{
    sums->worlds++;
    for (int step = 0; step < STEPS; step++) {
        const struct scene *scene = &world->board->scenes[step];
        if (!scene->told) continue;
        int size = scene->nranks < 4 ? scene->nranks - 2 : SIZES - 1;
        struct row *row = &sums->rows[world->way][scene->fault][size];
        if (row->faults < SAMPLES) row->usec[row->faults] = scene->told_usec;
        row->faults++;
        row->told += scene->told;
        row->remote += scene->remote;
        row->named += scene->named;
        sums->faults++;
    }
}

static uint64_t number(const char *text, uint64_t otherwise)
{
    char *rest = NULL;
    if (!text) return otherwise;
    uint64_t value = strtoull(text, &rest, 0);
    if (rest != text && !*rest) return value;
    fprintf(stderr, "usage: bench-soak [SECONDS [SEED [WORLDS]]]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t seconds = number(argc > 1 ? argv[1] : NULL, 60);
    uint64_t first = number(argc > 2 ? argv[2] : NULL, (uint64_t)now_usec());
    uint64_t least = number(argc > 3 ? argv[3] : NULL, 1);
    int64_t begin = now_usec(), told = begin;
    struct sums *sums =
        mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct world world = {.board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    if (sums == MAP_FAILED || world.board == MAP_FAILED) return 2;
    printf("soak: first seed %llu\n", (unsigned long long)first);
    for (uint64_t k = 0; k < least || now_usec() - begin < (int64_t)seconds * 1000000; k++) {
        uint64_t state = soak_mix(first + k);
        memset(world.board, 0, sizeof(*world.board));
        world.seed = first + k;
        world.nseats = 2 + soak_pick(&state, MOST - 1);
        world.way = soak_pick(&state, 3);
        world.nonblocking = soak_pick(&state, 4) == 0;
        if (!play(&world)) {
            fprintf(stderr, "soak: %d ranks, %s%s failed; again: bench-soak 0 %llu 1\n",
                    world.nseats, ways[world.way], world.nonblocking ? ", not blocking," : "",
                    (unsigned long long)world.seed);
            return 1;
        }
        count(sums, &world);
        if (now_usec() - told < 10000000) continue;
        told = now_usec();
        printf("soak: %d worlds, %d faults\n", sums->worlds, sums->faults);
        fflush(stdout);
    }
    printf("soak: %d worlds from seed %llu, %d faults, all as it must be\n", sums->worlds,
           (unsigned long long)first, sums->faults);
    tell_all(sums);
    munmap(sums, sizeof(*sums));
    munmap(world.board, sizeof(struct board));
    return 0;
}
