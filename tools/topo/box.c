/* From the report's list of links to a tree: breadth first from the CPUs along PCI links, then to
 * the ports of NICs. */
#include "box.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box_link { /* ends by kind (-1: another) and index */
    int from_kind, from, to_kind, to;
    char type[8];
    double bw;
    bool to_switch, to_gpu;
};

/* The report has a device where a box has its GPU. */
static const char *const link_types[BOX_KIND_COUNT_] = {"CPU", "PCI", "DEV", "NIC", "NET"};

/* Kind and index of "PCI/3". */
static int read_end(const char *word, int *index_out)
{
    const char *slash = strchr(word, '/');
    *index_out = slash ? (int)strtol(slash + 1, NULL, 10) : -1;
    for (int kind = 0; slash && kind < BOX_KIND_COUNT_; kind++) {
        size_t length = strlen(link_types[kind]);
        bool same = (size_t)(slash - word) == length && !strncmp(word, link_types[kind], length);
        if (same) return kind;
    }
    return -1;
}

static struct box_link read_link(const json_t *row)
{
    struct box_link link = {.bw = json_number_value(json_array_get(row, 3))};
    const char *from = json_string_value(json_array_get(row, 0));
    const char *to = json_string_value(json_array_get(row, 1));
    const char *type = json_string_value(json_array_get(row, 2));
    link.from_kind = read_end(from ? from : "", &link.from);
    link.to_kind = read_end(to ? to : "", &link.to);
    link.to_switch = to && strncmp(to, "NVS/", 4) == 0;
    link.to_gpu = to && strncmp(to, "GPU/", 4) == 0;
    (void)snprintf(link.type, sizeof(link.type), "%s", type ? type : "");
    return link;
}

int box_find(const struct box *box, enum box_kind kind, int index)
{
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == kind && box->node[k].index == index) return k;
    }
    return -1;
}

struct links {
    struct box_link *link; /* owned */
    size_t count;
};

/* Append what hangs below node `top`; the links of a node stand in their order. */
static void add_below(struct box *box, const struct links *links, int top)
{
    const struct box_node *node = &box->node[top];
    for (size_t k = 0; k < links->count; k++) {
        const struct box_link *link = &links->link[k];
        bool ours = link->from_kind == (int)node->kind && link->from == node->index;
        bool down = !strcmp(link->type, "PCI") || !strcmp(link->type, "NET");
        if (!ours || !down || link->to_kind < 0) continue;
        if (box_find(box, (enum box_kind)link->to_kind, link->to) >= 0) continue;
        box->node[box->count++] = (struct box_node){
            .kind = (enum box_kind)link->to_kind,
            .index = link->to,
            .gpu = -1,
            .parent = top,
            .depth = node->depth + 1,
            .up_bw = link->bw,
        };
    }
}

/* What else leads away from a GPU. */
static void add_other(struct box *box, const struct box_link *link)
{
    int gpu = link->from_kind == BOX_GPU ? box_find(box, BOX_GPU, link->from) : -1;
    if (gpu < 0) return;
    struct box_node *node = &box->node[gpu];
    if (!strcmp(link->type, "NVL")) node->nvlink += link->bw;
    if (!strcmp(link->type, "C2C")) node->c2c = link->bw;
    if (link->to_switch) node->switched = true;
    if (!link->to_gpu) return;
    if (node->gpu < 0) node->gpu = link->to;
    node->ranks++;
}

/* The hosts from `first` to `last`. */
static bool init(struct box *box, json_t *machine, int first, int last)
{
    json_t *system = json_object_get(machine, "system");
    json_t *rows = json_object_get(system, "links");
    json_t *cpus = json_object_get(system, "cpus");
    struct links links = {.count = json_array_size(rows)};
    *box = (struct box){.machine = machine};
    links.link = calloc(links.count + 1, sizeof(*links.link));
    box->node = calloc(links.count + json_array_size(cpus) + 1, sizeof(*box->node));
    bool done = links.link && box->node;
    for (size_t k = 0; done && k < links.count; k++)
        links.link[k] = read_link(json_array_get(rows, k));
    for (size_t k = 0; done && k < json_array_size(cpus); k++) {
        int host = box_int(box, "cpus", (int)k, "host");
        if (host < first || host > last) continue;
        box->node[box->count++] =
            (struct box_node){.kind = BOX_CPU, .index = (int)k, .parent = -1, .gpu = -1};
    }
    for (int k = 0; done && k < box->count; k++)
        add_below(box, &links, k);
    for (size_t k = 0; done && k < links.count; k++)
        add_other(box, &links.link[k]);
    free(links.link);
    return done;
}

bool box_init(struct box *box, json_t *machine)
{
    return init(box, machine, 0, INT_MAX);
}

bool box_init_host(struct box *box, json_t *machine, int host)
{
    return init(box, machine, host, host);
}

bool box_init_first(struct box *box, json_t *machine, int hosts)
{
    return init(box, machine, 0, hosts - 1);
}

int box_host_of(const struct box *box, int k)
{
    while (box->node[k].parent >= 0)
        k = box->node[k].parent;
    return box_int(box, "cpus", box->node[k].index, "host");
}

static bool has_child(const struct box *box, int k)
{
    for (int child = k + 1; child < box->count; child++) {
        if (box->node[child].parent == k) return true;
    }
    return false;
}

void box_drop_nets(struct box *box, int host)
{
    for (int k = box->count - 1; k >= 0; k--) {
        enum box_kind kind = box->node[k].kind;
        bool between = kind == BOX_PCI || kind == BOX_NIC;
        bool idle = kind == BOX_NET || (between && !has_child(box, k));
        if (!idle || box_host_of(box, k) != host) continue;
        box->count--;
        memmove(&box->node[k], &box->node[k + 1], (size_t)(box->count - k) * sizeof(box->node[0]));
        for (int after = k; after < box->count; after++)
            box->node[after].parent -= box->node[after].parent > k;
    }
}

int box_hosts(const struct box *box)
{
    int hosts = 0;
    for (int c = 0; c < box_count(box, "cpus"); c++) {
        int host = box_int(box, "cpus", c, "host");
        if (host >= hosts) hosts = host + 1;
    }
    return hosts;
}

/* index_a - index_b would differ; all else counts. */
static bool is_like(const struct box *a, int k, const struct box *b)
{
    const struct box_node *left = &a->node[k];
    const struct box_node *right = &b->node[k];
    bool same = left->kind == right->kind && left->parent == right->parent &&
                left->ranks == right->ranks && left->up_bw == right->up_bw &&
                left->nvlink == right->nvlink && left->c2c == right->c2c &&
                left->switched == right->switched;
    if (!same || left->kind != BOX_GPU || left->gpu < 0) return same;
    return box_int(a, "gpus", left->gpu, "cc") == box_int(b, "gpus", right->gpu, "cc");
}

bool box_is_copy(json_t *machine, int host, int other)
{
    struct box a = {0};
    struct box b = {0};
    bool same =
        init(&a, machine, host, host) && init(&b, machine, other, other) && a.count == b.count;
    for (int k = 0; same && k < a.count; k++)
        same = is_like(&a, k, &b);
    box_fini(&a);
    box_fini(&b);
    return same;
}

void box_fini(struct box *box)
{
    free(box->node);
    box->node = NULL;
    box->count = 0;
}

json_t *box_row(const struct box *box, const char *list, int index)
{
    json_t *rows = json_object_get(json_object_get(box->machine, "system"), list);
    return json_array_get(rows, (size_t)index);
}

int box_int(const struct box *box, const char *list, int index, const char *field)
{
    return (int)json_integer_value(json_object_get(box_row(box, list, index), field));
}

double box_real(const struct box *box, const char *list, int index, const char *field)
{
    return json_number_value(json_object_get(box_row(box, list, index), field));
}

const char *box_text(const struct box *box, const char *list, int index, const char *field)
{
    const char *text = json_string_value(json_object_get(box_row(box, list, index), field));
    return text ? text : "";
}

static json_t *cell(const struct box *box, const char *matrix, const char *what, int from, int to)
{
    json_t *table = json_object_get(json_object_get(box->machine, "paths"), matrix);
    json_t *row = json_array_get(json_object_get(table, what), (size_t)from);
    return json_array_get(row, (size_t)to);
}

const char *box_path_type(const struct box *box, const char *matrix, int from, int to)
{
    const char *type = json_string_value(cell(box, matrix, "type", from, to));
    return type ? type : "?";
}

double box_path_bw(const struct box *box, const char *matrix, int from, int to)
{
    return json_number_value(cell(box, matrix, "bw", from, to));
}

int box_count(const struct box *box, const char *list)
{
    return (int)json_array_size(json_object_get(json_object_get(box->machine, "system"), list));
}

int box_gpu_of_rank(const struct box *box, int rank)
{
    if (box_row(box, "gpus", rank) && box_int(box, "gpus", rank, "rank") == rank) return rank;
    for (int g = 0; g < box_count(box, "gpus"); g++) {
        if (box_int(box, "gpus", g, "rank") == rank) return g;
    }
    return -1;
}

int box_access(const struct box *box, const char *matrix, int from, int to)
{
    json_t *rows = json_object_get(json_object_get(box->machine, "access"), matrix);
    json_t *row = json_array_get(rows, (size_t)from);
    return (int)json_integer_value(json_array_get(row, (size_t)to));
}
