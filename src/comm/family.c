/* Storage of communicators, and those that share resources: children of splitShare or shrinkShare.
 * The family's first ancestor owns the issue queue, so its storage outlives its own end until the
 * last child has gone.
 * What was storage of a communicator is never anything else: a handle that is used after the end
 * meets a magic word that is zero, not somebody's bytes. It rests until RESTING others came after
 * it, so that a program has many calls to find out. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/poison.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESTING = 64 };

static struct {
    pthread_mutex_t lock;             /* guards all family_* fields, too */
    struct tt_comm *resting, *newest; /* destroyed, oldest first, by family_next */
    int nresting;
    int alive;   /* made and not ended */
    pid_t owner; /* process that made them: a child inherits the number, not the duty */
} family = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- storage ---- */

static struct tt_comm *wake_oldest(void)
{
    struct tt_comm *comm = family.nresting >= RESTING ? family.resting : NULL;
    if (!comm) return NULL;
    family.resting = comm->family_next;
    family.nresting--;
    tt_unpoison(comm, sizeof(*comm));
    memset(comm, 0, sizeof(*comm));
    return comm;
}

/* Under the lock; its magic is zero. */
static void rest(struct tt_comm *comm)
{
    const size_t links = offsetof(struct tt_comm, func);
    if (!family.nresting) {
        family.resting = comm;
    } else {
        family.newest->family_next = comm;
    }
    comm->family_next = NULL;
    family.newest = comm;
    family.nresting++;
    tt_poison((char *)comm + links, sizeof(*comm) - links);
}

struct tt_comm *tt_family_alloc(void)
{
    pthread_mutex_lock(&family.lock);
    struct tt_comm *comm = wake_oldest();
    if (!comm) comm = tt_calloc(1, sizeof(*comm));
    if (family.owner != getpid()) family.alive = 0;
    family.owner = getpid();
    if (comm) family.alive++;
    pthread_mutex_unlock(&family.lock);
    return comm;
}

/* A program that would have ended well, and left communicators behind: on a GPU their peers hang or
 * die later. Only said, and only made an error, under TUTTI_STRICT. */
static void tell_forgotten(int status, void *unused)
{
    (void)unused;
    if (status || !family.alive || family.owner != getpid()) return;
    if (!tt_param_bool("TUTTI_STRICT")) return;
    tt_warn("TUTTI_STRICT: %d communicator(s) were never destroyed or aborted", family.alive);
    fflush(NULL);
    _exit(1);
}

/* At load, so that it runs after the destructors of static objects and the program's own handlers,
 * which may end communicators. */
__attribute__((constructor)) static void watch_exit(void)
{
    on_exit(tell_forgotten, NULL);
}

/* ---- families ---- */

ncclResult_t tt_family_join(struct tt_comm *parent, struct tt_comm *child)
{
    const char *net = child->config.netName, *parent_net = parent->config.netName;
    if (net && (!parent_net || strcmp(net, parent_net) != 0)) {
        return tt_fail(ncclInvalidUsage,
                       "%s: netName %s differs from the parent's (%s), with whom resources are to "
                       "be shared",
                       child->func, net, parent_net ? parent_net : "none");
    }
    pthread_mutex_lock(&family.lock);
    struct tt_comm *head = parent->family_head ? parent->family_head : parent;
    child->family_head = head;
    child->queue_used = &head->queue;
    child->family_next = head->family_next;
    head->family_next = child;
    pthread_mutex_unlock(&family.lock);
    return ncclSuccess;
}

static void abort_one(struct tt_comm *comm, ncclResult_t rc, const char *sentence)
{
    tt_member_abort_why(&comm->member, rc, sentence);
    atomic_store(&comm->aborted, true);
    int phase = atomic_load(&comm->phase); /* after the flag, see tt_init_run() */
    if (phase == TT_COMM_INIT || phase == TT_COMM_DESTROYED) return; /* init says so itself */
    if (phase == TT_COMM_FINALIZED) return; /* all its work is done: peers lose nothing by it */
    tt_bootstrap_fail(comm->bootstrap, rc, sentence);
}

void tt_family_abort(struct tt_comm *comm, ncclResult_t rc)
{
    char sentence[TT_WHY_BYTES + 64], why[TT_WHY_BYTES];
    tt_member_why(&comm->member, why);
    if (atomic_load_explicit(&comm->phase, memory_order_acquire) == TT_COMM_INIT) {
        /* its rank is not settled yet */
        snprintf(sentence, sizeof(sentence), "a child of the communicator was aborted in its init");
    } else {
        snprintf(sentence, sizeof(sentence), "rank %d aborted the communicator%s%s",
                 comm->member.rank, *why ? ": " : "", why);
    }
    pthread_mutex_lock(&family.lock);
    struct tt_comm *head = comm->family_head ? comm->family_head : comm;
    for (struct tt_comm *kin = head; kin; kin = kin->family_next)
        abort_one(kin, rc, sentence);
    pthread_mutex_unlock(&family.lock);
}

void tt_family_hide(struct tt_comm *comm)
{
    pthread_mutex_lock(&family.lock);
    atomic_store_explicit(&comm->phase, TT_COMM_DESTROYED, memory_order_release);
    pthread_mutex_unlock(&family.lock);
}

void tt_family_free(struct tt_comm *comm)
{
    pthread_mutex_lock(&family.lock);
    struct tt_comm *head = comm->family_head, *dead = NULL;
    if (family.owner == getpid()) family.alive--;
    comm->magic = 0; /* a stale handle meets no magic */
    comm->member.rank = -1;
    if (head) {
        struct tt_comm **link = &head->family_next;
        while (*link && *link != comm)
            link = &(*link)->family_next;
        if (*link) *link = comm->family_next;
        if (head->magic == 0 && !head->family_next) dead = head;
    } else if (!comm->family_next) {
        dead = comm;
    }
    pthread_mutex_unlock(&family.lock);
    if (dead) tt_issue_queue_fini(&dead->queue); /* may wait for streams */
    pthread_mutex_lock(&family.lock);
    if (head) rest(comm);
    if (dead) rest(dead);
    pthread_mutex_unlock(&family.lock);
}
