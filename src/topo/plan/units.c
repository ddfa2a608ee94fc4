/* Each node's part of its hosts' machine files, and its channel graphs. */
#include "topo/plan/units.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/file/file.h"
#include "topo/file/fuse.h"
#include "topo/file/merge.h"
#include "topo/file/words.h"
#include "topo/graph/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tt_topo_unit tt_topo_unit_at(const struct tt_topo_units *units, int u)
{
    return (struct tt_topo_unit){units->member + units->first[u],
                                 units->first[u + 1] - units->first[u]};
}

static int host_of(const struct tt_topo_units *units, int rank)
{
    return units->machine->ranks[rank].node;
}

void tt_topo_units_fini(struct tt_topo_units *units)
{
    for (int u = 0; u < units->nunits && units->domains; u++)
        if (units->domains[u]) tt_topo_domains_free(units->domains[u], units->ndomains[u]);
    free(units->domains);
    free(units->ndomains);
    free(units->unit_of);
    free(units->member);
    free(units->first);
}

static void number_units(struct tt_topo_units *units)
{
    for (int h = 0; h < units->machine->nhosts; h++) {
        int domain = units->machine->hosts[h].domain;
        units->unit_of[h] = domain < h ? units->unit_of[domain] : units->nunits++;
    }
}

ncclResult_t tt_topo_units_init(struct tt_topo_units *units, const struct tt_topo_machine *machine)
{
    size_t hosts = (size_t)machine->nhosts, nranks = (size_t)machine->nranks;
    units->machine = machine;
    units->unit_of = tt_calloc(hosts, sizeof(int));
    units->member = tt_calloc(nranks, sizeof(int));
    units->first = tt_calloc(hosts + 2, sizeof(int));
    units->domains = tt_calloc(hosts, sizeof(struct tt_topo_domain *));
    units->ndomains = tt_calloc(hosts, sizeof(int));
    if (!units->unit_of || !units->member || !units->first || !units->domains || !units->ndomains)
        return tt_fail(ncclSystemError, "topology: out of memory for %zu ranks", nranks);
    number_units(units);
    for (int r = 0; r < machine->nranks; r++)
        units->first[units->unit_of[host_of(units, r)] + 2]++;
    for (int u = 0; u < units->nunits; u++)
        units->first[u + 2] += units->first[u + 1];
    for (int r = 0; r < machine->nranks; r++)
        units->member[units->first[units->unit_of[host_of(units, r)] + 1]++] = r;
    return ncclSuccess;
}

struct host { /* one of a node's hosts */
    const struct tt_topo_units *units;
    struct tt_topo_unit unit;
    int number;
};

/* Index in the node of the host's rank after number `after` with this device, -1: none. */
static int next_rank(const struct host *host, uint64_t busid, int after)
{
    for (int k = after + 1; k < host->unit.count; k++) {
        const struct tt_topo_rank *rank = &host->units->machine->ranks[host->unit.rank[k]];
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
    const struct tt_topo_host *own = &host->units->machine->hosts[host->number];
    const char *name = own->file->name;
    struct tt_xml_node *root = tt_xml_copy(own->file->root);
    int found = root && set_hash(root, own->hash) ? assign(host, root) : -1;
    int wanted = 0;
    ncclResult_t rc = ncclSuccess;
    for (int k = 0; k < host->unit.count; k++)
        wanted += host_of(host->units, host->unit.rank[k]) == host->number;
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
static struct tt_topo_options look_at(const struct tt_topo_units *units, bool several)
{
    return (struct tt_topo_options){
        .fused = !several,
        .as_is = several,
        .no_multicast = units->machine->no_multicast,
        .no_collnet = units->machine->no_collnet,
        .config = &units->machine->config,
    };
}

/* The elements that a node's ranks use. Free their root, also after an error. */
ncclResult_t tt_topo_unit_part(const struct tt_topo_units *units, int u, struct tt_topo_file *part,
                               struct tt_topo_options *options)
{
    struct host host = {.units = units, .unit = tt_topo_unit_at(units, u)};
    const struct tt_topo_machine *machine = units->machine;
    int nhosts = 0;
    for (int h = 0; h < machine->nhosts; h++) {
        if (units->unit_of[h] == u && nhosts++ == 0) host.number = h;
    }
    *part = (struct tt_topo_file){.name = machine->hosts[host.number].file->name};
    *options = look_at(units, nhosts > 1);
    if (nhosts == 1) return take_host(&host, &part->root);
    part->root = tt_xml_add(NULL, "system");
    ncclResult_t rc = ncclSuccess;
    if (!part->root) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part->name);
    for (int first = host.number; host.number < machine->nhosts && !rc; host.number++) {
        struct tt_xml_node *root = NULL;
        if (units->unit_of[host.number] != u) continue;
        rc = take_host(&host, &root);
        if (!rc) rc = append_host(part, root, host.number - first);
    }
    return rc;
}

ncclResult_t tt_topo_unit_search(struct tt_topo_units *units, int u)
{
    struct tt_topo_file part;
    struct tt_topo_options options;
    ncclResult_t rc = tt_topo_unit_part(units, u, &part, &options);
    if (!rc) {
        rc = tt_topo_domains_make(&part, &options, units->nunits, &units->domains[u],
                                  &units->ndomains[u]);
    }
    tt_xml_free(part.root);
    return rc;
}

const struct tt_topo_domain *tt_topo_unit_domain(const struct tt_topo_units *units, int u, int rank)
{
    const struct tt_topo_domain *domains = units->domains[u];
    struct tt_topo_unit unit = tt_topo_unit_at(units, u);
    for (int d = 0; d < units->ndomains[u]; d++) {
        for (int k = 0; k < domains[d].nranks; k++)
            if (unit.rank[domains[d].rank[k]] == rank) return &domains[d];
    }
    return domains;
}
