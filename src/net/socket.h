/* Types and functions of the socket network. Private to the room.
 *
 * A connection is one-way and has 1 + n TCP connections, its lanes. Lane 0 carries, for each
 * message, the length, the header and a small payload; the other lanes share the bytes of larger
 * payloads. With n = 0 lane 0 carries all. Both ends divide a message among the lanes by the same
 * rule, so the division is not sent. */
#pragma once

#include "base/network/networks.h"
#include "base/network/socket.h"
#include "net/net.h"
#include "net/socket_shake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    SOCKET_REQUESTS = NCCL_NET_MAX_REQUESTS,
    SOCKET_DATA_LANES = 64,
    SOCKET_LANES = SOCKET_DATA_LANES + 1,
    SOCKET_LENGTH_BYTES = 8, /* the length, and its complement */
};

/* ---- one communicator's use of the network ---- */

struct socket_context {
    struct tt_net_trust trust;
    const struct tt_netif *netifs; /* static; by device */
    _Atomic uint32_t cut_devices;  /* bit per device: a peer could not be reached through it */
    bool sealed;                   /* TUTTI_NET_ENCRYPT */
    ncclProfilerCallback_t profiler;
    pthread_mutex_t lock;                          /* guards the fields below */
    struct socket_connector *connectors;           /* owned: connections that are being made */
    struct socket_port *ports[TT_INTERFACES_MOST]; /* owned, by device; NULL: no listener so far */
};

/* socket_port.c: listeners of a device. NULL: out of memory. */
struct socket_port *tt_socket_port_create(const struct socket_context *context);
void tt_socket_port_destroy(struct socket_port *port);

/* The listener's handle, which the sender gets from the receiver. Not trusted until it is checked.
 */
struct socket_handle {
    union tt_addr addr;
    union tt_addr spare;               /* the same over another interface; AF_UNSPEC: none */
    union tt_addr third;               /* the same over one more, where both are cut */
    unsigned char id[SOCKET_ID_BYTES]; /* of the listener, random */
    int32_t rank;                      /* of the listener */
    uint32_t nlanes;
};
_Static_assert(sizeof(struct socket_handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle holds it");

/* The device of a way of another device's connections, by number. */
static inline int tt_socket_way_device(int dev, int way)
{
    if (way == 0) return dev;
    if (way == 1) return dev ? 0 : 1;
    return dev > 1 ? 1 : 2;
}

/* socket_accept.c: listen at the interface of the device, netifs[dev], and for peers that do not
 * reach it at the first one (of the first: at the second one). dev < TT_INTERFACES_MOST. */
ncclResult_t tt_socket_net_listen(struct socket_context *context, int dev,
                                  const struct tt_netif *netifs, void *opaque, void **listen_comm);
ncclResult_t tt_socket_net_unlisten(void *listen_comm);
struct socket_ends;
struct socket_origin { /* how a connection was made */
    int dev;
    bool has_spare; /* the handle has two addresses */
    int way;        /* it was made to handle.addr, handle.spare, handle.third */
    uint64_t connection;
    struct socket_handle handle;
};
/* socket_connect.c: connect to the listener of a handle. ncclSuccess: the caller owns the ends;
 * ncclInProgress: call again. */
ncclResult_t tt_socket_net_connect(struct socket_context *context, int dev, void *opaque,
                                   struct socket_ends *ends_out, struct socket_origin *origin_out);
/* End all connections that are being made. */
void tt_socket_connectors_free(struct socket_context *context);

/* A new TCP connection for a lane of an existing connection, with its handshake. */
struct socket_reconnect {
    int fd; /* -1: none */
    struct socket_shake shake;
};
struct socket_origin;
/* socket_connect.c: connect one lane again, to the address in the origin's handle. A trial is not
 * reported when it fails, and stops when the peer has answered, until tt_socket_connector_go_on().
 */
ncclResult_t tt_socket_connector_reopen(const struct socket_origin *origin, int lane, bool trial,
                                        struct socket_connector **connector_out);
bool tt_socket_connector_is_answered(const struct socket_connector *connector);
void tt_socket_connector_go_on(struct socket_connector *connector);
/* It is no lane of a connection that the peer knows: as for the first time. */
void tt_socket_connector_begin(struct socket_connector *connector);
/* ncclSuccess: the caller owns *reconnect_out; ncclInProgress: call again. Failures are reported.
 */
ncclResult_t tt_socket_connector_reconnect(const struct socket_context *context,
                                           struct socket_connector *connector,
                                           struct socket_reconnect *reconnect_out);
void tt_socket_connector_free(struct socket_connector *connector);

/* ---- a connection ---- */

struct socket_link;

struct socket_request {
    struct socket_link *link; /* borrowed; NULL: free */
    char *bytes;
    size_t size; /* of the payload; receive: of the buffer, then of the payload */
    char *head;  /* receive: destination of the header */
    size_t head_bytes;
    struct tt_net_landing landing; /* receive */
    int parts;                     /* pieces that are not done, and the header */
    void *event;                   /* profiler's NetPlugin event */
    /* send: the length, then the header, as they go over lane 0 */
    unsigned char header[SOCKET_LENGTH_BYTES + TT_NET_HEAD_BYTES];
};

struct socket_part { /* a piece of memory that a lane moves */
    char *at;
    size_t left;
    struct socket_request *request;
    size_t size; /* at first */
};

struct socket_lane {
    int fd;
    uint32_t misses; /* calls in a row that moved nothing */
    uint64_t not_before_nsec;
    struct socket_seal *seal; /* owned; NULL: bytes travel as they are */
    uint32_t first, last;     /* parts that are not done: [first, last) */
    uint32_t held; /* sending, with two paths: [held, first) were sent, but maybe not received */
    struct socket_part parts[2 * SOCKET_REQUESTS]; /* ring */
    uint64_t moved;                                /* bytes of its stream so far */
    /* with two paths */
    bool holds;                 /* sending: parts are done when received, not when sent */
    int err;                    /* errno of the failed descriptor; 0: it works */
    char *kept;                 /* owned; receiving: bytes to deliver before the descriptor's */
    size_t kept_at, kept_bytes; /* of it: delivered, all */
};

#define SOCKET_AHEAD_BYTES 4096

struct socket_resume;

struct socket_link {
    bool sending;
    int rank; /* the peer's */
    char peer[64];
    ncclResult_t error; /* the first failure; sticky */
    ncclProfilerCallback_t profiler;
    size_t inline_bytes; /* payloads up to it go over lane 0, with n = 0 all */
    size_t least_slice;
    struct socket_resume *resume; /* owned; NULL: there is only one path */
    struct socket_link *twin;     /* borrowed: the other direction over the same descriptors; the
                                     last of the two closes them. NULL: none */
    bool one_way;                 /* has no twin: the peer has a second interface */
    uint32_t turn;                /* data lane of the next slice, minus one */
    uint32_t posted, headed; /* receiving: requests in `order`; of the first `headed` the size is
                                known */
    struct socket_request *order[SOCKET_REQUESTS];
    struct socket_request requests[SOCKET_REQUESTS];
    const char *landed_end; /* receiving: end of the last payload that was placed; else NULL */
    /* receiving: bytes that were read from lane 0 beyond the current message */
    uint32_t ahead_first, ahead_last;
    char *early; /* where bytes of the payload after the header in `ahead` already are */
    size_t early_bytes;
    uint32_t unpredicted; /* messages whose size is not predicted, after a wrong prediction */
    char ahead[SOCKET_AHEAD_BYTES];
    int nlanes;
    struct socket_lane lanes[]; /* 0: control */
};

struct socket_ends { /* authenticated descriptors of a new connection, by lane */
    int fds[SOCKET_LANES];
    unsigned char keys[SOCKET_LANES][TT_SEAL_KEY_BYTES]; /* sealed */
    bool sealed;
    int nlanes;
    int rank;
    bool sending;
};

/* socket_link.c: takes ownership of the descriptors, also on failure. NULL: out of memory
 * (reported).
 */
struct socket_link *tt_socket_link_create(const struct socket_ends *ends,
                                          ncclProfilerCallback_t profiler);
void tt_socket_link_destroy(struct socket_link *link);
/* The link of the other direction over the same descriptors. NULL: out of memory (reported). */
struct socket_link *tt_socket_link_reverse(struct socket_link *link);
/* socket_resume.c: the peer can be reached over two interfaces. When the connection over one
 * breaks, it continues over the other. */
ncclResult_t tt_socket_resume_sender(struct socket_link *link, struct socket_context *context,
                                     const struct socket_origin *origin);
struct socket_listener;
/* For the connection that the listener has just accepted. */
ncclResult_t tt_socket_resume_receiver(struct socket_link *link,
                                       const struct socket_listener *listener);
void tt_socket_resume_destroy(struct socket_link *link);
/* Sending, with two paths: as tt_socket_lane_send(), and handle what the peer has received. */
ncclResult_t tt_socket_resume_send(struct socket_link *link, struct socket_lane *lane);
/* Receiving, with two paths, when a lane had no data: whether the peer has connected it again. */
ncclResult_t tt_socket_resume_look(struct socket_link *link, struct socket_lane *lane);
/* The same for all lanes, at once. */
ncclResult_t tt_socket_resume_tend(struct socket_link *link);
/* The network table's test(): move what can be moved now on the request's connection. */
ncclResult_t tt_socket_test(void *opaque, int *done, int *size);

/* socket_lane.c: the system calls of a lane. They never block; they return the link's error. */
void tt_socket_lane_add(struct socket_lane *lane, struct socket_part part);
ncclResult_t tt_socket_lane_send(struct socket_link *link, struct socket_lane *lane);
bool tt_socket_lane_is_early(const struct socket_lane *lane); /* too early for the next try */
/* A try moved nothing; `rest` bytes are expected. */
void tt_socket_lane_missed(struct socket_lane *lane, size_t rest);
ncclResult_t tt_socket_lane_recv(struct socket_link *link, struct socket_lane *lane);
/* ncclInProgress: no bytes were there; the caller reports that to tt_socket_lane_missed(). */
ncclResult_t tt_socket_read(struct socket_link *link, struct socket_lane *lane,
                            struct iovec *pieces, int npieces, size_t *moved_out);
/* Return bytes that were read too early; the next call delivers them first. */
ncclResult_t tt_socket_lane_put_back(struct socket_link *link, struct socket_lane *lane,
                                     const struct iovec pieces[2]);
/* socket_seal.c: encryption of a lane, in one direction. NULL: out of memory. */
struct socket_seal *tt_socket_seal_create(const unsigned char key[TT_SEAL_KEY_BYTES]);
void tt_socket_seal_destroy(struct socket_seal *seal);
/* Return as sendmsg() and recvmsg() do. EBADMSG: the data was changed on the way. After a send that
 * returned -1, the next one must begin with the same bytes. */
ssize_t tt_socket_seal_send(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces);
ssize_t tt_socket_seal_recv(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces);
/* State of one message of the handshake. tt_socket_transfer(): ncclInProgress until all `len` bytes
 * are moved, ncclRemoteError: the other end has closed. It reports nothing, as the other end may
 * not be a peer. */
struct socket_transfer {
    bool sending;
    uint32_t done; /* 0 again at the end */
};
ncclResult_t tt_socket_transfer(int fd, struct socket_transfer *at, void *bytes, size_t len);
/* Set options of a new TCP socket: no delay, buffer sizes. */
void tt_socket_tune(int fd);
/* Store and report the first failure of the link. */
ncclResult_t tt_socket_link_broken(struct socket_link *link, ncclResult_t rc, const char *what);
