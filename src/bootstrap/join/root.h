/* The root of an id: takes a connection from each rank of its block and from the heads of the
 * blocks below (blocks.h), checks what they say, and sends each its parent or the reason of a
 * refusal. Runs in the service thread; nothing here blocks. With m ids and n ranks a root serves at
 * most ceil(n / m) + 8 connections. */
#pragma once

#include "base/network/socket.h"
#include "bootstrap/tree/contact.h"
#include "bootstrap/wire/frame.h"
#include "bootstrap/wire/handshake.h"
#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

#define TT_MAX_RANKS (1 << 20)

struct tt_bootstrap;

struct tt_join { /* what a rank says first */
    uint32_t version;
    uint32_t nranks, rank;
    uint32_t nids, index; /* ids, and which of them this root is to the rank */
    uint32_t timeout_sec;
    int32_t pid, thread;
    bool sealed;              /* TUTTI_NET_ENCRYPT */
    unsigned char digest[32]; /* of all ids in order */
    union tt_addr addr;       /* where its children may connect */
    union tt_addr spare;      /* the same over another interface; AF_UNSPEC: none */
    char host[TT_HOST_BYTES];
};
#define TT_JOIN_BYTES (9 * 4 + 32 + 2 * TT_ADDR_WIRE_BYTES + TT_HOST_BYTES)
void tt_join_pack(const struct tt_join *join, unsigned char bytes[TT_JOIN_BYTES]);
bool tt_join_unpack(struct tt_join *join, const unsigned char *bytes, size_t len);

struct tt_root_reply {                    /* what the root answers */
    unsigned char nonce[TT_SECRET_BYTES]; /* goes into the communicator's secret */
    int32_t root_rank; /* rank in whose process the root is; -1: none that it knows */
    struct tt_contact parent;
};
#define TT_ROOT_REPLY_BYTES (TT_SECRET_BYTES + 4 + TT_CONTACT_BYTES)
void tt_root_reply_pack(const struct tt_root_reply *reply,
                        unsigned char bytes[TT_ROOT_REPLY_BYTES]);
bool tt_root_reply_unpack(struct tt_root_reply *reply, const unsigned char *bytes, size_t len);

#define TT_REFUSE_BYTES (4 + TT_SENTENCE_BYTES)
void tt_refuse_pack(ncclResult_t rc, const char *sentence, unsigned char bytes[TT_REFUSE_BYTES]);
/* `sentence` has TT_SENTENCE_BYTES. */
ncclResult_t tt_refuse_unpack(const unsigned char *bytes, size_t len, char *sentence);

#define TT_DECLINE_BYTES (12 + TT_HOST_BYTES + TT_REFUSE_BYTES)
struct tt_decline { /* the message of a rank that does not come */
    bool for_good;  /* false: its call was refused, and its thread may call again */
    bool stray;     /* a new rank of a grow whose id belongs to none */
    int32_t pid, thread;
    char host[TT_HOST_BYTES];
    ncclResult_t rc;
    char sentence[TT_SENTENCE_BYTES];
};
void tt_decline_pack(const struct tt_decline *decline, unsigned char bytes[TT_DECLINE_BYTES]);
bool tt_decline_unpack(struct tt_decline *decline, const unsigned char *bytes, size_t len);

/* Open a root for this secret on the process's listener, or on an address of its own (its port must
 * be given). *addr_out: where ranks reach it. Takes the service's lock. */
ncclResult_t tt_root_open(const unsigned char secret[TT_SECRET_BYTES],
                          const union tt_addr *listen_on, union tt_addr *addr_out);

/* Note that the root of this secret belongs to the id that a rank made for its `number`-th grow. */
void tt_root_for_grow(const unsigned char secret[TT_SECRET_BYTES],
                      const struct tt_bootstrap *parent, uint64_t number);
/* Lock held. When a rank has come with an id that was given up for the one of this key: refuse it,
 * and return ncclInvalidArgument for the ranks that join by the key. */
ncclResult_t tt_root_passed_over(const struct tt_key *key);
/* Lock held. Note that the join with the key is over: later ranks with such an id are refused. */
void tt_root_passed_end(const struct tt_key *key);

/* Lock held. A rank of this process joins that communicator by the root of this key, which may be
 * in another process. */
void tt_root_serves(const struct tt_key *key, uint64_t comm_id);

/* Lock held. A rank of this process gives up: when the root of this key is in this process, its
 * clients get the reason. */
void tt_root_fail_key(const struct tt_key *key, ncclResult_t rc, const char *sentence);
