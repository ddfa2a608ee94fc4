/* One trial of the search: tries all placements of channels at fixed speeds and limits, depth
 * first, until a number of steps is used up. Private to the room. */
#pragma once

#include "nets.h"
#include "topo/graph/system.h"

struct tt_score {                 /* a candidate for the next GPU */
    int net_bw, pci_bw, net_hops; /* from the channel's NIC; 0 where it does not matter */
    int bw, hops;                 /* from the previous GPU */
    int order, gpu;
};

enum tt_trial_order { TT_ORDER_FREE, TT_ORDER_INDEX, TT_ORDER_REPLAY };

struct tt_trial_position { /* current end of a channel */
    struct tt_topo_node *gpu;
    int at;         /* position of gpu */
    int back_net;   /* position from which the channel goes to a NIC; -1: none */
    int back_first; /* position from which it goes back to its first GPU; -1: none */
    enum tt_trial_order order;
};

struct tt_trial_frame; /* private to trial.c */

struct tt_trial {
    struct tt_topo_system *system; /* borrowed; only budgets change */
    struct tt_topo_graph at;       /* the current attempt; owned */
    struct tt_topo_graph *best;    /* borrowed */
    int min_channels, max_channels;
    bool inter, collnet;
    int steps;     /* left; -1: nothing better is possible */
    bool improved; /* *best was replaced; the caller clears it */

    struct tt_net_lists nets;
    uint64_t *used;                              /* owned; per GPU, a bit for each channel */
    struct tt_topo_node *start[TT_MAX_CHANNELS]; /* NIC of each channel */
    int *next;                                   /* owned stack of candidates */
    struct tt_score *scores;                     /* owned; while candidates are sorted */
    size_t next_count, next_room;
    struct tt_trial_frame *frames; /* owned stack of the depth-first search */
    size_t depth, frame_room;
    bool out_of_memory;
};

/* `at` becomes a copy of *graph, `best` points to *graph. False: out of memory. tt_trial_fini() is
 * valid in both cases. */
bool tt_trial_init(struct tt_trial *trial, struct tt_topo_system *system,
                   struct tt_topo_graph *graph);
void tt_trial_fini(struct tt_trial *trial);
/* Run for `steps` steps; a better graph replaces *best. */
void tt_trial_run(struct tt_trial *trial, int steps);

static inline struct tt_topo_node *tt_trial_gpu(const struct tt_trial *trial, int index)
{
    return trial->system->list[TT_NODE_GPU].node[index];
}
/* The ranks that a channel holds, in order. */
static inline int *tt_trial_channel(const struct tt_trial *trial, int channel)
{
    return trial->at.intra + (size_t)channel * (size_t)trial->at.ngpus;
}
