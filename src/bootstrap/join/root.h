/* The root of an id: meets the ranks of its block and the heads of the blocks below (shape.h) once,
 * checks what they say, tells each its place or the reason why not. Lives in the service thread;
 * nothing here blocks. With m ids and n ranks a root serves at most ceil(n / m) + 8 connections. */
#pragma once

#include "base/socket.h"
#include "bootstrap/wire/handshake.h"
#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

#define TT_HOST_BYTES 64
#define TT_SENTENCE_BYTES 640
#define TT_MAX_RANKS (1 << 20)

enum tt_root_frame {                    /* on connections to a root */
                     TT_FRAME_JOIN = 1, /* rank -> root: struct tt_join */
                     TT_FRAME_PLACE,    /* root -> rank: struct tt_place */
                     TT_FRAME_REFUSE,   /* either way: code, sentence */
                     TT_FRAME_JOINED,   /* rank -> root: the tree stands, goodbye */
                     TT_FRAME_NONCE,    /* head -> its root: what the root above has chosen, 32 */
                     TT_FRAME_KEEPER,   /* root -> rank: 4, the rank whose process the root is in */
                     TT_FRAME_HEARD,    /* rank -> root: as REFUSE, but somebody else's words */
                     TT_FRAME_OVERDUE,  /* head -> its root: all others wait for this block */
};

struct tt_join { /* what a rank says first */
    uint32_t version;
    uint32_t nranks, rank;
    uint32_t nids, index; /* ids, and which of them this root is to the rank */
    uint32_t timeout_sec;
    int32_t pid;
    bool sealed;              /* TUTTI_NET_ENCRYPT */
    unsigned char digest[32]; /* of all ids in order */
    union tt_addr addr;       /* where its parent's children may connect */
    char host[TT_HOST_BYTES];
};
#define TT_JOIN_BYTES (8 * 4 + 32 + 24 + TT_HOST_BYTES)
void tt_join_pack(const struct tt_join *join, unsigned char bytes[TT_JOIN_BYTES]);
bool tt_join_unpack(struct tt_join *join, const unsigned char *bytes, size_t len);

struct tt_place {                         /* what the root answers */
    unsigned char nonce[TT_SECRET_BYTES]; /* goes into the communicator's secret */
    int32_t keeper; /* rank in whose process the root is; -1: none that it knows */
    int32_t parent_pid;
    union tt_addr parent;
    char parent_host[TT_HOST_BYTES];
};
#define TT_PLACE_BYTES (TT_SECRET_BYTES + 4 + 4 + 24 + TT_HOST_BYTES)
void tt_place_pack(const struct tt_place *place, unsigned char bytes[TT_PLACE_BYTES]);
bool tt_place_unpack(struct tt_place *place, const unsigned char *bytes, size_t len);

#define TT_REFUSE_BYTES (4 + TT_SENTENCE_BYTES)
void tt_refuse_pack(ncclResult_t rc, const char *sentence, unsigned char bytes[TT_REFUSE_BYTES]);
/* `sentence` has TT_SENTENCE_BYTES. */
ncclResult_t tt_refuse_unpack(const unsigned char *bytes, size_t len, char *sentence);

/* Open a root for this secret on the process's listener, or on an address of its own (its port must
 * be given). *addr_out: where ranks reach it. Takes the service's lock. */
ncclResult_t tt_root_open(const unsigned char secret[TT_SECRET_BYTES],
                          const union tt_addr *listen_on, union tt_addr *addr_out);

/* For the service, lock held. tick: true while some root has a deadline to watch. */
bool tt_root_tick(uint64_t now_nsec);
/* In a forked child: free what was inherited. */
void tt_root_orphan(void);
/* Some root has ranks that wait for its word, or may still come for it. */
bool tt_root_has_word(void);
/* A rank of this process gives up: its guests learn why, should the root of this key be here. */
void tt_root_hear(const struct tt_key *key, ncclResult_t rc, const char *sentence);
/* The process exits: the last word of all roots. */
void tt_root_exit(void);
/* Ranks that may be about to connect. */
uint32_t tt_root_expected(void);
