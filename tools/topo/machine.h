/* What the subcommands of `tutti topo` share: options, the machine at hand, and JSON of graphs. */
#pragma once

#include "topo/topo.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { TOPO_MOST_COUNTS = 16, TOPO_MOST_FILES = 64 };

enum { /* the subcommands, as bits */
       TOPO_SHOW = 1,
       TOPO_EXPLAIN = 2,
       TOPO_SEARCH = 4,
       TOPO_DIFF = 8,
       TOPO_CHECK = 16,
       TOPO_EXPORT = 32,
       TOPO_REPORT = 64,
};

struct topo_options {
    unsigned command;
    const char *paths[TOPO_MOST_FILES]; /* machine files */
    int npaths;
    int nodes[TOPO_MOST_COUNTS]; /* numbers of equal machines */
    int ncounts;
    struct tt_topo_options look;
    const char *net_plugin; /* its NICs replace the machine's; NULL: none */
    const char *output;     /* folder; NULL: the current one */
    bool json, svg, xml, time, p2p, strict;
};

/* Options of a subcommand; says on stderr what is wrong and returns 2, else 0; -1: --help. */
int topo_options_read(struct topo_options *options, unsigned command, int argc, char **argv);
/* Those that any of the subcommands take, on standard output. */
void topo_options_help(unsigned commands);
/* What is under way, on stderr when that is a terminal, until it is said to be nothing: NULL. */
void topo_progress(const char *what);
/* What failed last, on stderr. */
void topo_print_error(void);
/* Read a machine file and print its warnings on stderr; NULL: detect this machine. Says what is
 * wrong. */
struct tt_topo_file *topo_open(const struct topo_options *options, const char *path);
/* Replace the machine's NICs by those of a network plugin, given as NCCL_NET_PLUGIN would be. False
 * after saying what is wrong. */
bool topo_take_nics(struct tt_topo_file *file, const char *plugin);
/* How to call what topo_open() opened. */
const char *topo_name(const char *path);

/* A machine in a communicator of `nodes` of them. */
struct topo_scenario {
    int nodes, ndomains;
    struct tt_topo_domain *domains; /* owned */
    struct tt_topo_layout *layout;  /* owned */
};
/* False after saying what is wrong. */
bool topo_scenario_make(const struct tt_topo_file *file, const struct tt_topo_options *look,
                        int nodes, struct topo_scenario *scenario);
/* Its two steps: nodes with their graphs, and joining them. */
bool topo_domains(const struct tt_topo_file *file, const struct tt_topo_options *look,
                  struct topo_scenario *scenario);
bool topo_join(struct topo_scenario *scenario);
void topo_scenario_free(struct topo_scenario *scenario);

/* The objects "system", "paths" and "access" of a machine; NULL after saying what is wrong. */
json_t *topo_system(const struct tt_topo_file *file, const struct tt_topo_options *look);
json_t *topo_domain_json(const struct tt_topo_domain *domain);
json_t *topo_layout_json(const struct tt_topo_layout *layout);
/* False, and said so, when the lists of a layout are too long for JSON. */
bool topo_is_printable(const struct tt_topo_layout *layout);
json_t *topo_scenario_json(const struct topo_scenario *scenario);
/* How many ranks from `from` on are written as a range, as they count up or down by one; 1: it
 * stands alone. Short rows have no ranges. */
int topo_rank_run(const int *ranks, int from, int count);
/* A number with the seven digits that single precision holds. */
json_t *topo_number(double value);
/* One object on standard output, and its end of line. */
void topo_print(const json_t *object);

/* Model, thresholds and choices for a layout; NULL: none. */
json_t *export_tuning(const struct tt_topo_layout *layout);

struct box;
/* The picture of a machine; false when memory is short. */
bool topo_show_svg(const struct box *box, const char *title, FILE *out);
/* Are there many hosts that are all the same? (False when memory is short.) */
bool topo_is_rack(const struct box *box);
/* The same of an NVLink domain whose hosts are alike: all of them as trays, one in full. */
bool topo_rack_svg(const struct box *box, const char *title, FILE *out);
/* The machine and its channels in a communicator; false when memory is short. */
bool topo_channels_svg(json_t *machine, const char *title, const struct tt_topo_options *look,
                       const struct topo_scenario *scenario, FILE *out);
/* Its parts as a tree of text. */
void topo_show_tree(const struct box *box, FILE *out);
/* The findings of explain, rows {kind, text}; NULL after saying what is wrong. */
json_t *topo_findings(const struct tt_topo_file *file, const struct box *box,
                      const struct tt_topo_options *look, const char *name,
                      const struct topo_scenario *scenario);

int topo_show(const struct topo_options *options);
int topo_explain(const struct topo_options *options);
int topo_search(const struct topo_options *options);
int topo_search_svg(const struct topo_options *options);
int topo_diff(const struct topo_options *options);
int topo_export(const struct topo_options *options);
int topo_check(const struct topo_options *options);
int topo_report(const struct topo_options *options);
