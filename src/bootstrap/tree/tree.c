/* Connections along the tree of ranks (blocks.h). They live as long as the membership; their end is
 * how a death is noticed. What goes through them: exchange.c; how all ranks learn of a failure:
 * failure.c; how a membership ends: leave.c. */
#include "bootstrap/tree/tree.h"

#include "base/error.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/tree/probe.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "device/device.h"

#include <errno.h>
#include <netdb.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REASON_NSEC 1000000000ull
#define CHILD_REASON_NSEC 50000000ull
#define WAIT_SLICE_NSEC 4000000ull

/* ---- connections ---- */

struct tt_branch *tt_tree_branch(struct tt_bootstrap *b, const struct tt_conn *conn)
{
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn == conn) return &b->branches[i];
    }
    return NULL;
}

void tt_tree_flood(struct tt_bootstrap *b, const struct tt_conn *except, uint16_t type,
                   const void *bytes, size_t len)
{
    if (b->up != except) tt_conn_send(b->up, type, bytes, len);
    for (int i = 0; i < b->nbranches; i++) {
        if (b->branches[i].conn != except) tt_conn_send(b->branches[i].conn, type, bytes, len);
    }
}

/* ---- life ---- */

void tt_tree_free(struct tt_bootstrap *b)
{
    for (int i = 0; i < b->nbranches; i++) {
        free(b->branches[i].up);
        tt_probe_end(&b->branches[i].probe);
    }
    free(b->exchange.table);
    tt_mailbox_fini(&b->mailbox);
    sodium_free(b->secret);
    free(b->contacts);
    free(b->records);
    free(b->exits);
    while (b->gone) {
        struct tt_gone *gone = b->gone;
        b->gone = gone->next;
        free(gone);
    }
    if (b->memory) tuttiHostControlFree(b->memory, b->memory_bytes);
    pthread_cond_destroy(&b->changed);
    sodium_memzero(b, sizeof(*b));
    free(b);
}

void tt_tree_destroy(struct tt_bootstrap *b)
{
    struct tt_bootstrap **link = &tt_service()->members;
    while (*link && *link != b)
        link = &(*link)->next;
    if (*link) *link = b->next;
    if (b->accepts || b->seconds) tt_acceptor_close(&b->acceptor);
    tt_conn_finish(b->up);
    for (int i = 0; i < b->nbranches; i++)
        tt_conn_finish(b->branches[i].conn);
    tt_tree_free(b);
    tt_service_release();
    pthread_cond_broadcast(&tt_service()->ended); /* for await_family() */
}

/* ---- the outside ---- */

/* This rank and its parent both have a second interface, and are on two hosts. */
static bool may_have_second(const struct tt_bootstrap *b)
{
    if (!b->up || !b->contacts) return false;
    const struct tt_contact *own = &b->contacts[b->rank], *parent = &b->contacts[b->parent];
    return own->spare.sa.sa_family != AF_UNSPEC &&
           own->spare.sa.sa_family == parent->spare.sa.sa_family &&
           !tt_addr_same_ip(&own->addr, &parent->addr); /* within a host no interface matters */
}

void tt_bootstrap_init_done(struct tt_bootstrap *b)
{
    tt_service_lock();
    b->deadline_nsec = 0;
    if (may_have_second(b)) {
        b->second_nsec = tt_now_nsec();
        tt_service_wake();
    }
    tt_service_unlock();
}

void tt_bootstrap_own_memory(struct tt_bootstrap *b, void *memory, size_t bytes)
{
    tt_service_lock();
    b->memory = memory;
    b->memory_bytes = bytes;
    tt_service_unlock();
}

const char *tt_bootstrap_peer(const struct tt_bootstrap *b, int rank, int *pid_out)
{
    *pid_out = b->contacts ? (int)b->contacts[rank].pid : -1;
    return b->contacts ? b->contacts[rank].host : "?";
}

void tt_bootstrap_address(const struct tt_bootstrap *b, int rank, char *text, size_t text_bytes)
{
    *text = 0;
    if (!b->contacts) return;
    const union tt_addr *addr = &b->contacts[rank].addr;
    getnameinfo(&addr->sa, tt_addr_len(addr), text, (socklen_t)text_bytes, NULL, 0, NI_NUMERICHOST);
}

void tt_bootstrap_key(const struct tt_bootstrap *b, const char *kind, unsigned char key_out[32])
{
    crypto_generichash(key_out, 32, (const unsigned char *)kind, strlen(kind), b->secret,
                       TT_SECRET_BYTES);
}
