/* Fuzz target: any bytes as a graph file for four GPUs and two NICs. What is taken
 * must be channels that visit every GPU once. */
#include "fuzz/target.h"

#include "topo/search/graph.h"
#include "topo/search/graph_file.h"

#include <stdlib.h>
#include <string.h>

enum { GPUS = 4 };

static const char machine[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
    "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\"><gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:02:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\"><gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\"><gpu dev=\"2\" sm=\"90\" rank=\"2\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:04:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\"><gpu dev=\"3\" sm=\"90\" rank=\"3\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:05:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\"><nic><net name=\"a\" dev=\"0\" speed=\"100000\" port=\"1\" guid=\"0x1\" "
    "gdr=\"1\"/><net name=\"b\" dev=\"1\" speed=\"100000\" port=\"1\" guid=\"0x2\" gdr=\"1\"/>"
    "</nic></pci></cpu></system>";

static void check(const struct tt_topo_graph *graph)
{
    int width = graph->kind == TT_GRAPH_NVLS ? 1 : graph->ngpus;
    for (int c = 0; c < graph->nchannels; c++) {
        int seen = 0;
        for (int p = 0; p < width; p++)
            seen |= 1 << graph->intra[c * graph->ngpus + p];
        if (graph->kind != TT_GRAPH_NVLS && seen != (1 << graph->ngpus) - 1) abort();
    }
}

static void take_all(const struct tt_xml_node *root, const struct tt_topo_system *system)
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        struct tt_topo_graph graph;
        bool ready = tt_graph_init(&graph, (enum tt_graph_kind)kind, GPUS);
        if (ready && !tt_graph_file_take(root, "fuzz", system, true, &graph)) check(&graph);
        tt_graph_fini(&graph);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const struct tt_topo_options options = {0};
    struct tt_topo_file *file = NULL;
    struct tt_topo_system *system = NULL;
    struct tt_xml_node *root = NULL;
    if (tt_graph_file_parse("fuzz", (const char *)bytes, count, &root)) return 0;
    if (tt_topo_file_parse("machine", machine, strlen(machine), &file)) abort();
    if (tt_topo_system_make(file, &options, &system)) abort();
    take_all(root, system);
    tt_topo_system_free(system);
    tt_topo_file_free(file);
    tt_xml_free(root);
    return 0;
}
