/* Fuzz target: what peers send to bootstrap and to NET/Socket. The first byte says where the rest
 * comes: as an id, as a handshake of either, to the root of an id as frames of a rank that has
 * proved the id's secret, or to a rank as frames of its neighbour in the tree. Frames are type,
 * length and payload. Nothing may crash, hang, or take a forged proof. */
#include "fuzz/target.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/id.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "net/socket_shake.h"

#include <pthread.h>
#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { AS_ID, AS_HELLO, AS_LANE, AS_RANK, AS_NEIGHBOUR, PARSERS };
enum { RANKS = 2, INPUTS_EACH = 64 };

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t next_byte(struct input *input)
{
    if (!input->left) return 0;
    input->left--;
    return *input->at++;
}

/* Change what is there by what is left of the input, at a place that it names. */
static void overlay(struct input *input, unsigned char *bytes, size_t count)
{
    size_t at = next_byte(input) % count;
    for (; input->left && at < count; at++)
        bytes[at] ^= next_byte(input);
}

/* ---- ids and handshakes ---- */

static void as_id(struct input *input)
{
    static const unsigned char magic[] = {'T', 'U', 'T', 'T', 'I', 'I', 'D', 1};
    ncclUniqueId id;
    struct tt_id_parts parts;
    bool whole = next_byte(input) & 1;
    unsigned char *bytes = (unsigned char *)id.internal;
    memset(&id, 0, sizeof(id));
    memcpy(bytes, magic, sizeof(magic));
    overlay(input, bytes, sizeof(id));
    if (whole) crypto_generichash(bytes + 112, 16, bytes, 112, NULL, 0);
    if (!tt_id_read(&id, &parts)) (void)tt_id_comm(&id, 1);
}

static void as_hello(struct input *input)
{
    static const unsigned char secret[TT_SECRET_BYTES] = {1};
    struct tt_hello hello = {.kind = TT_KEY_TREE, .own_rank = 1, .nranks = 2}, read;
    struct tt_handshake client, server;
    struct tt_session session;
    struct tt_key key;
    uint8_t which = next_byte(input);
    memset(&server, 0, sizeof(server));
    hello.sealed = which & 4;
    tt_key_derive(secret, TT_KEY_TREE, &key);
    tt_handshake_hello(&client, &hello, &key);
    memcpy(server.hello, client.hello, sizeof(server.hello));
    bool changed = input->left > 1;
    if (which % 4 == 0) overlay(input, server.hello, sizeof(server.hello));
    changed = changed && memcmp(server.hello, client.hello, sizeof(server.hello)) != 0;
    if (!tt_handshake_read(&server, &read)) return;
    tt_handshake_answer(&server, &key, 0);
    memcpy(client.answer, server.answer, sizeof(client.answer));
    if (which % 4 == 1) overlay(input, client.answer, sizeof(client.answer));
    bool proved = tt_handshake_prove(&client, &key, 0);
    if (proved && (changed || memcmp(client.answer, server.answer, sizeof(client.answer)) != 0))
        abort();
    memcpy(server.proof, client.proof, sizeof(server.proof));
    if (which % 4 == 2) overlay(input, server.proof, sizeof(server.proof));
    bool checked = tt_handshake_check(&server, &key);
    if (checked && (!proved || memcmp(server.proof, client.proof, sizeof(server.proof)) != 0))
        abort();
    if (checked) (void)tt_handshake_session(&server, &key, true, &session);
}

static void as_lane(struct input *input)
{
    const struct tt_net_trust trust = {.rank = 0, .key = {1}};
    struct socket_hello hello = {.connection = 5, .own_rank = 1, .wanted_rank = 0}, read;
    struct socket_shake connector, acceptor;
    unsigned char key[TT_SEAL_KEY_BYTES], report[SHAKE_REPORT_BYTES];
    uint64_t count;
    uint8_t which = next_byte(input);
    hello.sealed = which & 4;
    hello.resumes = which & 8;
    tt_shake_hello(&connector, &hello);
    memcpy(acceptor.hello, connector.hello, sizeof(acceptor.hello));
    if (which % 4 == 0) overlay(input, acceptor.hello, sizeof(acceptor.hello));
    if (!tt_shake_read(&acceptor, &read)) return;
    tt_shake_answer(&acceptor, &trust);
    memcpy(connector.answer, acceptor.answer, sizeof(connector.answer));
    if (which % 4 == 1) overlay(input, connector.answer, sizeof(connector.answer));
    bool proved = tt_shake_prove(&connector, &trust);
    bool same = !memcmp(connector.hello, acceptor.hello, sizeof(connector.hello)) &&
                !memcmp(connector.answer, acceptor.answer, sizeof(connector.answer));
    if (proved && !same) abort();
    memcpy(acceptor.proof, connector.proof, sizeof(acceptor.proof));
    if (which % 4 == 2) overlay(input, acceptor.proof, sizeof(acceptor.proof));
    if (!proved || !tt_shake_check(&acceptor, &trust)) return;
    tt_shake_report(&acceptor, &trust, 77, report);
    if (which % 4 == 3) overlay(input, report, sizeof(report));
    (void)tt_shake_read_report(&connector, &trust, report, &count);
    (void)tt_shake_key(&acceptor, &trust, true, key);
}

/* ---- frames ---- */

static struct tt_conn *find(bool server)
{
    struct tt_conn *conn = tt_service()->conns;
    while (conn && (conn->server != server || conn->state != TT_CONN_OPEN))
        conn = conn->next;
    return conn;
}

/* As if they had come over that connection. */
static void feed(struct input *input, bool server)
{
    tt_service_lock();
    struct tt_conn *conn = find(server);
    while (conn && input->left && conn->state == TT_CONN_OPEN && !conn->close_when_sent) {
        uint16_t type = next_byte(input);
        size_t len = next_byte(input) * (type & 0x80 ? 16u : 1u);
        unsigned char *body = calloc(1, len + 1); /* so that a sanitizer sees its end */
        if (!body) abort();
        for (size_t i = 0; i < len && input->left; i++)
            body[i] = next_byte(input);
        conn->ops->frame(conn, type & 0x7f, body, len);
        free(body);
    }
    tt_service_unlock();
}

struct rank {
    const ncclUniqueId *id;
    struct tt_member member;
    struct tt_bootstrap *bootstrap;
};

static void *join(void *arg)
{
    static const unsigned char record[TT_RECORD_BYTES];
    struct rank *rank = arg;
    const void *records;
    struct tt_bootstrap_config config = {.member = &rank->member,
                                         .ids = rank->id,
                                         .nids = 1,
                                         .record = record,
                                         .timeout_sec = 5,
                                         .thread = rank->member.rank};
    if (tt_bootstrap_join(&config, &rank->bootstrap, &records)) rank->bootstrap = NULL;
    return NULL;
}

/* A rank waits for another one at the root, and what comes next is the input. */
static void as_rank(struct input *input)
{
    ncclUniqueId id;
    pthread_t thread;
    if (tt_id_create(&id)) abort();
    struct rank first = {.id = &id, .member = {.rank = 1, .nranks = RANKS, .name = ""}};
    if (pthread_create(&thread, NULL, join, &first)) abort();
    for (bool open = false; !open; sched_yield()) {
        tt_service_lock();
        open = find(true) != NULL;
        tt_service_unlock();
    }
    feed(input, next_byte(input) & 1);
    atomic_store(&first.member.abort, ncclRemoteError);
    pthread_join(thread, NULL);
    tt_bootstrap_leave(first.bootstrap);
    tt_service_wait_idle();
}

static struct rank ranks[RANKS];
static int inputs;

static void part(void)
{
    for (int r = 0; r < RANKS; r++) {
        if (ranks[r].bootstrap) tt_bootstrap_fail(ranks[r].bootstrap, ncclInternalError, "the end");
    }
    for (int r = 0; r < RANKS; r++)
        tt_bootstrap_leave(ranks[r].bootstrap);
    memset(ranks, 0, sizeof(ranks));
    tt_service_wait_idle();
}

static void connect_ranks(void)
{
    ncclUniqueId id;
    pthread_t threads[RANKS];
    if (tt_id_create(&id)) abort();
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.id = &id, .member = {.rank = r, .nranks = RANKS, .name = ""}};
        if (pthread_create(&threads[r], NULL, join, &ranks[r])) abort();
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    inputs = 0;
}

static void as_neighbour(struct input *input)
{
    if (!ranks[0].bootstrap || !ranks[1].bootstrap) connect_ranks();
    feed(input, next_byte(input) & 1);
    bool failed = !ranks[0].bootstrap || tt_bootstrap_error(ranks[0].bootstrap, NULL) ||
                  tt_bootstrap_error(ranks[1].bootstrap, NULL);
    if (failed || ++inputs == INPUTS_EACH) part();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static void (*const parsers[PARSERS])(struct input *) = {as_id, as_hello, as_lane, as_rank,
                                                             as_neighbour};
    struct input input = {bytes, count};
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_DEBUG", "NONE", 1);
    int way = next_byte(&input) % PARSERS;
    if (way != AS_NEIGHBOUR && ranks[0].bootstrap) part();
    parsers[way](&input);
    return 0;
}
