/* A channel as steps from device to device of a picture. */
#pragma once

#include "../box.h"

#include <jansson.h>
#include <stdbool.h>

/* How many hosts a picture of channels shows in full, and for how many of them the last one
 * stands. An NVLink domain of equal hosts shows two: the one where a channel begins, and one for
 * all others, as channels run through each of those in the same way. */
struct route_merge {
    int shown, others; /* others 0: every host is shown */
    bool ports;        /* channels use ports of the others */
};

struct route_step {
    int from, to;   /* nodes of the box; -1: not in it */
    bool next_host; /* between two of the hosts that one stands for */
};

struct route {
    struct route_step *step; /* owned; each way once */
    int count;
    int first;    /* node of its first GPU */
    int host;     /* where that is */
    int ports[2]; /* nodes of the NICs that it comes in and goes out by; -1: none */
    int *gpu;     /* owned; nodes of its GPUs, the first one first, each once */
    int ngpus;
};

/* The hosts that a picture of these channels (of topo_scenario_json()) needs. */
struct route_merge route_merge_of(json_t *machine, const json_t *scenario);

/* Channel number `channel` of a graph. False when memory is short. */
bool route_init(struct route *route, const struct box *box, const struct route_merge *merge,
                const json_t *graph, size_t channel);
void route_fini(struct route *route);
/* Do both look the same in the picture? */
bool route_same(const struct route *a, const struct route *b);

/* Does it lead back to where it began? */
bool route_is_ring(const json_t *graph);
