/* The parts of our network plugin: NCCL's network interface over libfabric's reliable datagrams
 * with tags. It sees include/ only, so that NCCL loads it, too. docs/rooms/net.md has the design.
 * A domain is one device as a communicator uses it, with one lock; its endpoints carry up to a
 * fixed number of connections each, so that what is posted always has room. */
#pragma once

#include "control.h"

#include "nccl/net.h"

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OFI_PARTS = 8,      /* of a grouped receive */
    OFI_IN_FLIGHT = 32, /* messages under way per connection */
    OFI_WINDOW = 32,    /* messages of one tag that may not have been received yet */
    OFI_REPORT = 16,    /* received messages of one tag that the sender need not know of */
    OFI_TAGS = 64,      /* tags of a connection that have such messages */
    OFI_NAME_BYTES = 64,
    OFI_ADDRESS_BYTES = 128, /* of an endpoint */
};

struct ofi_device {       /* the process's, never changed after it was found */
    struct fi_info *info; /* owned */
    char name[OFI_NAME_BYTES], provider[OFI_NAME_BYTES];
    char *pci_path; /* owned; NULL: unknown */
    uint64_t guid;
    int mbps;
    bool in_line; /* a message that no receive was posted for holds up all that come behind it */
    struct ofi_address control;
};

/* ---- process.c ---- */

struct ofi_domain;

struct ofi_pending {     /* a connector that has not come to its end; the ABI cannot give it up */
    struct ofi_net *net; /* borrowed; NULL: in no list */
    struct ofi_pending *next;
};

struct ofi_net {                 /* of a communicator; up to version 10 of the process */
    struct ofi_domain **domains; /* owned; by device, NULL: not in use */
    struct ofi_pending *pending; /* owned */
};

struct ofi_process {
    pthread_mutex_t lock;
    _Atomic(ncclDebugLogger_t) log; /* of the last init; read where there is a line to log */
    struct ofi_device *devices;     /* owned */
    int ndevices;
    struct ofi_domain *left; /* owned, to the end of the process: without users */
    struct ofi_net common;   /* of hosts that know no communicators */
};
extern struct ofi_process ofi_process;

/* A line at level WARN; returns rc. */
ncclResult_t ofi_fail(ncclResult_t rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line at level INFO. */
void ofi_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t ofi_now_nsec(void);
void ofi_pending_add(struct ofi_net *net, struct ofi_pending *pending);
void ofi_pending_remove(struct ofi_pending *pending);
/* Remove any. NULL: there is none. */
struct ofi_pending *ofi_pending_pop(struct ofi_net *net);

/* ---- device.c ---- */

/* Find the devices, once in a process. Errors: none, or libfabric's. The process's lock is held. */
ncclResult_t ofi_devices_find(void);

/* ---- endpoint.c: all but ofi_domain_* with the domain's lock held ---- */

struct ofi_comm;
struct ofi_request;

struct ofi_op {                 /* what libfabric knows of a message under way */
    struct fi_context2 context; /* first: completions name it */
    struct ofi_request *request;
    int part;
};

struct ofi_request {
    struct ofi_request *next; /* of the connection, or of the free ones */
    struct ofi_comm *comm;
    int parts, left;
    int tags[OFI_PARTS], sizes[OFI_PARTS];
    int error; /* of libfabric; 0: none */
    struct ofi_op ops[OFI_PARTS];
};

struct ofi_requests { /* memory for some */
    struct ofi_requests *next;
    struct ofi_request list[16];
};

struct ofi_peer { /* an address that is in the table of addresses */
    char address[OFI_ADDRESS_BYTES];
    fi_addr_t number;
};

struct ofi_endpoint {
    struct ofi_endpoint *next;
    struct ofi_domain *domain;
    struct fid_ep *ep;      /* owned; NULL: broken */
    struct fid_ep *left_ep; /* owned: of a domain that was left */
    struct fid_cq *cq;      /* owned */
    struct fid_av *av;      /* owned */
    char address[OFI_ADDRESS_BYTES];
    int users[2], most; /* receiving and sending connections, and how many of each it takes */
    uint32_t next_id;
    struct ofi_peer *peers; /* owned */
    int npeers;
    struct ofi_requests *memory; /* owned */
    struct ofi_request *free;
    struct ofi_comm *closing; /* owned: closed, but what they sent has not been received yet */
};

struct ofi_domain {
    pthread_mutex_t lock;
    const struct ofi_device *device;
    struct ofi_net *net; /* borrowed */
    int users;           /* the process's lock guards it */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct ofi_endpoint *endpoints; /* owned */
    uint64_t next_key;
    bool left; /* as it is: its objects of libfabric stay, and are not called any more */
    struct ofi_endpoint *left_endpoints; /* owned: without users */
    struct ofi_domain *next;             /* among those of the process that were left */
};

ncclResult_t ofi_domain_acquire(struct ofi_net *net, int dev, struct ofi_domain **domain_out);
/* One user more of a domain that is in use. */
void ofi_domain_share(struct ofi_domain *domain);
void ofi_domain_release(struct ofi_domain *domain);

ncclResult_t ofi_endpoint_acquire(struct ofi_domain *domain, bool sending,
                                  struct ofi_endpoint **endpoint_out);
/* The last user's ends it. */
void ofi_endpoint_release(struct ofi_endpoint *endpoint, bool sending);
/* End all of its traffic now: its users' memory is not touched any more. May end all other
 * endpoints of the domain as well. */
void ofi_endpoint_break(struct ofi_endpoint *endpoint);
ncclResult_t ofi_endpoint_peer(struct ofi_endpoint *endpoint, const char *address,
                               fi_addr_t *number);
/* NULL: out of memory. */
struct ofi_request *ofi_request_take(struct ofi_endpoint *endpoint);
void ofi_request_give(struct ofi_endpoint *endpoint, struct ofi_request *request);
/* Move what can be moved, and note what is done in its request. */
void ofi_endpoint_progress(struct ofi_endpoint *endpoint);

/* ---- comm.c: a connection, with the domain's lock held ---- */

struct ofi_window { /* of a tag */
    int tag;
    uint32_t open;   /* sent and not known to be received; received and not reported */
    uint32_t credit; /* in line: receives that wait for a message; posted and not reported */
};

struct ofi_comm {
    struct ofi_comm *next; /* among those that are closing */
    struct ofi_domain *domain;
    struct ofi_endpoint *endpoint;
    bool sending, lost, ended; /* lost: the other end is gone; ended: it said so */
    uint32_t id;               /* of the receiving end's endpoint: the upper half of tags */
    fi_addr_t peer;            /* of a sender */
    int in_flight;             /* messages */
    struct ofi_request *requests;
    struct ofi_control control;
    struct ofi_window windows[OFI_TAGS];
    int nwindows;
    bool unreported;                  /* some credit of a receiver */
    uint64_t listen_nsec, pause_nsec; /* of a sender that waits: when it reads again */
    uint64_t moved, promised; /* messages received; messages that were sent, once it has ended */
    uint64_t lost_nsec;
    uint32_t looks;
    ncclResult_t failed; /* reported */

    char peer_words[OFI_PEER_BYTES];
};

/* Takes over the socket; on an error it is closed. */
ncclResult_t ofi_comm_create(struct ofi_domain *domain, bool sending, int fd,
                             struct ofi_comm **comm_out);
/* Withdraws what is under way. Takes the domain's lock itself and releases the domain. */
void ofi_comm_close(struct ofi_comm *comm);
/* May a message of this tag be sent? */
bool ofi_comm_may_send(struct ofi_comm *comm, int tag);
/* Count a message that was handed over to libfabric, or one that was received. */
void ofi_comm_count(struct ofi_comm *comm, int tag);
/* A receive of this tag is posted: where messages stand in line the sender learns of it. */
void ofi_comm_posted(struct ofi_comm *comm, int tag);
/* Nothing moves: is the other end still there? */
ncclResult_t ofi_comm_look(struct ofi_comm *comm);
/* Post one message of a request. 0, -FI_EAGAIN, or libfabric's error. */
ssize_t ofi_comm_post(struct ofi_comm *comm, struct ofi_request *request, int part, void *data,
                      size_t bytes, void *desc);
/* A sentence about the connection, once; returns rc. */
ncclResult_t ofi_comm_fail(struct ofi_comm *comm, ncclResult_t rc, const char *what);

/* ---- join.c, transfer.c: the functions of version 12 ---- */

ncclResult_t ofi_listen(void *ctx, int dev, void *handle, void **listen_comm);
ncclResult_t ofi_connect(void *ctx, int dev, void *handle, void **send_comm);
ncclResult_t ofi_accept(void *listen_comm, void **recv_comm);
ncclResult_t ofi_close_listen(void *listen_comm);
/* End all connectors that have not come to their end. */
void ofi_give_up(struct ofi_net *net);

ncclResult_t ofi_reg(void *comm, void *data, size_t bytes, int type, void **mhandle);
ncclResult_t ofi_dereg(void *comm, void *mhandle);
ncclResult_t ofi_isend(void *send_comm, void *data, size_t bytes, int tag, void *mhandle,
                       void **request);
struct ofi_group { /* a receive */
    int n;
    void **data, **mhandles;
    const size_t *sizes;
    const int *tags;
};
ncclResult_t ofi_irecv(void *recv_comm, const struct ofi_group *group, void **request);
ncclResult_t ofi_test(void *request, int *done, int *sizes);
