/* Connections along the tree of ranks (blocks.h). They live as long as the membership; their end is
 * how a death is noticed. */
#include "bootstrap/tree/dispatch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/tree/exchange.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/tree/late.h"
#include "bootstrap/tree/leave.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/second.h"
#include "bootstrap/wire/service.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REASON_NSEC 1000000000ull
#define CHILD_REASON_NSEC 50000000ull
#define SECOND_AGAIN_NSEC 10000000000ull
#define SECOND_LIMIT_NSEC 5000000000ull

/* ---- connections ---- */

static struct tt_branch *branch_to(struct tt_bootstrap *b, int child)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].rank == child) return &b->branches[i];
    }
    return NULL;
}

/* What the service's thread says from now on is about this communicator. */
static void speak_of(const struct tt_bootstrap *b)
{
    if (pthread_equal(pthread_self(), tt_service()->thread)) tt_log_set_device(b->device);
}

static void tree_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = tt_tree_branch(b, conn);
    speak_of(b);
    switch (type) {
    case TT_FRAME_UP:
        if (branch) tt_exchange_up(b, branch, bytes, len);
        tt_leave_step(b);
        break;
    case TT_FRAME_DOWN:
        if (!branch) tt_exchange_down(b, bytes, len);
        break;
    case TT_FRAME_MESSAGE: tt_exchange_message(b, bytes, len); break;
    case TT_FRAME_FAIL:
        tt_failure_frame(b, conn, bytes, len);
        tt_leave_step(b);
        break;
    case TT_FRAME_DONE:
        if (branch) branch->done = true;
        tt_exchange_miss(b);
        tt_leave_step(b);
        break;
    case TT_FRAME_BYE: tt_leave_bye(b, conn); break;
    case TT_FRAME_LATE: tt_late_asked(b, conn, bytes, len); break;
    case TT_FRAME_HERE: tt_late_answered(b, branch); break;
    default: break;
    }
}

/* During init a rank that fails may close a connection that it has not looked at yet, and a child
 * that learned of another's failure may leave before this rank has received it. Then the reason
 * comes another way, by the root or the parent communicator, and is the one to report. */
static bool await_reason(struct tt_bootstrap *b, const struct tt_conn *conn, const char *why)
{
    const bool identified = !conn->server && conn->got_count > 0;
    if (b->contacts || identified || conn->starved || why == tt_conn_robbed) return false;
    if (b->lost_nsec) return true; /* the first one is blamed */
    snprintf(b->lost_why, sizeof(b->lost_why), "%s", why);
    b->lost_peer = conn->peer;
    b->lost_nsec = tt_now_nsec() + (conn->server ? CHILD_REASON_NSEC : REASON_NSEC);
    return true;
}

/* The parent has closed before it said anything: it waits 2 s for a rank's proof, which a link that
 * was cut meanwhile has not brought there, or which its host is too busy to look at. Then it has no
 * place taken by this rank, which calls again (tick), more than once if need be. Where its process
 * has ended it is not reached any more, and is reported as lost. */
static void call_again(struct tt_bootstrap *b, const struct tt_conn *conn, const char *why)
{
    const bool closed = !strcmp(why, "connection closed") || !strcmp(why, strerror(ECONNRESET));
    if (conn->server || conn->got_count > 0 || !closed || b->contacts) return;
    b->calls_again = true;
    tt_service_wake();
}

/* A call made again has reached the parent's process, which has not answered yet. */
static bool is_reached(const struct tt_bootstrap *b, uint64_t now_nsec)
{
    const bool calls = b->lost_peer == b->parent && b->up && b->dialing;
    return calls && b->up->reached && (!b->deadline_nsec || now_nsec < b->deadline_nsec);
}

static void tree_closed(struct tt_conn *conn, const char *why)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = tt_tree_branch(b, conn);
    speak_of(b);
    bool left = branch && branch->done; /* its goodbye was complete */
    bool opened = conn->state == TT_CONN_OPEN;
    if (branch) branch->conn = NULL;
    if (b->up == conn) b->up = NULL;
    if (b->dialing && strcmp(why, strerror(ECONNREFUSED)) != 0) b->dial_error = 0;
    b->dialing = false;
    pthread_cond_broadcast(&b->changed);
    bool lost = opened && !left && !b->finished;
    if (lost || (b->lost_nsec && conn->reached)) call_again(b, conn, why);
    if (lost && !await_reason(b, conn, why)) tt_failure_lost(b, conn->peer, why);
    tt_leave_step(b);
}

static void up_opened(struct tt_conn *conn)
{
    struct tt_bootstrap *b = conn->owner;
    b->dialing = false;
    if (b->lost_nsec && b->lost_peer == b->parent) b->lost_nsec = 0; /* it is there */
    tt_exchange_send_again(b);
    pthread_cond_broadcast(&b->changed);
}

static const struct tt_conn_ops tree_ops = {
    .opened = up_opened,
    .frame = tree_frame,
    .closed = tree_closed,
};

static size_t frame_limit(const struct tt_bootstrap *b)
{
    return (size_t)b->nranks * TT_GATHER_BYTES + 1024;
}

static bool child_admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    struct tt_bootstrap *b = acceptor->owner;
    const struct tt_branch *branch = branch_to(b, hello->own_rank);
    bool equal = hello->nranks == (uint32_t)b->nranks && hello->sealed == b->sealed;
    if (!branch || !equal) return false;
    if (!hello->second) return !branch->came;
    return branch->conn && branch->conn->state == TT_CONN_OPEN && !branch->conn->second;
}

static void child_opened(struct tt_acceptor *acceptor, struct tt_conn *conn)
{
    struct tt_bootstrap *b = acceptor->owner;
    struct tt_branch *branch = branch_to(b, conn->peer);
    if (conn->hello.second) {
        tt_second_join(branch->conn, conn);
        return;
    }
    if (tt_bootstrap_at_spare(conn->fd)) tt_service()->netif_cut = true;
    branch->conn = conn;
    branch->came = true;
    conn->owner = b;
    conn->ops = &tree_ops;
    conn->limit_bytes = frame_limit(b);
    tt_failure_repeat(b, conn);
    pthread_cond_broadcast(&b->changed);
    bool all = true;
    for (int i = 0; i < b->nbranches; i++)
        all &= b->branches[i].came;
    if (!all) return;
    b->accepts = false;
    b->seconds = tt_service()->spare_listener != NULL;
    if (!b->seconds) tt_acceptor_close(acceptor);
}

void tt_tree_accept_children(struct tt_bootstrap *b)
{
    if (b->nbranches == 0) return;
    tt_key_derive(b->secret, TT_KEY_TREE, &b->acceptor.key);
    b->acceptor.kind = TT_KEY_TREE;
    b->acceptor.rank = b->rank;
    b->acceptor.owner = b;
    b->acceptor.admits = child_admits;
    b->acceptor.opened = child_opened;
    b->accepts = true;
    tt_acceptor_open(&b->acceptor);
}

static ncclResult_t call_parent(struct tt_bootstrap *b, const union tt_addr *addr, bool second,
                                uint64_t deadline_nsec)
{
    struct tt_key key;
    tt_key_derive(b->secret, TT_KEY_TREE, &key);
    struct tt_conn_dial dial = {
        .addr = addr,
        .key = &key,
        .hello = {.kind = TT_KEY_TREE,
                  .own_rank = b->rank,
                  .wanted_rank = b->parent,
                  .nranks = (uint32_t)b->nranks,
                  .sealed = b->sealed,
                  .second = second},
        .ops = &tree_ops,
        .owner = b,
        .limit_bytes = frame_limit(b),
        .deadline_nsec = deadline_nsec,
    };
    ncclResult_t rc = second ? tt_second_dial(b->up, &dial) : tt_conn_dial(&dial, &b->up);
    sodium_memzero(&key, sizeof(key));
    return rc;
}

ncclResult_t tt_tree_dial_parent(struct tt_bootstrap *b, uint64_t deadline_nsec)
{
    const union tt_addr *addr =
        tt_dial_path_begin(&b->parent_path, &b->parent_contact.addr, &b->parent_contact.spare);
    ncclResult_t rc = call_parent(b, addr, false, deadline_nsec);
    b->dialing = rc == ncclSuccess;
    return rc == ncclInProgress ? ncclSuccess : rc;
}

/* ---- the second connection to the parent, over another interface ---- */

/* When one of the two has ended, it is tried again now and then: its interface may be mended. */
static void second_tick(struct tt_bootstrap *b, uint64_t now_nsec)
{
    const struct tt_conn *up = b->up;
    if (!b->second_nsec || !up || up->state != TT_CONN_OPEN || b->leaving || atomic_load(&b->error))
        return;
    if (up->second) return;
    if (now_nsec < b->second_nsec) return;
    const struct tt_contact *parent = &b->contacts[b->parent];
    bool over_spare = tt_addr_same_ip(&up->from, &parent->spare);
    b->second_nsec = now_nsec + SECOND_AGAIN_NSEC;
    (void)call_parent(b, over_spare ? &parent->addr : &parent->spare, true,
                      now_nsec + SECOND_LIMIT_NSEC);
}

/* ---- life ---- */

/* Children wait that this process cannot let in; the roots report that to them. */
static void fail_exhausted(struct tt_bootstrap *b)
{
    tt_tree_fail(b, b->rank, ncclSystemError,
                 "rank %d (pid %d) has no descriptor left for the ranks that connect to it; raise "
                 "its limit of descriptors (ulimit -n)",
                 b->rank, (int)getpid());
}

/* A handshake with the parent was cut off: call it once more. */
static void call_again_tick(struct tt_bootstrap *b)
{
    if (!b->calls_again || !b->exchange.entered || atomic_load(&b->error)) return;
    b->calls_again = false;
    if (!b->up && !b->leaving) (void)tt_tree_dial_parent(b, b->deadline_nsec);
}

/* True while a lost peer has time to come back, or others to say why it left. */
static bool lost_tick(struct tt_bootstrap *b, uint64_t now_nsec)
{
    if (b->lost_nsec && is_reached(b, now_nsec)) b->lost_nsec = now_nsec + REASON_NSEC;
    if (b->lost_nsec && now_nsec >= b->lost_nsec) {
        b->lost_nsec = 0;
        tt_failure_lost(b, b->lost_peer, b->lost_why);
    }
    return b->lost_nsec != 0;
}

static bool tick(uint64_t now_nsec)
{
    bool pending = false;
    struct tt_bootstrap *next;
    for (struct tt_bootstrap *b = tt_service()->members; b; b = next) {
        next = b->next;
        speak_of(b);
        if (b->accepts && !atomic_load(&b->error) && tt_service_cannot_accept(now_nsec))
            fail_exhausted(b);
        if (b->leaving && !b->finished && now_nsec >= b->linger_nsec) tt_leave_finish(b);
        if (b->abandoned && b->finished && now_nsec >= b->hold_nsec) {
            tt_tree_destroy(b);
            continue;
        }
        second_tick(b, now_nsec);
        call_again_tick(b);
        pending |= lost_tick(b, now_nsec);
        pending |= b->leaving | tt_late_tick(b, now_nsec);
        pending |= tt_exchange_tick(b, now_nsec);
    }
    return pending;
}

/* In a forked child: calls on these memberships fail from now on. */
static void fork_child(void)
{
    for (struct tt_bootstrap *b = tt_service()->members; b; b = b->next) {
        if (b->member) tt_member_forked(b->member);
        b->member = NULL;
        pthread_cond_init(&b->changed, NULL); /* whose waiters are not here to leave it */
    }
}

static const struct tt_service_client tree_client = {
    .tick = tick,
    .fork_child = fork_child,
    .needed = tt_leave_needed,
    .goodbye = tt_failure_exit,
};

static void plant(struct tt_bootstrap *b, int nblocks)
{
    int children[TT_BRANCHES];
    b->blocks = (struct tt_blocks){.nranks = b->nranks, .nblocks = nblocks};
    b->parent = tt_blocks_parent(&b->blocks, b->rank);
    b->nbranches = tt_blocks_children(&b->blocks, b->rank, children);
    b->subtree = tt_blocks_size(&b->blocks, b->rank);
    for (int i = 0; i < b->nbranches; i++) {
        b->branches[i].rank = children[i];
        b->branches[i].probe.fd = -1;
    }
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
    ncclResult_t rc = tt_service_acquire(&tree_client);
    if (rc) {
        sodium_free(b->secret);
        free(b);
        return rc;
    }
    pthread_cond_init(&b->changed, NULL);
    b->event_fd = -1;
    b->member = member;
    b->rank = member->rank;
    b->device = member->device;
    b->nranks = member->nranks;
    b->epoch = tt_service()->epoch;
    plant(b, nblocks);
    b->next = tt_service()->members;
    tt_service()->members = b;
    *bootstrap_out = b;
    return ncclSuccess;
}
