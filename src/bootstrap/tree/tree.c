/* Connections along the tree of ranks (shape.h). They live as long as the membership; their end is
 * how a death is noticed. What goes through them: exchange.c; how everybody learns of a failure:
 * failure.c; how a membership ends: leave.c. */
#include "bootstrap/tree/tree.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/member.h"
#include "device/device.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REASON_NSEC 1000000000ull
#define CHILD_REASON_NSEC 50000000ull
#define WAIT_SLICE_NSEC 4000000ull

/* ---- connections ---- */

struct tt_branch *tt_tree_branch(struct tt_bootstrap *b, const struct tt_conn *conn)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn == conn) return &b->branches[i];
    }
    return NULL;
}

void tt_tree_flood(struct tt_bootstrap *b, const struct tt_conn *except, uint16_t type,
                   const void *bytes, size_t len)
{
    if (b->up != except) tt_conn_send(b->up, type, bytes, len);
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn != except) tt_conn_send(b->branches[i].conn, type, bytes, len);
    }
}

static struct tt_branch *branch_to(struct tt_bootstrap *b, int child)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].rank == child) return &b->branches[i];
    }
    return NULL;
}

static void tree_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = tt_tree_branch(b, conn);
    switch (type) {
    case TT_FRAME_UP:
        if (branch) tt_exchange_up(b, branch, bytes, len);
        break;
    case TT_FRAME_DOWN:
        if (!branch) tt_exchange_down(b, bytes, len);
        break;
    case TT_FRAME_MESSAGE: tt_exchange_message(b, bytes, len); break;
    case TT_FRAME_FAIL: tt_failure_frame(b, conn, bytes, len); break;
    case TT_FRAME_DONE:
        if (branch) branch->done = true;
        tt_leave_step(b);
        break;
    case TT_FRAME_BYE: tt_leave_bye(b, conn); break;
    case TT_FRAME_LATE: tt_late_asked(b, conn, bytes, len); break;
    case TT_FRAME_HERE: tt_late_answered(b, branch); break;
    default: break;
    }
}

/* During init a rank that fails may close a connection that it has not looked at yet, and a child
 * that learned of another's failure may leave before this rank has heard of it. Then the reason
 * comes another way, by the root or the parent communicator, and is the one to tell. */
static bool await_reason(struct tt_bootstrap *b, const struct tt_conn *conn, const char *why)
{
    const bool spoke = !conn->server && conn->got_count > 0;
    if (b->cards || spoke || conn->starved) return false;
    if (b->lost_nsec) return true; /* the first one is blamed */
    snprintf(b->lost_why, sizeof(b->lost_why), "%s", why);
    b->lost_peer = conn->peer;
    b->lost_nsec = tt_now_nsec() + (conn->server ? CHILD_REASON_NSEC : REASON_NSEC);
    return true;
}

static void tree_closed(struct tt_conn *conn, const char *why)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = tt_tree_branch(b, conn);
    bool left = branch && branch->done; /* its goodbye was complete */
    bool opened = conn->state == TT_CONN_OPEN;
    if (branch) branch->conn = NULL;
    if (b->up == conn) b->up = NULL;
    if (b->dialing && strcmp(why, strerror(ECONNREFUSED)) != 0) b->dial_error = 0;
    b->dialing = false;
    pthread_cond_broadcast(&b->changed);
    bool lost = opened && !left && !b->finished;
    if (lost && !await_reason(b, conn, why)) tt_failure_lost(b, conn->peer, why);
    tt_leave_step(b);
}

static void up_opened(struct tt_conn *conn)
{
    struct tt_bootstrap *b = conn->owner;
    b->dialing = false;
    pthread_cond_broadcast(&b->changed);
}

static const struct tt_conn_ops tree_ops = {
    .opened = up_opened,
    .frame = tree_frame,
    .closed = tree_closed,
};

const struct tt_conn_ops *tt_tree_up_ops(void)
{
    return &tree_ops;
}

size_t tt_tree_limit(const struct tt_bootstrap *b)
{
    return (size_t)b->nranks * TT_GATHER_BYTES + 1024;
}

static bool child_admits(struct tt_door *door, const struct tt_hello *hello)
{
    struct tt_bootstrap *b = door->owner;
    const struct tt_branch *branch = branch_to(b, hello->own_rank);
    return branch && !branch->came && hello->nranks == (uint32_t)b->nranks &&
           hello->sealed == b->sealed;
}

static void child_opened(struct tt_door *door, struct tt_conn *conn)
{
    struct tt_bootstrap *b = door->owner;
    struct tt_branch *branch = branch_to(b, conn->peer);
    branch->conn = conn;
    branch->came = true;
    conn->owner = b;
    conn->ops = &tree_ops;
    conn->limit_bytes = tt_tree_limit(b);
    tt_failure_repeat(b, conn);
    pthread_cond_broadcast(&b->changed);
    bool all = true;
    for (int i = 0; i < b->nbranches; i++)
        all &= b->branches[i].came;
    if (all) {
        tt_door_close(door);
        b->door_is_open = false;
    }
}

void tt_tree_open_door(struct tt_bootstrap *b)
{
    if (b->nbranches == 0) return;
    tt_key_derive(b->secret, TT_KEY_TREE, &b->door.key);
    b->door.kind = TT_KEY_TREE;
    b->door.rank = b->rank;
    b->door.owner = b;
    b->door.admits = child_admits;
    b->door.opened = child_opened;
    b->door_is_open = true;
    tt_door_open(&b->door);
}

/* ---- life ---- */

static void plant(struct tt_bootstrap *b, int nblocks)
{
    int children[TT_BRANCHES];
    b->shape = (struct tt_shape){.nranks = b->nranks, .nblocks = nblocks};
    b->parent = tt_shape_parent(&b->shape, b->rank);
    b->nbranches = tt_shape_children(&b->shape, b->rank, children);
    b->subtree = tt_shape_size(&b->shape, b->rank);
    for (int i = 0; i < b->nbranches; i++)
        b->branches[i].rank = children[i];
}

ncclResult_t tt_tree_create(struct tt_member *member, int nblocks,
                            struct tt_bootstrap **bootstrap_out)
{
    struct tt_bootstrap *b = calloc(1, sizeof(*b));
    if (!b) return tt_fail(ncclSystemError, "bootstrap: out of memory");
    b->secret = sodium_malloc(TT_SECRET_BYTES);
    if (!b->secret) {
        free(b);
        return tt_fail(ncclSystemError, "bootstrap: no memory for the secret: %m");
    }
    ncclResult_t rc = tt_service_acquire();
    if (rc) {
        sodium_free(b->secret);
        free(b);
        return rc;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &attr);
    pthread_condattr_destroy(&attr);
    b->member = member;
    b->rank = member->rank;
    b->nranks = member->nranks;
    b->epoch = tt_service()->epoch;
    plant(b, nblocks);
    b->next = tt_service()->members;
    tt_service()->members = b;
    *bootstrap_out = b;
    return ncclSuccess;
}

void tt_tree_free(struct tt_bootstrap *b)
{
    for (int i = 0; i < b->nbranches; i++)
        free(b->branches[i].up);
    free(b->exchange.table);
    tt_mailbox_fini(&b->mailbox);
    sodium_free(b->secret);
    free(b->cards);
    free(b->records);
    free(b->exited);
    if (b->memory) tuttiHostControlFree(b->memory, b->memory_bytes);
    pthread_cond_destroy(&b->changed);
    sodium_memzero(b, sizeof(*b));
    free(b);
}

void tt_tree_destroy(struct tt_bootstrap *b)
{
    struct tt_bootstrap **link = &tt_service()->members;
    while (*link && *link != b)
        link = &(*link)->next;
    if (*link) *link = b->next;
    if (b->door_is_open) tt_door_close(&b->door);
    tt_conn_finish(b->up);
    for (int i = 0; i < b->nbranches; i++)
        tt_conn_finish(b->branches[i].conn);
    tt_tree_free(b);
    tt_service_release();
    pthread_cond_broadcast(&tt_service()->ended); /* for await_family() */
}

struct tt_bootstrap *tt_tree_next(struct tt_bootstrap *b)
{
    return b->next;
}

bool tt_tree_tick(uint64_t now_nsec)
{
    bool pending = false;
    struct tt_bootstrap *next;
    for (struct tt_bootstrap *b = tt_service()->members; b; b = next) {
        next = b->next;
        if (b->leaving && !b->finished && now_nsec >= b->linger_nsec) tt_leave_finish(b);
        if (b->abandoned && b->finished && now_nsec >= b->hold_nsec) {
            tt_tree_destroy(b);
            continue;
        }
        if (b->lost_nsec && now_nsec >= b->lost_nsec) {
            b->lost_nsec = 0;
            tt_failure_lost(b, b->lost_peer, b->lost_why);
        }
        pending |= b->lost_nsec != 0;
        pending |= b->leaving | tt_late_tick(b, now_nsec);
    }
    return pending;
}

/* In a forked child: calls on these memberships fail from now on. */
void tt_tree_orphan(struct tt_bootstrap *b)
{
    for (; b; b = b->next) {
        if (b->member) atomic_store(&b->member->abort, (uint32_t)ncclInvalidUsage);
        b->member = NULL;
    }
}

ncclResult_t tt_tree_wait(struct tt_bootstrap *b, uint64_t deadline_nsec)
{
    uint64_t now = tt_now_nsec();
    uint64_t until = now + WAIT_SLICE_NSEC;
    if (deadline_nsec && now >= deadline_nsec) return ncclTimeout;
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
                          .tv_nsec = (long)(until % 1000000000)};
    b->waiting++;
    if (pthread_cond_timedwait(&b->changed, &tt_service()->lock, &at) == ETIMEDOUT) {
        tt_service_unlock();
        for (int i = 0; i < 16 && tuttiHostHelp(); i++) {
        }
        tt_service_lock();
    }
    tt_failure_watch_elder(b);
    b->waiting--;
    if (atomic_load_explicit(&b->error, memory_order_relaxed)) return tt_failure_tell(b);
    if (b->member && tt_member_aborted(b->member)) {
        return (ncclResult_t)atomic_load_explicit(&b->member->abort, memory_order_relaxed);
    }
    return ncclSuccess;
}

/* ---- the outside ---- */

void tt_bootstrap_settle(struct tt_bootstrap *b)
{
    tt_service_lock();
    b->deadline_nsec = 0;
    tt_service_unlock();
}

void tt_bootstrap_entrust(struct tt_bootstrap *b, void *memory, size_t bytes)
{
    tt_service_lock();
    b->memory = memory;
    b->memory_bytes = bytes;
    tt_service_unlock();
}

const char *tt_bootstrap_peer(const struct tt_bootstrap *b, int rank, int *pid_out)
{
    *pid_out = b->cards ? (int)b->cards[rank].pid : -1;
    return b->cards ? b->cards[rank].host : "?";
}

void tt_bootstrap_key(const struct tt_bootstrap *b, const char *kind, unsigned char key_out[32])
{
    crypto_generichash(key_out, 32, (const unsigned char *)kind, strlen(kind), b->secret,
                       TT_SECRET_BYTES);
}
