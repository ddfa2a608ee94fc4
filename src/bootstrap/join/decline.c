/* A rank that will not come: its init was refused or aborted before its work began. One connection
 * to a root says so, in place of the JOIN that the others wait for. */
#include "base/log.h"
#include "base/secret/encryption.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root_state.h"
#include "bootstrap/tree/blocks.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FOR_GOOD_NSEC 500000000ull /* for the whole connection */
#define REFUSED_NSEC 100000000ull  /* the same, in a call that only returns an error */
#define REACHED_NSEC 2000000000ull /* ... where the root's process was reached, and is busy */

struct attempt { /* guarded by the service's lock */
    struct tt_conn *conn;
    unsigned char bytes[TT_DECLINE_BYTES];
    bool over;
    pthread_cond_t changed;
};

static void attempt_ends(struct attempt *attempt)
{
    attempt->conn = NULL;
    attempt->over = true;
    pthread_cond_broadcast(&attempt->changed);
}

static void attempt_opened(struct tt_conn *conn)
{
    struct attempt *attempt = conn->owner;
    tt_conn_send(conn, TT_FRAME_DECLINE, attempt->bytes, sizeof(attempt->bytes));
    tt_conn_finish(conn);
    attempt_ends(attempt);
}

static void attempt_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes,
                          size_t len)
{
    (void)conn;
    (void)type;
    (void)bytes;
    (void)len;
}

static void attempt_closed(struct tt_conn *conn, const char *why)
{
    (void)why; /* no process listens there, so no rank waits */
    attempt_ends(conn->owner);
}

static const struct tt_conn_ops attempt_ops = {
    .opened = attempt_opened,
    .frame = attempt_frame,
    .closed = attempt_closed,
};

/* Lock held; released while waiting. */
static void attempt_run(struct attempt *attempt, const struct tt_conn_dial *dial,
                        uint64_t limit_nsec)
{
    const struct timespec at = tt_clock_at(limit_nsec), last = tt_clock_at(dial->deadline_nsec);
    if (tt_conn_dial(dial, &attempt->conn)) return;
    while (!attempt->over) {
        const struct timespec *until = attempt->conn->reached ? &last : &at;
        if (pthread_cond_clockwait(&attempt->changed, &tt_service()->lock, CLOCK_MONOTONIC,
                                   until) &&
            (until == &last || !attempt->conn || !attempt->conn->reached))
            break;
    }
    tt_conn_finish(attempt->conn);
}

/* The root that serves the rank; of a rank that cannot be, the first. */
static int root_of(const struct tt_bootstrap_decline *decline)
{
    const struct tt_blocks blocks = {decline->nranks, decline->nids};
    bool real = decline->rank >= 0 && decline->rank < decline->nranks;
    return real && decline->nids <= decline->nranks ? tt_blocks_block(&blocks, decline->rank) : 0;
}

static struct tt_decline words_of(const struct tt_bootstrap_decline *decline)
{
    struct tt_decline words = {.for_good = decline->for_good,
                               .stray = decline->stray,
                               .pid = (int32_t)getpid(),
                               .thread = decline->thread,
                               .rc = decline->rc};
    bool shared = decline->rc == ncclInvalidArgument; /* else its code is its own */
    if (!shared) words.rc = ncclRemoteError;
    gethostname(words.host, sizeof(words.host) - 1);
    snprintf(words.sentence, sizeof(words.sentence),
             "rank %d on host %s (pid %d) does not come: %.400s", decline->rank, words.host,
             (int)words.pid, decline->sentence);
    return words;
}

/* The root is in this process: it needs no connection, for which there may be no descriptors. */
static bool reported_here(const struct tt_key *key, const struct tt_decline *words)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (memcmp(root->acceptor.key.name, key->name, sizeof(key->name)) != 0) continue;
        tt_root_decline(root, words);
        return true;
    }
    return false;
}

static void report_root(const struct tt_bootstrap_decline *decline, const struct tt_id_parts *id,
                        int index)
{
    struct attempt attempt = {.conn = NULL};
    struct tt_key key;
    bool waits = decline->for_good || decline->stray;
    const uint64_t now = tt_now_nsec();
    pthread_cond_init(&attempt.changed, NULL);
    const struct tt_decline words = words_of(decline);
    tt_decline_pack(&words, attempt.bytes);
    tt_key_derive(id->secret, TT_KEY_ROOT, &key);
    const struct tt_conn_dial dial = {
        .addr = &id->addr,
        .key = &key,
        .hello = {.kind = TT_KEY_ROOT,
                  .own_rank =
                      decline->rank >= 0 && decline->rank < TT_MAX_RANKS ? decline->rank : 0,
                  .wanted_rank = -1 - index,
                  .nranks = (uint32_t)decline->nranks,
                  .sealed = tt_encryption_wanted()},
        .ops = &attempt_ops,
        .owner = &attempt,
        .limit_bytes = TT_REFUSE_BYTES,
        .deadline_nsec = now + REACHED_NSEC,
    };
    tt_service_lock();
    if ((decline->stray || !reported_here(&key, &words)) && !tt_service_acquire(NULL)) {
        if (decline->for_good) tt_service_spend_reserve();
        attempt_run(&attempt, &dial, now + (waits ? FOR_GOOD_NSEC : REFUSED_NSEC));
        tt_service_keep_reserve();
        tt_service_release();
    }
    tt_service_unlock();
    tt_service_wait_idle();
    sodium_memzero(&key, sizeof(key));
    pthread_cond_destroy(&attempt.changed);
}

void tt_bootstrap_decline(const struct tt_bootstrap_decline *decline)
{
    struct tt_id_parts id;
    int index = root_of(decline);
    if (sodium_init() < 0 || !tt_id_valid(&decline->ids[index])) return;
    if (tt_id_read(&decline->ids[index], &id)) return;
    /* with a fixed address it is rank 0 that all ranks look for */
    union tt_addr listen_on = id.addr;
    bool opens = id.fixed_address && decline->rank == 0 && decline->for_good;
    if (opens && tt_root_open(id.secret, &listen_on, &listen_on)) return;
    tt_info(TT_LOG_INIT | TT_LOG_BOOTSTRAP, "rank %d of %d tells the root that it does not come",
            decline->rank, decline->nranks);
    report_root(decline, &id, index);
    sodium_memzero(&id, sizeof(id));
}
