/* What the files of `tutti topo explain` share: sentences, and words for paths. Every sentence is
 * one finding of a kind; --json lists them with their kind. */
#pragma once

#include "box.h"
#include "machine.h"

#include "topo/search/loads.h"

#include <stddef.h>

struct tale {
    const struct box *box; /* borrowed */
    json_t *findings;      /* owned; NULL: text on standard output */
};

/* kind: title (a heading), pairs, nic, graph, limit, why, channel, advice. */
void tale_say(const struct tale *tale, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text that grows: cut where memory is short. */
struct words {
    char *text; /* owned; NULL: nothing yet */
    size_t bytes, room;
};
void words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *words_text(const struct words *words); /* "" when there are none */
void words_free(struct words *words);

int tale_count(const struct box *box, const char *list);
/* "by NVLink"; number of "NVL". */
const char *tale_meaning(int way);
int tale_way(const char *name);
int tale_index(const struct box *box, int rank); /* -1: none */
int tale_access(const struct box *box, const char *matrix, int from, int to);

/* Links alike: as fast, as full, between parts of the same kinds. */
struct tale_group {
    struct tt_topo_load first; /* of them */
    int count;
    bool both;             /* ways */
    char from[32], to[32]; /* kinds, as people call them; `to` empty: a port */
};
enum { TALE_GROUPS = 24 };
/* The fullest groups of a graph, fullest first. Returns how many. */
int tale_groups(const struct tt_topo_loads *loads, struct tale_group groups[TALE_GROUPS]);
/* So full that it sets the speed. */
bool tale_is_full(const struct tale_group *group);

/* The channels of a domain: what they are, what limits them, why they run so. */
void explain_domain(const struct tale *tale, const struct tt_topo_domain *domain,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
/* What would be faster; loads: of the first domain. */
void explain_advice(const struct tale *tale, const struct topo_scenario *scenario,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
