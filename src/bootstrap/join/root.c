/* A root's life: OPEN (collects JOINs) -> PLACED (all came; answers went out; waits for JOINED) ->
 * gone; or FAILED (every rank, also one that comes later, gets the reason) -> gone.
 * The first rank's word on n and ids is what the others are compared with. With several ids each
 * root serves its block of ranks and the heads of the blocks below. Root 0 chooses the nonce; a
 * head takes it from the root above to its own, which answers only then. Roots do not talk to each
 * other: the heads, who are clients of two, pass on what goes wrong. */
#include "bootstrap/join/root.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/tree/blocks.h"
#include "bootstrap/tree/wait.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_NSEC 5000000000ull
#define FAILED_LIFE_NSEC 10000000000ull /* a failed root answers late ranks that long */
#define HEAD_NSEC 2000000000ull         /* after the deadline: a live head has said what is wrong */
#define OVERDUE_NSEC 8000000000ull  /* of all that could name who is missing, the last to speak */
#define ROOT_RANK_NSEC 50000000ull  /* ranks that wait longer hear whose process the root is in */
#define DECLINED_NSEC 2000000000ull /* for a refused caller to call again */

enum { MOST_REFUSED = 8 }; /* callers at a time */
#define LISTED_RANKS 16
#define EXPECTED_AT_FIRST 32 /* until the first rank says how many they are */

enum root_state { ROOT_OPEN, ROOT_PLACED, ROOT_FAILED };

struct root_client { /* one connection; lives until that closes */
    struct root_client *next;
    struct tt_root *root;
    struct tt_conn *conn; /* NULL once gone */
    struct tt_join join;
    bool spoke, done, root_rank_sent;
};

struct tt_root {
    struct tt_root *next;
    struct tt_acceptor acceptor;
    struct tt_listener *listener; /* own one; NULL: the process's */
    enum root_state state;
    struct root_client *clients;
    struct root_client **slots; /* by tt_blocks_slot(); NULL before the first JOIN */
    struct tt_blocks blocks;
    int nslots, njoined;
    uint32_t nclients, expected; /* connections so far; that may come, as the service counts */
    struct tt_join first;
    int32_t root_rank; /* rank in this process; -1: none so far */
    unsigned char nonce[TT_SECRET_BYTES];
    bool has_nonce;
    uint64_t first_nsec, deadline_nsec, progress_nsec, report_nsec;
    struct refused { /* somebody's call was refused; for_good is not here */
        struct tt_decline decline;
        uint64_t counts_nsec; /* from then on, unless its thread calls again; 0: nobody's */
    } refused[MOST_REFUSED];
    ncclResult_t code;
    char sentence[TT_SENTENCE_BYTES];
};

/* How many connections are legitimate: a listener's limit follows from it. */
static void expect(struct tt_root *root, uint32_t connections)
{
    tt_service()->expected += connections - root->expected;
    root->expected = connections;
}

static void root_free(struct tt_root *root)
{
    struct tt_root **link = &tt_service()->roots;
    while (*link && *link != root)
        link = &(*link)->next;
    if (*link) *link = root->next;
    tt_acceptor_close(&root->acceptor);
    while (root->clients) {
        struct root_client *client = root->clients;
        root->clients = client->next;
        tt_conn_close(client->conn);
        free(client);
    }
    if (root->listener) tt_listener_close(root->listener);
    expect(root, 0);
    free(root->slots);
    sodium_memzero(root, sizeof(*root));
    free(root);
    tt_service_release();
    pthread_cond_broadcast(&tt_service()->ended); /* for a process that exits */
}

static void client_refuse(struct root_client *client)
{
    unsigned char bytes[TT_REFUSE_BYTES];
    tt_refuse_pack(client->root->code, client->root->sentence, bytes);
    tt_conn_send(client->conn, TT_FRAME_REFUSE, bytes, sizeof(bytes));
    tt_conn_finish(client->conn);
    client->conn = NULL;
}

__attribute__((format(printf, 3, 4))) static void root_fail(struct tt_root *root, ncclResult_t rc,
                                                            const char *fmt, ...)
{
    if (root->state == ROOT_FAILED) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(root->sentence, sizeof(root->sentence), fmt, args);
    va_end(args);
    root->state = ROOT_FAILED;
    root->code = rc;
    root->deadline_nsec = tt_now_nsec() + FAILED_LIFE_NSEC;
    for (struct root_client *client = root->clients; client; client = client->next) {
        if (client->conn && client->spoke && !client->done) client_refuse(client);
    }
}

/* ---- checks ---- */

static bool join_agrees(struct tt_root *root, const struct tt_join *join)
{
    const struct tt_join *first = &root->first;
    if (join->version != first->version) {
        root_fail(root, ncclInvalidUsage,
                  "rank %u on host %s (pid %d) runs version %u, rank %u on host %s runs version %u",
                  join->rank, join->host, join->pid, join->version, first->rank, first->host,
                  first->version);
    } else if (join->nranks != first->nranks) {
        root_fail(root, ncclInvalidUsage,
                  "rank %u on host %s (pid %d) says %u ranks, rank %u on host %s (pid %d) says %u",
                  join->rank, join->host, join->pid, join->nranks, first->rank, first->host,
                  first->pid, first->nranks);
    } else if (join->sealed != first->sealed) {
        root_fail(
            root, ncclInvalidUsage,
            "rank %u on host %s (pid %d) has TUTTI_NET_ENCRYPT %d, rank %u on host %s (pid %d) "
            "has %d",
            join->rank, join->host, join->pid, join->sealed, first->rank, first->host, first->pid,
            first->sealed);
    } else if (join->nids != first->nids || join->index != first->index ||
               memcmp(join->digest, first->digest, sizeof(join->digest)) != 0) {
        root_fail(
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
        root_fail(root, ncclSystemError, "the root has no memory for %d ranks", root->nslots);
        return;
    }
    expect(root, (uint32_t)root->nslots);
    root->first_nsec = now;
    root->progress_nsec = now + PROGRESS_NSEC;
    root->report_nsec = tt_tree_report_nsec();
    if (join->timeout_sec) root->deadline_nsec = now + join->timeout_sec * 1000000000ull;
    tt_service_wake();
}

/* "1, 3, 5 and 12 more" */
static void list_missing(const struct tt_root *root, char *text, size_t text_bytes)
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

/* ---- placing ---- */

/* All are there, and the nonce is known: each gets its parent's address. A head gets that from the
 * root above; here it only hears that its block is complete. */
static void root_place(struct tt_root *root)
{
    struct tt_root_reply reply = {.root_rank = root->root_rank};
    unsigned char bytes[TT_ROOT_REPLY_BYTES];
    int block = (int)root->first.index;
    if (block == 0) randombytes_buf(root->nonce, sizeof(root->nonce));
    memcpy(reply.nonce, root->nonce, sizeof(reply.nonce));
    tt_log_line(TT_LOG_TRACE, TT_LOG_BOOTSTRAP, __FILE__, __LINE__, "bootstrapRoot",
                "COLLECTED ALL %d HANDLES", root->nslots);
    root->state = ROOT_PLACED;
    tt_acceptor_close(
        &root->acceptor); /* the same id may already be used for the next communicator */
    for (int i = 0; i < root->nslots; i++) {
        int parent_rank =
            tt_blocks_parent(&root->blocks, tt_blocks_rank_at(&root->blocks, block, i));
        int slot = parent_rank < 0 ? 0 : tt_blocks_slot(&root->blocks, block, parent_rank);
        const struct tt_join *parent = &root->slots[slot < 0 ? 0 : slot]->join;
        reply.parent.addr = parent->addr;
        reply.parent.pid = parent->pid;
        memcpy(reply.parent.host, parent->host, sizeof(reply.parent.host));
        tt_root_reply_pack(&reply, bytes);
        tt_conn_send(root->slots[i]->conn, TT_FRAME_PLACE, bytes, sizeof(bytes));
    }
    sodium_memzero(&reply, sizeof(reply));
    sodium_memzero(bytes, sizeof(bytes));
}

static void root_step(struct tt_root *root)
{
    bool ready = root->njoined == root->nslots && (root->first.index == 0 || root->has_nonce);
    if (root->state == ROOT_OPEN && ready) root_place(root);
}

static void find_root_rank(struct tt_root *root, const struct tt_join *join)
{
    char host[TT_HOST_BYTES] = {0};
    if (root->root_rank >= 0 || join->pid != (int32_t)getpid()) return;
    gethostname(host, sizeof(host) - 1);
    if (strcmp(host, join->host) == 0) root->root_rank = (int32_t)join->rank;
}

/* Note that one came, also when it is refused: a failed root stays for those that are yet to come.
 * Who came before with the same rank; NULL: nobody. */
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

/* ---- who does not come ---- */

/* That thread calls again. */
static void forget_refused(struct tt_root *root, int32_t pid, int32_t thread, const char *host)
{
    for (int i = 0; i < MOST_REFUSED; i++) {
        const struct tt_decline *decline = &root->refused[i].decline;
        if (pid == decline->pid && thread == decline->thread && strcmp(host, decline->host) == 0)
            root->refused[i].counts_nsec = 0;
    }
}

/* A refused caller may call again: then the others lose nothing. Else they need not wait long. */
static void root_declined(struct root_client *client, const unsigned char *bytes, size_t len)
{
    struct tt_root *root = client->root;
    struct tt_decline decline;
    if (client->spoke || !tt_decline_unpack(&decline, bytes, len)) return;
    client->spoke = client->done = true;
    if (root->state != ROOT_OPEN) return; /* too late to matter */
    if (decline.for_good) {
        root_fail(root, decline.rc, "%s", decline.sentence);
    } else {
        struct refused *at = root->refused;
        forget_refused(root, decline.pid, decline.thread, decline.host);
        while (at->counts_nsec && at < root->refused + MOST_REFUSED - 1)
            at++; /* of more than these the last one is overwritten: the others count */
        *at = (struct refused){decline, tt_now_nsec() + DECLINED_NSEC};
    }
    tt_service_wake();
}

static void fail_refused(struct tt_root *root, uint64_t now_nsec)
{
    for (int i = 0; i < MOST_REFUSED && root->state == ROOT_OPEN; i++) {
        const struct refused *refused = &root->refused[i];
        if (refused->counts_nsec && now_nsec >= refused->counts_nsec)
            root_fail(root, refused->decline.rc, "%s", refused->decline.sentence);
    }
}

/* ---- frames ---- */

static void root_join(struct root_client *client, const unsigned char *bytes, size_t len)
{
    struct tt_root *root = client->root;
    struct tt_join *join = &client->join;
    if (client->spoke || !tt_join_unpack(join, bytes, len) || !join_sane(join, client->conn)) {
        root_fail(root, ncclInternalError, "rank %d sent a request that makes no sense",
                  client->conn->peer);
        client_refuse(client);
        return;
    }
    client->spoke = true;
    if (root->state == ROOT_OPEN && !root->slots) root_first(root, join);
    const struct root_client *other = take_slot(root, client);
    if (root->state == ROOT_FAILED || !join_agrees(root, join)) {
        if (client->conn) client_refuse(client);
        return;
    }
    if (other) {
        root_fail(root, ncclInvalidUsage,
                  "rank %u came twice: host %s pid %d, and host %s pid %d; it is already taken",
                  join->rank, other->join.host, other->join.pid, join->host, join->pid);
        return;
    }
    forget_refused(root, join->pid, join->thread, join->host);
    find_root_rank(root, join);
    root_step(root);
}

static bool from_own_head(const struct root_client *client)
{
    return client->spoke && client->root->slots && client->root->slots[0] == client;
}

static void root_overdue(struct tt_root *root)
{
    char missing[256];
    list_missing(root, missing, sizeof(missing));
    if (root->njoined == root->nslots && root->state == ROOT_OPEN) {
        const struct tt_join *head = &root->slots[0]->join;
        root_fail(
            root, ncclTimeout,
            "rank %u on host %s (pid %d), on which its block waits, does not answer (init was "
            "not complete within %u s)",
            head->rank, head->host, head->pid, root->first.timeout_sec);
        return;
    }
    if (root->njoined == root->nslots) {
        root_fail(root, ncclTimeout, "the communicator was not complete within %u s",
                  root->first.timeout_sec);
        return;
    }
    root_fail(root, ncclTimeout, "%d of %u ranks did not come within %u s: missing %s",
              root->nslots - root->njoined, root->first.nranks, root->first.timeout_sec, missing);
}

static void client_gives_up(struct root_client *client, bool heard, const unsigned char *bytes,
                            size_t len)
{
    char sentence[TT_SENTENCE_BYTES];
    ncclResult_t rc = tt_refuse_unpack(bytes, len, sentence);
    bool shared =
        rc == ncclInvalidArgument || rc == ncclTimeout || (heard && rc == ncclInvalidUsage);
    client->done = true;
    if (!shared) rc = ncclRemoteError; /* its code is its own */
    if (heard) {
        root_fail(client->root, rc, "%s", sentence);
        return;
    }
    root_fail(client->root, rc, "rank %d on host %s (pid %d) gave up: %.400s", client->conn->peer,
              client->join.host, client->join.pid, sentence);
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
        if (from_own_head(client) && root->state == ROOT_OPEN) root_overdue(root);
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
        root_fail(root, ncclSystemError,
                  "the process that made the unique id (pid %d) is out of memory", (int)getpid());
    } else if (client->spoke && !client->done) {
        root_fail(root, ncclRemoteError, "rank %d on host %s (pid %d) went away during init: %s",
                  conn->peer, client->join.host, client->join.pid, why);
    } else if (!client->spoke) { /* it had proved that it knows the secret */
        root_fail(root, ncclRemoteError, "rank %d went away during init: %s", conn->peer, why);
    }
    tt_service_wake(); /* the tick looks whether this was the last */
}

static void client_never(struct tt_conn *conn)
{
    (void)conn;
}

static const struct tt_conn_ops client_ops = {
    .opened = client_never,
    .frame = client_frame,
    .closed = client_closed,
};

static void root_opened(struct tt_acceptor *acceptor, struct tt_conn *conn)
{
    struct tt_root *root = acceptor->owner;
    struct root_client *client = calloc(1, sizeof(*client));
    if (!client) {
        tt_conn_close(conn);
        return;
    }
    client->root = root;
    client->conn = conn;
    client->next = root->clients;
    root->clients = client;
    struct tt_service *service = tt_service();
    if (++root->nclients > service->busiest_root) service->busiest_root = root->nclients;
    conn->owner = client;
    conn->ops = &client_ops;
    conn->limit_bytes = TT_DECLINE_BYTES;
}

static bool root_admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    (void)acceptor;
    return hello->own_rank >= 0 && hello->own_rank < TT_MAX_RANKS;
}

/* ---- time ---- */

static bool root_finished(const struct tt_root *root, uint64_t now)
{
    bool quiet = true;
    for (struct root_client *client = root->clients; client; client = client->next) {
        quiet &= client->conn == NULL;
    }
    if (root->state == ROOT_PLACED) return quiet;
    if (root->state != ROOT_FAILED) return false;
    bool all = root->slots && root->njoined >= root->nslots;
    return quiet && (all || now >= root->deadline_nsec);
}

/* Should this process die now, they can say which rank that was. */
static void send_root_rank(struct tt_root *root)
{
    unsigned char bytes[4];
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, sizeof(bytes));
    tt_wire_put32(&wire, (uint32_t)root->root_rank);
    for (struct root_client *client = root->clients; client; client = client->next) {
        if (!client->conn || !client->spoke || client->root_rank_sent) continue;
        client->root_rank_sent = true;
        tt_conn_send(client->conn, TT_FRAME_ROOT_RANK, bytes, sizeof(bytes));
    }
}

/* Once all have come, others know better who keeps them waiting. */
static uint64_t overdue_grace(const struct tt_root *root)
{
    if (root->njoined < root->nslots) return 0;
    return root->state == ROOT_OPEN ? HEAD_NSEC : OVERDUE_NSEC;
}

/* Who has not come: now and then in the log, and once as a warning. */
static void tell_progress(struct tt_root *root, uint64_t now)
{
    char missing[256];
    bool report = now >= root->report_nsec;
    if (!report && now < root->progress_nsec) return;
    list_missing(root, missing, sizeof(missing));
    if (report) {
        tt_warn("init waits since %.0f s: %d of %d ranks came with the unique id of this process; "
                "missing %s: do they run, do they call init, and were they given this id?",
                (double)(now - root->first_nsec) * 1e-9, root->njoined, root->nslots, missing);
        root->report_nsec = UINT64_MAX;
    } else {
        tt_info(TT_LOG_INIT | TT_LOG_BOOTSTRAP, "bootstrap: %d of %d ranks came so far; missing %s",
                root->njoined, root->nslots, missing);
    }
    root->progress_nsec = now + PROGRESS_NSEC;
}

static bool root_tick(struct tt_root *root, uint64_t now)
{
    if (root_finished(root, now)) {
        root_free(root);
        return false;
    }
    if (!root->slots) return root->state == ROOT_FAILED; /* an unused id has no deadline */
    if (root->state == ROOT_OPEN && root->njoined < root->nslots) tell_progress(root, now);
    if (root->state == ROOT_OPEN && root->root_rank >= 0 &&
        now >= root->first_nsec + ROOT_RANK_NSEC)
        send_root_rank(root);
    fail_refused(root, now);
    if (root->state == ROOT_FAILED || !root->deadline_nsec) return true;
    if (now >= root->deadline_nsec + overdue_grace(root)) root_overdue(root);
    return true;
}

static bool roots_tick(uint64_t now_nsec)
{
    bool pending = false;
    struct tt_root *next;
    for (struct tt_root *root = tt_service()->roots; root; root = next) {
        next = root->next;
        pending |= root_tick(root, now_nsec);
    }
    return pending;
}

static bool roots_busy(void)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (root->slots || root->state == ROOT_FAILED) return true;
    }
    return false;
}

void tt_root_fail_key(const struct tt_key *key, ncclResult_t rc, const char *sentence)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (memcmp(root->acceptor.key.name, key->name, sizeof(key->name)) == 0)
            root_fail(root, rc, "%s", sentence);
    }
}

static void roots_fail(void)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        root_fail(root, ncclRemoteError, "the process that made the unique id (pid %d) exited",
                  (int)getpid());
    }
}

static void roots_free(void)
{
    while (tt_service()->roots)
        root_free(tt_service()->roots);
}

static const struct tt_service_client roots_client = {
    .tick = roots_tick,
    .fork_child = roots_free,
    .busy = roots_busy,
    .last_word = roots_fail,
};

/* ---- opening ---- */

static ncclResult_t root_listen(struct tt_root *root, const union tt_addr *listen_on)
{
    union tt_addr addr = *listen_on;
    int fd;
    ncclResult_t rc = tt_socket_listen(&addr, &fd);
    if (rc) return rc;
    rc = tt_listener_open(fd, false, &root->listener);
    if (rc) close(fd);
    return rc;
}

ncclResult_t tt_root_open(const unsigned char secret[TT_SECRET_BYTES],
                          const union tt_addr *listen_on, union tt_addr *addr_out)
{
    struct tt_root *root = calloc(1, sizeof(*root));
    if (!root) return tt_fail(ncclSystemError, "bootstrap root: out of memory");
    tt_service_lock();
    ncclResult_t rc = tt_service_acquire(&roots_client);
    if (rc) {
        free(root);
        tt_service_unlock();
        return rc;
    }
    root->acceptor.owner = root;
    root->acceptor.kind = TT_KEY_ROOT;
    root->acceptor.rank = -1;
    root->acceptor.admits = root_admits;
    root->acceptor.opened = root_opened;
    root->root_rank = -1;
    expect(root, EXPECTED_AT_FIRST);
    root->next = tt_service()->roots;
    tt_service()->roots = root;
    rc = listen_on ? root_listen(root, listen_on) : tt_listener_main(addr_out);
    if (rc) {
        root_free(root);
    } else {
        if (listen_on) *addr_out = *listen_on;
        tt_key_derive(secret, TT_KEY_ROOT, &root->acceptor.key);
        tt_acceptor_open(&root->acceptor);
        tt_log_line(TT_LOG_TRACE, TT_LOG_BOOTSTRAP, __FILE__, __LINE__, "bootstrapRoot", "BEGIN");
    }
    tt_service_unlock();
    return rc;
}
