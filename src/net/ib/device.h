/* What the verbs network knows of the machine: ports, and devices made of one or more ports of one
 * card. Found once per process. */
#pragma once

#include "nccl/net.h"
#include "net/ib/verbs.h"
#include "net/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    IB_PORTS = 32,
    IB_MERGED = 4, /* ports of a device */
    IB_NAME_BYTES = 80,
};

struct ib_region { /* registered memory of a port, whole pages */
    uintptr_t first, end;
    int users;
    struct ibv_mr *mr; /* owned */
};

/* A port of an adapter. What follows `lock` is there while connections use the port. */
struct ib_port {
    char name[IB_NAME_BYTES]; /* of the adapter */
    struct ibv_context *context;
    uint8_t number;
    struct ibv_port_attr attr;
    uint64_t guid;
    int max_qp_wr, max_cqe;
    int speed_mbps;
    int16_t rail, plane;
    char pci_path[256]; /* "": none */
    char sysfs[256];    /* of the adapter */
    bool ethernet;
    _Atomic uint32_t fatal; /* asynchronous events that end what runs over the port */
    pthread_mutex_t lock;   /* of what follows */
    int users;
    struct ibv_pd *pd;
    struct ib_region *regions; /* owned, sorted by first */
    size_t nregions, capacity;
    pthread_t watcher;
    int stop_fd; /* wakes the watcher up for its end */
};

struct ib_device {
    char name[IB_NAME_BYTES * 2];
    struct ib_port *ports[IB_MERGED];
    int nports;
};

struct tt_ib { /* tt_nets.ib: device.c fills it, others call the functions of `verbs` */
    struct tt_verbs verbs;
    struct ib_port ports[IB_PORTS];
    int nports;
    struct ib_device devices[IB_PORTS];
    int ndevices;
    pid_t pid; /* that opened them: a child must not use them */
};

/* Number of devices; 0 when there are none, or no library. */
int tt_ib_devices(void);
/* NULL: there is none of that number. */
struct ib_device *tt_ib_device(int dev);
void tt_ib_properties(int dev, ncclNetProperties_v12_t *props);
/* True when memory may be written to in any order. */
bool tt_ib_relaxed_ordering(void);
/* What runs over the adapter's ports is lost. */
void tt_ib_adapter_failed(const struct ibv_context *context);

/* ---- filter.c ---- */

/* Does NCCL_IB_HCA take this port of the adapter? Its labels go to the last two. */
bool tt_ib_port_taken(const char *list, struct ib_port *port);

/* ---- gid.c ---- */

/* The index of the port's address that the variables ask for. False: there is none. */
bool tt_ib_gid_choose(const struct ib_port *port, int *index_out, union ibv_gid *gid_out);

/* ---- memory.c: a port in use ---- */

/* Failures are reported. Pairs with tt_ib_port_release(). */
ncclResult_t tt_ib_port_acquire(struct ib_port *port);
void tt_ib_port_release(struct ib_port *port);
/* Memory that adapters may write to in any order, whole pages of it, once however often it is
 * asked for. */
ncclResult_t tt_ib_region_acquire(struct ib_port *port, void *data, size_t bytes,
                                  struct ibv_mr **mr_out);
void tt_ib_region_release(struct ib_port *port, struct ibv_mr *mr);

/* ---- events.c ---- */

/* The thread that gets the port's events; under its lock. */
ncclResult_t tt_ib_watch_start(struct ib_port *port);
void tt_ib_watch_stop(struct ib_port *port);
