/* `tutti topo show`: a machine as a tree of text, and who reaches whom how. */
#include "box.h"
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tree ---- */

static void print_cpu(const struct box *box, const struct box_node *node)
{
    const char *vendor = box_text(box, "cpus", node->index, "vendor");
    const char *model = box_text(box, "cpus", node->index, "model");
    printf("CPU %d: NUMA domain %d", node->index, box_int(box, "cpus", node->index, "numa"));
    if (box_int(box, "cpus", node->index, "host")) {
        printf(" of host %d", box_int(box, "cpus", node->index, "host"));
    }
    printf(", %s%s%s", box_text(box, "cpus", node->index, "arch"), *vendor ? " " : "", vendor);
    if (*model) printf(" (%s)", model);
}

static void print_gpu(const struct box *box, const struct box_node *node)
{
    int g = node->gpu;
    printf("GPU %d: rank %d, %s, sm_%d%s", g, box_int(box, "gpus", g, "rank"),
           box_text(box, "gpus", g, "busid"), box_int(box, "gpus", g, "cc"),
           box_int(box, "gpus", g, "gdr") ? "" : ", no GPU-direct");
    if (node->ranks > 1) printf(", %d ranks", node->ranks);
    if (node->nvlink > 0) {
        printf(", NVLink %.4g GB/s%s", node->nvlink, node->switched ? " to the NVSwitch" : "");
    }
    if (node->c2c > 0) printf(", C2C %.4g GB/s", node->c2c);
}

static void print_net(const struct box *box, const struct box_node *node)
{
    int n = node->index;
    printf("port: net %d, %.4g GB/s, latency %.4g us%s", box_int(box, "nets", n, "dev"),
           box_real(box, "nets", n, "bw"), box_real(box, "nets", n, "latency"),
           box_int(box, "nets", n, "gdr") ? "" : ", no GPU-direct");
    json_t *rank = json_object_get(box_row(box, "nets", n), "local_gpu_rank");
    if (json_is_integer(rank)) printf(", next to rank %d", (int)json_integer_value(rank));
}

static void print_node(const struct box *box, int k)
{
    const struct box_node *node = &box->node[k];
    printf("%*s", 2 * node->depth, "");
    switch (node->kind) {
    case BOX_CPU: print_cpu(box, node); break;
    case BOX_GPU: print_gpu(box, node); break;
    case BOX_NET: print_net(box, node); break;
    case BOX_NIC: printf("NIC %d", node->index); break;
    default: printf("switch %d", node->index); break;
    }
    if (node->kind != BOX_CPU && node->kind != BOX_NET) {
        if (node->up_bw < BOX_NO_LINK) {
            printf("  [%.4g GB/s up]", node->up_bw);
        } else {
            printf("  [no PCI link known]");
        }
    }
    printf("\n");
}

static void print_tree(const struct box *box, int k)
{
    print_node(box, k);
    for (int child = k + 1; child < box->count; child++) {
        if (box->node[child].parent == k) print_tree(box, child);
    }
}

/* ---- matrices ---- */

static int count_of(const struct box *box, const char *list)
{
    return (int)json_array_size(json_object_get(json_object_get(box->machine, "system"), list));
}

static void print_heads(const struct box *box, bool nets)
{
    printf("%-8s", "");
    for (int g = 0; g < count_of(box, "gpus"); g++)
        printf("GPU%-6d", g);
    for (int n = 0; nets && n < count_of(box, "nets"); n++)
        printf("NET%-6d", n);
}

static void print_way(const char *way, double bw)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%s/%.0f", way, bw);
    printf("%-8s ", text);
}

static void print_row(const struct box *box, int g)
{
    printf("GPU%-5d", g);
    for (int p = 0; p < count_of(box, "gpus"); p++) {
        if (p == g) {
            printf("%-8s ", "X");
        } else {
            print_way(box_way(box, "gpu_gpu", g, p), box_way_bw(box, "gpu_gpu", g, p));
        }
    }
    for (int n = 0; n < count_of(box, "nets"); n++)
        print_way(box_way(box, "gpu_net", g, n), box_way_bw(box, "gpu_net", g, n));
    int cpu = box_int(box, "gpus", g, "local_cpu");
    printf("%d\n", cpu < 0 ? -1 : box_int(box, "cpus", cpu, "numa"));
}

static void print_matrix(const struct box *box)
{
    print_heads(box, true);
    printf("NUMA\n");
    for (int g = 0; g < count_of(box, "gpus"); g++)
        print_row(box, g);
    printf("\npath/GB/s. NVL NVLink; NVB NVLink through a GPU; C2C chip to chip; PIX at most one\n"
           "PCI switch; PXB several; P2C C2C, then PCI; PXN through another GPU's NVLink; PHB\n"
           "through the CPU; SYS across CPUs; NET only by the network; DIS not at all\n");
}

static int access_cell(const struct box *box, const char *matrix, int from, int to)
{
    json_t *table = json_object_get(json_object_get(box->machine, "access"), matrix);
    json_t *cell = json_array_get(json_array_get(table, (size_t)from), (size_t)to);
    return (int)json_integer_value(cell);
}

static void print_access(const struct box *box, int g, int p)
{
    int relay = access_cell(box, "p2p_intermediate_rank", g, p);
    char text[16] = "-";
    if (p == g) {
        text[0] = 'X';
    } else if (access_cell(box, "p2p", g, p) && relay >= 0) {
        (void)snprintf(text, sizeof(text), "via %d", relay);
    } else if (access_cell(box, "p2p", g, p)) {
        bool reads = access_cell(box, "p2p_read", g, p);
        (void)snprintf(text, sizeof(text), "ok%s", reads ? ",read" : "");
    }
    printf("%-8s ", text);
}

static void print_p2p(const struct box *box)
{
    print_heads(box, false);
    printf("\n");
    for (int g = 0; g < count_of(box, "gpus"); g++) {
        printf("GPU%-5d", g);
        for (int p = 0; p < count_of(box, "gpus"); p++)
            print_access(box, g, p);
        printf("\n");
    }
    printf("\nok direct access (read: the receiver reads); via N through rank N; - none\n");
}

static bool print_xml(const struct tt_topo_file *file)
{
    char *text = tt_topo_file_print(file);
    if (text) (void)fputs(text, stdout);
    free(text);
    return text != NULL;
}

int topo_show(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct box box = {0};
    bool done = machine && box_init(&box, machine);
    if (done && options->xml) {
        done = print_xml(file);
    } else if (done && options->svg) {
        done = topo_show_svg(&box, topo_name(options->paths[0]));
    } else if (done && options->json) {
        topo_print(machine);
    } else if (done && options->p2p) {
        print_p2p(&box);
    } else if (done) {
        for (int k = 0; k < box.count; k++) {
            if (box.node[k].parent < 0) print_tree(&box, k);
        }
        printf("\n");
        print_matrix(&box);
    }
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
