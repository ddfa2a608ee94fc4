/* The root's side of a client's connection: its JOIN is compared with the first one, all get their
 * parent's address when the last has come, and the first failure is reported to all ranks. */
#include "base/log.h"
#include "base/system/clock.h"
#include "bootstrap/join/mistakes.h"
#include "bootstrap/join/root_state.h"
#include "bootstrap/tree/wait.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILED_LIFE_NSEC 10000000000ull /* a failed root answers late ranks that long */
#define DECLINED_NSEC 2000000000ull     /* for a refused caller to call again */
#define STRAY_NSEC                                                                                 \
    2000000000ull /* a grow that such a rank was to come to is looked for that long */
#define LISTED_RANKS 16

void tt_root_expect(struct tt_root *root, uint32_t connections)
{
    tt_service()->expected += connections - root->expected;
    root->expected = connections;
}

static void client_refuse(struct root_client *client)
{
    unsigned char bytes[TT_REFUSE_BYTES];
    tt_refuse_pack(client->root->code, client->root->sentence, bytes);
    tt_conn_send(client->conn, TT_FRAME_REFUSE, bytes, sizeof(bytes));
    tt_conn_finish(client->conn);
    client->conn = NULL;
}

void tt_root_fail(struct tt_root *root, ncclResult_t rc, const char *fmt, ...)
{
    if (root->state == ROOT_FAILED) return;
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(root->sentence, sizeof(root->sentence), fmt, args);
    va_end(args);
    root->state = ROOT_FAILED;
    root->code = rc;
    root->deadline_nsec = tt_now_nsec() + FAILED_LIFE_NSEC;
    for (struct root_client *client = root->clients; client; client = client->next) {
        if (client->conn && client->identified && !client->done) client_refuse(client);
    }
}

/* ---- checks ---- */

static bool join_agrees(struct tt_root *root, const struct tt_join *join)
{
    const struct tt_join *first = &root->first;
    if (join->version != first->version) {
        tt_root_fail(
            root, ncclInvalidUsage,
            "rank %u on host %s (pid %d) runs version %u, rank %u on host %s runs version %u",
            join->rank, join->host, join->pid, join->version, first->rank, first->host,
            first->version);
    } else if (join->nranks != first->nranks) {
        tt_root_fail(
            root, ncclInvalidUsage,
            "rank %u on host %s (pid %d) says %u ranks, rank %u on host %s (pid %d) says %u",
            join->rank, join->host, join->pid, join->nranks, first->rank, first->host, first->pid,
            first->nranks);
    } else if (join->sealed != first->sealed) {
        tt_root_fail(
            root, ncclInvalidUsage,
            "rank %u on host %s (pid %d) has TUTTI_NET_ENCRYPT %d, rank %u on host %s (pid %d) "
            "has %d",
            join->rank, join->host, join->pid, join->sealed, first->rank, first->host, first->pid,
            first->sealed);
    } else if (join->nids != first->nids || join->index != first->index ||
               memcmp(join->digest, first->digest, sizeof(join->digest)) != 0) {
        tt_root_fail(
            root, ncclInvalidArgument,
            "rank %u on host %s (pid %d) and rank %u on host %s (pid %d) were given different "
            "unique ids",
            join->rank, join->host, join->pid, first->rank, first->host, first->pid);
    }
    return root->state != ROOT_FAILED;
}

static bool join_sane(const struct tt_join *join, const struct tt_conn *conn)
{
    if (join->nranks < 1 || join->nranks > TT_MAX_RANKS || join->rank >= join->nranks) return false;
    if (join->nids < 1 || join->nids > join->nranks || join->index >= join->nids) return false;
    if (join->sealed != conn->hello.sealed) return false;
    const struct tt_blocks blocks = {(int)join->nranks, (int)join->nids};
    if (tt_blocks_slot(&blocks, (int)join->index, (int)join->rank) < 0) return false;
    return conn->peer == (int32_t)join->rank && conn->hello.wanted_rank == -1 - (int)join->index;
}

static void root_first(struct tt_root *root, const struct tt_join *join)
{
    uint64_t now = tt_now_nsec();
    root->first = *join;
    root->blocks = (struct tt_blocks){.nranks = (int)join->nranks, .nblocks = (int)join->nids};
    root->nslots = tt_blocks_clients(&root->blocks, (int)join->index);
    root->slots = calloc((size_t)root->nslots, sizeof(struct root_client *));
    if (!root->slots) {
        tt_root_fail(root, ncclSystemError, "the root has no memory for %d ranks", root->nslots);
        return;
    }
    tt_root_expect(root, (uint32_t)root->nslots);
    root->first_nsec = now;
    root->progress_nsec = now + TT_ROOT_PROGRESS_NSEC;
    root->report_nsec = tt_tree_report_nsec();
    if (join->timeout_sec) root->deadline_nsec = now + join->timeout_sec * 1000000000ull;
    tt_service_wake();
}

void tt_root_list_missing(const struct tt_root *root, char *text, size_t text_bytes)
{
    size_t used = 0;
    int listed = 0, missing = root->nslots - root->njoined;
    text[0] = 0;
    for (int i = 0; i < root->nslots && listed < LISTED_RANKS; i++) {
        if (root->slots[i]) continue;
        int rank = tt_blocks_rank_at(&root->blocks, (int)root->first.index, i);
        int n = snprintf(text + used, text_bytes - used, "%s%d", listed ? ", " : "", rank);
        if (n < 0 || (size_t)n >= text_bytes - used) return;
        used += (size_t)n;
        listed++;
    }
    if (missing > listed) {
        snprintf(text + used, text_bytes - used, " and %d more", missing - listed);
    }
}

void tt_root_unproven(const struct tt_root *root, char text[TT_UNPROVEN_BYTES])
{
    const struct tt_acceptor *acceptor = &root->acceptor;
    char addr[128];
    text[0] = 0;
    if (!acceptor->unproven.count) return;
    snprintf(text, TT_UNPROVEN_BYTES,
             "; %u connection(s) with this id proved neither its secret nor the same encryption "
             "key (ncclSetEncryption), the last one from %s as rank %d",
             acceptor->unproven.count, tt_addr_text(&acceptor->unproven.from, addr, sizeof(addr)),
             acceptor->unproven.rank);
}

/* ---- placing ---- */

/* All are there, and the nonce is known: each gets its parent's address. A head gets that from the
 * root above; here it only learns that its block is complete. */
static void root_assign(struct tt_root *root)
{
    struct tt_root_reply reply = {.root_rank = root->root_rank};
    unsigned char bytes[TT_ROOT_REPLY_BYTES];
    int block = (int)root->first.index;
    if (block == 0) randombytes_buf(root->nonce, sizeof(root->nonce));
    memcpy(reply.nonce, root->nonce, sizeof(reply.nonce));
    tt_log_line(TT_LOG_TRACE, TT_LOG_BOOTSTRAP, __FILE__, __LINE__, "bootstrapRoot",
                "COLLECTED ALL %d HANDLES", root->nslots);
    root->state = ROOT_ASSIGNED;
    tt_acceptor_close(
        &root->acceptor); /* the same id may already be used for the next communicator */
    for (int i = 0; i < root->nslots; i++) {
        int parent_rank =
            tt_blocks_parent(&root->blocks, tt_blocks_rank_at(&root->blocks, block, i));
        int slot = parent_rank < 0 ? 0 : tt_blocks_slot(&root->blocks, block, parent_rank);
        const struct tt_join *parent = &root->slots[slot < 0 ? 0 : slot]->join;
        reply.parent.addr = parent->addr;
        reply.parent.spare = parent->spare;
        reply.parent.pid = parent->pid;
        memcpy(reply.parent.host, parent->host, sizeof(reply.parent.host));
        tt_root_reply_pack(&reply, bytes);
        tt_conn_send(root->slots[i]->conn, TT_FRAME_ASSIGNMENT, bytes, sizeof(bytes));
    }
    sodium_memzero(&reply, sizeof(reply));
    sodium_memzero(bytes, sizeof(bytes));
}

/* A rank of this host at a loopback address while others come from elsewhere: they would not reach
 * it. (A rank on another host says so itself.) */
static bool all_reachable(struct tt_root *root)
{
    const struct tt_join *near = NULL, *far = NULL;
    char addr[128];
    for (int i = 0; i < root->nslots; i++) {
        const struct root_client *client = root->slots[i];
        if (!client->conn) continue;
        if (tt_mistake_far(client->conn->fd, &client->conn->from)) {
            far = &client->join;
        } else if (tt_addr_is_loopback(&client->join.addr)) {
            near = &client->join;
        }
    }
    if (!near || !far) return true;
    tt_root_fail(root, ncclInvalidUsage,
                 "rank %u on host %s (pid %d) offers %s, a loopback address, which rank %u on "
                 "host %s does not reach: NCCL_SOCKET_IFNAME names it there, or no other interface "
                 "was up",
                 near->rank, near->host, near->pid, tt_addr_text(&near->addr, addr, sizeof(addr)),
                 far->rank, far->host);
    return false;
}

static void root_step(struct tt_root *root)
{
    bool ready = root->njoined == root->nslots && (root->first.index == 0 || root->has_nonce);
    if (root->state == ROOT_OPEN && ready && all_reachable(root)) root_assign(root);
}

static void find_root_rank(struct tt_root *root, const struct tt_join *join)
{
    char host[TT_HOST_BYTES] = {0};
    if (root->root_rank >= 0 || join->pid != (int32_t)getpid()) return;
    gethostname(host, sizeof(host) - 1);
    if (strcmp(host, join->host) == 0) root->root_rank = (int32_t)join->rank;
}

/* Note that one came, also when it is refused: a failed root stays for those that are yet to come.
 * The client that came before with the same rank; NULL: none. */
static const struct root_client *take_slot(struct tt_root *root, struct root_client *client)
{
    const struct tt_join *join = &client->join;
    bool ours = root->slots && join->index == root->first.index && join->rank < root->first.nranks;
    int slot = ours ? tt_blocks_slot(&root->blocks, (int)join->index, (int)join->rank) : -1;
    if (slot < 0) return NULL;
    if (root->slots[slot]) return root->slots[slot];
    root->slots[slot] = client;
    root->njoined++;
    return NULL;
}

/* ---- ranks that do not come ---- */

/* That thread calls again. */
static void forget_refused(struct tt_root *root, int32_t pid, int32_t thread, const char *host)
{
    for (int i = 0; i < MOST_REFUSED; i++) {
        const struct tt_decline *decline = &root->refused[i].decline;
        if (pid == decline->pid && thread == decline->thread && strcmp(host, decline->host) == 0)
            root->refused[i].counts_nsec = 0;
    }
}

/* It was to come to a grow and was given this root's id: stray.c. */
static void note_stray(const struct root_client *client, const struct tt_decline *decline)
{
    uint64_t now = tt_now_nsec();
    client->root->stray = (struct root_stray){.nranks = client->conn->hello.nranks,
                                              .rank = client->conn->peer,
                                              .counts_nsec = now + TT_STRAY_AGAIN_NSEC,
                                              .until_nsec = now + STRAY_NSEC,
                                              .decline = *decline};
    tt_service_wake();
}

/* That thread calls again. */
static void forget_stray(const struct tt_join *join)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        const struct tt_decline *decline = &root->stray.decline;
        if (join->pid == decline->pid && join->thread == decline->thread &&
            strcmp(join->host, decline->host) == 0)
            root->stray.until_nsec = 0;
    }
}

void tt_root_decline(struct tt_root *root, const struct tt_decline *decline)
{
    struct root_refused *at = root->refused;
    if (root->state != ROOT_OPEN) return; /* no rank waits any more */
    if (decline->for_good) {
        tt_root_fail(root, decline->rc, "%s", decline->sentence);
    } else {
        forget_refused(root, decline->pid, decline->thread, decline->host);
        while (at->counts_nsec && at < root->refused + MOST_REFUSED - 1)
            at++; /* of more than these the last one is overwritten: the others count */
        *at = (struct root_refused){*decline, tt_now_nsec() + DECLINED_NSEC};
    }
    tt_service_wake();
}

static void root_declined(struct root_client *client, const unsigned char *bytes, size_t len)
{
    struct tt_root *root = client->root;
    struct tt_decline decline;
    if (client->identified || !tt_decline_unpack(&decline, bytes, len)) return;
    client->identified = client->done = true;
    if (decline.stray) {
        note_stray(client, &decline); /* no rank waits here */
    } else {
        tt_root_decline(root, &decline);
    }
}

/* ---- frames ---- */

/* Its version comes first in all of them. */
static void fail_unlike(struct tt_root *root, const struct tt_conn *conn,
                        const unsigned char *bytes, size_t len)
{
    struct tt_wire wire;
    char text[128];
    tt_wire_read(&wire, bytes, len);
    const uint32_t version = tt_wire_get32(&wire);
    tt_root_fail(root, ncclInvalidUsage,
                 "rank %d at %s has loaded another build of this library (version %u, a request of "
                 "%zu bytes; here version %u, %d bytes): all ranks must load the same one",
                 conn->peer, tt_addr_text(&conn->from, text, sizeof(text)), version, len,
                 (unsigned)NCCL_VERSION_CODE, TT_JOIN_BYTES);
}

static void root_join(struct root_client *client, const unsigned char *bytes, size_t len)
{
    struct tt_root *root = client->root;
    struct tt_join *join = &client->join;
    if (!client->identified && len != TT_JOIN_BYTES) {
        fail_unlike(root, client->conn, bytes, len);
        client_refuse(client);
        return;
    }
    if (client->identified || !tt_join_unpack(join, bytes, len) || !join_sane(join, client->conn)) {
        tt_root_fail(root, ncclInternalError, "rank %d sent a request that makes no sense",
                     client->conn->peer);
        client_refuse(client);
        return;
    }
    client->identified = true;
    if (root->state == ROOT_OPEN && !root->slots) root_first(root, join);
    const struct root_client *other = take_slot(root, client);
    if (root->state == ROOT_FAILED || !join_agrees(root, join)) {
        if (client->conn) client_refuse(client);
        return;
    }
    if (other) {
        tt_root_fail(root, ncclInvalidUsage,
                     "rank %u came twice: host %s pid %d, and host %s pid %d; it is already taken",
                     join->rank, other->join.host, other->join.pid, join->host, join->pid);
        return;
    }
    forget_refused(root, join->pid, join->thread, join->host);
    forget_stray(join);
    find_root_rank(root, join);
    root_step(root);
}

static bool from_own_head(const struct root_client *client)
{
    return client->identified && client->root->slots && client->root->slots[0] == client;
}

/* All that have come are of one process, whose thread may be in the first of several inits. */
static bool is_one_process(const struct tt_root *root)
{
    const struct tt_join *first = NULL;
    for (int k = 0; k < root->nslots; k++) {
        const struct tt_join *join = root->slots[k] ? &root->slots[k]->join : NULL;
        if (!join) continue;
        if (!first) first = join;
        if (join->pid != first->pid || strcmp(join->host, first->host) != 0) return false;
    }
    return first != NULL;
}

void tt_root_overdue(struct tt_root *root)
{
    char missing[256], unproven[TT_UNPROVEN_BYTES];
    tt_root_list_missing(root, missing, sizeof(missing));
    if (root->njoined == root->nslots && root->state == ROOT_OPEN) {
        const struct tt_join *head = &root->slots[0]->join;
        tt_root_fail(
            root, ncclTimeout,
            "rank %u on host %s (pid %d), on which its block waits, does not answer (init was "
            "not complete within %u s)",
            head->rank, head->host, head->pid, root->first.timeout_sec);
        return;
    }
    if (root->njoined == root->nslots) {
        tt_root_fail(root, ncclTimeout, "the communicator was not complete within %u s",
                     root->first.timeout_sec);
        return;
    }
    tt_root_unproven(root, unproven);
    /* only the rank of the process that called ncclGetUniqueId has come */
    bool own_id = root->njoined == 1 && root->root_rank >= 0 && !root->listener;
    tt_root_fail(root, ncclTimeout, "%d of %u ranks did not come within %u s: missing %s%s%s%s",
                 root->nslots - root->njoined, root->first.nranks, root->first.timeout_sec, missing,
                 own_id ? "; this process made the unique id itself (ncclGetUniqueId): did the "
                          "others get this one, or did each make its own?"
                        : "; has each of them started, and called ncclCommInitRank with this id?",
                 is_one_process(root) ? " A thread that calls ncclCommInitRank for several ranks "
                                        "must do so between ncclGroupStart and ncclGroupEnd"
                                      : "",
                 unproven);
}

static void client_gives_up(struct root_client *client, bool received, const unsigned char *bytes,
                            size_t len)
{
    char sentence[TT_SENTENCE_BYTES];
    ncclResult_t rc = tt_refuse_unpack(bytes, len, sentence);
    bool shared =
        rc == ncclInvalidArgument || rc == ncclTimeout || (received && rc == ncclInvalidUsage);
    client->done = true;
    if (!shared) rc = ncclRemoteError; /* its code is its own */
    if (received) {
        tt_root_fail(client->root, rc, "%s", sentence);
        return;
    }
    tt_root_fail(client->root, rc, "rank %d on host %s (pid %d) gave up: %.400s",
                 client->conn->peer, client->join.host, client->join.pid, sentence);
}

static void client_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes,
                         size_t len)
{
    struct root_client *client = conn->owner;
    struct tt_root *root = client->root;
    switch (type) {
    case TT_FRAME_JOIN: root_join(client, bytes, len); break;
    case TT_FRAME_DECLINE: root_declined(client, bytes, len); break;
    case TT_FRAME_JOINED: client->done = true; break;
    case TT_FRAME_REFUSE:
    case TT_FRAME_RELAYED: client_gives_up(client, type == TT_FRAME_RELAYED, bytes, len); break;
    case TT_FRAME_NONCE:
        if (!from_own_head(client) || root->has_nonce || len != sizeof(root->nonce)) break;
        memcpy(root->nonce, bytes, sizeof(root->nonce));
        root->has_nonce = true;
        root_step(root);
        break;
    case TT_FRAME_OVERDUE:
        if (from_own_head(client) && root->state == ROOT_OPEN) tt_root_overdue(root);
        break;
    default: break;
    }
}

static void client_closed(struct tt_conn *conn, const char *why)
{
    struct root_client *client = conn->owner;
    struct tt_root *root = client->root;
    client->conn = NULL;
    if (why == tt_conn_starved) {
        tt_root_fail(root, ncclSystemError,
                     "the process that made the unique id (pid %d) is out of memory",
                     (int)getpid());
    } else if (client->identified && !client->done) {
        tt_root_fail(root, ncclRemoteError, "rank %d on host %s (pid %d) went away during init: %s",
                     conn->peer, client->join.host, client->join.pid, why);
    } else if (!client->identified) { /* it had proved that it knows the secret */
        tt_root_fail(root, ncclRemoteError, "rank %d went away during init: %s", conn->peer, why);
    }
    tt_service_wake(); /* the tick looks whether this was the last */
}

static void client_never(struct tt_conn *conn)
{
    (void)conn;
}

const struct tt_conn_ops tt_root_client_ops = {
    .opened = client_never,
    .frame = client_frame,
    .closed = client_closed,
};
