/* The end of a membership: goodbyes go up when a subtree has left and down when all have; who left
 * stays here, without its caller, until then, and its memory until no peer can write to it. */
#include "bootstrap/tree/leave.h"

#include "base/system/clock.h"
#include "bootstrap/tree/exchange.h"
#include "bootstrap/tree/wait.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

#define LINGER_NSEC 60000000000ull /* for ranks that never leave */
#define LEAVE_WAIT_NSEC 200000000ull
#define HOLD_NSEC 1000000000ull

/* ---- goodbyes ---- */

/* After an error, this rank's own abort included, no message says when the others have stopped
 * writing here: give them a second. */
static void hold_memory(struct tt_bootstrap *b)
{
    const bool in_order = !atomic_load(&b->error) && b->given_up == 0;
    if (!b->memory || b->nranks == 1 || in_order) return;
    b->hold_nsec = tt_now_nsec() + HOLD_NSEC;
}

void tt_leave_finish(struct tt_bootstrap *b)
{
    if (b->finished) return;
    b->finished = true;
    hold_memory(b);
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
void tt_leave_step(struct tt_bootstrap *b)
{
    if (!b->leaving || b->finished) return;
    bool broken = atomic_load_explicit(&b->error, memory_order_relaxed) != 0;
    for (int i = 0; i < b->nbranches && !broken; i++) {
        if (b->branches[i].conn && !b->branches[i].done) return;
    }
    if (b->rank == 0 || !b->up || broken) {
        tt_leave_finish(b);
    } else if (!b->done_sent) {
        b->done_sent = true;
        tt_conn_send(b->up, TT_FRAME_DONE, NULL, 0);
    }
}

void tt_leave_bye(struct tt_bootstrap *b, struct tt_conn *conn)
{
    struct tt_branch *branch = tt_tree_branch(b, conn);
    if (branch) { /* a child that goes without waiting for the others */
        branch->conn = NULL;
        branch->done = true;
        tt_conn_finish(conn);
        tt_exchange_miss(b);
        tt_leave_step(b);
        return;
    }
    b->up = NULL;
    b->up_left = true;
    tt_exchange_miss(b);
    tt_conn_finish(conn);
    if (b->leaving) tt_leave_finish(b);
}

/* Subtrees that have not left, and what is above them. */
static bool relays(const struct tt_bootstrap *b)
{
    int sides = b->up != NULL;
    if (!b->leaving || b->finished || !b->contacts || atomic_load(&b->error)) return false;
    for (int i = 0; i < b->nbranches; i++)
        sides += b->branches[i].conn && !b->branches[i].done;
    return sides > 1;
}

bool tt_leave_needed(void)
{
    bool needed = false;
    for (const struct tt_bootstrap *b = tt_service()->members; b; b = b->next) {
        if (!b->leaving) return false;
        needed |= relays(b);
    }
    return needed;
}

/* ---- the call ---- */

/* Another rank of this communicator in this process, that has not left, or that is still here. */
static bool others_here(const struct tt_bootstrap *self, const unsigned char *secret, bool staying)
{
    for (struct tt_bootstrap *other = tt_service()->members; other; other = other->next) {
        if (other == self) continue;
        bool shares_secret = memcmp(other->secret, secret, TT_SECRET_BYTES) == 0;
        if (shares_secret && !(staying && other->leaving)) return true;
    }
    return false;
}

/* Those that left before are freed by the service thread when the goodbye reaches them. */
static void await_others(const unsigned char *secret)
{
    struct tt_service *service = tt_service();
    const struct timespec until = tt_clock_at(tt_now_nsec() + LEAVE_WAIT_NSEC);
    while (others_here(NULL, secret, false)) {
        if (pthread_cond_clockwait(&service->ended, &service->lock, CLOCK_MONOTONIC, &until))
            return;
    }
}

/* A rank that gave the communicator up has reported it: the goodbyes of others are nothing to wait
 * for, unless all of them are on their way in this process. */
static bool goodbyes_matter(const struct tt_bootstrap *b)
{
    int leaving = 0;
    for (const struct tt_bootstrap *m = tt_service()->members; m; m = m->next)
        leaving += m->leaving && memcmp(m->secret, b->secret, TT_SECRET_BYTES) == 0;
    return b->given_up == 0 || leaving == b->nranks;
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
        tt_tree_free(b);
        return;
    }
    if (b->member) tt_member_refused(b->member, b->refused);
    b->member = NULL;
    b->leaving = true;
    b->linger_nsec = tt_now_nsec() + LINGER_NSEC;
    tt_exchange_miss(b);
    if (atomic_load(&b->error) || !b->contacts) {
        tt_tree_flood(b, NULL, TT_FRAME_BYE, NULL, 0);
        tt_leave_finish(b);
    }
    tt_leave_step(b);
    bool last = !others_here(b, b->secret, true) && goodbyes_matter(b);
    unsigned char secret[TT_SECRET_BYTES];
    memcpy(secret, b->secret, sizeof(secret));
    uint64_t deadline = tt_now_nsec() + LEAVE_WAIT_NSEC;
    while (last && !b->finished && tt_tree_wait(b, deadline) == ncclSuccess) {
    }
    if (b->finished && !b->hold_nsec) {
        tt_tree_destroy(b);
    } else {
        b->abandoned = true;
        tt_service_wake();
    }
    if (last) await_others(secret);
    sodium_memzero(secret, sizeof(secret));
    tt_service_unlock();
    tt_service_wait_idle();
}
