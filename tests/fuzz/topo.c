/* Fuzz target: any bytes as a machine file, then as a graph file for a machine. Nothing may crash,
 * hang or allocate without bound; what is accepted is searched and joined. */
#include "topo/topo.h"

#include "fuzz/target.h"

#include "topo/file/complete.h"

#include <stdlib.h>
#include <string.h>

/* Every ring visits every rank once. */
static void check_rings(const struct tt_topo_layout *layout)
{
    char *seen = calloc((size_t)layout->nranks, 1);
    if (!seen) abort();
    for (int k = 0; k < layout->nrings; k++) {
        for (int p = 0; p < layout->nranks; p++) {
            if (seen[layout->ring[k][p]]++ != k) abort();
        }
    }
    free(seen);
}

/* Parents and children agree. */
static void check_tree(const struct tt_tree_links *tree, int nranks)
{
    for (int k = 0; k < 3 * nranks; k++) {
        int child = tree[k / 3].child[k % 3];
        if (child >= 0 && tree[child].parent != k / 3) abort();
    }
}

static void check(const struct tt_topo_layout *layout)
{
    check_rings(layout);
    for (int k = 0; k < layout->ntrees; k++)
        check_tree(layout->tree[k], layout->nranks);
}

static void join(struct tt_topo_domain *domains, int ndomains)
{
    struct tt_topo_comm_node comm_nodes[64];
    struct tt_topo_layout *layout = NULL;
    int ranks = 0;
    if (2 * ndomains > 64) return;
    for (int d = 0; d < ndomains; d++)
        ranks += domains[d].nranks;
    for (int p = 0; p < 2 * ndomains; p++) {
        comm_nodes[p] =
            (struct tt_topo_comm_node){&domains[p % ndomains], p / ndomains * ranks, NULL};
    }
    if (tt_topo_layout_make(comm_nodes, 2 * ndomains, NULL, &layout) == ncclSuccess) check(layout);
    tt_topo_layout_free(layout);
}

static void search(const struct tt_topo_file *file)
{
    static const struct tt_topo_options options = {.fused = true};
    struct tt_topo_domain *domains = NULL;
    int ndomains = 0;
    if (tt_topo_domains_make(file, &options, 2, &domains, &ndomains)) return;
    const struct tt_topo_comm_node comm_node = {.domain = domains};
    char *graphs = NULL;
    (void)tt_topo_graphs_print(&comm_node, &graphs);
    free(graphs);
    join(domains, ndomains);
    tt_topo_domains_free(domains, ndomains);
}

/* The same bytes as a partial file: what is completed prints, and reads as a whole file. */
static void complete(const uint8_t *bytes, size_t count)
{
    static const struct tt_topo_device devices[] = {{"ff00:01:00.0", 0, 90},
                                                    {"0000:06:00.0", 1, 80}};
    static const struct tt_topo_nic nics[] = {
        {.name = "mlx5_0", .path = "/sys/0000:01:00.1", .mbps = 100000, .rail = -1, .plane = -1},
        {.name = "new", .number = 1, .guid = 7, .rail = 1, .plane = 2},
    };
    struct tt_topo_local local = {devices, 2, count % 2 ? nics : NULL, 2};
    struct tt_topo_file *file = NULL, *again = NULL;
    if (tt_topo_partial_parse("partial", (const char *)bytes, count, &file)) return;
    if (tt_topo_complete(file, &local) == ncclSuccess) {
        char *text = tt_topo_file_print(file);
        if (!text || tt_topo_file_parse("again", text, strlen(text), &again)) abort();
        free(text);
        search(again);
    }
    tt_topo_file_free(again);
    tt_topo_file_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct tt_topo_file *file = NULL;
    struct tt_topo_system *system = NULL;
    static const struct tt_topo_options options = {0};
    complete(bytes, count);
    if (tt_topo_file_parse("fuzz", (const char *)bytes, count, &file)) return 0;
    char *text = tt_topo_file_print(file);
    struct tt_topo_file *again = NULL;
    if (!text || tt_topo_file_parse("again", text, strlen(text), &again)) abort();
    tt_topo_file_free(again);
    free(text);
    if (tt_topo_system_make(file, &options, &system) == ncclSuccess) {
        char *json = tt_topo_system_json(system);
        free(json);
        search(file);
    }
    tt_topo_system_free(system);
    tt_topo_file_free(file);
    return 0;
}
