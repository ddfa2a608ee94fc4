/* How a rank becomes a member: ask the root for a place, take it in the tree, exchange records; or,
 * for children of a communicator, take the place at once, since addresses and secret are known. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/id.h"
#include "bootstrap/tree.h"
#include "bootstrap/wire.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_NSEC 10000000000ull /* for one peer that should be there */
#define RETRY_FIRST_NSEC 1000000ull
#define RETRY_LAST_NSEC 100000000ull
#define GRACE_NSEC 2000000000ull /* the root is the one to tell about time-outs */

struct join {
    const struct tt_bootstrap_config *config;
    struct tt_bootstrap *b;
    struct tt_id_parts id; /* of the root that places this rank */
    unsigned char combined[TT_SECRET_BYTES];
    struct tt_join words;
    uint64_t deadline_nsec; /* 0: none */
    bool root_done, root_opened;
    ncclResult_t code; /* what the root refused with */
    char sentence[TT_SENTENCE_BYTES];
    const char *why; /* why the last connection ended */
};

/* ---- connections to roots ---- */

static void root_opened(struct tt_conn *conn)
{
    struct join *join = conn->owner;
    unsigned char bytes[TT_JOIN_BYTES];
    struct tt_join words = join->words;
    words.index = (uint32_t)(-1 - conn->hello.wanted_rank);
    tt_join_pack(&words, bytes);
    tt_conn_send(conn, TT_FRAME_JOIN, bytes, sizeof(bytes));
    if (conn == join->b->root) join->root_opened = true;
    pthread_cond_broadcast(&join->b->changed);
}

static void root_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    struct join *join = conn->owner;
    struct tt_bootstrap *b = join->b;
    if (type == TT_FRAME_REFUSE && !join->code) {
        join->code = tt_refuse_unpack(bytes, len, join->sentence);
        /* once in the tree the caller waits there */
        if (b->placed) tt_tree_fail(b, b->rank, join->code, "%s", join->sentence);
    } else if (type == TT_FRAME_PLACE && conn == b->root && !b->placed) {
        b->placed = tt_place_unpack(&b->place, bytes, len);
    }
    pthread_cond_broadcast(&b->changed);
}

static void root_closed(struct tt_conn *conn, const char *why)
{
    struct join *join = conn->owner;
    if (conn == join->b->root) join->b->root = NULL;
    if (conn == join->b->check) join->b->check = NULL;
    join->why = why;
    pthread_cond_broadcast(&join->b->changed);
}

static const struct tt_conn_ops root_ops = {
    .opened = root_opened,
    .frame = root_frame,
    .closed = root_closed,
};

static uint64_t sooner(uint64_t a, uint64_t b)
{
    if (!a || !b) return a ? a : b;
    return a < b ? a : b;
}

static ncclResult_t dial_root(struct join *join, const struct tt_id_parts *id, int index,
                              struct tt_conn **conn_out)
{
    struct tt_key key;
    tt_key_derive(id->secret, TT_KEY_ROOT, &key);
    struct tt_conn_dial dial = {
        .addr = &id->addr,
        .key = &key,
        .hello = {.kind = TT_KEY_ROOT,
                  .own_rank = join->b->rank,
                  .wanted_rank = -1 - index,
                  .nranks = (uint32_t)join->b->nranks,
                  .sealed = join->words.sealed},
        .ops = &root_ops,
        .owner = join,
        .limit_bytes = TT_REFUSE_BYTES,
        .deadline_nsec = sooner(tt_now_nsec() + ANSWER_NSEC, join->deadline_nsec),
    };
    ncclResult_t rc = tt_conn_dial(&dial, conn_out);
    sodium_memzero(&key, sizeof(key));
    return rc;
}

/* Wait a little longer each time, keeping an eye on aborts. */
static ncclResult_t pause_retry(struct tt_bootstrap *b, uint64_t *pause_nsec, uint64_t deadline)
{
    ncclResult_t rc = ncclSuccess;
    uint64_t until = tt_now_nsec() + *pause_nsec;
    while (!rc && tt_now_nsec() < until)
        rc = tt_tree_wait(b, deadline);
    if (*pause_nsec < RETRY_LAST_NSEC) *pause_nsec *= 2;
    return rc;
}

static ncclResult_t root_unreachable(const struct join *join, ncclResult_t rc)
{
    char addr[128];
    tt_addr_text(&join->id.addr, addr, sizeof(addr));
    if (rc != ncclTimeout) return rc;
    return tt_fail(join->id.fixed_address ? ncclTimeout : ncclRemoteError,
                   "rank %d: no root of this unique id answers at %s (%s): the process that made "
                   "the id has gone, all ranks of the id were already served, or the address is "
                   "not reachable from here",
                   join->b->rank, addr, join->why ? join->why : "refused");
}

/* Until proved to the root. With a fixed address rank 0 may come late; otherwise the root exists
 * since the id does, and 10 s must do. */
static ncclResult_t reach_root(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    uint64_t pause_nsec = RETRY_FIRST_NSEC;
    uint64_t limit = join->id.fixed_address
                         ? join->deadline_nsec
                         : sooner(join->deadline_nsec, tt_now_nsec() + ANSWER_NSEC);
    ncclResult_t rc = ncclSuccess;
    while (!rc && !join->root_opened && !join->code) {
        if (!b->root) {
            rc = dial_root(join, &join->id, 0, &b->root);
            if (rc == ncclInProgress) rc = ncclSuccess;
            if (!rc && !b->root) rc = pause_retry(b, &pause_nsec, limit);
            continue;
        }
        rc = tt_tree_wait(b, limit);
        if (!rc && !b->root && !join->root_opened) rc = pause_retry(b, &pause_nsec, limit);
    }
    return rc ? root_unreachable(join, rc) : ncclSuccess;
}

/* With several ids: show one other root what ids this rank has. Not reaching it is no error. */
static ncclResult_t reach_check(struct join *join)
{
    const struct tt_bootstrap_config *config = join->config;
    struct tt_id_parts other;
    if (config->nids < 2) return ncclSuccess;
    int index = 1 + join->b->rank % (config->nids - 1);
    ncclResult_t rc = tt_id_read(&config->ids[index], &other);
    if (!rc) rc = dial_root(join, &other, index, &join->b->check);
    sodium_memzero(&other, sizeof(other));
    return rc == ncclInProgress ? ncclSuccess : rc;
}

static ncclResult_t root_refused(const struct join *join)
{
    return tt_fail(join->code, "rank %d of %d: %s", join->b->rank, join->b->nranks, join->sentence);
}

static ncclResult_t await_place(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    uint64_t limit = join->deadline_nsec ? join->deadline_nsec + GRACE_NSEC : 0;
    ncclResult_t rc = ncclSuccess;
    while (!rc && !b->placed && !join->code && b->root)
        rc = tt_tree_wait(b, limit);
    if (join->code) return root_refused(join);
    if (rc == ncclTimeout) {
        return tt_fail(rc, "rank %d: the root did not answer in time", b->rank);
    }
    if (!rc && !b->placed) {
        return tt_fail(ncclRemoteError, "rank %d: the root's process went away during init (%s)",
                       b->rank, join->why ? join->why : "connection closed");
    }
    return rc;
}

/* ---- the place in the tree ---- */

/* A refused connection is tried again; that this process can make none is an error. */
static ncclResult_t dial_up(struct tt_bootstrap *b, const union tt_addr *parent, uint64_t deadline)
{
    struct tt_key key;
    tt_key_derive(b->secret, TT_KEY_TREE, &key);
    struct tt_conn_dial dial = {
        .addr = parent,
        .key = &key,
        .hello = {.kind = TT_KEY_TREE,
                  .own_rank = b->rank,
                  .wanted_rank = (b->rank - 1) / TT_ARITY,
                  .nranks = (uint32_t)b->nranks,
                  .sealed = b->sealed},
        .ops = tt_tree_up_ops(),
        .owner = b,
        .limit_bytes = tt_tree_limit(b),
        .deadline_nsec = sooner(tt_now_nsec() + ANSWER_NSEC, deadline),
    };
    ncclResult_t rc = tt_conn_dial(&dial, &b->up);
    b->dialing = rc == ncclSuccess;
    sodium_memzero(&key, sizeof(key));
    return rc == ncclInProgress ? ncclSuccess : rc;
}

/* A failed attempt closes the connection and clears both `up` and `dialing`. */
static ncclResult_t reach_parent(struct tt_bootstrap *b, uint64_t deadline)
{
    char addr[128];
    uint64_t pause_nsec = RETRY_FIRST_NSEC;
    uint64_t limit = deadline;
    ncclResult_t rc = ncclSuccess;
    if (b->rank == 0) return ncclSuccess;
    while (!rc) {
        rc = dial_up(b, &b->place.parent, deadline);
        while (!rc && b->dialing) {
            rc = tt_tree_wait(b, limit);
        }
        if (!rc && b->up) return ncclSuccess;
        if (!rc) rc = pause_retry(b, &pause_nsec, limit);
    }
    if (rc != ncclTimeout) return rc;
    return tt_fail(ncclTimeout, "rank %d: no answer from rank %d on host %s (pid %d) at %s",
                   b->rank, (b->rank - 1) / TT_ARITY, b->place.parent_host,
                   (int)b->place.parent_pid, tt_addr_text(&b->place.parent, addr, sizeof(addr)));
}

static void own_card(struct tt_card *card, const union tt_addr *addr)
{
    memset(card, 0, sizeof(*card));
    card->addr = *addr;
    card->pid = (int32_t)getpid();
    gethostname(card->host, sizeof(card->host) - 1);
}

/* First exchange of a new tree: cards and records. Lock not held. */
static ncclResult_t exchange_records(struct tt_bootstrap *b, const union tt_addr *addr,
                                     const void *record)
{
    enum { SHARE = TT_CARD_BYTES + TT_RECORD_BYTES };
    struct tt_card card;
    unsigned char mine[SHARE];
    size_t n = (size_t)b->nranks;
    own_card(&card, addr);
    tt_card_pack(&card, mine);
    memcpy(mine + TT_CARD_BYTES, record, TT_RECORD_BYTES);
    unsigned char *all = calloc(n, SHARE);
    struct tt_card *cards = calloc(n, sizeof(*cards));
    unsigned char *records = calloc(n, TT_RECORD_BYTES);
    if (!all || !cards || !records) {
        free(all);
        free(cards);
        free(records);
        return tt_fail(ncclSystemError, "bootstrap: out of memory for %zu ranks", n);
    }
    ncclResult_t rc = tt_bootstrap_allgather(b, mine, sizeof(mine), all);
    for (size_t r = 0; !rc && r < n; r++) {
        tt_card_unpack(&cards[r], all + r * SHARE);
        memcpy(records + r * TT_RECORD_BYTES, all + r * SHARE + TT_CARD_BYTES, TT_RECORD_BYTES);
    }
    if (!rc) {
        tt_service_lock();
        b->cards = cards;
        b->records = records;
        tt_service_unlock();
        cards = NULL;
        records = NULL;
    }
    free(all);
    free(cards);
    free(records);
    return rc;
}

/* ---- join ---- */

static ncclResult_t join_prepare(struct join *join)
{
    const struct tt_bootstrap_config *config = join->config;
    struct tt_join *words = &join->words;
    ncclResult_t rc = tt_id_read(&config->ids[0], &join->id);
    if (!rc) rc = tt_id_combine(config->ids, config->nids, join->combined);
    if (rc) return rc;
    union tt_addr listen_on = join->id.addr;
    if (join->id.fixed_address && config->member->rank == 0) {
        rc = tt_root_open(join->id.secret, &listen_on, &listen_on);
        if (rc) return rc;
    }
    words->version = NCCL_VERSION_CODE;
    words->nranks = (uint32_t)config->member->nranks;
    words->rank = (uint32_t)config->member->rank;
    words->nids = (uint32_t)config->nids;
    words->timeout_sec = config->timeout_sec > 0 ? (uint32_t)config->timeout_sec : 0;
    words->sealed = tt_param_bool("TUTTI_NET_ENCRYPT");
    words->pid = (int32_t)getpid();
    gethostname(words->host, sizeof(words->host) - 1);
    crypto_generichash(words->digest, sizeof(words->digest), (const unsigned char *)"digest", 6,
                       join->combined, sizeof(join->combined));
    if (config->timeout_sec > 0) {
        join->deadline_nsec = tt_now_nsec() + (uint64_t)config->timeout_sec * 1000000000ull;
    }
    return ncclSuccess;
}

/* All secrets and the root's nonce: each communicator has keys of its own even when an id is used
 * twice (fixed addresses). */
static void join_secret(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    crypto_generichash(b->secret, TT_SECRET_BYTES, b->place.nonce, sizeof(b->place.nonce),
                       join->combined, sizeof(join->combined));
    sodium_memzero(b->place.nonce, sizeof(b->place.nonce));
}

/* First contact; lock held. */
static ncclResult_t join_root(struct join *join)
{
    ncclResult_t rc = tt_service_main_listener(&join->words.addr);
    if (!rc) rc = reach_check(join);
    if (!rc) rc = reach_root(join);
    if (!rc) rc = await_place(join);
    if (rc) return rc;
    join_secret(join);
    tt_tree_open_door(join->b);
    return reach_parent(join->b, join->deadline_nsec);
}

#define LAST_WORD_NSEC 500000000ull

/* Whoever gives up before the root knows of it still introduces itself, so that the others need not
 * wait for the deadline. */
static void introduce(struct join *join)
{
    struct tt_bootstrap *b = join->b;
    uint64_t until = tt_now_nsec() + LAST_WORD_NSEC;
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
                          .tv_nsec = (long)(until % 1000000000)};
    if (!b->root && !join->root_opened) dial_root(join, &join->id, 0, &b->root);
    while (b->root && !join->root_opened) {
        if (pthread_cond_timedwait(&b->changed, &tt_service()->lock, &at)) return;
    }
}

/* Goodbye to the roots, with the reason when it failed. Lock held. */
static void join_farewell(struct join *join, ncclResult_t rc)
{
    struct tt_bootstrap *b = join->b;
    unsigned char bytes[TT_REFUSE_BYTES];
    if (rc && !join->code) introduce(join);
    struct tt_conn *const roots[] = {b->root, b->check};
    for (int i = 0; i < 2; i++) {
        if (!roots[i]) continue;
        if (rc) {
            bool aborted = tt_member_aborted(join->config->member) && !atomic_load(&b->error);
            tt_refuse_pack(rc, aborted ? "its init was aborted" : tt_last_error(), bytes);
            tt_conn_send(roots[i], TT_FRAME_REFUSE, bytes, sizeof(bytes));
        } else {
            tt_conn_send(roots[i], TT_FRAME_JOINED, NULL, 0);
        }
        tt_conn_finish(roots[i]);
    }
    b->root = b->check = NULL;
}

static ncclResult_t join_run(struct join *join)
{
    tt_service_lock();
    ncclResult_t rc = tt_tree_create(join->config->member, &join->b);
    if (rc) {
        tt_service_unlock();
        return rc;
    }
    join->b->timeout_sec = join->config->timeout_sec;
    join->b->sealed = join->words.sealed;
    rc = join_root(join);
    tt_service_unlock();
    if (!rc) rc = exchange_records(join->b, &join->words.addr, join->config->record);
    tt_service_lock();
    join_farewell(join, rc);
    if (rc) {
        tt_tree_destroy(join->b);
        join->b = NULL;
    }
    tt_service_unlock();
    return rc;
}

ncclResult_t tt_bootstrap_join(const struct tt_bootstrap_config *config,
                               struct tt_bootstrap **bootstrap_out, const void **records_out)
{
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "libsodium: sodium_init failed");
    uint64_t start = tt_now_nsec();
    struct join *join = calloc(1, sizeof(*join));
    if (!join) return tt_fail(ncclSystemError, "bootstrap: out of memory");
    join->config = config;
    ncclResult_t rc = join_prepare(join);
    uint64_t create = tt_now_nsec();
    if (!rc) rc = join_run(join);
    if (!rc) {
        uint64_t end = tt_now_nsec();
        *bootstrap_out = join->b;
        *records_out = join->b->records;
        tt_info(TT_LOG_BOOTSTRAP | TT_LOG_PROFILE,
                "Bootstrap timings total %f (create %f, send %f, recv %f, ring %f, delay %f)",
                (double)(end - start) * 1e-9, (double)(create - start) * 1e-9, 0.0,
                (double)(end - create) * 1e-9, 0.0, 0.0);
    }
    sodium_memzero(join, sizeof(*join));
    free(join);
    tt_service_settle();
    return rc;
}

/* ---- children ---- */

static ncclResult_t child_start(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                                struct tt_bootstrap **bootstrap_out, union tt_addr *addr_out)
{
    struct tt_bootstrap *b;
    if (parent->epoch != tt_service()->epoch) {
        return tt_fail(ncclInvalidUsage, "communicator was created before fork");
    }
    ncclResult_t rc = tt_tree_create(child->member, &b);
    if (rc) return rc;
    *bootstrap_out = b;
    b->timeout_sec = parent->timeout_sec;
    b->sealed = parent->sealed;
    unsigned char salt[sizeof(child->salt)];
    struct tt_wire wire;
    tt_wire_init(&wire, salt, sizeof(salt));
    for (int i = 0; i < 3; i++)
        tt_wire_put64(&wire, child->salt[i]);
    crypto_generichash(b->secret, TT_SECRET_BYTES, salt, sizeof(salt), parent->secret,
                       TT_SECRET_BYTES);
    const struct tt_card *above =
        &parent->cards[child->parent_ranks[b->rank ? (b->rank - 1) / TT_ARITY : 0]];
    b->place.parent = above->addr;
    b->place.parent_pid = above->pid;
    memcpy(b->place.parent_host, above->host, sizeof(b->place.parent_host));
    rc = tt_service_main_listener(addr_out);
    if (rc) return rc;
    tt_tree_open_door(b);
    uint64_t deadline =
        b->timeout_sec > 0 ? tt_now_nsec() + (uint64_t)b->timeout_sec * 1000000000ull : 0;
    return reach_parent(b, deadline);
}

ncclResult_t tt_bootstrap_child(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                                struct tt_bootstrap **bootstrap_out, const void **records_out)
{
    struct tt_bootstrap *b = NULL;
    union tt_addr addr;
    tt_service_lock();
    ncclResult_t rc = child_start(parent, child, &b, &addr);
    tt_service_unlock();
    if (!b) return rc;
    if (!rc) rc = exchange_records(b, &addr, child->record);
    if (rc) {
        tt_service_lock();
        tt_tree_destroy(b);
        tt_service_unlock();
        return rc;
    }
    *bootstrap_out = b;
    *records_out = b->records;
    return ncclSuccess;
}
