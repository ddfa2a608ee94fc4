/* Connections along the tree of ranks (shape.h). They live as long as the membership; their end is
 * how a death is noticed, and the tree is how everybody learns of it. */
#include "bootstrap/tree.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "bootstrap/id.h"
#include "bootstrap/wire.h"
#include "device/device.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAIL_BYTES (16 + TT_SENTENCE_BYTES)
#define REASON_NSEC 1000000000ull
#define LINGER_NSEC 60000000000ull /* for ranks that never leave */
#define WAIT_SLICE_NSEC 4000000ull

/* ---- cards ---- */

void tt_card_pack(const struct tt_card *card, unsigned char bytes[TT_CARD_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_CARD_BYTES);
    tt_addr_put(&wire, &card->addr);
    tt_wire_put32(&wire, (uint32_t)card->pid);
    tt_wire_put_text(&wire, card->host, TT_HOST_BYTES);
}

void tt_card_unpack(struct tt_card *card, const unsigned char *bytes)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, TT_CARD_BYTES);
    tt_addr_get(&wire, &card->addr);
    card->pid = (int32_t)tt_wire_get32(&wire);
    tt_wire_get_text(&wire, card->host, TT_HOST_BYTES);
}

static void leave_step(struct tt_bootstrap *b);

/* ---- errors ---- */

static void flood(struct tt_bootstrap *b, const struct tt_conn *except, uint16_t type,
                  const void *bytes, size_t len)
{
    if (b->up != except) tt_conn_send(b->up, type, bytes, len);
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn != except) tt_conn_send(b->branches[i].conn, type, bytes, len);
    }
}

struct fail { /* what a FAIL frame says */
    int rank;
    ncclResult_t rc;
    enum tt_fail_kind kind;
    uint32_t begun; /* of an exit: collectives that the rank had begun */
    const char *sentence;
};

static void fail_pack(const struct fail *fail, unsigned char bytes[FAIL_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, FAIL_BYTES);
    tt_wire_put32(&wire, (uint32_t)fail->rank);
    tt_wire_put32(&wire, (uint32_t)fail->rc);
    tt_wire_put32(&wire, fail->kind);
    tt_wire_put32(&wire, fail->begun);
    tt_wire_put_text(&wire, fail->sentence, TT_SENTENCE_BYTES);
}

static void flood_fail(struct tt_bootstrap *b, const struct tt_conn *except,
                       const struct fail *fail)
{
    unsigned char bytes[FAIL_BYTES];
    fail_pack(fail, bytes);
    flood(b, except, TT_FRAME_FAIL, bytes, sizeof(bytes));
}

/* To a child that connects after the error. */
static void repeat_error(const struct tt_bootstrap *b, struct tt_conn *conn)
{
    ncclResult_t rc = (ncclResult_t)atomic_load_explicit(&b->error, memory_order_relaxed);
    const struct fail fail = {b->error_rank, rc, TT_FAIL_ERROR, 0, b->sentence};
    unsigned char bytes[FAIL_BYTES];
    if (!rc) return;
    fail_pack(&fail, bytes);
    tt_conn_send(conn, TT_FRAME_FAIL, bytes, sizeof(bytes));
}

static void flood_error(struct tt_bootstrap *b, const struct tt_conn *except, int rank,
                        ncclResult_t rc, const char *sentence)
{
    const struct fail fail = {rank, rc, TT_FAIL_ERROR, 0, sentence};
    flood_fail(b, except, &fail);
}

/* Say it once, in the thread that waits if there is one: that is whose call fails. */
static ncclResult_t tell_error(struct tt_bootstrap *b)
{
    ncclResult_t rc = (ncclResult_t)atomic_load_explicit(&b->error, memory_order_relaxed);
    if (b->told || !b->member) return rc;
    b->told = true;
    return tt_fail(rc, "comm 0x%llx rank %d: %s", (unsigned long long)b->member->comm_id, b->rank,
                   b->sentence);
}

static void take_words(struct tt_bootstrap *b, const char *sentence)
{
    if (atomic_load_explicit(&b->worded, memory_order_relaxed)) return;
    snprintf(b->sentence, sizeof(b->sentence), "%s", sentence);
    /* pairs with the acquire load in tt_bootstrap_error() */
    atomic_store_explicit(&b->worded, true, memory_order_release);
}

/* Remember the first error, stop everything that waits. True when it is the first. */
static bool take_error(struct tt_bootstrap *b, int rank, ncclResult_t rc, const char *sentence)
{
    if (atomic_load_explicit(&b->error, memory_order_relaxed)) return false;
    b->error_rank = rank;
    take_words(b, sentence);
    atomic_store_explicit(&b->error, (int)rc, memory_order_release);
    if (b->member) {
        uint32_t none = 0;
        atomic_compare_exchange_strong(&b->member->abort, &none, (uint32_t)rc);
        if (b->waiting == 0) tell_error(b);
    }
    pthread_cond_broadcast(&b->changed);
    return true;
}

void tt_tree_fail(struct tt_bootstrap *b, int rank, ncclResult_t rc, const char *fmt, ...)
{
    char sentence[TT_SENTENCE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    if (take_error(b, rank, rc, sentence)) flood_error(b, NULL, rank, rc, sentence);
}

/* A revoked communicator stays usable here (shrink goes through it): only operations stop. */
static void take_revoke(struct tt_bootstrap *b, struct tt_conn *from, int rank,
                        const char *sentence)
{
    uint32_t none = 0;
    if (b->revoke_told) return;
    b->revoke_told = true;
    const struct fail fail = {rank, ncclRemoteError, TT_FAIL_REVOKE, 0, sentence};
    flood_fail(b, from, &fail);
    if (b->revoked || !b->member) return;
    atomic_compare_exchange_strong(&b->member->abort, &none, (uint32_t)ncclRemoteError);
    tt_fail(ncclRemoteError, "comm 0x%llx rank %d: %s", (unsigned long long)b->member->comm_id,
            b->rank, sentence);
}

static void frame_fail(struct tt_bootstrap *b, struct tt_conn *conn, const unsigned char *bytes,
                       size_t len)
{
    struct tt_wire wire;
    char sentence[TT_SENTENCE_BYTES];
    tt_wire_read(&wire, bytes, len);
    struct fail fail = {.rc = ncclRemoteError, .sentence = sentence};
    fail.rank = (int)tt_wire_get32(&wire);
    /* The code there is its own, except that a late rank makes the whole init too late. */
    bool late = tt_wire_get32(&wire) == ncclTimeout && b->deadline_nsec != 0;
    if (late) fail.rc = ncclTimeout;
    fail.kind = (enum tt_fail_kind)tt_wire_get32(&wire);
    fail.begun = tt_wire_get32(&wire);
    tt_wire_get_text(&wire, sentence, sizeof(sentence));
    if (wire.bad) return;
    if (fail.kind == TT_FAIL_REVOKE) {
        take_revoke(b, conn, fail.rank, sentence);
    } else if (fail.kind == TT_FAIL_EXIT) {
        if (tt_exit_note(b, fail.rank, fail.begun, sentence)) flood_fail(b, conn, &fail);
    } else if (take_error(b, fail.rank, fail.rc, sentence)) {
        flood_fail(b, conn, &fail);
        leave_step(b);
    }
}

static void peer_lost(struct tt_bootstrap *b, int peer, const char *why)
{
    if (why == tt_conn_starved) {
        tt_tree_fail(b, b->rank, ncclSystemError, "rank %d is out of memory", b->rank);
    } else if (b->cards) {
        tt_tree_fail(b, peer, ncclRemoteError, "rank %d on host %s (pid %d) is gone: %s", peer,
                     b->cards[peer].host, (int)b->cards[peer].pid, why);
    } else if (peer < b->rank) {
        tt_tree_fail(b, peer, ncclRemoteError, "rank %d on host %s (pid %d) is gone: %s", peer,
                     b->place.parent_host, (int)b->place.parent_pid, why);
    } else {
        tt_tree_fail(b, peer, ncclRemoteError, "rank %d is gone: %s", peer, why);
    }
}

/* ---- leaving ---- */

static void finish(struct tt_bootstrap *b)
{
    if (b->finished) return;
    b->finished = true;
    for (int i = 0; i < b->nbranches; i++) {
        tt_conn_send(b->branches[i].conn, TT_FRAME_BYE, NULL, 0);
        tt_conn_finish(b->branches[i].conn);
        b->branches[i].conn = NULL;
    }
    tt_conn_finish(b->up);
    b->up = NULL;
    pthread_cond_broadcast(&b->changed);
    tt_service_wake(); /* an abandoned one is freed by the tick */
}

/* A leaf that left says so; an inner rank when its children have; rank 0 then ends it for all. */
static void leave_step(struct tt_bootstrap *b)
{
    if (!b->leaving || b->finished) return;
    bool broken = atomic_load_explicit(&b->error, memory_order_relaxed) != 0;
    for (int i = 0; i < b->nbranches && !broken; i++) {
        if (b->branches[i].conn && !b->branches[i].done) return;
    }
    if (b->rank == 0 || !b->up || broken) {
        finish(b);
    } else if (!b->done_sent) {
        b->done_sent = true;
        tt_conn_send(b->up, TT_FRAME_DONE, NULL, 0);
    }
}

/* ---- connections ---- */

static struct tt_branch *branch_of(struct tt_bootstrap *b, const struct tt_conn *conn)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn == conn) return &b->branches[i];
    }
    return NULL;
}

static struct tt_branch *branch_to(struct tt_bootstrap *b, int child)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].rank == child) return &b->branches[i];
    }
    return NULL;
}

static void frame_bye(struct tt_bootstrap *b, struct tt_conn *conn)
{
    struct tt_branch *branch = branch_of(b, conn);
    if (branch) { /* a child that goes without waiting for the others */
        branch->conn = NULL;
        branch->done = true;
        tt_conn_finish(conn);
        leave_step(b);
        return;
    }
    b->up = NULL;
    tt_conn_finish(conn);
    if (b->leaving) finish(b);
}

static void tree_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = branch_of(b, conn);
    switch (type) {
    case TT_FRAME_UP:
        if (branch) tt_exchange_up(b, branch, bytes, len);
        break;
    case TT_FRAME_DOWN:
        if (!branch) tt_exchange_down(b, bytes, len);
        break;
    case TT_FRAME_MESSAGE: tt_exchange_message(b, bytes, len); break;
    case TT_FRAME_FAIL: frame_fail(b, conn, bytes, len); break;
    case TT_FRAME_DONE:
        if (branch) branch->done = true;
        leave_step(b);
        break;
    case TT_FRAME_BYE: frame_bye(b, conn); break;
    case TT_FRAME_LATE: tt_late_asked(b, conn, bytes, len); break;
    case TT_FRAME_HERE: tt_late_answered(b, branch); break;
    default: break;
    }
}

/* A parent that fails may close a connection that it has not looked at yet. Then its reason comes
 * another way, by the root or the parent communicator, and is the one to tell. */
static bool await_reason(struct tt_bootstrap *b, const struct tt_conn *conn, const char *why)
{
    if (conn->server || b->cards || conn->got_count > 0 || conn->starved) return false;
    snprintf(b->orphan_why, sizeof(b->orphan_why), "%s", why);
    b->orphan_nsec = tt_now_nsec() + REASON_NSEC;
    return true;
}

static void tree_closed(struct tt_conn *conn, const char *why)
{
    struct tt_bootstrap *b = conn->owner;
    struct tt_branch *branch = branch_of(b, conn);
    bool left = branch && branch->done; /* its goodbye was complete */
    bool opened = conn->state == TT_CONN_OPEN;
    if (branch) branch->conn = NULL;
    if (b->up == conn) b->up = NULL;
    if (b->dialing && strcmp(why, strerror(ECONNREFUSED)) != 0) b->dial_error = 0;
    b->dialing = false;
    pthread_cond_broadcast(&b->changed);
    bool lost = opened && !left && !b->finished;
    if (lost && !await_reason(b, conn, why)) peer_lost(b, conn->peer, why);
    leave_step(b);
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
    repeat_error(b, conn);
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

static void tree_free(struct tt_bootstrap *b)
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
    tree_free(b);
    tt_service_release();
    pthread_cond_broadcast(&tt_service()->ended); /* for await_family() */
}

struct tt_bootstrap *tt_tree_next(struct tt_bootstrap *b)
{
    return b->next;
}

void tt_tree_exit(struct tt_bootstrap *b, int code)
{
    char sentence[TT_SENTENCE_BYTES];
    if (!b->leaving) {
        snprintf(sentence, sizeof(sentence),
                 "rank %d on host %s (pid %d) exited (code %d) without ncclCommDestroy", b->rank,
                 b->cards ? b->cards[b->rank].host : "?", (int)getpid(), code);
        const struct fail fail = {b->rank, ncclRemoteError, TT_FAIL_EXIT, tt_exit_begun(b),
                                  sentence};
        if (!atomic_load(&b->error)) flood_fail(b, NULL, &fail);
    }
    flood(b, NULL, TT_FRAME_BYE, NULL, 0);
}

bool tt_tree_tick(uint64_t now_nsec)
{
    bool pending = false;
    struct tt_bootstrap *next;
    for (struct tt_bootstrap *b = tt_service()->members; b; b = next) {
        next = b->next;
        if (b->leaving && !b->finished && now_nsec >= b->linger_nsec) finish(b);
        if (b->abandoned && b->finished && now_nsec >= b->hold_nsec) {
            tt_tree_destroy(b);
            continue;
        }
        if (b->orphan_nsec && now_nsec >= b->orphan_nsec) {
            b->orphan_nsec = 0;
            peer_lost(b, b->parent, b->orphan_why);
        }
        pending |= b->orphan_nsec != 0;
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

/* As long as a child is being born, the parent's tree is what notices deaths. */
static void watch_elder(struct tt_bootstrap *b)
{
    const struct tt_bootstrap *elder = b->elder;
    if (!elder || !atomic_load_explicit(&elder->error, memory_order_acquire)) return;
    for (int r = 0; r < b->nranks; r++) {
        if (b->elder_ranks[r] != elder->error_rank) continue;
        tt_tree_fail(b, r, ncclRemoteError, "%s", elder->sentence);
        return;
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
    watch_elder(b);
    b->waiting--;
    if (atomic_load_explicit(&b->error, memory_order_relaxed)) return tell_error(b);
    if (b->member && tt_member_aborted(b->member)) {
        return (ncclResult_t)atomic_load_explicit(&b->member->abort, memory_order_relaxed);
    }
    return ncclSuccess;
}

/* ---- the outside ---- */

void tt_bootstrap_fail(struct tt_bootstrap *b, ncclResult_t rc, const char *sentence)
{
    tt_service_lock();
    if (b->epoch == tt_service()->epoch && !atomic_load(&b->error)) {
        take_words(b, sentence);
        flood_error(b, NULL, b->rank, rc, sentence);
    }
    tt_service_unlock();
}

void tt_bootstrap_revoke(struct tt_bootstrap *b)
{
    char sentence[TT_SENTENCE_BYTES];
    tt_service_lock();
    if (b->epoch == tt_service()->epoch) {
        b->revoked = true;
        snprintf(sentence, sizeof(sentence), "rank %d revoked the communicator", b->rank);
        take_revoke(b, NULL, b->rank, sentence);
    }
    tt_service_unlock();
}

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

ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *b, const char **sentence_out)
{
    /* pairs with the release store in take_words() */
    bool worded = atomic_load_explicit(&b->worded, memory_order_acquire);
    if (sentence_out) *sentence_out = worded ? b->sentence : "";
    return (ncclResult_t)atomic_load_explicit(&b->error, memory_order_acquire);
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

/* Another rank of this communicator in this process, that has not left, or that is still here. */
static bool others_here(const struct tt_bootstrap *self, const unsigned char *secret, bool staying)
{
    for (struct tt_bootstrap *other = tt_service()->members; other; other = other->next) {
        if (other == self) continue;
        bool family = memcmp(other->secret, secret, TT_SECRET_BYTES) == 0;
        if (family && !(staying && other->leaving)) return true;
    }
    return false;
}

#define LEAVE_WAIT_NSEC 200000000ull
#define HOLD_NSEC 1000000000ull

/* After an error nobody says when the others have stopped writing here: give them a second. */
static void hold_memory(struct tt_bootstrap *b)
{
    if (!b->memory || b->nranks == 1 || !atomic_load(&b->error)) return;
    b->hold_nsec = tt_now_nsec() + HOLD_NSEC;
}

/* Those that left before are freed by the service thread when the goodbye reaches them. */
static void await_family(const unsigned char *secret)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)LEAVE_WAIT_NSEC;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (others_here(NULL, secret, false)) {
        if (pthread_cond_timedwait(&tt_service()->ended, &tt_service()->lock, &until)) return;
    }
}

/* The last rank of this process waits a moment for the others, so that in the usual end (all leave
 * together) nothing is left when it returns; otherwise the service thread sees it through. */
void tt_bootstrap_leave(struct tt_bootstrap *b)
{
    if (!b) return;
    tt_service_lock();
    if (b->epoch != tt_service()->epoch) { /* made before fork: its sockets are closed already */
        tt_service_unlock();
        b->memory = NULL; /* the parent's */
        tree_free(b);
        return;
    }
    b->member = NULL;
    b->leaving = true;
    b->linger_nsec = tt_now_nsec() + LINGER_NSEC;
    if (atomic_load(&b->error) || !b->cards) {
        flood(b, NULL, TT_FRAME_BYE, NULL, 0);
        finish(b);
    }
    leave_step(b);
    hold_memory(b);
    bool last = !others_here(b, b->secret, true);
    unsigned char secret[TT_SECRET_BYTES];
    memcpy(secret, b->secret, sizeof(secret));
    uint64_t deadline = tt_now_nsec() + LEAVE_WAIT_NSEC;
    while (last && !b->finished && tt_tree_wait(b, deadline) == ncclSuccess) {
    }
    if (!b->finished) hold_memory(b);
    if (b->finished && !b->hold_nsec) {
        tt_tree_destroy(b);
    } else {
        b->abandoned = true;
        tt_service_wake();
    }
    if (last) await_family(secret);
    sodium_memzero(secret, sizeof(secret));
    tt_service_unlock();
    tt_service_settle();
}
