/* Machines for the search: well-known graphs by name, and NVLinks of machine files. */
#include "search.h"
#include "tutti.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/topo.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 1000 };
static const double default_gbps = 20; /* an NVLink of a V100 */

static void add_link(struct search_machine *machine, int from, int to, int width)
{
    for (int k = 0; k < machine->nlinks; k++) {
        struct search_link *link = &machine->links[k];
        if (link->from == from && link->to == to) {
            link->width += width;
            return;
        }
    }
    machine->links[machine->nlinks++] = (struct search_link){from, to, width};
}

static void add_both(struct search_machine *machine, int a, int b, int width)
{
    if (a == b) return;
    add_link(machine, a, b, width);
    add_link(machine, b, a, width);
}

/* ---- by name ---- */

static void make_line(struct search_machine *machine)
{
    for (int r = 0; r + 1 < machine->nranks; r++)
        add_both(machine, r, r + 1, 1);
}

static void make_ring(struct search_machine *machine)
{
    make_line(machine);
    if (machine->nranks > 2) add_both(machine, machine->nranks - 1, 0, 1);
}

static void make_hypercube(struct search_machine *machine)
{
    for (int r = 0; r < machine->nranks; r++) {
        for (int bit = 1; bit < machine->nranks; bit *= 2) {
            if (!(r & bit)) add_both(machine, r, r | bit, 1);
        }
    }
}

static void make_full(struct search_machine *machine)
{
    for (int r = 0; r < machine->nranks; r++) {
        for (int q = 0; q < r; q++)
            add_both(machine, r, q, 1);
    }
}

/* Two squares with diagonals, each GPU with one of the other square; double links where listed. */
static void make_dgx1v(struct search_machine *machine)
{
    static const int links[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                   {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                   {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
    for (size_t k = 0; k < TT_LEN(links); k++)
        add_both(machine, links[k][0], links[k][1], links[k][2]);
}

struct named {
    const char *name;
    int only; /* number of ranks; 0: any */
    void (*make)(struct search_machine *machine);
};

static const struct named names[] = {
    {"ring", 0, make_ring},           {"line", 0, make_line},
    {"hypercube", 0, make_hypercube}, {"fully-connected", 0, make_full},
    {"dgx1v", 8, make_dgx1v},
};

static bool make_named(const struct named *named, int nranks, struct search_machine *machine)
{
    if (!nranks) nranks = named->only;
    if (!nranks) {
        tutti_usage_error("program search", "--topology %s needs --ranks", named->name);
        return false;
    }
    if (named->only && nranks != named->only) {
        tutti_usage_error("program search", "%s has %d ranks, not %d", named->name, named->only,
                          nranks);
        return false;
    }
    if (named->make == make_hypercube && (nranks & (nranks - 1))) {
        tutti_usage_error("program search", "a hypercube has a power of two of ranks, not %d",
                          nranks);
        return false;
    }
    machine->nranks = nranks;
    machine->unit_gbps = default_gbps;
    (void)snprintf(machine->name, sizeof(machine->name), "%s", named->name);
    named->make(machine);
    return true;
}

/* ---- machine files ---- */

static bool refuse(const char *path, const char *why)
{
    (void)fprintf(stderr, "tutti program search: %s: %s\n", path, why);
    return false;
}

static bool ends_of(const json_t *row, const char **from, const char **to, double *gbps)
{
    const char *type = json_string_value(json_array_get(row, 2));
    *from = json_string_value(json_array_get(row, 0));
    *to = json_string_value(json_array_get(row, 1));
    *gbps = json_number_value(json_array_get(row, 3));
    return type && !strcmp(type, "NVL") && *from && *to && *gbps > 0;
}

static int gpu_of(const char *node, int nranks)
{
    long rank = -1;
    if (strncmp(node, "DEV/", 4) != 0 || !tutti_parse_int(node + 4, 0, nranks - 1, &rank))
        return -1;
    return (int)rank;
}

/* Links are as wide as how many times the narrowest they carry. Behind switches every pair has a
 * link, and a rank one port. */
static void take_links(const json_t *links, int nranks, struct search_machine *machine)
{
    size_t index;
    const json_t *row;
    const char *from, *to;
    double gbps, least = 0;
    bool switched = false;
    json_array_foreach(links, index, row)
    {
        if (!ends_of(row, &from, &to, &gbps)) continue;
        if (least == 0 || gbps < least) least = gbps;
        if (!strncmp(from, "NVS/", 4) || !strncmp(to, "NVS/", 4)) switched = true;
    }
    machine->nranks = nranks;
    machine->unit_gbps = least > 0 ? least : default_gbps;
    if (switched) {
        machine->port = 1;
        make_full(machine);
        return;
    }
    json_array_foreach(links, index, row)
    {
        if (!ends_of(row, &from, &to, &gbps)) continue;
        int a = gpu_of(from, nranks), b = gpu_of(to, nranks);
        if (a >= 0 && b >= 0 && a != b) add_link(machine, a, b, (int)(gbps / least + 1e-6));
    }
}

static bool read_system(const char *path, const char *text, int nranks,
                        struct search_machine *machine)
{
    json_t *all = json_loads(text, 0, NULL);
    const json_t *system = json_object_get(all, "system");
    size_t ngpus = json_array_size(json_object_get(system, "gpus"));
    char why[160] = "";
    if (ngpus < 2 || ngpus > SEARCH_MOST_RANKS) {
        (void)snprintf(why, sizeof(why), "has %zu GPUs; the search takes 2 to %d ranks", ngpus,
                       (int)SEARCH_MOST_RANKS);
    } else if (nranks && (size_t)nranks != ngpus) {
        (void)snprintf(why, sizeof(why), "has %zu GPUs, and --ranks is %d", ngpus, nranks);
    } else {
        const char *slash = strrchr(path, '/');
        (void)snprintf(machine->name, sizeof(machine->name), "%s", slash ? slash + 1 : path);
        char *dot = strrchr(machine->name, '.');
        if (dot && dot != machine->name) *dot = '\0';
        for (char *at = machine->name; *at; at++) /* XML and JSON are UTF-8, a path is not */
            *at = (char)(*at >= ' ' && *at <= '~' ? *at : '_');
        take_links(json_object_get(system, "links"), (int)ngpus, machine);
    }
    json_decref(all);
    return *why ? refuse(path, why) : true;
}

static bool read_file(const char *path, int nranks, struct search_machine *machine)
{
    struct tt_topo_file *file = NULL;
    struct tt_topo_system *system = NULL;
    const struct tt_topo_options look = {.hosts = 0};
    if (tt_topo_file_read(path, &file) || tt_topo_system_make(file, &look, &system)) {
        (void)fprintf(stderr, "tutti program search: %s\n", tt_last_error());
        tt_topo_file_free(file);
        return false;
    }
    char *members = tt_topo_system_json(system);
    size_t bytes = members ? strlen(members) + 3 : 0;
    char *text = members ? malloc(bytes) : NULL;
    bool read = false;
    if (text) {
        (void)snprintf(text, bytes, "{%s}", members);
        read = read_system(path, text, nranks, machine);
    } else {
        refuse(path, "out of memory");
    }
    free(text);
    free(members);
    tt_topo_system_free(system);
    tt_topo_file_free(file);
    return read;
}

/* ---- all ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Floyd and Warshall's way: by way of ranks up to k. */
static void find_distances(struct search_machine *machine)
{
    int n = machine->nranks;
    for (int a = 0; a < n * n; a++)
        machine->distance[a / n][a % n] = a / n == a % n ? 0 : FAR;
    for (int k = 0; k < machine->nlinks; k++)
        machine->distance[machine->links[k].from][machine->links[k].to] = 1;
    for (int k = 0; k < n; k++) {
        for (int a = 0; a < n * n; a++) {
            int *hops = &machine->distance[a / n][a % n];
            *hops = least(*hops, machine->distance[a / n][k] + machine->distance[k][a % n]);
        }
    }
}

void search_machine_turn(struct search_machine *machine)
{
    for (int k = 0; k < machine->nlinks; k++) {
        struct search_link *link = &machine->links[k];
        *link = (struct search_link){link->to, link->from, link->width};
    }
    find_distances(machine);
}

bool search_machine_is_symmetric(const struct search_machine *machine)
{
    for (int k = 0; k < machine->nlinks; k++) {
        const struct search_link *link = &machine->links[k];
        bool back = false;
        for (int b = 0; b < machine->nlinks; b++) {
            const struct search_link *other = &machine->links[b];
            back = back || (other->from == link->to && other->to == link->from &&
                            other->width == link->width);
        }
        if (!back) return false;
    }
    return true;
}

bool search_machine_open(const char *name, int nranks, struct search_machine *machine)
{
    const struct named *named = NULL;
    *machine = (struct search_machine){.nranks = 0};
    for (size_t k = 0; k < TT_LEN(names); k++) {
        if (!strcmp(names[k].name, name)) named = &names[k];
    }
    bool made = named ? make_named(named, nranks, machine) : read_file(name, nranks, machine);
    if (!made) return false;
    find_distances(machine);
    for (int a = 0; a < machine->nranks; a++) {
        for (int b = 0; b < machine->nranks; b++) {
            if (machine->distance[a][b] < FAR) continue;
            (void)fprintf(stderr,
                          "tutti program search: %s: no way over links leads from rank %d to %d\n",
                          name, a, b);
            return false;
        }
    }
    return true;
}
