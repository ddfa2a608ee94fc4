/* One trial of the search: all ways of placing channels at fixed speeds and limits, depth first,
 * until a number of steps is used up. Private to the room. */
#pragma once

#include "topo/graph/system.h"

struct tt_net_lists { /* NICs to begin and to end at, by preference, for one limit of types */
    struct tt_topo_node **net; /* owned; row g: those of GPU g, last row: of all GPUs */
    int *count;                /* owned; of each row */
    int rows, width;
    int type; /* limit that the lists are for; -1: none yet */
};

struct tt_score {                 /* a candidate for the next GPU */
    int net_bw, pci_bw, net_hops; /* from the channel's NIC; 0 when that is of no interest */
    int bw, hops;                 /* from the GPU before */
    int order, gpu;
};

enum tt_trial_order { TT_ORDER_FREE, TT_ORDER_INDEX, TT_ORDER_REPLAY };

struct tt_trial_place { /* where a channel has come to */
    struct tt_topo_node *gpu;
    int at;         /* position of gpu */
    int back_net;   /* position from which the channel goes to a NIC; -1: none */
    int back_first; /* position from which it goes back to its first GPU; -1: none */
    enum tt_trial_order order;
};

struct tt_frame; /* private to trial.c */

struct tt_trial {
    struct tt_topo_system *system; /* borrowed; only budgets change */
    struct tt_topo_graph at;       /* what is being tried; owned */
    struct tt_topo_graph *best;    /* borrowed */
    int min_channels, max_channels;
    bool inter, collnet;
    int steps;     /* left; -1: nothing better is possible */
    bool improved; /* *best was replaced; cleared by the user */

    struct tt_net_lists nets;
    uint64_t *used;                              /* owned; per GPU, a bit for each channel */
    struct tt_topo_node *start[TT_MAX_CHANNELS]; /* NIC of each channel */
    int *next;                                   /* owned stack of candidates */
    struct tt_score *scores;                     /* owned; while candidates are sorted */
    size_t next_count, next_room;
    struct tt_frame *frames; /* owned stack of what is begun and not yet taken back */
    size_t depth, frame_room;
    bool out_of_memory;
};

/* at is a copy of *graph, best points to it. False when memory is short; fini takes either. */
bool tt_trial_init(struct tt_trial *trial, struct tt_topo_system *system,
                   struct tt_topo_graph *graph);
void tt_trial_fini(struct tt_trial *trial);
/* Run with `steps`; what is better than *best replaces it. */
void tt_trial_run(struct tt_trial *trial, int steps);

static inline struct tt_topo_node *tt_trial_gpu(const struct tt_trial *trial, int index)
{
    return trial->system->list[TT_NODE_GPU].node[index];
}
/* What the channel before this one had at a position. */
struct tt_topo_node *tt_trial_replay(const struct tt_trial *trial, int position);

/* ---- candidates.c ---- */

/* Push the GPUs that may come next on trial->next, the best first. Returns how many. */
int tt_trial_push_next(struct tt_trial *trial, const struct tt_trial_place *place);
/* Room for `count` more on trial->next; NULL when memory is short, which ends the trial. */
int *tt_trial_reserve(struct tt_trial *trial, int count);

/* ---- nets.c ---- */

bool tt_net_lists_init(struct tt_net_lists *lists, const struct tt_topo_system *system);
void tt_net_lists_fini(struct tt_net_lists *lists);
/* Make the lists for NICs up to a path type, unless that is what they are. */
void tt_net_lists_fill(struct tt_net_lists *lists, const struct tt_topo_system *system,
                       enum tt_topo_way type);

/* ---- budget.c: taking bandwidth ---- */

/* Take `share` times the trial's speed on the path, or give it back when negative. False: the path
 * is not allowed or has not enough left; nothing was taken then. */
bool tt_budget_take(struct tt_trial *trial, struct tt_topo_node *from, struct tt_topo_node *to,
                    float share);
/* Take bw on the path between them, whatever is left: of a graph that was found to fit. */
void tt_budget_charge(const struct tt_topo_node *from, const struct tt_topo_node *to, float bw);
