/* Ids by which a communicator grows. New ranks get such an id as any other; the ranks that exist
 * get it over their membership, sealed, from the one that made it, and show rank 0 theirs as rank 0
 * shows them its own. Half of an id's secret is random, half is a keyed hash by which they know
 * that it is theirs and which of their grows it is for. */
#include "base/error.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/wire.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define GROW_TAG 0xffff0001u  /* children that fail have tags from 0xffff8000 */
#define SHOWN_TAG 0xffff0002u /* the same message */
#define FRESH_BYTES 16        /* random half of the secret; the rest is the proof */

enum { TEXT_BYTES = 8 + 4 + NCCL_UNIQUE_ID_BYTES };

struct grow_message { /* as it travels: number of the grow, sender, id; little-endian */
    unsigned char nonce[crypto_secretbox_NONCEBYTES];
    unsigned char sealed[crypto_secretbox_MACBYTES + TEXT_BYTES];
};

static void grow_proof(const struct tt_bootstrap *parent, uint64_t number,
                       const unsigned char fresh[FRESH_BYTES], unsigned char proof_out[FRESH_BYTES])
{
    unsigned char key[32], text[FRESH_BYTES + 8];
    struct tt_wire wire;
    tt_wire_init(&wire, text, sizeof(text));
    tt_wire_put(&wire, fresh, FRESH_BYTES);
    tt_wire_put64(&wire, number);
    tt_bootstrap_key(parent, "grow proof", key);
    crypto_generichash(proof_out, FRESH_BYTES, text, sizeof(text), key, sizeof(key));
    sodium_memzero(key, sizeof(key));
}

ncclResult_t tt_id_create_grow(const struct tt_bootstrap *parent, uint64_t number,
                               ncclUniqueId *id_out)
{
    struct tt_id_parts parts = {.fixed_address = false, .pid = getpid()};
    if (tt_param_str("NCCL_COMM_ID")) {
        return tt_fail(ncclInvalidUsage,
                       "ncclCommGetUniqueId: NCCL_COMM_ID is set (%s); a "
                       "communicator grows by an id of its own: unset it (tutti run --own-ids)",
                       tt_param_str("NCCL_COMM_ID"));
    }
    ncclResult_t rc = tt_bootstrap_netif(&parts.addr);
    if (rc) return rc;
    randombytes_buf(parts.secret, FRESH_BYTES);
    grow_proof(parent, number, parts.secret, parts.secret + FRESH_BYTES);
    rc = tt_id_open_root(&parts);
    if (!rc) tt_root_for_grow(parts.secret, parent, number);
    if (!rc) tt_id_pack(id_out, &parts, (uint32_t)parent->nranks);
    sodium_memzero(&parts, sizeof(parts));
    return rc;
}

bool tt_id_is_grow(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    struct tt_id_parts parts;
    unsigned char proof[FRESH_BYTES];
    if (!tt_id_valid(id) || tt_id_read(id, &parts)) return false;
    grow_proof(parent, number, parts.secret, proof);
    bool same = sodium_memcmp(proof, parts.secret + FRESH_BYTES, sizeof(proof)) == 0;
    sodium_memzero(&parts, sizeof(parts));
    sodium_memzero(proof, sizeof(proof));
    return same && tt_id_existing(id) == parent->nranks;
}

/* ---- to the ranks that exist ---- */

static ncclResult_t send_sealed(struct tt_bootstrap *parent, int first, int end, uint32_t tag,
                                uint64_t number, const ncclUniqueId *id)
{
    struct grow_message message;
    unsigned char key[32], text[TEXT_BYTES];
    struct tt_wire wire;
    ncclResult_t rc = ncclSuccess;
    tt_wire_init(&wire, text, sizeof(text));
    tt_wire_put64(&wire, number);
    tt_wire_put32(&wire, (uint32_t)parent->rank);
    tt_wire_put(&wire, id->internal, sizeof(id->internal));
    tt_bootstrap_key(parent, "grow message", key);
    randombytes_buf(message.nonce, sizeof(message.nonce));
    crypto_secretbox_easy(message.sealed, text, sizeof(text), message.nonce, key);
    for (int r = first; r < end && !rc; r++) {
        if (r != parent->rank) rc = tt_bootstrap_send(parent, r, tag, &message, sizeof(message));
    }
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return rc;
}

ncclResult_t tt_id_hand_out(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    return send_sealed(parent, 0, parent->nranks, GROW_TAG, number, id);
}

ncclResult_t tt_id_show(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    return send_sealed(parent, 0, parent->rank ? 1 : parent->nranks, SHOWN_TAG, number, id);
}

/* The next message; number 0: it is damaged. */
static ncclResult_t take_sealed(struct tt_bootstrap *parent, uint32_t tag, uint64_t *number_out,
                                struct tt_grow_id *id_out)
{
    struct grow_message message;
    unsigned char key[32], text[TEXT_BYTES];
    struct tt_wire wire;
    size_t bytes = 0;
    ncclResult_t rc =
        tt_bootstrap_poll(parent, TT_ANY_PEER, tag, &message, sizeof(message), &bytes);
    if (rc) return rc;
    *number_out = 0;
    tt_bootstrap_key(parent, "grow message", key);
    tt_wire_read(&wire, text, sizeof(text));
    if (bytes == sizeof(message) &&
        crypto_secretbox_open_easy(text, message.sealed, sizeof(message.sealed), message.nonce,
                                   key) == 0) {
        *number_out = tt_wire_get64(&wire);
        id_out->rank = (int)tt_wire_get32(&wire);
        tt_wire_get(&wire, id_out->id.internal, sizeof(id_out->id.internal));
    }
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return ncclSuccess;
}

/* Messages of earlier grows were never used and are dropped; of several the last counts. */
ncclResult_t tt_id_take(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out)
{
    struct tt_grow_id id;
    uint64_t its;
    bool found = false;
    ncclResult_t rc;
    while (!(rc = take_sealed(parent, GROW_TAG, &its, &id))) {
        if (its > number) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommGrow: rank %d: the id is for child %llu of this communicator, "
                           "but here this is child %llu: the ranks made different calls before",
                           parent->rank, (unsigned long long)its, (unsigned long long)number);
        }
        if (its == number) {
            *id_out = id;
            found = true;
        }
    }
    return found ? ncclSuccess : rc;
}

ncclResult_t tt_id_shown(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out)
{
    uint64_t its;
    ncclResult_t rc;
    while (!(rc = take_sealed(parent, SHOWN_TAG, &its, id_out))) {
        if (its == number) return ncclSuccess;
    }
    return rc;
}
