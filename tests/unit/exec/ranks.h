/* n ranks of one communicator inside a test: memory, edges and programs, without bootstrap.
 * Ranks may be told that they are in one process (pointers), in several (the peers' memory is
 * mapped a second time, at another address), that only slots are allowed, or that they share
 * nothing but the network (sockets over loopback; the test moves them on by world_serve()). */
#pragma once

#include "fake_bootstrap.h"
#include "fake_host.h"

#include "base/member.h"
#include "exec/exec.h"
#include "plugin/net/net.h"
#include "topo/topo.h"
#include "transport/transport.h"

#define WORLD_MAX 16

enum world_kind { WORLD_PROCESS, WORLD_MAPPED, WORLD_SHM, WORLD_NET };

struct world_rank {
    struct tt_member member;
    struct tt_peer_reach peers[WORLD_MAX];
    struct tt_net net; /* WORLD_NET */
    struct tt_transport *transport;
    struct tt_issue_queue queue;
    const struct tt_program *program; /* of `kept`, as the next */
    const uint8_t *refs;
    struct tt_edge *send[WORLD_MAX], *recv[WORLD_MAX];
    struct CUstream_st stream;
    struct world_kept *kept; /* owned list: all programs that ever ran there; its thread's */
};

struct world_kept {
    struct world_kept *older;
    struct tt_program *program; /* owned */
    uint8_t *refs;              /* owned */
};

struct world {
    int n, nchannels;
    enum world_kind kind;
    size_t slice_bytes;
    char *own, *alias; /* the same memory twice */
    size_t bytes, used;
    int ring[WORLD_MAX];
    struct tt_bootstrap boxes[WORLD_MAX];
    struct world_rank rank[WORLD_MAX];
};

struct world *world_create(int n, enum world_kind kind, size_t slice_bytes);
/* The same with edges on `nchannels` channels, in place of 4. */
struct world *world_create_wide(int n, enum world_kind kind, size_t slice_bytes, int nchannels);
void world_destroy(struct world *world);
/* WORLD_NET: connect and move the edges of all ranks, as their proxies would; true when something
 * moved. */
bool world_serve(struct world *world);
/* Zeroed range memory, 64-byte aligned plus `skew` bytes. Valid until world_reset(). */
char *world_memory(struct world *world, size_t bytes, size_t skew);
void world_reset(struct world *world);

struct world_call {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
    int root;
    size_t count;       /* per block where there are blocks */
    size_t chunk_limit; /* elements */
    ncclDataType_t type;
    ncclRedOp_t op;
    const char *in;
    char *out;
    size_t in_bytes, out_bytes;
    uint32_t fingerprint;
    int conn;
    enum tt_casts casts;
    bool stepwise; /* the interpreter runs it, not the flat list of small messages */
};
/* Make the program of one rank and bind it. Fails the test on error. */
void world_frame(struct world *world, int rank, const struct world_call *call,
                 struct tt_frame *frame);
/* Take over a program for one rank, with what its slots may refer to. */
void world_program(struct world *world, int rank, struct tt_program *program);
/* world_frame() for the program that was taken over last; func to root do not count. */
void world_bind(struct world *world, int rank, const struct world_call *call,
                struct tt_frame *frame);
/* world_frame(), as a work on the rank's stream. */
void world_submit(struct world *world, int rank, const struct world_call *call);
struct tt_work_spec world_spec(struct world *world, int rank, struct tt_frame *frames, int nframes);

/* Step ranks in random order until all streams are idle; fails the test when that takes for ever.
 * `seed` decides the interleaving. */
void world_run(struct world *world, unsigned seed);
