/* A connection of the verbs network, and what both its ends agree on. Private to the folder.
 *
 * One-way. The receiver writes what it has posted (address, keys, room) into a table at the sender,
 * a slot per message; the sender answers with RDMA writes in one or more pieces, the last write of
 * each with immediate data that says which message and which piece it was. So it does not matter
 * over which queue pair a piece comes, nor in which order. */
#pragma once

#include "nccl/net.h"
#include "net/ib/device.h"
#include "net/ib/wire.h"
#include "net/net.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- one end ---- */

struct ib_context {
    void *oob; /* owned: of tt_net_socket, over which connections are made */
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
    size_t sizes[IB_PARTS]; /* receive: room, then what came */
};

struct ib_qp {
    struct ibv_qp *qp;   /* owned */
    _Atomic bool broken; /* the adapter reported so; by the watcher */
    int port, peer_port;
    int depth, queued; /* send queue: room, and what may still be in it */
    int receives;      /* posted */
    bool dead;
};

struct ib_slot {
    uint64_t number; /* of the message; 0: none yet */
    bool active;
    int nparts, filled;
    struct ib_request *requests[IB_PARTS]; /* receive: the first one only */
    uint32_t pieces;                       /* send: under way; receive: those that came */
    uint32_t waiting;                      /* send: pieces that find no room in a queue */
    int npieces;                           /* receive: 0 until the last one has come */
    uint32_t size;                         /* receive: as the last piece said */
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
    int turn;        /* send: the queue pair of the next piece */
    struct ib_slot slots[IB_SLOTS];
    struct ib_request requests[IB_SLOTS * IB_PARTS];
    struct ib_table *table;   /* owned; sender: what the receiver writes; receiver: its copy */
    struct ib_record *record; /* the same the other way round */
    struct ibv_mr *table_mrs[IB_MERGED], *record_mrs[IB_MERGED];
    struct ib_end to, from; /* notices */
    struct ib_notice notice_out, notice_in;
    uint32_t unsent[IB_QPS / 32]; /* queue pairs that the peer must still learn of */
    uint64_t look_nsec, gone_nsec;
    uint64_t probe_nsec; /* send: when the receiver's record is read; 0: not wanted */
    bool probing;
    uint32_t idle;
    char text[160]; /* which peer, for sentences */
};

/* What a completion says of itself. */
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

/* Ports and memory; queues come with tt_ib_qps_create(). Failures are reported. */
ncclResult_t tt_ib_comm_create(struct ib_context *context, int dev, bool sending,
                               struct ib_comm **comm_out);
void tt_ib_comm_destroy(struct ib_comm *comm);
/* Keep the first failure and report it, with who is at the other end. */
ncclResult_t tt_ib_comm_fail(struct ib_comm *comm, ncclResult_t rc, const char *what);
/* NULL: all are in use. */
struct ib_request *tt_ib_request_take(struct ib_comm *comm);
/* The queue pair to be used in place of `qp`; -1: none is left. */
int tt_ib_qp_alive(const struct ib_comm *comm, int qp);

/* ---- qp.c ---- */

/* `nqps` of them, ready to be connected; their numbers are in comm->own. Failures are reported. */
ncclResult_t tt_ib_qps_create(struct ib_comm *comm, uint32_t nqps);
/* With comm->peer known: until they send and receive. Failures are reported. */
ncclResult_t tt_ib_qps_connect(struct ib_comm *comm);
ncclResult_t tt_ib_qp_receive(struct ib_comm *comm, int qp);

/* ---- join.c ---- */

ncclResult_t tt_ib_listen(struct ib_context *context, int dev, void *opaque, void **listen_comm);
ncclResult_t tt_ib_accept(void *listen_comm, void **recv_comm);
ncclResult_t tt_ib_close_listen(void *listen_comm);
ncclResult_t tt_ib_connect(struct ib_context *context, int dev, void *opaque, void **send_comm);
void tt_ib_connectors_free(struct ib_context *context);
/* Post a message of `bytes` over TCP; then ask until it is done. Failures are reported. */
ncclResult_t tt_ib_end_post(struct ib_end *end, bool sending, void *message, size_t bytes);
ncclResult_t tt_ib_end_done(struct ib_end *end, bool *done);

/* ---- send.c, receive.c ---- */

/* *request_out NULL: not now. */
ncclResult_t tt_ib_isend(struct ib_comm *comm, const struct ib_request *wanted, int tag,
                         struct ib_request **request_out);
void tt_ib_piece_done(struct ib_comm *comm, const struct ib_work *work);
/* The receiver has all of it. */
void tt_ib_slot_done(struct ib_slot *slot);
/* Post again what found no room, or was lost with a queue pair. */
ncclResult_t tt_ib_send_waiting(struct ib_comm *comm);

struct ib_receive {
    int n;
    void **data;
    const size_t *sizes;
    const int *tags;
    void **mhandles;
};
ncclResult_t tt_ib_irecv(struct ib_comm *comm, const struct ib_receive *receive,
                         struct ib_request **request_out);
ncclResult_t tt_ib_piece_came(struct ib_comm *comm, uint32_t imm);
ncclResult_t tt_ib_table_again(struct ib_comm *comm);

/* ---- progress.c ---- */

/* Look for completions, events, notices. */
ncclResult_t tt_ib_progress(struct ib_comm *comm);

/* ---- failover.c ---- */

/* The queue pair has failed: go on over others, or the connection has failed. */
ncclResult_t tt_ib_qp_lost(struct ib_comm *comm, int qp, const char *why);
/* What the peer said. */
ncclResult_t tt_ib_notice_came(struct ib_comm *comm);
/* Send: a queue pair is lost, and the receiver may have all it wanted and never look again. */
ncclResult_t tt_ib_probe(struct ib_comm *comm);
void tt_ib_probe_came(struct ib_comm *comm, bool good);
/* A receive of a dead queue pair came back, or there is something to be said. */
ncclResult_t tt_ib_notice_send(struct ib_comm *comm);
