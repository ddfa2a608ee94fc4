/* Storage of communicators, and those that share resources: children of splitShare or shrinkShare.
 * The first communicator that they descend from owns the issue queue, so its storage outlives its
 * own end until the last child has gone. What was storage of a communicator is never anything else:
 * a handle that is used after the end meets a magic word that is zero, not the bytes of another
 * object. It is kept until RETIRED others came after it, so that a program has many calls to find
 * out. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/poison.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "device/device.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RETIRED = 64 };
#define QUIET_NSEC 500000000ull /* for running work to notice the abort flag */

/* ---- storage ---- */

static struct tt_comm *reuse_oldest(void)
{
    struct tt_comm *comm = tt_comms.storage.nresting >= RETIRED ? tt_comms.storage.retired : NULL;
    if (!comm) return NULL;
    tt_comms.storage.retired = comm->sharers_next;
    tt_comms.storage.nresting--;
    tt_unpoison(comm, sizeof(*comm));
    memset(comm, 0, sizeof(*comm));
    return comm;
}

/* Under the lock; its magic is zero. */
static void retire(struct tt_comm *comm)
{
    const size_t links = offsetof(struct tt_comm, func);
    if (!tt_comms.storage.nresting) {
        tt_comms.storage.retired = comm;
    } else {
        tt_comms.storage.newest->sharers_next = comm;
    }
    comm->sharers_next = NULL;
    tt_comms.storage.newest = comm;
    tt_comms.storage.nresting++;
    tt_poison((char *)comm + links, sizeof(*comm) - links);
}

struct tt_comm *tt_sharers_alloc(void)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    struct tt_comm *comm = reuse_oldest();
    if (!comm) comm = tt_calloc(1, sizeof(*comm));
    if (tt_comms.storage.owner != getpid()) tt_comms.storage.alive = tt_comms.storage.broken = 0;
    tt_comms.storage.owner = getpid();
    if (comm) tt_comms.storage.alive++;
    pthread_mutex_unlock(&tt_comms.storage.lock);
    return comm;
}

void tt_sharers_count(int nranks)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    if (nranks > tt_comms.storage.largest) tt_comms.storage.largest = nranks;
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

void tt_comm_note_broken(void)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    if (tt_comms.storage.owner == getpid()) tt_comms.storage.broken++;
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

/* Processes that a launcher gave one id, and each of which stayed alone: it may be meant so, but
 * not by a program with an MPI library, which did not start under that launcher. */
static void report_alone(void)
{
    const char *world = getenv("WORLD_SIZE");
    long nprocesses = world ? strtol(world, NULL, 10) : 0;
    if (nprocesses < 2 || tt_comms.storage.largest != 1 || !tt_param_is_set("NCCL_COMM_ID")) return;
    tt_warn("%ld processes were started together (WORLD_SIZE), and this one made communicators of "
            "one rank only: if they belong together, the program did not take its rank and their "
            "number from RANK and WORLD_SIZE; if not, tutti run --own-ids says so",
            nprocesses);
    if (dlsym(RTLD_DEFAULT, "MPI_Init") || tt_param_bool("TUTTI_STRICT"))
        tuttiHostFail("communicators have one rank only, of programs that were started together");
}

/* On a GPU the peers of a communicator that is left hang or die later. */
static void report_left(bool strict)
{
    const char *check = tt_param_str("TUTTI_CHECK");
    const bool leaks = check && strstr(check, ",leaks");
    if (!tt_comms.storage.alive || (!strict && !leaks)) return;
    tt_warn("%s: %d communicator(s) were never destroyed or aborted",
            strict ? "TUTTI_STRICT" : "TUTTI_CHECK", tt_comms.storage.alive);
    if (strict) tuttiHostFail("communicators were left (TUTTI_STRICT)");
    if (!strict && strstr(check, ":exit")) tuttiHostFail("communicators were left (TUTTI_CHECK)");
}

/* A program that would have ended well, and left communicators behind, or did not look at the
 * failure of one. Only said, and only made an error, under TUTTI_STRICT; communicators that are
 * left also where TUTTI_CHECK looks for leaks. */
static void report_forgotten(int status, void *unused)
{
    (void)unused;
    if (status || tt_comms.storage.owner != getpid()) return;
    report_alone();
    if (tt_net_broke_contract() && tt_param_bool("TUTTI_STRICT"))
        tuttiHostFail("a network plugin broke its contract (TUTTI_STRICT)");
    const bool strict = tt_param_bool("TUTTI_STRICT");
    if (strict && tt_comms.storage.broken) {
        tt_warn("TUTTI_STRICT: %d communicator(s) had failed when they were destroyed, and the "
                "program ends as if all were well",
                tt_comms.storage.broken);
        tuttiHostFail("communicators had failed (TUTTI_STRICT)");
    }
    report_left(strict);
}

/* At load, so that it runs after the destructors of static objects and the program's own handlers,
 * which may end communicators. */
__attribute__((constructor)) static void watch_exit(void)
{
    on_exit(report_forgotten, NULL);
}

/* ---- sharing resources ---- */

ncclResult_t tt_sharers_join(struct tt_comm *parent, struct tt_comm *child)
{
    const char *net = child->config.netName, *parent_net = parent->config.netName;
    if (net && (!parent_net || strcmp(net, parent_net) != 0)) {
        return tt_fail(ncclInvalidUsage,
                       "%s: netName %s differs from the parent's (%s), with whom resources are to "
                       "be shared",
                       child->func, net, parent_net ? parent_net : "none");
    }
    pthread_mutex_lock(&tt_comms.storage.lock);
    struct tt_comm *head = parent->sharers_head ? parent->sharers_head : parent;
    child->sharers_head = head;
    child->queue_used = &head->queue;
    child->sharers_next = head->sharers_next;
    head->sharers_next = child;
    pthread_mutex_unlock(&tt_comms.storage.lock);
    return ncclSuccess;
}

void tt_sharers_part(struct tt_comm *child)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    struct tt_comm *head = child->sharers_head;
    for (struct tt_comm **link = head ? &head->sharers_next : NULL; link && *link;
         link = &(*link)->sharers_next) {
        if (*link != child) continue;
        *link = child->sharers_next;
        child->sharers_next = child->sharers_head = NULL;
        child->queue_used = &child->queue;
        break;
    }
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

static void abort_one(struct tt_comm *comm, ncclResult_t rc, const char *sentence)
{
    bool finalized = atomic_load(&comm->phase) == TT_COMM_FINALIZED;
    /* all its work is done: peers lose nothing, and what the network still holds reaches them */
    if (!finalized) tt_member_abort_why(&comm->member, rc, sentence);
    atomic_store(&comm->aborted, true);
    int phase = atomic_load(&comm->phase); /* after the flag, see tt_init_run() */
    if (finalized || phase == TT_COMM_INIT || phase == TT_COMM_DESTROYED) return; /* init says so */
    tt_bootstrap_abort(comm->bootstrap, rc, sentence);
}

void tt_sharers_abort(struct tt_comm *comm, ncclResult_t rc)
{
    char sentence[TT_WHY_BYTES + 64], why[TT_WHY_BYTES];
    tt_member_why(&comm->member, why);
    if (atomic_load_explicit(&comm->phase, memory_order_acquire) == TT_COMM_INIT) {
        /* its rank is not known yet */
        snprintf(sentence, sizeof(sentence),
                 "a child of the communicator was aborted in its init%s%s", *why ? ": " : "", why);
    } else {
        snprintf(sentence, sizeof(sentence), "rank %d aborted the communicator%s%s",
                 comm->member.rank, *why ? ": " : "", why);
    }
    pthread_mutex_lock(&tt_comms.storage.lock);
    struct tt_comm *head = comm->sharers_head ? comm->sharers_head : comm;
    for (struct tt_comm *sharer = head; sharer; sharer = sharer->sharers_next)
        abort_one(sharer, rc, sentence);
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

void tt_sharers_drain(struct tt_comm *comm)
{
    const struct tt_issue_queue *queue = comm->queue_used;
    uint64_t deadline = tt_now_nsec() + QUIET_NSEC;
    uint32_t spins = 0;
    while (atomic_load_explicit(&queue->served, memory_order_acquire) !=
           atomic_load_explicit(&queue->issued, memory_order_acquire)) {
        if (tt_now_nsec() > deadline) break;
        if (!tuttiHostHelp()) tt_wait_relax(&spins, comm->tune.oversubscribed);
    }
}

void tt_sharers_hide(struct tt_comm *comm)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    atomic_store_explicit(&comm->phase, TT_COMM_DESTROYED, memory_order_release);
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

bool tt_sharers_keep(const struct tt_comm *comm)
{
    pthread_mutex_lock(&tt_comms.storage.lock);
    if (comm->magic == TT_COMM_MAGIC && atomic_load(&comm->phase) != TT_COMM_DESTROYED) return true;
    pthread_mutex_unlock(&tt_comms.storage.lock);
    return false;
}

void tt_sharers_release(void)
{
    pthread_mutex_unlock(&tt_comms.storage.lock);
}

void tt_sharers_free(struct tt_comm *comm)
{
    tuttiHostLet(comm);
    pthread_mutex_lock(&tt_comms.storage.lock);
    struct tt_comm *head = comm->sharers_head, *dead = NULL;
    if (tt_comms.storage.owner == getpid()) tt_comms.storage.alive--;
    comm->magic = 0; /* a stale handle meets no magic */
    if (head) {
        struct tt_comm **link = &head->sharers_next;
        while (*link && *link != comm)
            link = &(*link)->sharers_next;
        if (*link) *link = comm->sharers_next;
        if (head->magic == 0 && !head->sharers_next) dead = head;
    } else if (!comm->sharers_next) {
        dead = comm;
    }
    pthread_mutex_unlock(&tt_comms.storage.lock);
    if (dead) tt_issue_queue_fini(&dead->queue); /* may wait for streams */
    pthread_mutex_lock(&tt_comms.storage.lock);
    if (head) retire(comm);
    if (dead) retire(dead);
    pthread_mutex_unlock(&tt_comms.storage.lock);
}
