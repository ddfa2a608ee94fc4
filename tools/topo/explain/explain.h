/* What the files of `tutti topo explain` share: sentences, and words for paths. Every sentence is
 * one finding of a kind; --json lists them with their kind. */
#pragma once

#include "../box.h"
#include "../machine.h"

#include "topo/search/loads.h"

#include <stddef.h>

struct report {
    const struct box *box; /* borrowed */
    json_t *findings;      /* owned; NULL: text on standard output */
};

/* kind: title (a heading), pairs, nic, graph, limit, why, channel, advice. */
void report_add(const struct report *report, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text that grows: cut where memory is short. */
struct text {
    char *text; /* owned; NULL: nothing yet */
    size_t bytes, room;
};
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *text_get(const struct text *text); /* "" when there are none */
void text_free(struct text *text);

/* "by NVLink"; number of "NVL". */
const char *path_type_meaning(int type);
int path_type_of(const char *name);

/* Links alike: as fast, as full, between parts of the same kinds. */
struct load_group {
    struct tt_topo_load first; /* of them */
    int count;
    bool both;             /* ways */
    char from[32], to[32]; /* kinds, as people call them; `to` empty: a port */
};
enum { LOAD_GROUPS = 24 };
/* The fullest groups of a graph, fullest first. Returns how many. */
int load_groups_of(const struct tt_topo_loads *loads, struct load_group groups[LOAD_GROUPS]);
/* So full that it sets the speed. */
bool load_group_is_full(const struct load_group *group);

/* The channels of a domain: what they are, what limits them, why they run so. */
void explain_domain(const struct report *report, const struct tt_topo_domain *domain,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
/* Kinds of parts that limit channels. */
enum part { PART_PORT, PART_NIC, PART_GPU, PART_UPLINK, PART_CPUS, PART_NVLINK, PART_C2C, PARTS };
struct full_parts { /* which of them are full; zeros: none */
    struct {
        bool graph[TT_GRAPH_COUNT_];
        double bw; /* GB/s of such a link */
    } part[PARTS];
};
/* Add those of a domain. */
void explain_full(struct full_parts *full, const struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
/* What would be faster; full: of all domains. */
void explain_advice(const struct report *report, const struct topo_scenario *scenario,
                    const struct full_parts *full);
