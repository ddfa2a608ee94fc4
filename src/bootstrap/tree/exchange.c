/* All-gather and routed messages over the tree. Contributions go up in preorder, the table comes
 * down in rank order; the service thread forwards, so a rank that is late delays only what needs
 * its own contribution. */
#include "bootstrap/tree/exchange.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "bootstrap/tree/exits.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/tree/late.h"
#include "bootstrap/tree/wait.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UP_HEADER_BYTES 12
#define VERDICT_NSEC 10000000000ull /* which rank keeps it waiting is known long before */
#define DOWN_HEADER_BYTES 8
#define MESSAGE_HEADER_BYTES 12
enum { LIST_BYTES = 256 };

static void starve(struct tt_bootstrap *b)
{
    tt_tree_fail(b, b->rank, ncclSystemError, "rank %d is out of memory", b->rank);
}

/* ---- up ---- */

static bool subtree_complete(const struct tt_bootstrap *b)
{
    for (int i = 0; i < b->nbranches; i++) {
        const struct tt_branch *branch = &b->branches[i];
        if (!branch->up || branch->up_seq != b->exchange.seq) return false;
    }
    return true;
}

static void fail_unlike(struct tt_bootstrap *b, const struct tt_branch *branch)
{
    const struct tt_exchange *x = &b->exchange;
    const size_t size = (size_t)tt_blocks_size(&b->blocks, branch->rank);
    tt_tree_fail(b, b->rank, ncclInvalidUsage,
                 "ranks disagree about the size of exchange %llu: rank %d gave %zu bytes, rank %d "
                 "%zu; has each rank loaded the same build of this library?",
                 (unsigned long long)x->seq, b->rank, x->bytes, branch->rank,
                 branch->up_bytes / size);
}

/* Own contribution, then those of the children: the preorder of this subtree. False: a child has
 * another size (reported). */
static bool collect(struct tt_bootstrap *b, unsigned char *to)
{
    struct tt_exchange *x = &b->exchange;
    if (x->bytes) memcpy(to, x->mine, x->bytes);
    to += x->bytes;
    for (int i = 0; i < b->nbranches; i++) {
        struct tt_branch *branch = &b->branches[i];
        int size = tt_blocks_size(&b->blocks, branch->rank);
        bool same = branch->up_bytes == (size_t)size * x->bytes;
        if (same && branch->up_bytes) memcpy(to, branch->up, branch->up_bytes);
        to += branch->up_bytes;
        free(branch->up);
        branch->up = NULL;
        if (same) continue;
        fail_unlike(b, branch);
        return false;
    }
    return true;
}

static void table_down(struct tt_bootstrap *b, const unsigned char *table, size_t bytes)
{
    size_t len = DOWN_HEADER_BYTES + bytes;
    unsigned char *frame = malloc(len);
    if (!frame) {
        starve(b);
        return;
    }
    struct tt_wire wire;
    tt_wire_init(&wire, frame, len);
    tt_wire_put64(&wire, b->exchange.seq);
    tt_wire_put(&wire, table, bytes);
    for (int i = 0; i < b->nbranches; i++) {
        tt_conn_send(b->branches[i].conn, TT_FRAME_DOWN, frame, len);
    }
    free(frame);
}

/* Rank 0 has everything in preorder: sort by rank and send it to all. */
static void complete_table(struct tt_bootstrap *b, const unsigned char *preorder)
{
    struct tt_exchange *x = &b->exchange;
    size_t total = (size_t)b->nranks * x->bytes;
    int *order = malloc((size_t)b->nranks * sizeof(*order));
    x->table = malloc(total ? total : 1);
    if (!order || !x->table) {
        free(order);
        starve(b);
        return;
    }
    tt_blocks_order(&b->blocks, 0, order);
    for (int i = 0; i < b->nranks && x->bytes; i++) {
        memcpy(x->table + (size_t)order[i] * x->bytes, preorder + (size_t)i * x->bytes, x->bytes);
    }
    free(order);
    x->table_bytes = total;
    x->arrived = true;
    table_down(b, x->table, total);
    pthread_cond_broadcast(&b->changed);
}

static void send_up(struct tt_bootstrap *b)
{
    struct tt_exchange *x = &b->exchange;
    if (!x->entered || x->sent || !subtree_complete(b)) return;
    size_t len = UP_HEADER_BYTES + (size_t)b->subtree * x->bytes;
    size_t room = len;
    for (int i = 0; i < b->nbranches; i++)
        room += b->branches[i].up_bytes;
    unsigned char *frame = malloc(room);
    if (!frame) {
        starve(b);
        return;
    }
    struct tt_wire wire;
    tt_wire_init(&wire, frame, UP_HEADER_BYTES);
    tt_wire_put64(&wire, x->seq);
    tt_wire_put32(&wire, (uint32_t)x->bytes);
    x->sent = true;
    const bool whole = collect(b, frame + UP_HEADER_BYTES);
    if (whole && b->rank == 0) {
        complete_table(b, frame + UP_HEADER_BYTES);
    } else if (whole) {
        tt_conn_send(b->up, TT_FRAME_UP, frame, len);
        if (!b->contacts) {
            x->kept = frame;
            x->kept_bytes = len;
            return;
        }
    }
    free(frame);
}

void tt_exchange_send_again(struct tt_bootstrap *b)
{
    const struct tt_exchange *x = &b->exchange;
    if (x->kept) tt_conn_send(b->up, TT_FRAME_UP, x->kept, x->kept_bytes);
}

/* Shares of children are here, perhaps since before this rank left its last exchange, and it is in
 * none: it gets a report when they have waited for long. */
static void watch_kept(struct tt_bootstrap *b)
{
    bool kept = false;
    for (int i = 0; i < b->nbranches; i++)
        kept |= b->branches[i].up != NULL;
    if (!kept || b->exchange.entered || b->kept_nsec) return;
    b->kept_nsec = tt_tree_report_nsec();
    tt_service_wake();
}

/* The exchange lacks a rank for good. */
static void lacks(struct tt_bootstrap *b, int rank)
{
    char text[TT_WHO_BYTES];
    if (tt_bootstrap_someone_exited(b)) {
        tt_tree_fail(b, rank, ncclRemoteError, "%s", b->left_sentence);
        return;
    }
    tt_failure_who(b, rank, text, sizeof(text));
    tt_tree_fail(b, rank, ncclRemoteError,
                 "%s has left the communicator (ncclCommDestroy) before an init, split or "
                 "registration that other ranks wait in",
                 text);
}

void tt_exchange_miss(struct tt_bootstrap *b)
{
    const struct tt_exchange *x = &b->exchange;
    if (!b->contacts || atomic_load_explicit(&b->error, memory_order_relaxed)) return;
    for (int i = 0; i < b->nbranches; i++) {
        const struct tt_branch *branch = &b->branches[i];
        if (b->leaving && branch->up) { /* of one that this rank never entered */
            lacks(b, b->rank);
            return;
        }
        const bool missing = x->entered && !x->sent && !branch->up;
        if (!b->leaving && missing && branch->done) {
            lacks(b, branch->rank);
            return;
        }
    }
    if (x->entered && !x->arrived && b->up_left) lacks(b, b->parent);
}

void tt_exchange_up(struct tt_bootstrap *b, struct tt_branch *branch, const unsigned char *bytes,
                    size_t len)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    uint64_t seq = tt_wire_get64(&wire);
    tt_wire_get32(&wire);
    if (wire.bad || branch->up) {
        tt_tree_fail(b, b->rank, ncclInternalError,
                     "a contribution to exchange %llu is out of turn", (unsigned long long)seq);
        return;
    }
    unsigned char *copy = malloc(wire.left ? wire.left : 1);
    if (!copy) {
        starve(b);
        return;
    }
    if (wire.left) memcpy(copy, wire.from, wire.left);
    branch->up = copy;
    branch->up_bytes = wire.left;
    branch->up_seq = seq;
    watch_kept(b);
    send_up(b);
    if (b->leaving) tt_exchange_miss(b);
}

/* ---- down ---- */

void tt_exchange_down(struct tt_bootstrap *b, const unsigned char *bytes, size_t len)
{
    struct tt_exchange *x = &b->exchange;
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    uint64_t seq = tt_wire_get64(&wire);
    bool expected = !wire.bad && x->entered && x->sent && !x->arrived && seq == x->seq &&
                    wire.left == (size_t)b->nranks * x->bytes;
    if (!expected) {
        tt_tree_fail(b, b->rank, ncclInternalError, "the table of exchange %llu is out of turn",
                     (unsigned long long)seq);
        return;
    }
    unsigned char *table = malloc(wire.left ? wire.left : 1);
    if (!table) {
        starve(b);
        return;
    }
    if (wire.left) memcpy(table, wire.from, wire.left);
    free(x->table);
    x->table = table;
    x->table_bytes = wire.left;
    x->arrived = true;
    for (int i = 0; i < b->nbranches; i++) {
        tt_conn_send(b->branches[i].conn, TT_FRAME_DOWN, bytes, len);
    }
    pthread_cond_broadcast(&b->changed);
}

/* ---- callers ---- */

static ncclResult_t usable(const struct tt_bootstrap *b)
{
    if (b->epoch != tt_service()->epoch) {
        return tt_fail(ncclInvalidUsage, "communicator was created before fork");
    }
    return (ncclResult_t)atomic_load_explicit(&b->error, memory_order_acquire);
}

/* The children whose share is here, or is not: "1, 4"; returns its length. */
static size_t list_branches(const struct tt_bootstrap *b, bool here, char list[LIST_BYTES])
{
    size_t used = 0;
    list[0] = 0;
    for (int i = 0; i < b->nbranches && used < LIST_BYTES - 16; i++) {
        if ((b->branches[i].up != NULL) != here) continue;
        used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s%d", used ? ", " : "",
                                 b->branches[i].rank);
    }
    return used;
}

/* A rank that has passed its share on knows nothing: it is those above that wait. */
static void report_wait(const struct tt_bootstrap *b, uint64_t since_nsec)
{
    char list[LIST_BYTES];
    if (b->exchange.sent || !list_branches(b, false, list)) return;
    tt_warn("rank %d of %d: the ranks wait for each other in init, split or registration since "
            "%.0f s; missing is rank %s%s: does it make the same call?",
            b->rank, b->nranks, (double)(tt_now_nsec() - since_nsec) * 1e-9, list,
            b->subtree - 1 > b->nbranches ? " or one below it" : "");
}

bool tt_exchange_tick(struct tt_bootstrap *b, uint64_t now_nsec)
{
    char list[LIST_BYTES];
    if (!b->kept_nsec || now_nsec < b->kept_nsec) return b->kept_nsec && b->kept_nsec < UINT64_MAX;
    b->kept_nsec = UINT64_MAX;
    if (!list_branches(b, true, list)) return false;
    tt_warn(
        "rank %d of %d: others wait for this rank in init, split or registration (rank %s since "
        "%lld s), and it has not made that call",
        b->rank, b->nranks, list, (long long)tt_param_int("TUTTI_WATCHDOG"));
    return false;
}

static ncclResult_t overdue(struct tt_bootstrap *b)
{
    char list[LIST_BYTES];
    size_t used = list_branches(b, false, list);
    if (!used) snprintf(list, sizeof(list), "%d", b->parent);
    tt_tree_fail(b, b->rank, ncclTimeout,
                 "exchange %llu was not complete within %lld s; rank %d waits for %s%s",
                 (unsigned long long)b->exchange.seq, (long long)b->timeout_sec, b->rank,
                 used ? "the subtrees of ranks " : "its parent, rank ", list);
    return ncclTimeout;
}

static ncclResult_t gather_locked(struct tt_bootstrap *b, const void *mine, size_t bytes, void *all)
{
    struct tt_exchange *x = &b->exchange;
    ncclResult_t rc = usable(b);
    if (rc) return rc;
    if (x->entered) return tt_fail(ncclInvalidUsage, "two exchanges of one communicator at once");
    uint64_t deadline = b->deadline_nsec;
    if (!deadline && b->timeout_sec > 0)
        deadline = tt_now_nsec() + (uint64_t)b->timeout_sec * 1000000000ull;
    bool late = false;
    uint64_t start_nsec = tt_now_nsec(), report_nsec = tt_tree_report_nsec();
    x->seq++;
    x->mine = mine;
    x->bytes = bytes;
    x->sent = x->arrived = false;
    x->entered = true;
    atomic_store_explicit(&x->since_nsec, start_nsec, memory_order_relaxed);
    b->kept_nsec = 0;
    send_up(b);
    tt_exchange_miss(b);
    while (!x->arrived && !rc) {
        rc = tt_tree_wait(b, deadline);
        if (!rc && tt_now_nsec() >= report_nsec) {
            report_wait(b, start_nsec);
            report_nsec = UINT64_MAX;
        }
        if (rc != ncclTimeout || late || atomic_load(&b->error)) continue;
        late = true;
        deadline += VERDICT_NSEC;
        rc = ncclSuccess;
        tt_late_begin(b);
    }
    if (x->arrived) {
        rc = ncclSuccess; /* an error that came later belongs to the next call */
        if (all && x->table_bytes) memcpy(all, x->table, x->table_bytes);
    } else if (rc == ncclTimeout && !atomic_load(&b->error)) {
        rc = overdue(b);
    }
    free(x->kept);
    x->kept = NULL;
    free(x->table);
    x->table = NULL;
    x->mine = NULL;
    x->entered = false;
    atomic_store_explicit(&x->since_nsec, 0, memory_order_relaxed);
    if (!rc) watch_kept(b);
    return rc;
}

uint64_t tt_bootstrap_exchange_nsec(const struct tt_bootstrap *b)
{
    return atomic_load_explicit(&b->exchange.since_nsec, memory_order_relaxed);
}

ncclResult_t tt_bootstrap_allgather(struct tt_bootstrap *b, const void *mine, size_t bytes,
                                    void *all_out)
{
    if (bytes > TT_GATHER_BYTES) {
        return tt_fail(ncclInternalError, "bootstrap all-gather of %zu bytes, at most %d", bytes,
                       TT_GATHER_BYTES);
    }
    tt_service_lock();
    tt_log_line(TT_LOG_TRACE, TT_LOG_BOOTSTRAP, __FILE__, __LINE__, "bootstrapAllGather",
                "rank %d nranks %d size %zu", b->rank, b->nranks, bytes);
    ncclResult_t rc = gather_locked(b, mine, bytes, all_out);
    tt_service_unlock();
    return rc;
}

ncclResult_t tt_bootstrap_barrier(struct tt_bootstrap *b)
{
    return tt_bootstrap_allgather(b, NULL, 0, NULL);
}

/* ---- messages ---- */

static void route(struct tt_bootstrap *b, int target, const unsigned char *frame, size_t len)
{
    int child = tt_blocks_child_toward(&b->blocks, b->rank, target);
    struct tt_conn *conn = child < 0 ? b->up : b->branches[child].conn;
    tt_conn_send(conn, TT_FRAME_MESSAGE, frame, len); /* no connection left: that rank has gone */
}

static void deliver(struct tt_bootstrap *b, int source, uint32_t tag, const void *text, size_t len)
{
    if (!tt_mailbox_put(&b->mailbox, source, tag, text, len)) {
        tt_tree_fail(b, b->rank, ncclSystemError, "rank %d has no memory for messages", b->rank);
        return;
    }
    /* pairs with the acquire load in tt_bootstrap_mail() */
    atomic_fetch_add_explicit(&b->mail, 1, memory_order_release);
    if (tag >= TT_TAG_OWNER && tag < TT_TAG_OWN) tt_exit_event(b);
    pthread_cond_broadcast(&b->changed);
}

uint64_t tt_bootstrap_mail(const struct tt_bootstrap *b)
{
    return atomic_load_explicit(&b->mail, memory_order_acquire);
}

void tt_exchange_message(struct tt_bootstrap *b, const unsigned char *bytes, size_t len)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    int source = (int)tt_wire_get32(&wire);
    int target = (int)tt_wire_get32(&wire);
    uint32_t tag = tt_wire_get32(&wire);
    bool sane = source >= 0 && source < b->nranks && target >= 0 && target < b->nranks;
    if (wire.bad || !sane || wire.left > TT_MESSAGE_BYTES) return;
    if (target == b->rank && b->leaving) {
        if (tag >= TT_TAG_OWNER && tag < TT_TAG_OWN) tt_failure_ended(b); /* no thread reads it */
    } else if (target == b->rank) {
        deliver(b, source, tag, wire.from, wire.left);
    } else {
        route(b, target, bytes, len);
    }
}

void tt_exchange_post(struct tt_bootstrap *b, int peer, uint32_t tag, const void *message,
                      size_t bytes)
{
    unsigned char frame[MESSAGE_HEADER_BYTES + TT_MESSAGE_BYTES];
    struct tt_wire wire;
    if (peer == b->rank) {
        deliver(b, peer, tag, message, bytes);
        return;
    }
    tt_wire_init(&wire, frame, sizeof(frame));
    tt_wire_put32(&wire, (uint32_t)b->rank);
    tt_wire_put32(&wire, (uint32_t)peer);
    tt_wire_put32(&wire, tag);
    tt_wire_put(&wire, message, bytes);
    route(b, peer, frame, MESSAGE_HEADER_BYTES + bytes);
}

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *b, int peer, uint32_t tag, const void *message,
                               size_t bytes)
{
    if (peer < 0 || peer >= b->nranks || bytes > TT_MESSAGE_BYTES) {
        return tt_fail(ncclInternalError, "bootstrap message to rank %d of %zu bytes", peer, bytes);
    }
    tt_service_lock();
    ncclResult_t rc = usable(b);
    if (!rc) tt_exchange_post(b, peer, tag, message, bytes);
    tt_service_unlock();
    return rc;
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *b, int peer, uint32_t tag, void *message,
                               size_t max_bytes, size_t *bytes_out)
{
    tt_service_lock();
    struct tt_message *queued = tt_mailbox_take(&b->mailbox, peer, tag);
    ncclResult_t rc = queued ? ncclSuccess : usable(b);
    tt_service_unlock();
    if (!queued) return rc ? rc : ncclInProgress;
    if (queued->bytes > max_bytes) {
        rc = tt_fail(ncclInternalError, "bootstrap message of %zu bytes from rank %d, room for %zu",
                     queued->bytes, peer, max_bytes);
    } else {
        if (queued->bytes) memcpy(message, queued->text, queued->bytes);
        *bytes_out = queued->bytes;
    }
    free(queued);
    return rc;
}

int tt_bootstrap_next(const struct tt_bootstrap *b, int from, int to)
{
    int children[TT_BRANCHES];
    const int child = tt_blocks_child_toward(&b->blocks, from, to);
    if (child < 0) return tt_blocks_parent(&b->blocks, from);
    tt_blocks_children(&b->blocks, from, children);
    return children[child];
}
