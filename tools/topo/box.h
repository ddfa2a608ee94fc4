/* A machine's parts in a tree, as people draw it: CPUs on top, below them switches, devices, NICs.
 * Made from the report of topo_system(). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum box_kind { BOX_CPU, BOX_PCI, BOX_GPU, BOX_NIC, BOX_NET, BOX_KIND_COUNT_ };

/* A link of this speed (GB/s) is none: NCCL gives it to a NIC that no PCI row describes. */
enum { BOX_NO_LINK = 5000 };

struct box_node {
    enum box_kind kind;
    int index;     /* in the report; GPU: of its device */
    int gpu;       /* GPU: the first rank's number in the report; -1: none */
    int ranks;     /* GPU: ranks on it */
    int parent;    /* node; -1: none */
    int depth;     /* below a CPU */
    double up_bw;  /* GB/s of the link to the parent */
    double nvlink; /* GPU: GB/s of its NVLinks together */
    double c2c;    /* GPU: GB/s to its CPU besides PCI */
    bool switched; /* GPU: its NVLinks lead to an NVSwitch */
};

struct box_link;

struct box {
    json_t *machine;       /* borrowed */
    struct box_node *node; /* owned; parents before children, children of a node in order */
    int count;
};

/* False when memory is short. */
bool box_init(struct box *box, json_t *machine);
void box_fini(struct box *box);
/* Number of the node, -1: none. */
int box_find(const struct box *box, enum box_kind kind, int index);

/* Fields of the report's rows. */
json_t *box_row(const struct box *box, const char *list, int index);
int box_int(const struct box *box, const char *list, int index, const char *field);
const char *box_text(const struct box *box, const char *list, int index, const char *field);
double box_real(const struct box *box, const char *list, int index, const char *field);
/* Cell of a matrix of paths: type and GB/s. */
const char *box_way(const struct box *box, const char *matrix, int from, int to);
double box_way_bw(const struct box *box, const char *matrix, int from, int to);
