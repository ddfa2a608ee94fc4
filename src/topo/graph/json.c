/* A graph as JSON members "system", "paths" and "access", seven digits per number, which is what
 * single precision holds. */
#include "access.h"
#include "system.h"

#include <stdio.h>
#include <stdlib.h>

struct page {
    FILE *out;
    const struct tt_topo_system *system;
};

static void comma(const struct page *page, int k)
{
    if (k) (void)fputs(", ", page->out);
}

/* A text of UTF-8 without control characters; NULL: null. */
static void put_text(const struct page *page, const char *text)
{
    (void)fputs(text ? "\"" : "null", page->out);
    for (; text && *text; text++) {
        if (*text == '"' || *text == '\\') (void)fputc('\\', page->out);
        (void)fputc(*text, page->out);
        if (!text[1]) (void)fputc('"', page->out);
    }
}

/* ---- system ---- */

static const char *model_name(const struct tt_topo_node *cpu)
{
    static const char *const names[] = {
        [TT_MODEL_NONE] = "null",
        [TT_MODEL_INTEL_BDW] = "\"intel_bdw\"",
        [TT_MODEL_INTEL_SKL] = "\"intel_skl\"",
        [TT_MODEL_INTEL_SRP] = "\"intel_srp\"",
        [TT_MODEL_INTEL_ERP] = "\"intel_erp\"",
        [TT_MODEL_YONGFENG] = "\"yongfeng\"",
    };
    return names[cpu->model];
}

static void put_cpus(const struct page *page)
{
    static const char *const archs[] = {"null", "\"x86_64\"", "\"ppc64\"", "\"arm64\""};
    static const char *const vendors[] = {"null", "\"intel\"", "\"amd\"", "\"zhaoxin\""};
    const struct tt_topo_list *cpus = &page->system->list[TT_NODE_CPU];
    (void)fputs("\"cpus\": [", page->out);
    for (int k = 0; k < cpus->count; k++) {
        const struct tt_topo_node *cpu = cpus->node[k];
        comma(page, k);
        (void)fprintf(page->out,
                      "{\"index\": %d, \"numa\": %d, \"host\": %d, \"arch\": %s, \"vendor\": %s, "
                      "\"model\": %s}",
                      k, (int)(cpu->id & 0xffffffff), tt_topo_host(cpu), archs[cpu->arch],
                      vendors[cpu->vendor], model_name(cpu));
    }
    (void)fputs("],\n", page->out);
}

static void put_gpus(const struct page *page)
{
    const struct tt_topo_list *gpus = &page->system->list[TT_NODE_GPU];
    (void)fputs("\"gpus\": [", page->out);
    for (int k = 0; k < gpus->count; k++) {
        const struct tt_topo_node *gpu = gpus->node[k];
        const struct tt_topo_node *cpu = tt_topo_local_cpu(page->system, gpu);
        char busid[24];
        tt_word_busid_text(gpu->id & 0xffffffffffull, busid);
        comma(page, k);
        (void)fprintf(page->out,
                      "{\"index\": %d, \"rank\": %d, \"dev\": %d, \"busid\": \"%s\", \"cc\": %d, "
                      "\"gdr\": %d, \"local_cpu\": %d, \"pci_id\": ",
                      k, gpu->rank, gpu->dev_number, busid, gpu->cc, gpu->gdr,
                      cpu ? cpu->index : -1);
        if (gpu->dev->pci_id) {
            (void)fprintf(page->out, "\"%04x:%04x\"}", (unsigned)(gpu->dev->pci_id >> 48),
                          (unsigned)(gpu->dev->pci_id >> 32 & 0xffff));
        } else {
            (void)fputs("null}", page->out);
        }
    }
    (void)fputs("],\n", page->out);
}

static void put_nets(const struct page *page)
{
    const struct tt_topo_list *nets = &page->system->list[TT_NODE_NET];
    (void)fputs("\"nets\": [", page->out);
    for (int k = 0; k < nets->count; k++) {
        const struct tt_topo_node *net = nets->node[k];
        comma(page, k);
        (void)fprintf(page->out, "{\"index\": %d, \"dev\": %d, \"host\": %d, \"name\": ", k,
                      net->dev_number, tt_topo_host(net));
        put_text(page, net->name);
        (void)fprintf(page->out,
                      ", \"bw\": %.7g, \"latency\": %.7g, \"port\": %d, \"guid\": \"0x%llx\", "
                      "\"gdr\": %d, \"coll\": %d, "
                      "\"max_conn\": %d, \"local_gpu_rank\": ",
                      (double)net->bw, (double)net->latency, net->port,
                      (unsigned long long)net->guid, net->gdr, net->coll, net->max_conn);
        if (net->local_gpu) {
            (void)fprintf(page->out, "%d}", net->local_gpu->rank);
        } else {
            (void)fputs("null}", page->out);
        }
    }
    (void)fputs("],\n", page->out);
}

static void put_node_links(const struct page *page, const struct tt_topo_node *node, int *count)
{
    for (int l = 0; l < node->nlinks; l++) {
        const struct tt_topo_link *link = &node->links[l];
        comma(page, (*count)++);
        (void)fprintf(page->out, "[\"%s/%d\", \"%s/%d\", \"%s\", %.7g]",
                      tt_topo_type_name(node->type), node->index,
                      tt_topo_type_name(link->peer->type), link->peer->index,
                      tt_topo_link_name(link->type), (double)link->bw);
    }
}

static void put_links(const struct page *page)
{
    int count = 0;
    (void)fputs("\"links\": [", page->out);
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < page->system->list[type].count; k++) {
            put_node_links(page, page->system->list[type].node[k], &count);
        }
    }
    (void)fputs("]", page->out);
}

static void put_system(const struct page *page)
{
    (void)fputs("\"system\": {\n", page->out);
    put_cpus(page);
    put_gpus(page);
    put_nets(page);
    (void)fprintf(page->out, "\"nvswitch\": %d,\n\"pci_switches\": %d,\n\"nics\": %d,\n",
                  page->system->list[TT_NODE_NVS].count, page->system->list[TT_NODE_PCI].count,
                  page->system->list[TT_NODE_NIC].count);
    put_links(page);
    (void)fputs("},\n", page->out);
}

/* ---- matrices ---- */

typedef void put_cell(const struct page *page, const struct tt_topo_node *from,
                      const struct tt_topo_node *to);

struct matrix {
    const char *name;
    enum tt_topo_type from, to;
    put_cell *put;
};

static void put_matrix(const struct page *page, const struct matrix *matrix)
{
    const struct tt_topo_list *rows = &page->system->list[matrix->from];
    const struct tt_topo_list *columns = &page->system->list[matrix->to];
    (void)fprintf(page->out, "\"%s\": [", matrix->name);
    for (int r = 0; r < rows->count; r++) {
        comma(page, r);
        (void)fputc('[', page->out);
        for (int c = 0; c < columns->count; c++) {
            comma(page, c);
            matrix->put(page, rows->node[r], columns->node[c]);
        }
        (void)fputc(']', page->out);
    }
    (void)fputc(']', page->out);
}

static void put_type(const struct page *page, const struct tt_topo_node *from,
                     const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "\"%s\"", tt_path_type_name(tt_topo_path(from, to)->type));
}

static void put_bw(const struct page *page, const struct tt_topo_node *from,
                   const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "%.7g", (double)tt_topo_path(from, to)->bw);
}

static void put_hops(const struct page *page, const struct tt_topo_node *from,
                     const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "%d", tt_topo_path(from, to)->hops);
}

static void put_paths(const struct page *page)
{
    static const struct {
        const char *name;
        enum tt_topo_type from, to;
    } pairs[] = {
        {"gpu_gpu", TT_NODE_GPU, TT_NODE_GPU}, {"gpu_net", TT_NODE_GPU, TT_NODE_NET},
        {"net_gpu", TT_NODE_NET, TT_NODE_GPU}, {"gpu_cpu", TT_NODE_GPU, TT_NODE_CPU},
        {"gpu_nvs", TT_NODE_GPU, TT_NODE_NVS},
    };
    (void)fputs("\"paths\": {\n", page->out);
    for (int k = 0; k < 5; k++) {
        if (k == 4 && page->system->list[TT_NODE_NVS].count == 0) break;
        const struct matrix type = {"type", pairs[k].from, pairs[k].to, put_type};
        const struct matrix bw = {"bw", pairs[k].from, pairs[k].to, put_bw};
        const struct matrix hops = {"hops", pairs[k].from, pairs[k].to, put_hops};
        (void)fprintf(page->out, "%s\"%s\": {", k ? ",\n" : "", pairs[k].name);
        put_matrix(page, &type);
        (void)fputs(",\n", page->out);
        put_matrix(page, &bw);
        (void)fputs(",\n", page->out);
        put_matrix(page, &hops);
        (void)fputc('}', page->out);
    }
    (void)fputs("},\n", page->out);
}

/* ---- access ---- */

static void put_p2p(const struct page *page, const struct tt_topo_node *from,
                    const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "%d", tt_topo_p2p_check(page->system, from, to).allowed);
}

static void put_p2p_read(const struct page *page, const struct tt_topo_node *from,
                         const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "%d", tt_topo_p2p_check(page->system, from, to).read);
}

static void put_relay(const struct page *page, const struct tt_topo_node *from,
                      const struct tt_topo_node *to)
{
    const struct tt_topo_node *relay = tt_topo_p2p_check(page->system, from, to).relay;
    (void)fprintf(page->out, "%d", relay ? relay->rank : -1);
}

static void put_prefers(const struct page *page, const struct tt_topo_node *from,
                        const struct tt_topo_node *to)
{
    (void)fprintf(page->out, "%d", tt_topo_prefers_net(page->system, from, to));
}

static void put_gdr_recv(const struct page *page, const struct tt_topo_node *gpu,
                         const struct tt_topo_node *net)
{
    (void)fprintf(page->out, "%d", tt_topo_gdr_check(page->system, gpu, net, false));
}

static void put_gdr_send(const struct page *page, const struct tt_topo_node *gpu,
                         const struct tt_topo_node *net)
{
    (void)fprintf(page->out, "%d", tt_topo_gdr_check(page->system, gpu, net, true));
}

static void put_proxy(const struct page *page, const struct tt_topo_node *gpu,
                      const struct tt_topo_node *net)
{
    (void)fprintf(page->out, "%d", tt_topo_relay_of(page->system, gpu, net)->rank);
}

static void put_rotation(const struct page *page)
{
    const struct tt_topo_list *gpus = &page->system->list[TT_NODE_GPU];
    (void)fputs("\"net_rotation\": [", page->out);
    for (int g = 0; g < gpus->count; g++) {
        const struct tt_topo_node *first = tt_topo_net_of(page->system, gpus->node[g], 0);
        const struct tt_topo_node *net = first;
        comma(page, g);
        (void)fputc('[', page->out);
        for (int c = 0; net && c < TT_TOPO_NODES && (c == 0 || net != first); c++) {
            comma(page, c);
            (void)fprintf(page->out, "%d", tt_topo_host(net) * 1000 + net->dev_number);
            net = tt_topo_net_of(page->system, gpus->node[g], c + 1);
        }
        (void)fputc(']', page->out);
    }
    (void)fputc(']', page->out);
}

static void put_access(const struct page *page)
{
    static const struct matrix matrices[] = {
        {"p2p", TT_NODE_GPU, TT_NODE_GPU, put_p2p},
        {"p2p_read", TT_NODE_GPU, TT_NODE_GPU, put_p2p_read},
        {"p2p_intermediate_rank", TT_NODE_GPU, TT_NODE_GPU, put_relay},
        {"prefer_net", TT_NODE_GPU, TT_NODE_GPU, put_prefers},
        {"gdr_recv", TT_NODE_GPU, TT_NODE_NET, put_gdr_recv},
        {"gdr_send", TT_NODE_GPU, TT_NODE_NET, put_gdr_send},
        {"pxn_proxy_rank", TT_NODE_GPU, TT_NODE_NET, put_proxy},
    };
    (void)fputs("\"access\": {\n", page->out);
    for (size_t k = 0; k < sizeof(matrices) / sizeof(matrices[0]); k++) {
        put_matrix(page, &matrices[k]);
        (void)fputs(",\n", page->out);
    }
    put_rotation(page);
    (void)fputs("}", page->out);
}

char *tt_topo_system_json(const struct tt_topo_system *system)
{
    char *text = NULL;
    size_t text_bytes = 0;
    struct page page = {open_memstream(&text, &text_bytes), system};
    if (!page.out) return NULL;
    put_system(&page);
    put_paths(&page);
    put_access(&page);
    if (fclose(page.out) == 0) return text;
    free(text);
    return NULL;
}
