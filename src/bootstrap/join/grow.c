/* Ids by which a communicator grows. New ranks get such an id as any other; the ranks that exist
 * get it over their membership, sealed, from the one that made it. Half of its secret is random,
 * half is a keyed hash by which they know that it is theirs and which of their grows it is for. */
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

#define GROW_TAG 0xffff0001u /* children that fail have tags from 0xffff8000 */
#define FRESH_BYTES 16       /* random half of the secret; the rest is the proof */

struct grow_message { /* as it travels; number is little-endian */
    unsigned char nonce[crypto_secretbox_NONCEBYTES];
    unsigned char sealed[crypto_secretbox_MACBYTES + 8 + NCCL_UNIQUE_ID_BYTES];
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
    rc = tt_root_open(parts.secret, NULL, &parts.addr);
    if (!rc) tt_id_pack(id_out, &parts, (uint32_t)parent->nranks);
    sodium_memzero(&parts, sizeof(parts));
    return rc;
}

bool tt_id_is_grow(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    struct tt_id_parts parts;
    unsigned char proof[FRESH_BYTES];
    if (tt_id_read(id, &parts)) return false;
    grow_proof(parent, number, parts.secret, proof);
    bool same = sodium_memcmp(proof, parts.secret + FRESH_BYTES, sizeof(proof)) == 0;
    sodium_memzero(&parts, sizeof(parts));
    sodium_memzero(proof, sizeof(proof));
    return same && tt_id_existing(id) == parent->nranks;
}

/* ---- to the ranks that exist ---- */

ncclResult_t tt_id_hand_out(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    struct grow_message message;
    unsigned char key[32], text[8 + NCCL_UNIQUE_ID_BYTES];
    struct tt_wire wire;
    ncclResult_t rc = ncclSuccess;
    tt_wire_init(&wire, text, sizeof(text));
    tt_wire_put64(&wire, number);
    tt_wire_put(&wire, id->internal, sizeof(id->internal));
    tt_bootstrap_key(parent, "grow message", key);
    randombytes_buf(message.nonce, sizeof(message.nonce));
    crypto_secretbox_easy(message.sealed, text, sizeof(text), message.nonce, key);
    for (int r = 0; r < parent->nranks && !rc; r++) {
        if (r != parent->rank)
            rc = tt_bootstrap_send(parent, r, GROW_TAG, &message, sizeof(message));
    }
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return rc;
}

/* The grow that a message is for, and its id; 0 when it is damaged. */
static uint64_t message_open(const struct tt_bootstrap *parent, const struct grow_message *message,
                             ncclUniqueId *id_out)
{
    unsigned char key[32], text[8 + NCCL_UNIQUE_ID_BYTES];
    struct tt_wire wire;
    uint64_t number = 0;
    tt_bootstrap_key(parent, "grow message", key);
    tt_wire_read(&wire, text, sizeof(text));
    if (crypto_secretbox_open_easy(text, message->sealed, sizeof(message->sealed), message->nonce,
                                   key) == 0) {
        number = tt_wire_get64(&wire);
        tt_wire_get(&wire, id_out->internal, sizeof(id_out->internal));
    }
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return number;
}

/* Messages of earlier grows were never used and are dropped; of several the last counts. */
ncclResult_t tt_id_take(struct tt_bootstrap *parent, uint64_t number, ncclUniqueId *id_out)
{
    struct grow_message message;
    ncclUniqueId id;
    size_t bytes = 0;
    bool found = false;
    ncclResult_t rc;
    while (!(
        rc = tt_bootstrap_poll(parent, TT_ANY_PEER, GROW_TAG, &message, sizeof(message), &bytes))) {
        uint64_t its = bytes == sizeof(message) ? message_open(parent, &message, &id) : 0;
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
