/* Ports of adapters, and devices of the verbs network: each has one or more ports of one NIC. Found
 * once per process. */
#pragma once

#include "base/network/networks.h"
#include "nccl/net.h"
#include "net/ib/verbs.h"

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

/* A port of an adapter. The fields after `lock` are set while connections use the port. */
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
    _Atomic uint32_t fatal; /* count of asynchronous events that end connections of the port */
    pthread_mutex_t lock;   /* guards the fields below */
    int users;
    struct ibv_pd *pd;
    struct ib_region *regions; /* owned, sorted by first */
    size_t nregions, capacity;
    pthread_t watcher;
    int stop_fd; /* eventfd that ends the watcher */
};

struct ib_device {
    char name[IB_NAME_BYTES * 2];
    struct ib_port *ports[IB_MERGED];
    int nports;
};

struct tt_ib { /* tt_ib(): device.c fills it, others call the functions of `verbs` */
    struct tt_verbs verbs;
    struct ib_port ports[IB_PORTS];
    int nports;
    struct ib_device devices[IB_PORTS];
    int ndevices;
    pid_t pid; /* the process that opened them; forked children must not use them */
};

/* The adapters of the process; NULL: not searched for yet, or out of memory. */
static inline struct tt_ib *tt_ib(void)
{
    return tt_networks()->ib;
}

/* Number of devices; 0 when there are none, or no library. */
int tt_ib_devices(void);
/* The device; NULL: no such number. */
struct ib_device *tt_ib_device(int dev);
void tt_ib_properties(int dev, ncclNetProperties_v12_t *props);
/* Whether adapters may write to memory in any order (NCCL_IB_PCI_RELAXED_ORDERING). */
bool tt_ib_relaxed_ordering(void);
/* All connections over the adapter's ports have failed. */
void tt_ib_adapter_failed(const struct ibv_context *context);

/* ---- filter.c ---- */

/* Whether NCCL_IB_HCA selects the port. Sets its rail and plane from the list. */
bool tt_ib_port_taken(const char *list, struct ib_port *port);

/* ---- gid.c ---- */

/* The GID that the variables select, and its index. False: there is none. */
bool tt_ib_gid_choose(const struct ib_port *port, int *index_out, union ibv_gid *gid_out);

/* ---- memory.c: a port in use ---- */

/* Failures are reported. Pairs with tt_ib_port_release(). */
ncclResult_t tt_ib_port_acquire(struct ib_port *port);
void tt_ib_port_release(struct ib_port *port);
/* Register the pages of the memory for relaxed ordering. Registrations are counted: the same pages
 * are registered once. */
ncclResult_t tt_ib_region_acquire(struct ib_port *port, void *data, size_t bytes,
                                  struct ibv_mr **mr_out);
void tt_ib_region_release(struct ib_port *port, struct ibv_mr *mr);

/* ---- events.c ---- */

/* Start and stop the thread that reads the port's events. The port's lock is held. */
ncclResult_t tt_ib_watch_start(struct ib_port *port);
void tt_ib_watch_stop(struct ib_port *port);
