/* Layout of a rank's control block (its inbox), which the peers map: shared barrier, slot headers,
 * payloads.
 * Every cache line has one writer. The block has room for all possible edges; pages that are never
 * touched take no memory.
 * What this rank sends to all others they read here: its lines, and in smaller pieces the payloads,
 * of the rings of this rank itself; a stream (TT_CONN_STREAM) has longer lines of its own.
 *
 *   barrier  512 B match headers of the last 64 operations | 64 B operations left |
 *            2048 B calls of these 64 | 8 cells of 64 B | 648 B why it left
 *   lines    per ring (sending peer, channel, conn): 64 slot headers of 128 B, head, head of what
 *            that peer sends to all
 *   streams  per sending peer and channel: 256 slot headers (TT_CONN_AHEAD); of this rank itself
 *            what it sends to all (TT_CONN_STREAM)
 *   payloads per ring: 8 * slice_bytes, page-aligned; messages that need one take them in turn
 *
 * The sender writes headers and payloads, the receiver writes `head`. */
#pragma once

#include "base/mem.h"
#include "transport/left.h"
#include "transport/transport.h"

#include <stdatomic.h>

enum tt_slot_kind {
    TT_SLOT_INLINE,  /* bytes lie in the header */
    TT_SLOT_PAYLOAD, /* bytes lie in the slot's payload */
    TT_SLOT_OFFSET,  /* `ref` is an offset into the sender's range */
    TT_SLOT_POINTER, /* `ref` is an address of this process */
    TT_SLOT_BUNDLE,  /* inline messages of `ref` bytes each, whose match headers are one apart */
};

struct tt_slot_line {
    _Atomic uint64_t seq; /* message number + 1; stored last with release, read with acquire */
    uint64_t match;
    uint32_t bytes;
    uint32_t kind; /* enum tt_slot_kind */
    uint64_t ref;
    char inline_bytes[TT_SLOT_INLINE_BYTES];
};
_Static_assert(sizeof(struct tt_slot_line) == 2 * (size_t)TT_LINE_BYTES,
               "a slot header is two lines");

#define TT_LINES 64 /* slots of a ring; a power of two. Small messages need no more than these */

#define TT_STREAM_LINES 256 /* the same of a stream */
#define TT_CAST_PAYLOADS 32 /* of what is sent to all; at most, and at least TT_SLOTS */

struct tt_ring_lines {
    struct tt_slot_line line[TT_LINES];
    _Atomic uint64_t head;       /* slots consumed; the receiver's release pairs with acquire() */
    _Atomic uint64_t ahead_head; /* the same of TT_CONN_AHEAD */
    char pad[TT_LINE_BYTES - 2 * sizeof(uint64_t)];
    _Atomic uint64_t cast_head[2]; /* the same of rings that the peer has in its own inbox:
                                      TT_CONN_CAST, TT_CONN_STREAM */
    char cast_pad[TT_LINE_BYTES - 2 * sizeof(uint64_t)];
};

struct tt_barrier_cell {
    _Atomic uint64_t seq; /* barrier operation number; stored last with release */
    uint64_t match;
    uint64_t in, out;               /* addresses in the writer's process */
    uint64_t in_offset, out_offset; /* from its range base; TT_NO_OFFSET outside */
    uint64_t word;                  /* of the caller: a scalar */
    uint64_t pad;
};
#define TT_NO_OFFSET UINT64_MAX
/* Where the bytes lie in the own range, by either address of the same memory; TT_NO_OFFSET: not. */
uint64_t tt_range_offset(const struct tt_peer_reach *self, const void *ptr, size_t bytes);

struct tt_begun {             /* more of an operation, valid as long as its match header is there */
    _Atomic uint64_t call[3]; /* struct tt_call */
    _Atomic uint64_t history; /* hash of all match headers up to this one */
};

struct tt_barrier {
    _Atomic uint64_t begun[TT_CALL_LOG_LEN]; /* match header of operation k at k mod their number;
                                               stored last */
    _Atomic uint64_t left;                   /* barrier operations left */
    _Atomic uint64_t ended; /* ~id of the communicator, once this rank has left it */
    uint64_t pad[6];
    struct tt_begun calls[TT_CALL_LOG_LEN];
    struct tt_barrier_cell cell[TT_SLOTS];
    _Atomic uint64_t why[TT_LEFT_WORDS]; /* struct tt_left; written before `ended` */
};

#define TT_BARRIER_BYTES 4096
_Static_assert(sizeof(struct tt_barrier) <= TT_BARRIER_BYTES, "the barrier has its own page");

struct tt_inbox_layout {
    int nranks, nchannels;
    size_t slot_bytes; /* distance of payloads */
    size_t ring_bytes; /* payloads of one ring */
    size_t streams;    /* offset of the streams' slot headers */
    size_t payloads;   /* offset of the first payload */
    size_t bytes;      /* all of it */
};

/* The same on all ranks for the same numbers. */
struct tt_inbox_layout tt_inbox_layout(int nranks, int nchannels, size_t slice_bytes);
/* Parts of an inbox as it is mapped here. */
struct tt_barrier *tt_inbox_barrier(void *inbox);
/* Ring number of messages from `peer`, in the inbox of any rank. */
size_t tt_inbox_ring(const struct tt_inbox_layout *layout, int peer, int channel, int conn);
struct tt_ring_lines *tt_inbox_lines(void *inbox, size_t ring);
struct tt_slot_line *tt_inbox_stream(const struct tt_inbox_layout *layout, void *inbox, int peer,
                                     int channel);
char *tt_inbox_payload(const struct tt_inbox_layout *layout, void *inbox, size_t ring);
