/* A machine's parts in a tree, as people draw it: CPUs on top, below them switches, devices, NICs.
 * Made from the report of topo_system(). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

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
/* The parts of one host of an NVLink domain; indices and matrices stay those of the whole. */
bool box_init_host(struct box *box, json_t *machine, int host);
/* The same of the first so many hosts. */
bool box_init_first(struct box *box, json_t *machine, int hosts);
/* Leave out a host's ports, and switches and NICs that then lead nowhere. */
void box_drop_nets(struct box *box, int host);
/* The host of a node. */
int box_host_of(const struct box *box, int k);
/* How many hosts there are. */
int box_hosts(const struct box *box);
/* Do two hosts have the same parts, joined in the same way? (False when memory is short.) */
bool box_is_copy(json_t *machine, int host, int other);
void box_fini(struct box *box);
/* Number of the node, of the row of the GPU; -1: none. */
int box_find(const struct box *box, enum box_kind kind, int index);
int box_gpu_of_rank(const struct box *box, int rank);

/* Fields of the machine's rows, and how many rows a list has. */
int box_count(const struct box *box, const char *list);
json_t *box_row(const struct box *box, const char *list, int index);
int box_int(const struct box *box, const char *list, int index, const char *field);
const char *box_text(const struct box *box, const char *list, int index, const char *field);
double box_real(const struct box *box, const char *list, int index, const char *field);
/* What a port is called, at most 15 characters and cut in the middle where the file has more: the
 * file's name, or "NET 3" where it has none or gives it to several ports of a host. */
enum { BOX_NAME_BYTES = 64 };
void box_net_name(const struct box *box, int net, char name[BOX_NAME_BYTES]);
/* Which of the machine's ports a graph's net is (host in the highest byte, device below); -1: none.
 */
int box_net_index(const struct box *box, uint64_t net);
/* "H100 SXM", by the ids of its PCI element; NULL: not known. */
const char *box_gpu_model(const struct box *box, int gpu);
/* A GPU's bus id without the domain 0: "1b:00.0". */
const char *box_gpu_busid(const struct box *box, int gpu);
/* Cell of a matrix of paths: type and GB/s. */
const char *box_path_type(const struct box *box, const char *matrix, int from, int to);
double box_path_bw(const struct box *box, const char *matrix, int from, int to);
/* Cell of a matrix of access. */
int box_access(const struct box *box, const char *matrix, int from, int to);
