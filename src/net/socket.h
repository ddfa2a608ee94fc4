/* Types and functions of the socket network. Private to the room.
 *
 * A connection is one-way and has 1 + n TCP connections, its lanes. Lane 0 carries, for each
 * message, the length, the header and a small payload; the other lanes share the bytes of larger
 * payloads. With n = 0 lane 0 carries all. Both ends divide a message among the lanes by the same
 * rule, so the division is not sent. */
#pragma once

#include "net/net.h"
#include "net/socket_shake.h"
#include "net/socket_split.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    SOCKET_REQUESTS = NCCL_NET_MAX_REQUESTS,
    SOCKET_LANES = 1 + SOCKET_SPLIT_MOST,
    SOCKET_LENGTH_BYTES = 8, /* the length, and its complement */
};

struct socket_context;
struct socket_origin;
struct socket_link;

struct socket_request {
    struct socket_link *link; /* borrowed; NULL: free */
    char *bytes;
    size_t size; /* of the payload; receive: of the buffer, then of the payload */
    char *head;  /* receive: destination of the header */
    size_t head_bytes;
    struct tt_net_landing landing; /* receive */
    _Atomic int parts;             /* pieces that are not done, and the header */
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

/* When a part counts as done for its request. */
enum socket_done {
    SOCKET_DONE_MOVED,   /* moved, by the one thread that uses the connection */
    SOCKET_DONE_SHARED,  /* moved, by any of several threads */
    SOCKET_DONE_ARRIVED, /* sending, with two paths: received by the peer's host */
};

enum { SOCKET_ENDED = -1 }; /* in place of an errno: the peer closed the connection */

struct socket_lane {
    int fd;
    uint32_t misses; /* calls in a row that moved nothing */
    uint64_t not_before_nsec;
    struct socket_seal *seal; /* owned; NULL: bytes travel as they are */
    uint32_t first, last;     /* parts that are not done: [first, last) */
    uint32_t held; /* sending, with two paths: [held, first) were sent, but maybe not received */
    struct socket_part parts[2 * SOCKET_REQUESTS]; /* ring */
    uint64_t moved;                                /* bytes of its stream so far */
    enum socket_done done;
    /* with threads: what is above, but `done`, and below belongs to who has taken the lane */
    bool shared;
    _Atomic bool taken;
    _Atomic uint32_t posted; /* parts so far; who takes the lane sets `last` to it */
    bool helped; /* by a thread, which leaves what went wrong to the connection's user */
    int fault;   /* what that was: errno, SOCKET_ENDED; 0: nothing */
    /* with two paths */
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
    struct socket_resume *resume;   /* owned; NULL: there is only one path */
    struct socket_link *twin;       /* borrowed: the other direction over the same descriptors; the
                                       last of the two closes them. NULL: none */
    bool one_way;                   /* has no twin: the peer has a second interface */
    int nthreads;                   /* as wanted here */
    struct socket_threads *threads; /* owned; NULL: its user's thread moves all lanes */
    uint32_t turn;                  /* data lane of the next slice, minus one */
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
    struct socket_split split; /* of this end */
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
/* Sending, with two paths: the lane is being connected again; a thread leaves it alone. */
bool tt_socket_resume_is_moving(const struct socket_link *link, const struct socket_lane *lane);
/* Sending, with two paths: as tt_socket_lane_send(), and handle what the peer has received. */
ncclResult_t tt_socket_resume_send(struct socket_link *link, struct socket_lane *lane);
/* Receiving, with two paths, when a lane had no data: whether the peer has connected it again. */
ncclResult_t tt_socket_resume_look(struct socket_link *link, struct socket_lane *lane);
/* The same, at once. */
ncclResult_t tt_socket_resume_tend(struct socket_link *link, struct socket_lane *lane);
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
/* A thread has left that to the user of the connection. */
ncclResult_t tt_socket_lane_fault(struct socket_link *link, struct socket_lane *lane);
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
