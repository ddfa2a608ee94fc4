/* Messages between a rank and a root: fixed sizes, every field in one place. */
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/wire.h"

void tt_join_pack(const struct tt_join *join, unsigned char bytes[TT_JOIN_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_JOIN_BYTES);
    tt_wire_put32(&wire, join->version);
    tt_wire_put32(&wire, join->nranks);
    tt_wire_put32(&wire, join->rank);
    tt_wire_put32(&wire, join->nids);
    tt_wire_put32(&wire, join->index);
    tt_wire_put32(&wire, join->timeout_sec);
    tt_wire_put32(&wire, (uint32_t)join->pid);
    tt_wire_put32(&wire, (uint32_t)join->thread);
    tt_wire_put32(&wire, join->sealed);
    tt_wire_put(&wire, join->digest, sizeof(join->digest));
    tt_addr_put(&wire, &join->addr);
    tt_addr_put(&wire, &join->spare);
    tt_wire_put_text(&wire, join->host, TT_HOST_BYTES);
}

bool tt_join_unpack(struct tt_join *join, const unsigned char *bytes, size_t len)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    join->version = tt_wire_get32(&wire);
    join->nranks = tt_wire_get32(&wire);
    join->rank = tt_wire_get32(&wire);
    join->nids = tt_wire_get32(&wire);
    join->index = tt_wire_get32(&wire);
    join->timeout_sec = tt_wire_get32(&wire);
    join->pid = (int32_t)tt_wire_get32(&wire);
    join->thread = (int32_t)tt_wire_get32(&wire);
    join->sealed = tt_wire_get32(&wire) != 0;
    tt_wire_get(&wire, join->digest, sizeof(join->digest));
    tt_addr_get(&wire, &join->addr);
    tt_addr_get(&wire, &join->spare);
    tt_wire_get_text(&wire, join->host, TT_HOST_BYTES);
    return !wire.bad && wire.left == 0;
}

void tt_root_reply_pack(const struct tt_root_reply *reply, unsigned char bytes[TT_ROOT_REPLY_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_ROOT_REPLY_BYTES);
    tt_wire_put(&wire, reply->nonce, sizeof(reply->nonce));
    tt_wire_put32(&wire, (uint32_t)reply->root_rank);
    tt_contact_pack(&reply->parent, wire.at);
}

bool tt_root_reply_unpack(struct tt_root_reply *reply, const unsigned char *bytes, size_t len)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    tt_wire_get(&wire, reply->nonce, sizeof(reply->nonce));
    reply->root_rank = (int32_t)tt_wire_get32(&wire);
    if (wire.bad || wire.left != TT_CONTACT_BYTES) return false;
    tt_contact_unpack(&reply->parent, wire.from);
    return true;
}

void tt_refuse_pack(ncclResult_t rc, const char *sentence, unsigned char bytes[TT_REFUSE_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_REFUSE_BYTES);
    tt_wire_put32(&wire, (uint32_t)rc);
    tt_wire_put_text(&wire, sentence, TT_SENTENCE_BYTES);
}

ncclResult_t tt_refuse_unpack(const unsigned char *bytes, size_t len, char *sentence)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    uint32_t code = tt_wire_get32(&wire);
    tt_wire_get_text(&wire, sentence, TT_SENTENCE_BYTES);
    bool error = code > ncclSuccess && code < ncclNumResults && code != ncclInProgress;
    return wire.bad || !error ? ncclRemoteError : (ncclResult_t)code;
}

enum { DECLINE_FOR_GOOD = 1, DECLINE_STRAY = 2 };

void tt_decline_pack(const struct tt_decline *decline, unsigned char bytes[TT_DECLINE_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_DECLINE_BYTES);
    tt_wire_put32(&wire, decline->stray ? DECLINE_STRAY : decline->for_good);
    tt_wire_put32(&wire, (uint32_t)decline->pid);
    tt_wire_put32(&wire, (uint32_t)decline->thread);
    tt_wire_put_text(&wire, decline->host, TT_HOST_BYTES);
    tt_refuse_pack(decline->rc, decline->sentence, wire.at);
}

bool tt_decline_unpack(struct tt_decline *decline, const unsigned char *bytes, size_t len)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, len);
    uint32_t how = tt_wire_get32(&wire);
    decline->for_good = how == DECLINE_FOR_GOOD;
    decline->stray = how == DECLINE_STRAY;
    decline->pid = (int32_t)tt_wire_get32(&wire);
    decline->thread = (int32_t)tt_wire_get32(&wire);
    tt_wire_get_text(&wire, decline->host, TT_HOST_BYTES);
    if (wire.bad || wire.left != TT_REFUSE_BYTES) return false;
    decline->rc = tt_refuse_unpack(wire.from, wire.left, decline->sentence);
    return true;
}
