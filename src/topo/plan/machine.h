/* Communicators whose devices are described by machine files. Every rank computes the same results
 * from the files of all hosts. */
#pragma once

#include "topo/topo.h"

struct tt_topo_host {                /* a host of the communicator */
    const struct tt_topo_file *file; /* borrowed */
    uint64_t hash;                   /* distinguishes it from others; 0: keep what the file has */
    int domain;                      /* first host of its NVLink domain; its own number: none */
};

struct tt_topo_machine {
    const struct tt_topo_host *hosts; /* borrowed; by node number of the ranks */
    int nhosts;
    const struct tt_topo_rank *ranks; /* borrowed; a rank's GPU is the one with its bus id */
    int nranks;
    bool no_multicast, no_collnet; /* override the variables */
    struct tt_topo_config config;
};

/* Rings and trees that NCCL would use, found by search. The hosts of an NVLink domain are one node.
 * nchannels_most  further channels are left out
 * plan_out        filled only on success
 * Cost: one search per distinct set of devices of a node, not per node.
 * Errors: ncclInvalidUsage naming a rank whose device its file does not have; else as
 * tt_topo_domains_make() and tt_topo_layout_make(). */
ncclResult_t tt_topo_plan_from_machine(const struct tt_topo_machine *machine, int nchannels_most,
                                       struct tt_topo_plan *plan_out);

/* NCCL's GRAPH log of the node of host number `host`, as lines of text, which the caller frees.
 * Runs the search again. Errors: as above. */
ncclResult_t tt_topo_machine_text(const struct tt_topo_machine *machine, int host, char **text_out);
/* The machine file of that node as its ranks see it; the graph file of a rank's node. The caller
 * frees them. Errors: as above, and as tt_topo_graphs_print(). */
ncclResult_t tt_topo_machine_dump(const struct tt_topo_machine *machine, int host,
                                  char **machine_out);
ncclResult_t tt_topo_machine_graphs(const struct tt_topo_machine *machine, int rank,
                                    char **graphs_out);

enum { TT_TOPO_DEVICES = 64 };
/* Network devices (`dev` of the file's NICs) of a rank by channel; -1: none. */
struct tt_topo_nics {
    int ring[TT_MAX_CHANNELS], tree[TT_MAX_CHANNELS];
    int own[TT_MAX_CHANNELS]; /* for messages from another node */
    /* for messages to another node, by the device number of the rank there */
    int toward[TT_TOPO_DEVICES][TT_MAX_CHANNELS];
};
/* Searches the rank's node anew. Errors: as tt_topo_plan_from_machine().
 * Source: spec topology, section 4. */
ncclResult_t tt_topo_machine_nics(const struct tt_topo_machine *machine, int rank,
                                  struct tt_topo_nics *nics_out);
