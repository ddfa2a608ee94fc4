/* Two ends of the socket network in one process, for tests. */
#pragma once

#include "net/net.h"

struct end { /* one rank's use of the network */
    void *ctx;
    struct tt_net_trust trust;
};

struct pair {
    struct end from, to;
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    void *listen_comm, *send_comm, *recv_comm;
};

/* Contexts of ranks 0 and 1 with one key, and a listener of rank 1. */
void pair_open(struct pair *pair);
/* Connect and accept in turn until both are there. */
void pair_join(struct pair *pair);
void pair_close(struct pair *pair);

/* Post until the network takes it. */
void *pair_send(struct pair *pair, const void *bytes, size_t size);
void *pair_recv(struct pair *pair, void *bytes, size_t room);
/* Test until done; ncclSuccess and the size, or the error. */
ncclResult_t pair_wait(void *request, int *size_out);
