/* A connection of the verbs network and its protocol. Private to the folder.
 *
 * A connection is one-way. The receiver writes its posted receives (address, keys, size) by RDMA
 * into a table at the sender, one slot per message. The sender writes the message by RDMA, in one
 * or more pieces. The last write of a piece carries immediate data with the message and the piece,
 * so pieces may arrive over any queue pair and in any order. */
#pragma once

#include "nccl/net.h"
#include "net/ib/device.h"
#include "net/ib/wire.h"
#include "net/net.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- one end ---- */

struct ib_context {
    void *oob; /* owned: context of tt_net_socket, for the handshakes */
    int rank;
    int traffic_class;
    pthread_mutex_t lock;
    struct ib_connector *connectors; /* owned */
};

struct ib_mhandle {
    struct ibv_mr *mrs[IB_MERGED];
};

struct ib_request {
    struct ib_comm *comm; /* borrowed; NULL: free */
    char *data;
    size_t size;
    const struct ib_mhandle *mhandle;
    uint32_t slot;
    bool done;
    int nparts;
    size_t sizes[IB_PARTS]; /* receive: size of the buffer, then of the message */
};

struct ib_qp {
    struct ibv_qp *qp;   /* owned */
    _Atomic bool broken; /* the adapter reported a failure; set by the watcher */
    int port, peer_port;
    int depth, queued; /* send queue: capacity, and work requests that may be in it */
    int receives;      /* posted receives */
    bool dead;
};

struct ib_slot {
    uint64_t number; /* of the message; 0: none yet */
    bool active;
    int nparts, filled;
    struct ib_request *requests[IB_PARTS]; /* receive: the first one only */
    uint32_t pieces;                       /* bits; send: in flight; receive: arrived */
    uint32_t waiting;                      /* bits; send: pieces that no queue had room for */
    int npieces;                           /* receive: 0 until the last piece has arrived */
    uint32_t size;                         /* receive: from the last piece */
    uint8_t routes[IB_PIECES];
};

struct ib_end { /* a one-way stream of fixed-size messages over TCP */
    void *comm, *request;
};

struct ib_comm {
    bool sending;
    ncclResult_t error; /* the first failure; sticky */
    struct ib_context *context;
    struct ib_device *device;
    int nports; /* acquired */
    uint32_t fatal[IB_MERGED];
    struct ibv_cq *cqs[IB_MERGED];
    struct ib_hello own, peer;
    int npieces, nqps;
    bool failover, adaptive;
    size_t adaptive_bytes;
    struct ib_qp qps[IB_QPS];
    uint64_t number; /* of the next message, from 1 */
    int turn;        /* send: queue pair of the next piece */
    struct ib_slot slots[IB_SLOTS];
    struct ib_request requests[IB_SLOTS * IB_PARTS];
    struct ib_table *table;   /* owned; sender: written by the receiver; receiver: its copy */
    struct ib_record *record; /* owned; receiver: written by the sender; sender: its copy */
    struct ibv_mr *table_mrs[IB_MERGED], *record_mrs[IB_MERGED];
    struct ib_end to, from; /* notices */
    struct ib_notice notice_out, notice_in;
    uint32_t unsent[IB_QPS / 32]; /* lost queue pairs, not yet reported to the peer */
    uint64_t look_nsec, gone_nsec;
    uint64_t probe_nsec; /* send: when to read the receiver's record; 0: never */
    bool probing;
    uint32_t idle;
    char text[160]; /* the peer, for messages */
};

/* The work request id, which completions return. */
enum ib_kind { IB_KIND_RECEIVE, IB_KIND_PIECE, IB_KIND_TABLE, IB_KIND_PROBE };
struct ib_work {
    uint8_t kind, qp, slot, piece;
    uint16_t turn, count; /* count: work requests that it completes */
};
static inline uint64_t ib_work_pack(struct ib_work work)
{
    return (uint64_t)work.kind << 56 | (uint64_t)work.qp << 48 | (uint64_t)work.slot << 40 |
           (uint64_t)work.piece << 32 | (uint64_t)work.turn << 16 | work.count;
}
static inline struct ib_work ib_work_unpack(uint64_t id)
{
    return (struct ib_work){.kind = (uint8_t)(id >> 56),
                            .qp = (uint8_t)(id >> 48),
                            .slot = (uint8_t)(id >> 40),
                            .piece = (uint8_t)(id >> 32),
                            .turn = (uint16_t)(id >> 16),
                            .count = (uint16_t)id};
}

/* ---- comm.c ---- */

/* Make a connection's ports and memory; tt_ib_qps_create() makes its queue pairs. Failures are
 * reported. */
ncclResult_t tt_ib_comm_create(struct ib_context *context, int dev, bool sending,
                               struct ib_comm **comm_out);
/* Release everything. Accepts NULL and half-built connections. */
void tt_ib_comm_destroy(struct ib_comm *comm);
/* Store and report the first failure, with the name of the peer. Returns the stored one. */
ncclResult_t tt_ib_comm_fail(struct ib_comm *comm, ncclResult_t rc, const char *what);
/* A free request; NULL: all are in use. */
struct ib_request *tt_ib_request_take(struct ib_comm *comm);
/* The queue pair to use in place of `qp`, or `qp` itself; -1: all have failed. */
int tt_ib_qp_alive(const struct ib_comm *comm, int qp);

/* ---- qp.c ---- */

/* Make `nqps` queue pairs; their numbers are in comm->own. Failures are reported. */
ncclResult_t tt_ib_qps_create(struct ib_comm *comm, uint32_t nqps);
/* Connect them to those of comm->peer: ready to send and receive. Failures are reported. */
ncclResult_t tt_ib_qps_connect(struct ib_comm *comm);
/* Post receives on the queue pair, up to IB_RECEIVES. Failures are reported. */
ncclResult_t tt_ib_qp_receive(struct ib_comm *comm, int qp);

/* ---- join.c ---- */

/* The functions of the network's table (ncclNet): *recv_comm and *send_comm stay NULL until the
 * connection is made; call again. Failures are reported. */
ncclResult_t tt_ib_listen(struct ib_context *context, int dev, void *opaque, void **listen_comm);
ncclResult_t tt_ib_accept(void *listen_comm, void **recv_comm);
ncclResult_t tt_ib_close_listen(void *listen_comm);
ncclResult_t tt_ib_connect(struct ib_context *context, int dev, void *opaque, void **send_comm);
/* End all connections that tt_ib_connect() has begun. */
void tt_ib_connectors_free(struct ib_context *context);
/* Start sending or receiving a message of `bytes` over TCP; call tt_ib_end_done() until it is done.
 * Failures are reported. */
ncclResult_t tt_ib_end_post(struct ib_end *end, bool sending, void *message, size_t bytes);
ncclResult_t tt_ib_end_done(struct ib_end *end, bool *done);

/* ---- send.c, receive.c ---- */

/* Start a send. *request_out NULL: no matching receive is posted, or no request is free; try again.
 */
ncclResult_t tt_ib_isend(struct ib_comm *comm, const struct ib_request *wanted, int tag,
                         struct ib_request **request_out);
/* A write of a piece has completed. */
void tt_ib_piece_done(struct ib_comm *comm, const struct ib_work *work);
/* The message has arrived as a whole: its requests are done. */
void tt_ib_slot_done(struct ib_slot *slot);
/* Post pieces that no queue had room for, or that were lost with a queue pair. */
ncclResult_t tt_ib_send_waiting(struct ib_comm *comm);

struct ib_receive {
    int n;
    void **data;
    const size_t *sizes;
    const int *tags;
    void **mhandles;
};
/* Post a receive of one or more buffers. *request_out NULL: no slot is free; try again. */
ncclResult_t tt_ib_irecv(struct ib_comm *comm, const struct ib_receive *receive,
                         struct ib_request **request_out);
/* A piece has arrived; imm: its immediate data. */
ncclResult_t tt_ib_piece_came(struct ib_comm *comm, uint32_t imm);
/* Write the table's active slots to the sender again, after a queue pair was lost. */
ncclResult_t tt_ib_table_again(struct ib_comm *comm);

/* ---- progress.c ---- */

/* Handle completions, events of adapters, and notices. */
ncclResult_t tt_ib_progress(struct ib_comm *comm);

/* ---- failover.c ---- */

/* The queue pair has failed: continue over the others; error: none is left. */
ncclResult_t tt_ib_qp_lost(struct ib_comm *comm, int qp, const char *why);
/* Handle a notice of the peer. */
ncclResult_t tt_ib_notice_came(struct ib_comm *comm);
/* Sender, after a lost queue pair: read the receiver's record, since the receiver may have all its
 * messages and send no notice. */
ncclResult_t tt_ib_probe(struct ib_comm *comm);
/* The read has completed; good: with success. */
void tt_ib_probe_came(struct ib_comm *comm, bool good);
/* Send a notice to the peer, where one is due. */
ncclResult_t tt_ib_notice_send(struct ib_comm *comm);
