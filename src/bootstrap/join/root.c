/* A root's life: OPEN (collects JOINs) -> PLACED (all came; answers went out; waits for JOINED) ->
 * gone; or FAILED (every rank, also one that comes later, gets the reason) -> gone.
 * The first rank's word on n and ids is what the others are compared with. With several ids each
 * root serves its block of ranks and the heads of the blocks below. Root 0 chooses the nonce; a
 * head takes it from the root above to its own, which answers only then. Roots do not talk to each
 * other: the heads, which are clients of two, pass on what goes wrong. */
#include "bootstrap/join/root.h"

#include "base/error.h"
#include "base/log.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/mistakes.h"
#include "bootstrap/join/root_state.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_NSEC 2000000000ull    /* after the deadline: a live head has said what is wrong */
#define OVERDUE_NSEC 8000000000ull /* after all others that could name the missing rank */
#define ROOT_RANK_NSEC 50000000ull /* ranks that wait longer learn whose process the root is in */
#define EXPECTED_AT_FIRST 32       /* until the first rank says how many they are */

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
    tt_root_expect(root, 0);
    free(root->slots);
    sodium_memzero(root, sizeof(*root));
    free(root);
    tt_service_release();
    pthread_cond_broadcast(&tt_service()->ended); /* for a process that exits */
}

/* ---- connections ---- */

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
    conn->ops = &tt_root_client_ops;
    conn->limit_bytes = TT_DECLINE_BYTES;
}

static bool root_admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    (void)acceptor;
    return hello->own_rank >= 0 && hello->own_rank < TT_MAX_RANKS;
}

/* ---- time ---- */

static void fail_refused(struct tt_root *root, uint64_t now_nsec)
{
    for (int i = 0; i < MOST_REFUSED && root->state == ROOT_OPEN; i++) {
        const struct root_refused *refused = &root->refused[i];
        if (refused->counts_nsec && now_nsec >= refused->counts_nsec)
            tt_root_fail(root, refused->decline.rc, "%s", refused->decline.sentence);
    }
}

static bool root_finished(const struct tt_root *root, uint64_t now)
{
    bool quiet = true;
    for (struct root_client *client = root->clients; client; client = client->next) {
        quiet &= client->conn == NULL;
    }
    if (root->state == ROOT_ASSIGNED) return quiet;
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
        if (!client->conn || !client->identified || client->root_rank_sent) continue;
        client->root_rank_sent = true;
        tt_conn_send(client->conn, TT_FRAME_ROOT_RANK, bytes, sizeof(bytes));
    }
}

/* Once all have come, others know better which rank keeps them waiting. */
static uint64_t overdue_grace(const struct tt_root *root)
{
    if (root->njoined < root->nslots) return 0;
    return root->state == ROOT_OPEN ? HEAD_NSEC : OVERDUE_NSEC;
}

/* Which ranks have not come: now and then in the log, and once as a warning. */
static void report_progress(struct tt_root *root, uint64_t now)
{
    char missing[256], hint[160], unproven[TT_UNPROVEN_BYTES];
    bool report = now >= root->report_nsec;
    if (!report && now < root->progress_nsec) return;
    tt_root_list_missing(root, missing, sizeof(missing));
    if (report) {
        tt_mistake_rank(root->root_rank, hint, sizeof(hint));
        tt_root_unproven(root, unproven);
        tt_warn("init waits since %.0f s: %d of %d ranks came with the unique id of this process; "
                "missing %s: do they run, do they call init, and were they given this id?%s%s",
                (double)(now - root->first_nsec) * 1e-9, root->njoined, root->nslots, missing, hint,
                unproven);
        root->report_nsec = UINT64_MAX;
    } else {
        tt_info(TT_LOG_INIT | TT_LOG_BOOTSTRAP, "bootstrap: %d of %d ranks came so far; missing %s",
                root->njoined, root->nslots, missing);
    }
    root->progress_nsec = now + TT_ROOT_PROGRESS_NSEC;
}

/* Ranks wait that this process cannot let in. With what was put aside they are let in one after the
 * other, and hear why. */
static void fail_exhausted(struct tt_root *root)
{
    char which[24] = "", host[TT_HOST_BYTES] = "";
    gethostname(host, sizeof(host) - 1);
    if (root->root_rank >= 0) snprintf(which, sizeof(which), "rank %d ", root->root_rank);
    tt_root_fail(root, ncclRemoteError,
                 "%son host %s (pid %d), whose process made the unique id, has no descriptor left "
                 "for the ranks that connect to it; raise its limit of descriptors (ulimit -n)",
                 which, host, (int)getpid());
    tt_service_spend_reserve();
}

static bool root_tick(struct tt_root *root, uint64_t now)
{
    bool stray = tt_root_stray_waits(root, now);
    if (root->state == ROOT_OPEN && tt_service_cannot_accept(now)) fail_exhausted(root);
    if (root_finished(root, now)) {
        root_free(root);
        return false;
    }
    /* an unused id has no deadline */
    if (!root->slots) return root->state == ROOT_FAILED || stray;
    if (root->state == ROOT_OPEN && root->njoined < root->nslots) report_progress(root, now);
    if (root->state == ROOT_OPEN && root->root_rank >= 0 &&
        now >= root->first_nsec + ROOT_RANK_NSEC)
        send_root_rank(root);
    fail_refused(root, now);
    tt_root_end_grow(root);
    if (root->state == ROOT_FAILED || !root->deadline_nsec) return true;
    if (now >= root->deadline_nsec + overdue_grace(root)) tt_root_overdue(root);
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
            tt_root_fail(root, rc, "%s", sentence);
    }
}

void tt_root_serves(const struct tt_key *key, uint64_t comm_id)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (memcmp(root->acceptor.key.name, key->name, sizeof(key->name)) == 0)
            root->comm_id = comm_id;
    }
}

/* A caller may give another number of ranks than the root was told first. */
static bool knows_rank(const struct tt_root *root, int rank, const struct root_client **client_out)
{
    if (!root->slots || rank >= root->blocks.nranks) return false;
    const int slot = tt_blocks_slot(&root->blocks, (int)root->first.index, rank);
    if (slot < 0) return false;
    *client_out = root->slots[slot];
    return true;
}

struct tt_joined tt_bootstrap_joined(uint64_t comm_id, int rank)
{
    struct tt_joined joined = {.pid = -1};
    tt_service_lock();
    for (const struct tt_root *root = tt_service()->roots; root; root = root->next) {
        const struct root_client *client = NULL;
        if (root->comm_id != comm_id || !knows_rank(root, rank, &client)) continue;
        joined.known = true;
        if (!client) continue;
        joined.came = true;
        joined.pid = client->join.pid;
        snprintf(joined.host, sizeof(joined.host), "%s", client->join.host);
    }
    tt_service_unlock();
    return joined;
}

static void roots_fail(void)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        tt_root_fail(root, ncclRemoteError, "the process that made the unique id (pid %d) exited",
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
    tt_root_expect(root, EXPECTED_AT_FIRST);
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
