/* Which rank delays an exchange when its time is up. A rank that waits asks those it waits for:
 * below, the children whose share is missing, or, with all shares sent, above. A rank that is asked
 * says at once that it is alive (its service thread does) and asks on. So the question ends at a
 * rank that never came to the exchange, and says so, or at one that does not answer, and is named.
 * Where a child has not even connected, its root may not have answered it: then all neighbours are
 * asked first, and theirs above, as one of these may be the stopped process that holds the root. */
#include "bootstrap/tree/late.h"

#include "base/system/clock.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#define ANSWER_NSEC 2000000000ull
#define OTHERS_NSEC 500000000ull
#define LATE_BYTES 8

static void blame(struct tt_bootstrap *b, int rank, const char *what)
{
    char text[TT_WHO_BYTES];
    tt_failure_who(b, rank, text, sizeof(text));
    tt_tree_fail(b, rank, ncclTimeout, "%s %s (exchange %llu was not complete within %lld s)", text,
                 what, (unsigned long long)b->exchange.seq, (long long)b->timeout_sec);
}

static void send_late(struct tt_conn *conn, uint16_t type, uint64_t seq)
{
    unsigned char bytes[LATE_BYTES];
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, sizeof(bytes));
    tt_wire_put64(&wire, seq);
    tt_conn_send(conn, type, bytes, sizeof(bytes));
}

static bool is_missing(const struct tt_bootstrap *b, const struct tt_branch *branch)
{
    return !b->exchange.sent && (!branch->up || branch->up_seq != b->exchange.seq);
}

static void ask_branch(struct tt_bootstrap *b, struct tt_branch *branch)
{
    if (branch->asked) return;
    branch->asked = true;
    send_late(branch->conn, TT_FRAME_LATE, b->late.seq);
}

static void ask_parent(struct tt_bootstrap *b)
{
    if (!b->up || b->late.asked_up) return;
    b->late.asked_up = true;
    send_late(b->up, TT_FRAME_LATE, b->late.seq);
}

static void ask(struct tt_bootstrap *b)
{
    struct tt_late *late = &b->late;
    bool below = false;
    for (int i = 0; i < b->nbranches; i++) {
        struct tt_branch *branch = &b->branches[i];
        if (!is_missing(b, branch)) continue;
        below = true;
        if (branch->came) {
            ask_branch(b, branch);
        } else if (b->complete) {
            late->absent = true;
        } else { /* ranks of the block have not come to its root, which names them */
            tt_conn_send(b->own_root, TT_FRAME_OVERDUE, NULL, 0);
            return;
        }
    }
    for (int i = 0; i < b->nbranches && late->absent; i++) {
        if (b->branches[i].came) ask_branch(b, &b->branches[i]);
    }
    if (!below || late->absent) ask_parent(b);
    if (!late->due_nsec) late->due_nsec = tt_now_nsec() + ANSWER_NSEC;
    tt_service_wake();
}

void tt_late_begin(struct tt_bootstrap *b)
{
    if (b->late.seq != b->exchange.seq) {
        b->late = (struct tt_late){.seq = b->exchange.seq};
        for (int i = 0; i < b->nbranches; i++)
            b->branches[i].asked = b->branches[i].here = false;
    }
    ask(b);
}

void tt_late_asked(struct tt_bootstrap *b, struct tt_conn *conn, const unsigned char *bytes,
                   size_t len)
{
    const struct tt_exchange *x = &b->exchange;
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    uint64_t seq = tt_wire_get64(&wire);
    if (wire.bad) return;
    send_late(conn, TT_FRAME_HERE, seq);
    if (x->seq < seq) {
        bool assigned = b->rank == 0 || (b->up && !b->dialing); /* else it waits for its parent */
        if (assigned) blame(b, b->rank, "has not come that far");
    } else if (x->seq == seq && x->entered && !x->arrived) {
        tt_late_begin(b);
        if (tt_tree_branch(b, conn)) ask_parent(b);
    }
}

void tt_late_answered(struct tt_bootstrap *b, struct tt_branch *branch)
{
    if (branch) {
        branch->here = true;
    } else {
        b->late.here_up = true;
    }
}

/* True when a rank is. */
static bool blame_silent(struct tt_bootstrap *b)
{
    static const char silent[] = "does not answer: its process is stopped, or cannot be reached";
    const struct tt_late *late = &b->late;
    for (int i = 0; i < b->nbranches; i++) {
        const struct tt_branch *branch = &b->branches[i];
        if (!branch->asked || branch->here || !(late->absent || is_missing(b, branch))) continue;
        blame(b, branch->rank, silent);
        return true;
    }
    if (!late->asked_up || late->here_up) return false;
    blame(b, b->parent, silent);
    return true;
}

bool tt_late_tick(struct tt_bootstrap *b, uint64_t now_nsec)
{
    struct tt_late *late = &b->late;
    if (!late->due_nsec) return false;
    if (now_nsec < late->due_nsec) return true;
    late->due_nsec = 0;
    if (late->seq != b->exchange.seq || !b->exchange.entered || b->exchange.arrived) return false;
    if (blame_silent(b)) return false;
    if (late->absent && !late->all_due) {
        late->all_due = true;
        late->due_nsec = now_nsec + OTHERS_NSEC;
        return true;
    }
    for (int i = 0; i < b->nbranches && late->absent; i++) {
        const struct tt_branch *branch = &b->branches[i];
        if (branch->came || !is_missing(b, branch)) continue;
        blame(b, branch->rank, "did not connect");
        return false;
    }
    return false;
}
