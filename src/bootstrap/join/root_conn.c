/* A rank's connections to roots, from the first attempt to the farewell. As long as one is open its
 * end means that the root's process has died, which ends the init of all its clients. */
#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/join/join.h"
#include "bootstrap/join/mistakes.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/tree/wait.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_NSEC 10000000000ull /* for one peer that should be there */
#define RETRY_FIRST_NSEC 1000000ull
#define RETRY_LAST_NSEC 100000000ull
#define GRACE_NSEC 3000000000ull      /* the root reports time-outs */
#define HEAD_GRACE_NSEC 1000000000ull /* of a head, whose own root waits for it */
#define REFUSALS 4                    /* then no process will listen there any more */
#define LAST_WORD_NSEC 500000000ull

uint64_t tt_sooner(uint64_t a, uint64_t b)
{
    if (!a || !b) return a ? a : b;
    return a < b ? a : b;
}

static ncclResult_t root_conn_dial(struct root_conn *root);

static void root_text(const struct root_conn *root, char *text, size_t text_bytes)
{
    char addr[128], which[48] = "", pid[24] = "";
    const int m = root->join->config->nids;
    tt_addr_text(&root->id.addr, addr, sizeof(addr));
    if (m > 1) snprintf(which, sizeof(which), "root %d of %d: ", root->index, m);
    if (root->root_rank >= 0 || root->id.fixed_address) {
        int rank = root->root_rank >= 0 ? root->root_rank : 0;
        if (root->id.pid) snprintf(pid, sizeof(pid), " (pid %d)", root->id.pid);
        snprintf(text, text_bytes, "%srank %d at %s%s (its process holds the root)", which, rank,
                 addr, pid);
    } else {
        snprintf(text, text_bytes, "%sthe process that made the unique id (pid %d at %s)", which,
                 root->id.pid, addr);
    }
}

/* ---- what roots say ---- */

/* Others are to connect to this rank: not by the loopback interface when they are on other hosts.
 * False: they could not, join->code is set. */
static bool reachable_from(struct join *join, const struct root_conn *root)
{
    struct tt_join *request = &join->request;
    char why[160], own[128], addr[128];
    if (!tt_addr_is_loopback(&request->addr) || !tt_mistake_far(root->conn->fd, &root->id.addr))
        return true;
    ncclResult_t rc = tt_listener_main(&request->addr); /* another may be up now */
    if (!rc && !tt_addr_is_loopback(&request->addr)) return true;
    tt_mistake_netif(why, sizeof(why));
    join->code = ncclInvalidUsage;
    snprintf(join->sentence, sizeof(join->sentence),
             "rank %u on host %s (pid %d) offers %s, a loopback address, to ranks on other hosts "
             "(the root is at %s): %s",
             request->rank, request->host, request->pid,
             tt_addr_text(&request->addr, own, sizeof(own)),
             tt_addr_text(&root->id.addr, addr, sizeof(addr)), why);
    return false;
}

/* The root above has placed this head: now its own root may place the block. */
static void pass_nonce(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    if (join->nroots < 2 || !b->assigned || !join->roots[0].opened) return;
    tt_conn_send(join->roots[0].conn, TT_FRAME_NONCE, join->nonce, sizeof(join->nonce));
}

static void root_conn_opened(struct tt_conn *conn)
{
    struct root_conn *root = conn->owner;
    unsigned char bytes[TT_JOIN_BYTES];
    char text[256];
    root->opened = true;
    root_text(root, text, sizeof(text));
    tt_dial_path_end(&root->path, text, &root->id.addr, &root->id.spare);
    if (reachable_from(root->join, root)) {
        struct tt_join request = root->join->request;
        request.index = (uint32_t)root->index;
        tt_join_pack(&request, bytes);
        tt_conn_send(conn, TT_FRAME_JOIN, bytes, sizeof(bytes));
    }
    if (root == root->join->roots) root->join->b->own_root = conn;
    pass_nonce(root->join);
    pthread_cond_broadcast(&root->join->b->changed);
}

static void frame_assignment(struct root_conn *root, const unsigned char *bytes, size_t len)
{
    struct join *join = root->join;
    struct tt_bootstrap *b = join->b;
    struct tt_root_reply reply;
    if (root->assigned || !tt_root_reply_unpack(&reply, bytes, len)) return;
    root->assigned = true;
    root->root_rank = reply.root_rank;
    if (root == tt_join_last_root(join) && !b->assigned) {
        b->parent_contact = reply.parent;
        memcpy(join->nonce, reply.nonce, sizeof(join->nonce));
        b->assigned = true;
        pass_nonce(join);
    }
    b->complete = join->roots[0].assigned;
    sodium_memzero(&reply, sizeof(reply));
}

static void root_conn_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes,
                            size_t len)
{
    struct root_conn *root = conn->owner;
    struct join *join = root->join;
    struct tt_bootstrap *b = join->b;
    struct tt_wire wire;
    if (type == TT_FRAME_REFUSE && !join->code) {
        join->code = tt_refuse_unpack(bytes, len, join->sentence);
        /* once in the tree the caller waits there */
        if (b->assigned) tt_tree_fail(b, b->rank, join->code, "%s", join->sentence);
    } else if (type == TT_FRAME_ASSIGNMENT) {
        frame_assignment(root, bytes, len);
    } else if (type == TT_FRAME_ROOT_RANK) {
        tt_wire_read(&wire, bytes, len);
        root->root_rank = (int32_t)tt_wire_get32(&wire);
    }
    pthread_cond_broadcast(&b->changed);
}

/* A root that has said nothing closes when it has not got the proof within 2 s, as when the link
 * was cut meanwhile, or its host is busy. Then it knows nothing of this rank, which may call again.
 */
static bool ended_unheard(const struct root_conn *root, const struct tt_conn *conn, const char *why)
{
    const bool closed = strcmp(why, "connection closed") == 0;
    return root->opened && conn->got_count == 0 &&
           (closed || strcmp(why, strerror(ECONNRESET)) == 0);
}

/* The caller looks at its roots until it is assigned. After that a head calls from here: no answer
 * of its own root is waited for. */
static bool calls_from_here(struct root_conn *root)
{
    if (!root->join->b->assigned || root->opened || !root->again) return false;
    return root->refusals == 0 && !root_conn_dial(root) && root->conn;
}

static void root_conn_closed(struct tt_conn *conn, const char *why)
{
    struct root_conn *root = conn->owner;
    struct tt_bootstrap *b = root->join->b;
    char text[256];
    root->conn = NULL;
    if (b->own_root == conn) b->own_root = NULL;
    root->why = why;
    root->refusals = strcmp(why, strerror(ECONNREFUSED)) == 0 ? root->refusals + 1 : 0;
    root->next_nsec = tt_now_nsec() + root->pause_nsec;
    tt_dial_path_turn(&root->path, strcmp(why, strerror(ECONNREFUSED)) == 0);
    if (ended_unheard(root, conn, why)) {
        root->opened = false;
        root->again = true;
    }
    const bool calls = calls_from_here(root);
    if (why == tt_conn_starved) {
        tt_tree_fail(b, b->rank, ncclSystemError, "rank %d is out of memory", b->rank);
    } else if ((root->opened || root->again) && b->assigned && !calls) {
        root_text(root, text, sizeof(text));
        tt_tree_fail(b, b->rank, ncclRemoteError, "%s is gone: %s", text, why);
    }
    pthread_cond_broadcast(&b->changed);
}

static const struct tt_conn_ops root_conn_ops = {
    .opened = root_conn_opened,
    .frame = root_conn_frame,
    .closed = root_conn_closed,
};

/* ---- the way there ---- */

static ncclResult_t root_conn_dial(struct root_conn *root)
{
    struct join *join = root->join;
    struct tt_conn_dial dial = {
        .addr = tt_dial_path_begin(&root->path, &root->id.addr, &root->id.spare),
        .key = &root->key,
        .hello = {.kind = TT_KEY_ROOT,
                  .own_rank = join->b->rank,
                  .wanted_rank = -1 - root->index,
                  .nranks = (uint32_t)join->b->nranks,
                  .sealed = join->request.sealed},
        .ops = &root_conn_ops,
        .owner = root,
        .limit_bytes = TT_REFUSE_BYTES,
        .deadline_nsec = tt_sooner(tt_now_nsec() + ANSWER_NSEC, join->deadline_nsec),
    };
    if (root->pause_nsec < RETRY_LAST_NSEC) root->pause_nsec *= 2;
    ncclResult_t rc = tt_conn_dial(&dial, &root->conn);
    if (rc != ncclInProgress) return rc;
    tt_dial_path_turn(&root->path, errno == ECONNREFUSED);
    root->refusals += errno == ECONNREFUSED;
    root->next_nsec = tt_now_nsec() + root->pause_nsec;
    return ncclSuccess;
}

static ncclResult_t unreachable(const struct root_conn *root, ncclResult_t rc)
{
    char text[256];
    root_text(root, text, sizeof(text));
    return tt_fail(rc,
                   "rank %d: no answer from %s (%s): it has gone, all ranks of the id were already "
                   "served, or the address is not reachable from here%s",
                   root->join->b->rank, text, root->why ? root->why : "refused",
                   tt_addr_reach_text(&root->id.addr));
}

static ncclResult_t root_conn_step(struct root_conn *root)
{
    if (tt_dial_path_is_late(&root->path, &root->id.spare, root->conn)) {
        tt_conn_close(root->conn);
        root->conn = NULL;
        tt_dial_path_turn(&root->path, false);
    }
    if (root->opened || root->conn) return ncclSuccess;
    char text[512];
    if (root->why == tt_conn_unproven) { /* trying again changes nothing */
        root_text(root, text, sizeof(text));
        return tt_fail(ncclRemoteError, "rank %d: %s: %s", root->join->b->rank, text, root->why);
    }
    if (root->refusals >= REFUSALS && root->again) {
        root_text(root, text, sizeof(text));
        return tt_fail(ncclRemoteError, "rank %d: %s is gone: connection closed",
                       root->join->b->rank, text);
    }
    if (root->refusals >= REFUSALS && !root->id.fixed_address)
        return unreachable(root, ncclRemoteError);
    if (root->refusals >= REFUSALS && tt_mistake_id(&root->id, text, sizeof(text)))
        return tt_fail(ncclInvalidUsage, "rank %d %s", root->join->b->rank, text);
    return tt_now_nsec() >= root->next_nsec ? root_conn_dial(root) : ncclSuccess;
}

/* There would be no answer: what is sent there is lost without an error. */
static ncclResult_t cut_off(const struct root_conn *root)
{
    char text[256];
    root_text(root, text, sizeof(text));
    return tt_fail(ncclSystemError,
                   "rank %d: %s cannot be reached: the address is this host's, and lo, which leads "
                   "there, is down (ip link set lo up)",
                   root->join->config->member->rank, text);
}

ncclResult_t tt_root_conns_init(struct join *join)
{
    const struct tt_bootstrap_config *config = join->config;
    const int rank = config->member->rank;
    const struct tt_blocks blocks = {config->member->nranks, config->nids};
    int block = tt_blocks_block(&blocks, rank);
    join->nroots = block > 0 && tt_blocks_is_head(&blocks, rank) ? 2 : 1;
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < join->nroots && !rc; i++) {
        struct root_conn *root = &join->roots[i];
        *root = (struct root_conn){.join = join,
                                   .index = i == 0 ? block : (block - 1) / TT_ARITY,
                                   .root_rank = -1,
                                   .pause_nsec = RETRY_FIRST_NSEC / 2};
        rc = tt_id_read(&config->ids[root->index], &root->id);
        if (!rc) tt_key_derive(root->id.secret, TT_KEY_ROOT, &root->key);
        if (!rc && tt_addr_is_cut(&root->id.addr)) rc = cut_off(root);
    }
    return rc;
}

/* Once, when it is time. */
static void report_silence(const struct root_conn *root, uint64_t start_nsec, uint64_t *report_nsec)
{
    const struct tt_bootstrap *b = root->join->b;
    char text[128];
    if (tt_now_nsec() < *report_nsec) return;
    tt_warn("rank %d of %d: init waits since %.0f s: nobody listens at %s (NCCL_COMM_ID%s): does "
            "rank 0 run, and does it call init?",
            b->rank, b->nranks, (double)(tt_now_nsec() - start_nsec) * 1e-9,
            tt_addr_text(&root->id.addr, text, sizeof(text)), tt_addr_reach_text(&root->id.addr));
    *report_nsec = UINT64_MAX;
}

ncclResult_t tt_root_conns_open(struct join *join)
{
    ncclResult_t rc = ncclSuccess;
    bool fixed = join->roots[0].id.fixed_address;
    uint64_t report_nsec = fixed ? tt_tree_report_nsec() : UINT64_MAX, start_nsec = tt_now_nsec();
    uint64_t limit =
        fixed ? join->deadline_nsec : tt_sooner(join->deadline_nsec, tt_now_nsec() + ANSWER_NSEC);
    for (;;) {
        const struct root_conn *open = NULL;
        for (int i = 0; i < join->nroots && !rc; i++) {
            rc = root_conn_step(&join->roots[i]);
            if (!join->roots[i].opened && !open) open = &join->roots[i];
        }
        if (rc || !open || join->code) return rc;
        rc = tt_tree_wait(join->b, limit);
        if (!rc) report_silence(open, start_nsec, &report_nsec);
        if (rc == ncclTimeout) return unreachable(open, fixed ? ncclTimeout : ncclRemoteError);
    }
}

static const struct root_conn *lost(const struct join *join)
{
    for (int i = 0; i < join->nroots; i++) {
        if (join->roots[i].opened && !join->roots[i].conn) return &join->roots[i];
    }
    return NULL;
}

ncclResult_t tt_root_conns_wait(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    char text[256];
    uint64_t grace_nsec = join->nroots > 1 ? HEAD_GRACE_NSEC : GRACE_NSEC;
    uint64_t limit = join->deadline_nsec ? join->deadline_nsec + grace_nsec : 0;
    ncclResult_t rc = ncclSuccess;
    pass_nonce(join); /* the root above may have been quicker than the own one */
    while (!rc && !b->assigned && !join->code && !lost(join)) {
        rc = tt_tree_wait(b, limit);
        if (!rc) { /* those that call again */
            rc = tt_root_conns_open(join);
            if (rc) return rc;
        }
        if (!rc && join->config->parent) rc = tt_root_passed_over(&join->roots[0].key);
        if (rc == ncclInvalidArgument) return rc;
    }
    if (join->code) {
        return tt_fail(join->code, "rank %d of %d: %s", b->rank, b->nranks, join->sentence);
    }
    if (rc != ncclTimeout && (rc || b->assigned)) return rc;
    root_text(lost(join) ? lost(join) : tt_join_last_root(join), text, sizeof(text));
    if (rc) return tt_fail(rc, "rank %d: %s did not answer in time", b->rank, text);
    return tt_fail(ncclRemoteError, "rank %d: %s is gone: %s", b->rank, text, lost(join)->why);
}

/* ---- goodbye ---- */

const char *tt_join_reason(const struct join *join)
{
    bool failed = atomic_load(&join->b->error) != 0;
    bool aborted = tt_member_aborted(join->config->member) && !failed;
    return aborted ? "its init was aborted" : tt_last_error();
}

/* A rank that gives up before a root knows it still introduces itself, so that the others need not
 * wait for the deadline: with the descriptor that was put aside, should none be left. */
static void introduce(struct join *join)
{
    const struct timespec at = tt_clock_at(tt_now_nsec() + LAST_WORD_NSEC);
    pthread_cond_t *changed = &join->b->changed;
    for (int i = 0; i < join->nroots; i++) {
        struct root_conn *root = &join->roots[i];
        if (!root->conn && !root->opened && root->refusals < REFUSALS) {
            tt_service_spend_reserve();
            root_conn_dial(root);
        }
        while (root->conn && !root->opened) {
            if (pthread_cond_clockwait(changed, &tt_service()->lock, CLOCK_MONOTONIC, &at)) break;
        }
    }
}

/* Why it failed, and whether another rank wrote this text. */
static bool last_words(const struct join *join, ncclResult_t rc,
                       unsigned char bytes[TT_REFUSE_BYTES])
{
    const struct tt_bootstrap *b = join->b;
    bool failed = atomic_load(&b->error) != 0;
    if (join->code || failed) {
        tt_refuse_pack(join->code ? join->code : (ncclResult_t)atomic_load(&b->error),
                       join->code ? join->sentence : b->sentence, bytes);
        return true;
    }
    tt_refuse_pack(rc, tt_join_reason(join), bytes);
    return false;
}

/* Roots in this process, which may end with it before their clients have received anything, and
 * which this rank itself cannot reach when no descriptors are left. */
static void report_own_roots(const struct join *join, bool received,
                             const unsigned char bytes[TT_REFUSE_BYTES])
{
    const struct tt_bootstrap_config *config = join->config;
    const struct tt_join *request = &join->request;
    char sentence[TT_SENTENCE_BYTES], whole[TT_SENTENCE_BYTES];
    ncclResult_t rc = tt_refuse_unpack(bytes, TT_REFUSE_BYTES, sentence);
    snprintf(whole, sizeof(whole), "rank %u on host %s (pid %d) gave up: %.400s", request->rank,
             request->host, request->pid, sentence);
    if (!received && rc != ncclInvalidArgument && rc != ncclTimeout) rc = ncclRemoteError;
    for (int i = 0; i < config->nids && tt_service()->roots; i++) {
        struct tt_id_parts id;
        struct tt_key key;
        if (tt_id_read(&config->ids[i], &id)) continue;
        tt_key_derive(id.secret, TT_KEY_ROOT, &key);
        tt_root_fail_key(&key, rc, received ? sentence : whole);
        sodium_memzero(&id, sizeof(id));
        sodium_memzero(&key, sizeof(key));
    }
}

void tt_root_conns_close(struct join *join, ncclResult_t rc)
{
    unsigned char bytes[TT_REFUSE_BYTES];
    bool received = false;
    if (rc) received = last_words(join, rc, bytes);
    if (rc && !join->roots[0].opened) report_own_roots(join, received, bytes);
    if (rc) introduce(join);
    join->b->own_root = NULL;
    for (int i = 0; i < join->nroots; i++) {
        struct root_conn *root = &join->roots[i];
        if (!root->conn) continue;
        if (rc) {
            tt_conn_send(root->conn, received ? TT_FRAME_RELAYED : TT_FRAME_REFUSE, bytes,
                         sizeof(bytes));
        } else {
            tt_conn_send(root->conn, TT_FRAME_JOINED, NULL, 0);
        }
        tt_conn_finish(root->conn);
        root->conn = NULL;
    }
    if (rc && join->config->nids > 1) report_own_roots(join, received, bytes);
    if (join->config->parent) tt_root_passed_end(&join->roots[0].key);
}
