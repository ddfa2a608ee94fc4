/* One authenticated connection: handshake, then frames with a counter and a MAC each.
 * Only the service's lock holder touches it; callbacks run with the lock held and may close it. */
#pragma once

#include "base/network/socket.h"
#include "bootstrap/wire/handshake.h"
#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_acceptor;

enum tt_conn_state {
    TT_CONN_CONNECTING, /* client: connect() under way */
    TT_CONN_HELLO,      /* server: waits for message 1 */
    TT_CONN_PARKED,     /* server: no acceptor has that key yet */
    TT_CONN_ANSWER,     /* client: waits for message 2 */
    TT_CONN_PROOF,      /* server: waits for message 3 */
    TT_CONN_OPEN,
    TT_CONN_DEAD,
};

struct tt_conn;
/* The reason that closed() gets when this process, not the peer, is out of memory. */
extern const char tt_conn_starved[];
/* The reason when this process has closed or replaced a descriptor of the service. */
extern const char tt_conn_robbed[];
/* The reason when the peer proved a different key. */
extern const char tt_conn_unproven[];
struct tt_conn_ops {                      /* all required */
    void (*opened)(struct tt_conn *conn); /* client side only */
    void (*frame)(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len);
    void (*closed)(struct tt_conn *conn, const char *why); /* freed afterwards */
};

struct tt_packet { /* bytes waiting to leave */
    struct tt_packet *next;
    size_t len, done;
    unsigned char bytes[];
};

#define TT_FRAME_HEADER_BYTES 16

struct tt_conn {
    struct tt_conn *next, **link;
    int fd;
    uint64_t token;
    enum tt_conn_state state;
    bool server, local, wants_write, close_when_sent;
    bool starved; /* no memory for a packet: closed() follows with tt_conn_starved */
    bool reached; /* client: the TCP connection was established */
    int32_t peer; /* rank of the other side (negative: root) */
    uint64_t accepted_nsec;
    uint64_t deadline_nsec; /* 0: none */
    union tt_addr from;
    struct tt_handshake shake;
    size_t shake_got;
    struct tt_hello hello;
    struct tt_key key;            /* client */
    struct tt_acceptor *acceptor; /* server, until open */
    struct tt_session session;
    uint64_t sent_count, got_count;
    size_t limit_bytes; /* largest frame taken */
    const struct tt_conn_ops *ops;
    void *owner; /* borrowed */
    unsigned char header[TT_FRAME_HEADER_BYTES];
    size_t header_got;
    unsigned char *body; /* owned: payload and MAC of the frame that is coming in */
    size_t body_len, body_got;
    struct tt_packet *out, **out_end; /* owned */
    int send_fd; /* local: descriptor sent with the first byte of the next packet; -1: none */
    /* second.c */
    struct tt_conn *second; /* owned; the same frames over another interface; NULL: none */
    struct tt_conn *first;  /* borrowed; of a second one: the one beside it */
    uint64_t frames_sent, frames_got; /* of a first one: over either of the two */
    uint64_t offset; /* frame k of this connection is number k + offset of the two */
    bool early;      /* `body` is genuine and waits for frames before it, which the other one has */
};

/* Begin the server's side of a connection that was just accepted. Owns the fd, also after an error.
 */
ncclResult_t tt_conn_serve(int fd, bool local, const union tt_addr *from);

struct tt_conn_dial {
    const union tt_addr *addr;
    const struct tt_key *key;
    struct tt_hello hello;
    const struct tt_conn_ops *ops;
    void *owner;
    size_t limit_bytes;
    uint64_t deadline_nsec; /* for connect and handshake */
};
/* Start a client connection; opened() or closed() follows. */
ncclResult_t tt_conn_dial(const struct tt_conn_dial *dial, struct tt_conn **conn_out);

/* Queue a frame and send what fits now. On a broken connection it is dropped; closed() follows. */
void tt_conn_send(struct tt_conn *conn, uint16_t type, const void *bytes, size_t len);

/* Close the connection: now, or (finish) when all is sent. No callback follows. Both accept NULL.
 */
void tt_conn_close(struct tt_conn *conn);
void tt_conn_finish(struct tt_conn *conn);

/* For the service thread. */
void tt_conn_event(struct tt_conn *conn, uint32_t events);
void tt_conn_expire(struct tt_conn *conn);
void tt_conn_rob(struct tt_conn *conn); /* closed() follows with tt_conn_robbed */
void tt_conn_unpark(struct tt_conn *conn);
void tt_conn_free(struct tt_conn *conn);
