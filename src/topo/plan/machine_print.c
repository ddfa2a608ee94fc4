/* What is printed of a communicator on machine files: NCCL's GRAPH log, the machine file of a node,
 * the graph file of a rank's node. Each searches anew. */
#include "machine.h"

#include "base/error.h"
#include "topo/file/file.h"
#include "topo/file/fuse.h"
#include "topo/file/words.h"
#include "topo/graph/describe.h"
#include "topo/graph/make.h"
#include "topo/graph/system.h"
#include "topo/plan/units.h"

#include <stdio.h>
#include <string.h>

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
static void renumber(struct tt_topo_units *units, int u, struct tt_topo_system *system)
{
    const int *member = tt_topo_unit_at(units, u).rank;
    for (int g = 0; g < system->list[TT_NODE_GPU].count; g++) {
        struct tt_topo_node *gpu = system->list[TT_NODE_GPU].node[g];
        gpu->rank = member[gpu->rank];
    }
    for (int d = 0; d < units->ndomains[u]; d++) {
        for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
            renumber_graph(&units->domains[u][d].graph[kind], member);
    }
}

ncclResult_t tt_topo_machine_text(const struct tt_topo_machine *machine, int host, char **text_out)
{
    struct tt_topo_units units = {0};
    struct tt_topo_system *system = NULL;
    struct tt_topo_file part = {0};
    struct tt_topo_options options;
    ncclResult_t rc = tt_topo_units_init(&units, machine);
    int u = rc ? 0 : units.unit_of[host];
    if (!rc) rc = tt_topo_unit_part(&units, u, &part, &options);
    if (!rc) rc = tt_topo_system_make(&part, &options, &system);
    if (!rc) {
        rc = tt_topo_domains_make(&part, &options, units.nunits, &units.domains[u],
                                  &units.ndomains[u]);
    }
    if (!rc) {
        renumber(&units, u, system);
        *text_out = tt_topo_describe(system, units.domains[u], units.ndomains[u]);
    }
    if (!rc && !*text_out)
        rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part.name);
    tt_xml_free(part.root);
    tt_topo_system_free(system);
    tt_topo_units_fini(&units);
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
    struct tt_topo_units units = {0};
    struct tt_topo_file part = {0};
    struct tt_topo_options options;
    struct tt_xml_node *fused = NULL;
    ncclResult_t rc = tt_topo_units_init(&units, machine);
    int u = rc ? 0 : units.unit_of[host];
    if (!rc) rc = tt_topo_unit_part(&units, u, &part, &options);
    if (rc) goto out;
    fused = options.as_is ? tt_xml_copy(part.root) : tt_topo_fuse(part.root);
    bool done = fused && set_ranks(fused, tt_topo_unit_at(&units, u).rank);
    *machine_out = done ? tt_xml_print(fused) : NULL;
    if (!*machine_out) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", part.name);
out:
    tt_xml_free(fused);
    tt_xml_free(part.root);
    tt_topo_units_fini(&units);
    return rc;
}

ncclResult_t tt_topo_machine_graphs(const struct tt_topo_machine *machine, int rank,
                                    char **graphs_out)
{
    struct tt_topo_units units = {0};
    ncclResult_t rc = tt_topo_units_init(&units, machine);
    int u = rc ? 0 : units.unit_of[machine->ranks[rank].node];
    if (!rc) rc = tt_topo_unit_search(&units, u);
    if (!rc) {
        const struct tt_topo_comm_node comm_node = {.domain = tt_topo_unit_domain(&units, u, rank),
                                                    .member = tt_topo_unit_at(&units, u).rank};
        rc = tt_topo_graphs_print(&comm_node, graphs_out);
    }
    tt_topo_units_fini(&units);
    return rc;
}
