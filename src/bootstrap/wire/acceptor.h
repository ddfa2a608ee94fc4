/* The server side of one key: a root, a member of a communicator, or the server of a descriptor.
 * It accepts the connections whose hello names its key. Service's lock held in all functions and
 * callbacks. */
#pragma once

#include "base/network/socket.h"
#include "bootstrap/wire/handshake.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_conn;

struct tt_acceptor {
    struct tt_acceptor *next;
    struct tt_key key;
    enum tt_key_kind kind;
    void *owner;  /* borrowed; closes the acceptor before it goes */
    int32_t rank; /* TREE: own rank; LOCAL: 0; ROOT: not used, any negative wanted rank */
    struct {      /* peers that named the key and did not prove it; `rank` is what they claim */
        uint32_t count;
        union tt_addr from; /* the last one */
        int32_t rank;
    } unproven;
    /* May this peer connect? */
    bool (*admits)(struct tt_acceptor *acceptor, const struct tt_hello *hello);
    /* Proof done: take the connection. */
    void (*opened)(struct tt_acceptor *acceptor, struct tt_conn *conn);
};

/* Parked connections whose hello names its key go on. */
void tt_acceptor_open(struct tt_acceptor *acceptor);
void tt_acceptor_close(struct tt_acceptor *acceptor);
