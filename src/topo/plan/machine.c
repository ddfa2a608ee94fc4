/* The plan of a communicator whose devices are those of machine files: each node's part of its
 * hosts' files, its channel graphs, and all nodes joined. A node is a host, or all hosts of an
 * NVLink domain. Ranks of a part are counted from 0 in the order of the node's ranks; nodes with
 * equal parts share one search. */
#include "machine.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "topo/file/file.h"
#include "topo/file/fuse.h"
#include "topo/file/merge.h"
#include "topo/file/words.h"
#include "topo/graph/access.h"
#include "topo/graph/describe.h"
#include "topo/graph/make.h"
#include "topo/graph/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {        /* a node */
    const int *rank; /* borrowed, ascending */
    int count;
};

struct join { /* nodes until the layout has them */
    const struct tt_topo_machine *machine;
    int nunits, ncomm_nodes;
    int *unit_of;                         /* owned; of every host */
    int *member, *first;                  /* owned; ranks by unit; unit u's begin at first[u] */
    struct tt_topo_domain **domains;      /* owned, of every unit that searched; else NULL */
    int *ndomains, *same;                 /* owned; same[u]: the unit whose domains u shares */
    struct tt_topo_comm_node *comm_nodes; /* owned */
};

static struct unit unit_at(const struct join *join, int u)
{
    return (struct unit){join->member + join->first[u], join->first[u + 1] - join->first[u]};
}

static int host_of(const struct join *join, int rank)
{
    return join->machine->ranks[rank].node;
}

static void join_fini(struct join *join)
{
    for (int u = 0; u < join->nunits && join->domains; u++)
        if (join->domains[u]) tt_topo_domains_free(join->domains[u], join->ndomains[u]);
    free(join->domains);
    free(join->ndomains);
    free(join->same);
    free(join->unit_of);
    free(join->member);
    free(join->first);
    free(join->comm_nodes);
}

static void number_units(struct join *join)
{
    for (int h = 0; h < join->machine->nhosts; h++) {
        int domain = join->machine->hosts[h].domain;
        join->unit_of[h] = domain < h ? join->unit_of[domain] : join->nunits++;
    }
}

static ncclResult_t join_init(struct join *join, const struct tt_topo_machine *machine)
{
    size_t hosts = (size_t)machine->nhosts, nranks = (size_t)machine->nranks;
    join->machine = machine;
    join->unit_of = tt_calloc(hosts, sizeof(int));
    join->member = tt_calloc(nranks, sizeof(int));
    join->first = tt_calloc(hosts + 2, sizeof(int));
    join->domains = tt_calloc(hosts, sizeof(struct tt_topo_domain *));
    join->ndomains = tt_calloc(hosts, sizeof(int));
    join->same = tt_calloc(hosts, sizeof(int));
    join->comm_nodes = tt_calloc(nranks, sizeof(struct tt_topo_comm_node));
    if (!join->unit_of || !join->member || !join->first || !join->domains || !join->ndomains ||
        !join->same || !join->comm_nodes)
        return tt_fail(ncclSystemError, "topology: out of memory for %zu ranks", nranks);
    number_units(join);
    for (int r = 0; r < machine->nranks; r++)
        join->first[join->unit_of[host_of(join, r)] + 2]++;
    for (int u = 0; u < join->nunits; u++)
        join->first[u + 2] += join->first[u + 1];
    for (int r = 0; r < machine->nranks; r++)
        join->member[join->first[join->unit_of[host_of(join, r)] + 1]++] = r;
    return ncclSuccess;
}

/* ---- one node ---- */

/* Same files for the same members, same devices in the same order. */
static bool alike(const struct join *join, int a, int b)
{
    struct unit one = unit_at(join, a), two = unit_at(join, b);
    const struct tt_topo_machine *machine = join->machine;
    if (one.count != two.count) return false;
    for (int k = 0; k < one.count; k++) {
        const struct tt_topo_rank *left = &machine->ranks[one.rank[k]];
        const struct tt_topo_rank *right = &machine->ranks[two.rank[k]];
        const struct tt_topo_host *left_host = &machine->hosts[left->node];
        const struct tt_topo_host *right_host = &machine->hosts[right->node];
        if (left_host->file != right_host->file) return false;
        if (left->node - left_host->domain != right->node - right_host->domain) return false;
        if (strcmp(left->bus_id, right->bus_id) != 0) return false;
    }
    return true;
}

struct host { /* one of a node's hosts */
    const struct join *join;
    struct unit unit;
    int number;
};

/* Index in the node of the host's rank after number `after` with this device, -1: none. */
static int next_rank(const struct host *host, uint64_t busid, int after)
{
    for (int k = after + 1; k < host->unit.count; k++) {
        const struct tt_topo_rank *rank = &host->join->machine->ranks[host->unit.rank[k]];
        uint64_t own = 0;
        if (rank->node != host->number) continue;
        if (tt_word_busid(rank->bus_id, &own) && own == busid) return k;
    }
    return -1;
}

/* Several ranks on one device: one row each, as the last one. False when memory is short. */
static bool add_row(struct tt_xml_node *pci, struct tt_xml_node **row)
{
    struct tt_xml_node *copy = tt_xml_copy(*row);
    if (!copy || !tt_xml_adopt(pci, copy)) {
        tt_xml_free(copy);
        return false;
    }
    *row = copy;
    return true;
}

/* Number the gpu rows of a device as the host's ranks on it. Returns how many; -1: no memory. */
static int assign_rows(const struct host *host, struct tt_xml_node *pci)
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    struct tt_xml_node *row = NULL;
    int index = next_rank(host, busid, -1);
    int found = 0;
    for (int k = 0; k < pci->nchildren; k++) {
        if (strcmp(pci->children[k]->name, "gpu") != 0) continue;
        char number[16];
        if (index < 0) {
            tt_xml_drop(pci, k--);
            continue;
        }
        row = pci->children[k];
        (void)snprintf(number, sizeof(number), "%d", index);
        if (!tt_xml_set(row, "rank", number)) return -1;
        found++;
        index = next_rank(host, busid, index);
        bool last = k == pci->nchildren - 1;
        if (index >= 0 && last && !add_row(pci, &row)) return -1;
    }
    return found;
}

/* Number the GPUs as the host's ranks, take the others out. Returns how many stay; -1: no memory.
 */
static int assign(const struct host *host, struct tt_xml_node *node)
{
    int found = 0;
    if (strcmp(node->name, "pci") == 0) found = assign_rows(host, node);
    for (int k = 0; k < node->nchildren && found >= 0; k++) {
        int below = assign(host, node->children[k]);
        found = below < 0 ? -1 : found + below;
    }
    return found;
}

static bool set_hash(struct tt_xml_node *root, uint64_t hash)
{
    char text[32];
    bool done = true;
    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)hash);
    for (int k = 0; k < root->nchildren && done && hash; k++) {
        struct tt_xml_node *cpu = root->children[k];
        if (strcmp(cpu->name, "cpu") == 0) done = tt_xml_set(cpu, "host_hash", text);
    }
    return done;
}

/* The part of a host's file that its ranks use. */
static ncclResult_t take_host(const struct host *host, struct tt_xml_node **root_out)
{
    const struct tt_topo_host *own = &host->join->machine->hosts[host->number];
    const char *name = own->file->name;
    struct tt_xml_node *root = tt_xml_copy(own->file->root);
    int found = root && set_hash(root, own->hash) ? assign(host, root) : -1;
    int wanted = 0;
    ncclResult_t rc = ncclSuccess;
    for (int k = 0; k < host->unit.count; k++)
        wanted += host_of(host->join, host->unit.rank[k]) == host->number;
    if (found < 0) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", name);
    if (!rc && found != wanted) {
        rc = tt_fail(ncclInvalidUsage,
                     "topology of %s: it has %d of the %d devices that ranks of host %d use", name,
                     found, wanted, host->number);
    }
    if (rc) {
        tt_xml_free(root);
    } else {
        *root_out = root;
    }
    return rc;
}

/* One host of several: its elements final, behind those of the hosts before it. Takes `root`. */
static ncclResult_t append_host(struct tt_topo_file *part, struct tt_xml_node *root, int index)
{
    ncclResult_t rc = tt_topo_merge(part->name, root);
    struct tt_xml_node *fused = rc ? NULL : tt_topo_fuse(root);
    bool done = fused && tt_topo_distinct(fused, index);
    tt_xml_free(root);
    for (int k = 0; done && k < fused->nchildren; k++) {
        struct tt_xml_node *child = tt_xml_copy(fused->children[k]);
        done = child && tt_xml_adopt(part->root, child);
        if (!done) tt_xml_free(child);
    }
    tt_xml_free(fused);
    if (!rc && !done) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part->name);
    return rc;
}

/* How the elements of a node's part are to be taken. */
static struct tt_topo_options look_at(const struct join *join, bool several)
{
    return (struct tt_topo_options){
        .fused = !several,
        .as_is = several,
        .no_multicast = join->machine->no_multicast,
        .no_collnet = join->machine->no_collnet,
        .wishes = &join->machine->wishes,
    };
}

/* The elements that a node's ranks use. Free their root, also after an error. */
static ncclResult_t take_part(const struct join *join, int u, struct tt_topo_file *part,
                              struct tt_topo_options *options)
{
    struct host host = {.join = join, .unit = unit_at(join, u)};
    const struct tt_topo_machine *machine = join->machine;
    int nhosts = 0;
    for (int h = 0; h < machine->nhosts; h++) {
        if (join->unit_of[h] == u && nhosts++ == 0) host.number = h;
    }
    *part = (struct tt_topo_file){.name = machine->hosts[host.number].file->name};
    *options = look_at(join, nhosts > 1);
    if (nhosts == 1) return take_host(&host, &part->root);
    part->root = tt_xml_add(NULL, "system");
    ncclResult_t rc = ncclSuccess;
    if (!part->root) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part->name);
    for (int first = host.number; host.number < machine->nhosts && !rc; host.number++) {
        struct tt_xml_node *root = NULL;
        if (join->unit_of[host.number] != u) continue;
        rc = take_host(&host, &root);
        if (!rc) rc = append_host(part, root, host.number - first);
    }
    return rc;
}

static ncclResult_t search_unit(struct join *join, int u)
{
    struct tt_topo_file part;
    struct tt_topo_options options;
    ncclResult_t rc = take_part(join, u, &part, &options);
    if (!rc) {
        rc = tt_topo_domains_make(&part, &options, join->nunits, &join->domains[u],
                                  &join->ndomains[u]);
    }
    tt_xml_free(part.root);
    return rc;
}

static ncclResult_t add_comm_node(struct join *join, int u)
{
    int same = u;
    for (int before = 0; before < u && same == u; before++)
        if (join->same[before] == before && alike(join, before, u)) same = before;
    join->same[u] = same;
    ncclResult_t rc = same == u ? search_unit(join, u) : ncclSuccess;
    for (int d = 0; d < join->ndomains[same] && !rc; d++) {
        join->comm_nodes[join->ncomm_nodes++] = (struct tt_topo_comm_node){
            .domain = &join->domains[same][d], .member = unit_at(join, u).rank};
    }
    return rc;
}

/* ---- the plan ---- */

/* The rings and trees of the first channels move; the rest of the layout goes along. */
static void take_over(struct tt_topo_layout *layout, int nchannels, struct tt_topo_plan *plan)
{
    *plan = (struct tt_topo_plan){
        .nranks = layout->nranks,
        .nnodes = layout->nnodes,
        .nchannels = nchannels < layout->nchannels ? nchannels : layout->nchannels,
        .p2p_channels = layout->p2p_channels,
        .p2p_per_peer = layout->p2p_per_peer,
        .nvls_channels = layout->nvls_channels,
        .layout = layout,
        .nrings = layout->nrings,
        .ntrees = layout->ntrees,
    };
    memcpy(plan->ring_of, layout->ring_of, sizeof(plan->ring_of));
    memcpy(plan->tree_of, layout->tree_of, sizeof(plan->tree_of));
    memcpy(plan->ring, layout->ring, sizeof(plan->ring));
    memcpy(plan->tree, layout->tree, sizeof(plan->tree));
    memset(layout->ring, 0, sizeof(layout->ring));
    memset(layout->tree, 0, sizeof(layout->tree));
}

ncclResult_t tt_topo_plan_from_machine(const struct tt_topo_machine *machine, int nchannels_most,
                                       struct tt_topo_plan *plan_out)
{
    struct join join = {0};
    struct tt_topo_layout *layout = NULL;
    ncclResult_t rc = join_init(&join, machine);
    for (int u = 0; u < join.nunits && !rc; u++)
        rc = add_comm_node(&join, u);
    if (!rc) rc = tt_topo_layout_make(join.comm_nodes, join.ncomm_nodes, &machine->wishes, &layout);
    if (!rc) take_over(layout, nchannels_most, plan_out);
    join_fini(&join);
    return rc;
}

/* ---- words and dumps ---- */

static void renumber_graph(struct tt_topo_graph *graph, const int *member)
{
    int length = graph->kind == TT_GRAPH_NVLS ? 1 : graph->ngpus;
    for (int c = 0; c < graph->nchannels; c++) {
        int *intra = graph->intra + (size_t)c * (size_t)graph->ngpus;
        for (int p = 0; p < length; p++)
            intra[p] = member[intra[p]];
    }
}

/* From ranks of the node to ranks of the communicator. */
static void renumber(struct join *join, int u, struct tt_topo_system *system)
{
    const int *member = unit_at(join, u).rank;
    for (int g = 0; g < system->list[TT_NODE_GPU].count; g++) {
        struct tt_topo_node *gpu = system->list[TT_NODE_GPU].node[g];
        gpu->rank = member[gpu->rank];
    }
    for (int d = 0; d < join->ndomains[u]; d++) {
        for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
            renumber_graph(&join->domains[u][d].graph[kind], member);
    }
}

ncclResult_t tt_topo_machine_text(const struct tt_topo_machine *machine, int host, char **text_out)
{
    struct join join = {0};
    struct tt_topo_system *system = NULL;
    struct tt_topo_file part = {0};
    struct tt_topo_options options;
    ncclResult_t rc = join_init(&join, machine);
    int u = rc ? 0 : join.unit_of[host];
    if (!rc) rc = take_part(&join, u, &part, &options);
    if (!rc) rc = tt_topo_system_make(&part, &options, &system);
    if (!rc) {
        rc =
            tt_topo_domains_make(&part, &options, join.nunits, &join.domains[u], &join.ndomains[u]);
    }
    if (!rc) {
        renumber(&join, u, system);
        *text_out = tt_topo_describe(system, join.domains[u], join.ndomains[u]);
    }
    if (!rc && !*text_out)
        rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part.name);
    tt_xml_free(part.root);
    tt_topo_system_free(system);
    join_fini(&join);
    return rc;
}

/* From ranks of the node to ranks of the communicator. False: no memory. */
static bool set_ranks(struct tt_xml_node *node, const int *member)
{
    bool done = true;
    if (strcmp(node->name, "gpu") == 0) {
        char number[16];
        (void)snprintf(number, sizeof(number), "%d", member[tt_topo_int(node, "rank", 0)]);
        done = tt_xml_set(node, "rank", number);
    }
    for (int k = 0; k < node->nchildren && done; k++)
        done = set_ranks(node->children[k], member);
    return done;
}

ncclResult_t tt_topo_machine_dump(const struct tt_topo_machine *machine, int host,
                                  char **machine_out)
{
    struct join join = {0};
    struct tt_topo_file part = {0};
    struct tt_topo_options options;
    struct tt_xml_node *fused = NULL;
    ncclResult_t rc = join_init(&join, machine);
    int u = rc ? 0 : join.unit_of[host];
    if (!rc) rc = take_part(&join, u, &part, &options);
    if (rc) goto out;
    fused = options.as_is ? tt_xml_copy(part.root) : tt_topo_fuse(part.root);
    bool done = fused && set_ranks(fused, unit_at(&join, u).rank);
    *machine_out = done ? tt_xml_print(fused) : NULL;
    if (!*machine_out) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part.name);
out:
    tt_xml_free(fused);
    tt_xml_free(part.root);
    join_fini(&join);
    return rc;
}

static const struct tt_topo_domain *domain_of(const struct join *join, int u, int rank)
{
    const struct tt_topo_domain *domains = join->domains[u];
    struct unit unit = unit_at(join, u);
    for (int d = 0; d < join->ndomains[u]; d++) {
        for (int k = 0; k < domains[d].nranks; k++)
            if (unit.rank[domains[d].rank[k]] == rank) return &domains[d];
    }
    return domains;
}

ncclResult_t tt_topo_machine_graphs(const struct tt_topo_machine *machine, int rank,
                                    char **graphs_out)
{
    struct join join = {0};
    ncclResult_t rc = join_init(&join, machine);
    int u = rc ? 0 : join.unit_of[machine->ranks[rank].node];
    if (!rc) rc = search_unit(&join, u);
    if (!rc) {
        const struct tt_topo_comm_node comm_node = {.domain = domain_of(&join, u, rank),
                                                    .member = unit_at(&join, u).rank};
        rc = tt_topo_graphs_print(&comm_node, graphs_out);
    }
    join_fini(&join);
    return rc;
}

/* ---- NICs of a rank ---- */

/* NIC of a channel: where it begins for its first GPU, where it ends for all others. */
static int graph_nic(const struct tt_topo_graph *graph, int channel, int rank)
{
    if (graph->nchannels == 0 || !graph->inter) return -1;
    int c = channel % graph->nchannels;
    bool first = graph->intra[(size_t)c * (size_t)graph->ngpus] == rank;
    uint64_t net = first ? graph->inter[c].first : graph->inter[c].last;
    return net == TT_NET_NONE ? -1 : (int)(net & 0xffffffffffffffull);
}

static const struct tt_topo_node *gpu_number(const struct tt_topo_system *system,
                                             const struct tt_topo_node *own, int number)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    for (int g = 0; g < gpus->count; g++) {
        bool here = tt_topo_host(gpus->node[g]) == tt_topo_host(own);
        if (here && gpus->node[g]->dev_number == number) return gpus->node[g];
    }
    return NULL;
}

/* May the peer's NIC be taken, which then meets its own rail at the other end? */
static bool reaches(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                    const struct tt_topo_node *net)
{
    int64_t level = tt_param_int("NCCL_P2P_PXN_LEVEL");
    if (system->env.cross_nic == 0) return true;
    if (system->env.pxn_disable || level <= 0) return false;
    if (level == 1) return tt_topo_path(gpu, net)->type <= TT_PATH_PXN;
    const struct tt_topo_node *relay = tt_topo_gpu_of(system, net);
    return relay && tt_topo_path(relay, gpu)->type <= TT_PATH_NVL &&
           tt_topo_path(relay, net)->type <= TT_PATH_P2C &&
           tt_topo_gdr_check(system, relay, net, true);
}

static void fill_messages(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                          struct tt_topo_nics *nics)
{
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        const struct tt_topo_node *own = tt_topo_net_of(system, gpu, c);
        nics->own[c] = own ? (int)own->dev_number : -1;
        for (int d = 0; d < TT_TOPO_DEVICES; d++) {
            const struct tt_topo_node *peer = gpu_number(system, gpu, d);
            const struct tt_topo_node *net = peer ? tt_topo_net_of(system, peer, c) : NULL;
            bool taken = net && net != own && reaches(system, gpu, net);
            nics->toward[d][c] = taken ? (int)net->dev_number : nics->own[c];
        }
    }
}

ncclResult_t tt_topo_machine_nics(const struct tt_topo_machine *machine, int rank,
                                  struct tt_topo_nics *nics)
{
    struct join join = {0};
    struct tt_topo_file part = {0};
    struct tt_topo_system *system = NULL;
    struct tt_topo_options options;
    ncclResult_t rc = join_init(&join, machine);
    int u = rc ? 0 : join.unit_of[machine->ranks[rank].node];
    if (!rc) rc = take_part(&join, u, &part, &options);
    if (!rc) rc = tt_topo_system_make(&part, &options, &system);
    if (!rc) rc = search_unit(&join, u);
    if (rc) goto out;
    const int *member = unit_at(&join, u).rank;
    const struct tt_topo_domain *domain = domain_of(&join, u, rank);
    int own = 0; /* number in the node */
    while (member[own] != rank) {
        own++;
    }
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        nics->ring[c] = graph_nic(&domain->graph[TT_GRAPH_RING], c, own);
        nics->tree[c] = graph_nic(&domain->graph[TT_GRAPH_TREE], c, own);
    }
    for (int g = 0; g < system->list[TT_NODE_GPU].count; g++) {
        const struct tt_topo_node *gpu = system->list[TT_NODE_GPU].node[g];
        if (gpu->rank == own) fill_messages(system, gpu, nics);
    }
out:
    tt_xml_free(part.root);
    tt_topo_system_free(system);
    join_fini(&join);
    return rc;
}
