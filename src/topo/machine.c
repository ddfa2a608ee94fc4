/* The plan of a communicator whose devices are those of a machine file: each host's part of the
 * file, its channel graphs, and all hosts joined. Hosts that use the same devices for the same
 * ranks (counted from their first) share one search. */
#include "file.h"
#include "system.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host {
    const int *rank; /* borrowed, ascending */
    int count;
};

struct join { /* hosts on their way to places */
    const struct tt_topo_file *file;
    const struct tt_topo_rank *ranks;
    int nhosts, nplaces;
    int *member, *first;               /* owned; ranks by host; host h's begin at first[h] */
    struct tt_topo_domain **domains;   /* owned, of every host that searched; else NULL */
    int *ndomains, *same;              /* owned; same[h]: the host whose domains h shares */
    struct tt_topo_node_place *places; /* owned */
};

static struct host host_of(const struct join *join, int h)
{
    return (struct host){join->member + join->first[h], join->first[h + 1] - join->first[h]};
}

static void join_fini(struct join *join)
{
    for (int h = 0; h < join->nhosts && join->domains; h++)
        if (join->domains[h]) tt_topo_domains_free(join->domains[h], join->ndomains[h]);
    free(join->domains);
    free(join->ndomains);
    free(join->same);
    free(join->member);
    free(join->first);
    free(join->places);
}

static ncclResult_t join_init(struct join *join, int nranks)
{
    for (int r = 0; r < nranks; r++)
        if (join->ranks[r].node >= join->nhosts) join->nhosts = join->ranks[r].node + 1;
    size_t hosts = (size_t)join->nhosts;
    join->member = tt_calloc((size_t)nranks, sizeof(int));
    join->first = tt_calloc(hosts + 2, sizeof(int));
    join->domains = tt_calloc(hosts, sizeof(struct tt_topo_domain *));
    join->ndomains = tt_calloc(hosts, sizeof(int));
    join->same = tt_calloc(hosts, sizeof(int));
    join->places = tt_calloc((size_t)nranks, sizeof(struct tt_topo_node_place));
    if (!join->member || !join->first || !join->domains || !join->ndomains || !join->same ||
        !join->places)
        return tt_fail(ncclSystemError, "topology: out of memory for %d ranks", nranks);
    for (int r = 0; r < nranks; r++)
        join->first[join->ranks[r].node + 2]++;
    for (int h = 0; h < join->nhosts; h++)
        join->first[h + 2] += join->first[h + 1];
    for (int r = 0; r < nranks; r++)
        join->member[join->first[join->ranks[r].node + 1]++] = r;
    return ncclSuccess;
}

/* ---- one host ---- */

static bool alike(const struct join *join, int a, int b)
{
    struct host one = host_of(join, a), two = host_of(join, b);
    if (one.count != two.count) return false;
    for (int k = 0; k < one.count; k++) {
        if (one.rank[k] - one.rank[0] != two.rank[k] - two.rank[0]) return false;
        if (strcmp(join->ranks[one.rank[k]].bus_id, join->ranks[two.rank[k]].bus_id) != 0)
            return false;
    }
    return true;
}

/* Index in the host of the rank after number `after` with this device, -1: none. */
static int next_rank(const struct join *join, const struct host *host, uint64_t busid, int after)
{
    for (int k = after + 1; k < host->count; k++) {
        uint64_t own = 0;
        if (tt_word_busid(join->ranks[host->rank[k]].bus_id, &own) && own == busid) return k;
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
static int assign_rows(const struct join *join, const struct host *host, struct tt_xml_node *pci)
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    struct tt_xml_node *row = NULL;
    int index = next_rank(join, host, busid, -1);
    int found = 0;
    for (int k = 0; k < pci->nchildren; k++) {
        if (strcmp(pci->children[k]->name, "gpu") != 0) continue;
        char number[16];
        if (index < 0) {
            tt_xml_drop(pci, k--);
            continue;
        }
        row = pci->children[k];
        (void)snprintf(number, sizeof(number), "%d", host->rank[index] - host->rank[0]);
        if (!tt_xml_set(row, "rank", number)) return -1;
        found++;
        index = next_rank(join, host, busid, index);
        bool last = k == pci->nchildren - 1;
        if (index >= 0 && last && !add_row(pci, &row)) return -1;
    }
    return found;
}

/* Number the GPUs as the host's ranks, take the others out. Returns how many stay; -1: no memory.
 */
static int assign(const struct join *join, const struct host *host, struct tt_xml_node *node)
{
    int found = 0;
    if (strcmp(node->name, "pci") == 0) found = assign_rows(join, host, node);
    for (int k = 0; k < node->nchildren && found >= 0; k++) {
        int below = assign(join, host, node->children[k]);
        found = below < 0 ? -1 : found + below;
    }
    return found;
}

/* The part of the file that a host's ranks use. Free its root. */
static ncclResult_t take_part(const struct join *join, int h, struct tt_topo_file *part)
{
    struct host host = host_of(join, h);
    *part = (struct tt_topo_file){.name = join->file->name, .root = tt_xml_copy(join->file->root)};
    int found = part->root ? assign(join, &host, part->root) : -1;
    if (found < 0) return tt_fail(ncclSystemError, "topology of %s: out of memory", part->name);
    if (found != host.count) {
        return tt_fail(ncclInvalidUsage,
                       "topology of %s: it has %d of the %d devices that ranks %d and on use",
                       part->name, found, host.count, host.rank[0]);
    }
    return ncclSuccess;
}

static const struct tt_topo_options as_running = {.fused = true};

static ncclResult_t search_host(struct join *join, int h)
{
    struct tt_topo_file part;
    ncclResult_t rc = take_part(join, h, &part);
    if (!rc) {
        rc = tt_topo_domains_make(&part, &as_running, join->nhosts, &join->domains[h],
                                  &join->ndomains[h]);
    }
    tt_xml_free(part.root);
    return rc;
}

static ncclResult_t place_host(struct join *join, int h)
{
    int same = h;
    for (int before = 0; before < h && same == h; before++)
        if (join->same[before] == before && alike(join, before, h)) same = before;
    join->same[h] = same;
    ncclResult_t rc = same == h ? search_host(join, h) : ncclSuccess;
    for (int d = 0; d < join->ndomains[same] && !rc; d++) {
        join->places[join->nplaces++] =
            (struct tt_topo_node_place){&join->domains[same][d], host_of(join, h).rank[0]};
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

ncclResult_t tt_topo_plan_from_file(const struct tt_topo_file *file,
                                    const struct tt_topo_rank *ranks, int nranks,
                                    int nchannels_most, struct tt_topo_plan *plan_out)
{
    struct join join = {.file = file, .ranks = ranks};
    struct tt_topo_layout *layout = NULL;
    ncclResult_t rc = join_init(&join, nranks);
    for (int h = 0; h < join.nhosts && !rc; h++)
        rc = place_host(&join, h);
    if (!rc) rc = tt_topo_layout_make(join.places, join.nplaces, &layout);
    if (!rc) take_over(layout, nchannels_most, plan_out);
    join_fini(&join);
    return rc;
}

ncclResult_t tt_topo_machine_text(const struct tt_topo_file *file, const struct tt_topo_rank *ranks,
                                  int nranks, int node, char **text_out)
{
    struct join join = {.file = file, .ranks = ranks};
    struct tt_topo_system *system = NULL;
    struct tt_topo_file part = {0};
    ncclResult_t rc = join_init(&join, nranks);
    if (!rc) rc = take_part(&join, node, &part);
    if (!rc) rc = tt_topo_system_make(&part, &as_running, &system);
    if (!rc) {
        rc = tt_topo_domains_make(&part, &as_running, join.nhosts, &join.domains[node],
                                  &join.ndomains[node]);
    }
    if (!rc) *text_out = tt_topo_describe(system, join.domains[node], join.ndomains[node]);
    if (!rc && !*text_out)
        rc = tt_fail(ncclSystemError, "topology of %s: out of memory", file->name);
    tt_xml_free(part.root);
    tt_topo_system_free(system);
    join_fini(&join);
    return rc;
}

/* ---- dumps ---- */

/* From ranks counted from the host's first to ranks of the communicator. False: no memory. */
static bool add_to_ranks(struct tt_xml_node *node, int first)
{
    bool done = true;
    if (strcmp(node->name, "gpu") == 0) {
        char number[16];
        (void)snprintf(number, sizeof(number), "%d", (int)tt_topo_int(node, "rank", 0) + first);
        done = tt_xml_set(node, "rank", number);
    }
    for (int k = 0; k < node->nchildren && done; k++)
        done = add_to_ranks(node->children[k], first);
    return done;
}

ncclResult_t tt_topo_machine_dump(const struct tt_topo_file *file, const struct tt_topo_rank *ranks,
                                  int nranks, int node, char **machine_out)
{
    struct join join = {.file = file, .ranks = ranks};
    struct tt_topo_file part = {0};
    struct tt_xml_node *fused = NULL;
    ncclResult_t rc = join_init(&join, nranks);
    if (!rc) rc = take_part(&join, node, &part);
    if (rc) goto out;
    fused = tt_topo_fuse(part.root);
    bool done = fused && add_to_ranks(fused, host_of(&join, node).rank[0]);
    *machine_out = done ? tt_xml_print(fused) : NULL;
    if (!*machine_out) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", file->name);
out:
    tt_xml_free(fused);
    tt_xml_free(part.root);
    join_fini(&join);
    return rc;
}

static const struct tt_topo_domain *domain_of(const struct join *join, int node, int rank)
{
    const struct tt_topo_domain *domains = join->domains[node];
    int own = rank - host_of(join, node).rank[0];
    for (int d = 0; d < join->ndomains[node]; d++) {
        for (int k = 0; k < domains[d].nranks; k++)
            if (domains[d].rank[k] == own) return &domains[d];
    }
    return domains;
}

ncclResult_t tt_topo_machine_graphs(const struct tt_topo_file *file,
                                    const struct tt_topo_rank *ranks, int nranks, int rank,
                                    char **graphs_out)
{
    struct join join = {.file = file, .ranks = ranks};
    int node = ranks[rank].node;
    ncclResult_t rc = join_init(&join, nranks);
    if (!rc) rc = search_host(&join, node);
    if (!rc) {
        rc = tt_topo_graphs_print(domain_of(&join, node, rank), host_of(&join, node).rank[0],
                                  graphs_out);
    }
    join_fini(&join);
    return rc;
}
