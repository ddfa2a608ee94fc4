/* The steps of a world: calls, communicators that are made and ended, and faults. All members take
 * the same one. */
#include "soak_member.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- steps ---- */

static ncclResult_t split(struct member *m, uint64_t *state)
{
    int colors = 1 + soak_pick(state, 3), backward = soak_pick(state, 2), color = m->rank % colors;
    struct group g = {NULL, m->rank / colors, (m->nranks - color + colors - 1) / colors};
    if (backward) g.rank = g.n - 1 - g.rank;
    ncclResult_t rc = ncclCommSplit(m->comm, color, backward ? -m->rank : 0, &g.comm, NULL);
    rc = soak_made(m->comm, &g.comm, rc);
    uint64_t own = soak_mix(*state + (uint64_t)color);
    if (!rc) return soak_use_and_end(m, g, &own);
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
    rc = soak_made(m->comm, &g.comm, rc);
    return rc ? rc : soak_use_and_end(m, g, state);
}

static const ncclUniqueId *shared_id(const struct member *m, int number)
{
    struct shared *shared = m->world->shared;
    if (m->rank == 0 && number == 0)
        soak_must(m, ncclGetUniqueId(&shared->ids[0]), "ncclGetUniqueId");
    if (m->rank == 0) atomic_store(&shared->has_id[number], true);
    while (!atomic_load(&shared->has_id[number])) {
        usleep(100);
    }
    return &shared->ids[number];
}

void soak_init(struct member *m, int number)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = m->world->nonblocking ? 0 : 1;
    if (m->rank == 0 && number)
        soak_must(m, ncclGetUniqueId(&m->world->shared->ids[number]), "ncclGetUniqueId");
    const ncclUniqueId *id = shared_id(m, number);
    m->comm = NULL;
    ncclResult_t rc = ncclCommInitRankConfig(&m->comm, m->nranks, *id, m->rank, &config);
    soak_must(m, soak_made(NULL, &m->comm, rc), "init");
}

static ncclResult_t init_anew(struct member *m, uint64_t *state)
{
    soak_pick(state, 2); /* as a step: this one has no choice */
    soak_must(m, ncclCommDestroy(m->comm), "ncclCommDestroy");
    soak_init(m, m->step + 1);
    return ncclSuccess;
}

/* The first free slot joins as the last rank. */
static ncclResult_t grow(struct member *m, uint64_t *state)
{
    struct shared *shared = m->world->shared;
    int slot = 0, number = m->step + 1;
    ncclComm_t larger = NULL;
    if (m->nranks == m->world->nslots) {
        struct group g = soak_whole(m);
        return soak_operate(m, &g, state);
    }
    for (int r = 0; r < m->nranks; r++) {
        if (m->slots[r] != slot) continue;
        slot++;
        r = -1;
    }
    m->slots[m->nranks] = slot;
    if (m->rank == 0) {
        soak_must(m, ncclCommGetUniqueId(m->comm, &shared->ids[number]), "ncclCommGetUniqueId");
        memcpy(shared->members[number], m->slots, sizeof(m->slots));
        shared->nmembers[number] = m->nranks + 1;
        atomic_store(&shared->has_id[number], true);
        atomic_store(&shared->joining, number);
    }
    ncclResult_t rc = ncclCommGrow(m->comm, m->nranks + 1, m->rank ? NULL : &shared->ids[number],
                                   -1, &larger, NULL);
    rc = soak_made(m->comm, &larger, rc);
    soak_must(m, rc, "ncclCommGrow");
    soak_must(m, ncclCommDestroy(m->comm), "ncclCommDestroy");
    m->comm = larger;
    m->nranks++;
    return ncclSuccess;
}

/* ---- faults ---- */

struct inject {
    struct member *member;
    int signal, after_usec;
};

static void *inject(void *arg)
{
    struct inject *s = arg;
    struct shared *shared = s->member->world->shared;
    usleep((useconds_t)s->after_usec);
    if (s->signal == SIGKILL) {
        int64_t none = 0;
        atomic_store(&shared->doomed[s->member->slot], true);
        atomic_compare_exchange_strong(&shared->incidents[s->member->step].injected_usec, &none,
                                       soak_now_usec());
    }
    kill(getpid(), s->signal);
    return NULL;
}

/* One rank stands still for a while: slow, not dead. */
static ncclResult_t stop(struct member *m, uint64_t *state)
{
    int victim = soak_pick(state, m->nranks);
    struct inject still = {m, SIGSTOP, soak_pick(state, 3000)};
    struct group g = soak_whole(m);
    pthread_t thread = 0;
    ncclResult_t rc = ncclSuccess;
    if (m->rank == victim && pthread_create(&thread, NULL, inject, &still))
        soak_wrong(m, "pthread_create", 0);
    for (int k = 0; k < 4 && !rc; k++) {
        rc = soak_operate(m, &g, state);
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
    struct inject end = {m, SIGKILL, soak_pick(&own, 4000)};
    struct shared *shared = m->world->shared;
    struct group g = soak_whole(m);
    pthread_t thread;
    if (plan->fault == KILL) {
        if (pthread_create(&thread, NULL, inject, &end)) soak_wrong(m, "pthread_create", 0);
        while (!(plan->splits ? split(m, state) : soak_operate(m, &g, state))) {
        }
        for (;;)
            pause();
    }
    for (int k = soak_pick(&own, 3); k > 0; k--) {
        soak_must(m, plan->splits ? split(m, state) : soak_operate(m, &g, state),
                  "before the fault");
    }
    if (!plan->splits && soak_pick(&own, 2)) { /* others may or may not have come to these */
        struct burst burst;
        soak_must(m, soak_begin(m, &g, state, &burst), "under way at the fault");
    }
    usleep((useconds_t)soak_pick(&own, 1000));
    atomic_store(&shared->incidents[m->step].injected_usec, soak_now_usec());
    if (plan->fault == ABORT) {
        soak_must(m, ncclCommAbort(m->comm), "ncclCommAbort");
        m->comm = NULL;
    } else {
        soak_must(m, soak_result(NULL, ncclCommRevoke(m->comm, NCCL_REVOKE_DEFAULT)),
                  "ncclCommRevoke");
    }
}

/* The error that a fault of others brings: in time, and in words. */
static void take_error(struct member *m, const struct plan *plan, uint64_t *state)
{
    struct incident *incident = &m->world->shared->incidents[m->step];
    struct group g = soak_whole(m);
    ncclResult_t rc = ncclSuccess;
    bool named = false;
    while (!rc) {
        rc = plan->splits ? split(m, state) : soak_operate(m, &g, state);
    }
    int64_t injected = atomic_load(&incident->injected_usec), took = soak_now_usec() - injected;
    if (!injected) soak_wrong(m, "an error before the fault", (int)rc);
    if (took > (int64_t)BOUND_SEC * 1000000) soak_wrong(m, "the error came late", (int)rc);
    for (int64_t seen = incident->reported_usec; seen < took;) {
        if (atomic_compare_exchange_weak(&incident->reported_usec, &seen, took)) break;
    }
    ncclAllReduce(m->in[0], m->out[0], 1, ncclUint8, ncclSum, m->comm, m->stream);
    const char *sentence = ncclGetLastError(m->comm);
    if (!sentence || !*sentence) soak_wrong(m, "an error without a sentence", (int)rc);
    for (int k = 0; k < plan->nout; k++) {
        const int rank = plan->fault == REVOKE ? plan->revoker : plan->out[k];
        char words[32], pid[32];
        snprintf(words, sizeof(words), "rank %d", rank);
        /* a communicator that was just made of this one has numbers of its own */
        snprintf(pid, sizeof(pid), "(pid %d)", m->world->shared->pids[m->slots[rank]]);
        const char *found = strstr(sentence, words);
        const char *after = found ? found + strlen(words) : "";
        named |= (found && (*after < '0' || *after > '9')) || strstr(sentence, pid);
    }
    if (!named)
        fprintf(stderr, "soak: seed %llu, step %d, rank %d: does not name rank %d: %s\n",
                (unsigned long long)m->world->seed, m->step, m->rank,
                plan->fault == REVOKE ? plan->revoker : plan->out[0], sentence);
    incident->fault = (int)plan->fault;
    incident->nranks = m->nranks;
    atomic_fetch_add(&incident->reported, 1);
    atomic_fetch_add(&incident->remote, rc == ncclRemoteError);
    atomic_fetch_add(&incident->named, named);
}

/* Until all have ended the step before: a death there would be another incident. */
static void await_all(const struct member *m)
{
    for (int r = 0; r < m->nranks; r++) {
        while (atomic_load(&m->world->shared->at_step[m->slots[r]]) < m->step) {
            usleep(100);
        }
    }
}

/* One rank ends; the others go on without it. The one left behind does not come back. */
static ncclResult_t fault(struct member *m, uint64_t *state)
{
    struct plan plan = some_plan(state, m->nranks);
    ncclComm_t smaller = NULL;
    int left = 0, rank = 0;
    await_all(m);
    bool does = plan.fault == REVOKE ? m->rank == plan.revoker : is_out(&plan, m->rank);
    if (does) do_fault(m, &plan, state);
    if (!does) take_error(m, &plan, state);
    if (is_out(&plan, m->rank)) {
        if (m->comm) soak_must(m, ncclCommAbort(m->comm), "ncclCommAbort");
        exit(0);
    }
    ncclResult_t rc =
        ncclCommShrink(m->comm, plan.out, plan.nout, &smaller, NULL, NCCL_SHRINK_ABORT);
    if (!rc) (void)soak_result(m->comm, rc); /* its state is that of the fault, once it is done */
    soak_must(m, soak_made(NULL, &smaller, rc), "ncclCommShrink with abort");
    soak_must(m, ncclCommAbort(m->comm), "ncclCommAbort of what is left behind");
    for (int r = 0; r < m->nranks; r++) {
        if (is_out(&plan, r)) continue;
        if (r == m->rank) rank = left;
        m->slots[left++] = m->slots[r];
    }
    m->comm = smaller;
    m->rank = rank;
    m->nranks = left;
    return ncclSuccess;
}

/* ---- the table ---- */

static ncclResult_t calls(struct member *m, uint64_t *state)
{
    struct group g = soak_whole(m);
    ncclResult_t rc = ncclSuccess;
    for (int k = soak_pick(state, 4); k >= 0 && !rc; k--) {
        rc = soak_operate(m, &g, state);
    }
    return rc;
}

const struct step soak_steps[SOAK_STEPS] = {
    {"calls", calls, 0}, {"calls", calls, 1},        {"split", split, 2}, {"shrink", shrink, 0},
    {"stop", stop, 0},   {"new init", init_anew, 5}, {"grow", grow, 6},   {"grow", grow, 7},
    {"fault", fault, 6}, {"fault", fault, 7},
};
