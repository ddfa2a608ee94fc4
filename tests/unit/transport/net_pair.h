/* Two ranks of one process with network edges between them: the built-in network over loopback, as
 * it is or as a plugin that only has the ABI, real proxies, a mailbox in place of the bootstrap. */
#pragma once

#include "../check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "net/socket.h"
#include "plugin/net/net.h"
#include "proxy/proxy.h"
#include "transport/transport.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 4096
enum { USER_BYTES = 32 * SLICE, CHANNELS = 12, POOL_BYTES = 4 * 4 * (SLICE + 64) };

struct rank {
    struct tt_member member;
    struct tt_peer_reach peers[2];
    struct tt_net net;
    void *inbox;
    struct tt_transport *transport;
    struct tt_proxy *proxy;
};

extern struct rank ranks[2];
extern char reported[640];    /* to all ranks, last */
extern _Atomic int nreported; /* errors told to the bootstrap */
/* After so many looks the bootstrap knows of an error of another rank; 0: of none. */
extern _Atomic int known_after;
extern bool gathers; /* the built-in as it is; false: as a plugin */
/* What the network is asked for, and how it behaves. */
extern _Atomic int nposted;     /* receives that it took */
extern _Atomic int nregistered; /* regions that it has registered */
extern _Atomic int nuser;       /* messages that it took from, or put into, users' memory */
extern _Atomic int nclosed;     /* connections for receiving */
extern _Atomic int nlistening;  /* listeners that are open */
extern _Atomic int nlistened;   /* listeners so far */
extern bool refuses;            /* registrations of users' memory */
/* Set once both ends of the first connection are there: what fails of the next one. */
enum fault { FAULT_NONE, FAULT_CONNECT, FAULT_ACCEPT, FAULT_REGISTER, FAULT_TEST };
extern _Atomic int fault, nfaults; /* enum fault; how often it was met */
extern _Atomic bool withholds;     /* nothing is taken from users' memory just now */
extern char *users[2];             /* memory of each rank's user, USER_BYTES; NULL: none */

void rank_open(int r);
void rank_close(int r);
/* The rank's end of the edge to the other one. */
struct tt_edge *edge_of(int r, int conn, bool sending);
struct tt_edge *edge_at(int r, int channel, int conn, bool sending);
/* The bootstrap of the rank. */
struct tt_bootstrap *box_of(int r);

/* Message number k, whose length and bytes follow from k; false: not now. */
bool try_send(struct tt_edge *edge, int k);
bool try_receive(struct tt_edge *edge, int k);

/* Run the tests, as the arguments say: `abi` for a plugin. */
int run_all(int argc, char **argv, const struct CMUnitTest *tests, size_t ntests);
