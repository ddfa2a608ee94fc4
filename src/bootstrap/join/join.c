/* How a rank becomes a member: ask the root for a place, take it in the tree, exchange records; or,
 * for children of a communicator, take the place at once, since addresses and secret are known. */
#include "bootstrap/join/join.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/secret/encryption.h"
#include "base/system/clock.h"
#include "bootstrap/tree/dispatch.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* First exchange of a new tree: contacts and records. Lock not held. */
static ncclResult_t exchange_records(struct tt_bootstrap *b, const union tt_addr *addr,
                                     const void *record)
{
    enum { SHARE = TT_CONTACT_BYTES + TT_RECORD_BYTES };
    struct tt_contact contact = {.addr = *addr, .pid = (int32_t)getpid()};
    unsigned char mine[SHARE];
    size_t n = (size_t)b->nranks;
    gethostname(contact.host, sizeof(contact.host) - 1);
    tt_service_lock();
    tt_listener_spare(&contact.spare);
    tt_service_unlock();
    tt_contact_pack(&contact, mine);
    memcpy(mine + TT_CONTACT_BYTES, record, TT_RECORD_BYTES);
    unsigned char *all = calloc(n, SHARE);
    struct tt_contact *contacts = calloc(n, sizeof(*contacts));
    unsigned char *records = calloc(n, TT_RECORD_BYTES);
    if (!all || !contacts || !records) {
        free(all);
        free(contacts);
        free(records);
        return tt_fail(ncclSystemError, "bootstrap: out of memory for %zu ranks", n);
    }
    ncclResult_t rc = tt_bootstrap_allgather(b, mine, sizeof(mine), all);
    for (size_t r = 0; !rc && r < n; r++) {
        tt_contact_unpack(&contacts[r], all + r * SHARE);
        memcpy(records + r * TT_RECORD_BYTES, all + r * SHARE + TT_CONTACT_BYTES, TT_RECORD_BYTES);
    }
    if (!rc) {
        tt_service_lock();
        b->contacts = contacts;
        b->records = records;
        tt_service_unlock();
        contacts = NULL;
        records = NULL;
    }
    free(all);
    free(contacts);
    free(records);
    return rc;
}

/* ---- join ---- */

static ncclResult_t join_prepare(struct join *join)
{
    const struct tt_bootstrap_config *config = join->config;
    struct tt_join *request = &join->request;
    ncclResult_t rc = tt_id_combine(config->ids, config->nids, join->combined);
    if (!rc) rc = tt_root_conns_init(join);
    if (rc) return rc;
    struct tt_id_parts *id = &join->roots[0].id;
    if (id->fixed_address && config->member->nranks == 1) {
        /* no other rank comes there; others may be alone beside this one */
        randombytes_buf(id->secret, sizeof(id->secret));
        tt_key_derive(id->secret, TT_KEY_ROOT, &join->roots[0].key);
        rc = tt_root_open(id->secret, NULL, &id->addr);
    } else if (id->fixed_address && config->member->rank == 0) {
        rc = tt_root_open(id->secret, &id->addr, &id->addr);
    }
    if (rc) return rc;
    request->version = NCCL_VERSION_CODE;
    request->nranks = (uint32_t)config->member->nranks;
    request->rank = (uint32_t)config->member->rank;
    request->nids = (uint32_t)config->nids;
    request->timeout_sec = config->timeout_sec > 0 ? (uint32_t)config->timeout_sec : 0;
    request->sealed = tt_encryption_wanted();
    request->pid = (int32_t)getpid();
    request->thread = config->thread;
    gethostname(request->host, sizeof(request->host) - 1);
    crypto_generichash(request->digest, sizeof(request->digest), (const unsigned char *)"digest", 6,
                       join->combined, sizeof(join->combined));
    if (config->timeout_sec > 0) {
        join->deadline_nsec = tt_now_nsec() + (uint64_t)config->timeout_sec * 1000000000ull;
    }
    return ncclSuccess;
}

/* First contact; lock held. */
static ncclResult_t join_root(struct join *join)
{
    ncclResult_t rc = tt_listener_main(&join->request.addr);
    for (int i = 0; i < join->nroots; i++)
        tt_root_serves(&join->roots[i].key, join->config->member->comm_id);
    tt_listener_spare(&join->request.spare);
    if (!rc) rc = tt_root_conns_open(join);
    if (!rc) rc = tt_root_conns_wait(join);
    if (rc) return rc;
    /* all secrets and the root's nonce: each communicator has keys of its own even when an id is
     * used twice (fixed addresses) */
    crypto_generichash(join->b->secret, TT_SECRET_BYTES, join->nonce, sizeof(join->nonce),
                       join->combined, sizeof(join->combined));
    sodium_memzero(join->nonce, sizeof(join->nonce));
    tt_tree_accept_children(join->b);
    return tt_join_parent(join->b, join->deadline_nsec);
}

/* Connected ranks below get it from here, all others from their roots. */
static void report_tree(struct join *join, ncclResult_t rc)
{
    struct tt_bootstrap *b = join->b;
    if (!b->assigned) return;
    tt_tree_fail(b, b->rank, rc, "rank %d on host %s (pid %d) gave up: %.400s", b->rank,
                 join->request.host, (int)getpid(), tt_join_reason(join));
}

static ncclResult_t join_run(struct join *join)
{
    tt_service_lock();
    tt_service_keep_reserve();
    ncclResult_t rc = tt_tree_create(join->config->member, join->config->nids, &join->b);
    if (rc) {
        tt_service_unlock();
        return rc;
    }
    join->b->timeout_sec = join->config->timeout_sec;
    join->b->deadline_nsec = join->deadline_nsec;
    join->b->sealed = join->request.sealed;
    join->b->parent_tree = join->config->parent;
    join->b->watches_parent = join->b->whole_parent = true;
    rc = join_root(join);
    tt_service_unlock();
    if (!rc) rc = exchange_records(join->b, &join->request.addr, join->config->record);
    tt_service_lock();
    if (rc) report_tree(join, rc);
    tt_root_conns_close(join, rc);
    join->b->parent_tree = NULL;
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
    tt_service_wait_idle();
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
    ncclResult_t rc = tt_tree_create(child->member, 1, &b);
    if (rc) return rc;
    *bootstrap_out = b;
    b->timeout_sec = parent->timeout_sec;
    b->sealed = parent->sealed;
    b->complete = true;
    unsigned char salt[sizeof(child->salt)];
    struct tt_wire wire;
    tt_wire_init(&wire, salt, sizeof(salt));
    for (int i = 0; i < 3; i++)
        tt_wire_put64(&wire, child->salt[i]);
    crypto_generichash(b->secret, TT_SECRET_BYTES, salt, sizeof(salt), parent->secret,
                       TT_SECRET_BYTES);
    b->parent_contact = parent->contacts[child->parent_ranks[b->rank ? b->parent : 0]];
    rc = tt_listener_main(addr_out);
    if (rc) return rc;
    tt_tree_accept_children(b);
    if (b->timeout_sec > 0)
        b->deadline_nsec = tt_now_nsec() + (uint64_t)b->timeout_sec * 1000000000ull;
    b->parent_tree = parent;
    b->parent_ranks = child->parent_ranks;
    b->whole_parent = child->whole_parent;
    b->watches_parent = !child->leaves_parent || !atomic_load(&parent->error);
    b->parent_given_up = child->leaves_parent ? parent->given_up : 0;
    memcpy(b->salt, child->salt, sizeof(b->salt));
    return tt_join_parent(b, b->deadline_nsec);
}

ncclResult_t tt_bootstrap_child(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                                struct tt_bootstrap **bootstrap_out, const void **records_out)
{
    struct tt_bootstrap *b = NULL;
    union tt_addr addr;
    tt_service_lock();
    ncclResult_t rc = child_start(parent, child, &b, &addr);
    tt_service_unlock();
    const int nranks = child->member->nranks;
    if (!b) {
        tt_bootstrap_child_fail(parent, child, nranks, tt_last_error());
        return rc;
    }
    if (!rc) rc = exchange_records(b, &addr, child->record);
    tt_service_lock();
    b->parent_tree = NULL;
    bool received = atomic_load(&b->error) && b->error_rank != b->rank;
    if (rc) {
        tt_tree_fail(b, b->rank, rc, "%s", tt_last_error());
        tt_tree_destroy(b);
    }
    tt_service_unlock();
    if (rc && !received) tt_bootstrap_child_fail(parent, child, nranks, tt_last_error());
    if (rc) return rc;
    *bootstrap_out = b;
    *records_out = b->records;
    return ncclSuccess;
}
