/* The machine as a graph: nodes, links, and the best path between any two. Private to the room.
 * Bandwidths are GB/s in float, because ties are decided by their exact value. */
#pragma once

#include "env.h"

#include "topo/file/words.h"
#include "topo/topo.h"

#include <stdint.h>

/* NCCL's order; also the order of node lists in reports. */
enum tt_topo_type {
    TT_NODE_GPU,
    TT_NODE_PCI,
    TT_NODE_NVS,
    TT_NODE_CPU,
    TT_NODE_NIC,
    TT_NODE_NET,
    TT_NODE_GIN,
    TT_NODE_RMA,
    TT_NODE_DEV,
    TT_NODE_CXB,
    TT_NODE_COUNT_,
};

#define TT_TOPO_NODES 640 /* of a type */
#define TT_TOPO_LINKS 576 /* of a node */
#define TT_TOPO_LOC_BW 5000.0f

struct tt_topo_node;

struct tt_topo_link {       /* fields from `budget` on are the search's; tt_search_budgets() */
    enum tt_path_type type; /* LOC, NVL, C2C, PIX (PCI), SYS, NET */
    float bw;
    struct tt_topo_node *peer;

    float budget; /* bandwidth that the search has not assigned to channels */
    struct tt_topo_link
        *back;              /* reverse link, if traffic on this link uses some of it; else NULL */
    float back_share;       /* the share that it uses: of traffic from a GPU, ... */
    float back_share_other; /* ... and of other traffic */
    bool intel;             /* leads to an Intel CPU */
};

struct tt_topo_path {
    enum tt_path_type type;
    float bw;
    int hops;
    struct tt_topo_link **links; /* owned array of `hops` links, which belong to their nodes */
};

struct tt_topo_node {
    enum tt_topo_type type;
    uint64_t id;                /* host in the top 8 bits */
    int index;                  /* among its type */
    struct tt_topo_link *links; /* owned; the order determines the results of searches */
    int nlinks, capacity;
    struct tt_topo_path *paths[TT_NODE_COUNT_]; /* owned; to every node of a type; NULL: none */
    uint32_t wave;                              /* `waves` when the path search visited it last */

    struct tt_topo_node *dev;      /* GPU: the device it is on */
    int rank, dev_number, cc, gdr; /* GPU; NET: dev_number, gdr */
    int ngpus;                     /* DEV: ranks on it */
    uint64_t busid;                /* DEV: of the GPU that it is a partition of, if it is one */
    bool is_part;                  /* GPU: a partition */
    uint64_t pci_id;        /* PCI, DEV: vendor, device, subsystem vendor, subsystem device */
    enum tt_topo_arch arch; /* CPU */
    enum tt_topo_vendor vendor;
    enum tt_topo_model model;
    float bw, budget, latency; /* NET */
    char *name; /* owned; NET: name in the file, without control characters; NULL: none */
    uint64_t guid, slot;
    int port, coll, max_conn, rail, plane;
    struct tt_topo_node *local_gpu; /* NET: its preferred GPU; NULL: none */
    uint32_t local_as_of;           /* NET: value of `changes` when local_gpu was found */
};

struct tt_topo_list {
    struct tt_topo_node **node; /* owned, and so are the nodes */
    int count, capacity;
};

struct tt_topo_system {
    struct tt_topo_list list[TT_NODE_COUNT_];
    struct tt_topo_env env;
    uint32_t waves;      /* number of levels of all path searches so far */
    uint32_t changes;    /* number of changes of paths, from 1 */
    uint64_t hosts[256]; /* host hashes by host number */
    int nhosts;
};

static inline int tt_topo_host(const struct tt_topo_node *node)
{
    return (int)(node->id >> 56);
}
static inline uint64_t tt_topo_id(int host, uint64_t local)
{
    return (uint64_t)host << 56 | (local & 0xffffffffffffffull);
}

/* Add a node. NULL: too many, or out of memory. */
struct tt_topo_node *tt_topo_node_new(struct tt_topo_system *system, enum tt_topo_type type,
                                      uint64_t id);
struct tt_topo_node *tt_topo_node_find(const struct tt_topo_system *system, enum tt_topo_type type,
                                       uint64_t id);
/* Remove a rank's GPU; its DEV node stays. Paths must be made again. */
void tt_topo_gpu_drop(struct tt_topo_system *system, struct tt_topo_node *gpu);
/* Remove and free a node that no link leads to. */
void tt_topo_node_drop(struct tt_topo_system *system, struct tt_topo_node *node);
/* Add a link; the bandwidth is added to an existing link of that type. False: too many, or out of
 * memory. */
bool tt_topo_link_add(struct tt_topo_node *from, struct tt_topo_node *to, enum tt_path_type type,
                      float bw);
bool tt_topo_link_both(struct tt_topo_node *a, struct tt_topo_node *b, enum tt_path_type type,
                       float bw);
/* The link from a link's far end back to `node`; NULL: none. */
struct tt_topo_link *tt_topo_link_back(const struct tt_topo_node *node,
                                       const struct tt_topo_link *link);
const char *tt_topo_type_name(enum tt_topo_type type);
/* Type of a link; the shortest path over PCI is a "PCI" link. */
const char *tt_topo_link_name(enum tt_path_type type);
/* Report what there is too much of, after a node or link could not be added. Returns the error. */
ncclResult_t tt_topo_too_large(const struct tt_topo_system *system);
/* Free all paths. */
void tt_topo_paths_drop(struct tt_topo_system *system);

static inline struct tt_topo_path *tt_topo_path(const struct tt_topo_node *from,
                                                const struct tt_topo_node *to)
{
    return &from->paths[to->type][to->index];
}
