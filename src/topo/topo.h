/* The machine as a graph, and what follows from it: device list, nodes, rings, trees, channels.
 * Until the search lands: one flat host per node. Pure but for detect_*.c. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>

#define TT_MAX_CHANNELS 64

/* One rank as the planner sees it. */
struct tt_topo_rank {
    int node; /* index of its host, by first appearance in rank order */
    int local_rank;
    char bus_id[16];
};

struct tt_tree_place { /* a rank's place in one tree; -1: none */
    int parent;
    int child[3];
};

struct tt_topo_plan { /* owned by the caller of tt_topo_plan_make; free with tt_topo_plan_free */
    int nranks, nnodes, nchannels;
    int *ring[TT_MAX_CHANNELS];    /* ring[c][k] = rank at position k, nranks entries */
    struct tt_tree_place *tree[2]; /* double binary tree over ranks: place of every rank */
};

/* Rings and trees of a communicator; deterministic, equal on all ranks.
 * nchannels_wish  1..TT_MAX_CHANNELS (beyond: cut down); 0: own rule (two: one for each tree)
 * plan_out        filled only on success
 * Errors: ncclInvalidArgument naming a rank whose node number is not by first appearance;
 * ncclSystemError when memory is short. */
ncclResult_t tt_topo_plan_make(const struct tt_topo_rank *ranks, int nranks, int nchannels_wish,
                               struct tt_topo_plan *plan_out);
void tt_topo_plan_free(struct tt_topo_plan *plan);

/* ---- machine files (NCCL's XML), for tools and for hosts that play another machine ---- */

struct tt_topo_file; /* a checked machine file; opaque */

/* Read and check. `name` stands for the file in messages. *file_out: free with tt_topo_file_free().
 * Errors: ncclInvalidUsage "NAME:LINE: ..." for whatever is wrong with the content;
 * ncclSystemError when it cannot be read. Bounded in time and memory by the length of the text. */
ncclResult_t tt_topo_file_parse(const char *name, const char *text, size_t text_bytes,
                                struct tt_topo_file **file_out);
ncclResult_t tt_topo_file_read(const char *path, struct tt_topo_file **file_out);
void tt_topo_file_free(struct tt_topo_file *file); /* accepts NULL */

/* What is odd but accepted: lines "NAME:LINE: warning: ...", "" when nothing. Lives as the file. */
const char *tt_topo_file_warnings(const struct tt_topo_file *file);
/* The file as XML that NCCL can load. Caller frees; NULL when memory is short. */
char *tt_topo_file_print(const struct tt_topo_file *file);

/* ---- the machine as a graph, with paths ---- */

struct tt_topo_system; /* nodes, links, paths; opaque */

struct tt_topo_options { /* how to look at a file */
    int hosts;           /* copies of the machine in one NVLink domain; 0 or 1: one machine */
    bool fused;          /* elements in the order of a running communicator, else as in the file */
};

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
