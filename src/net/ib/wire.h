/* Wire format of verbs connections: memory that the other end writes to, immediate data, messages
 * over TCP. Both hosts must have the same byte order. */
#pragma once

#include "nccl/net.h"
#include "net/ib/device.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    IB_SLOTS = NCCL_NET_MAX_REQUESTS, /* messages in flight */
    IB_PARTS = 8,                     /* receives of one message */
    IB_PIECES = 16,
    IB_QPS = 128,
    IB_RECEIVES = 2 * IB_SLOTS, /* posted per queue pair */
    IB_GRAIN = 128,             /* pieces begin at multiples of it */
    IB_VERSION = 1,
};

struct ib_entry { /* one posted receive, written into the sender's memory */
    uint64_t addr, bytes;
    uint32_t rkeys[IB_MERGED]; /* by port of the receiver */
    uint32_t tag, nparts;
    _Atomic uint64_t number; /* of the message, from 1; last field, as it is written last */
    uint64_t unused[2];
};
_Static_assert(sizeof(struct ib_entry) == 64, "a cache line");

struct ib_table {
    struct ib_entry slots[IB_SLOTS][IB_PARTS];
};
struct ib_record {                      /* the receiver's memory */
    uint32_t sizes[IB_SLOTS][IB_PARTS]; /* of messages, written by the sender */
    _Atomic uint64_t whole[IB_SLOTS];   /* by slot: the last message that is complete; the sender
                                           reads it when it has lost a queue pair */
};

/* Immediate data: slot 5 bits, turn 1, piece 4, last 1, size 21. */
enum { IB_SIZE_BITS = 21, IB_SIZE_RECORDED = (1 << IB_SIZE_BITS) - 1 };
struct ib_mark {
    uint32_t slot, piece, size; /* IB_SIZE_RECORDED: in the record */
    bool turn, last;            /* turn: of the message's number */
};
static inline uint32_t ib_mark_pack(const struct ib_mark *mark)
{
    return mark->slot << 27 | (uint32_t)mark->turn << 26 | mark->piece << 22 |
           (uint32_t)mark->last << 21 | mark->size;
}
static inline struct ib_mark ib_mark_unpack(uint32_t imm)
{
    return (struct ib_mark){.slot = imm >> 27,
                            .turn = imm >> 26 & 1,
                            .piece = imm >> 22 & 15,
                            .last = imm >> 21 & 1,
                            .size = imm & IB_SIZE_RECORDED};
}

struct ib_port_words { /* addresses of a port */
    char name[32];
    union ibv_gid gid;
    uint16_t lid;
    uint8_t mtu, ethernet, number, unused[3];
};

struct ib_hello { /* each of the three messages of the handshake */
    uint32_t version, nports, nqps, failover;
    int32_t rank, qps_per_port, split, unused;
    uint64_t addr; /* of the sender's table, of the receiver's record */
    uint32_t rkeys[IB_MERGED];
    struct ib_port_words ports[IB_MERGED];
    uint32_t qpns[IB_QPS];
    char handle[NCCL_NET_HANDLE_MAXSIZE]; /* of the connector's own listener */
};

struct ib_notice { /* over TCP, when a queue pair has failed */
    uint32_t kind, qp;
    uint64_t numbers[IB_SLOTS]; /* messages that the receiver waits for; 0: none */
    uint32_t pieces[IB_SLOTS];  /* bits: pieces of them that have arrived */
};
enum { IB_NOTICE_LOST = 1, IB_NOTICE_STATE };
