/* The machine as a graph, and what is computed from it: nodes, paths, rings, trees, channels. Input
 * are machine files and variables; only file/detect*.c reads from the host itself. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_MAX_CHANNELS 64

/* Location of one rank. */
struct tt_topo_rank {
    int node; /* index of its host, by first appearance in rank order */
    int local_rank;
    char bus_id[16];
};

struct tt_tree_links { /* a rank's neighbours in one tree; -1: none */
    int parent;
    int child[3];
};

struct tt_topo_plan { /* owned by the caller of tt_topo_plan_make; free with tt_topo_plan_free */
    int nranks, nnodes, nchannels;
    int p2p_channels, p2p_per_peer, nvls_channels; /* on the emulated machine; for logs */
    struct tt_topo_layout *layout; /* owned; from a machine file; NULL: flat hosts */
    int nrings, ntrees;            /* distinct ones */
    int ring_of[TT_MAX_CHANNELS];  /* number of a channel's ring */
    int tree_of[TT_MAX_CHANNELS];  /* number of a channel's tree */
    int *ring[TT_MAX_CHANNELS];    /* ring[i][k] = rank at position k, nranks entries */
    struct tt_tree_links *tree[TT_MAX_CHANNELS]; /* links of every rank */
    int *by_host;    /* owned: all ranks, host by host; NULL: not known */
    int *host_first; /* owned, [nnodes + 1]: their begins and the end there; NULL: equal hosts */
};

static inline const int *tt_topo_ring(const struct tt_topo_plan *plan, int channel)
{
    return plan->ring[plan->ring_of[channel]];
}
static inline const struct tt_tree_links *tt_topo_tree(const struct tt_topo_plan *plan, int channel)
{
    return plan->tree[plan->tree_of[channel]];
}

/* Rings and trees of a communicator; deterministic, equal on all ranks.
 * nchannels_requested  1..TT_MAX_CHANNELS (beyond: cut down); 0: own rule (two: one for each tree)
 * plan_out        filled only on success
 * Errors: ncclInvalidArgument naming a rank whose node number is not by first appearance;
 * ncclSystemError when memory is short. */
ncclResult_t tt_topo_plan_make(const struct tt_topo_rank *ranks, int nranks,
                               int nchannels_requested, struct tt_topo_plan *plan_out);
void tt_topo_plan_free(struct tt_topo_plan *plan);

/* ---- machine files (NCCL's XML), for tools and for hosts that emulate another machine ---- */

struct tt_topo_file; /* a checked machine file; opaque */

/* Read and check. `name` stands for the file in messages. *file_out: free with tt_topo_file_free().
 * Errors: ncclInvalidUsage "NAME:LINE: ..." for whatever is wrong with the content;
 * ncclSystemError when it cannot be read. Bounded in time and memory by the length of the text. */
ncclResult_t tt_topo_file_parse(const char *name, const char *text, size_t text_bytes,
                                struct tt_topo_file **file_out);
ncclResult_t tt_topo_file_read(const char *path, struct tt_topo_file **file_out);
/* The machine that this runs on: NUMA domains with CPUs by hwloc, GPUs and NVLinks by NVML where it
 * can be loaded, InfiniBand ports or else network interfaces that are up, and the PCI elements
 * above them. Missing rights or files leave something out and are no error. Takes milliseconds (the
 * GPUs some tens more): once per host, not per rank. Any thread. HWLOC_FSROOT reads a recorded
 * tree. Errors: ncclSystemError when not even the CPUs can be read or memory is short. */
ncclResult_t tt_topo_detect(struct tt_topo_file **file_out);
void tt_topo_file_free(struct tt_topo_file *file); /* accepts NULL */

/* Warnings: lines "NAME:LINE: warning: ...", "" when there are none. Valid as long as the file. */
const char *tt_topo_file_warnings(const struct tt_topo_file *file);
/* The file as XML that NCCL can load. Caller frees; NULL when memory is short. */
char *tt_topo_file_print(const struct tt_topo_file *file);

/* ---- the machine as a graph, with paths ---- */

struct tt_topo_system; /* nodes, links, paths; opaque */

struct tt_topo_config { /* of ncclConfig_t; 0: not set, so variables and rules decide */
    int ctas_least, ctas_most, nvls_ctas, net_peer_channels, p2p_peers;
};

struct tt_topo_options { /* how to make a graph from a file */
    int hosts;           /* copies of the machine in one NVLink domain; 0 or 1: one machine */
    bool fused;          /* elements in the order of a running communicator, else as in the file */
    bool as_is;          /* elements are final: NICs joined, in order, ranks from 0 */
    bool no_multicast, no_collnet;       /* whatever variables say */
    const struct tt_topo_config *config; /* borrowed; NULL: none */
};

/* Warn of variables about paths that are not understood (tt_warn_setting()): with them there is no
 * graph, and the channels are those of a flat host. */
void tt_topo_env_check(void);

/* Build the graph and all paths; obeys NCCL's variables about P2P, PXN, GPU-direct and net choice.
 * Errors: ncclInvalidUsage when the machine is beyond the limits (640 nodes of a type),
 * ncclSystemError when memory is short. */
ncclResult_t tt_topo_system_make(const struct tt_topo_file *file,
                                 const struct tt_topo_options *options,
                                 struct tt_topo_system **system_out);
void tt_topo_system_free(struct tt_topo_system *system); /* accepts NULL */

/* The members "system", "paths" and "access" of a machine report, as JSON text without the
 * enclosing braces. Caller frees; NULL when memory is short. */
char *tt_topo_system_json(const struct tt_topo_system *system);

/* ---- channel graphs of a node ---- */

/* Types of links and of paths; smaller is better. */
enum tt_path_type {
    TT_PATH_LOC,
    TT_PATH_NVL,
    TT_PATH_NVB,
    TT_PATH_C2C,
    TT_PATH_PIX, /* as a link: PCI */
    TT_PATH_PXB,
    TT_PATH_P2C,
    TT_PATH_PXN,
    TT_PATH_PHB,
    TT_PATH_SYS,
    TT_PATH_NET,
    TT_PATH_DIS,
    TT_PATH_COUNT_,
};
const char *tt_path_type_name(enum tt_path_type type);

/* NCCL's graph ids. */
enum tt_graph_kind {
    TT_GRAPH_RING,
    TT_GRAPH_TREE,
    TT_GRAPH_CHAIN, /* collnet chain */
    TT_GRAPH_NVLS,
    TT_GRAPH_DIRECT, /* collnet direct */
    TT_GRAPH_COUNT_,
};

/* NCCL's numbers. */
enum tt_graph_pattern {
    TT_PATTERN_BALANCED = 1,
    TT_PATTERN_SPLIT,
    TT_PATTERN_TREE,
    TT_PATTERN_RING,
    TT_PATTERN_NVLS,
    TT_PATTERN_DIRECT,
};
const char *tt_graph_kind_name(enum tt_graph_kind kind);          /* "ring" */
const char *tt_graph_pattern_name(enum tt_graph_pattern pattern); /* "balanced_tree" */

#define TT_NET_NONE UINT64_MAX

struct tt_topo_graph { /* channels of one kind; nchannels 0: none */
    enum tt_graph_kind kind;
    enum tt_graph_pattern pattern;
    int nchannels, ngpus;
    int same_channels, cross_nic, hops;
    float bw_intra, bw_inter; /* GB/s of a channel inside the node, and to others */
    float latency_inter;      /* us */
    enum tt_path_type type_intra, type_inter;
    int *intra; /* owned; rank at position p of channel c: intra[c * ngpus + p]; NVLS: p = 0 */
    struct tt_topo_ends { /* host << 56 | dev; TT_NET_NONE: none */
        uint64_t first, last;
    } * inter; /* owned; NICs of each channel */
};

enum tt_topo_arch { TT_ARCH_NONE, TT_ARCH_X86, TT_ARCH_POWER, TT_ARCH_ARM, TT_ARCH_MIXED };
enum tt_topo_vendor {
    TT_VENDOR_NONE,
    TT_VENDOR_INTEL,
    TT_VENDOR_AMD,
    TT_VENDOR_ZHAOXIN,
    TT_VENDOR_MIXED,
};

struct tt_topo_domain { /* GPUs that stay together: a node, as algorithms see it */
    int nranks;
    int *rank;              /* owned; in node order */
    uint64_t *device;       /* owned; of each of them: host << 56 | dev */
    bool inter;             /* the communicator is larger */
    float max_bw, total_bw; /* GB/s: limits of the search */
    bool nvswitch;
    int cc_least, cc_most;  /* compute capabilities of its GPUs */
    enum tt_topo_arch arch; /* of its first CPU */
    enum tt_topo_vendor vendor;
    int p2p_channels; /* per peer; least over its ranks */
    float net_bw;     /* GB/s to one of the nearest NICs of a rank; least over its ranks; 0: none */
    struct tt_topo_graph graph[TT_GRAPH_COUNT_];
};

/* ---- a communicator over nodes ---- */

struct tt_topo_comm_node {               /* a node of a communicator */
    const struct tt_topo_domain *domain; /* borrowed */
    int rank_offset;                     /* added to the ranks of the domain */
    const int *member;                   /* borrowed; rank r is member[r] instead; NULL: none */
};
static inline int tt_topo_rank_at(const struct tt_topo_comm_node *comm_node, int rank)
{
    return comm_node->member ? comm_node->member[rank] : rank + comm_node->rank_offset;
}

struct tt_nvls_links { /* a rank among the multicast heads; -1: none */
    int head;          /* own number as a head */
    int parent;        /* tree between nodes */
    int child[3];      /* nranks + 1 + h: the multicast of head h */
};

/* Result that all ranks agree upon. Channels name rings by number: `ring[ring_of[c]]`. */
struct tt_topo_layout {
    int nranks, nnodes;
    int *node_of;                /* owned, nranks */
    int least_local, most_local; /* ranks of a node */
    int cc_least, cc_most;
    enum tt_topo_arch arch; /* TT_ARCH_MIXED when nodes differ */
    enum tt_topo_vendor vendor;
    bool nvswitch, collnet;                      /* on every node; in use */
    struct tt_topo_graph graph[TT_GRAPH_COUNT_]; /* values agreed upon; no channel lists */
    enum tt_graph_pattern tree_pattern;          /* the largest over the nodes */
    int nchannels;
    int nvls_channels, nvls_heads, nvls_chunk_bytes, nvls_tree_chunk_bytes;
    int p2p_channels, p2p_per_peer;
    int tree_depth, nrings, ntrees;
    int ring_of[TT_MAX_CHANNELS], tree_of[TT_MAX_CHANNELS];
    int *ring[TT_MAX_CHANNELS];                  /* owned; ranks in order, from rank 0 */
    struct tt_tree_links *tree[TT_MAX_CHANNELS]; /* owned; links of every rank */
    struct tt_nvls_links *nvls[2]; /* owned; of every rank, on even and odd channels; NULL: off */
};

/* Domains of one machine in a communicator over `nmachines` equal ones: usually one, more where the
 * network is faster than the paths between GPUs. Graphs that NCCL_GRAPH_FILE has are taken from
 * there. Caller frees with tt_topo_domains_free().
 * Errors: ncclInvalidUsage naming a variable or the machine without GPUs; ncclSystemError. */
ncclResult_t tt_topo_domains_make(const struct tt_topo_file *file,
                                  const struct tt_topo_options *options, int nmachines,
                                  struct tt_topo_domain **domains_out, int *ndomains_out);
/* A node's graphs as a graph file (NCCL_GRAPH_FILE). Caller frees *text_out.
 * Errors: ncclInvalidUsage when a type of path has no word in that format, ncclSystemError. */
ncclResult_t tt_topo_graphs_print(const struct tt_topo_comm_node *comm_node, char **text_out);
void tt_topo_domains_free(struct tt_topo_domain *domains, int ndomains);

/* Join nodes to a communicator: agreement, rings and trees over nodes, channels. The ranks of all
 * nodes together are 0 .. nranks-1, each once; anything else is ncclInvalidArgument.
 * config  NULL: none */
ncclResult_t tt_topo_layout_make(const struct tt_topo_comm_node *comm_nodes, int ncomm_nodes,
                                 const struct tt_topo_config *config,
                                 struct tt_topo_layout **layout_out);
void tt_topo_layout_free(struct tt_topo_layout *layout); /* accepts NULL */
