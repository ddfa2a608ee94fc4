/* See route.h. Hosts of an NVLink domain have their GPUs and ports in one order, host after host
 * (topo_system() lists them so), hence a GPU of another host is the same one of the host that
 * stands for it when its number is, counted from its host's first. */
#include "route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST = 3 }; /* hosts that are worth merging */

struct visit {     /* of a channel */
    int host, gpu; /* the GPU's number within its host */
};

/* ---- where things are ---- */

static int gpus_of_host(const struct box *box)
{
    return box_count(box, "gpus") / box_hosts(box);
}

static struct visit visit_of(const struct box *box, const json_t *graph, size_t channel, size_t at)
{
    const json_t *row = json_array_get(json_object_get(graph, "intra"), channel);
    int gpu = box_gpu_of_rank(box, (int)json_integer_value(json_array_get(row, at)));
    int own = gpus_of_host(box);
    return (struct visit){gpu / own, gpu % own};
}

static size_t length_of(const json_t *graph, size_t channel)
{
    return json_array_size(json_array_get(json_object_get(graph, "intra"), channel));
}

static int node_of_gpu(const struct box *box, int gpu)
{
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        if (node->kind == BOX_GPU && node->gpu <= gpu && gpu < node->gpu + node->ranks) return k;
    }
    return -1;
}

/* NICs are named host x 1000 + dev. */
static int node_of_net(const struct box *box, const struct route_merge *merge, int name, int first)
{
    int host = name / 1000;
    if (merge->others) host = host != first;
    for (int n = 0; n < box_count(box, "nets"); n++) {
        if (box_int(box, "nets", n, "host") != host) continue;
        if (box_int(box, "nets", n, "dev") == name % 1000) return box_find(box, BOX_NET, n);
    }
    return -1;
}

static int net_at(const json_t *graph, size_t channel, size_t end)
{
    const json_t *row = json_array_get(json_object_get(graph, "inter"), channel);
    const json_t *net = json_array_get(row, end);
    return net ? (int)json_integer_value(net) : -1;
}

bool route_is_ring(const json_t *graph)
{
    const char *pattern = json_string_value(json_object_get(graph, "pattern"));
    return pattern && !strcmp(pattern, "ring");
}

/* ---- may hosts be merged? ---- */

/* How a host is passed through: its GPUs in their order, the same for all but the first. */
static bool passes_same_gpus(const struct box *box, const json_t *graph, size_t channel)
{
    size_t count = length_of(graph, channel);
    int first = visit_of(box, graph, channel, 0).host;
    size_t example = count; /* where the first of the other hosts begins */
    size_t inside = 0;      /* visits of the host at hand before this one */
    size_t length = 0;      /* of the example */
    for (size_t p = 1; p < count; p++) {
        struct visit visit = visit_of(box, graph, channel, p);
        struct visit before = visit_of(box, graph, channel, p - 1);
        inside = visit.host == before.host ? inside + 1 : 0;
        if (inside == 0 && length == 0 && example < count) length = p - example;
        if (visit.host == first) continue;
        if (example == count) example = p;
        if (length && inside >= length) return false;
        if (visit_of(box, graph, channel, example + inside).gpu != visit.gpu) return false;
        bool ends = p + 1 == count || visit_of(box, graph, channel, p + 1).host != visit.host;
        if (length && ends && inside + 1 != length) return false;
    }
    return true;
}

static bool all_pass_same(json_t *machine, const json_t *scenario)
{
    const struct box box = {.machine = machine};
    const char *name;
    json_t *graph;
    json_t *domains = json_object_get(scenario, "domains");
    if (json_array_size(domains) != 1) return false;
    json_object_foreach(json_object_get(json_array_get(domains, 0), "graphs"), name, graph)
    {
        for (size_t c = 0; c < json_array_size(json_object_get(graph, "intra")); c++) {
            if (!passes_same_gpus(&box, graph, c)) return false;
        }
    }
    return true;
}

/* Does a channel come or go by a port of another host than its first GPU's? */
static bool is_port_elsewhere(const struct box *box, const json_t *graph, size_t channel)
{
    int host = visit_of(box, graph, channel, 0).host;
    bool found = false;
    for (size_t end = 0; end < 2; end++) {
        int net = net_at(graph, channel, end); /* -1: none */
        found = found || (net >= 0 && net / 1000 != host);
    }
    return found;
}

static bool any_port_elsewhere(json_t *machine, const json_t *scenario)
{
    const struct box box = {.machine = machine};
    const char *name;
    json_t *graph;
    bool found = false;
    json_t *domain = json_array_get(json_object_get(scenario, "domains"), 0);
    json_object_foreach(json_object_get(domain, "graphs"), name, graph)
    {
        for (size_t c = 0; c < json_array_size(json_object_get(graph, "inter")); c++)
            found = found || is_port_elsewhere(&box, graph, c);
    }
    return found;
}

struct route_merge route_merge_of(json_t *machine, const json_t *scenario)
{
    const struct box box = {.machine = machine};
    int hosts = box_hosts(&box);
    const struct route_merge all = {.shown = hosts};
    if (hosts < FEWEST || box_count(&box, "gpus") % hosts) return all;
    for (int host = 1; host < hosts; host++) {
        if (!box_is_copy(machine, 0, host)) return all;
    }
    if (!all_pass_same(machine, scenario)) return all;
    bool ports = any_port_elsewhere(machine, scenario);
    return (struct route_merge){.shown = 2, .others = hosts - 1, .ports = ports};
}

/* ---- the route ---- */

static void add_step(struct route *route, struct route_step step)
{
    for (int k = 0; k < route->count; k++) {
        const struct route_step *other = &route->step[k];
        if (other->from == step.from && other->to == step.to && other->next_host == step.next_host)
            return;
    }
    route->step[route->count++] = step;
}

static void add_gpu(struct route *route, int node)
{
    for (int k = 0; k < route->ngpus; k++) {
        if (route->gpu[k] == node) return;
    }
    route->gpu[route->ngpus++] = node;
}

static int node_of_visit(const struct box *box, const struct route_merge *merge, struct visit visit,
                         int first)
{
    int host = merge->others ? visit.host != first : visit.host;
    return node_of_gpu(box, host * gpus_of_host(box) + visit.gpu);
}

bool route_init(struct route *route, const struct box *box, const struct route_merge *merge,
                const json_t *graph, size_t channel)
{
    const size_t count = length_of(graph, channel);
    const bool inter = json_object_get(graph, "inter") != NULL;
    *route = (struct route){.first = -1, .ports = {-1, -1}};
    route->step = calloc(count + 2, sizeof(*route->step));
    route->gpu = calloc(count + 1, sizeof(*route->gpu));
    if (!route->step || !route->gpu) return false;
    struct visit start = visit_of(box, graph, channel, 0);
    struct visit before = start;
    route->host = start.host;
    int last = route->first = node_of_visit(box, merge, start, start.host);
    add_gpu(route, last);
    for (size_t end = 0; inter && end < 2; end++)
        route->ports[end] = node_of_net(box, merge, net_at(graph, channel, end), start.host);
    if (inter) add_step(route, (struct route_step){.from = route->ports[0], .to = last});
    for (size_t p = 1; p < count; p++) {
        struct visit visit = visit_of(box, graph, channel, p);
        int node = node_of_visit(box, merge, visit, start.host);
        bool others = visit.host != start.host && before.host != start.host;
        bool next_host = merge->others && others && visit.host != before.host;
        add_step(route, (struct route_step){last, node, next_host});
        add_gpu(route, node);
        last = node;
        before = visit;
    }
    /* a tree's first GPU speaks with the NIC both ways; a ring ends elsewhere than it began */
    if (inter && route_is_ring(graph))
        add_step(route, (struct route_step){.from = last, .to = route->ports[1]});
    if (!inter && route_is_ring(graph))
        add_step(route, (struct route_step){.from = last, .to = route->first});
    return true;
}

void route_fini(struct route *route)
{
    free(route->step);
    free(route->gpu);
    *route = (struct route){0};
}

bool route_same(const struct route *a, const struct route *b)
{
    bool same = a->count == b->count && a->ngpus == b->ngpus && a->first == b->first &&
                !memcmp(a->ports, b->ports, sizeof(a->ports));
    for (int k = 0; same && k < a->count; k++) {
        const struct route_step *x = &a->step[k], *y = &b->step[k];
        same = x->from == y->from && x->to == y->to && x->next_host == y->next_host;
    }
    return same && !memcmp(a->gpu, b->gpu, (size_t)a->ngpus * sizeof(*a->gpu));
}
