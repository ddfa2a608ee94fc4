/* The network that the test plugins of versions 2 to 12 have in common: TCP over loopback, strict
 * with its host and awkward within the contract. net_outsider.c moves bytes, net_outsider_tables.c
 * has a table for each version. */
#pragma once

#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTSIDER_PARTS = 3 }; /* receives in one request, with OUTSIDER_GROUPS */

/* What a version's interface says, for the part that all share. */
struct outsider_device {
    char *name, *path;
    uint64_t guid;
    int types, mbps, port, most_comms, most_recvs;
    float latency;
};

struct outsider_post {
    void *data;
    size_t bytes;
    int tag; /* -1: the version has none */
    void *mhandle;
};

/* True when OUTSIDER_FAIL (OUTSIDER_FAULT) names it. */
bool outsider_fails(const char *what);
bool outsider_fault(const char *what);

/* Versions up to 10: a second init is an error, as some plugins have it. */
ncclResult_t outsider_begin(ncclDebugLogger_t log);
/* A line of the host's log. */
void outsider_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
ncclResult_t outsider_wrong(const char *what);

ncclResult_t outsider_devices(int *ndev);
ncclResult_t outsider_make_virtual(int *dev, const int *members, int count);
ncclResult_t outsider_device(int dev, struct outsider_device *device);
/* IPv4, in network order, that others can connect to. */
uint32_t outsider_address(void);
/* `handle_bytes` of the handle are used, all of them. */
ncclResult_t outsider_listen(int dev, void *handle, size_t handle_bytes, void **listen_comm);
/* `wait`: return with a connection only, as versions up to 4 do. */
ncclResult_t outsider_connect(int dev, void *handle, size_t handle_bytes, bool wait,
                              void **send_comm);
ncclResult_t outsider_accept(void *listen_comm, bool wait, void **recv_comm);
ncclResult_t outsider_reg(void *comm, void *data, size_t bytes, int type, void **mhandle);
/* The registration is good for all connections, as versions from 8 on say of theirs. */
ncclResult_t outsider_reg_global(void *comm, void *data, size_t bytes, int type, void **mhandle);
ncclResult_t outsider_dereg(void *comm, void *mhandle);
ncclResult_t outsider_post(void *comm, const struct outsider_post *posts, int count,
                           void **request);
ncclResult_t outsider_test(void *request, int *done, int *sizes);
ncclResult_t outsider_close(void *comm);
ncclResult_t outsider_close_listen(void *listen_comm);
ncclResult_t outsider_consumed(void *comm, int n, void *request);
