/* Inside of the socket network. Private to the room.
 *
 * A connection is one-way and has 1 + n TCP lanes: lane 0 carries a length per message, its
 * head and small payloads, the others share the bytes of larger ones; with n = 0 lane 0 carries
 * all. Both ends cut a message alike, so nothing is said about it on the wire. */
#pragma once

#include "base/socket.h"
#include "net/net.h"
#include "net/process.h"
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
    _Atomic uint32_t cut_devices;  /* bit per device: its peers were not reached through it */
    bool sealed;                   /* TUTTI_NET_ENCRYPT */
    ncclProfilerCallback_t profiler;
    pthread_mutex_t lock;                      /* guards what follows */
    struct socket_connector *connectors;       /* owned: connections that are being made */
    struct socket_port *ports[SOCKET_DEVICES]; /* owned: where a device's listeners wait; NULL:
                                                  nobody has listened there yet */
};

/* socket_port.c. NULL: out of memory. */
struct socket_port *tt_socket_port_create(const struct socket_context *context);
void tt_socket_port_destroy(struct socket_port *port);

/* What travels to the sender. Nothing in it is trusted before it is checked. */
struct socket_handle {
    union tt_addr addr;
    union tt_addr spare;               /* the same port by another interface; AF_UNSPEC: none */
    unsigned char id[SOCKET_ID_BYTES]; /* of the listener, random */
    int32_t rank;                      /* of the listener */
    uint32_t nlanes;
};
_Static_assert(sizeof(struct socket_handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle holds it");

/* socket_accept.c. Connections come in through the interface of the device, netifs[dev], or, where
 * that is not reached, through the first one. dev is below SOCKET_DEVICES. */
ncclResult_t tt_socket_net_listen(struct socket_context *context, int dev,
                                  const struct tt_netif *netifs, void *opaque, void **listen_comm);
ncclResult_t tt_socket_net_unlisten(void *listen_comm);
struct socket_ends;
struct socket_origin { /* how a connection was made */
    int dev;
    bool has_spare; /* handle.spare has not been tried */
    uint64_t connection;
    struct socket_handle handle;
};
/* socket_connect.c. ncclSuccess: the ends are the caller's; ncclInProgress: ask again. */
ncclResult_t tt_socket_net_connect(struct socket_context *context, int dev, void *opaque,
                                   struct socket_ends *ends_out, struct socket_origin *origin_out);
void tt_socket_connectors_free(struct socket_context *context);

/* A lane of a connection that is there, made anew: proved, and what was said for that. */
struct socket_comeback {
    int fd; /* -1: none */
    struct socket_shake shake;
};
struct socket_origin;
/* socket_connect.c. Connect one lane once more, to the address in the origin's handle. */
ncclResult_t tt_socket_connector_again(const struct socket_origin *origin, int lane,
                                       struct socket_connector **connector_out);
/* ncclSuccess: comeback_out is the caller's; ncclInProgress: ask again; else the error is reported.
 */
ncclResult_t tt_socket_connector_come(const struct socket_context *context,
                                      struct socket_connector *connector,
                                      struct socket_comeback *comeback_out);
void tt_socket_connector_free(struct socket_connector *connector);

/* ---- a connection ---- */

struct socket_link;

struct socket_request {
    struct socket_link *link; /* borrowed; NULL: free */
    char *bytes;
    size_t size; /* of the payload. Send: to send; receive: room, then what came */
    char *head;  /* receive: where it goes */
    size_t head_bytes;
    struct tt_net_landing landing; /* receive */
    int parts;                     /* pieces under way, and the header */
    void *event;                   /* profiler's NetPlugin event */
    /* send: the length as it goes over lane 0, and the head behind it */
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
    uint32_t first, last;     /* parts under way: [first, last) */
    uint32_t held; /* sending, with two ways: [held, first) were sent, their arrival is unknown */
    struct socket_part parts[2 * SOCKET_REQUESTS]; /* ring */
    uint64_t moved;                                /* bytes of its stream so far */
    /* with two ways */
    bool holds;                 /* sending: parts are done when they are let go, not when sent */
    int err;                    /* of the descriptor, which is not used any more; 0: none */
    char *kept;                 /* owned; receiving: what comes before the descriptor's bytes */
    size_t kept_at, kept_bytes; /* of it: taken, there */
};

#define SOCKET_AHEAD_BYTES 4096

struct socket_resume;

struct socket_link {
    bool sending;
    int rank; /* the peer's */
    char peer[64];
    ncclResult_t error; /* the first failure; sticky */
    ncclProfilerCallback_t profiler;
    size_t inline_bytes; /* payloads up to it go over lane 0; all do where there is no other */
    size_t least_slice;
    struct socket_resume *resume; /* owned; NULL: there is one way only */
    uint32_t turn;                /* data lane of the next slice, less one */
    uint32_t posted, headed; /* receiving: requests in order; the first `headed` know their size */
    struct socket_request *order[SOCKET_REQUESTS];
    struct socket_request requests[SOCKET_REQUESTS];
    const char *landed_end; /* receiving: of the last payload, where it landed; else NULL */
    /* receiving: what lane 0 gave beyond the message it was asked for */
    uint32_t ahead_first, ahead_last;
    char *early; /* of the payload after the head in `ahead`, before that was looked at */
    size_t early_bytes;
    uint32_t doubts; /* messages whose size is not relied on, after a wrong one */
    char ahead[SOCKET_AHEAD_BYTES];
    int nlanes;
    struct socket_lane lanes[]; /* 0: control */
};

struct socket_ends { /* proved descriptors of a new connection, by lane */
    int fds[SOCKET_LANES];
    unsigned char keys[SOCKET_LANES][TT_SEAL_KEY_BYTES]; /* sealed */
    bool sealed;
    int nlanes;
    int rank;
    bool sending;
};

/* socket_link.c. Takes the descriptors over, on failure too. NULL: out of memory (reported). */
struct socket_link *tt_socket_link_create(const struct socket_ends *ends,
                                          ncclProfilerCallback_t profiler);
void tt_socket_link_destroy(struct socket_link *link);
/* socket_resume.c. The connection has two ways: when the one is cut it goes on over the other. */
ncclResult_t tt_socket_resume_sender(struct socket_link *link, struct socket_context *context,
                                     const struct socket_origin *origin);
struct socket_listener;
/* Of the connection that the listener has just got. */
ncclResult_t tt_socket_resume_receiver(struct socket_link *link,
                                       const struct socket_listener *listener);
void tt_socket_resume_destroy(struct socket_link *link);
/* Sending, with two ways: as tt_socket_lane_send(), and what became of what was sent. */
ncclResult_t tt_socket_resume_send(struct socket_link *link, struct socket_lane *lane);
/* Receiving, with two ways, when a lane has brought nothing: see whether it comes anew. */
ncclResult_t tt_socket_resume_look(struct socket_link *link, struct socket_lane *lane);
/* The table's: moves what can be moved now of the request's connection. */
ncclResult_t tt_socket_test(void *opaque, int *done, int *size);

/* socket_lane.c: the system calls. Never block; bytes moved, or the link's error. */
void tt_socket_lane_add(struct socket_lane *lane, struct socket_part part);
ncclResult_t tt_socket_lane_send(struct socket_link *link, struct socket_lane *lane);
bool tt_socket_lane_is_early(const struct socket_lane *lane); /* it is left alone */
/* Nothing moved; so much is to come. */
void tt_socket_lane_missed(struct socket_lane *lane, size_t rest);
ncclResult_t tt_socket_lane_recv(struct socket_link *link, struct socket_lane *lane);
/* `rest`: how much is waited for, which decides how soon to look again where nothing came. */
ncclResult_t tt_socket_read(struct socket_link *link, struct socket_lane *lane,
                            struct iovec *pieces, int npieces, size_t rest, size_t *moved_out);
/* Bytes that were read too soon come first in the next call. */
ncclResult_t tt_socket_lane_put_back(struct socket_link *link, struct socket_lane *lane,
                                     const struct iovec pieces[2]);
/* socket_seal.c: a lane's secrecy in one direction. NULL: out of memory. */
struct socket_seal *tt_socket_seal_create(const unsigned char key[TT_SEAL_KEY_BYTES]);
void tt_socket_seal_destroy(struct socket_seal *seal);
/* As sendmsg and recvmsg would answer; EBADMSG: not what the other end sent. After -1 of the
 * sender the same bytes come first in the next call. */
ssize_t tt_socket_seal_send(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces);
ssize_t tt_socket_seal_recv(struct socket_seal *seal, int fd, const struct iovec *pieces,
                            int npieces);
/* Of one fixed-size message of the proof: ncclInProgress until all `len` bytes are moved,
 * ncclRemoteError when the other end went away. Quiet: it may be anyone. */
struct socket_transfer {
    bool sending;
    uint32_t done; /* 0 again at the end */
};
ncclResult_t tt_socket_transfer(int fd, struct socket_transfer *at, void *bytes, size_t len);
/* Options of a fresh TCP socket: no delay, buffer sizes. */
void tt_socket_tune(int fd);
/* Reports: the first failure of the link. */
bool tt_socket_is_gone(int err);
ncclResult_t tt_socket_link_broken(struct socket_link *link, ncclResult_t rc, const char *what);
